#!/bin/sh
# Stops this box at a date unless it is renewed or removed. Usage: sh leash.sh FOLDER TOKEN SECONDS DRY OPERATOR-BOOT
#
# FOLDER/token names the one timer that counts: any other ends by itself. Time is counted by the kernel's
# uptime, or in naps where there is none, so that no clock that jumps can shorten it. With DRY it tells what it
# would do and does nothing. It knows one command, which keeps the disks, and none that destroys.
set -u
umask 077
cd -- "${1:?}" || exit 76
token=${2:?} seconds=${3:?} dry=${4:?} theirs=${5:?}
trap '' HUP
put() { cat >"$1.part$$" && mv -f "$1.part$$" "$1"; }
boot() { cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo '?'; }
ticks() {
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return
  # shellcheck disable=SC2086 # the fields after the name, which may hold blanks itself
  set -- ${stat##*) }
  echo "${20}"
}
up() { cut -d . -f 1 /proc/uptime 2>/dev/null; }
mine() { [ "$(cat token 2>/dev/null)" = "$token" ]; }

echo "$token" | put token
echo "$$ $(ticks $$) $(boot) $(uname -n)" | put holder
began=$(up) napped=0
while :; do
  mine || exit 0
  if [ -n "$began" ]; then gone=$(($(up) - began)); else gone=$napped; fi
  [ "$gone" -lt "$seconds" ] || break
  left=$((seconds - gone))
  echo "$left $(date +%s)" | put left
  nap=20
  [ "$left" -ge "$nap" ] || nap=$left
  sleep "$nap"
  napped=$((napped + nap))
done
mine || exit 0
if [ "$(boot)" = "$theirs" ] || [ "$(boot)" = '?' ]; then
  echo "refused: this is the operator's own computer" | put fired
elif ! command -v shutdown >/dev/null 2>&1; then
  echo "failed: there is no shutdown here" | put fired
elif [ "$dry" = dry ]; then
  echo "would: $(command -v shutdown)" | put fired
else
  echo "firing: $(date +%s)" | put fired
  exec shutdown
fi

#!/bin/sh
# Works through a list of runs on one box, one after another. Usage: sh queue.sh QUEUE-FOLDER
#
# QUEUE-FOLDER/cells: one `name folder` a line; QUEUE-FOLDER/claims-at names the folder of claims. A cell is claimed
# by making CLAIMS/name, which only one worker of all boxes that share the folder can do; a claim is never taken
# from another host. QUEUE-FOLDER/log is only ever added to. A cell that fails does not stop the next one. Ends
# with 73 where another worker of this queue is alive on this host.
set -u
umask 077
queue=${1:?}
cd -- "$queue" || exit 76
IFS= read -r claims <claims-at || exit 76
mkdir -p -- "$claims" || exit 76
host=$(uname -n)
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null || sysctl -n kern.bootsessionuuid 2>/dev/null || echo '?')
ticks() {
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || { ps -o lstart= -p "$1" 2>/dev/null | tr -s ' ' _; return; }
  # shellcheck disable=SC2086 # the fields after the name, which may hold blanks itself
  set -- ${stat##*) }
  [ "$1" = Z ] || echo "${20}" # what is dead and not yet taken note of is no process
}
told() { echo "$(date +%s) $host $*" >>log; }

stopped=''
trap '' HUP
trap 'stopped=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT
child=''

mine() { # $1 file of a holder: is it this host's, and gone?
  pid='' began='' where='' on=''
  [ -r "$1" ] || return 1
  read -r pid began where on <"$1" || return 1
  [ "$on" = "$host" ] || return 1
  [ "$where" = "$boot" ] || return 0
  [ "$(ticks "$pid")" != "$began" ]
}
claim() { # $1 name
  to=$claims/$1 made=$claims/$1
  if ! mkdir -- "$to" 2>/dev/null; then
    mine "$to/holder" || return 1
    n=1
    while [ -d "$to/again.$n" ]; do n=$((n + 1)); done
    made=$to/again.$n
    mkdir -- "$made" 2>/dev/null || return 1
  fi
  echo "$$ $(ticks $$) $boot $host" >"$to/holder.part$$" && mv -f -- "$to/holder.part$$" "$to/holder" && return
  rm -f -- "$to/holder.part$$" # on a full disk: a claim that names nobody would keep the cell from everybody
  rmdir -- "$made" 2>/dev/null
  return 1
}

[ ! -e holder ] || mine holder || exit 73
echo "$$ $(ticks $$) $boot $host" >holder
while IFS= read -r cell <&3 || [ -n "$cell" ]; do
  [ -z "$stopped" ] || break
  name=${cell%% *} folder=${cell#* }
  if [ -e "$claims/$name/over" ]; then continue; fi
  if ! claim "$name"; then
    told "skipped $name"
    continue
  fi
  told "began $name"
  wrapper=$(cat "$folder/.rgt/plan/wrapper" 2>/dev/null)
  while :; do
    sh "$folder/$wrapper" "$folder" </dev/null &
    child=$!
    while :; do
      wait "$child"
      status=$?
      kill -0 "$child" 2>/dev/null || break
    done
    child=''
    # 73: it is at work, left behind by a worker that was killed. The next cell would share its cards.
    if [ "$status" -ne 73 ] || [ -n "$stopped" ]; then break; fi
    sleep 5
  done
  told "ended $name $status"
  [ "$status" -ne 0 ] || : >"$claims/$name/over"
done 3<cells
told "done"

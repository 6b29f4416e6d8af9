#!/bin/sh
# Carries one run to its end with nobody watching. Usage: sh wrapper.sh RUN-FOLDER
# Ends with the job's own status; 73 another attempt is alive, 74 no room for it, 75 artifact
# missing, 76 the plan could not be read.
#
# Everything it knows lies in RUN-FOLDER/.rgt/plan, one value or word a line, and everything it does is told in
# RUN-FOLDER/.rgt/attempts/N. Files appear whole, by rename. An attempt is claimed by making its folder, which
# only one process can do; nothing is ever taken away from an older one.
set -u
umask 077
run=${1:?}
cd -- "$run" || exit 76
run=$(pwd) rgt=$run/.rgt
plan=$rgt/plan beat_s=15 fresh_s=120 child='' got='' beater='' killed='' n=0

put() { # $1 file; stdin becomes its content, whole or not at all
  cat >"$1.part$$" && { sync "$1.part$$" 2>/dev/null || :; } && mv -f "$1.part$$" "$1"
}
line() { # $1 file: its first line, nothing where there is no such file
  if [ -r "$1" ]; then IFS= read -r text <"$1" || [ -n "$text" ] || text=''; else text=''; fi
  printf %s "$text"
}
boot() { cat /proc/sys/kernel/random/boot_id 2>/dev/null || sysctl -n kern.bootsessionuuid 2>/dev/null || echo '?'; }
ticks() { # start time of a process since boot; with its pid it is one process for as long as the boot lasts
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || { ps -o lstart= -p "$1" 2>/dev/null | tr -s ' ' _; return; }
  # shellcheck disable=SC2086 # the fields after the name, which may hold blanks itself
  set -- ${stat##*) }
  [ "$1" = Z ] || echo "${20}" # what is dead and not yet taken note of is no process
}
is() { [ -n "$2" ] && [ "$(ticks "$1")" = "$2" ]; } # $1 pid, $2 its start: is it that very process, and alive?
beaten() { # the moment of the last heartbeat, 0 where there is none
  beaten=$(line "$rgt/heartbeat")
  case $beaten in '' | *[!0-9]*) echo 0 ;; *) echo "$beaten" ;; esac
}
host=$(uname -n) boot_id=$(boot)

alive() { # $1 folder of an attempt: may it still run?
  [ -e "$1/end" ] && return 1
  waited=0
  while [ ! -e "$1/holder" ]; do # claimed a moment ago, or dead between claim and record
    [ "$waited" -lt 10 ] || return 1
    sleep 1
    waited=$((waited + 1))
  done
  pid='' started='' where='' on='' job=''
  read -r pid started where on job <"$1/holder" || :
  if [ "$on" = "$host" ] && [ "$where" = "$boot_id" ]; then
    is "$pid" "$started" && return
    pid='' started='' # a wrapper that was killed leaves its job behind, at work
    [ ! -r "$1/child" ] || read -r pid started _ <"$1/child" || :
    is "$pid" "$started"
    return
  fi
  # Another host on a shared disk. The scheduler that started this one again has ended the old one.
  [ -n "$job" ] && [ "$job" = "${SLURM_JOB_ID:-}" ] && return 1
  # This host before it was started again, or another one that has its name.
  [ "$on" != "$host" ] || [ $(($(date +%s) - $(beaten))) -lt "$fresh_s" ] || return 1
  before=$(cat "$rgt/heartbeat" 2>/dev/null)
  sleep $((beat_s * 2 + 5))
  [ "$before" != "$(cat "$rgt/heartbeat" 2>/dev/null)" ]
}

claim() {
  mkdir -p "$rgt/attempts" "$rgt/done"
  while :; do
    n=1
    while [ -d "$rgt/attempts/$n" ]; do n=$((n + 1)); done
    if [ "$n" -gt 1 ]; then
      last=$rgt/attempts/$((n - 1))
      [ "$(line "$last/end")" != 'reason finished' ] || exit 0
      ! alive "$last" || refuse
    fi
    mkdir "$rgt/attempts/$n" 2>/dev/null && break
    [ -d "$rgt/attempts/$n" ] || unwritable
  done
  at=$rgt/attempts/$n
  # Without its record nobody could tell that it lives, and another would be started beside it.
  if ! echo "$$ $(ticks $$) $boot_id $host ${SLURM_JOB_ID:-}" | put "$at/holder"; then
    rm -f "$at/holder.part$$" && rmdir "$at" 2>/dev/null
    unwritable
  fi
  # Whoever slept between claim and record may find itself overtaken.
  [ ! -d "$rgt/attempts/$((n + 1))" ] || refuse
}
refuse() {
  echo "rgt: another attempt of this run is alive; nothing was started" >&2
  exit 73
}

unwritable() {
  echo "rgt: no attempt can be recorded: no room, no inodes, or no right to write; nothing was started" >&2
  exit 74
}

environment() { # $1 file of NAME=value lines
  [ -r "$1" ] || return 0
  while IFS= read -r word || [ -n "$word" ]; do
    case $word in [A-Za-z_]*=*) export "${word?}" ;; esac
  done <"$1"
}
hook() { # a platform's own set-up, such as a proxy; it may use unset names
  file=$(line "$plan/hook")
  if [ -n "$file" ] && [ -r "$file" ]; then
    set +u
    trap 'set -u; trap - EXIT; finish hook 76 "$file"' EXIT # one that ends the shell ends it with a word
    # shellcheck disable=SC1090 # named by the platform's profile
    . "$file" >/dev/null 2>&1
    trap - EXIT
    set -u
  fi
}
cores() { # whole cores of the cgroup's quota, nothing where there is none
  quota='' period=''
  if [ -r /sys/fs/cgroup/cpu.max ]; then
    read -r quota period </sys/fs/cgroup/cpu.max || :
  elif [ -r /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
    quota=$(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us) period=$(cat /sys/fs/cgroup/cpu/cpu.cfs_period_us)
  fi
  case $quota in '' | max | -*) ;; *) echo $(((quota + period - 1) / period)) ;; esac
}
threads() { # libraries count the host's cores; on a slice of them that many threads only wait for each other
  count=$(cores)
  [ -n "$count" ] || return 0
  for name in OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS; do
    eval "[ -n \"\${$name:-}\" ]" || export "$name=$count"
  done
}

record() { # before the first child: who runs, where, with what
  {
    echo "pid $$"
    echo "ticks $(ticks $$)"
    echo "boot $boot_id"
    echo "host $host"
    echo "began $(date +%s)"
    echo "wrapper .rgt/${0##*/}"
    echo "plan $(line "$plan/id")"
    echo "job ${SLURM_JOB_ID:-}"
    echo "python $( (command -v "${PY:-python3}" && "${PY:-python3}" -V) 2>/dev/null | tr '\n' ' ')"
    echo "driver $(cat /sys/module/nvidia/version 2>/dev/null)"
    echo "threads ${OMP_NUM_THREADS:-}"
    echo "devices ${CUDA_VISIBLE_DEVICES:-all}"
  } | put "$at/start"
  # kept, so that a disk without room or without inodes takes the record of the child, and of the end
  dd if=/dev/zero of="$at/room" bs=4096 count=4 2>/dev/null
  for file in child end; do : >"$at/$file.part$$"; done 2>/dev/null
  killed=$(ooms)
}
ooms() { # how often the kernel has killed for want of memory in this cgroup, nothing where it does not tell
  set --
  while IFS=: read -r _ kind path; do
    case $kind in
    '') set -- "$@" "/sys/fs/cgroup$path/memory.events" /sys/fs/cgroup/memory.events ;;
    memory) set -- "/sys/fs/cgroup/memory$path/memory.oom_control" /sys/fs/cgroup/memory/memory.oom_control ;;
    esac
  done 2>/dev/null </proc/self/cgroup
  for file; do
    [ ! -r "$file" ] || { sed -n 's/^oom_kill //p' "$file" && return; }
  done
}

finish() { # $1 reason, $2 status, $3 stage
  now_killed=$(ooms) free=$(free_kib) left=$(free_inodes)
  rm -f "$at/room"
  {
    echo "reason $1"
    echo "status $2"
    echo "signal ${got:-$(by_signal "$2")}"
    echo "stage $3"
    echo "ended $(date +%s)"
    echo "oom $((${now_killed:-0} - ${killed:-0}))"
    echo "kib ${free:-?}"
    echo "inodes ${left:-?}"
  } | put "$at/end"
  [ -z "$beater" ] || kill "$beater" 2>/dev/null
  after
  exit "$2"
}
by_signal() { # a shell tells a signal as 128 + its number; a job may end with such a status by itself, too
  if [ "$1" -gt 128 ] && [ "$1" -le 192 ]; then kill -l "$1" 2>/dev/null || echo $(($1 - 128)); fi
}
start() { # $1 file of words, one a line, $2 file for what it says; runs them in the background
  file=$1 said=$2
  set --
  while IFS= read -r word || [ -n "$word" ]; do set -- "$@" "$word"; done <"$file"
  if command -v setsid >/dev/null 2>&1; then set -- setsid "$@"; fi # its own group, to be ended whole
  "$@" >>"$said" 2>&1 </dev/null &
  child=$!
}
bound() { # $1 seconds; ends the child's group after them, counted in naps so that no clock can shorten them
  left=$1
  while [ "$left" -gt 0 ] && kill -0 $$ 2>/dev/null; do
    sleep 2
    left=$((left - 2))
  done
  kill -0 $$ 2>/dev/null || exit 0
  : >"$at/late"
  kill -TERM "-$child" 2>/dev/null || kill -TERM "$child" 2>/dev/null
  left=20 # also for what the child started: it may be a worker that heeds no word, and holds the GPU
  while kill -0 "-$child" 2>/dev/null || kill -0 "$child" 2>/dev/null; do
    [ "$left" -gt 0 ] || break
    sleep 1
    left=$((left - 1))
  done
  [ "$left" -gt 0 ] || kill -KILL "-$child" 2>/dev/null || kill -KILL "$child" 2>/dev/null
}
follow() { # waits for the child; sets `status`. A signal that was passed on only interrupts the wait.
  while :; do
    wait "$child"
    status=$?
    kill -0 "$child" 2>/dev/null || return 0
  done
}
# shellcheck disable=SC2317 # called by traps
pass() { # to the job's first process alone: it may want its workers while it saves
  got=$1
  [ -z "$child" ] || kill -s "$1" "$child" 2>/dev/null
}
after() { # tells somebody, within a minute; what comes of it changes nothing
  [ -r "$plan/after" ] || return 0
  trap '' TERM INT USR1 USR2
  RGT_END=$at/end
  export RGT_END
  start "$plan/after" "$at/after"
  bound 60 &
  watch=$!
  follow
  kill "$watch" 2>/dev/null
}
beat() {
  while kill -0 $$ 2>/dev/null; do
    date +%s | put "$rgt/heartbeat"
    sleep "$beat_s"
  done
}
free_kib() { LC_ALL=C df -Pk . 2>/dev/null | awk 'NR == 2 { print $4 }'; }
free_inodes() { LC_ALL=C df -Pi . 2>/dev/null | awk 'NR == 2 { print $4 }'; }
room() { # $1 KiB, $2 inodes that must be free here; what is not told does not hold a job back
  kib=$(free_kib) inodes=$(free_inodes)
  echo "gate $(date +%s) kib ${kib:-?} of $1 inodes ${inodes:-?} of $2" >>"$at/gates"
  case $kib in '' | *[!0-9]*) ;; *) [ "$kib" -ge "$1" ] || return 1 ;; esac
  case $inodes in '' | *[!0-9]*) ;; *) [ "$inodes" -ge "$2" ] || return 1 ;; esac
}
trace() { LC_ALL=C ls -lid -- "$1" 2>/dev/null || echo none; }
proven() { # $1 artifact, $2 stage: there, not empty, and not what lay there before the stage was first begun
  # Its time alone proves nothing: clocks jump, and what is copied may keep an old one.
  [ -z "$1" ] || { [ -s "$1" ] &&
    { [ "$(trace "$1")" != "$(cat "$rgt/before/$2" 2>/dev/null)" ] ||
      [ -n "$(find "$1" -newer "$plan/id" 2>/dev/null)" ]; }; }
}

stage() { # $1 folder of the stage's plan
  name=${1##*/} artifact=$(line "$1/artifact") log=$run/$(line "$1/log")
  [ ! -e "$rgt/done/$name" ] || return 0
  need=$(line "$1/kib") files=$(line "$1/inodes") limit=$(line "$1/timeout") there=$(line "$1/workdir")
  cd -- "$run/${there:-.}" || finish no-workdir 76 "$name"
  room "${need:-0}" "${files:-0}" || finish disk-gate 74 "$name"
  [ -z "$got" ] || finish stopped 143 "$name"
  mkdir -p "${log%/*}" "$rgt/before"
  [ -e "$at/start" ] || finish disk-gate 74 "$name"
  if [ -n "$artifact" ] && [ ! -e "$rgt/before/$name" ]; then
    (cd -- "$run" && trace "$artifact") | put "$rgt/before/$name" || finish disk-gate 74 "$name"
  fi
  start "$1/argv" "$log"
  working="$child $(ticks "$child") $name"
  if ! echo "$working" | put "$at/child"; then # who finds it later must know it; that is worth more than its end
    rm -f "$at/room"
    echo "$working" | put "$at/child"
  fi
  watch=''
  if [ -n "$limit" ]; then
    bound "$limit" &
    watch=$!
  fi
  follow
  child=''
  if [ -n "$watch" ]; then
    while [ -e "$at/late" ] && kill -0 "$watch" 2>/dev/null; do wait "$watch"; done
    kill "$watch" 2>/dev/null
  fi
  cd -- "$run" || finish no-workdir 76 "$name"
  if [ "$status" -ne 0 ]; then finish failed "$status" "$name"; fi
  if ! proven "$artifact" "$name"; then
    [ -z "$got" ] || finish stopped 143 "$name"
    finish artifact-missing 75 "$name"
  fi
  if [ -n "$got" ] && [ -z "$artifact" ]; then finish stopped 143 "$name"; fi
  date +%s | put "$rgt/done/$name" || { rm -f "$at/room" && date +%s | put "$rgt/done/$name"; } ||
    finish no-room 74 "$name"
}

[ -r "$plan/id" ] || exit 76
trap '' HUP
claim
for signal in TERM INT USR1 USR2; do
  # shellcheck disable=SC2064 # the name as it is now
  trap "pass $signal" "$signal"
done
environment "$plan/env"
environment "$(line "$plan/secrets")"
PYTHONUNBUFFERED=1 RGT_RUN=$run RGT_ATTEMPT=$n
export PYTHONUNBUFFERED RGT_RUN RGT_ATTEMPT
hook
threads
record
beat &
beater=$!
for folder in "$plan"/stages/*/; do stage "${folder%/}"; done
finish finished 0 ''

# What a Linux box says. A plain tick reads /proc and /sys with the shell's own `read`: it starts no process.

# myself: P and S, pid and start time of this very (sub)shell.
myself() { read -r x </proc/self/stat; P=${x%% *}; x=${x##*') '}; set -- $x; S=${20}; }

now() { read -r x _ </proc/uptime; NOW=${x%%.*}; }

# still PID START: the same process is there, and not a zombie.
still() {
  read -r x <"/proc/$1/stat" || return 1
  x=${x##*') '}; want=$2; set -- $x
  [ "${20}" = "$want" ] && [ "$1" != Z ]
}

# family: add to $all the children of those in it.
family() {
  set +f; set -- /proc/[0-9]*; set -f
  for d; do
    read -r x <"$d/stat" || continue
    p=${x%% *}; x=${x##*') '}; x=${x#* }
    case $all in *" $p "*) continue ;; *" ${x%% *} "*) all="$all$p " ;; esac
  done
}

# tightest ROOT BELOW FILE: D, the level from ROOT/BELOW up to ROOT with the smallest number in FILE. Without a
# limit anywhere, the topmost level that keeps the file, below which everything of ours is counted.
tightest() {
  D=; top=; least=
  case $2/ in */../*) at=$1 ;; *) at=$1${2%/} ;; esac
  [ -d "$at" ] || at=$1
  while :; do
    v=
    if [ -r "$at/$3" ]; then top=$at; read -r v w <"$at/$3"; fi
    case $3,$v in
      cpu.max,[0-9]*) v=$((v * 100 / w)) ;;
      cpu.cfs_quota_us,[1-9]*) read -r w <"$at/cpu.cfs_period_us" && v=$((v * 100 / w)) ;;
    esac
    case $v in '' | *[!0-9]* | ???????????????????*) ;; *)
      if [ -z "$least" ] || [ "$v" -lt "$least" ]; then least=$v; D=$at; fi ;;
    esac
    [ "$at" = "$1" ] && break
    at=${at%/*}
  done
  : "${D:=$top}"
}

# find_cgroup: which files hold our limits. Asked anew with the slow parts, for limits may be changed.
find_cgroup() {
  two=; mem1=; cpu1=; IFS=$nl
  for x in $mounts; do
    IFS=$ifs; set -- $x
    case $3,$4, in
      cgroup2,*) two=$2 ;;
      cgroup,*,memory,*) mem1=$2 ;;
      cgroup,*,cpu,*) cpu1=$2 ;;
    esac
  done
  own2=; own_mem=; own_cpu=
  for x in $cgroups; do
    case $x in
      0::*) own2=${x#0::} ;;
      *:memory:* | *,memory:* | *:memory,*) own_mem=${x#*:*:} ;;
      *:cpu:* | *:cpu,* | *,cpu:*) own_cpu=${x#*:*:} ;;
    esac
  done
  IFS=$ifs
  memv=0; memd=; cpuv=0; cpud=
  if [ -n "$mem1" ]; then memv=1; tightest "$mem1" "$own_mem" memory.limit_in_bytes; memd=$D
  elif [ -n "$two" ]; then tightest "$two" "$own2" memory.max; memd=$D; [ -z "$D" ] || memv=2; fi
  if [ -n "$cpu1" ]; then cpuv=1; tightest "$cpu1" "$own_cpu" cpu.cfs_quota_us; cpud=$D
  elif [ -n "$two" ]; then tightest "$two" "$own2" cpu.max; cpud=$D; [ -z "$D" ] || cpuv=2; fi
}

# line DIR FILE: its first line, labelled.
line() { v=; read -r v <"$1/$2" && s="$s$2 $v$nl"; }

# pick FILE LAST KEYS...: the lines of a "key value" file whose key is asked for; reading ends at key LAST.
pick() {
  file=$1; last=$2; want=" $3 "
  while read -r k v; do
    case $want in *" $k "*) s="$s$k $v$nl" ;; esac
    [ "$k" != "$last" ] || break
  done <"$file"
}

memory() {
  s="version $memv$nl"; case $memd in '') section memory "$s"; return ;; esac
  s="${s}at $memd$nl"
  case $memv in
    1)
      line "$memd" memory.limit_in_bytes; line "$memd" memory.usage_in_bytes
      pick "$memd/memory.stat" total_inactive_file "hierarchical_memory_limit total_inactive_file"
      pick "$memd/memory.oom_control" - oom_kill ;;
    2)
      line "$memd" memory.max; line "$memd" memory.current
      pick "$memd/memory.stat" inactive_file inactive_file
      pick "$memd/memory.events" - oom_kill ;;
  esac
  section memory "$s"
}

cpu() {
  s="version $cpuv$nl"; case $cpud in '') section cpu "$s"; return ;; esac
  s="${s}at $cpud$nl"
  case $cpuv in
    1) line "$cpud" cpu.cfs_quota_us; line "$cpud" cpu.cfs_period_us ;;
    2) line "$cpud" cpu.max ;;
  esac
  pick "$cpud/cpu.stat" nr_throttled nr_throttled
  section cpu "$s"
}

# quick ENTRIES...: the sections of a plain tick.
quick() {
  v=; read -r v </proc/loadavg; section load "$v"
  s=; pick /proc/meminfo MemAvailable: "MemTotal: MemAvailable:"; section meminfo "$s"
  memory
  cpu
  s=
  while [ $# -gt 0 ]; do
    case $1 in p)
      x=; read -r x <"/proc/$3/stat" || x=
      s="$s$3 ${x:--}$nl" ;;
    esac
    shift 5
  done
  section pids "$s"
}

# identity: what does not change while this shell lives; sent once.
identity() {
  s="shell $$$nl"
  line /proc/sys/kernel hostname; line /proc/sys/kernel osrelease; line /proc/sys/kernel/random boot_id
  line /proc/1 stat
  x=$(grep '^btime' /proc/stat) && s="$s$x$nl"
  s="${s}page $(getconf PAGESIZE)${nl}tick $(getconf CLK_TCK)$nl"
  while read -r k v; do
    case $k in Cpus_allowed_list:) s="${s}cpus $v$nl"; break ;; esac
  done </proc/self/status
  [ -z "$SLURM_JOB_ID" ] || s="${s}slurm $SLURM_JOB_ID $SLURM_JOB_NAME$nl"
  cgroups=$(cat /proc/self/cgroup)
  # How the tools of this box differ.
  applet=; case $(df --help 2>&1) in *BusyBox*) applet=1 ;; esac
  first=cat; head -q -c 1 /dev/null && first='head -q -c 600'
  # BusyBox ls writes question marks for letters that are not ASCII.
  links_by='stat -c %A:%N'; links_as=links; if ls -db / >/dev/null; then links_by='ls -ldb'; links_as=linksb; fi
}

# slow: what changes seldom; sent with the slow parts.
slow() {
  # The layers of a container's root make its line long, and say nothing to us.
  mounts=$(sed -e 's/,\(lower\|upper\|work\)dir=[^, ]*//g' /proc/mounts)
  [ ${#mounts} -le 262144 ] || mounts=$(printf '%s' "$mounts" | head -c 262144)
  find_cgroup
  section mounts "$mounts"
  set +f; set -- /run/screen/S-"$user"/* /var/run/screen/S-"$user"/* "$HOME"/.screen/*; set -f
  s=; for d; do [ ! -e "$d" ] || s="$s${d##*/}$nl"; done
  section screens "$s"
}

# What each child does. It gets its key, its own name, and then its arguments.

disk() {
  if [ -n "$applet" ]; then
    # BusyBox df looks at every mount until it finds the right one, and hangs on the first that hangs.
    say "$1.s" stat -f -c '%S %b %f %a %c %d' -- "$3"
  else
    say "$1.b" df -Pk -- "$3"
    say "$1.i" df -Pi -- "$3"
  fi
}

stat_log() { stat -L -c '%i %s %Y' -- "$1"; }
stat_one() { stat -L -c '%Y %s %i %F' -- "$1"; }
stat_each() { xargs -0 stat -L -c '%Y %s %i %F/%n' --; }

# tmux makes its folder when it is only asked what there is: without a socket it is not started.
sessions() {
  x=${TMUX_TMPDIR:-/tmp}/tmux-$uid/default
  if ! command -v tmux >/dev/null; then put tmux 127 ''
  elif [ ! -S "$x" ]; then put tmux 1 "no server running on $x"
  else say tmux tmux -u list-sessions -F "$session_format"; fi
}

jobs_of_slurm() { say slurm squeue -h -u "$user" -o '%i|%T|%j'; }

smi() { ${limiter:+$limiter -s KILL 60} nvidia-smi "$@"; }

carded() { command -v nvidia-smi || command -v rocm-smi || command -v amd-smi; } >/dev/null

gpus() {
  if command -v nvidia-smi >/dev/null; then
    case $asked in '') set -- "$fields_event" "$fields_throttle" "$fields_plain" ;; *) set -- "$asked" ;; esac
    for q; do
      take smi "--query-gpu=$q" --format=csv,noheader,nounits
      case $r,$o in 2,* | *'not a valid field'*) ;; *) break ;; esac
    done
    put gpu.cards "$r" "$q$nl$o"
    [ "$r" != 0 ] || big gpu.apps smi "--query-compute-apps=$fields_app" --format=csv,noheader,nounits
  else
    set +f; set -- /dev/nvidia[0-9]* /dev/nvidiactl /proc/driver/nvidia/version /dev/dxg; set -f
    o=; for d; do [ ! -e "$d" ] || o="$o$d$nl"; done
    put gpu.none 127 "$o"
  fi
  if command -v rocm-smi >/dev/null; then big gpu.rocm ${limiter:+$limiter -s KILL 60} rocm-smi $args_rocm
  elif command -v amd-smi >/dev/null; then big gpu.amd ${limiter:+$limiter -s KILL 60} amd-smi $args_amd
  elif [ -e /dev/kfd ]; then put gpu.kfd 127 /dev/kfd; fi
}

kernel_log() {
  from=dmesg; o=$(dmesg 2>&1); r=$?
  if [ $r != 0 ] && command -v journalctl >/dev/null; then
    x=$(journalctl -k -b -n 5000 --no-pager -o short 2>&1) && { o=$x; r=0; from='journalctl -k -b'; }
  fi
  [ $r != 0 ] || o=$(printf '%s\n' "$o" | grep -E 'Xid|fallen off the bus|NVRM|amdgpu' | tail -n 80)
  put xid "$r" "$from$nl$(printf '%s' "$o" | head -c 16384)"
}

# One line per process worth a look: pid ppid pgrp tty state ticks start pages ancestors comm
heaviest='
{
  if (!match($0, /.*\)/)) next
  split(substr($0, RLENGTH + 2), f, " "); id = $1 + 0
  if (id == 2 || f[2] == 2) next
  parent[id] = f[2]; size[id] = f[22] + 0; time[id] = f[12] + f[13]
  name = substr($0, index($0, "(") + 1, RLENGTH - index($0, "(") - 1)
  rest[id] = f[2] " " f[3] " " f[5] " " f[1] " " time[id] " " f[20] " " size[id]; comm[id] = name
  if (index(want, " " id " ")) take[id] = 1
  else if (wide && name ~ trainers && ++found <= 60) take[id] = 1
}
function most(of, count,   i, id, best) {
  for (i = 0; i < count; i++) {
    best = ""
    for (id in of) if (!(id in seen) && (best == "" || of[id] > of[best])) best = id
    if (best == "") return
    seen[best] = 1; take[best] = 1
  }
}
END {
  most(size, 20); most(time, 8)
  for (id in take) {
    up = ""
    for (p = parent[id]; p > 1 && (p in parent) && length(up) < 200; p = parent[p]) up = up "," p
    print id, rest[id], (up == "" ? "-" : substr(up, 2)), comm[id]
  }
}'

processes() {
  command -v awk >/dev/null || { put procs 127 awk; return; }
  set +f; set -- /proc/[0-9]*; set -f
  list=; for d; do if [ "$uid" = 0 ] || [ -O "$d" ]; then list="$list $d/stat"; fi; done
  pids="$want$$ "; wide=
  case $f in *c*)
    wide=1
    if command -v nvidia-smi >/dev/null; then
      big apps smi "--query-compute-apps=$fields_app" --format=csv,noheader,nounits
      IFS=$nl; for x in $o; do x=${x%%,*}; case $x in '' | *[!0-9]*) ;; *) pids="$pids$x " ;; esac; done; IFS=$ifs
    fi ;;
  esac
  take awk_stat
  put procs "$r" "$o"
  set --; IFS=$nl
  for x in $o; do x=${x%% *}; set -- "$@" "$x"; done
  IFS=$ifs
  many=; links=
  for d; do many="$many /proc/sys/kernel/random/boot_id /proc/$d/cmdline"; links="$links /proc/$d/cwd"; done
  put cmdlines 0 "$($first $many | tr '\0\n' '\037\036' | head -c 131072)"
  case $wide in 1) set +f; for d; do open_files "$d"; done; set -f ;; esac
  big $links_as $links_by $links
  case $wide in 1) [ ! -S "${TMUX_TMPDIR:-/tmp}/tmux-$uid/default" ] || big panes tmux -u list-panes -a -F "$pane_format" ;; esac
}

awk_stat() { cat $list 2>/dev/null | awk -v want="$pids" -v wide="$wide" -v trainers="$trainers" "$heaviest"; }

# open_files PID: add its standard streams and at most 48 more files or devices to $links.
open_files() {
  links="$links /proc/$1/fd/1 /proc/$1/fd/2 /proc/$1/fd/0"; n=0
  for x in /proc/"$1"/fd/*; do
    case $x in */fd/[012]) continue ;; esac
    if [ -f "$x" ] || [ -c "$x" ]; then
      links="$links $x"; n=$((n + 1)); [ $n -lt 48 ] || break
    fi
  done
}

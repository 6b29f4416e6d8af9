# The probe: one long-lived shell on the box. A request on stdin, one answer on stdout, until stdin ends.
# It only reads; it writes no file, not even a temporary one (so no here-documents: some shells store them).
# Whatever comes from outside is data: it is never evaluated, and stands in quotes or under `set -f`.
#
# Requests:  c                  forget all entries
#            e KIND KEY         a new entry, followed by three texts
#            t NUMBER FLAGS     answer now
# A text is its number of lines, then those lines; so any bytes but NUL may stand in it.
# Answer:    @rgt NONCE NUMBER BYTES, the sections (# NAME BYTES, then that many bytes), @end NONCE NUMBER
set -f
exec 2>/dev/null
N=$1
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/cuda/bin:/usr/local/nvidia/bin
PATH=$PATH:/opt/rocm/bin:/usr/lib/wsl/lib; export PATH
unset BLOCKSIZE BLOCK_SIZE DF_BLOCK_SIZE POSIXLY_CORRECT GREP_OPTIONS
nl='
'
ifs=' 	'$nl
IFS=$ifs
strays=            # "PID START KEY" of the children that did not come back
proven=' '         # keys that answered beside them
asked=             # the nvidia-smi fields that this driver knows
want=' '           # pids that are watched
acc=; slurm_at=-60
basic=index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw
more=$basic,uuid,pci.bus_id,power.limit,clocks.sm,mig.mode.current,ecc.errors.uncorrected.volatile.total
fields_event=$more,clocks_event_reasons.active
fields_throttle=$more,clocks_throttle_reasons.active
fields_plain=$basic,uuid,power.limit,clocks.sm
fields_app=pid,process_name,used_gpu_memory,gpu_uuid
args_rocm='--showproductname --showuniqueid --showuse --showmeminfo vram --showtemp --showpower --json'
args_amd='metric --json'
session_format='#{session_created} #{session_attached} #{session_windows} #{session_name}'
pane_format='#{pane_pid} #{pane_tty} #{session_name}'
trainers='python|torchrun|deepspeed|accelerate|lightning|train|pt_main|ray::|julia|ipython|^tee$'

section() { out="$out# $1 ${#2}$nl$2$nl"; }

answer() {
  [ ${#out} -le 1000000 ] || { out=; section failed 'the answer is larger than a megabyte'; }
  printf '%s' "@rgt $N $1 ${#out}$nl$out@end $N $1$nl"
}

# text: T, the next text of stdin.
text() {
  T=; between=
  read -r lines || exit 0
  while [ "$lines" -gt 0 ]; do
    IFS= read -r x || exit 0
    T=$T$between$x; between=$nl; lines=$((lines - 1))
  done
}

# newest FILES...: their number, then the newest of them: mtime size inode kind/name.
newest() {
  count=$#
  { each "$@" | stat_each; odd "$@"; } | sort -rn | head -n 24
  printf '%s\n' "$count"
}

each() { for x; do case $x in *"$nl"*) ;; *) printf '%s\0' "$x" ;; esac; done; }

# odd FILES...: those with a newline in their name, which is shown as \n. At most four.
odd() {
  n=0
  for x; do
    case $x in *"$nl"*) ;; *) continue ;; esac
    n=$((n + 1)); [ $n -le 4 ] || return
    v=$(stat_one "$x"); name=
    while :; do
      case $x in *"$nl"*) name="$name${x%%"$nl"*}\\n"; x=${x#*"$nl"} ;; *) break ;; esac
    done
    printf '%s\n' "$v/$name$x"
  done
}

# fit: stdin without the lines that no longer fit one write; a folder's size is what it takes up.
fit() {
  room=3000; folders=0
  while IFS= read -r x; do
    case $x in
      *' directory/'* | *' Directory/'*)
        folders=$((folders + 1))
        if [ $folders -le 4 ]; then
          v=$(du -sk -- "${x#*irectory/}"); v=${v%%[!0-9]*}
          set -f; IFS=' '; set -- ${x%%/*}; IFS=
          x="$1 ${v:+$((v * 1024))} $3 directory/${x#*/}"
        fi ;;
    esac
    case $x in *[!0-9]*) [ ${#x} -lt $room ] || continue ;; esac
    printf '%s\n' "$x"; room=$((room - ${#x} - 1))
  done
}

# end_of NAME LOG: what rgt's wrapper wrote at the end of the newest attempt; the run's folder holds its log.
end_of() {
  d=$2; n=3
  while [ $n -gt 0 ]; do
    case $d in */*) d=${d%/*} ;; *) d=. ;; esac
    if [ -d "$d/.rgt/attempts" ]; then break; fi
    case $d in '' | .) return ;; esac
    n=$((n - 1))
  done
  [ $n -gt 0 ] || return
  n=1; while [ $n -lt 1000 ] && [ -d "$d/.rgt/attempts/$((n + 1))" ]; do n=$((n + 1)); done
  d=$d/.rgt/attempts/$n/end; o=
  if [ -f "$d" ] && [ -r "$d" ]; then
    while IFS= read -r v && [ $((${#o} + ${#v})) -le 1000 ]; do o=$o$v$nl; done <"$d"
  fi
  put "$1" 0 "$o"
}

# files KEY NAME LOG PATTERN BASE: a run's log and its newest checkpoints. With a BASE, PATTERN is find's.
files() {
  [ -z "$3" ] || { say "$1.l" stat_log "$3"; end_of "$1.e" "$3"; }
  case $4,$5 in
    ,*) return ;;
    *,)
      set +f; IFS=; set -- "$1" "$2" "$3" $4; IFS=$ifs; set -f
      key=$1; shift 3
      [ $# -ne 1 ] || [ -e "$1" ] || [ -L "$1" ] || shift
      v=$(newest "$@" | fit) ;;
    *)
      key=$1
      v=$(searched "$5" -xdev -maxdepth 12 -type f -path "$4" | fit) ;;
  esac
  put "$key.c" 0 "$v"
}

# searched ARGS OF FIND...: like newest, for what find finds. The last line is the number of all.
searched() {
  find "$@" ! -name "*$nl*" -print0 | stat_each | sort -rn | sed -n -e '1,24p' -e '$='
}

# nearby KEY NAME PID: checkpoint-like files below a process's working directory.
nearby() {
  if [ "/proc/$3/cwd/" -ef / ]; then put "$1" / ''; return; fi
  v=$(searched "/proc/$3/cwd/" -xdev -maxdepth 5 '(' -name '.?*' -o -name node_modules -o -name site-packages \
    -o -name __pycache__ ')' -prune -o -type f '(' -name '*.pt' -o -name '*.pth' -o -name '*.ckpt' \
    -o -name '*.safetensors' -o -name 'pytorch_model*.bin' -o -name '*.h5' -o -name '*.keras' -o -name '*.pkl' \
    -o -name '*.msgpack' -o -name '*.npz' ')' | fit)
  put "$1" 0 "$v"
}

# kids ENTRIES...: start the small children that this tick asks for.
kids() {
  # Without a tool there is nothing to wait for, so no child is started: this shell looks for device files.
  [ -z "$cards" ] || ! may gpu || kid gpu gpus
  case $f in *s*)
    if may tmux; then kid tmux sessions & fi
    if [ -n "$slurm" ] && may slurm; then kid slurm jobs_of_slurm & fi ;;
  esac
  while [ $# -gt 0 ]; do
    case $1,$f in
      m,*m*) if may "$2"; then kid "$2" disk "$3" & fi ;;
      r,*r*) if may "$2"; then kid "$2" files "$3" "$4" "$5" & fi ;;
      k,*k*) if may "$2"; then kid "$2" nearby "$3" & fi ;;
    esac
    shift 5
  done
}

tick() {
  t=$1; f=$2; shift 2
  out=
  now; u0=$x
  case $f in *h*) slow; section date "$(date +%s.%N)" ;; esac
  quick "$@"
  todo=; slurm=
  cards=; case $f in *g*) if carded; then todo="gpu:gpus "; else cards=none; fi ;; esac
  case $f in *x*) todo="${todo}xid:kernel_log " ;; esac
  case $f in *[pc]*) todo="${todo}procs:processes " ;; esac
  case $f in *s*) now; [ $((NOW - slurm_at)) -lt 60 ] || ! command -v squeue >/dev/null || { slurm=1; slurm_at=$NOW; } ;; esac
  case $f in *[mrskgxpc]*) batch "$@"; section batch "$acc" ;; esac
  case $asked,$acc in ,*"a gpu.cards 0 "*) x=${acc#*"a gpu.cards 0 "}; x=${x#*"$nl"}; asked=${x%%"$nl"*} ;; esac
  now; section up "$u0 $x"
  answer "$t"
}

trap reap EXIT
trap 'exit 1' HUP INT TERM PIPE
cd || cd /
limiter=; for x in timeout 'timeout --foreground'; do $x 5 true && limiter=$x; done
uid=$(id -u); user=$(id -un)
os=$(uname -s)
case $os in Darwin) darwin ;; esac
out=
section os "$os"
section who "$uid $user$nl$HOME"
identity
section identity "$s"
slow
section date "$(date +%s.%N)"
answer 0

set --
while read -r verb kind key; do
  case $verb in
    c) set --; want=' ' ;;
    e)
      text; a=$T; text; b=$T; text
      set -- "$@" "$kind" "$key" "$a" "$b" "$T"
      case $kind in p) want="$want$a " ;; esac ;;
    t) tick "$kind" "$key" "$@" ;;
  esac
done

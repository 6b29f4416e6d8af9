# What a Mac says; called only there, and puts its own functions over those for Linux. It has no /proc and no
# cgroups, so every look starts a program. No card of NVIDIA's or AMD's can be used for training on it.
darwin() {
  myself() { P=$(exec sh -c 'echo $PPID'); S=0; }
  now() { x=$(date +%s); NOW=$x; }
  still() { kill -0 "$1"; }
  family() {
    IFS=$nl
    for x in $(ps -A -o pid= -o ppid=); do
      IFS=$ifs; set -- $x
      case $all in *" $1 "*) ;; *" $2 "*) all="$all$1 " ;; esac
    done
    IFS=$ifs
  }
  identity() {
    s=$(sysctl kern.hostname kern.osrelease kern.bootsessionuuid kern.boottime hw.memsize hw.pagesize hw.ncpu)
  }
  slow() {
    mounts=$(mount)
    section mounts "$mounts"
  }
  quick() {
    section load "$(sysctl vm.loadavg)"
    section meminfo "$(vm_stat)"
    s=
    while [ $# -gt 0 ]; do
      case $1 in p) s="$s$3 $(listed -p "$3" || echo -)$nl" ;; esac
      shift 5
    done
    section pids "$s"
  }
  listed() {
    # BSD ps takes all that follows a "=" as the header's text, commas too.
    TZ=UTC0 ps "$@" -o pid= -o ppid= -o stat= -o rss= -o time= -o etime= -o lstart= -o command=
  }
  disk() {
    say "$1.b" df -Pk "$3"
    say "$1.i" df -ik "$3"
  }
  stat_log() { stat -L -f '%i %z %m' -- "$1"; }
  stat_one() { stat -L -f '%m %z %i %HT' -- "$1"; }
  stat_each() { xargs -0 stat -L -f '%m %z %i %HT/%N' --; }
  gpus() { put gpu.mac 127 ''; }
  kernel_log() { put xid.mac 127 ''; }
  processes() { put ps 0 "$(listed -A | sort -rn -k4,4 | head -n 30 | cut -c 1-600)"; }
}

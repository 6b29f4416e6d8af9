"""The looks of triage: read-only, one command each, bounded in time and output.

Every script runs under busybox and dash, starts nothing that stays, writes nothing, and says in words where a
tool is not there or a place may not be read: nothing printed must never look like nothing found.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui.box.remote_shell import copyable
from tui.box.transport import Completed, LinkLost, Script, SessionsExhausted, Transport
from tui.model.look import LOOK, Look, LookAnswer
from tui.model.text import SafeText, log_lines, plain, safe

LINES = 400
"""Lines of an answer that are kept."""
OUTPUT = 256 << 10


@dataclass(frozen=True, slots=True)
class Subjects:
    """What the looks of one run may be about. None: there is no such thing."""

    mount: str | None = None
    pid: int | None = None
    checkpoints: str | None = None

    def of(self, look: Look) -> str | None:
        """The subject of a look; empty where it needs none, None where what it needs is not known."""
        value = {"": "", "mount": self.mount, "pid": self.pid, "checkpoints": self.checkpoints}[look.subject]
        return None if value is None else str(value)


# A walk through a large tree is ended while there is time left to sort and print what it found.
_BOUNDED = r"""
nicely=; command -v nice >/dev/null && nicely='nice -n 19'
bounded() { if command -v timeout >/dev/null; then timeout 40 $nicely "$@"; else $nicely "$@"; fi; }
partly='(some of it could not be read, or there was no time: these are lower bounds)'
"""

_TEXTS: dict[str, str] = {
    "dmesg": r"""
out=$(dmesg 2>&1) && { printf '%s\n' "$out" | tail -n 200; exit 0; }
printf '%s\n' "$out" | tail -n 1
command -v journalctl >/dev/null && journalctl -k -n 200 --no-pager -q 2>&1 | tail -n 200
exit 1
""",
    "gpu_holders": r"""
have= unread=0 found=0
for d in /dev/nvidia[0-9]* /dev/dri/renderD* /dev/kfd; do [ -e "$d" ] && have="$have $d"; done
echo "device files of cards:${have:- none here}"
for p in /proc/[0-9]*; do
  out=$(ls -l "$p/fd" 2>/dev/null) || { [ -e "$p" ] && unread=$((unread + 1)); continue; }
  held=$(printf '%s\n' "$out" |
    sed -n -e 's:.* -> \(/dev/nvidia[0-9].*\)$:\1:p' -e 's:.* -> \(/dev/kfd\)$:\1:p' \
      -e 's:.* -> \(/dev/dri/renderD.*\)$:\1:p' | sort -u | tr '\n' ' ')
  [ -n "$held" ] || continue
  found=$((found + 1))
  echo "pid ${p#/proc/} holds $held $(tr '\0' ' ' <"$p/cmdline" 2>/dev/null | cut -c 1-160)"
done
echo "$found processes hold a card; $unread could not be read"
command -v nvidia-smi >/dev/null || { echo 'nvidia-smi is not on this box'; exit 0; }
nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv 2>&1 | head -n 40
""",
    "gpu_detail": r"""
command -v nvidia-smi >/dev/null || { echo 'nvidia-smi is not on this box'; exit 127; }
nvidia-smi -q -d ECC,PERFORMANCE,TEMPERATURE,POWER,CLOCK,ROW_REMAPPER,PAGE_RETIREMENT 2>&1 | head -n 380
""",
    "driver": r"""
head -n 3 /proc/driver/nvidia/version 2>&1
ls -l /usr/lib/*/libcuda.so* /usr/lib64/libcuda.so* /usr/local/cuda 2>/dev/null | head -n 12
command -v nvidia-smi >/dev/null || { echo 'nvidia-smi is not on this box'; exit 0; }
nvidia-smi 2>&1 | head -n 4
""",
    "disk_bytes": _BOUNDED
    + r"""
cd -- "$1" || exit 2
{ bounded du -xk . 2>/dev/null || echo "0	$partly"; } |
  sort -rn | head -n 40 | awk -F '\t' '{ printf "%10.1f MiB  %s\n", $1 / 1024, $2 }'
""",
    "disk_files": _BOUNDED
    + r"""
cd -- "$1" || exit 2
{ bounded find . -xdev ! -type d -print 2>/dev/null || echo "$partly/x"; } |
  awk '{ sub(/\/[^\/]*$/, ""); n[$0]++ } END { for (d in n) printf "%9d  %s\n", n[d], d }' |
  sort -rn | head -n 40
""",
    "mounts": r"""
df -Pk 2>&1 | head -n 60
echo; df -Pi 2>&1 | head -n 60
echo; grep -v -E ' (proc|sysfs|cgroup2?|devpts|mqueue|tracefs|debugfs|securityfs|bpf) ' /proc/mounts |
  cut -c 1-240 | head -n 60
command -v quota >/dev/null && { echo; quota -s 2>&1 | head -n 20; }
exit 0
""",
    "deleted_files": r"""
unread=0 found=0
for p in /proc/[0-9]*; do
  out=$(ls -l "$p/fd" 2>/dev/null) || { [ -e "$p" ] && unread=$((unread + 1)); continue; }
  for f in $(printf '%s\n' "$out" | sed -n 's:.* \([0-9]*\) -> /.* (deleted)$:\1:p' | head -n 20); do
    name=$(readlink "$p/fd/$f") || continue
    case $name in /dev/*|/memfd:*|/SYSV*|/proc/*) continue;; esac
    size=$(stat -L -c %s "$p/fd/$f" 2>/dev/null) || size='?'
    found=$((found + 1))
    echo "$size bytes  pid ${p#/proc/}  $name"
  done
done | sort -rn | head -n 60
for p in /proc/[0-9]*; do ls "$p/fd" >/dev/null 2>&1 || [ ! -e "$p" ] || unread=$((unread + 1)); done
echo "$unread processes could not be read"
""",
    "shm": r"""
df -Pk /dev/shm 2>&1
ls -la /dev/shm 2>&1 | sort -k 5 -rn | head -n 80
""",
    "memory": r"""
two=$(sed -n 's/^0:://p' /proc/self/cgroup)
for f in memory.max memory.current memory.peak memory.events memory.swap.current; do
  for at in "/sys/fs/cgroup$two" /sys/fs/cgroup; do
    [ -r "$at/$f" ] && { echo "$at/$f: $(tr '\n' ' ' <"$at/$f")"; break; }
  done
done
for f in limit_in_bytes usage_in_bytes max_usage_in_bytes failcnt oom_control; do
  at=/sys/fs/cgroup/memory/memory.$f
  [ -r "$at" ] && echo "$at: $(tr '\n' ' ' <"$at")"
done
grep -E '^(MemTotal|MemAvailable|SwapFree|Shmem):' /proc/meminfo
for p in /proc/[0-9]*; do
  rss=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "$p/status" 2>/dev/null)
  [ -n "$rss" ] && echo "$rss kB  pid ${p#/proc/}  $(tr '\0' ' ' <"$p/cmdline" 2>/dev/null | cut -c 1-120)"
done | sort -rn | head -n 25
""",
    "processes": r"""
for p in /proc/[0-9]*; do
  c=$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null | cut -c 1-120)
  [ -n "$c" ] || continue
  s=$(sed -n 's/^State:[^A-Za-z]*//p' "$p/status" 2>/dev/null)
  echo "pid ${p#/proc/}  $s  waits in $(cat "$p/wchan" 2>/dev/null || echo '?')  $c"
done | head -n 200
""",
    "stack": r"""
[ -e "/proc/$1" ] || { echo "pid $1 is not there"; exit 1; }
sed -n -e '/^State/p' -e '/^Threads/p' -e '/^VmRSS/p' -e '/^SigQ/p' "/proc/$1/status"
echo "waits in $(cat "/proc/$1/wchan" 2>/dev/null || echo 'a place that may not be read')"
cat "/proc/$1/stack" 2>/dev/null || echo 'the kernel stack may not be read'
dump=$(command -v py-spy)
for d in "$HOME/.local/bin/py-spy" /opt/conda/bin/py-spy; do [ -x "$d" ] && dump=${dump:-$d}; done
[ -n "$dump" ] || { echo 'py-spy is not on this box, so there is no Python stack'; exit 0; }
if command -v timeout >/dev/null; then timeout 15 "$dump" dump --nonblocking --pid "$1" 2>&1; else
  "$dump" dump --nonblocking --pid "$1" 2>&1; fi | head -n 200
""",
    "limits": r"""
grep -E 'open files|processes|locked memory|Limit' "/proc/$1/limits" 2>&1
n=$(ls "/proc/$1/fd" 2>/dev/null | wc -l)
[ "$n" -gt 0 ] && echo "open now: $n" || echo 'open files of this process could not be read'
sed -n '/^Threads/p' "/proc/$1/status" 2>&1
two=$(sed -n 's/^0:://p' "/proc/$1/cgroup" 2>/dev/null)
for f in pids.max pids.current; do
  for at in "/sys/fs/cgroup$two" /sys/fs/cgroup /sys/fs/cgroup/pids; do
    [ -r "$at/$f" ] && { echo "$at/$f: $(cat "$at/$f")"; break; }
  done
done
echo "kernel: threads-max $(cat /proc/sys/kernel/threads-max), file-nr $(tr '\t' ' ' </proc/sys/fs/file-nr)"
""",
    "checkpoints": r"""
d=${1%/*}
[ "$d" = "$1" ] && d=.
case $d in *[*?[]*) d=${d%%[*?[]*}; d=${d%/*};; esac
ls -lat -- "${d:-/}" 2>&1 | head -n 40
""",
    "ports": r"""
if command -v ss >/dev/null; then ss -ltnp 2>&1 | head -n 80
elif command -v netstat >/dev/null; then netstat -ltnp 2>&1 | head -n 80
else echo 'neither ss nor netstat is on this box; raw table:'; head -n 60 /proc/net/tcp; fi
""",
    "network": r"""
if command -v ip >/dev/null; then ip route 2>&1 | head -n 20; else head -n 20 /proc/net/route; fi
grep -E '^(nameserver|search)' /etc/resolv.conf 2>&1
for v in http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY HF_ENDPOINT HF_HUB_OFFLINE; do
  eval "x=\${$v-}"
  [ -n "$x" ] && echo "$v=$(printf %s "$x" | sed 's#//[^/@]*@#//***@#')"
done
for h in huggingface.co pypi.org; do
  command -v getent >/dev/null && { getent hosts "$h" | head -n 1 || echo "$h has no address here"; }
done
exit 0
""",
    "scheduler": r"""
command -v squeue >/dev/null || { echo 'no Slurm command on this box'; exit 127; }
squeue -u "$(id -un)" -o '%i %T %r %M %l %D %R' 2>&1 | head -n 60
command -v sacct >/dev/null || exit 0
sacct -X -S now-2days -o jobid,state%20,exitcode,elapsed,nodelist%30 2>&1 | tail -n 40
exit 0
""",
}


def script_of(look: Look, subject: str) -> Script:
    """The command of a look. Where it needs a subject, that is its one argument."""
    return Script(_TEXTS[look.id].strip() + "\n", (subject,) if look.subject else (), look.title)


async def take(transport: Transport, look_id: str, subjects: Subjects, *, at: float, box: str) -> LookAnswer:
    """Run one look. What hinders it is the answer's note; a lost link is an exception as everywhere.

    Args:
        at: now, seconds since the epoch.

    Raises:
        LinkLost: the connection broke.
        KeyError: there is no look of this id.
    """
    look = LOOK[look_id]
    subject = subjects.of(look)
    if subject is None:
        why = {"pid": "no process is known for this run", "mount": "no mount is known"}
        note = safe(why.get(look.subject, "this run names no checkpoints"))
        return LookAnswer(box, look.id, at, SafeText(""), None, (), note)
    script = script_of(look, subject)
    command = safe(copyable(script))
    told = safe(subject)
    try:
        done = await transport.run(script, timeout=look.deadline_s, limit=OUTPUT)
    except LinkLost:
        raise
    except TimeoutError:
        note = safe(f"no answer within {look.deadline_s:.0f} s; it was ended")
        return LookAnswer(box, look.id, at, command, None, (), note, told, look.deadline_s)
    except SessionsExhausted as full:
        return LookAnswer(box, look.id, at, command, None, (), full.line, told)
    return LookAnswer(box, look.id, at, command, done.exit, _lines(done), _note(done), told, done.took_s)


def _lines(done: Completed) -> tuple[SafeText, ...]:
    found = [plain(line) for line in log_lines(done.stdout)]
    return tuple(found[:LINES])


def _note(done: Completed) -> SafeText:
    if done.truncated:
        return SafeText("it printed more than is kept; this is the beginning")
    complaint = plain(log_lines(done.stderr)[0]) if done.stderr.strip() else SafeText("")
    if done.exit and not done.stdout.strip():
        return complaint or safe(f"it ended with exit status {done.exit} and printed nothing")
    return complaint

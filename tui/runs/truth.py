"""What is true of a run on its box, from what its wrapper wrote and what the process table says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tui.box.kubectl import PodBox
from tui.box.transport import Script, Transport
from tui.model.text import SafeText, safe
from tui.runs.scheduler import over, waits

State = Literal["absent", "placed", "pending", "running", "finished", "failed", "stopped", "lost", "unknown"]
"""``absent``: no such folder. ``placed``: laid down, never started. ``pending``: its job waits for nodes.
``stopped``: ended by a signal from outside before it was done. ``lost``: neither alive nor ended by itself.
``unknown``: on another host."""

# $1 the run's folder, $2 how many bytes of the log's end. Each line is a topic and a value.
_TRUTH = r"""
LC_ALL=C; export LC_ALL
cd -- "$1" 2>/dev/null || { echo absent; exit 0; }
r=.rgt
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null) ||
  boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null) || boot='?'
echo "now $(date +%s)"
echo "here $(uname -n) $boot"
[ -r $r/plan/id ] && sed 's/^/plan /' $r/plan/id
if [ -r $r/job ] && IFS= read -r job <$r/job && [ -n "$job" ]; then
  echo "job $job"
  if ! command -v squeue >/dev/null 2>&1; then :
  elif t=$(squeue -h -t all -j "$job" -o '%T|%r|%N' 2>&1); then
    printf '%s\n' "$t" | head -n 1 | sed 's/^/slurm /'
  else printf '%s\n' "$t" | tail -n 1 | sed 's/^/noslurm /'; fi
fi
n=1
while [ -d "$r/attempts/$((n + 1))" ]; do n=$((n + 1)); done
a=$r/attempts/$n
if [ -d "$a" ]; then
  echo "attempt $n"
  # Processes come first: a wrapper writes its end and goes, and one that is gone has written it.
  for f in holder child; do
    [ -r "$a/$f" ] && sed "s/^/$f /" "$a/$f"
    pid=$(cut -d ' ' -f 1 "$a/$f" 2>/dev/null)
    case $pid in '' | *[!0-9]*) continue ;; esac
    if s=$(cat "/proc/$pid/stat" 2>/dev/null); then set -- ${s##*) }; echo "proc $f ${20} $1"; continue; fi
    t=$(ps -o lstart= -p "$pid" 2>/dev/null | tr -s " " _)
    [ -z "$t" ] || echo "proc $f $t R"
  done
  for f in start end; do [ -r "$a/$f" ] && sed "s/^/$f /" "$a/$f"; done
  [ -r "$a/gates" ] && tail -n 1 "$a/gates" | sed 's/^/gate /'
  [ -r $r/heartbeat ] && sed 's/^/heartbeat /' $r/heartbeat
  for f in $r/done/*; do [ -e "$f" ] && echo "done ${f##*/}"; done
fi
exit 0
"""


@dataclass(frozen=True, slots=True)
class Truth:
    """One look at a run's folder. Times are the box's own, in seconds since the epoch.

    Attributes:
        attempt: number of the newest attempt, 0: none yet.
        alive: whether the wrapper and the job's first process are the same processes as recorded.
        beat_s: how old the heartbeat is, by the box's own clock.
        start, end: what the wrapper recorded.
        done: stages whose marker landed.
        job: id of its newest job, where a scheduler runs it.
    """

    state: State
    why: SafeText
    attempt: int = 0
    alive: bool | None = None
    now: float | None = None
    beat_s: float | None = None
    plan: str | None = None
    start: Mapping[str, str] = field(default_factory=dict)
    end: Mapping[str, str] = field(default_factory=dict)
    child: tuple[int, str, str] | None = None
    done: tuple[str, ...] = ()
    gate: SafeText | None = None
    job: str | None = None


async def look(transport: Transport, run: str) -> Truth:
    """Ask the box. Raises LinkLost, SessionsExhausted, TimeoutError: then nothing is known."""
    told = await transport.run(Script(_TRUTH, (run, "0"), why="what is true of this run?"), limit=1 << 18)
    text = told.stdout.decode("utf-8", "replace")
    job = next((line[4:] for line in text.split("\n") if line.startswith("job ")), None)
    if job and isinstance(transport, PodBox):
        text += await _of_the_job(transport, job)
    return judge(text)


async def _of_the_job(pod: PodBox, job: str) -> str:
    """How a Job stands: a pod can't tell it of another, so the cluster is asked."""
    word = await pod.standing(job)
    return "" if word is None else f"\nslurm {word}\n" if word else "\nnoslurm Invalid job id\n"


def judge(text: str) -> Truth:
    """Read what `look` was told. Lines nobody knows are left out; a torn answer is *unknown*."""
    lines = [tuple(line.split(" ")) for line in text.split("\n") if line]
    if lines and lines[0] == ("absent",):
        return Truth("absent", safe("There is no such run on the box."))
    said: dict[str, list[tuple[str, ...]]] = {}
    for topic, *values in lines:
        said.setdefault(topic, []).append(tuple(values))
    now = _number(_first(said, "now"))
    if now is None:
        return Truth("unknown", safe("The box gave no answer that can be read."))
    attempt = int(_number(_first(said, "attempt")) or 0)
    plan = _first(said, "plan")
    if not attempt:
        state, why = _by_scheduler(said, "placed", "It was laid down and never started.")
        return Truth(state, safe(why, 300), now=now, plan=plan, job=_first(said, "job"))
    beat = _number(_first(said, "heartbeat"))
    start, end = _pairs(said.get("start", [])), _pairs(said.get("end", []))
    alive = _alive(said)
    state, why = _by_scheduler(said, *_state(said, end, alive))
    return Truth(
        state,
        safe(why, 300),
        attempt=attempt,
        alive=alive,
        now=now,
        beat_s=None if beat is None else max(0.0, now - beat),
        plan=plan,
        start=start,
        end=end,
        child=_child(said),
        done=tuple(values[0] for values in said.get("done", ()) if values),
        gate=safe(" ".join(said["gate"][-1]), 200) if said.get("gate") else None,
        job=_first(said, "job"),
    )


def _by_scheduler(said: Mapping[str, list[tuple[str, ...]]], state: State, why: str) -> tuple[State, str]:
    """What a cluster's scheduler adds. What the run wrote itself counts, but for a job that waits again."""
    job = _first(said, "job")
    if job is None or state == "finished":
        return state, why
    word, reason, node = (*" ".join((said.get("slurm") or [()])[0]).split("|"), "", "", "")[:3]
    refusal = " ".join((said.get("noslurm") or [()])[0])
    forgotten = "Invalid job id" in refusal or ("slurm" in said and not word)
    if word and waits(word):
        return "pending", f"Its job {job} waits ({word}): {reason or 'no reason is told'}."
    if state not in ("placed", "unknown", "lost") or not (word or forgotten):
        return state, why
    if forgotten or over(word):
        how = f"ended as {word}" if word else "is not known to the scheduler any more"
        return "lost", f"Its job {job} {how}, and the run wrote no end."
    return "running", f"Its job {job} is {word} on {node or 'a node'}."


def _state(
    said: Mapping[str, list[tuple[str, ...]]], end: Mapping[str, str], alive: bool | None
) -> tuple[State, str]:
    if end:
        return _ended(end)
    if alive:
        return "running", "Its wrapper is alive."
    if _job_lives(said):
        return "running", "Its wrapper is gone, and its job is still at work: nobody will record its end."
    holder = (said.get("holder") or [()])[0]
    here = (said.get("here") or [()])[0]
    if len(holder) < 4 or len(here) < 2:
        return "unknown", "It was claimed, and who claimed it is not recorded yet."
    if holder[3] != here[0]:
        return "unknown", f"It runs, or ran, on {holder[3]}; this is {here[0]}."
    if holder[2] != here[1]:
        now, beat = _number(_first(said, "now")), _number(_first(said, "heartbeat"))
        if now is not None and beat is not None and now - beat < FRESH_S:
            return "unknown", f"Another boot of {here[0]}, or another host of this name, was at it just now."
        return "lost", "The box was started again since: the run ended with the box, without a word."
    return "lost", "Its wrapper is gone and wrote no end: killed from outside, with no time to say so."


_REASONS: dict[str, tuple[State, str]] = {
    "finished": ("finished", "Every stage is done and its artifact is there."),
    "failed": ("failed", "The job ended with status {status}{signal}."),
    "stopped": ("stopped", "It was told to stop{signal} before it was done."),
    "disk-gate": ("failed", "Too little room was free before stage {stage}; it was not begun."),
    "artifact-missing": (
        "failed",
        "The job ended well, but the artifact of {stage} is not there, or is old.",
    ),
    "no-workdir": ("failed", "The folder of stage {stage} is not there."),
    "hook": ("failed", "The platform's set-up file {stage} ended the shell; nothing was begun."),
    "no-room": ("failed", "Stage {stage} was done, and the full disk took no marker of it."),
}

FRESH_S = 120.0
"""A heartbeat that is younger may be a live host's; the wrapper, which has the same limit, then waits for
another one."""

_FULL_KIB = 256
_FULL_INODES = 8


def _ended(end: Mapping[str, str]) -> tuple[State, str]:
    state, words = _REASONS.get(end.get("reason", ""), ("failed", "It ended for a reason nobody knows."))
    signal = end.get("signal") or ""
    told = words.format(
        status=end.get("status", "?"),
        signal=f" by SIG{signal.removeprefix('SIG')}" if signal else "",
        stage=end.get("stage", "?"),
    )
    return state, told if state == "finished" else f"{told}{_beside(end)}"


def _beside(end: Mapping[str, str]) -> str:
    """What the wrapper saw beside the end, and may be its cause."""
    ooms, kib, inodes = (_number(end.get(name)) for name in ("oom", "kib", "inodes"))
    if ooms:
        return " The kernel killed for want of memory in its cgroup meanwhile."
    if kib is not None and kib < _FULL_KIB:
        return f" The disk was full then: {kib:.0f} KiB free."
    if inodes is not None and inodes < _FULL_INODES:
        return f" The disk had no inodes left then: {inodes:.0f} free."
    return ""


def _alive(said: Mapping[str, list[tuple[str, ...]]]) -> bool | None:
    """Whether the recorded wrapper is the one in the process table. A zombie is not alive."""
    holder = (said.get("holder") or [()])[0]
    here = (said.get("here") or [()])[0]
    if len(holder) < 4 or len(here) < 2 or holder[3] != here[0]:
        return None
    if holder[2] != here[1]:
        return False
    for values in said.get("proc", ()):
        if values[:2] == ("holder", holder[1]):
            return values[2:] != ("Z",)
    return False


def _job_lives(said: Mapping[str, list[tuple[str, ...]]]) -> bool:
    """Whether the job's own process is there: it outlives a wrapper that was killed alone."""
    holder, here = (said.get("holder") or [()])[0], (said.get("here") or [()])[0]
    child = _child(said)
    if child is None or len(holder) < 4 or len(here) < 2 or (holder[3], holder[2]) != (here[0], here[1]):
        return False
    return any(values[:2] == ("child", child[1]) and values[2:] != ("Z",) for values in said.get("proc", ()))


def _child(said: Mapping[str, list[tuple[str, ...]]]) -> tuple[int, str, str] | None:
    for values in said.get("child", ()):
        if len(values) >= 3 and values[0].isascii() and values[0].isdigit():
            return int(values[0]), values[1], values[2]
    return None


def _first(said: Mapping[str, list[tuple[str, ...]]], topic: str) -> str | None:
    values = (said.get(topic) or [()])[0]
    return values[0] if values else None


def _number(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None


def _pairs(lines: list[tuple[str, ...]]) -> dict[str, str]:
    return {name: " ".join(values) for name, *values in lines if name}

"""Runs as jobs of a Slurm cluster: the constraint of a job file as sbatch's words, and a submission that is
made once however often it is asked for.

The scheduler starts the run, and starts it again after preemption; this room only lays it down and asks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources

from tui.box.parsers.slurm import WAITING, long_state
from tui.box.transport import Script, Transport
from tui.model.failure import Failure
from tui.model.job import Job
from tui.model.text import safe
from tui.runs.plan_files import PLAN, RGT

WARNED_S = 120
"""Seconds before its time limit at which a job gets SIGTERM, to save and end by itself."""

# $1 the run's or queue's folder, $2 the batch script below it, $3 the job's name, $4 file of sbatch's words.
# The name is the run's own, so a job that an earlier, unanswered submission made is found by it and not made
# twice. Where the queue can't be told, nothing is submitted: 6. Two at once would both find none: 8; a lock
# older than any submission is of one that was killed.
_SUBMIT = r"""
LC_ALL=C; export LC_ALL
cd -- "$1" || exit 3
[ -r "$2" ] || set -- "$1" "$(ls .rgt/batch-*.sh 2>/dev/null | head -n 1)" "$3" "$4" # an older rgt's
[ -r "$2" ] && [ -r "$4" ] || exit 4
command -v sbatch >/dev/null 2>&1 || { echo 'there is no sbatch here' >&2; exit 5; }
run=$1 batch=$2 name=$3 words=$4
find .rgt/submitting -maxdepth 0 -mmin +5 -exec rmdir {} + 2>/dev/null
mkdir .rgt/submitting 2>/dev/null || { echo 'another submission of it is under way' >&2; exit 8; }
trap 'rmdir .rgt/submitting' EXIT
trap 'exit 143' HUP INT TERM
told=$(squeue -h -u "$(id -un)" -n "$name" -o %F) || exit 6
job=$(printf '%s\n' "$told" | sort -un | head -n 1)
if [ -n "$job" ]; then how=was; else
  how=new
  set --
  while IFS= read -r word || [ -n "$word" ]; do set -- "$@" "$word"; done <"$words"
  job=$(sbatch --parsable --job-name="$name" --chdir="$run" --open-mode=append "$@" "$batch" "$run")
  status=$?
  if [ "$status" -ne 0 ]; then # a silent controller may have taken it all the same
    told=$(squeue -h -u "$(id -un)" -n "$name" -o %F) || exit 6
    job=$(printf '%s\n' "$told" | sort -un | head -n 1)
    [ -n "$job" ] || exit 7
  fi
  job=${job%%;*}
fi
printf '%s\n' "$job" >".rgt/job.part$$" && mv -f ".rgt/job.part$$" .rgt/job
echo "$how $job"
"""


def batch() -> bytes:
    """The batch script's text."""
    return resources.files("tui.runs").joinpath("batch.sh").read_bytes()


def batch_name() -> str:
    return f"{RGT}/batch-{hashlib.sha256(batch()).hexdigest()[:16]}.sh"


WORDS = f"{PLAN}/sbatch"
"""One word of sbatch's a line."""


def words(job: Job, *, tasks: int = 0, at_once: int | None = None) -> tuple[str, ...]:
    """What sbatch is given besides name and folder.

    A job is requeued after preemption only where it says how it goes on: started over, it would write over
    what it has.

    Args:
        tasks: of an array, 0: none.
        at_once: tasks that may run at the same time.
    """
    wanted, table = job.resources, job.slurm
    found = [f"--signal=B:TERM@{WARNED_S}", "--nodes=1", "--ntasks=1"]
    found.append("--requeue" if job.checkpoints or job.resume else "--no-requeue")
    if wanted.gpu.count and not table.gres:
        kind = f":{wanted.gpu.model.lower()}" if wanted.gpu.model else ""
        found.append(f"--gres=gpu{kind}:{wanted.gpu.count}")
    if wanted.cores:
        found.append(f"--cpus-per-task={wanted.cores}")
    if wanted.memory:
        found.append(f"--mem={-(-wanted.memory // (1 << 20))}M")
    if table.time:
        found.append(f"--time={-(-table.time // 60)}")
    told: Mapping[str, str | None] = {
        "partition": table.partition,
        "account": table.account,
        "qos": table.qos,
        "constraint": table.constraint,
        "gres": table.gres,
    }
    found += [f"--{key}={value}" for key, value in told.items() if value]
    if tasks:
        found.append(f"--array=0-{tasks - 1}" + (f"%{at_once}" if at_once else ""))
    out = "%A_%a" if tasks else "%j"
    return (*found, f"--output={RGT}/slurm-{out}.out")


def batch_files(told: tuple[str, ...]) -> dict[str, bytes]:
    """What is laid down besides a plan, for a submission with these words."""
    return {batch_name(): batch(), WORDS: "".join(f"{word}\n" for word in told).encode()}


def job_name(session: str, folder: str) -> str:
    """A job's name, which tells whether it was submitted: runs of one name in two projects are two jobs."""
    return f"{session}-{hashlib.sha256(folder.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


async def submit(
    transport: Transport, folder: str, session: str, words_file: str = WORDS
) -> tuple[str, bool]:
    """Submit a run or a queue; its job's id, and whether it was submitted now.

    Args:
        session: the run's own name.

    Raises:
        Failure: the scheduler refused. LinkLost, TimeoutError: unknown; asking again submits nothing twice.
    """
    arguments = (folder, batch_name(), job_name(session, folder), words_file)
    script = Script(_SUBMIT, arguments, why="submit the run to Slurm")
    done = await transport.run(script, timeout=60)
    how, _, job = done.stdout.decode("ascii", "replace").strip().partition(" ")
    if done.exit != 0 or how not in ("new", "was") or not job.isdecimal():
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise Failure(
            f"Slurm did not take the run: {safe(said, 300) or f'status {done.exit}'}.",
            means="Whether a job of this run waits or runs is not known."
            if done.exit in (6, 8)
            else "Nothing was submitted.",
            do="Set what the site wants in the job file's [slurm] table: partition, account, time, gres.",
            code="not-submitted",
        )
    return job, how == "new"


def waits(word: str) -> bool:
    """Whether a job in this state, as squeue says it, has no nodes and wants some."""
    state, _ = long_state(word)
    return state in WAITING or state in ("CONFIGURING", "PREEMPTED", "POWER_UP_NODE")


def over(word: str) -> bool:
    """Whether a job in this state has ended and will not come back. A word nobody knows is none of these."""
    state, _ = long_state(word)
    return state in _OVER


_OVER = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
)

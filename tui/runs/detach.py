"""Lays a run down on its box and starts it, so that it needs no connection from then on.

Both steps may be asked for again after a lost link: a folder that is there is compared and never written
over, and a run that is alive refuses a second attempt by itself.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tui.box.transport import Completed, Script, Transport
from tui.model.failure import Failure
from tui.model.text import safe
from tui.runs import kube_job
from tui.runs.plan_files import PLAN, wrapper, wrapper_name
from tui.runs.scheduler import submit

How = Literal["tmux", "nohup", "sbatch", "job"]

# $1 parent, $2 the run's folder. Its content comes as a tar and gets its name in one rename, so that of two
# plans laid down at the same time one is there, and whole. A folder with anything else in it is not touched.
_LAY_DOWN = r"""
umask 077
mkdir -p -- "$1" || exit 3
if ! mkdir -- "$2" 2>/dev/null; then
  [ -e "$2/.rgt" ] && exit 9
  [ -z "$(ls -A -- "$2" | grep -v '^\.in[0-9]*$')" ] || exit 9
fi
cd -- "$2" || exit 3
in=.in$$
rm -rf -- "$in" && mkdir -- "$in" || exit 4
if ! (cd -- "$in" && tar -xf - && [ -s .rgt/plan/id ] && touch .rgt/plan/id && sync); then
  rm -rf -- "$in"
  exit 4
fi
if [ ! -d .rgt ] && { mv -T "$in/.rgt" .rgt 2>/dev/null || { [ ! -d .rgt ] && mv "$in/.rgt" .rgt; }; }; then
  rm -rf "$in" # what a run makes is newer than its plan
else
  rm -rf "$in"
  exit 9
fi
"""

# $1 the run's folder: what is there, for comparison.
_READ_BACK = 'cd -- "$1" && cat .rgt/plan/id'

# $1 the run's folder, $2 file below it; stdin becomes the file, whole or not at all.
_ONE_FILE = 'umask 077; mkdir -p -- "$1" && cd -- "$1" && cat >"$2.part$$" && mv -f "$2.part$$" "$2"'

# $1 the run's folder, $2 name of a wrapper, brought on stdin where it is not there, $3 its bytes: a cut link
# ends what comes in as its end would, and half a wrapper must not get the name.
_WRAPPER = r"""
umask 077
cd -- "$1" || exit 3
[ -e "$2" ] && [ "$(wc -c <"$2")" -eq "$3" ] && exit
cat >"$2.part$$" && [ "$(wc -c <"$2.part$$")" -eq "$3" ] && mv -f "$2.part$$" "$2" && exit
rm -f "$2.part$$"
exit 5
"""

# $1 the run's folder, $2 wrapper below it, $3 session name, $4 tmux or nohup. Says what it used.
_START = r"""
cd -- "$1" || exit 3
[ -r "$2" ] || exit 4
how=$4
if [ "$how" = tmux ] && ! command -v tmux >/dev/null 2>&1; then how=nohup; fi
if [ "$how" = tmux ]; then
  tmux new-session -d -s "$3" sh "$2" "$1" || exit 5
else
  if command -v setsid >/dev/null 2>&1; then
    nohup setsid sh "$2" "$1" </dev/null >>.rgt/wrapper.out 2>&1 &
  else
    nohup sh "$2" "$1" </dev/null >>.rgt/wrapper.out 2>&1 &
  fi
fi
echo "$how"
"""


@dataclass(frozen=True, slots=True)
class Started:
    """How it was started; `fell_back` says that there is no tmux on the box. `job` is its scheduler's."""

    how: How
    fell_back: bool
    job: str | None = None


class RunExists(Failure):
    """There is a run of this id with another plan."""


async def lay_down(transport: Transport, run: str, files: Mapping[str, bytes]) -> bool:
    """Make a run's folder with its plan; True where it was made now, False where it was there already.

    Args:
        run: absolute folder on the box; its parent is made where it is missing.
        files: as `tui.runs.plan_files.plan_files` makes them.

    Raises:
        RunExists: a folder is there and holds another plan.
        Failure: the box could not write it. LinkLost, TimeoutError: ask again.
    """
    parent = run.rsplit("/", 1)[0] or "/"
    script = Script(_LAY_DOWN, (parent, run), why="lay down the run's plan")
    done = await transport.run(script, stdin=tar_of(files), timeout=60)
    made = done.exit == 0
    if done.exit not in (0, 9):
        raise _refused(done, f"{run} could not be made on the box")
    there = await transport.run(Script(_READ_BACK, (run,), why="is it the plan?"), limit=1 << 12)
    if there.exit == 0 and there.stdout == files[f"{PLAN}/id"]:
        return made
    raise RunExists(
        f"{safe(run, 200)} is there already, with another plan.",
        means="Nothing was written or started.",
        do="Give the new run a name of its own, or go on with the old one by its own job file.",
        code="run-exists",
    )


async def bring_wrapper(transport: Transport, run: str) -> None:
    """Put this rgt's wrapper beside the one that a run was laid down with, where that is another one.

    Raises:
        Failure: it did not arrive whole. LinkLost, TimeoutError: ask again.
    """
    text = wrapper()
    script = Script(_WRAPPER, (run, wrapper_name(), str(len(text))), why="is the wrapper there?")
    done = await transport.run(script, stdin=text, timeout=30)
    if done.exit != 0:
        raise _refused(done, "The run's wrapper did not arrive whole")


async def start(transport: Transport, run: str, program: str, session: str, how: How) -> Started:
    """Start a run's wrapper, or a queue's worker, detached.

    Args:
        program: below `run`; a scheduler starts what the plan names.

    Raises:
        Failure: the box refused. LinkLost, TimeoutError: whether it was started is unknown; look first.
    """
    if how in ("sbatch", "job"):
        job, _ = await (submit if how == "sbatch" else kube_job.submit)(transport, run, session)
        return Started(how, fell_back=False, job=job)
    script = Script(_START, (run, program, session, how), why="start the run, detached")
    done = await transport.run(script, timeout=30)
    used = done.stdout.decode("ascii", "replace").strip()
    if done.exit != 0 or used not in ("tmux", "nohup"):
        raise _refused(done, "The run could not be started")
    return Started("tmux" if used == "tmux" else "nohup", fell_back=used != how)


async def give_secrets(transport: Transport, folder: str, name: str, secrets: Mapping[str, str]) -> None:
    """Write secrets into a file of mode 600 on the box, by stdin. Raises Failure."""
    body = "".join(f"{key}={value}\n" for key, value in secrets.items()).encode()
    done = await transport.run(Script(_ONE_FILE, (folder, name), why="give the job its secrets"), stdin=body)
    if done.exit != 0:
        raise _refused(done, "The job's secrets could not be written on the box")


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """The files as a tar of one time, one owner and mode 600."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files, key=lambda name: (name == f"{PLAN}/id", name)):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o600
            tar.addfile(entry, io.BytesIO(files[name]))
    return out.getvalue()


def _refused(done: Completed, what: str) -> Failure:
    said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
    return Failure(
        f"{what}: {safe(said, 200) or f'status {done.exit}'}.", means="Nothing runs.", code="box-refused"
    )

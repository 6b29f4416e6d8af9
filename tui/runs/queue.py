"""A queue of cells on a box: laid down, worked through by the box itself, and read back cell by cell."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Literal

from tui.box.transport import Script, Transport
from tui.model.failure import Failure
from tui.model.text import SafeText, safe
from tui.runs.cells import Cell
from tui.runs.detach import tar_of
from tui.runs.plan_files import RGT

State = Literal["waiting", "claimed", "running", "failed", "blocked", "complete", "lost", "unknown"]
"""What is true of a cell on its box. ``claimed``: a worker took it and it has not begun. ``blocked``: a gate
held it. ``complete``: its producer ended with every artifact there; nobody else has judged it."""

# $1 the queue's folder; a tar comes in: the list, where claims lie, and the worker.
_LAY_DOWN = r"""
umask 077
mkdir -p -- "$1" && cd -- "$1" || exit 3
tar -xf - && sync
"""

# $1 the queue's folder. Whether its worker is at work on this host; one on another host says so itself by 73.
_AT_WORK = r"""
cd -- "$1" && read -r p t b h <holder || exit 1
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null) ||
  boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null) || boot='?'
[ "$h" = "$(uname -n)" ] && [ "$b" = "$boot" ] || exit 1
if s=$(cat "/proc/$p/stat" 2>/dev/null); then
  set -- "$t" ${s##*) }
  [ "$2" != Z ] && [ "${21}" = "$1" ]
else
  [ "$(ps -o lstart= -p "$p" 2>/dev/null | tr -s ' ' _)" = "$t" ]
fi
"""

# $1 claims. Lines of ``name folder`` come in; what is there goes out, one line a cell and nothing inferred.
_LOOK = r"""
LC_ALL=C; export LC_ALL
claims=$1
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null) ||
  boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null) || boot='?'
here=$(uname -n)
ticks() { s=$(cat "/proc/$1/stat" 2>/dev/null) || return; set -- ${s##*) }; [ "$1" = Z ] || echo "${20}"; }
jobs='' asked=''
if command -v squeue >/dev/null 2>&1; then
  jobs=$(squeue -h -t all -u "$(id -un)" -o '%A %T' 2>/dev/null) && asked=1
fi
lives() {
  [ -r "$1" ] || { echo none; return; }
  p='' t='' b='' h='' job=''
  read -r p t b h job <"$1"
  if [ "$h" != "$here" ] && [ -n "$job" ] && [ -n "$asked" ]; then
    case $(printf '%s\n' "$jobs" | sed -n "s/^${job%%[!0-9]*} //p") in
      '' | CANCELLED | COMPLETED | FAILED | TIMEOUT | NODE_FAIL) echo gone ;;
      OUT_OF_MEMORY | DEADLINE | BOOT_FAIL) echo gone ;;
      *) echo alive ;;
    esac
  elif [ "$h" != "$here" ]; then echo "$h"
  elif [ "$b" = "$boot" ] && [ "$(ticks "$p")" = "$t" ]; then echo alive
  else
    c=${1%/*}/child p='' t=''
    [ ! -r "$c" ] || read -r p t _ <"$c" # a wrapper that was killed leaves its job behind, at work
    if [ "$b" = "$boot" ] && [ -n "$t" ] && [ "$(ticks "$p")" = "$t" ]; then echo alive; else echo gone; fi
  fi
}
while read -r name folder; do
  n=0
  while [ -d "$folder/.rgt/attempts/$((n + 1))" ]; do n=$((n + 1)); done
  a=$folder/.rgt/attempts/$n
  end=none
  [ -r "$a/end" ] && end=$(sed -n 's/^reason //p; s/^status //p' "$a/end" | tr '\n' :)
  claim=$(lives "$claims/$name/holder")
  [ -d "$claims/$name" ] && [ "$claim" = none ] && claim=taken
  root=${folder%/active/*}
  sealed=no apart=no
  [ -d "$root/export/$name" ] && sealed=yes
  [ -d "$root/quarantine/$name--$n" ] && apart=yes
  took=0 i=1
  while [ "$i" -le "$n" ] && [ -n "$took" ]; do # all attempts of a cell are what it cost
    b=$(sed -n 's/^began //p' "$folder/.rgt/attempts/$i/start" 2>/dev/null)
    e=$(sed -n 's/^ended //p' "$folder/.rgt/attempts/$i/end" 2>/dev/null)
    case $b$e in *[!0-9]*) b='' ;; esac
    if [ -n "$b" ] && [ -n "$e" ]; then took=$((took + e - b)); else took=''; fi
    i=$((i + 1))
  done
  echo "cell $name $n $end $(lives "$a/holder") $claim $sealed $apart ${took:-?}"
done
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the box says of one cell.

    Attributes:
        attempt: 0: none yet.
        by: the host that claimed it, where that is another one.
        took_s: seconds of all its attempts together, where each of them has ended.
        sealed, apart: its export is sealed; its newest attempt lies in quarantine.
    """

    name: str
    state: State
    attempt: int
    why: SafeText
    sealed: bool = False
    apart: bool = False
    by: SafeText | None = None
    took_s: float | None = None


def worker() -> bytes:
    """The worker's text."""
    return resources.files("tui.runs").joinpath("queue.sh").read_bytes()


def worker_name() -> str:
    return f"{RGT}/queue-{hashlib.sha256(worker()).hexdigest()[:16]}.sh"


async def lay_down(
    transport: Transport,
    queue: str,
    folders: Mapping[str, str],
    claims: str,
    more: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Bring a queue's list and its worker, which `tui.runs.detach.start` starts.

    Args:
        folders: each cell's run folder by its name, in order.
        claims: folder that all boxes share which have a part of this queue, or one of the box's own.
        more: further files, for a scheduler that takes the worker's place.

    Raises:
        Failure: the box could not take it. LinkLost, TimeoutError: ask again.
    """
    body = "".join(f"{name} {folder}\n" for name, folder in folders.items()).encode()
    files = {"cells": body, "claims-at": f"{claims}\n".encode(), worker_name(): worker(), **more}
    done = await transport.run(
        Script(_LAY_DOWN, (queue,), why="lay down the queue"), stdin=tar_of(files), timeout=120
    )
    if done.exit != 0:
        raise Failure(
            f"The queue could not be laid down in {safe(queue, 200)}.", means="Nothing was started."
        )


async def at_work(transport: Transport, queue: str) -> bool:
    """Whether the worker of a queue's folder is alive there. Raises LinkLost, TimeoutError: ask again."""
    done = await transport.run(Script(_AT_WORK, (queue,), why="is its worker at work?"), timeout=30)
    return done.exit == 0


async def read(transport: Transport, claims: str, folders: Mapping[str, str]) -> tuple[Seen, ...]:
    """What is true of each cell, asked in one go. Raises LinkLost, SessionsExhausted, TimeoutError."""
    body = "".join(f"{name} {folder}\n" for name, folder in folders.items()).encode()
    script = Script(_LOOK, (claims,), why="what is true of each cell?")
    done = await transport.run(script, stdin=body, timeout=60 + len(folders) / 20, limit=16 << 20)
    return judged(done.stdout.decode("utf-8", "replace"))


def judged(text: str) -> tuple[Seen, ...]:
    """Read what `read` was told; a line that nobody knows is left out."""
    found = []
    for line in text.split("\n"):
        words = line.split(" ")
        if len(words) == 9 and words[0] == "cell" and words[2].isdecimal():
            found.append(_seen(words[1], int(words[2]), *words[3:]))
    return tuple(found)


def _seen(
    name: str, attempt: int, end: str, run: str, claim: str, sealed: str, apart: str, took: str
) -> Seen:
    state, why = _state(attempt, end, run, claim)
    elsewhere = claim if claim not in ("none", "taken", "alive", "gone") else None
    return Seen(
        safe(name, 120),
        state,
        attempt,
        safe(why, 200),
        sealed == "yes",
        apart == "yes",
        safe(elsewhere, 60) if elsewhere else None,
        float(took) if attempt and end != "none" and took.isdecimal() else None,
    )


def _state(attempt: int, end: str, run: str, claim: str) -> tuple[State, str]:
    reason, _, rest = end.partition(":")
    if reason == "finished":
        return "complete", "Every artifact of its producer is there."
    if reason in ("disk-gate", "no-workdir"):
        return "blocked", f"Held before it began: {reason}."
    if end != "none":
        return "failed", f"Attempt {attempt} ended: {reason}, status {rest.strip(':')}."
    if run == "alive":
        return "running", f"Attempt {attempt} is alive."
    if attempt and run == "gone":
        return "lost", f"Attempt {attempt} is gone and wrote no end."
    if attempt and run == "none":
        return "unknown", f"Attempt {attempt} was claimed, and who claimed it is not recorded yet."
    if attempt:
        return "unknown", f"Attempt {attempt} is on {run}."
    if claim == "none":
        return "waiting", "Nobody took it yet."
    return "claimed", "A worker took it and it has not begun."


def shares(cells: Sequence[Cell], folder: str) -> dict[str, str]:
    """Each cell's run folder by its name.

    Args:
        folder: of the project on the box.
    """
    return {cell.name: f"{folder}/active/{cell.name}" for cell in cells}

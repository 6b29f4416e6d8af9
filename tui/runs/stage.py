"""Brings a job's inputs to a box before anything is launched: from their mirror, else from this computer.

The mirror comes first: what travels from there does not pass the operator's own line.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui.box.transport import Script, Transport
from tui.model.failure import Failure
from tui.model.job import Input
from tui.model.text import SafeText, amount, safe
from tui.runs.carry import Carried, carry
from tui.runs.fetch import fetch
from tui.runs.preflight import BoxFacts

Dial = Callable[[], Awaitable[Transport]]
Source = Literal["there", "mirror", "here", "nowhere"]

# $1 folder, made where it is missing; its own path goes out.
_FOLDER = """
case $1 in '~/'*) d=$HOME/${1#??} ;; *) d=$1 ;; esac
mkdir -p -- "$d" && cd -- "$d" && pwd
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done for one input. `path` is on the box, its places filled in."""

    one: Input
    path: str
    source: Source
    here: Path | None = None

    @property
    def line(self) -> SafeText:
        vouched = "" if self.one.sha256 else "; no SHA-256 is named, nobody vouches for it"
        words = {
            "there": "is there",
            "mirror": f"from its mirror{vouched}",
            "here": f"from this computer, {self.here}",
            "nowhere": "is not there, and neither a mirror nor a file here is named",
        }
        return safe(f"{self.path}: {words[self.source]}", 400)


def steps(inputs: tuple[Input, ...], facts: BoxFacts, base: Path) -> tuple[Step, ...]:
    """What each input needs.

    Args:
        facts: what the box said, with its inputs in the same order.
        base: folder of the job file.
    """
    found = []
    for one, (path, size) in zip(inputs, facts.inputs.items(), strict=True):
        lies = base / Path(one.here).expanduser() if one.here else None
        source: Source = "nowhere"
        if size is not None:
            source = "there"
        elif one.mirror:
            source = "mirror"
        elif lies is not None and lies.is_file():
            source = "here"
        found.append(Step(one, path, source, lies))
    return tuple(found)


def steps_on_fresh(inputs: tuple[Input, ...], paths: Sequence[str], base: Path) -> tuple[Step, ...]:
    """What each input will need on a machine that is not there yet, and so has none of them."""
    return steps(inputs, BoxFacts(run="", inputs=dict.fromkeys(paths)), base)


async def bring(dial: Dial, step: Step, told: Callable[[SafeText], None] = lambda _line: None) -> SafeText:
    """Do one step; the same call goes on after a cut. What came of it, in words.

    Raises:
        Failure: it cannot be had, or is another file than the job names. LinkLost, TimeoutError: ask again.
    """
    if step.source == "mirror":
        done = await fetch(dial, step.one.mirror or "", step.path, sha256=step.one.sha256, told=told)
        _right_size(step, done.bytes)
        return safe(f"{step.path}: {amount(done.bytes)}, sha256 {done.sha256}", 400)
    assert step.here is not None
    one = await asyncio.to_thread(_read, step)
    made = await (await dial()).run(
        Script(_FOLDER, (step.path.rpartition("/")[0] or "/",), why="the input's folder"), timeout=30
    )
    if made.exit != 0:
        raise Failure(f"The folder of {safe(step.path, 200)} cannot be made.", means="Nothing was brought.")
    folder = made.stdout.decode("utf-8", "surrogateescape").rstrip("\n")
    await carry(dial, folder, (one,), told)
    return safe(f"{step.path}: {amount(one.bytes)}, sha256 {one.sha256}", 400)


def _read(step: Step) -> Carried:
    """The file here, proven to be the one that the job names. Raises Failure."""
    assert step.here is not None
    try:
        with step.here.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = step.here.stat().st_size
    except OSError as error:
        raise Failure(f"{safe(str(step.here), 200)} cannot be read ({error.strerror}).") from None
    if step.one.sha256 not in (None, digest):
        raise Failure(
            f"{safe(str(step.here), 200)} holds other bytes than the job names: sha256 {digest[:12]}….",
            means="It was not brought.",
            code="other-bytes",
        )
    _right_size(step, size)
    return Carried(step.path.rpartition("/")[2], step.here, size, digest)


def _right_size(step: Step, size: int) -> None:
    if step.one.bytes is not None and size != step.one.bytes:
        raise Failure(
            f"{safe(step.path, 200)} has {size} bytes; the job names {step.one.bytes}.", code="other-bytes"
        )

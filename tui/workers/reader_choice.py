"""Who reads a run's copy back: this computer, or another box of the fleet. The choice is kept for the run."""

from __future__ import annotations

from tui.custody.errand import Errand
from tui.custody.machine import known_victim
from tui.custody.places import HERE
from tui.custody.records import write_file
from tui.durable import read_regular
from tui.fleet import settings
from tui.model.custody import CopyReport, ReadbackReport
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.text import SafeText, safe

READER = "reader"
"""In the custody folder of a run: the box that reads its copy back, or ``here``."""

_HERE_TOO = ("", HERE, "this computer")


def chosen_reader(task: Errand) -> str | None:
    """As it was chosen for this run; None: not yet, which means this computer. Raises Failure."""
    try:
        raw = read_regular(task.folder / READER, 1024)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(
            f"{task.folder / READER} can't be read ({error.strerror}).", do="Choose the reader again."
        ) from None
    return raw.decode("utf-8", "surrogateescape") or None


def reader_of(task: Errand) -> str:
    """Who reads now. Raises Failure."""
    return chosen_reader(task) or HERE


def choose_reader(task: Errand, text: str) -> str:
    """Remember who reads.

    Raises:
        Failure: no such box, or the one that made the files.
    """
    name = text.strip()
    on = HERE if name in _HERE_TOO else name
    if on != HERE:
        _fits(task, on)
    write_file(task.folder / READER, on.encode("utf-8", "surrogateescape"))
    return on


def _fits(task: Errand, name: str) -> None:
    boxes = {one.name: one for one in settings.load(task.where.fleet_file).instances}
    others = ", ".join(one for one in boxes if one != task.instance.name)
    do = f"Another box of the fleet: {others}; or here." if others else "No other box is known: here."
    if name not in boxes:
        raise Failure(f"No box is named {name!r}.", do=do, exit=Exit.USAGE, code="no-such-box")
    if _is_producer(task, boxes[name]):
        same = "" if name == task.instance.name else f" is {task.instance.name} by another name and"
        raise Failure(
            f"{name}{same} made the files, so it can't be the one that proves the copy.",
            means="Who reads was not changed.",
            do=do,
            exit=Exit.USAGE,
            code="read-by-producer",
        )


def _is_producer(task: Errand, other: Instance) -> bool:
    """By its name, its id, its address or its key: a second name makes no second machine."""
    ours, theirs = known_victim(task.instance, task.where), known_victim(other, task.where)
    return (
        other.name == task.instance.name
        or (ours.endpoint is not None and ours.endpoint == theirs.endpoint)
        or (ours.host_key is not None and ours.host_key == theirs.host_key)
        or (
            ours.instance_id is not None
            and (ours.platform, ours.instance_id) == (theirs.platform, theirs.instance_id)
        )
    )


def readers(task: Errand) -> tuple[SafeText, ...]:
    """The boxes that may read, for a prompt. Raises Failure: fleet.toml can't be read."""
    boxes = settings.load(task.where.fleet_file).instances
    return tuple(safe(one.name, 60) for one in boxes if not _is_producer(task, one))


def read_by(report: ReadbackReport) -> str:
    """Who read: ``here``, or a box."""
    return report.consumer.box or HERE


def reader_words(on: str, copied: CopyReport | None = None) -> tuple[SafeText, SafeText]:
    """What the step does and what must come of it, before it is done."""
    who = "this computer" if on == HERE else on
    kind, box = (copied.destination.kind, copied.destination.box) if copied is not None else ("", None)
    near = (kind == "path" and on == HERE) or (kind == "box" and box == on)
    same = f"; the copy lies on {who} too: on one disk it is recorded as same-device" if near else ""
    return (
        safe(f"reads the copy, not the box, into a fresh folder of {who}"),
        safe(f"exactly the same files, every byte as it was hashed on the box{same}"),
    )

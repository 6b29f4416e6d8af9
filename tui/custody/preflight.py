"""The one look at the box just before a verb: is it idle, and still what the proof saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tui.custody.codes import refusal
from tui.custody.order import Before
from tui.model.custody import Artifact, DigestReport, Refusal, Roster, Writer
from tui.model.failure import Failure
from tui.model.telemetry import Telemetry

_SHOWN = 20


def idle(telemetry: Telemetry, host_key: str | None) -> Before:
    """What a probe says about idleness: watched runs whose process is there, and anything on a GPU."""
    return Before(known=True, ssh="the box answered", busy=tuple(_busy(telemetry)), host_key=host_key)


def unreached(why: Failure | str) -> Before:
    """The box could not be looked at: nothing is known, least of all that it is idle."""
    return Before(known=False, ssh=str(why.what if isinstance(why, Failure) else why))


def compared(before: Before, proven: Roster, now: Roster) -> Before:
    """A look at the box together with how it differs from the roster that the proof was made from."""
    busy = (*before.busy, *(one for one in now.writers if one not in before.busy))
    return replace(before, busy=busy, changes=tuple(changes(proven, now)), roster=proven.digest)


def changes(proven: Roster, now: Roster) -> Iterator[Refusal]:
    """How a box differs from what was proven. Only what the operator scrapped may change."""
    was = {one.path: _content(one) for one in proven.artifacts}
    is_now = {one.path: _content(one) for one in now.artifacts}
    different = sorted(path for path in was.keys() | is_now.keys() if was.get(path) != is_now.get(path))
    for path in different[:_SHOWN]:
        yield refusal("changed-since-proof", _word(path in was, path in is_now), path)
    if len(different) > _SHOWN:
        yield refusal("changed-since-proof", f"and {len(different) - _SHOWN} more files")
    decided = {one.group for one in proven.leftovers if one.decision is not None}
    for group in now.leftovers:
        if group.group not in decided and group.decision is None:
            yield refusal("unclassified", f"{group.title}: {group.count} files", group.group)
    if _rebooted(proven, now):
        yield refusal("changed-since-proof", "The box was started anew since the roster was taken.")
    yield from _other(now.refusals)


def changed_bytes(proven: DigestReport, now: DigestReport) -> Iterator[Refusal]:
    """Artifacts that are not what was hashed, whatever their sizes and times say."""
    was = {one.path: one.sha256 for one in proven.files}
    is_now = {one.path: one.sha256 for one in now.files}
    yield from now.refusals[:_SHOWN]
    told = {one.path for one in now.refusals}
    different = [path for path in was if was[path] != is_now.get(path) and path not in told]
    for path in different[:_SHOWN]:
        yield refusal("changed-since-proof", "Its bytes are not what was hashed.", path)
    if len(different) > _SHOWN:
        yield refusal("changed-since-proof", f"and {len(different) - _SHOWN} more files")


def _other(refusals: Sequence[Refusal]) -> Iterator[Refusal]:
    """What the new roster refuses by itself, but for what is told already."""
    yield from (one for one in refusals if one.code not in ("live-writer", "unclassified"))


def _rebooted(proven: Roster, now: Roster) -> bool:
    return None not in (proven.victim.boot_id, now.victim.boot_id) and (
        proven.victim.boot_id != now.victim.boot_id
    )


def _content(one: Artifact) -> tuple[int, int | None]:
    return one.size, one.modified_ns


def _word(was: bool, is_now: bool) -> str:
    if not was:
        return "It came since the proof."
    return "It was written to since the proof." if is_now else "It is gone since the proof."


def _busy(telemetry: Telemetry) -> Iterator[Writer]:
    for run in telemetry.runs:
        if run.alive:
            pid = run.process.pid if run.process else None
            yield Writer(path=run.run, evidence=f"run {run.run} is running", pid=pid)
    for one in telemetry.gpu_processes.value or ():
        if one.command and one.kind != "G":  # without a name it is gone, or another container's
            evidence = f"{one.command} (pid {one.pid}) holds memory on a GPU"
            yield Writer(path="GPU", evidence=evidence, pid=one.pid)

"""What a look at the box just before the verb makes of what it sees."""

from __future__ import annotations

from tests.custody.chains import NOW, VICTIM, Maker, changed
from tui.custody.moments import moment
from tui.custody.preflight import changes, compared, idle, unreached
from tui.model.custody import Leftover, Refusal, Roster, Writer
from tui.model.failure import Failure
from tui.model.reading import known
from tui.model.telemetry import GpuProcess, RunTruth, Telemetry
from tui.model.text import SafeText

PROVEN = Maker().chain().roster


def later(**values: object) -> Roster:
    """The box as it is listed a minute later."""
    return Maker({"roster": changed(taken_at=moment(NOW + 60), **values)}).chain().roster


def told(**values: object) -> list[tuple[str, str | None]]:
    return [(one.code, one.path) for one in changes(PROVEN, later(**values))]


def test_a_box_where_nothing_changed_is_as_proven_whenever_it_is_looked_at() -> None:
    assert told() == []
    before = compared(idle(Telemetry(NOW), None), PROVEN, later())
    assert (before.known, before.busy, before.changes, before.roster) == (True, (), (), PROVEN.digest)


def test_an_artifact_that_changed_came_or_went_is_named() -> None:
    first, second = PROVEN.artifacts
    grown = first.model_copy(update={"size": 8})
    touched = first.model_copy(update={"modified_ns": 5})
    new = first.model_copy(update={"path": "ckpt/newer.pt"})
    assert told(artifacts=(grown, second)) == [("changed-since-proof", first.path)]
    assert told(artifacts=(touched, second)) == [("changed-since-proof", first.path)]
    assert told(artifacts=(second,)) == [("changed-since-proof", first.path)]
    assert told(artifacts=(first, second, new)) == [("changed-since-proof", "ckpt/newer.pt")]


def test_what_was_scrapped_may_change_and_what_nobody_decided_blocks() -> None:
    scrapped = PROVEN.leftovers[0].model_copy(update={"size": 10**9, "count": 4})
    new = Leftover(group="ckpt:ab", title="checkpoints in /x", count=1, size=1, examples=("y",))
    assert told(leftovers=(scrapped,)) == []
    assert told(leftovers=(scrapped, new)) == [("unclassified", "ckpt:ab")]


def test_a_reboot_and_what_the_new_roster_refuses_block() -> None:
    here = VICTIM.model_copy(update={"boot_id": "one"})
    proven = Maker(victim=here).chain().roster
    booted = Maker(victim=VICTIM.model_copy(update={"boot_id": "two"})).chain().roster
    assert [one.code for one in changes(proven, booted)] == ["changed-since-proof"]
    refused = Refusal(code="root-unreadable", detail="x")
    assert told(refusals=(refused,)) == [("root-unreadable", None)]


def test_writers_runs_and_gpu_work_are_busy() -> None:
    process = GpuProcess(7, None, 900.0, SafeText("python"), kind=SafeText("C"))
    screen = GpuProcess(8, None, 9.0, SafeText("Xorg"), kind=SafeText("G"))
    stranger = GpuProcess(9, None, 9.0, SafeText(""))
    telemetry = Telemetry(
        NOW,
        gpu_processes=known((process, screen, stranger)),
        runs=(RunTruth("r1", alive=True), RunTruth("r2", alive=False), RunTruth("r3", alive=None)),
    )
    writer = Writer(path="ckpt/x", evidence="open")
    before = compared(idle(telemetry, "SHA256:x"), PROVEN, later(writers=(writer,)))
    assert [one.path for one in before.busy] == ["r1", "GPU", "ckpt/x"]
    assert before.host_key == "SHA256:x"


def test_a_box_that_was_not_reached_is_not_known() -> None:
    before = unreached(Failure("connection refused"))
    assert (before.known, before.ssh, before.roster) == (False, "connection refused", None)

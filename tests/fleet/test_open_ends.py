"""A verb that was begun and whose end nobody saw is not forgotten: on its box and in `rgt status`."""

from __future__ import annotations

from tui.fleet.judge import box_word
from tui.fleet.patrol import ticks
from tui.fleet.reducer import reduce
from tui.fleet.report import ends_elsewhere, exit_code, status_json, status_lines
from tui.model.event import (
    Event,
    FleetChanged,
    LinkChanged,
    OpenEndsRead,
    ProgressRead,
    TeardownChanged,
    TelemetryTaken,
)
from tui.model.failure import Exit
from tui.model.instance import Ended, Endpoint, Instance, Link, LinkState
from tui.model.run import Progress, RunSpec, RunState
from tui.model.snapshot import FleetSnapshot
from tui.model.teardown import OpenEnd, TeardownView
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText
from tui.widgets.header import census

HERE = OpenEnd("box", "stop", "2026-11-30T00:00:00Z", by_hand=True)
GONE = OpenEnd("left-the-fleet", "destroy", "2026-11-29T00:00:00Z", by_hand=False)
FLEET = FleetChanged((Instance("box", "autodl", None),), ())


def test_it_stands_at_its_box_until_it_is_settled() -> None:
    begun = reduce(FleetSnapshot(), [FLEET, OpenEndsRead((HERE, GONE))], 0.0)
    (attention,) = begun.boxes[0].attention
    assert attention.short == "your word"
    assert "say so" in attention.text
    assert exit_code(begun) == Exit.ATTENTION
    assert any("counts as billing" in line for line in status_lines(begun, 0.0))
    (elsewhere,) = ends_elsewhere(begun)
    assert elsewhere.startswith("left-the-fleet: destroy")
    told = status_json(begun, 0.0)["open_ends"]
    assert told == [
        {"box": "box", "verb": "stop", "since": HERE.since, "by_hand": True},
        {"box": "left-the-fleet", "verb": "destroy", "since": GONE.since, "by_hand": False},
    ]
    settled = reduce(begun, [OpenEndsRead(())], 0.0)
    assert settled.boxes[0].attention == ()


def test_a_box_that_is_proven_gone_is_not_unknown_and_costs_nothing_more() -> None:
    at = 7200.0
    box = Instance("box", "sim", Endpoint("a.example"), "i-1", price_per_hour=2.0, rented_at=0.0)
    run = RunSpec("exp", "box", log="/x")
    cut = LinkChanged("box", Link(LinkState.UNREACHABLE, at + 5, SafeText("nothing listens there")))
    events: list[Event] = [FleetChanged((box,), (run,)), ProgressRead("exp", Progress(finished=True)), cut]
    gone = Ended("box", at, SafeText("proven by two witnesses"), "i-1")
    over = reduce(FleetSnapshot(), [*events, OpenEndsRead((), (gone,))], at + 3600)
    word = box_word(over.boxes[0], at + 3600)
    assert (word.kind, word.word) == ("gone", "destroyed")
    assert over.runs[0].state is RunState.FINISHED and "destroyed" in over.runs[0].why
    assert over.boxes[0].attention == () and exit_code(over) == Exit.FINE
    assert [(t.key, t.word, t.escalated) for t in ticks(over, at + 3600)][-1] == (
        "box box",
        "destroyed",
        False,
    )
    told = status_json(over, at + 3600)
    assert told["burn"] == [] and told["spent"][0]["amount"] == 4.0  # type: ignore[index]
    assert census(over, at + 3600, 2.0) == (1, 0, 0, 0)  # neither stale nor unknown
    another = Ended("box", at, SafeText("by your word"), "i-0")  # an earlier machine of this name
    assert box_word(reduce(over, [OpenEndsRead((), (another,))], at).boxes[0], at).word != "destroyed"
    heard = TelemetryTaken("box", Telemetry(taken_at=at + 9))
    alive = reduce(over, [LinkChanged("box", Link(LinkState.LIVE, at + 8)), heard], at + 9)
    assert box_word(alive.boxes[0], at + 9).kind == "running"  # what answers is there


def test_the_newest_view_of_a_teardown_holds_and_none_closes_it() -> None:
    first, second = TeardownView("box", "exp", "destroy"), TeardownView("box", None, "stop")
    snapshot = reduce(FleetSnapshot(), [TeardownChanged("box", first), TeardownChanged("box", second)], 0.0)
    assert snapshot.teardowns == (second,)
    assert reduce(snapshot, [TeardownChanged("box", None)], 0.0).teardown("box") is None

"""A verb that was begun and whose end nobody saw is not forgotten: on its box and in `rgt status`."""

from __future__ import annotations

from tui.fleet.reducer import reduce
from tui.fleet.report import ends_elsewhere, exit_code, status_json, status_lines
from tui.model.event import FleetChanged, OpenEndsRead, TeardownChanged
from tui.model.failure import Exit
from tui.model.instance import Instance
from tui.model.snapshot import FleetSnapshot
from tui.model.teardown import OpenEnd, TeardownView

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


def test_the_newest_view_of_a_teardown_holds_and_none_closes_it() -> None:
    first, second = TeardownView("box", "exp", "destroy"), TeardownView("box", None, "stop")
    snapshot = reduce(FleetSnapshot(), [TeardownChanged("box", first), TeardownChanged("box", second)], 0.0)
    assert snapshot.teardowns == (second,)
    assert reduce(snapshot, [TeardownChanged("box", None)], 0.0).teardown("box") is None

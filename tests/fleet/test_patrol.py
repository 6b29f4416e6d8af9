"""A patrol says something of everything, and calls only what changed news."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui.fleet.patrol import Calls, changes, ticks, words
from tui.model.instance import Endpoint, Instance, Link, LinkState
from tui.model.run import Progress, RunSpec, RunState
from tui.model.snapshot import Attention, BoxView, FleetSnapshot, RunView
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, safe

NOW = 1_790_000_000.0
BOX = BoxView(Instance("b", "ssh", Endpoint("h")), link=Link(LinkState.LIVE, NOW))
RUN = RunView(RunSpec("r", "b"), state=RunState.RUNNING, why=safe("Its process is there."))


def test_a_line_comes_for_every_run_and_every_box_without_one() -> None:
    alone = replace(BOX, instance=replace(BOX.instance, name="c"))
    told = ticks(FleetSnapshot(boxes=(BOX, alone), runs=(RUN,)), NOW)
    assert [one.key for one in told] == ["run r", "box c"]
    assert not any(one.escalated for one in told)


def test_only_what_became_another_word_is_news() -> None:
    first = ticks(FleetSnapshot(boxes=(BOX,), runs=(RUN,)), NOW)
    further = replace(RUN, progress=Progress(unit="step", done=7))
    second = ticks(FleetSnapshot(boxes=(BOX,), runs=(further,)), NOW)
    assert not list(changes(words(first), second))
    dead = ticks(FleetSnapshot(boxes=(BOX,), runs=(replace(RUN, state=RunState.DEAD),)), NOW)
    assert [one.word for one in changes(words(first), dead)] == ["dead"]
    assert not list(changes(words(dead), dead))
    assert [one.word for one in changes(words(dead), first)] == ["running"]


def test_what_was_never_seen_is_news_only_where_it_escalates() -> None:
    assert not list(changes({}, ticks(FleetSnapshot(boxes=(BOX,), runs=(RUN,)), NOW)))
    dead = ticks(FleetSnapshot(boxes=(BOX,), runs=(replace(RUN, state=RunState.DEAD),)), NOW)
    assert [one.word for one in changes({}, dead)] == ["dead"]


def test_a_growing_figure_is_one_trouble() -> None:
    def at(pct: int) -> dict[str, str]:
        trouble = Attention("attention", SafeText(f"inodes {pct}%"), SafeText(f"Inodes: {pct} %."))
        return words(ticks(FleetSnapshot(boxes=(replace(BOX, attention=(trouble,)),), runs=(RUN,)), NOW))

    assert at(96) == at(97)
    assert at(96)["box b"] == "inodes"


def test_a_box_that_does_not_answer_is_told_beside_its_run() -> None:
    away = replace(BOX, link=Link(LinkState.UNREACHABLE, NOW, safe("no route to host")))
    told = ticks(FleetSnapshot(boxes=(away,), runs=(replace(RUN, state=RunState.UNREACHABLE),)), NOW)
    assert [one.word for one in told] == ["unreachable", "unreachable"]
    assert "no route to host" in told[1].line


@pytest.mark.parametrize("state", [LinkState.REFUSED, LinkState.IDENTITY, LinkState.NEEDS_SECRET])
def test_a_box_that_waits_for_the_operator_escalates(state: LinkState) -> None:
    (tick,) = ticks(FleetSnapshot(boxes=(replace(BOX, link=Link(state, NOW)),)), NOW)
    assert tick.escalated


def called(calls: Calls, state: RunState) -> list[str]:
    run = replace(RUN, state=state)
    return [one.word for one in calls.of(FleetSnapshot(boxes=(BOX,), runs=(run,)), NOW)]


def test_somebody_is_called_once_for_each_change_and_not_for_what_stood_so() -> None:
    calls = Calls()
    assert called(calls, RunState.UNKNOWN) == []
    assert called(calls, RunState.DEAD) == []  # it was dead when the watch began
    assert called(calls, RunState.RUNNING) == []
    for state in (RunState.UNREACHABLE, RunState.UNKNOWN, RunState.RUNNING):
        assert called(calls, state) == []  # a link that comes and goes
    assert called(calls, RunState.UNKNOWN) == []
    assert called(calls, RunState.DEAD) == ["dead"]
    assert called(calls, RunState.DEAD) == []
    assert called(calls, RunState.STARTING) == []
    assert called(calls, RunState.RUNNING) == []
    assert called(calls, RunState.FINISHED) == ["finished"]


def test_somebody_is_called_for_a_disk_that_fills_beside_a_run_that_goes_on() -> None:
    calls, seen = Calls(), replace(BOX, telemetry=Telemetry(NOW))
    trouble = Attention("attention", SafeText("inodes 96%"), SafeText("Inodes: 96 %."))
    fleet = FleetSnapshot(boxes=(seen,), runs=(RUN,))
    full = replace(fleet, boxes=(replace(seen, attention=(trouble,)),))
    assert [calls.of(one, NOW) != () for one in (fleet, full, full, fleet, full)] == [
        False, True, False, False, True,
    ]  # fmt: skip

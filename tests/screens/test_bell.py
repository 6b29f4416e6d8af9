"""The terminal calls for what changed and matters, once, with words that can do nothing to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.fixtures.fleet_fixture import fleet
from tests.screens.app_harness import held, running, until
from tui.bell import MOST, ring
from tui.model.run import RunState
from tui.model.snapshot import FleetSnapshot


def ended(snapshot: FleetSnapshot, name: str, state: RunState) -> FleetSnapshot:
    runs = tuple(replace(one, state=state) if one.name == name else one for one in snapshot.runs)
    return replace(snapshot, version=snapshot.version + 1, runs=runs)


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_run_that_dies_rings_once(monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    monkeypatch.setattr("tui.bell.EVERY_S", 0.0)
    before = fleet()
    name = next(one.name for one in before.runs if one.state is RunState.RUNNING and not one.finished)
    async with running(before, bell=wanted, environ={"TERM": "xterm"}) as (app, pilot):
        written: list[str] = []
        held(app).replace(before)
        await until(pilot, lambda: app._driver is not None)
        monkeypatch.setattr(app, "_to_terminal", written.append)
        if app._bell is not None:
            monkeypatch.setattr(app._bell, "_write", written.append)
        for state in (RunState.RUNNING, RunState.DEAD, RunState.DEAD, RunState.UNREACHABLE, RunState.DEAD):
            held(app).replace(ended(before, name, state))
        await pilot.pause(0.05)
    assert len(written) == wanted
    assert all(one.startswith(f"\a\x1b]9;rgt: {name} on ") and "dead" in one for one in written)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-256color"}, "\a\x1b]9;rgt: r is dead\a"),
        ({"TERM": "screen", "TMUX": "/tmp/t"}, "\a\x1bPtmux;\x1b\x1b]9;rgt: r is dead\a\x1b\\"),
        ({"TERM": "linux"}, "\a"),
        ({"TERM": "dumb"}, "\a"),
        ({}, "\a"),
    ],
)
def test_what_a_terminal_does_not_know_it_does_not_get(environ: dict[str, str], expected: str) -> None:
    assert ring("r is dead", environ) == expected


def test_foreign_words_end_no_sequence() -> None:
    told = ring("a\x1b]52;c;aGk=\a\x07\x9cb" + "x" * 1000, {"TERM": "xterm"})
    inside = told.removeprefix("\a\x1b]9;").removesuffix("\a")
    assert not any(ord(sign) < 32 or 126 < ord(sign) < 160 for sign in inside)
    assert len(inside) <= MOST + 1


def test_a_setting_turns_it_off(tmp_path: Path) -> None:
    from tui.fleet.first_look import names_only
    from tui.fleet.settings import load

    file = tmp_path / "fleet.toml"
    assert names_only(file).bell
    file.write_text("[settings]\nbell = false\n")
    assert not names_only(file).bell
    assert not load(file).settings.bell

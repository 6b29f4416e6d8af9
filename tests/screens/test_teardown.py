"""The wizard on screen: what is asked is seen at every size, and nothing but a typed phrase is an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual import events
from textual.pilot import Pilot

from tests.fixtures import teardown_fixture as at
from tests.fixtures.fleet_fixture import fleet
from tests.screens.app_harness import held, picture, running, said, until
from tui.app import RgtApp
from tui.model.command import Command
from tui.model.ending import (
    ChooseDestination,
    ChooseReader,
    DecideLeftovers,
    GivePhrase,
    GiveWord,
    GoOnOver,
    HaltTeardown,
    LeaveTeardown,
    RedoStep,
    StartTeardown,
)
from tui.model.teardown import TeardownView
from tui.model.text import safe
from tui.screens.fleet import FleetScreen
from tui.screens.phrase import SETTLE_S, PhraseInput
from tui.screens.teardown import TeardownScreen

SIZES = [(60, 15), (80, 24), (120, 40)]
QUIET_S = SETTLE_S + 0.05


@asynccontextmanager
async def wizard(
    view: TeardownView, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[RgtApp, Pilot[int]]]:
    """The wizard in front, showing `view`; what was sent on the way is taken out."""
    async with running(at.fleet(view), size) as (app, pilot):
        app.push_screen(TeardownScreen(view.box, view.run, view.verb))
        await until(pilot, lambda: isinstance(app.screen, TeardownScreen) and app.screen.is_mounted)
        await until(pilot, lambda: bool(shown(app).strip()))
        held(app).sent()
        yield app, pilot


def shown(app: RgtApp) -> str:
    return "\n".join(picture(app))


def told(app: RgtApp) -> list[str]:
    """What failed actions said."""
    held(app).fold()
    return [str(notice.text) for notice in held(app).snapshot.notices]


def sent(app: RgtApp) -> list[Command]:
    return held(app).sent()


async def turn(app: RgtApp, pilot: Pilot[int], view: TeardownView) -> None:
    """The worker says something new."""
    held(app).replace(replace(at.fleet(view), version=app.snapshot.version + 1))
    await pilot.pause(0.05)


async def type_out(pilot: Pilot[int], text: str) -> None:
    for char in text:
        await pilot.press({" ": "space", "-": "minus", ".": "full_stop"}.get(char, char))


async def typed(app: RgtApp, pilot: Pilot[int], text: str) -> list[Command]:
    """Open the line, wait until it takes keys, type, press Enter."""
    await pilot.press("p")
    await asyncio.sleep(QUIET_S)
    await type_out(pilot, text)
    await pilot.press("enter")
    await asyncio.sleep(0.15)
    await pilot.pause()
    return sent(app)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "view", [at.VIEW, at.DECIDING, at.READING, at.APPROVING, at.BY_HAND, at.REFUSED, at.STOPPING]
)
async def test_every_moment_fits(view: TeardownView, size: tuple[int, int]) -> None:
    async with wizard(view, size) as (app, _):
        rows = picture(app)
        assert rows[0].startswith("─ stop" if view.verb == "stop" else "─ teardown")
        assert view.box in rows[0]
        text = "\n".join(rows)
        if view.phrase is not None:
            assert view.phrase.text in text
        if view is at.BY_HAND:
            assert "gone, there or unsure" in text
            assert "释放 done-01 by hand" in text
        if view is at.READING:
            assert "70 %" in text
            assert "212.0 MB/s" in text
        if view is at.DECIDING:
            assert "to decide" in text
            assert "sweep-a.seed1" in text
        if view is at.REFUSED:
            assert "readback-inexact" in text


async def test_d_and_x_open_only_a_plan_and_leaving_stops_nothing() -> None:
    async with running(fleet()) as (app, pilot):
        fleet_view = app.screen
        assert isinstance(fleet_view, FleetScreen)
        fleet_view.go_to(at.BOX, at.RUN)
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, TeardownScreen))
        assert StartTeardown(at.BOX, at.RUN, "destroy") in sent(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        assert [c for c in sent(app) if not isinstance(c, LeaveTeardown)] == []
        await pilot.press("X")
        await until(pilot, lambda: isinstance(app.screen, TeardownScreen))
        assert StartTeardown(at.BOX, at.RUN, "stop") in sent(app)


async def test_read_only_mode_has_neither() -> None:
    async with running(fleet(), read_only=True) as (app, pilot):
        assert isinstance(app.screen, FleetScreen)
        app.screen.go_to(at.BOX, at.RUN)
        await pilot.press("D", "X")
        await app.perform("teardown", at.RUN)
        await pilot.pause()
        assert isinstance(app.screen, FleetScreen)
        assert any("read-only" in line for line in said(app))


async def test_the_command_line_names_a_run_or_a_box() -> None:
    async with running(fleet()) as (app, pilot):
        await app.perform("teardown", "nobody")
        await pilot.pause()
        assert any("no box or run named" in line for line in told(app))
        await app.perform("teardown", at.RUN)
        await until(pilot, lambda: isinstance(app.screen, TeardownScreen) and app.screen.is_mounted)
        await pilot.pause()
        assert StartTeardown(at.BOX, at.RUN, "destroy") in sent(app)


# --- leftovers --------------------------------------------------------------------------------------------


async def test_each_group_is_decided_by_a_key_and_a_reason() -> None:
    async with wizard(at.DECIDING) as (app, pilot):
        await pilot.press("tab", "S")
        await pilot.press("enter")
        await pilot.pause()
        assert sent(app) == []
        assert any("needs a reason" in line for line in said(app))
        await type_out(pilot, "old try")
        await pilot.press("enter")
        await pilot.pause()
        assert sent(app) == [DecideLeftovers(at.BOX, (at.LEFTOVERS[0].group,), "scrap", "old try")]
        await pilot.press("K", "enter")  # the cursor went on; a file that is kept needs no reason
        await pilot.pause()
        assert sent(app) == [DecideLeftovers(at.BOX, (at.LEFTOVERS[1].group,), "keep", "")]


async def test_marked_groups_are_decided_together() -> None:
    async with wizard(at.DECIDING) as (app, pilot):
        await pilot.press("tab", "space", "space", "S")
        await type_out(pilot, "gone by")
        await pilot.press("enter")
        await pilot.pause()
        (command,) = sent(app)
        assert isinstance(command, DecideLeftovers)
        assert set(command.groups) == {at.LEFTOVERS[0].group, at.LEFTOVERS[1].group}


async def test_the_last_destination_is_proposed_and_another_can_be_given() -> None:
    asked = at.at(
        at.ROSTER, at.HASHED, at.waiting("copy", "needs-you"), current="copy", question="destination"
    )
    async with wizard(asked) as (app, pilot):
        await pilot.press("t")
        await pilot.pause()
        assert "enter: nas:/runs" in shown(app)
        await pilot.press("enter")
        await pilot.pause()
        assert sent(app) == [
            ChooseDestination(at.BOX, "")
        ]  # as proposed; what is shown may leave secrets out
        await pilot.press("t", "slash", "v", "enter")
        await pilot.pause()
        assert sent(app) == [ChooseDestination(at.BOX, "/v")]


@pytest.mark.parametrize("size", SIZES)
async def test_who_reads_the_copy_back_is_chosen_at_its_step(size: tuple[int, int]) -> None:
    stopped = at.at(
        at.ROSTER,
        at.HASHED,
        at.COPIED,
        replace(
            at.waiting("readback", "failed"),
            runs=safe("reads the copy, not the box, into a fresh folder of vault-2"),
        ),
        current="readback",
        reader=safe("vault-2"),
        readers=(safe("vault-2"), safe("nas")),
    )
    async with wizard(stopped, size) as (app, pilot):
        assert "fresh folder of vault-2" in " ".join(shown(app).split())
        assert "read back on" in picture(app)[-1]
        await pilot.press("o")
        await pilot.pause()
        assert "enter: here; or vault-2, nas" in shown(app)
        await type_out(pilot, "nas")
        await pilot.press("enter")
        await pilot.pause()
        assert sent(app) == [ChooseReader(at.BOX, "nas")]
        await pilot.press("o", "enter")
        await pilot.pause()
        assert sent(app) == [ChooseReader(at.BOX, "here")]


async def test_a_stop_that_loses_nothing_has_no_reader() -> None:
    async with wizard(at.STOPPING) as (app, pilot):
        await pilot.press("o")
        await pilot.pause()
        assert any("reads no copy back" in line for line in told(app))
        assert sent(app) == []


async def test_a_gap_takes_a_reason_and_a_refusal_does_not() -> None:
    async with wizard(at.APPROVING) as (app, pilot):
        await pilot.press("s")
        await type_out(pilot, "known")
        await pilot.press("enter")
        await pilot.pause()
        assert sent(app) == [GoOnOver(at.BOX, "approval", "known")]
        await turn(app, pilot, at.REFUSED)
        await pilot.press("s")
        await pilot.pause()
        assert any("warns of nothing" in line for line in told(app))
        await pilot.press("r")
        await pilot.pause()
        assert sent(app) == [RedoStep(at.BOX, "readback")]


async def test_work_that_runs_can_be_halted_and_seen_step_by_step() -> None:
    async with wizard(at.READING) as (app, pilot):
        assert "214 files, none missing" in shown(app)
        await pilot.press("b")
        await pilot.pause()
        assert "single-use key" in shown(app)
        await pilot.press("h")
        await pilot.pause()
        assert sent(app) == [HaltTeardown(at.BOX)]


# --- the phrase -------------------------------------------------------------------------------------------


async def test_the_phrase_is_sent_as_it_was_typed_with_the_proof_it_was_typed_for() -> None:
    async with wizard(at.APPROVING, (60, 15)) as (app, pilot):
        assert await typed(app, pilot, at.PHRASE.text) == [
            GivePhrase(at.BOX, at.PHRASE.text, at.PHRASE.proof)
        ]


async def test_enter_alone_sends_nothing_and_an_empty_line_is_no_phrase() -> None:
    async with wizard(at.APPROVING) as (app, pilot):
        await pilot.press("enter", "enter", "space", "y")
        await pilot.pause()
        assert [c for c in sent(app) if isinstance(c, GivePhrase)] == []
        assert await typed(app, pilot, "") == [GivePhrase(at.BOX, "", at.PHRASE.proof)]  # which is refused


async def test_what_is_typed_ahead_is_thrown_away() -> None:
    async with wizard(at.APPROVING) as (app, pilot):
        field, now = app.screen.query_one(PhraseInput), 0.0
        field._clock = lambda: now
        await pilot.press("p", *"destroy", "space", "enter")
        await asyncio.sleep(0.15)
        await pilot.pause()
        assert sent(app) == []
        assert app.screen.query_one(PhraseInput).value == ""
        assert any("typed ahead" in line for line in said(app))
        now = QUIET_S
        await pilot.press("d")
        assert app.screen.query_one(PhraseInput).value == "d"


async def test_a_burst_that_opens_the_line_is_thrown_away_and_moves_nothing_else() -> None:
    async with wizard(at.APPROVING) as (app, pilot):
        shown_before = app.screen
        for one in ("p", *at.PHRASE.text.replace(" ", "_"), "enter"):
            key = {"_": "space", "-": "minus"}.get(one, one)
            app.post_message(events.Key(key, {"space": " ", "minus": "-", "enter": "\r"}.get(key, one)))
        await asyncio.sleep(0.2)
        await pilot.pause()
        assert app.screen is shown_before  # `d` in it leaves the view, `c` opens another
        assert app.screen.query_one(PhraseInput).value == ""
        assert sent(app) == []
        assert any("typed ahead" in line for line in said(app))


async def test_a_paste_is_no_answer_and_neither_are_two_lines_at_once() -> None:
    async with wizard(at.APPROVING) as (app, pilot):
        await pilot.press("p")
        await asyncio.sleep(QUIET_S)
        field = app.screen.query_one(PhraseInput)
        field.post_message(events.Paste(at.PHRASE.text))
        await pilot.pause()
        assert field.value == ""
        await type_out(pilot, at.PHRASE.text)
        await pilot.press("enter")
        await asyncio.sleep(0.15)
        await pilot.pause()
        assert sent(app) == []
        assert any("It was pasted" in line for line in said(app))
        await asyncio.sleep(QUIET_S)
        await type_out(pilot, at.PHRASE.text)
        field.post_message(events.Key("enter", "\r"))
        field.post_message(events.Key("y", "y"))
        await asyncio.sleep(0.15)
        await pilot.pause()
        assert sent(app) == []
        assert any("More than one line" in line for line in said(app))
        field.action_paste()
        assert field.value == ""


async def test_a_second_line_that_a_busy_app_holds_back_still_came_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with wizard(at.APPROVING) as (app, pilot):
        await pilot.press("p")
        await asyncio.sleep(QUIET_S)
        await type_out(pilot, at.PHRASE.text)
        monkeypatch.setattr(app._keys, "passed", lambda _message: None)  # the key after Enter comes late
        app.post_message(events.Key("enter", "\r"))
        app.post_message(events.Key("y", "y"))
        await until(pilot, lambda: any("More than one line" in line for line in said(app)))
        assert sent(app) == []


async def test_a_new_proof_closes_the_line_that_the_old_one_was_typed_into() -> None:
    async with wizard(at.APPROVING) as (app, pilot):
        await pilot.press("p")
        await asyncio.sleep(QUIET_S)
        await type_out(pilot, "destroy")
        other = replace(at.PHRASE, text=at.PHRASE.text[:-1] + "b", proof="sha256:" + "e" * 64)  # type: ignore[arg-type]
        await turn(app, pilot, replace(at.APPROVING, phrase=other))
        assert app.screen.query_one(PhraseInput).value == ""
        await pilot.press("enter")
        await asyncio.sleep(0.15)
        assert sent(app) == []


@pytest.mark.parametrize(("word", "meant"), [("gone", "gone"), ("there", "there"), ("hm", "unsure")])
async def test_the_operators_word_is_typed(word: str, meant: str) -> None:
    async with wizard(at.BY_HAND) as (app, pilot):
        (command,) = await typed(app, pilot, word)
        assert isinstance(command, GiveWord)
        assert command.word == meant

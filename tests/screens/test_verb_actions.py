"""Actions that hand the terminal to a verb: what they run, and that the command line takes all of it."""

from __future__ import annotations

import argparse
import importlib

import pytest
from textual.widgets import Input

from tests.fixtures.fleet_fixture import fleet
from tests.screens.app_harness import running, until
from tui.actions import ACTIONS, BY_ID, Action, Level, for_view
from tui.cli import VERBS
from tui.model.failure import Failure
from tui.screens.command_line import CommandLine
from tui.screens.command_words import verb_words

LENDING = [action for action in ACTIONS if action.runs]
TYPED = {
    "fetch": "https://example.com/a.bin ~/a.bin --sha256 00",
    "gather": "--to '/mnt/share of all'",
    "leash": "--hours 8",
    "queue": "'my sweep.toml' --on box-1,box-2",
}


@pytest.mark.parametrize("action", LENDING, ids=lambda action: action.id)
def test_the_verb_takes_the_words_with_and_without_what_may_be_typed(action: Action) -> None:
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers(required=True)
    importlib.import_module(f"tui.verbs.{VERBS[action.verb].module}").register(sub)
    for text in {TYPED.get(action.id, ""), "" if action.takes.startswith("[") else TYPED.get(action.id, "")}:
        words = verb_words(action, "box-1", "run-1", text)
        assert words[0] == action.verb
        assert not any("{" in word for word in words)
        parser.parse_args(words)
    assert (action.id in TYPED) == bool(action.takes)


def test_what_was_typed_is_read_as_a_shell_does_and_never_by_one() -> None:
    assert verb_words(BY_ID["gather"], "b", "r", TYPED["gather"])[-1] == "/mnt/share of all"
    assert verb_words(BY_ID["fetch"], "b", None, "u 'a;$(id)'") == ["fetch", "b", "u", "a;$(id)"]
    with pytest.raises(Failure, match="does not end"):
        verb_words(BY_ID["fetch"], "b", None, "u 'a")
    with pytest.raises(Failure, match="No run on b is selected"):
        verb_words(BY_ID["cadence"], "b", None)


def test_read_only_keeps_those_that_only_look() -> None:
    kept = {action.id for action in for_view("fleet", read_only=True)} & {one.id for one in LENDING}
    assert kept == {"gpu", "mirrors", "cadence"}
    assert all(action.level == Level.OBSERVE for action in LENDING if action.id in kept)


async def test_one_that_must_be_told_something_opens_the_line_for_it() -> None:
    async with running(fleet(), rgt=("false",)) as (app, pilot):
        await app.perform("fetch")
        await until(pilot, lambda: isinstance(app.screen, CommandLine) and bool(app.screen.query(Input)))
        assert app.screen.query_one(Input).value == "fetch "

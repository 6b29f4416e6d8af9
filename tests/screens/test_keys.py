"""Bindings, their names for people, and what read-only mode leaves."""

from __future__ import annotations

import pytest
from textual.keys import _character_to_key

from tui.actions import ACTIONS, Level, for_view
from tui.screens.keys import MOVES, act, bindings_for, shown

VIEWS = (
    "fleet", "run", "log", "help", "commands", "messages", "explain", "forwards", "adopt", "theme",
    "launch", "matrix", "handbook", "setup", "teardown", "triage", "storage", "reclaim", "cards",
)  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("read_only", [False, True])
def test_no_key_has_two_meanings(view: str, read_only: bool) -> None:
    keys = [b.key for b in bindings_for(view, read_only=read_only)]
    assert len(keys) == len(set(keys))
    moves = {key for names, _, _ in MOVES for key in names}
    assert not moves & set(keys)
    assert not {"ctrl+a", "ctrl+b", "ctrl+h", "ctrl+i", "ctrl+m"} & set(
        keys
    )  # tmux, screen and terminals eat them


@pytest.mark.parametrize("view", VIEWS)
def test_read_only_binds_nothing_that_changes_something(view: str) -> None:
    bound = {b.id for b in bindings_for(view, read_only=True)}
    assert bound
    assert not bound & {a.id for a in ACTIONS if a.level > Level.OBSERVE}


def test_overrides_replace_keys_and_may_take_them_away() -> None:
    bound = bindings_for("fleet", read_only=False, overrides={"sort": ("S", "o"), "probe": ()})
    assert {b.key for b in bound if b.id == "sort"} == {"S", "o"}
    assert not [b for b in bound if b.id == "probe"]
    assert all(b.action == act(str(b.id)) for b in bound)


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("question_mark", "?"),
        ("full_stop", "."),
        ("exclamation_mark", "!"),
        ("right_square_bracket", "]"),
        ("slash", "/"),
        ("colon", ":"),
        ("plus", "+"),
        ("escape", "esc"),
        ("ctrl+q", "ctrl+q"),
        ("G", "G"),
        ("f1", "f1"),
    ],
)
def test_keys_as_people_write_them(key: str, written: str) -> None:
    assert shown(key) == written


def test_every_key_of_the_registry_can_be_written_in_ascii() -> None:
    for action in ACTIONS:
        for key in action.keys:
            assert shown(key, ascii_only=True).isascii()


def test_single_character_keys_are_spelled_as_textual_does() -> None:
    for action in for_view("fleet", read_only=False):
        for key in action.keys:
            assert len(key) > 1 or _character_to_key(key) == key

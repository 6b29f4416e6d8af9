"""`rgt add ssh -p 34567 root@host`: which words are ssh's and which are rgt's."""

from __future__ import annotations

import argparse

import pytest

from tui.verbs import fleet, unquoted
from tui.verbs.unquoted import arranged, as_text

LOGIN = ["ssh", "-p", "34567", "root@h.example.com"]


@pytest.mark.parametrize(
    ("given", "own"),
    [
        (LOGIN, []),
        (["--dry-run", "--json", *LOGIN], ["--dry-run", "--json"]),
        (["--name", "ssh", *LOGIN], ["--name", "ssh"]),
        ([*LOGIN, "--dry-run", "--json"], ["--dry-run", "--json"]),
        ([*LOGIN, "--name", "a", "--price=2"], ["--name", "a", "--price=2"]),
        (["--json", *LOGIN, "--name", "a"], ["--json", "--name", "a"]),
        ([*LOGIN, "--dryrun"], ["--dryrun"]),  # a typing error that rgt must see
    ],
)
def test_own_options_stand_before_and_at_the_end(given: list[str], own: list[str]) -> None:
    assert arranged(["add", *given]) == ["add", *own, "--", *LOGIN]


def test_what_stands_inside_the_command_is_the_commands() -> None:
    words = [*LOGIN, "train", "--name", "x", "y"]
    assert arranged(["add", *words]) == ["add", "--", *words]
    assert arranged(["add", "rsync", "-a", "x", "root@h:", "--progress"])[-1] == "--progress"


@pytest.mark.parametrize(
    "words",
    [
        ["add", " ".join(LOGIN), "--dry-run"],
        ["add", "--name", "ssh", "root@h"],
        ["add", "ssh"],
        ["add", "--", *LOGIN],
    ],
)
def test_other_lines_stay_as_they_are(words: list[str]) -> None:
    assert arranged(words) == words


def test_the_words_keep_the_quotes_of_the_shell() -> None:
    assert as_text(["ssh", "-i", "my key.pem", "root@h"]) == "ssh -i 'my key.pem' root@h"
    assert as_text(["root@h", "-p", "3"]) == "root@h -p 3"
    assert as_text(["ssh -p 3 root@h"]) == "ssh -p 3 root@h"


def test_every_option_of_add_with_a_value_is_known() -> None:
    parser = argparse.ArgumentParser()
    fleet.register(parser.add_subparsers())
    add = next(a.choices["add"] for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    valued = {name for action in add._actions if action.nargs is None for name in action.option_strings}
    assert valued <= set(unquoted._VALUED)
    assert {"--name", "--price"} <= valued

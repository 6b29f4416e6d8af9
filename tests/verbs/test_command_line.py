"""How the command line is read: options before the verb, and one line for what is wrong with it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from tui.cli import GROUPS, VERBS, main
from tui.verbs import demo, screen


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    "words",
    [
        ["forward", "box", "99999"],
        ["watch"],
        ["watch", "box", "--pid", "x"],
        ["watch", "box", "--pid", "1", "--session", "s"],
        ["logs", "run", "-n", "-2"],
        ["logs", "run", "-n", "\x1b[31m"],
        ["status", "--nonsense"],
        ["add", "ssh", "-p", "22", "root@host", "--dryrun"],
        ["--glyphs", "round"],
        ["demo", "--color", "pink"],
    ],
)
def test_a_wrong_command_line_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("rgt: ")
    assert shown.err.count("\n") == 1
    assert "\x1b" not in shown.err


@pytest.mark.parametrize("verb", VERBS)
def test_help_says_what_a_verb_and_each_of_its_words_is_for(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit) as left:
        main([verb, "--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert " ".join(VERBS[verb].help.split())[1:] in " ".join(shown.split()).replace("- ", "-")
    assert all(len(line) <= 60 for line in shown.splitlines())
    bare = re.compile(r"^  (?:-\S+(?:, --\S+)?(?: [A-Z]+)?|[A-Z]+)$")
    lines = shown.splitlines()
    for at, line in enumerate(lines):  # a word alone on its line is explained on the next
        assert not bare.match(line) or lines[at + 1].startswith("     "), line
    assert ("--json" in shown) <= ("--plain" in shown)


def test_a_paste_needs_no_quotes(tmp_path: Path) -> None:
    assert main(["add", "ssh", "-p", "2222", "root@host"]) == 0
    assert "port = 2222" in (tmp_path / "home" / "config" / "fleet.toml").read_text()


class Asked(list[argparse.Namespace]):
    """A verb that only remembers what it was called with."""

    def __call__(self, args: argparse.Namespace) -> int:
        self.append(args)
        return 0


def test_options_before_the_verb_count(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    monkeypatch.setattr(demo, "demo", asked)
    assert main(["--read-only", "--theme", "light", "demo", "--seed", "1"]) == 0
    assert main(["demo", "--theme", "dark"]) == 0
    assert main(["demo"]) == 0
    assert [(a.read_only, a.theme, a.glyphs) for a in asked] == [
        (True, "light", None),
        (False, "dark", None),
        (False, None, None),
    ]


def test_a_theme_is_not_taken_for_a_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    monkeypatch.setattr(screen, "open_screen", asked)
    assert main(["--theme", "status"]) == 0
    assert asked[0].theme == "status"


def test_help_shows_every_verb_once_in_the_order_of_use(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each, no wider than a small terminal, below what its group is for."""
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = capsys.readouterr().out.partition("verbs (")[2].partition("exit codes")[0].splitlines()
    shown = [line.split()[0] for line in lines if re.match(r"  [a-z]", line)]
    assert sorted(shown) == sorted(VERBS)
    assert shown.index("setup") < shown.index("push") < shown.index("launch") < shown.index("triage")
    assert shown.index("triage") < shown.index("pull") < shown.index("verify") < shown.index("down")
    assert [line.strip().partition(":")[0] for line in lines if re.match(r" [a-z]", line)] == list(GROUPS)
    assert all(len(line) <= 80 for line in lines)

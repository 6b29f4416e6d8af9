"""The `:` line: what is understood, what is offered, what is refused."""

from __future__ import annotations

import pytest

from tests.fixtures.fleet_fixture import fleet
from tui.model.failure import Exit, Failure
from tui.screens.command_words import Words, complete, parse, words_of
from tui.screens.palette import entries, ranked


def words(view: str = "fleet", *, read_only: bool = False) -> Words:
    return words_of(view, fleet(), ("dark", "light", "mono"), read_only=read_only)


@pytest.mark.parametrize(
    ("line", "action", "rest"),
    [
        ("quit", "quit", None),
        ("q", "quit", None),
        (":theme mono", "theme", "mono"),
        ("forward 6006", "forward", "6006"),
        ("forward 6006 16006 ", "forward", "6006 16006"),
        ("goto vlm-sft", "goto", "vlm-sft"),
        ("vlm-sft", "goto", "vlm-sft"),  # a name alone goes there
        ("ablate-01", "goto", "ablate-01"),
        ("explain", "explain", None),
        ("expl", "explain", None),
        ("sort inode", "sort", "inode"),
        ("ssh", "shell", None),
    ],
)
def test_understood(line: str, action: str, rest: str | None) -> None:
    found, text = parse(line, words())
    assert (found.id, text) == (action, rest)


@pytest.mark.parametrize("line", ["nonsense", "f", "quit now", "follow", "[/dev/nvme0n1]", "\x1b[31m"])
def test_refused_in_one_line(line: str) -> None:
    with pytest.raises(Failure) as caught:
        parse(line, words())
    assert caught.value.exit is Exit.USAGE
    assert caught.value.line.isprintable()


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("nonsense", "Did you mean open, reconnect or goto done-01?"),
        ("teardwon", "Did you mean teardown?"),
        ("f", "Did you mean filter, forget or forward?"),  # what it may go on to
        ("ABLATE-1", "Did you mean goto ablate-01 or goto ablate-02?"),
        ("zzzz", "Tab on an empty line goes through all of them."),
    ],
)
def test_who_mistypes_is_told_the_nearest_words(line: str, meant: str) -> None:
    with pytest.raises(Failure) as caught:
        parse(line, words())
    assert caught.value.do == meant


def test_a_long_word_is_not_said_back_whole() -> None:
    with pytest.raises(Failure) as caught:
        parse("x" * 5000, words())
    assert len(caught.value.line) < 200


def test_completion() -> None:
    assert complete("the", words())[0].line == "theme "
    assert [s.line for s in complete("theme m", words())] == ["theme mono"]
    assert "goto vlm-h100" in [s.line for s in complete("goto vlm", words())]
    assert "goto ablate-01" in [s.line for s in complete("abl", words())]
    assert [s.line for s in complete("forward ", words())] == ["forward 6006", "forward 8888"]
    assert complete("nonsense ", words()) == []


def test_read_only_knows_fewer_words() -> None:
    with pytest.raises(Failure):
        parse("shell", words(read_only=True))
    offered = {s.line.strip() for s in complete("", words(read_only=True))}
    assert "explain" in offered
    assert not offered & {"shell", "adopt", "add", "forward", "reconnect", "forget"}
    listed = {e.action for e in entries(words(read_only=True), {})}
    assert not listed & {"shell", "adopt", "add", "forward", "reconnect", "forget"}


def test_the_palette_finds_by_name_before_help() -> None:
    found = ranked("sort", entries(words(), {"sort": "s"}))
    assert (found[0].action, found[0].key) == ("sort", "s")
    assert [e.text for e in ranked("theme mo", entries(words(), {}))] == ["mono"]
    assert [e.text for e in ranked("vlm-sft", entries(words(), {}))] == ["vlm-sft"]

"""The ``:`` line as data: what a typed line means and how it can go on. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from tui.actions import Action, for_view
from tui.model.failure import Exit, Failure
from tui.model.snapshot import FleetSnapshot
from tui.model.text import safe
from tui.widgets.match import fuzzy_rank
from tui.widgets.roster_rows import SORTS

ALIASES = {"q": "quit", "quit!": "quit", "h": "help", "ssh": "shell", "watch": "adopt", "unwatch": "forget"}


@dataclass(frozen=True, slots=True)
class Words:
    """What can be said on the ``:`` line of one view.

    Attributes:
        names: boxes and runs.
        themes: names of themes.
        queues: that were started from here, as far as they are known.
    """

    actions: tuple[Action, ...]
    names: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    def action(self, word: str) -> Action | None:
        """The action of a word: its id, an alias, or a beginning that fits only one."""
        word = ALIASES.get(word, word)
        exact = [a for a in self.actions if a.id == word]
        if exact:
            return exact[0]
        begun = [a for a in self.actions if a.id.startswith(word)]
        return begun[0] if len(begun) == 1 and word else None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One way to go on: the whole line as it would stand, and what it does."""

    line: str
    help: str


def words_of(view: str, snapshot: FleetSnapshot, themes: Sequence[str], *, read_only: bool) -> Words:
    """The words of a view. Read-only mode knows fewer of them."""
    names = dict.fromkeys([*(b.name for b in snapshot.boxes), *(r.name for r in snapshot.runs)])
    matrix = snapshot.matrix
    queues = (matrix.queue, *matrix.others) if matrix is not None and matrix.queue else ()
    return Words(for_view(view, read_only=read_only), tuple(names), tuple(themes), queues)


def parse(line: str, words: Words) -> tuple[Action, str | None]:
    """The action a line asks for, and its argument.

    Raises:
        Failure: no such command here, or it takes something else.
    """
    head, _, rest = line.strip().lstrip(":").partition(" ")
    rest = rest.strip()
    action = words.action(head)
    if action is None:
        if not rest and head in words.names and (goto := words.action("goto")) is not None:
            return goto, head
        what = f"There is no command {str(safe(head, 40))!r} here."
        raise Failure(what, do=_meant(head, words), exit=Exit.USAGE)
    if rest and not action.takes:
        raise Failure(f"{action.id} takes nothing, but {rest!r} follows it.", exit=Exit.USAGE)
    return action, rest or None


_SLIP, _NEAR = 0.65, 0.4
"""How alike two words are of which one is a slip of the finger, and those that may be meant at all."""


def _meant(typed: str, words: Words) -> str:
    """The words nearest to one that there is none of: those it can go on to, else those spelt like it."""
    near = [one.line.strip() for one in complete(typed, words)][:3]
    if not near:
        spelt = {word: word for word in (*(a.id for a in words.actions), *ALIASES) if words.action(word)}
        spelt |= {f"goto {name}": name for name in words.names if words.action("goto")}
        lines = {word.casefold(): line for line, word in spelt.items()}
        alike = (get_close_matches(typed.casefold(), lines, 3, cutoff) for cutoff in (_SLIP, _NEAR))
        near = [safe(lines[word]) for word in next(filter(None, alike), [])]
    if not near:
        return "Tab on an empty line goes through all of them."
    *others, last = near
    return f"Did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def verb_words(action: Action, box: str, run: str | None, text: str = "") -> list[str]:
    """The words of the verb that an action hands the terminal to.

    Args:
        run: the selected one.
        text: what was typed after the action, as in a shell.

    Raises:
        Failure: there is no run, or a quote does not end.
    """
    if run is None and "{run}" in action.runs:
        raise Failure(f"No run on {safe(box)} is selected.", do="Select one first.", exit=Exit.USAGE)
    try:
        typed = shlex.split(text)
    except ValueError:
        raise Failure(f"A quote in {safe(text, 80)!r} does not end.", exit=Exit.USAGE) from None
    names = {"{box}": box, "{run}": run or ""}
    return [*(names.get(word, word) for word in action.runs), *typed]


def complete(line: str, words: Words) -> list[Suggestion]:
    """How a line can go on, best first."""
    head, blank, rest = line.lstrip(":").partition(" ")
    if not blank:
        ranked = [(rank, a) for a in words.actions if (rank := _rank(head, a)) is not None]
        ranked.sort(key=lambda pair: pair[0])
        found = [Suggestion(a.id + (" " if a.takes else ""), a.help) for _, a in ranked]
        names = [Suggestion(f"goto {n}", "") for n in words.names if head and n.startswith(head)]
        return found + (names if words.action("goto") else [])
    action = words.action(head)
    if action is None:
        return []
    return [
        Suggestion(f"{action.id} {value}", "")
        for value in _values(action, words)
        if fuzzy_rank(rest, value) is not None
    ]


def _rank(typed: str, action: Action) -> int | None:
    by_id = fuzzy_rank(typed, action.id)
    if by_id is not None and by_id < 100:
        return by_id
    by_label = fuzzy_rank(typed, action.label)
    return 30 + by_label if by_label is not None and by_label < 100 else by_id


def _values(action: Action, words: Words) -> tuple[str, ...]:
    if action.id == "theme":
        return words.themes
    if action.id == "matrix":
        return words.queues
    if action.id == "sort":
        return SORTS
    if action.id == "forward":
        return ("6006", "8888")
    return words.names if action.takes in ("NAME", "BOX") else ()

"""Help for the view it was called from: its keys and what can be typed, all from the registry."""

from __future__ import annotations

from collections.abc import Mapping

from textual import on
from textual.app import ComposeResult

from tui.actions import Level, for_view
from tui.model.snapshot import FleetSnapshot
from tui.screens.keys import MOVES, keys_of, shown
from tui.screens.view import View
from tui.widgets.footer import Footer
from tui.widgets.lines import Line, Span, fit, wrap
from tui.widgets.picker import Item, Picker
from tui.widgets.rule import Rule

FIRST = 1
"""The line of the first action, below its heading."""

_FILTER = (
    ("words", "what holds all of them"),
    ("!words", "what does not"),
    ("/regex/", "what matches it"),
    ("-f abc", "what has these letters in this order"),
)
_SECTIONS = (
    (Level.OBSERVE, "looks, and changes nothing"),
    (Level.LOCAL, "changes something on this computer"),
    (Level.REMOTE, "acts on the box or costs money; shows a plan first"),
    (Level.IRREVERSIBLE, "irreversible; asks for proof and a typed phrase first"),
)
"""An action stands under the most that can come of it, so that nothing that costs is met by the way."""


def help_lines(
    view: str,
    width: int,
    *,
    read_only: bool,
    overrides: Mapping[str, tuple[str, ...]],
    ascii_only: bool = False,
) -> list[Line]:
    """What works in `view`, as lines of at most `width` cells."""
    actions = for_view(view, read_only=read_only)
    own = [a for a in actions if "*" not in a.views and keys_of(a, overrides)]
    everywhere = [a for a in actions if "*" in a.views and keys_of(a, overrides)]
    typed = [a for a in actions if a.takes]

    def keys(names: tuple[str, ...]) -> str:
        return " ".join(shown(name, ascii_only=ascii_only) for name in names)

    lines: list[Line] = []
    for level, title in _SECTIONS:
        listed = [(keys(keys_of(a, overrides)), a.help) for a in own if a.level == level]
        lines += _section(title, listed, width)
    lines += _section("move", [(keys(names), text) for names, _, text in MOVES], width)
    lines.append(_entry("1 to 9", "select the item in that place", width)[0])
    if view == "fleet":
        arrows = keys(("left", "right"))
        lines += _entry(arrows, "the value that e explains and y copies", width)
    lines += _section("everywhere", [(keys(keys_of(a, overrides)), a.help) for a in everywhere], width)
    lines += _section("typed after :", [(f"{a.id} {a.takes}", a.help) for a in typed], width)
    lines += _section("typed after /", list(_FILTER), width)
    return lines[1:]


def _section(title: str, entries: list[tuple[str, str]], width: int) -> list[Line]:
    lines: list[Line] = [(), ((f"  {title}", "dim"),)]
    for key, text in entries:
        lines += _entry(key, text, width)
    return lines if entries else []


def _entry(key: str, text: str, width: int) -> list[Line]:
    column = 18
    parts = wrap(text, max(10, width - column - 2)) or [""]
    first: Line = ((fit(f"  {key}", column), "strong"), (parts[0], ""))
    return [first, *(((" " * column, ""), (part, "")) for part in parts[1:])]


class HelpScreen(View):
    """Help for one view.

    Args:
        about: the view that is explained.
    """

    VIEW = "help"

    def __init__(self, about: str) -> None:
        super().__init__()
        self._about = about

    def compose(self) -> ComposeResult:
        yield Rule(f"help: {self._about}")
        yield Picker()
        yield Footer()

    def on_resize(self) -> None:
        self._draw()

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        self.query_one(Footer).offer([*self.verbs("back"), *self.verbs("command")])

    def _draw(self) -> None:
        lines = help_lines(
            self._about,
            self.size.width,
            read_only=self.host.read_only,
            overrides=self.host.key_overrides,
            ascii_only=self.host.glyphs.name == "ascii",
        )
        picker = self.query_one(Picker)
        picker.show_items([Item(n, line) for n, line in enumerate(lines)])
        if not picker.moved:
            picker.place(FIRST)
        self._say_where()

    @on(Picker.Moved)
    def _say_where(self) -> None:
        """A list that goes on below says so, and how far."""
        picker = self.query_one(Picker)
        total = len(picker.items)
        more = total > picker.room
        right: list[Span] = [(f"{picker.last} of {total} lines", "dim")] if more else []
        self.query_one(Rule).label(f"help: {self._about}", right)

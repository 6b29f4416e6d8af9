"""The command palette: every command, box, run and theme, found by a few letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from tui.model.text import safe
from tui.screens.command_words import Words
from tui.screens.view import Sheet
from tui.widgets.lines import Lines, Span, fit
from tui.widgets.match import fuzzy_rank
from tui.widgets.picker import Item, Picker
from tui.widgets.rule import Rule

ROOMY = 76
"""From this width on long names have room beside what they do."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to choose: the action and its argument, its name, what it does, its key."""

    action: str
    text: str | None
    name: str
    help: str
    key: str = ""


def entries(words: Words, keys: dict[str, str]) -> list[Entry]:
    """Everything the palette offers: actions first, then places to go to, then themes."""
    found = [Entry(a.id, None, a.label.removeprefix(": "), a.help, keys.get(a.id, "")) for a in words.actions]
    found += [Entry("goto", name, f"go to {safe(name)}", "box or run") for name in words.names]
    found += [Entry("theme", name, f"theme {safe(name)}", "change the colours") for name in words.themes]
    return [e for e in found if e.action not in ("palette", "theme", "goto") or e.text is not None]


def ranked(query: str, all_entries: Sequence[Entry]) -> list[Entry]:
    """The entries that fit, best first, in their own order where they fit equally well."""
    scored = []
    for place, entry in enumerate(all_entries):
        by_name = fuzzy_rank(query, entry.name)
        by_help = fuzzy_rank(query, entry.help)
        scores = [s for s in (by_name, None if by_help is None else by_help + 50) if s is not None]
        if scores:
            scored.append((min(scores), place, entry))
    if any(score < 100 for score, _, _ in scored):
        scored = [s for s in scored if s[0] < 100]  # letters merely in order only when nothing better fits
    return [entry for _, _, entry in sorted(scored, key=lambda s: s[:2])]


class Palette(Sheet[tuple[str, str | None]]):
    """Returns the chosen action's id and its argument."""

    CSS_PATH = "sheet.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", "down", show=False, priority=True),
        Binding("up", "move(-1)", "up", show=False, priority=True),
    ]

    def __init__(self, all_entries: Sequence[Entry]) -> None:
        super().__init__()
        self._all = list(all_entries)
        self._found = self._all

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Rule("palette", id="title")
            with Horizontal(classes="entry"):
                yield Lines((((" ", ""),),), classes="sign")
                yield Input(compact=True, placeholder="a few letters")
            picker = Picker(id="found")
            picker.can_focus = False
            yield picker

    def on_mount(self) -> None:
        field = self.query_one(Input)
        field.cursor_blink = False
        field.focus()
        self._show()

    def on_resize(self) -> None:
        self._show()

    def action_move(self, step: int) -> None:
        picker = self.query_one(Picker)
        picker.move_to(picker.cursor + step)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._found = ranked(event.value, self._all)
        self._show()
        self.query_one(Picker).move_to(0)

    def _show(self) -> None:
        found = f"{len(self._found)} of {len(self._all)}   "
        keys: list[Span] = [(found, "dim"), ("enter", "strong"), (" does it   ", "dim"), ("esc", "strong")]
        self.query_one("#title", Rule).label("palette", [*keys, (" leaves", "dim")])
        picker = self.query_one(Picker)
        picker.styles.height = max(1, min(12, self.size.height - 6))
        cells = 26 if self.size.width >= ROOMY else 18
        if not self._found:
            picker.show_items([Item(None, (("  No command matches.", "dim"),))])
            return
        picker.show_items(
            [
                Item(
                    (e.action, e.text),
                    (
                        (f"  {fit(e.key, 8)}", "dim"),
                        (fit(f"{e.name} ", cells, ellipsis=self.host.glyphs.ellipsis), "strong"),
                        (e.help, "dim"),
                    ),
                )
                for e in self._found
            ]
        )

    @on(Input.Submitted)
    def _chosen(self) -> None:
        selected = self.query_one(Picker).selected
        if isinstance(selected, tuple):
            action, text = selected
            self.dismiss((str(action), text))

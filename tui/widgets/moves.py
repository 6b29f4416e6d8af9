"""Movement keys, the same in every list and in the log."""

from __future__ import annotations

from textual.binding import Binding

MOVES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("down", "j"), "cursor_down", "one down"),
    (("up", "k"), "cursor_up", "one up"),
    (("pagedown", "ctrl+d"), "page_down", "one page down"),
    (("pageup", "ctrl+u"), "page_up", "one page up"),
    (("home", "g"), "first", "first"),
    (("end", "G"), "last", "last"),
)
"""Keys in Textual's spelling, the widget's method ``action_<name>``, what it does."""


def move_bindings() -> list[Binding]:
    """Movement for a widget that has the methods ``action_cursor_down`` and so on."""
    return [Binding(key, name, help_, show=False) for keys, name, help_ in MOVES for key in keys]

"""Span styles, made straight from the theme's variables and shared by all widgets of an app.

Textual's component classes would be matched against every stylesheet rule for every widget, at each start
and each class change: measured at a third of the time to the first frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.errors import StyleSyntaxError
from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError

STYLES = frozenset(
    (
        "dim",
        "rule",
        "graph",
        "title",
        "accent",
        "attention",
        "danger",
        "fine",
        "money",
        "strong",
        "under",
        "cursor",
        "edge",
    )
)
"""Style names a span may carry."""

_COLOURED = ("dim", "rule", "accent", "attention", "danger", "money")
_KEPT = "_rgt_ink"
AREA = 0.4
"""How far the colour of history strips lies from that of quiet letters towards the background."""


class Ink:
    """The styles of one theme. Unknown names and missing variables draw plain."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables
        selection = _style(variables.get("c-selection-style"))
        self._plain = {
            **{
                name: _colour(variables, f"c-{name}") + _style(variables.get(f"c-{name}-style"))
                for name in _COLOURED
            },
            "title": Style(bold=True),
            "strong": Style(bold=True),
            "under": Style(underline=True),
            "fine": Style(),
            "cursor": _colour(variables, "c-selection-text", "c-selection-bg") + selection,
        }
        # A reversed row would make a block of the cursor's half cell.
        self._plain["edge"] = self._plain["accent"] + Style(reverse=False if selection.reverse else None)
        self._plain["graph"] = self._plain["dim"] + _between(variables, "c-dim", "c-background")
        self._mixed: dict[str, Style] = {"": Style()}

    def style(self, names: str) -> Style:
        """The style of names separated by blanks, later ones over earlier ones."""
        found = self._mixed.get(names)
        if found is None:
            found = Style()
            for name in names.split():
                found += self._plain.get(name, Style())
            self._mixed[names] = found
        return found

    def flat(self, names: str) -> Style:
        """The same for a reversed row: colours would be blocks there, so only weight and lines are left."""
        if names == "edge":
            return self.style(names)
        found = self.style(names)
        return Style(bold=found.bold, underline=found.underline, italic=found.italic)


def ink_of(app: App[Any]) -> Ink:
    """The styles of the theme that the app wears now."""
    variables = app.theme_variables
    kept = getattr(app, _KEPT, None)
    if not isinstance(kept, Ink) or kept.variables is not variables:
        kept = Ink(variables)
        setattr(app, _KEPT, kept)
    return kept


def _colour(variables: Mapping[str, str], name: str, behind: str = "") -> Style:
    try:
        colour = Color.parse(variables[name]).rich_color
        back = Color.parse(variables[behind]).rich_color if behind else None
    except (KeyError, ColorParseError):
        return Style()
    return Style(color=colour, bgcolor=back)


def _between(variables: Mapping[str, str], ink: str, paper: str) -> Style:
    """A colour of large areas: nearer to the paper than letters are. Only true colours can be blended."""
    try:
        colours = [Color.parse(variables[name]) for name in (ink, paper)]
    except (KeyError, ColorParseError):
        return Style()
    if any(colour.ansi is not None for colour in colours):
        return Style()
    return Style(color=colours[0].blend(colours[1], AREA).rich_color)


def _style(words: str | None) -> Style:
    try:
        return Style() if words in (None, "", "none") else Style.parse(words)
    except StyleSyntaxError:
        return Style()

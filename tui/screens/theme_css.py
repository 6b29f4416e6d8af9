"""A theme of ours as Textual wants it. Every CSS variable has a default, so no theme can stop the start."""

from __future__ import annotations

from collections.abc import Mapping

from rich.terminal_theme import TerminalTheme
from textual.theme import Theme

from tui.fleet.themes import DEFAULT, PLAIN, SIXTEEN, ThemeSpec

STYLED = ("accent", "attention", "danger", "dim", "money", "rule", "selection")
"""Parts that may carry a text style."""


def variables(spec: ThemeSpec) -> dict[str, str]:
    """The CSS variables ``$c-PART`` and ``$c-PART-style`` of a theme; underscores become dashes."""
    found = {f"c-{part.replace('_', '-')}": _colour(value) for part, value in spec.colours.items()}
    found |= {f"c-{part}-style": spec.styles.get(part) or "none" for part in STYLED}
    return found


def defaults() -> Mapping[str, str]:
    """A value for each variable, for a theme that lacks it."""
    return variables(PLAIN)


def to_textual(spec: ThemeSpec, edition: int = 0) -> Theme:
    """The theme for `App.register_theme`, named ``rgt-NAME`` so that it never meets Textual's own."""
    accent = _colour(spec.accent if spec.accent != DEFAULT else spec.text)
    own = variables(spec)
    if spec.ansi:
        # Textual can't blend the terminal's own colours; its widgets get plain ones.
        own |= {"ansi-background": "ansi_black", "ansi-foreground": "ansi_white"}
    return Theme(
        name=theme_id(spec.name, edition),
        primary=accent,
        secondary=accent,
        accent=accent,
        warning=_colour(spec.attention),
        error=_colour(spec.danger),
        success=accent,
        foreground=_colour(spec.text),
        background=_colour(spec.background),
        surface=_colour(spec.surface),
        panel=_colour(spec.panel),
        boost=_colour(spec.panel),
        dark=spec.dark,
        ansi=spec.ansi,
        variables=own,
    )


def log_colours(spec: ThemeSpec) -> TerminalTheme | None:
    """What the sixteen colours in a log mean under a theme; None where it leaves them to others."""
    if spec.ansi or not spec.sixteen:
        return None
    values = [_triplet(spec.sixteen[name]) for name in SIXTEEN]
    return TerminalTheme(_triplet(spec.background), _triplet(spec.text), values[:8], values[8:])


def _triplet(value: str) -> tuple[int, int, int]:
    red, green, blue = (int(value[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def theme_id(name: str, edition: int = 0) -> str:
    """The name a theme is registered under; `edition` counts how often files were edited meanwhile."""
    return f"rgt-{name}" + (f"-{edition}" if edition else "")


def _colour(value: str) -> str:
    return "ansi_default" if value == DEFAULT else value

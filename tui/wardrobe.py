"""The themes that there are, and which of them is worn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textual.app import App

from tui.fleet.themes import PLAIN, ThemeSpec
from tui.model.failure import Failure
from tui.screens.theme_css import log_colours, theme_id, to_textual


class Wardrobe:
    """The themes of `app`.

    Args:
        themes: by name; none: the plain one.

    Attributes:
        worn: name of the theme that is worn.
    """

    def __init__(self, app: App[Any], themes: Mapping[str, ThemeSpec] | None) -> None:
        self._app = app
        self._themes = dict(themes or {PLAIN.name: PLAIN})
        self._edition = 0
        self.worn = ""

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._themes)

    def open(self, theme: str) -> None:
        """Hang up all of them, and wear this one; the first where there is none of that name."""
        self._hang_up()
        self.wear(theme if theme in self._themes else next(iter(self._themes)))

    def wear(self, name: str) -> None:
        """Change the theme. Raises Failure for one that does not exist."""
        if name not in self._themes:
            raise Failure(f"There is no theme {name!r}.", do=f"Themes: {', '.join(self._themes)}.")
        self.worn = name
        if (colours := log_colours(self._themes[name])) is not None:
            self._app.ansi_theme_dark = self._app.ansi_theme_light = colours
        self._app.theme = theme_id(name, self._edition)

    def take(self, themes: Mapping[str, ThemeSpec]) -> None:
        """Put edited theme files to use at once. One that can no longer be read stays as it was."""
        if changed := {name: spec for name, spec in themes.items() if self._themes.get(name) != spec}:
            self._themes |= changed
            self._edition += 1  # Textual redraws for a theme of another name only
            self._hang_up()
            self.wear(self.worn)

    def _hang_up(self) -> None:
        for spec in self._themes.values():
            self._app.register_theme(to_textual(spec, self._edition))

"""Choose a theme; the cursor tries it on, esc puts the old one back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType

from tui.screens.list_view import ListView
from tui.widgets.footer import Verb
from tui.widgets.lines import Line
from tui.widgets.picker import Item, Picker


class ThemeScreen(ListView):
    """All themes, shipped and the operator's own.

    Args:
        current: name of the theme worn now.
    """

    VIEW = "theme"
    HEADING: ClassVar[str] = "theme"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "keep", "keep", show=False)]

    def __init__(self, current: str) -> None:
        super().__init__()
        self._current = current

    def on_mount(self) -> None:
        self._refresh()
        self.query_one(Picker).select(self._current)

    def items(self, width: int) -> tuple[Line | None, Sequence[Item]]:
        samples: tuple[tuple[str, str], ...] = (
            ("running  ", ""),
            (f"{self.host.glyphs.attention} attention  ", "attention"),
            (f"{self.host.glyphs.attention} danger  ", "danger"),
            ("unknown 4m  ", "dim"),
            ("1.98 $/h", "money"),
        )
        return None, [Item(name, ((f"  {name:22}", "strong"), *samples)) for name in self.host.theme_names]

    def keys(self) -> list[Verb]:
        return [Verb("enter", "keep", 1), *self.verbs("back")]

    @on(Picker.Moved)
    def _try(self) -> None:
        name = self.query_one(Picker).selected
        if isinstance(name, str) and name in self.host.theme_names:
            self.host.wear(name)

    def action_keep(self) -> None:
        """Keep the theme under the cursor, also for the next start."""
        self.host.keep_theme(self.host.worn)
        self.dismiss()

    def action_back(self) -> None:
        self.host.wear(self._current)
        self.dismiss()

"""Forwarded ports of all boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.model.command import CloseForward
from tui.screens.list_view import ListView
from tui.widgets.footer import Verb
from tui.widgets.lines import Line, fit
from tui.widgets.picker import Item, Picker


class ForwardsScreen(ListView):
    """Lists forwarded ports; `x` closes one, `y` copies its address."""

    VIEW = "forwards"
    HEADING: ClassVar[str] = "forwarded ports"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x,delete", "close", "close", show=False)]

    def items(self, width: int) -> tuple[Line | None, Sequence[Item]]:
        found = []
        for box in self.host.snapshot.boxes:
            for forward in box.forwards:
                address = f"http://127.0.0.1:{forward.local_port}"
                line: Line = (
                    ("  ", ""),
                    (fit(address, 28), "strong"),
                    (fit(f"{box.name}:{forward.port}", 30), ""),
                    (forward.note, "dim"),
                )
                found.append(Item((box.name, forward.port, forward.local_port), line))
        return ((f"  {'HERE':28}{'ON THE BOX':30}", "dim"),), found

    def nothing(self) -> str:
        return "No port is forwarded. On a box, :forward 6006 brings its TensorBoard to this computer."

    def keys(self) -> list[Verb]:
        own = [] if self.host.read_only or self._selected() is None else [Verb("x", "close", 2)]
        return [*self.verbs("back", "copy"), *own]

    def _selected(self) -> tuple[str, int, int] | None:
        key = self.query_one(Picker).selected
        return key if isinstance(key, tuple) else None

    def action_close(self) -> None:
        """Close the forward under the cursor."""
        key = self._selected()
        if key is None or self.host.read_only:
            return
        if self.host.send(CloseForward(key[0], key[1])):
            self.host.say(f"Closing {key[0]}:{key[1]}.")

    def action_copy(self) -> None:
        key = self._selected()
        text = f"http://127.0.0.1:{key[2]}" if key else ""
        self.host.say(self.host.copy_text(text) if text else "There is nothing here to copy.")

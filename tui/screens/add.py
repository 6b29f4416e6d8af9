"""Add a box from what a platform's console shows. What is pasted is never echoed: it may hold a password."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input

from tui.model.failure import Failure
from tui.model.text import safe
from tui.screens.host import AddBox
from tui.screens.view import Sheet
from tui.widgets.lines import Line, Lines, fit, wrap
from tui.widgets.rule import Rule

PASTE_LIMIT = 8192
SETTLE_S = 0.08
"""What follows enter sooner than this was pasted by a terminal that does not say so, not typed."""


class PasteInput(Input):
    """Takes a paste whole, also of several lines, and keeps it to itself."""

    def __init__(self) -> None:
        super().__init__(
            compact=True, placeholder="paste, or type: ssh -p 34567 root@connect.west.example.com"
        )
        self.pasted = ""
        self._settling: Timer | None = None

    async def _on_key(self, event: events.Key) -> None:
        """Wait a moment after enter: `screen` and old terminals send a paste of several lines as keys."""
        if event.key == "enter":
            self._take(event, "\n" if self.pasted else "")
        elif self._settling is not None and event.character is not None:
            self._take(event, ("" if self.pasted else f"{self.value}\n") + event.character)
            self.value = ""
        else:
            await super()._on_key(event)

    def _take(self, event: events.Key, text: str) -> None:
        event.stop()
        event.prevent_default()
        self.pasted = (self.pasted + text)[:PASTE_LIMIT]
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_S, self._settled)

    def _settled(self) -> None:
        self._settling = None
        self.post_message(self.Submitted(self, self.value))

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.pasted = event.text[:PASTE_LIMIT]
        self.value = ""
        self.post_message(self.Submitted(self, ""))


class AddSheet(Sheet[None]):
    """First the command, then a name; shows what was understood in between.

    Args:
        add: parses and saves; given by the app.
    """

    CSS_PATH = "sheet.tcss"

    def __init__(self, add: AddBox) -> None:
        super().__init__()
        self._add = add
        self._source = ""
        self._understood: list[Line] = []

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Rule("add a box")
            yield Lines(id="text")
            with Horizontal(classes="entry", id="first"):
                yield Lines(((("  ssh command", "dim"),),), classes="label")
                yield PasteInput()
            with Horizontal(classes="entry", id="second"):
                yield Lines(((("  name", "dim"),),), classes="label")
                yield Input(compact=True, id="name")
            yield Lines(id="keys")

    def on_mount(self) -> None:
        for field in self.query(Input):
            field.cursor_blink = False
        self.query_one("#second").display = False
        self.query_one(PasteInput).focus()
        self._say("Paste what the console shows. A password in it is neither shown nor kept.")

    @on(Input.Submitted)
    async def _entered(self, event: Input.Submitted) -> None:
        if event.input.id == "name":
            await self._save(event.value.strip())
            return
        field = self.query_one(PasteInput)
        source = field.pasted or field.value
        if source.strip():
            self._preview(source)

    def _preview(self, source: str) -> None:
        try:
            understood = list(self._add.preview(source))
        except Failure as failure:
            self.query_one(PasteInput).pasted = ""
            self._say(failure.line, "attention")
            return
        self._source = source
        fields = dict(understood)
        name = self.query_one("#name", Input)
        name.value = fields.pop("name", "")
        self._understood = [((fit(f"  {k}", 14), "dim"), (safe(v), "")) for k, v in fields.items()]
        self._show(self._understood)
        self.query_one("#first").display = False
        self.query_one("#second").display = True
        name.focus()  # which selects it: typing replaces the proposal
        self._keys("adds it to fleet.toml")

    async def _save(self, name: str) -> None:
        try:
            sentence = await self._add.save(self._source, name)
        except Failure as failure:
            self._show([*self._understood, *self._wrapped(failure.line, "attention")])
            return
        self._source = ""
        self.host.say(sentence)
        self.dismiss(None)

    def _say(self, text: str, style: str = "") -> None:
        self._show(self._wrapped(text, style))
        self._keys("goes on")

    def _wrapped(self, text: str, style: str) -> list[Line]:
        return [((f"  {part}", style),) for part in wrap(safe(text), max(20, self.app.size.width - 4))]

    def _show(self, lines: list[Line]) -> None:
        box = self.query_one("#text", Lines)
        box.styles.height = len(lines)
        box.show(lines)

    def _keys(self, what: str) -> None:
        keys: Line = ((" enter", "strong"), (f" {what}   ", "dim"), ("esc", "strong"), (" cancels", "dim"))
        self.query_one("#keys", Lines).show((keys,))

"""Questions that stop a box: a password or passphrase, and a host key that must be compared by eye."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from tui.model.command import GiveSecret, TrustHostKey
from tui.model.event import HostKeyAsked, SecretAsked
from tui.model.text import safe
from tui.screens.view import Sheet
from tui.widgets.lines import Line, Lines, wrap
from tui.widgets.rule import Rule


class SecretInput(Input):
    """A masked field that gives nothing back: no copy, no cut."""

    def action_copy(self) -> None:
        """A secret does not go to any clipboard."""

    def action_cut(self) -> None:
        """A secret does not go to any clipboard."""


class SecretSheet(Sheet[None]):
    """Asks for a secret and hands it to the worker of the box. It is kept in memory only."""

    CSS_PATH = "sheet.tcss"

    def __init__(self, asked: SecretAsked) -> None:
        super().__init__()
        self._asked = asked

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Rule(f"{safe(self._asked.box)} asks")
            yield Lines(id="text")
            with Horizontal(classes="entry"):
                yield Lines(((("> ", "accent"),),), classes="sign")
                yield SecretInput(password=True, compact=True)
            yield Lines(
                (
                    (
                        (" enter", "strong"),
                        (" sends it to this box only   ", "dim"),
                        ("esc", "strong"),
                        (" cancels", "dim"),
                    ),
                )
            )

    def on_mount(self) -> None:
        field = self.query_one(SecretInput)
        field.cursor_blink = False
        field.focus()

    def on_resize(self) -> None:
        text = f"{self._asked.prompt} It is kept in memory for this session and written nowhere."
        _show(
            self.query_one("#text", Lines), [(part, "") for part in wrap(text, max(20, self.size.width - 4))]
        )

    @on(Input.Submitted)
    def _given(self) -> None:
        field = self.query_one(SecretInput)
        secret, field.value = field.value, ""
        if secret and self.host.send(GiveSecret(self._asked.box, secret)):
            self.host.say(f"Trying to log in to {self._asked.box}.")
        self.dismiss(None)


class HostKeySheet(Sheet[None]):
    """Shows both fingerprints. Trusting a key takes the box's name, typed; enter alone does nothing."""

    CSS_PATH = "sheet.tcss"

    def __init__(self, asked: HostKeyAsked) -> None:
        super().__init__()
        self._asked = asked

    def compose(self) -> ComposeResult:
        first = self._asked.pinned is None
        with Vertical():
            yield Rule(f"{safe(self._asked.box)}: {'first contact' if first else 'the host key changed'}")
            yield Lines(id="text")
            with Horizontal(classes="entry"):
                yield Lines(((("> ", "accent"),),), classes="sign")
                yield Input(compact=True)
            yield Lines((((" esc", "strong"), (" leaves the box alone", "dim")),))

    def on_mount(self) -> None:
        field = self.query_one(Input)
        field.cursor_blink = False
        field.focus()

    def on_resize(self) -> None:
        _show(self.query_one("#text", Lines), key_lines(self._asked, max(20, self.size.width - 4)))

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        if event.value.strip() != self._asked.box:
            self.host.say("That is not the box's name; nothing was changed.", "attention")
            return
        if self.host.send(TrustHostKey(self._asked.box, self._asked.offered)):
            self.host.say(f"Trusting the new key of {self._asked.box}; connecting.")
        self.dismiss(None)


def key_lines(asked: HostKeyAsked, width: int) -> list[tuple[str, str]]:
    """What to know before trusting a key, and both fingerprints under one another."""
    lines: list[tuple[str, str]] = []
    if asked.pinned is None:
        why = "This box was never connected to. Compare with what the platform's console shows."
        lines += [(part, "") for part in wrap(why, width)]
    else:
        why = (
            "Either the box was rebuilt, or its address belongs to another machine now, or someone stands in "
            "between. Trust it only if the platform shows this fingerprint, or if you rebuilt the box."
        )
        lines += [(part, "") for part in wrap(why, width)]
        lines += [("", ""), (f"pinned  {asked.pinned}", "")]
    lines += [(f"offered {asked.offered}", "attention"), ("", "")]
    return [
        *lines,
        *((part, "strong") for part in wrap(f"To trust it, type {safe(asked.box)} and press enter.", width)),
    ]


def _show(box: Lines, texts: Sequence[tuple[str, str]]) -> None:
    lines: list[Line] = [((f"  {text}", style),) for text, style in texts]
    box.styles.height = len(lines)
    box.show(lines)

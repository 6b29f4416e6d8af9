"""What a screen may ask of the app it runs in. The app implements it; screens never import the app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from textual.dom import DOMNode

from tui.model.command import Command
from tui.model.snapshot import FleetSnapshot
from tui.model.text import LogText, SafeText
from tui.widgets.glyphs import Glyphs


@dataclass(frozen=True, slots=True)
class AddBox:
    """How a pasted ssh command becomes a box; parsing and writing lie outside the screens.

    Attributes:
        preview: what was understood, as (field, value), never a secret; `name` is a proposal. Raises Failure.
        save: writes it to the fleet file under a name, returns one sentence; an empty name leaves the choice
            to it. Raises Failure.
    """

    preview: Callable[[str], Sequence[tuple[str, str]]]
    save: Callable[[str, str], Awaitable[str]]


class Host(Protocol):
    """The app, as screens see it."""

    read_only: bool
    glyphs: Glyphs
    period_s: float
    key_overrides: Mapping[str, tuple[str, ...]]
    add_box: AddBox | None
    typed: list[str]  # history of the ``:`` line, newest last
    worn: str  # name of the theme

    @property
    def clock(self) -> Callable[[], float]: ...

    @property
    def snapshot(self) -> FleetSnapshot: ...

    @property
    def keys_wait(self) -> bool:
        """Whether a key is under way or held until the one before it is done."""

    @property
    def theme_names(self) -> Sequence[str]: ...

    def wear(self, name: str) -> None:
        """Change the theme. Raises Failure for one that does not exist."""

    def keep_theme(self, name: str) -> None:
        """Wear a theme from now on, also at the next start. Raises Failure."""

    def send(self, command: Command) -> bool:
        """Ask the workers for something; says so and returns False when they are too far behind."""

    def say(self, text: str, level: str = "info") -> None:
        """Show one sentence for a few seconds."""

    def copy_text(self, text: str) -> SafeText:
        """Copy, and tell which way it went."""

    def save_lines(self, lines: Sequence[str], path: str, name: str) -> SafeText:
        """Save lines into a file on this computer, and tell where. Raises Failure."""

    def way_to(self, action: str) -> str:
        """The key of an action of any view, or what is typed where it has none."""

    def log_tail(self, run: str, count: int) -> Sequence[LogText]:
        """At most so many of the newest lines of a run's log that are in memory."""

    def open_run(self, box: str, run: str | None, *, zoom: bool = False, line: int | None = None) -> None:
        """Show a run, or a box without one; `line` (from 1) puts the cursor on a line of its log."""

    def open_triage(self, name: str = "") -> None:
        """Show what is wrong with a run or box by name, or with the selected one. Raises Failure."""

    async def perform(self, action_id: str, text: str | None = None) -> None:
        """Do what the registry calls `action_id`, guarded."""


def host_of(node: DOMNode) -> Host:
    """The app a node lives in."""
    return cast("Host", node.app)

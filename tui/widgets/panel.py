"""A titled block of lines at the run screen's side. What it says is made by pure functions of a `Sight`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType
from textual.widget import Widget

from tui.fleet.age import age_word, is_stale
from tui.fleet.thresholds import Thresholds
from tui.model.reading import Reading
from tui.model.snapshot import BoxView, RunView
from tui.model.telemetry import Telemetry
from tui.model.text import safe
from tui.widgets.figures import NA
from tui.widgets.glyphs import UNICODE, Glyphs, glyphs_of
from tui.widgets.lines import Line, Lines, Span, clip, fit, length
from tui.widgets.logstatus import title_line
from tui.widgets.moves import move_bindings

QUIET = ("", "strong", "under")
"""Styles that turn dim when the values are old; alarms keep their colour, and the title says the age."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What the panels are drawn from: one box, the run on it, and the moment.

    Attributes:
        elsewhere: `box` is the machine of the run's job, not where it is watched; None: not in the fleet.
    """

    box: BoxView | None = None
    run: RunView | None = None
    now: float = 0.0
    period_s: float = 2.0
    glyphs: Glyphs = UNICODE
    thresholds: Thresholds = field(default_factory=Thresholds)
    elsewhere: bool = False

    @property
    def telemetry(self) -> Telemetry | None:
        return self.box.telemetry if self.box else None

    @property
    def box_now(self) -> float:
        """This moment by the box's clock, as far as its offset is known."""
        host = self.telemetry.host.value if self.telemetry else None
        return self.now + ((host.clock_offset_s if host else None) or 0.0)

    def taken(self, reading: Reading[Any] | None) -> float | None:
        """When a reading was taken: its own time, or its probe's."""
        if reading is not None and reading.source is not None:
            return reading.source.taken_at
        return self.telemetry.taken_at if self.telemetry and reading is not None and reading.known else None

    def simulates(self, what: str) -> bool:
        """Whether a stand-in program answers for this part of the box."""
        return self.box is not None and any(
            what.casefold() in s.casefold() for s in self.box.instance.simulated
        )


def unread(sight: Sight, reading: Reading[Any] | None) -> str:
    """Why there is no value to show."""
    if sight.box is None:
        return f"{'the machine of its job' if sight.elsewhere else 'this box'} is not in the fleet file"
    if sight.telemetry is None or reading is None:
        return "not probed yet"
    return reading.reason or "not told"


def na(why: str, width: int, glyphs: Glyphs, indent: int = 2) -> Line:
    """A value that is not known, and why, in one line."""
    head = " " * indent + NA
    room = max(0, width - cell_len(head) - 2)
    return ((head, "dim"), (f"  {fit(why, room, ellipsis=glyphs.ellipsis).rstrip()}" if why else "", "dim"))


def apart(left: Line, right: Line, width: int, glyphs: Glyphs) -> Line:
    """Left and right ends of one line; the left one is cut when both do not fit."""
    room = width - length(right)
    kept: list[Span] = []
    for text, style in left:
        size = cell_len(text)
        if size > room:
            text = fit(text, max(0, room - 1), ellipsis=glyphs.ellipsis)
            size = cell_len(text)
        if text:
            kept.append((text, style))
        room -= size
    return (*kept, (" " * max(0, room), ""), *right)


def packed(head: Line, parts: Sequence[Line], width: int) -> Line:
    """`head`, then as many whole parts as fit, most wanted first; the first one that does not fit ends it."""
    spans = list(head)
    used = length(head)
    for i, part in enumerate(part for part in parts if part):
        joint = "  " if i else ""
        if used + len(joint) + length(part) > width:
            break
        spans += [(joint, ""), *part]
        used += len(joint) + length(part)
    return tuple(spans)


class Panel(Lines, can_focus=True):
    """Draws its title in a rule and its lines below; as high as they are."""

    BINDINGS: ClassVar[list[BindingType]] = [*move_bindings()]
    TITLE: ClassVar[str] = ""
    MEANING: ClassVar[str] = ""
    """What its values are, in a sentence, for *explain*."""
    PART: ClassVar[str] = ""
    """Which of the dearer parts it shows, by the names of `Cadence`; empty for what every probe tells."""
    OF_JOB: ClassVar[bool] = False
    """It tells of the machine that a scheduler gave the run, where there is one."""
    PERIODS: ClassVar[float] = 1.0
    """Probe periods between two looks at that part, where the telemetry doesn't say."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.sight = Sight()
        self.away = False
        """Set while another pane has the whole screen."""
        self._height = 1

    def apply(self, sight: Sight) -> None:
        """Take in the newest picture."""
        self.sight = sight
        self.display = self.wanted(sight) and not self.away
        self.draw()

    def wanted(self, sight: Sight) -> bool:
        """Whether there is anything to say; a panel without it takes no room."""
        return True

    def reading(self, sight: Sight) -> Reading[Any] | None:
        """Where the panel's values come from."""
        return None

    def body(self, sight: Sight, width: int) -> list[Line]:
        """The lines below the title."""
        raise NotImplementedError

    def title(self, sight: Sight) -> list[Span]:
        """The words in the rule."""
        return [(self.TITLE, "title")]

    def word(self, sight: Sight) -> Span:
        """The word at the rule's end: how old the values are."""
        reading = self.reading(sight)
        taken = sight.taken(reading)
        if taken is None:
            return ("not known", "dim")
        period = self.period(sight)
        age = age_word(taken, sight.now, period)
        return (f"stale {age}", "attention") if is_stale(taken, sight.now, period) else (age, "dim")

    def period(self, sight: Sight) -> float:
        """Seconds between two looks at what it shows: a value is old only when the next one is overdue."""
        telemetry = sight.telemetry
        if telemetry is None or is_stale(telemetry.taken_at, sight.now, sight.period_s):
            return sight.period_s  # nothing comes any more, so nothing is merely waited for
        told = getattr(telemetry.cadence, f"{self.PART}_s") if self.PART else None
        return sight.period_s * self.PERIODS if told is None else float(told)

    def draw(self) -> None:
        """Bring the lines up to date."""
        width = self.size.width
        if not width:
            return
        sight = self.sight
        title = self.title(sight)
        if sight.elsewhere and sight.box is not None:
            title.append((f" on {safe(sight.box.name)}", "dim"))
        if self.has_focus:
            title = [(text, f"accent {style}") for text, style in title]
        rule = title_line(title, self.word(sight), width, sight.glyphs)
        if self.has_focus:
            rule = ((sight.glyphs.cursor, "accent"), (rule[0][0][1:], rule[0][1]), *rule[1:])
        body = self.body(sight, width)
        if self.word(sight)[0].startswith("stale"):
            body = [
                tuple((text, "dim" if style in QUIET else style) for text, style in line) for line in body
            ]
        lines = [rule, *(clip(line, width, sight.glyphs.ellipsis) for line in body)]
        if len(lines) != self._height:
            self._height = len(lines)
            self.styles.height = self._height
        self.show(lines)

    def _scroll(self, rows: float) -> None:
        if isinstance(self.parent, Widget):
            self.parent.scroll_relative(y=rows, animate=False)

    def action_cursor_down(self) -> None:
        self._scroll(1)

    def action_cursor_up(self) -> None:
        self._scroll(-1)

    def action_page_down(self) -> None:
        self._scroll(max(1, self.screen.size.height // 2))

    def action_page_up(self) -> None:
        self._scroll(-max(1, self.screen.size.height // 2))

    def action_first(self) -> None:
        self._scroll(-self.app.size.height * 100)

    def action_last(self) -> None:
        self._scroll(self.app.size.height * 100)

    def on_resize(self) -> None:
        self.draw()

    def on_mount(self) -> None:
        self.sight = Sight(glyphs=glyphs_of(self))

    def on_focus(self) -> None:
        self.draw()

    def on_blur(self) -> None:
        self.draw()

"""Watch a run that rgt did not start: choose one of what the probe found on the box."""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from tui.model.command import AdoptRun
from tui.model.run import RunSpec
from tui.model.telemetry import Candidate, Telemetry
from tui.model.text import safe
from tui.screens.list_view import ListView
from tui.screens.view import Sheet
from tui.widgets.footer import Verb
from tui.widgets.lines import Line, Lines, Span, clip, fit, wrap
from tui.widgets.picker import Item, Picker
from tui.widgets.rule import Rule

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def run_name(candidate: Candidate, taken: Collection[str]) -> str:
    """A name for a run, from its directory or its program, that no other run has."""
    parts = [PurePosixPath(candidate.cwd).name] if candidate.cwd else []
    scripts = [w for w in candidate.command.split() if w.endswith((".py", ".sh"))]
    parts += [PurePosixPath(scripts[0]).stem] if scripts else []
    stem = (
        _ODD.sub("-", next((p for p in parts if p and p not in ("root", "home")), "run")).strip("-.") or "run"
    )
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    return name


def spec_of(
    candidate: Candidate, box: str, name: str, log: str | None, telemetry: Telemetry | None
) -> RunSpec:
    """What to watch of a candidate. The boot id ties its process number to this boot of the box."""
    host = telemetry.host.value if telemetry else None
    folder = str(PurePosixPath(candidate.checkpoints[0].path).parent) if candidate.checkpoints else None
    return RunSpec(
        name=name,
        box=box,
        log=log,
        checkpoints=f"{glob.escape(folder)}/*" if folder else None,  # a folder may be called lr=[0.1]
        pid=candidate.pid,
        pid_start=candidate.start_ticks,
        boot_id=host.boot_id if host else None,
        session=candidate.session,
    )


def _called(command: str) -> str:
    """A command without the folder of its program, which says the least and takes the most room."""
    program, blank, rest = command.partition(" ")
    return f"{program.rsplit('/', 1)[-1]}{blank}{rest}"


class AdoptScreen(ListView):
    """What runs on a box and is not watched yet."""

    VIEW = "adopt"
    HEADING: ClassVar[str] = "adopt"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "watch", show=False)]

    def __init__(self, box: str) -> None:
        super().__init__()
        self._box = box

    def _telemetry(self) -> Telemetry | None:
        view = self.host.snapshot.box(self._box)
        return view.telemetry if view else None

    def _candidates(self) -> tuple[Candidate, ...]:
        telemetry = self._telemetry()
        return (telemetry.candidates.value if telemetry else None) or ()

    def heading(self) -> tuple[Sequence[Span], Sequence[Span]]:
        return ((f"adopt: what runs on {safe(self._box)}", "title"),), ()

    def items(self, width: int) -> tuple[Line | None, Sequence[Item]]:
        dots = self.host.glyphs.ellipsis
        found = []
        session = 15 if any(c.session for c in self._candidates()) else 0
        for n, c in enumerate(self._candidates(), 1):
            memory = "" if c.gpu_mem_mib is None else f"{c.gpu_mem_mib / 1024:.1f}"
            line: Line = (
                (f"  {n} " if n < 10 else "    ", "dim"),
                (fit("" if c.pid is None else str(c.pid), 9, right=True), "dim"),
                (fit(memory, 8, right=True) + "  ", ""),
                (fit(f"{c.session or self.host.glyphs.none} ", session, ellipsis=dots), "dim"),
                (_called(c.command), ""),
            )
            found.append(Item((c.pid, c.session, c.command), clip(line, width - 1, dots)))
        head = f"  # {'PID':>9}{'GPU GiB':>8}  {fit('SESSION', session)}COMMAND"
        return ((head, "dim"),), found

    def nothing(self) -> str:
        telemetry = self._telemetry()
        if telemetry is None:
            return "This box was not probed yet, so nothing can be said."
        if telemetry.candidates.value is None:
            return f"What runs here can't be told: {telemetry.candidates.reason}"
        return "Nothing that looks like a training run, besides what is watched already."

    def below(self, width: int) -> Sequence[Line]:
        candidate = self._selected()
        if candidate is None:
            return ()
        facts = [
            ("runs", candidate.command),
            ("in", candidate.cwd or "not known"),
            ("log", ", ".join(candidate.logs) or "no open log file found"),
            ("saved", ", ".join(c.path for c in candidate.checkpoints[:3]) or "no checkpoint found"),
        ]
        lines: list[Line] = []
        for label, text in facts:
            for i, part in enumerate(wrap(text, max(20, width - 12))[:3]):
                lines.append(((fit(f"  {label}" if i == 0 else "", 9), "dim"), (part, "")))
        return lines

    def keys(self) -> list[Verb]:
        return [Verb("enter", "watch it", 1), *self.verbs("back")]

    def _selected(self) -> Candidate | None:
        key = self.query_one(Picker).selected
        return next((c for c in self._candidates() if (c.pid, c.session, c.command) == key), None)

    def action_choose(self) -> None:
        """Ask for name and log of the candidate under the cursor, then watch it."""
        candidate = self._selected()
        if candidate is None:
            return
        taken = {r.name for r in self.host.snapshot.runs}
        self.app.push_screen(AdoptSheet(self._box, candidate, run_name(candidate, taken)), self._adopted)

    def _adopted(self, answer: tuple[Candidate, str, str | None] | None) -> None:
        if answer is None:
            return
        candidate, name, log = answer
        if any(r.name == name for r in self.host.snapshot.runs):
            self.host.say(f"There is already a run named {name}.", "attention")
            return
        if self.host.send(AdoptRun(spec_of(candidate, self._box, name, log, self._telemetry()))):
            self.dismiss()


class AdoptSheet(Sheet[tuple[Candidate, str, str | None]]):
    """Name and log path, both filled in and both to be changed."""

    CSS_PATH = "sheet.tcss"

    def __init__(self, box: str, candidate: Candidate, name: str) -> None:
        super().__init__()
        self._box = box
        self._candidate = candidate
        self._name = name

    def compose(self) -> ComposeResult:
        log = self._candidate.logs[0] if self._candidate.logs else ""
        with Vertical():
            yield Rule(f"watch on {safe(self._box)}")
            for label, value, name in (("name", self._name, "name"), ("log", log, "log")):
                with Horizontal(classes="entry"):
                    yield Lines((((f"  {label}", "dim"),),), classes="label")
                    yield Input(value, compact=True, select_on_focus=False, id=name)
            yield Lines(
                (((" enter", "strong"), (" watches it   ", "dim"), ("esc", "strong"), (" does not", "dim")),)
            )

    def on_mount(self) -> None:
        for field in self.query(Input):
            field.cursor_blink = False
        self.query_one("#name", Input).focus()

    @on(Input.Submitted)
    def _done(self) -> None:
        name = self.query_one("#name", Input).value.strip()
        log = self.query_one("#log", Input).value.strip()
        if not name or _ODD.search(name):
            self.host.say(
                "A run's name is made of letters, digits, dots, dashes and underscores.", "attention"
            )
            return
        self.dismiss((self._candidate, name, log or None))

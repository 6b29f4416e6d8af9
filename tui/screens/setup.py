"""The guided setup: one question at a time, with what each step does, expects and shows.

It draws the worker's view and sends what the operator answers. Leaving it stops nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input

from tui.model.command import AnswerSetup, BackSetup, LeaveSetup, SkipSetup, StartSetup
from tui.model.failure import Failure
from tui.model.setup import Asked, Option, SetupStep, SetupView
from tui.model.snapshot import FleetSnapshot
from tui.screens.add import PasteInput
from tui.screens.ask import SecretInput
from tui.screens.typed_line import TypedLine
from tui.screens.view import View
from tui.widgets import setup_rows as rows
from tui.widgets.footer import Footer, Verb
from tui.widgets.lines import Lines, Span, clip, length
from tui.widgets.picker import Item, Picker
from tui.widgets.rule import Rule
from tui.widgets.scroll import Scroll

LOW = 24
"""Below this height only the steps around the selected one are shown."""
_FEW = 3
_ELSE = 7
"""Rows that steps and options leave to everything else."""


class SetupSteps(Picker):
    """The steps; pages are turned in what stands below them."""

    def action_page_down(self) -> None:
        self.screen.query_one(Scroll).page(1)

    def action_page_up(self) -> None:
        self.screen.query_one(Scroll).page(-1)


class Entry(Horizontal):
    """The line that an answer is typed into; masked where it is a secret."""

    DEFAULT_CSS = """
    Entry { height: 1; display: none; }
    Entry.-open { display: block; }
    Entry > Lines { height: 1; width: 3; }
    Entry > SecretInput { display: none; }
    Entry.-secret > SecretInput { display: block; }
    Entry.-secret > PasteInput { display: none; }
    """

    def compose(self) -> ComposeResult:
        yield Lines()
        yield PasteInput()
        yield SecretInput(password=True, compact=True)

    def on_mount(self) -> None:
        self.query_one(Lines).show((((" > ", "accent"),),))
        for field in self.query(Input):
            field.cursor_blink = False

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self, asked: Asked) -> None:
        """Show the line that fits the question, empty."""
        self.set_class(asked.kind == "secret", "-secret")
        self.add_class("-open")
        field: Input = self.query_one(SecretInput if asked.kind == "secret" else PasteInput)
        field.placeholder = asked.hint
        field.value = ""
        self.query_one(PasteInput).pasted = ""
        field.focus()

    def close(self) -> None:
        """Take the line away; a secret does not stay in it."""
        self.query_one(SecretInput).value = ""
        self.query_one(PasteInput).value = ""
        self.remove_class("-open")


class SetupScreen(View):
    """The guided setup.

    Args:
        name: a platform or box to begin with; empty: nothing is known.
    """

    VIEW = "setup"
    CSS_PATH = "setup.tcss"
    AUTO_FOCUS = "#steps"
    TITLE: ClassVar[str | None] = "setup"

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self._begin = name
        self._drawn: SetupView | None = None
        self._followed: tuple[object, ...] | None = None
        self._detailed: object = None

    def compose(self) -> ComposeResult:
        yield Rule("setup", id="top")
        yield SetupSteps(id="steps")
        yield Rule(id="middle")
        yield Picker(id="options")
        yield Scroll(id="detail")
        yield Entry()
        yield TypedLine()
        yield Footer()

    def on_mount(self) -> None:
        self.host.send(StartSetup(self._begin))

    def on_unmount(self) -> None:
        self.host.send(LeaveSetup())

    def on_resize(self) -> None:
        self._draw()

    # -- the picture -----------------------------------------------------------------------------------

    @property
    def view(self) -> SetupView:
        """The worker's view; before it has one, that it is at work."""
        return self.host.snapshot.setup or SetupView(working=True)

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        """Draw what changed."""
        if self.view != self._drawn:
            self._draw()

    @property
    def _low(self) -> bool:
        """Whether the steps give way: to the pane's height, or to more options than would be seen."""
        step = self.view.step(self.view.current)
        options = len(step.asked.options) if step is not None and step.asked is not None else 0
        return self.size.height < max(LOW, len(self.view.steps) + options + _ELSE)

    def _draw(self) -> None:
        width, view = self.size.width, self.view
        if not width:
            return
        self._drawn = view
        self.query_one("#top", Rule).label(rows.title_spans(view), self._where(view))
        steps = self.query_one(SetupSteps)
        items = [Item(one.id, rows.step_line(view, one, width, self.host.glyphs)) for one in view.steps]
        if not items:
            items = [Item("nothing yet", (("  reading the profiles", "dim"),))]
        steps.styles.height = min(len(items), _FEW) if self._low else len(items)
        self.set_class(self._low, "-low")
        steps.show_items(items)
        step = view.step(view.current)
        here = (view.current, step.asked if step else None, view.working, view.problem)
        if self._followed != here:
            self._followed = here
            steps.select(view.current)
            self._asked_now(step)
        self._draw_step()

    def _where(self, view: SetupView) -> list[Span]:
        if view.over:
            return [("done", "strong")]
        return [("at work", "strong")] if view.working else [("waits for you", "attention")]

    def _asked_now(self, step: SetupStep | None) -> None:
        """Put the cursor where the answer goes."""
        entry = self.query_one(Entry)
        if entry.is_open:
            entry.close()
        if step is None or step.asked is None or self.view.working or self.host.read_only:
            self.query_one(SetupSteps).focus()
        elif step.asked.kind in ("text", "secret"):
            entry.open(step.asked)
        else:
            self.set_class(step.asked.kind == "choose", "-options")
            self.call_after_refresh(self._draw_step)  # how many options are in sight is known then
            (self.query_one("#options", Picker) if step.asked.options else self.query_one(SetupSteps)).focus()

    @property
    def _selected(self) -> SetupStep | None:
        key = self.query_one(SetupSteps).selected
        return next((one for one in self.view.steps if one.id == key), None)

    @on(Picker.Moved)
    def _moved(self) -> None:
        self._draw_step()

    def _draw_step(self) -> None:
        view, step, width = self.view, self._selected, self.size.width
        current = step is not None and step.id == view.current
        asked = step.asked if step is not None and current else None
        choosing = asked is not None and bool(asked.options) and not view.working
        self.set_class(choosing, "-options")
        detail = self.query_one(Scroll)
        if step is None:
            detail.fill((), anew=True)
        else:
            if asked is not None and choosing:
                self._draw_options(asked, width)
            lines = rows.detail_lines(step, view.problem if current else "", width)
            chosen = self._chosen(asked) if asked is not None and choosing else None
            if asked is not None and chosen is not None:
                lines = [*rows.cut_note(chosen, rows.title_cells(asked.options, width), width), *lines]
            shown = (step.id, chosen.id if chosen is not None else None)
            detail.fill(lines, anew=shown != self._detailed)
            self._detailed = shown
            self.query_one("#middle", Rule).label(*self._question(step, asked))
        always = [] if self._typing else self.verbs("help")  # there it is a letter
        self.query_one(Footer).offer(self._verbs(view, step, asked), always)

    def _question(self, step: SetupStep, asked: Asked | None) -> tuple[Sequence[Span], Sequence[Span]]:
        if asked is None:
            return [(rows.NAMES[step.id], "")], []
        options = self.query_one("#options", Picker)
        hidden = self.has_class("-options") and len(options.items) > options.room > 0
        where: list[Span] = [(f"{options.last} of {len(options.items)}", "dim")] if hidden else []
        room = self.size.width - 8 - (length(where) + 3 if where else 0)
        return clip(((asked.prompt, "strong"),), room, self.host.glyphs.ellipsis), where

    def _chosen(self, asked: Asked) -> Option | None:
        """The option under the cursor."""
        key = self.query_one("#options", Picker).selected
        return next((one for one in asked.options if one.id == key), None)

    def _draw_options(self, asked: Asked, width: int) -> None:
        options = self.query_one("#options", Picker)
        cells, glyphs = rows.title_cells(asked.options, width), self.host.glyphs
        items = [Item(one.id, rows.option_line(one, cells, width, glyphs)) for one in asked.options]
        taken = _FEW if self._low else len(self.view.steps)
        room = max(3, self.size.height - taken - _ELSE)
        options.styles.height = min(len(items), room)
        options.show_items(items)

    @property
    def _typing(self) -> bool:
        return self.query_one(Entry).is_open or self.query_one(TypedLine).open

    def _verbs(self, view: SetupView, step: SetupStep | None, asked: Asked | None) -> list[Verb]:
        """What applies now, most wanted first."""
        if self._typing:
            return [Verb("enter", "answer", 1), Verb("esc", "leave the line", 2)]
        wanted = []
        if view.over:
            wanted.append("detach")
        elif asked is not None:
            wanted.append("answer")
        if step is not None and step.observed:
            wanted.append("copy")
        if step is not None and step.id == view.current and step.may_skip and not view.working:
            wanted.append("skip_step")
        if step is not None and step.state in ("done", "skipped"):
            wanted.append("go_back")
        wanted += [name for name in ("other_pane", "anew", "detach", "commands") if name not in wanted]
        found = {name: self.verbs(name) for name in wanted}
        return [replace(v, rank=i) for i, name in enumerate(wanted) for v in found[name]]

    # -- actions ---------------------------------------------------------------------------------------

    def action_answer(self) -> None:
        """Choose the selected option, go on after reading, or open the line."""
        view = self.view
        step = view.step(view.current)
        if view.over:
            self.action_detach()
            return
        if view.working or step is None or step.asked is None:
            return
        if step.asked.kind in ("text", "secret"):
            self.query_one(Entry).open(step.asked)
            self._draw_step()
        elif step.asked.kind == "read":
            self.host.send(AnswerSetup(step.id, ""))
        else:
            chosen = self.query_one("#options", Picker).selected
            if isinstance(chosen, str) and any(one.id == chosen for one in step.asked.options):
                self.host.send(AnswerSetup(step.id, chosen))

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        entry = self.query_one(Entry)
        if not entry.is_open or event.input not in entry.query(Input):
            return
        event.stop()
        step = self.view.step(self.view.current)
        field = event.input
        pasted = field.pasted if isinstance(field, PasteInput) else ""
        text = pasted or field.value
        if step is None or step.asked is None:
            return
        if step.asked.word and pasted:
            self.host.say(f"What costs money is typed, not pasted: {step.asked.word}.", "attention")
            entry.open(step.asked)
            return
        entry.close()
        self.query_one(SetupSteps).focus()
        self.host.send(AnswerSetup(step.id, text))
        self._draw_step()

    def action_skip_step(self) -> None:
        """Ask why, then leave the step out."""
        step = self.view.step(self.view.current)
        if step is None or self.view.working or not step.may_skip:
            raise Failure("Nothing later makes sense without this step.")
        chosen = step.id

        def said(reason: str) -> None:
            if not reason.strip():
                raise Failure("A reason is needed; it stands in the summary.")
            self.host.send(SkipSetup(chosen, reason))

        self.query_one(TypedLine).ask("reason", "skip because", "it stands in the summary", said)
        self._draw_step()

    def action_go_back(self) -> None:
        """Do the selected step again."""
        step = self._selected
        if step is None or step.state not in ("done", "skipped"):
            raise Failure("Select a step that is done.", do="The steps stand above; tab goes there.")
        if self.twice("go_back", f"goes back to {rows.NAMES[step.id]}"):
            self.host.send(BackSetup(step.id))

    def action_anew(self) -> None:
        if self.twice("anew", "begins a new setup; what this one made stays"):
            self.host.send(StartSetup(anew=True))

    def action_other_pane(self) -> None:
        options = self.query_one("#options", Picker)
        target = options if self.has_class("-options") and self.focused is not options else None
        (target or self.query_one(SetupSteps)).focus()
        self._draw_step()

    def action_detach(self) -> None:
        """Leave; what runs goes on, and the next time begins here."""
        if not self.view.over:
            self.host.say("The setup is kept; S comes back to it.")
        self.dismiss(None)

    async def action_back(self) -> None:
        """Close what is open, else leave."""
        if self.query_one(Entry).is_open:
            self.query_one(Entry).close()
            self.query_one(SetupSteps).focus()
            self._draw_step()
        elif self.query_one(TypedLine).open:
            self.query_one(TypedLine).close()
        else:
            self.action_detach()

    @on(TypedLine.Closed)
    def _reasoned(self, message: TypedLine.Closed) -> None:
        self.query_one(SetupSteps).focus()
        self.query_one(TypedLine).carry_out(message, self.host.say)
        self._draw_step()

    def action_copy(self) -> None:
        """Copy what stands first of what the selected step shows, such as a key's public line."""
        step = self._selected
        if step is None or not step.observed:
            raise Failure("This step shows nothing to copy.")
        self.host.say(self.host.copy_text(str(step.observed[0])))

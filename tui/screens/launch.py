"""Launch a job: job file, box, preflight, plan, and the start on an explicit key.

It draws the worker's view and sends what the operator chooses. Leaving it stops nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from tui.model.command import (
    BackLaunch,
    CheckAgain,
    ChooseBox,
    ChooseJob,
    LeaveLaunch,
    OpenLaunch,
    StartLaunch,
)
from tui.model.failure import Failure
from tui.model.launch import STAGES, LaunchView, Stage
from tui.model.snapshot import FleetSnapshot
from tui.screens import launch_asked as asked
from tui.screens.typed_line import TypedLine
from tui.screens.view import View
from tui.widgets import launch_rows as rows
from tui.widgets.footer import Footer, Verb
from tui.widgets.lines import Line, Span
from tui.widgets.picker import Item, Picker
from tui.widgets.rule import Rule
from tui.widgets.scroll import Scroll

LOW = 24
"""Below this height only the steps around the current one are shown."""
_FEW = 3
_ELSE = 7
"""Rows that steps and choices leave to rules, details and footer."""


class LaunchSteps(Picker):
    """The steps; pages are turned in what stands below. Only the list that has the keys shows a cursor."""

    def line_at(self, y: int) -> tuple[Line, bool]:
        line, selected = super().line_at(y)
        return line, selected and (self.has_focus or not self.screen.has_class("-options"))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def action_page_down(self) -> None:
        self.screen.query_one(Scroll).page(1)

    def action_page_up(self) -> None:
        self.screen.query_one(Scroll).page(-1)


class LaunchScreen(View):
    """The launch.

    Args:
        box: that is proposed.
        job: path of a job file; empty: it is chosen here.
    """

    VIEW = "launch"
    CSS_PATH = "launch.tcss"
    AUTO_FOCUS = "#steps"
    TITLE: ClassVar[str | None] = "launch"

    def __init__(self, box: str | None = None, job: str = "") -> None:
        super().__init__()
        self._begin = OpenLaunch(box, job)
        self._drawn: tuple[object, ...] = ()
        self._followed: object = None
        self._detailed: object = None
        self._listed: object = None
        self._waited = False  # Enter came before there was anything to choose
        self._choices: tuple[rows.Choice, ...] = ()

    def compose(self) -> ComposeResult:
        yield Rule("launch", id="top")
        yield LaunchSteps(id="steps")
        yield Rule(id="middle")
        yield Picker(id="options")
        yield Rule(id="between")
        yield Scroll(id="detail")
        yield TypedLine()
        yield Footer()

    def on_mount(self) -> None:
        self.host.send(self._begin)

    def on_unmount(self) -> None:
        self.host.send(LeaveLaunch())

    def on_resize(self) -> None:
        self._draw()

    # -- the picture -----------------------------------------------------------------------------------

    @property
    def view(self) -> LaunchView:
        """The worker's view; before it has one, that it is at work."""
        return self.host.snapshot.launch or LaunchView(working=True)

    @property
    def _low(self) -> bool:
        return self.size.height < LOW

    @property
    def _options(self) -> Picker:
        return self.query_one("#options", Picker)

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        """Draw what changed: the view, what is told of boxes, and once a second the time that passed."""
        boxes = snapshot.boxes if self.view.stage == "box" else ()
        now = (self.view, boxes, int(self.host.clock()))
        if now != self._drawn:
            self._drawn = now
            self._draw()

    def _draw(self) -> None:
        width, view = self.size.width, self.view
        if not width:
            return
        self.query_one("#top", Rule).label(rows.title_spans(view), self._where(view))
        steps, now = self.query_one(LaunchSteps), self.host.clock()
        steps.styles.height = _FEW if self._low else len(STAGES)
        steps.show_items(
            [Item(one, rows.stage_line(view, one, width, self.host.glyphs, now)) for one in STAGES]
        )
        here = (view.stage, view.working, view.jobs is None)
        if self._followed != here:
            self._followed = here
            steps.select(view.stage)
            self._draw_stage()
            self._focus_now()
            if self._waited and view.jobs is not None:
                self._waited = False
                self.host.say("Here they are; Enter chooses the one under the cursor.")
        self._draw_stage()

    def _where(self, view: LaunchView) -> list[Span]:
        if view.working:
            return [("at work", "strong")]
        if view.answer is not None:
            return [("answered", "strong")]
        if view.problem or view.stage == "preflight":
            return [("stopped", "danger")]
        return [("waits for you", "attention")]

    def _focus_now(self) -> None:
        """Put the cursor where the next choice is; what starts a run is never under it by itself."""
        if self.query_one(TypedLine).open:
            return
        if not self.has_class("-options"):
            self.query_one(LaunchSteps).focus()
            return
        options = self._options
        options.focus()
        if self.view.stage == "box" and self.view.proposed:
            options.select(self.view.proposed)

    @property
    def stage(self) -> Stage:
        """The step that is looked at."""
        key = self.query_one(LaunchSteps).selected
        return next((one for one in STAGES if one == key), self.view.stage)

    @property
    def choice(self) -> rows.Choice | None:
        """The line under the cursor, where there are any."""
        key = self._options.selected if self.has_class("-options") else None
        return next((one for one in self._choices if one.key == key), None)

    def _list(self, stage: Stage) -> tuple[rows.Choice, ...]:
        """What can be selected in a step."""
        view, width, host = self.view, self.size.width, self.host
        match stage:
            case "job" if view.stage == "job" and view.jobs is not None:
                return tuple(rows.job_choices(view, width, host.glyphs))
            case "box" if view.stage == "box":
                boxes = host.snapshot.boxes
                return tuple(rows.box_choices(view, boxes, width, host.glyphs, host.clock(), host.period_s))
            case "preflight":
                return tuple(rows.check_choices(view.checks, width, host.glyphs))
            case "plan":
                return tuple(rows.plan_choices(view, width, host.glyphs, self.key_of("start")))
            case _:
                return ()

    @on(Picker.Moved)
    def _moved(self) -> None:
        self._draw_stage()

    def _draw_stage(self) -> None:
        """What belongs to the selected step: its choices, and the selected one in full."""
        view, stage = self.view, self.stage
        self._choices = self._list(stage)
        self.set_class(bool(self._choices), "-options")
        # A file that could not be taken stays under the cursor; a plan that was made anew does not.
        again = (view.working, view.consent) if stage != "job" else ()
        listed = (stage, again) if self._choices else None
        if self._choices:
            options = self._options
            taken = _FEW if self._low else len(STAGES)
            options.styles.height = min(len(self._choices), max(3, self.size.height - taken - _ELSE))
            options.show_items([Item(one.key, one.line) for one in self._choices])
            if self._listed != listed:
                options.move_to(0)
        self._listed = listed
        detail, choice = self.query_one(Scroll), self.choice
        shown = (stage, choice.key if choice else None)
        detail.fill(self._about(stage, choice), anew=shown != self._detailed)
        self._detailed = shown
        self.query_one("#middle", Rule).label([(asked.question(view, stage), "strong")])
        always = [] if self.query_one(TypedLine).open else self.verbs("help")  # there it is a letter
        self.query_one(Footer).offer(self._verbs(view, choice), always)

    def _about(self, stage: Stage, choice: rows.Choice | None) -> Sequence[Line]:
        view, width = self.view, self.size.width
        if stage == "answer":
            return rows.answer_lines(view, width, self.host.glyphs, self.host.clock())
        problem = rows.labelled("problem", view.problem, width, "danger") if stage == view.stage else []
        if choice is not None:
            return [*problem, *choice.about]
        said = {"job": view.job, "box": view.box}.get(stage, "")
        if not said and view.stage == "job" and view.jobs is None and stage == "job":
            said = f"looking for job files in {view.near or 'the working directory'} and below"
        return [*problem, *rows.labelled("", said, width)]

    def _verbs(self, view: LaunchView, choice: rows.Choice | None) -> list[Verb]:
        """What applies now, most wanted first."""
        if self.query_one(TypedLine).open:
            keys = (("enter", "choose it"), ("↑", "earlier ones"), ("esc", "leave the line"))
            return [Verb(key, label, place) for place, (key, label) in enumerate(keys)]
        wanted = asked.offered(view, self.stage, choice)
        labels = {"answer": "open the run" if view.answer is not None else "choose", "redo": "check again"}
        found = {name: self.verbs(name) for name in wanted}
        return [
            replace(verb, rank=place, label=labels.get(name, verb.label))
            for place, name in enumerate(wanted)
            for verb in found[name]
        ]

    # -- actions ---------------------------------------------------------------------------------------

    def action_answer(self) -> None:
        """Choose the selected file or box, or open the run that was started. It never starts anything."""
        view, choice = self.view, self.choice
        if view.stage == "answer" and view.answer is not None:
            self._open_run(view)
        elif self.stage != view.stage:
            self.query_one(LaunchSteps).select(view.stage)
        elif choice is None or view.working or view.stage in ("preflight", "plan", "answer"):
            self._waited = view.stage == "job" and view.jobs is None
            self.host.say(asked.nothing_to_choose(view, choice, self.key_of))
        elif view.stage == "job":
            self._choose_job(choice)
        else:
            self.host.send(ChooseBox(choice.key))

    def _choose_job(self, choice: rows.Choice) -> None:
        file = next((one for one in self.view.jobs or () if one.path == choice.key), None)
        if file is None:
            self.action_type_path()
        elif not file.fits:
            self.host.say(file.note, "attention")
        else:
            self.host.send(ChooseJob(file.path))

    def _open_run(self, view: LaunchView) -> None:
        if self.host.snapshot.run(view.run) is None:
            raise Failure(
                f"{view.run} is not watched.",
                do=f"See the messages; {self.host.way_to('messages')} lists them.",
            )
        self.dismiss(None)
        self.host.open_run(view.box, view.run)

    def action_start(self) -> None:
        """Start what the plan says. Only with the cursor on the line that says so."""
        view, choice = self.view, self.choice
        if view.stage != "plan" or view.working:
            raise Failure("There is no plan to start yet.")
        if choice is None or choice.key != rows.START or self.focused is not self._options:
            raise Failure("Nothing is started.", do="Put the cursor on the last line of the plan first.")
        self.host.send(StartLaunch(view.consent))

    def action_type_path(self) -> None:
        """Ask for the path of a job file; up brings back earlier ones."""
        if self.view.stage != "job":
            raise Failure("The job is chosen.", do=f"{self.key_of('go_back')} goes back to it.")
        line = self.query_one(TypedLine)
        earlier = [one.path for one in self.view.jobs or () if one.earlier]
        line.remember("job", earlier[::-1])

        def said(path: str) -> None:
            if not path.strip():
                raise Failure("Give the path of a job file.")
            self.host.send(ChooseJob(path))

        line.ask("job", "job file", "path to a job.toml; up brings back earlier ones", said)
        self._draw_stage()

    def action_redo(self) -> None:
        """Look at everything again."""
        if not asked.can_check(self.view):
            raise Failure("There is nothing to look at again.")
        self.host.send(CheckAgain())

    def action_go_back(self) -> None:
        """Choose again: the selected earlier step, else the last thing that was chosen."""
        view, stage = self.view, self.stage
        before: tuple[Stage, ...] = tuple(
            one for one in ("job", "box") if STAGES.index(one) < STAGES.index(view.stage)
        )
        if not before:
            raise Failure("This is the first step.")
        self.host.send(BackLaunch(stage if stage in before else before[-1]))

    def action_anew(self) -> None:
        self.host.send(replace(self._begin, file="", anew=True))

    def action_other_pane(self) -> None:
        target = self._options if self.has_class("-options") else None
        steps = self.query_one(LaunchSteps)
        (target if target is not None and self.focused is not target else steps).focus()
        self._draw_stage()

    def action_detach(self) -> None:
        """Leave; what runs goes on."""
        if self.view.working:
            self.host.say(f"It goes on; {self.host.way_to('launch')} shows where it is.")
        self.dismiss(None)

    async def action_back(self) -> None:
        """Close the line, else leave."""
        if self.query_one(TypedLine).open:
            self.query_one(TypedLine).close()
        else:
            self.action_detach()

    @on(TypedLine.Closed)
    def _typed(self, message: TypedLine.Closed) -> None:
        (self._options if self.has_class("-options") else self.query_one(LaunchSteps)).focus()
        self.query_one(TypedLine).carry_out(message, self.host.say)
        self._draw_stage()

    def action_copy(self) -> None:
        """Copy the selected line in full, or everything that was said of the launch."""
        choice = self.choice
        about = choice.about if choice is not None else self._about(self.stage, None)
        text = " ".join(
            "".join(part for part, _ in line[1:] or line).strip() for line in about if line
        ).strip()
        self.host.say(self.host.copy_text(text) if text else "There is nothing here to copy.")

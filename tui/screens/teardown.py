"""The teardown wizard: each step with what ran, what was expected, what was observed, and what is asked now.

It draws the worker's view and sends what the operator decides. Leaving it stops nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult

from tui.model.ending import (
    ChooseDestination,
    ChooseReader,
    DecideLeftovers,
    GivePhrase,
    GiveWord,
    GoOnOver,
    HaltTeardown,
    LeaveTeardown,
    RedoStep,
    StartTeardown,
)
from tui.model.failure import Failure
from tui.model.snapshot import FleetSnapshot
from tui.model.teardown import StepId, StepView, TeardownView
from tui.screens.leftovers import Leftovers
from tui.screens.phrase import PhraseInput, PhraseLine, word_of
from tui.screens.teardown_verbs import offered
from tui.screens.typed_line import TypedLine
from tui.screens.view import View
from tui.widgets import teardown_rows as rows
from tui.widgets.footer import Footer, Verb
from tui.widgets.lines import Line, Lines, Span, clip
from tui.widgets.picker import Item, Picker
from tui.widgets.rule import Rule
from tui.widgets.scroll import Scroll

LOW = 20
"""Below this height only the steps around the selected one are shown."""
_FEW = 3
_BELOW, _BELOW_LOW = 11, 6
"""Rows that the list of leftovers leaves to what stands around and below it."""


class Steps(Picker):
    """The steps; pages are turned in what stands below them."""

    def action_page_down(self) -> None:
        self.screen.query_one(Scroll).page(1)

    def action_page_up(self) -> None:
        self.screen.query_one(Scroll).page(-1)


class TeardownScreen(View):
    """The end of one box.

    Args:
        run: whose files must survive; None where the box has none.
    """

    VIEW = "teardown"
    CSS_PATH = "teardown.tcss"
    AUTO_FOCUS = "#steps"
    TITLE: ClassVar[str | None] = "teardown"

    def __init__(self, box: str, run: str | None, verb: Literal["stop", "destroy"]) -> None:
        super().__init__()
        self.box_name, self.run_name, self.verb_name = box, run, verb
        self._drawn: TeardownView | None = None
        self._followed: StepId | None = None
        self._detailed: object = None
        self._sent = False

    def compose(self) -> ComposeResult:
        yield Rule("teardown", id="top")
        yield Steps(id="steps")
        yield Rule(id="middle")
        yield Leftovers()
        yield Scroll(id="detail")
        yield PhraseLine()
        yield TypedLine()
        yield Rule(id="fate")
        yield Footer()

    def on_mount(self) -> None:
        self._sent = self.host.send(StartTeardown(self.box_name, self.run_name, self.verb_name))

    def on_unmount(self) -> None:
        self.host.send(LeaveTeardown(self.box_name))

    def on_resize(self) -> None:
        self._draw()

    def here(self) -> tuple[str, str | None]:
        """Box and run that an action means now."""
        return self.box_name, self.run_name

    # -- the picture -----------------------------------------------------------------------------------

    @property
    def view(self) -> TeardownView:
        """The worker's view; before it has one, that nothing is known yet."""
        found = self.host.snapshot.teardown(self.box_name)
        fits = found is not None and found.verb == self.verb_name
        return (
            found
            if fits and found
            else TeardownView(self.box_name, self.run_name, self.verb_name, working=True)
        )

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        """Draw what changed."""
        if self.view != self._drawn:
            self._draw()

    @property
    def _low(self) -> bool:
        return self.size.height < LOW

    def _draw(self) -> None:
        width, view = self.size.width, self.view
        if not width:
            return
        before, self._drawn = self._drawn, view
        self.set_class(self._low, "-low")
        self._draw_steps(view, width)
        if self._followed != view.current:
            self._followed = view.current
            self.query_one(Steps).select(view.current)
        self.query_one("#top", Rule).label(*self._title(view))
        self.query_one("#fate", Rule).label(
            clip(rows.fate_spans(view, self.host.glyphs), width - 6, self.host.glyphs.ellipsis)
        )
        self._draw_phrase(view, before)
        self._draw_step()

    def _title(self, view: TeardownView) -> tuple[Sequence[Span], Sequence[Span]]:
        title = rows.title_spans(view, self.size.width, self.host.glyphs)
        if view.ended:
            return title, [(view.ended, "strong")]
        if view.held:
            return title, [("held", "danger")]
        return title, [("at work", "strong")] if view.working else [("waits for you", "attention")]

    def _draw_steps(self, view: TeardownView, width: int) -> None:
        steps = self.query_one(Steps)
        items = [Item(s.id, rows.step_line(view, s, width, self.host.glyphs)) for s in view.steps]
        if not items:
            words = view.problem or "looking at the machine, its records and its platform's facts"
            items = [Item("nothing yet", ((f"  {words}", "dim"),))]
        steps.styles.height = min(len(items), _FEW) if self._low else len(items)
        steps.show_items(items)

    def _draw_phrase(self, view: TeardownView, before: TeardownView | None) -> None:
        line = self.query_one(PhraseLine)
        asked = view.question in ("phrase", "word")
        line.set_class(asked, "-asked")
        old = (before.phrase, before.question) if before is not None else None
        if line.is_open and (not asked or old != (view.phrase, view.question)):
            self._close_phrase()
        line.query_one("#wanted", Lines).show((clip(self._wanted(view), self.size.width - 1),))

    def _wanted(self, view: TeardownView) -> list[Span]:
        """What is to be typed; or what came of what was typed."""
        line = self.query_one(PhraseLine)
        if view.answer and not line.is_open:
            return [(f"   {view.answer}", "attention")]
        how = "type" if line.is_open else f"{self.key_of('type_phrase')}, then type"
        if view.question == "word":
            done = "stopped" if view.verb == "stop" else "gone"
            words: Span = (f"{done}, there or unsure", "strong")
            return [(f"   {how} ", "dim"), words, (": what the console shows", "dim")]
        return [(f"   {how} ", "dim"), (str(view.phrase.text) if view.phrase else "", "strong")]

    @property
    def _selected(self) -> StepView | None:
        key = self.query_one(Steps).selected
        return next((s for s in self.view.steps if s.id == key), None)

    @on(Picker.Moved)
    def _moved(self) -> None:
        self._draw_step()

    def _draw_step(self) -> None:
        view, step, width = self.view, self._selected, self.size.width
        listed = step is not None and step.id == "roster" and bool(view.leftovers)
        self.set_class(listed, "-groups")
        detail = self.query_one(Scroll)
        if step is None:
            detail.fill((), anew=True)
        else:
            above: list[Line] = []
            told = step
            if listed:
                told, above = self._groups.show_groups(step, view.leftovers, width, self._room)
            lines = above + rows.detail_lines(view, told, width, self.host.glyphs)
            about = (step.id, listed and self._groups.chosen)
            detail.fill(lines, anew=about != self._detailed)
            self._detailed = about
            title = rows.name_of(view, step.id).strip()
            self.query_one("#middle", Rule).label(title, self._groups.counted if listed else ())
        always = [] if self._typing else self.verbs("help")  # there it is a letter
        self.query_one(Footer).offer(self._verbs(view, step), always)

    @property
    def _typing(self) -> bool:
        return self.query_one(PhraseLine).is_open or self.query_one(TypedLine).open

    @property
    def _groups(self) -> Leftovers:
        return self.query_one(Leftovers)

    @property
    def _room(self) -> int:
        """Rows that the list of leftovers may take."""
        return self.size.height - self.query_one(Steps).size.height - (_BELOW_LOW if self._low else _BELOW)

    def _verbs(self, view: TeardownView, step: StepView | None) -> list[Verb]:
        """What applies now, most wanted first."""
        if self.query_one(PhraseLine).is_open:
            return [Verb("enter", "give it", 1), Verb("esc", "leave the line", 2)]
        if self.query_one(TypedLine).open:
            return [Verb("enter", "do it", 1), Verb("esc", "leave", 2)]
        wanted = offered(view, step, groups=self.has_class("-groups"))
        found = {name: self.verbs(name) for name in wanted}
        return [replace(v, rank=i) for i, name in enumerate(wanted) for v in found[name]]

    # -- actions ---------------------------------------------------------------------------------------

    def action_step_back(self) -> None:
        self.query_one(Steps).action_cursor_up()

    def action_detach(self) -> None:
        """Leave; what runs goes on."""
        if self.view.working:
            self.host.say(f"It goes on. {self.key_of_fleet()} comes back to it.")
        self.dismiss(None)

    def key_of_fleet(self) -> str:
        """The key that opens this view from the first one."""
        from tui.screens.view import key_of

        return (
            key_of(self.host, "fleet", "teardown" if self.verb_name == "destroy" else "stop") or ":teardown"
        )

    async def action_back(self) -> None:
        """Close what is open, else leave."""
        if self.query_one(PhraseLine).is_open:
            self._close_phrase()
            self._draw()
        elif self.query_one(TypedLine).open:
            self.query_one(TypedLine).close()
        else:
            self.action_detach()

    def action_other_pane(self) -> None:
        groups = self._groups
        target = groups if self.has_class("-groups") and self.focused is not groups else self.query_one(Steps)
        target.focus()
        self._draw_step()

    def action_halt(self) -> None:
        if self.view.working:
            self.host.send(HaltTeardown(self.box_name))

    def action_redo(self) -> None:
        """Make the selected step again."""
        step = self._selected
        if self.view.working:
            raise Failure("It is at work.", do="Halt it first.")
        self.host.send(RedoStep(self.box_name, step.id if step is not None else "roster"))

    def action_destination(self, text: str = "") -> None:
        """Where the copy goes."""
        if self.run_name is None or self.view.step("copy") is None:
            raise Failure("A stop that loses nothing makes no copy.")
        if text:
            self.host.send(ChooseDestination(self.box_name, text))
            return
        before = str(self.view.destination)
        hint = f"enter: {before}" if before else "a folder, BOX:FOLDER or rclone:REMOTE:FOLDER"

        def chosen(typed: str) -> None:
            if not typed.strip() and not before:
                raise Failure("There is no place yet.", do="A folder, BOX:FOLDER or rclone:REMOTE:FOLDER.")
            self.host.send(ChooseDestination(self.box_name, typed.strip()))

        self._ask("destination", "copy to", hint, chosen)

    def action_read_back_on(self, text: str = "") -> None:
        """Who reads the copy back."""
        if self.run_name is None or self.view.step("readback") is None:
            raise Failure("A stop that loses nothing reads no copy back.")
        if text.strip():
            self.host.send(ChooseReader(self.box_name, text.strip()))
            return
        others = ", ".join(self.view.readers)
        hint = f"enter: here; or {others}" if others else "enter: here; no other box is known"
        self._ask("box", "read back on", hint, lambda typed: self._chose_reader(typed.strip() or "here"))

    def _chose_reader(self, name: str) -> None:
        self.host.send(ChooseReader(self.box_name, name))

    def action_mark_group(self) -> None:
        """Mark a group; keep and scrap then mean all that are marked."""
        if self.has_class("-groups"):
            self._groups.mark()
            self._draw_step()

    def action_keep(self) -> None:
        self._decide("keep")

    def action_scrap(self) -> None:
        self._decide("scrap")

    def _decide(self, word: Literal["keep", "scrap"]) -> None:
        """Ask why, then record it for the marked groups, or for the selected one."""
        meant = self._groups.meant if self.has_class("-groups") else ()
        if not meant:
            raise Failure("No group of leftovers is selected.", do="They stand under the roster step.")
        groups = tuple(one.group for one in meant)
        like = any(one.checkpoint_like for one in meant)

        def decided(reason: str) -> None:
            if word == "scrap" and like and not reason.strip():
                raise Failure(
                    "Giving up what looks like checkpoints needs a reason; it stands in the record."
                )
            if self.host.send(DecideLeftovers(self.box_name, groups, word, reason.strip())):
                self._groups.decided(groups)

        many = f"{len(groups)} groups" if len(groups) > 1 else "it"
        hint = "why; it stands in the record" if like and word == "scrap" else "why; may be left empty"
        self._ask("reason", f"{word} {many}", hint, decided)

    def action_go_on_over(self) -> None:
        """Ask why the operator goes on over what the selected step warns of."""
        step, view = self._selected, self.view
        if view.question != "anyway" and (step is None or not step.gaps):
            raise Failure("This step warns of nothing.", means="What is refused has to be cleared.")
        name = "outcome" if view.question == "anyway" or step is None else step.id

        def said(reason: str) -> None:
            if not reason.strip():
                raise Failure("A reason is needed; it stands in the proof and in the receipt.")
            self.host.send(GoOnOver(self.box_name, name, reason.strip()))

        self._ask("reason", "go on because", "it stands in the proof and in the receipt", said)

    def _ask(self, kind: str, sign: str, hint: str, submit: Callable[[str], None]) -> None:
        self.query_one(TypedLine).ask(kind, sign, hint, submit)
        self._draw_step()

    @on(TypedLine.Closed)
    def _answered(self, message: TypedLine.Closed) -> None:
        listed = self.has_class("-groups") and message.submit is not None
        (self._groups if listed else self.query_one(Steps)).focus()
        self.query_one(TypedLine).carry_out(message, self.host.say)
        self._draw_step()

    # -- the phrase ------------------------------------------------------------------------------------

    def action_type_phrase(self) -> None:
        """Open the line for what must be typed."""
        if self.view.question not in ("phrase", "word"):
            raise Failure("Nothing is to be typed now.")
        self.query_one(PhraseLine).open()
        self._draw()

    def _close_phrase(self) -> None:
        self.query_one(PhraseLine).close()
        self.query_one(Steps).focus()

    @on(PhraseInput.Ahead)
    def _ahead(self) -> None:
        self.host.say("What was typed ahead was thrown away. Type it now.", "attention")

    @on(PhraseInput.Given)
    def _given(self, message: PhraseInput.Given) -> None:
        view = self.view
        if message.spoiled:
            self.host.say(f"{message.spoiled} Nothing was done; type it by hand.", "attention")
            return
        self._close_phrase()
        if view.question == "word":
            self.host.send(GiveWord(self.box_name, word_of(message.text, self.verb_name)))
        elif view.phrase is not None:
            self.host.send(GivePhrase(self.box_name, message.text, view.phrase.proof))
        self._draw()

"""A plan to remove places of the allow-list: the exact list, the phrase to type, and what came of it.

It draws what the worker says and sends what was typed. Leaving it stops nothing.
"""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from tui.model.command import ReclaimStorage
from tui.model.failure import Failure
from tui.model.reclaim import ReclaimPlan, ReclaimView
from tui.model.snapshot import FleetSnapshot
from tui.screens.phrase import PhraseInput, PhraseLine
from tui.screens.view import View
from tui.widgets.chooser import Chooser
from tui.widgets.footer import Footer, Verb
from tui.widgets.lines import Lines, Span, clip
from tui.widgets.reclaim_rows import reclaim_entries
from tui.widgets.rule import Rule


class ReclaimScreen(View):
    """One plan, from the list to what was observed."""

    VIEW = "reclaim"
    AUTO_FOCUS = "Chooser"
    TITLE: ClassVar[str | None] = "reclaim"

    def __init__(self, plan: ReclaimPlan) -> None:
        super().__init__()
        self.plan = plan

    def compose(self) -> ComposeResult:
        yield Rule("reclaim", id="top")
        yield Chooser()
        yield PhraseLine()
        yield Footer()

    def on_resize(self) -> None:
        self._draw()

    def here(self) -> tuple[str, str | None]:
        """Box and run that an action means now."""
        return self.plan.box, None

    # -- the picture -----------------------------------------------------------------------------------

    @property
    def view(self) -> ReclaimView | None:
        """What the worker says of this plan; None before it was given a phrase."""
        box = self.host.snapshot.box(self.plan.box)
        found = box.reclaim if box is not None else None
        return found if found is not None and found.plan == self.plan else None

    @property
    def _asks(self) -> bool:
        view = self.view
        return view is None or not (view.working or view.over)

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        """Draw what changed."""
        self._draw()

    def _draw(self) -> None:
        width, view = self.size.width, self.view
        if not width:
            return
        self.query_one(Chooser).show_entries(reclaim_entries(self.plan, view, width, self.host.glyphs))
        state: Span = ("waits for you", "attention")
        if view is not None and view.over:
            state = ("over", "strong")
        elif not self._asks:
            state = ("at work", "accent")
        self.query_one("#top", Rule).label(f"reclaim: {self.plan.box} {self.plan.mount}", [state])
        self._draw_phrase()
        always = [] if self.query_one(PhraseLine).is_open else self.verbs("help")  # there it is a letter
        self.query_one(Footer).offer(self._verbs(), always)

    def _draw_phrase(self) -> None:
        line = self.query_one(PhraseLine)
        line.set_class(self._asks, "-asked")
        if line.is_open and not self._asks:
            self._close()
        how = "type" if line.is_open else f"{self.key_of('type_phrase')}, then type"
        wanted: list[Span] = [(f"   {how} ", "dim"), (str(self.plan.phrase), "strong")]
        line.query_one("#wanted", Lines).show((clip(wanted, self.size.width - 1),))

    def _verbs(self) -> list[Verb]:
        if self.query_one(PhraseLine).is_open:
            return [Verb("enter", "give it", 1), Verb("esc", "leave the line", 2)]
        asked = self.verbs("type_phrase") if self._asks else []
        copies = [Verb(v.key, "copy its commands", 60) for v in self.verbs("copy")]
        return [*asked, *copies, *self.verbs("commands", "back")]

    # -- actions ---------------------------------------------------------------------------------------

    def action_type_phrase(self) -> None:
        """Open the line for the phrase."""
        if not self._asks:
            raise Failure("Nothing is to be typed now.")
        self.query_one(PhraseLine).open()
        self._draw()

    def action_copy(self) -> None:
        """Copy the commands of the whole list, one a line, for whoever would rather run them by hand."""
        text = "\n".join(one.command for one in self.plan.entries)
        self.host.say(f"{len(self.plan.entries)} commands: {self.host.copy_text(text)}")

    async def action_back(self) -> None:
        """Close the line, else leave; what runs goes on."""
        if self.query_one(PhraseLine).is_open:
            self._close()
            self._draw()
            return
        if self.view is not None and self.view.working:
            self.host.say(f"It goes on; {self.plan.box}'s storage comes back to it.")
        self.dismiss(None)

    def _close(self) -> None:
        self.query_one(PhraseLine).close()
        self.query_one(Chooser).focus()

    @on(PhraseInput.Ahead)
    def _ahead(self) -> None:
        self.host.say("What was typed ahead was thrown away. Type it now.", "attention")

    @on(PhraseInput.Given)
    def _given(self, message: PhraseInput.Given) -> None:
        if message.spoiled:
            self.host.say(f"{message.spoiled} Nothing was done; type it by hand.", "attention")
            return
        self._close()
        self.host.send(ReclaimStorage(self.plan, message.text))
        self._draw()

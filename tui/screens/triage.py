"""Triage: what is wrong with a run, what shows it, what was ruled out, and the safe next step.

Nothing here ends, restarts or deletes anything. What is read-only runs on a keypress; everything else is text
to copy.
"""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui.fleet.judge import fullest
from tui.model.command import Diagnose, SurveyStorage, TakeLook
from tui.model.event import Diagnosed
from tui.model.incident import Evidence
from tui.model.look import LOOK, LookAnswer
from tui.model.snapshot import BoxView, FleetSnapshot, RunView
from tui.model.text import safe
from tui.screens.explain import Explanation
from tui.screens.view import View
from tui.widgets.chooser import Chooser
from tui.widgets.footer import Footer, Verb
from tui.widgets.lines import end_of
from tui.widgets.rule import Rule
from tui.widgets.triage_rows import TriageView, entries, first_choice, taken_words

AGAIN_S = 5.0
"""While it is looked at, a diagnosis is made anew this often, if there is anything new to make it from."""
STILL_TRUE_S = 60.0
"""An answer younger than this is shown; asking again needs `r` or this time."""


class TriageScreen(View):
    """The diagnosis of one run, or of a box without one."""

    VIEW = "triage"
    AUTO_FOCUS = "Chooser"
    TITLE: ClassVar[str | None] = "triage"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(str(n), f"evidence({n})", f"evidence {n}", show=False) for n in range(1, 10)
    ]

    def __init__(self, box: str, run: str | None) -> None:
        super().__init__()
        self.box_name = box
        self.run_name = run
        self._asked_at: float | None = None
        self._at_incident = 0
        self._all_evidence = False
        self._looking: dict[str, float] = {}
        self._awaiting: str | None = None

    def compose(self) -> ComposeResult:
        yield Rule("triage", id="top")
        yield Chooser()
        yield Footer()

    def on_mount(self) -> None:
        super().on_mount()
        self._ask()

    def on_resize(self) -> None:
        self._draw()

    def here(self) -> tuple[str, str | None]:
        """Box and run that an action means now."""
        return self.box_name, self.run_name

    # -- the picture -----------------------------------------------------------------------------------

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        """Draw a snapshot, and ask for a new diagnosis when there is something new to make it from."""
        self._settle_looks(snapshot.box(self.box_name))
        told = self._told()
        box = snapshot.box(self.box_name)
        newest = box.telemetry.taken_at if box is not None and box.telemetry is not None else None
        fresh = told is None or (newest is not None and newest > told.at) or self.run_name in log_runs
        if fresh and (self._asked_at is None or self.host.clock() - self._asked_at >= AGAIN_S):
            self._ask()
        self._draw()

    def _ask(self) -> None:
        if self.host.send(Diagnose(self.box_name, self.run_name)):
            self._asked_at = self.host.clock()

    def _settle_looks(self, box: BoxView | None) -> None:
        """Looks whose answer came are not under way any more; the one just asked for is said."""
        for answer in box.looks if box is not None else ():
            if self._looking.get(answer.look, float("inf")) <= answer.at + 1:
                del self._looking[answer.look]
                if self._awaiting == answer.look:
                    self._awaiting = None
                    self._say_answer(answer)
        ladder = box.ladder if box is not None else None
        if ladder is not None and self._looking.get("storage", float("inf")) <= ladder.at + 1:
            del self._looking["storage"]
            if self._awaiting == "storage" and self.is_current:
                self._awaiting = None
                self.call_after_refresh(self._show_ladder)
        for look in [name for name, at in self._looking.items() if self.host.clock() - at > 180]:
            del self._looking[look]

    def _say_answer(self, answer: LookAnswer) -> None:
        if answer.lines:
            self.host.say(f"{LOOK[answer.look].title}: {len(answer.lines)} lines; enter shows them.")
        else:
            self.host.say(f"{LOOK[answer.look].title}: {answer.note or 'nothing came'}", "attention")

    def _box(self) -> BoxView | None:
        return self.host.snapshot.box(self.box_name)

    def _run(self) -> RunView | None:
        return self.host.snapshot.run(self.run_name) if self.run_name is not None else None

    def _told(self) -> Diagnosed | None:
        run, box = self._run(), self._box()
        if self.run_name is not None:
            return run.diagnosed if run is not None else None
        return box.diagnosed if box is not None else None

    def view(self) -> TriageView:
        """What is drawn."""
        box = self._box()
        worst = fullest(box) if box is not None else None
        return TriageView(
            box,
            self._run(),
            self._told(),
            self.host.clock(),
            self.host.period_s,
            self.host.glyphs,
            self._at_incident,
            self._asked_at,
            str(worst.mount) if worst is not None else "",
            frozenset(self._looking),
            self._all_evidence,
        )

    def _draw(self) -> None:
        width = self.size.width
        if not width:
            return
        chooser, view = self.query_one(Chooser), self.view()
        found = entries(view, width, chooser.size.height or self.size.height - 2)
        chooser.show_entries(found, first_choice(found))
        name = f"{self.box_name} {view.glyphs.dot} {self.run_name}" if self.run_name else self.box_name
        words = taken_words(view)
        room = max(8, width - len(words) - 16)
        title = [("triage: ", "title"), (end_of(safe(name), room, ellipsis=view.glyphs.ellipsis), "title")]
        self.query_one("#top", Rule).label(title, [(words, "dim")])
        self.query_one(Footer).offer(self._footer(view), self.verbs("help", "command"))

    @on(Chooser.Moved)
    def _moved(self) -> None:
        self.query_one(Footer).offer(self._footer(self.view()), self.verbs("help", "command"))

    def _footer(self, view: TriageView) -> list[Verb]:
        """What the keys do with the selected entry."""
        kind = self._selected()[0]
        does = {
            "evidence": "show the place",
            "step": "do it" if self._look_of_selected() else "copy",
            "look": "look",
            "storage": "look",
            "incident": "show",
            "more": "show all",
        }.get(kind, "")
        keys = [Verb("enter", does, 1)] if does else []
        if view.incident is not None:
            keys.append(Verb("1-9", "evidence", 2))
        back = [Verb(v.key, v.label, 3) for v in self.verbs("copy")]
        return [*keys, *back, *self.verbs("log", "explain", "probe", "shell", "back")]

    # -- what is selected --------------------------------------------------------------------------------

    def _selected(self) -> tuple[str, object]:
        key = self.query_one(Chooser).selected
        if isinstance(key, tuple) and key:
            return (str(key[0]), key[1] if len(key) > 1 else None)
        return ("", None)

    def _evidence(self, place: object) -> Evidence | None:
        incident = self.view().incident
        known = incident is not None and isinstance(place, int) and place < len(incident.evidence)
        return incident.evidence[place] if known and incident is not None and isinstance(place, int) else None

    def _look_of_selected(self) -> str:
        """Id of the look that the selected entry asks for; empty where it is none."""
        kind, what = self._selected()
        if kind == "storage":
            return "storage"
        if kind == "look":
            return str(what)
        incident = self.view().incident
        if kind == "step" and incident is not None and isinstance(what, int) and what < len(incident.remedy):
            return incident.remedy[what].look or ""
        return ""

    # -- actions -----------------------------------------------------------------------------------------

    def action_open(self) -> None:
        """Do what the selected entry offers: show the place, take the look, or copy the text."""
        kind, what = self._selected()
        if kind == "evidence":
            self._show_evidence(what)
        elif kind == "incident" and isinstance(what, int):
            self._at_incident = what
            self._all_evidence = False
            self._draw()
        elif kind == "more":
            self._all_evidence = True
            self._draw()
        elif look := self._look_of_selected():
            self._take(look, again=False)
        elif kind:
            self.action_copy()

    def action_evidence(self, number: int) -> None:
        """Show the place of a piece of evidence, counted from 1."""
        self._show_evidence(number - 1)

    def _show_evidence(self, place: object) -> None:
        found = self._evidence(place)
        if found is None:
            self.host.say("There is no evidence with this number.")
            return
        self.query_one(Chooser).select(("evidence", place))
        if found.line is not None and self.run_name is not None:
            self.host.open_run(self.box_name, self.run_name, line=found.line)
        else:
            self._explain_evidence(found)

    def _explain_evidence(self, found: Evidence) -> None:
        from tui.screens.explain import ExplainScreen

        answer = next(
            (a for a in self.view().looks if found.source.startswith(a.look.replace("_", " "))), None
        )
        raw = answer.lines if answer is not None else ()
        meaning = "Evidence of the diagnosis, as it was said there."
        title = f"{self.run_name or self.box_name} evidence"
        at = found.at if found.at is not None else self._told_at()
        self.app.push_screen(ExplainScreen(Explanation(title, found.text, meaning, found.source, at, raw)))

    def _told_at(self) -> float | None:
        told = self._told()
        return told.diagnosis.taken_at if told is not None else None

    def _take(self, look: str, *, again: bool) -> None:
        """Run a look, or show its answer while that is still true."""
        now = self.host.clock()
        box = self._box()
        if look == "storage":
            ladder = box.ladder if box is not None else None
            if ladder is not None and not again and now - ladder.at < STILL_TRUE_S:
                self._show_ladder()
                return
            mount = self.view().mount
            sent = self.host.send(SurveyStorage(self.box_name, self.run_name, mount))
        else:
            answer = next((a for a in self.view().looks if a.look == look), None)
            if answer is not None and not again and now - answer.at < STILL_TRUE_S and answer.lines:
                self._show_answer(answer)
                return
            sent = self.host.send(TakeLook(self.box_name, self.run_name, look))
        if sent:
            self._looking[look] = now
            self._awaiting = look
            self._draw()

    def _show_answer(self, answer: LookAnswer) -> None:
        from tui.screens.explain import ExplainScreen

        ended = "did not end by itself" if answer.exit is None else f"ended with exit status {answer.exit}"
        meaning = f"A read-only look; it {ended} after {answer.took_s:.1f} s."
        title = f"{self.box_name} {answer.look.replace('_', ' ')} {answer.subject}".strip()
        shown, note = f"{len(answer.lines)} lines", str(answer.note)
        found = Explanation(title, shown, meaning, answer.command, answer.at, answer.lines, note)
        self.app.push_screen(ExplainScreen(found))

    def _show_ladder(self) -> None:
        from tui.screens.storage import StorageScreen

        self.app.push_screen(StorageScreen(self.box_name))

    def action_triage(self, name: str = "") -> None:
        """Look again, or at another run."""
        if name:
            self.dismiss(None)
            self.host.open_triage(name)
        else:
            self._ask()
            self.host.say("Looking again.")

    def action_probe(self) -> None:
        """Take the selected look again; elsewhere, probe and diagnose anew."""
        from tui.model.command import ProbeNow

        if look := self._look_of_selected():
            self._take(look, again=True)
        elif self.host.send(ProbeNow(self.box_name)):
            self.host.say(f"Probing {self.box_name} now.")

    def action_log(self) -> None:
        """Open the run's log."""
        if self.run_name is None:
            self.host.say("This box has no watched run, so there is no log.", "attention")
        else:
            self.host.open_run(self.box_name, self.run_name, zoom=True)

    def action_copy(self) -> None:
        """Copy the selected entry: its command where it has one."""
        text = self._text_of_selected()
        self.host.say(self.host.copy_text(text) if text else "There is nothing here to copy.")

    def _text_of_selected(self) -> str:
        kind, what = self._selected()
        view = self.view()
        incident = view.incident
        if kind == "evidence" and (piece := self._evidence(what)) is not None:
            return piece.text
        if incident is not None and kind == "step" and isinstance(what, int) and what < len(incident.remedy):
            step = incident.remedy[what]
            return step.command or step.text
        if view.told is not None and kind == "ruled":
            found = (*(incident.ruled_out if incident is not None else ()), *view.told.diagnosis.ruled_out)
            return "; ".join(f"{one.cls}: {one.why}" for one in found)
        if kind == "look" and (answer := next((a for a in view.looks if a.look == what), None)) is not None:
            return "\n".join([answer.command, *answer.lines])
        told = view.told
        return str(told.diagnosis.verdict) if told is not None else ""

    def action_explain(self) -> None:
        """Where the selected piece of evidence, or the answer of the selected look, comes from."""
        kind, what = self._selected()
        found = self._evidence(what) if kind == "evidence" else None
        look = self._look_of_selected()
        answer = next((a for a in self.view().looks if a.look == look), None)
        if found is not None:
            self._explain_evidence(found)
        elif answer is not None:
            self._show_answer(answer)
        else:
            self.host.say("Select a piece of evidence or a look that was taken.")

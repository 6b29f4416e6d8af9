"""One run, or one box without a run: its log, and what the box says about itself beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget

from tui.fleet.age import age_word, is_stale
from tui.model.command import ForgetRun, LoadOlder, ReconnectNow
from tui.model.instance import LinkState
from tui.model.run import RunState
from tui.model.snapshot import FleetSnapshot
from tui.model.text import safe
from tui.screens.log_actions import LogActions
from tui.screens.typed_line import TypedLine
from tui.widgets.candidates import CandidatePanel
from tui.widgets.checkpoint_panel import CheckpointPanel
from tui.widgets.curve import CurvePanel
from tui.widgets.disk_panel import DiskPanel
from tui.widgets.figures import significant
from tui.widgets.footer import Footer, Verb
from tui.widgets.gpu_panel import GpuPanel
from tui.widgets.lines import Line, Lines, Span, end_of, wrap
from tui.widgets.logview import LogView
from tui.widgets.memory_panel import MemoryPanel
from tui.widgets.panel import Panel, Sight
from tui.widgets.process_panel import ProcessPanel
from tui.widgets.run_head import head_lines
from tui.widgets.search_list import SearchList
from tui.widgets.summary import Summary

if TYPE_CHECKING:
    from tui.fleet.store import Store

BESIDE = 100
"""From this width on the panels stand beside the log; below it they are a line each above it."""
MOST_OLDER = 20_000
LOW = 20
"""Below this height the summary keeps three lines."""


_RULE_WORDS = 26
"""Cells of the log's rule that its title leaves to the word at the right."""


class RunScreen(LogActions):
    """The run view.

    Args:
        store: where the log's lines lie and commands go.
        run: name of the run; None for a box without one.
        box: name of its box.
        read_only: as the app was started; the registry leaves out what changes something.
    """

    VIEW = "run"
    CSS_PATH = "run.tcss"
    AUTO_FOCUS = "LogView"
    TITLE: ClassVar[str | None] = "run"

    def __init__(self, store: Store, run: str | None, box: str, *, read_only: bool = False) -> None:
        super().__init__()
        self.store = store
        self.run_name = run
        self.box_name = box
        self.read_only = read_only
        self._zoomed: Widget | None = None
        self._drawn: FleetSnapshot | None = None
        self._drawn_at = 0
        self._wanted_line: int | None = None

    def compose(self) -> ComposeResult:
        yield Lines(id="head")
        yield Summary(id="summary")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield LogView(self.store.send, id="log")
                yield SearchList(id="found")
            with VerticalScroll(id="side", can_focus=False):
                yield GpuPanel()
                yield DiskPanel()
                yield MemoryPanel()
                yield CheckpointPanel()
                yield CurvePanel()
                yield CandidatePanel()
                yield ProcessPanel()
        yield TypedLine()
        yield Footer()

    def on_mount(self) -> None:
        self._open_log()
        self._place()

    def on_resize(self) -> None:
        self._place()
        self._draw()

    # -- the picture -----------------------------------------------------------------------------------

    def here(self) -> tuple[str, str | None]:
        """Box and run that an action means now."""
        return self.box_name, self.run_name

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        """Draw a snapshot by difference; `log_runs` names the runs whose log grew."""
        if self.run_name is None and (runs := snapshot.runs_on(self.box_name)):
            self.run_name = runs[0].name  # adopted while we looked
            self._open_log()
            self._place()
        if self.run_name in log_runs:
            self.log_view.changed()
            if self._wanted_line is not None:
                self.show_line(self._wanted_line)
        moment = int(self.host.clock())
        # A chatty log publishes ten times a second; what stands beside it changes seldom.
        if snapshot is not self._drawn or moment != self._drawn_at:
            self._drawn, self._drawn_at = snapshot, moment
            self._draw()

    def sight(self) -> Sight:
        """What the panels are drawn from."""
        host, snapshot = self.host, self.host.snapshot
        return Sight(
            box=snapshot.box(self.box_name),
            run=snapshot.run(self.run_name) if self.run_name is not None else None,
            now=host.clock(),
            period_s=host.period_s,
            glyphs=host.glyphs,
            thresholds=self.store.rules.thresholds,
        )

    def _there(self, sight: Sight) -> Sight:
        """The same of the machine that runs it, where a scheduler gave it another one."""
        if sight.box is None or sight.run is None:
            return sight
        machine = self.host.snapshot.machine_of(sight.box, sight.run)
        return sight if machine is sight.box else replace(sight, box=machine, elsewhere=True)

    def _draw(self) -> None:
        width = self.size.width
        if not width:
            return
        sight = self.sight()
        there = self._there(sight)
        self.query_one("#head", Lines).show(head_lines(sight, self.run_name, self.box_name, width))
        self.query_one(Summary).apply(sight, there)
        for panel in self.query(Panel):
            panel.apply(there if panel.OF_JOB else sight)
        self._label_log(sight)
        self.query_one(SearchList).apply(self.host.snapshot.searches, self.run_name)
        always = [] if self.typed_line.open else self.verbs("help", "command")  # there they are letters
        self.query_one(Footer).offer(self._footer(sight), always)

    def _label_log(self, sight: Sight) -> None:
        run = sight.run
        title: list[Span] = [("log", "title")]
        word: Span = ("", "")
        if run is not None and run.spec.log:
            room = self.log_view.size.width - _RULE_WORDS
            title.append((f" {end_of(safe(run.spec.log), room, ellipsis=self.host.glyphs.ellipsis)}", "dim"))
        link = sight.box.link.state if sight.box is not None else None
        heard = self._heard_at(sight)
        live = link is LinkState.LIVE and not is_stale(heard, sight.now, sight.period_s)
        state = run.log_state if run is not None else None
        note = ""
        if run is not None and link is not None and link is not LinkState.LIVE:
            word = (link.value, "attention")
        elif heard is not None and not live:
            word = (f"silent {age_word(heard, sight.now, sight.period_s)}", "attention")
        elif state is not None:
            following = state.word == "following"
            # "following" would contradict "paused" below it, which tells of the reader and not of the file
            word = ("live" if following else state.word, "dim" if following else "attention")
            note = state.detail if following else ""
        self.log_view.label(title, word, self._empty_log(sight), live=live, note=note)

    def _heard_at(self, sight: Sight) -> float | None:
        """When the box last said anything, by its probe or in the log. A link that stands says nothing."""
        probed = sight.telemetry.taken_at if sight.telemetry is not None else None
        read = self.store.log(self.run_name).read_at if self.run_name is not None else None
        return max((at for at in (probed, read) if at is not None), default=None)

    def _empty_log(self, sight: Sight) -> list[Line]:
        """What stands where a log would: why there is none, and what to do about it."""
        width = max(20, self.log_view.size.width - 4)
        lines: list[Line] = [()]
        for text, style in self._why_empty(sight):
            if text:
                lines += [*(((f"  {part}", style),) for part in wrap(safe(text), width)), ()]
        return lines

    def _why_empty(self, sight: Sight) -> list[Span]:
        run, box = sight.run, safe(self.box_name)
        in_shell = (f"In a shell:  rgt watch {box} --log PATH", "dim")
        if self.run_name is None:
            return [
                ("No run of this box is watched, so there is no log to show.", "strong"),
                *self._how(sight),
                in_shell,
            ]
        if run is None:
            return [(f"{self.run_name} is not watched any more. Nothing happened to it on the box.", "")]
        if not run.spec.log:
            return [("This run names no log.", "strong"), in_shell]
        if run.log_state is not None:
            return [(run.log_state.word, "strong"), (run.log_state.detail, "")]
        return [("Nothing was read from this log yet.", "dim")]

    def _how(self, sight: Sight) -> list[Span]:
        """How to adopt a run on this box."""
        found = sight.telemetry.candidates.value if sight.telemetry else None
        key = self.key_of("adopt")
        if found is None or not key:
            return [("Read-only mode cannot start to watch one.", "")] if not key else []
        many = f"{len(found)} here look like a run" if len(found) > 1 else "one here looks like a run"
        return [(f"Press {key} to choose what to watch: {many if found else 'nothing found so far'}.", "")]

    def _footer(self, sight: Sight) -> list[Verb]:
        """What applies to the focused pane now, most wanted first."""
        if self.typed_line.open:
            return [Verb("enter", "do it", 1), Verb("esc", "leave", 2), Verb("↑", "earlier", 3)]
        wanted = ["follow", "wrap", "filter", "filter_in", "next_error", "next_pane", "zoom"]
        if isinstance(self.focused, SearchList):
            keys = [Verb("enter", "go there", 1), Verb(self.key_of("back"), "close", 2)]
            return [*keys, *(replace(v, rank=3) for v in self.verbs("copy"))]
        if isinstance(self.focused, (Panel, Summary)):
            wanted = ["next_pane", "zoom", "explain", "copy", "probe", "shell"]
        if self.run_name is None:
            wanted = ["adopt", "next_pane", "zoom", "probe", "shell"]
        if sight.box is not None and sight.box.link.state is not LinkState.LIVE:
            wanted.insert(0, "reconnect")
        if run_wants_triage(sight):
            wanted.insert(0, "triage")
        else:
            wanted.insert(4, "triage")
        if sight.run is not None and sight.run.state is RunState.FINISHED:
            wanted.insert(1, "teardown")
        found = {name: self.verbs(name) for name in wanted}
        return [replace(v, rank=i) for i, name in enumerate(wanted) for v in found[name]]

    def _open_log(self) -> None:
        run = self.run_name
        self.log_view.open(run, self.store.log(run) if run is not None else None)

    def show_line(self, number: int) -> None:
        """Put the log's cursor on a line, counted from 0; ask the spool for it when it is not in memory."""
        asked, self._wanted_line = self._wanted_line, None
        if self.run_name is None or self.log_view.go(number):
            return
        base = self.store.log(self.run_name).base
        if number < base and asked is None:
            self._wanted_line = number
            self.host.send(LoadOlder(self.run_name, before=base, count=min(base - number + 200, MOST_OLDER)))
        elif number >= base:
            key = self.host.way_to("clear_filters")
            self.host.say(f"Line {number + 1:,} is hidden by a filter; {key} drops all filters.")
        else:
            key = self.host.way_to("search_box")
            self.host.say(
                f"Line {number + 1:,} is neither in memory nor in the spool; {key} searches the box."
            )

    # -- panes -------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Which panes there is room for."""
        low = self.size.height < LOW or self.run_name is None  # without a run there is nothing saved
        zoomed = self._zoomed
        self.set_class(self.size.width >= BESIDE, "-beside")
        self.set_class(low, "-low")
        self.set_class(zoomed is not None, "-zoomed")
        self.set_class(isinstance(zoomed, (Panel, Summary)), "-side")
        self.query_one(Summary).rows = 3 if low else 4
        for panel in self.query(Panel):
            panel.away = isinstance(zoomed, Panel) and panel is not zoomed

    def action_zoom(self) -> None:
        """Give the focused pane the whole screen, or take it back. The summary unfolds into all panels."""
        focused = self.focused
        if self._zoomed is not None:
            self._zoomed = None
            self._place()
            if isinstance(focused, Panel) and not self.has_class("-beside"):
                self.query_one(Summary).focus()  # the panels fold up again
        else:
            self._zoomed = focused if isinstance(focused, (Panel, Summary)) else self.log_view
            self._place()
            if isinstance(focused, Summary):
                self.call_after_refresh(self.query(Panel).first().focus)
        self.call_after_refresh(self._draw)

    def action_log(self) -> None:
        """Zoom the log."""
        self.log_view.focus()
        self._zoomed = self.log_view
        self._place()
        self.call_after_refresh(self._draw)

    def action_next_pane(self) -> None:
        self.focus_next()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self._draw()

    async def action_back(self) -> None:
        """Close what is open: the line being typed, search results, the zoom, the view."""
        found = self.query_one(SearchList)
        if self.typed_line.open:
            self.typed_line.close()
        elif found.display:
            found.close()
            self.log_view.focus()
        elif self._zoomed is not None:
            self.action_zoom()
        else:
            self.dismiss(None)

    # -- the box's actions ---------------------------------------------------------------------------------

    def action_reconnect(self) -> None:
        """Connect now; where the box waits for an answer, ask for it."""
        from tui.screens.ask import HostKeySheet, SecretSheet  # shown rarely, loaded late

        box = self.host.snapshot.box(self.box_name)
        if box is not None and box.asked_key is not None:
            self.app.push_screen(HostKeySheet(box.asked_key))
        elif box is not None and box.asked_secret is not None:
            self.app.push_screen(SecretSheet(box.asked_secret))
        elif self.host.send(ReconnectNow(self.box_name)):
            self.host.say(f"{self.box_name}: connecting now.")

    def action_forget(self) -> None:
        """Stop watching the run."""
        if self.run_name is None:
            self.host.say("This box has no watched run.", "attention")
        elif self.twice("forget", f"stops watching {self.run_name}; nothing happens to it"):
            self.host.send(ForgetRun(self.run_name))

    def action_copy(self) -> None:
        """Copy what the focused pane says."""
        focused = self.focused
        if isinstance(focused, SearchList):
            hit = focused.hit
            text = hit.text if hit else ""
        elif isinstance(focused, (Panel, Summary)):
            text = focused.text
        else:
            self.log_view.action_copy()
            return
        self.host.say(self.host.copy_text(text) if text else "There is nothing here to copy.")

    def action_explain(self) -> None:
        """Where the focused pane's values come from."""
        from tui.screens.explain import ExplainScreen, Explanation, of_reading

        pane = self.focused
        sight = pane.sight if isinstance(pane, Panel) else self.sight()
        box = self.box_name if sight.box is None else sight.box.name
        name = self.run_name or self.box_name
        if isinstance(pane, Panel) and (reading := pane.reading(sight)) is not None:
            value = pane.lines[1] if len(pane.lines) > 1 else ()
            shown = " ".join("".join(text for text, _ in value).split())
            found = of_reading(f"{box} {pane.TITLE}", shown, pane.MEANING, reading)
        elif isinstance(pane, CurvePanel) and sight.run is not None and sight.run.progress is not None:
            progress, path = sight.run.progress, sight.run.spec.log or ""
            loss = significant(progress.loss)
            source, raw = f"log {path}", (progress.line,)
            found = Explanation(f"{name} loss", loss, pane.MEANING, source, progress.at, raw)
        elif isinstance(pane, Panel):
            found = Explanation(f"{name} {pane.TITLE}", "", pane.MEANING, reason="not probed yet")
        else:
            run = sight.run
            state = run.state.value if run else "no watched run"
            meaning = f"Judged from the evidence: {run.why}." if run else "Nothing is watched on this box."
            found = Explanation(f"{name} state", state, meaning, taken_at=run.truth_at if run else None)
        self.app.push_screen(ExplainScreen(found))


def run_wants_triage(sight: Sight) -> bool:
    """Whether something is wrong, so that triage is the first thing to offer."""
    return bool(
        (sight.run is not None and sight.run.attention) or (sight.box is not None and sight.box.attention)
    )

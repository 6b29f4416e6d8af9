"""The first view: every box and run, worst first, and the selected one in full."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.widgets import Input

from tui.model.command import ForgetBox, ForgetRun, ProbeNow, ReconnectNow
from tui.model.failure import Failure
from tui.model.instance import LinkState
from tui.model.run import RunState
from tui.model.snapshot import BoxView, FleetSnapshot
from tui.model.text import LogText
from tui.screens.view import View
from tui.widgets.detail import Detail, Look, sentence
from tui.widgets.footer import Footer, Verb
from tui.widgets.header import Header
from tui.widgets.lines import Line, Lines, Span, clip, wrap
from tui.widgets.roster import Roster
from tui.widgets.roster_rows import Key
from tui.widgets.rule import Rule

BESIDE = 160
"""From this width on the detail stands beside the roster, where all of it would not fit below."""
BELOW = 24
"""From this height on it stands below."""
DETAIL_LEAST, DETAIL_WHOLE = 9, 24
"""Rows of a detail: the fewest that are worth it, and as many as have room for the log's newest lines."""
TAIL_S = 2.0
"""Seconds between two looks at the newest lines of a log: a line to a far terminal is spared their stream."""


class FleetScreen(View):
    """The instance roster with its detail."""

    VIEW = "fleet"
    AUTO_FOCUS = "Roster"
    TITLE: ClassVar[str | None] = "fleet"

    def __init__(self) -> None:
        super().__init__()
        self._roster_height: int | str = "1fr"
        self._tail: tuple[str, float, tuple[LogText, ...]] = ("", 0.0, ())

    def compose(self) -> ComposeResult:
        host = self.host
        yield Header(clock=host.clock, read_only=host.read_only)
        yield Rule("fleet", id="top")
        with Container(id="body"):
            yield Roster(clock=host.clock)
            with Vertical(id="pane"):
                yield Rule(id="middle")
                yield Detail()
        yield Lines(id="empty")
        yield Lines(id="sentence")
        yield Horizontal(id="prompt")
        yield Footer()

    def on_resize(self) -> None:
        self._place()

    @property
    def roster(self) -> Roster:
        return self.query_one(Roster)

    def here(self) -> tuple[str, str | None] | None:
        """Box and run that an action means now."""
        key = self.roster.key
        return None if key is None else (key[0], key[1] or None)

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        """Draw a snapshot by difference."""
        self.query_one(Header).apply(snapshot, self.host.period_s)
        self.roster.apply(snapshot, self.host.period_s)
        if not snapshot.boxes:
            self.query_one("#empty", Lines).show(self._welcome(snapshot))
        self._place()
        self._describe()

    def _place(self) -> None:
        """Give the roster the rows it needs and the detail the rest."""
        width, height = self.app.size
        whole = height - 3 - (self.roster.counts[1] + 1) >= DETAIL_WHOLE
        beside = width >= BESIDE and not whole
        below = height >= BELOW and not beside
        empty = not self.host.snapshot.boxes
        shape = {"-beside": beside, "-below": below, "-low": height < 12, "-empty": empty}
        if any(self.has_class(name) != on for name, on in shape.items()):
            self.update_classes(shape)  # all at once: each change restyles the whole view
        rows = max(2, min(self.roster.counts[1] + 1, height - 3 - DETAIL_LEAST)) if below else None
        wanted = "1fr" if rows is None else rows
        if self._roster_height != wanted:
            self._roster_height = wanted
            self.roster.styles.height = wanted

    def _describe(self) -> None:
        roster = self.roster
        look = self._look()
        self.query_one(Detail).apply(look)
        urgent = sentence(look, self.size.width - 1, self._spare_rows()) if look is not None else []
        if look is None and roster.query_text:
            urgent = self._no_match(roster)
            self.query_one(Detail).show(urgent)
        below = self.query_one("#sentence", Lines)
        below.styles.height = max(1, len(urgent))
        below.show(urgent)
        name = "" if look is None else look.box.name
        if look is not None and look.run is not None:
            name += f" {self.host.glyphs.dot} {look.run.name}"
        self.query_one("#middle", Rule).label([(name, "title")] if name else ())
        self.query_one("#top", Rule).label(*self._rule_text(roster))
        self.query_one(Footer).offer(self._verbs(look), self.verbs("help", "command"))

    def _no_match(self, roster: Roster) -> list[Line]:
        """What stands in for rows that a filter left none of."""
        text = f"None of {roster.counts[1]} rows matches the filter. {self.key_of('back')} shows all of them."
        room = self.query_one(Detail).size.width or self.size.width
        return [(("  ", ""), (part, "")) for part in wrap(text, max(10, room - 4))]

    def _spare_rows(self) -> int:
        """Rows for the sentence: the one that is its own, and those that the roster leaves blank."""
        others = len(("header", "rule", "column heads", "footer"))
        return max(1, self.app.size.height - others - self.roster.counts[0])

    def _rule_text(self, roster: Roster) -> tuple[list[Span], list[Span]]:
        shown, total = roster.counts
        title: list[Span] = [("fleet", "title")]
        if roster.query_text:
            title += [
                ("  filter ", "dim"),
                (f"{shown} of {total}  ", "strong"),  # before the text, which may be cut
                (roster.query_text, "accent"),
            ]
        if roster.marks:
            title.append((f"  {len(roster.marks)} marked", "accent"))
        if problems := self.host.snapshot.problems:
            glyphs = self.host.glyphs
            many = f"1 of {len(problems)}: " if len(problems) > 1 else ""
            title.append((f"  {glyphs.attention} {many}{problems[0]}", "attention"))
            title = list(clip(title, max(0, self.size.width - 5), glyphs.ellipsis))
        if not total:
            return title, []
        order = f"{roster.sort_by}{', reversed' if roster.turned else ''}"
        return title, [
            (self.key_of("filter"), "strong"),
            (" filter   ", "dim"),
            (self.key_of("sort"), "strong"),
            (f" sorted by {order}", "dim"),
        ]

    def _look(self) -> Look | None:
        key = self.roster.key
        box = self.host.snapshot.box(key[0]) if key else None
        if key is None or box is None:
            return None
        host = self.host
        runs = host.snapshot.runs_on(box.name)
        run = next((r for r in runs if r.name == key[1]), None)
        return Look(
            box,
            run,
            host.snapshot.machine_of(box, run) if run is not None else box,
            host.clock(),
            host.period_s,
            host.glyphs,
            self.key_of,
            max(0, len(runs) - (run is not None)),
            self._newest(run.name) if run is not None else (),
        )

    def _newest(self, run: str) -> tuple[LogText, ...]:
        """The newest lines of a run's log, as of at most `TAIL_S` ago."""
        name, at, lines = self._tail
        now = self.host.clock()
        if name != run or abs(now - at) >= TAIL_S:
            found = tuple(self.host.log_tail(run, self.size.height))
            self._tail = (run, now, lines if found == lines else found)
        return self._tail[2]

    def _verbs(self, look: Look | None) -> list[Verb]:
        """What applies to the selected row now."""
        if look is None:
            return (
                self.verbs("add", "filter", "back") if self.roster.query_text else self.verbs("add", "setup")
            )
        if look.box.ended is not None:
            own = ("log", "clear") if look.run else ("clear",)
            return self.verbs("open", "filter", "sort", "add", "teardown", *own)
        wanted = ["open", "filter", "sort", "add", "triage"]
        if look.run is not None:
            wanted.append("log")
        if _has_candidates(look.box):
            wanted.append("adopt")
        if look.box.link.state is LinkState.LIVE:
            wanted += ["probe", "shell"]
        else:
            wanted.append("reconnect")
        wanted += ["launch", "setup", "matrix", "handbook", "cards", "mark"]  # last, where there is room
        ends = self.verbs("teardown", "stop")
        if look.run is not None and look.run.state is RunState.FINISHED:  # what is left to do
            ends = [replace(verb, rank=2) for verb in ends]
        return [*self.verbs(*wanted), *ends]

    def _welcome(self, snapshot: FleetSnapshot) -> list[Line]:
        if not snapshot.started:
            return [(("  reading fleet.toml", "dim"),)]
        if snapshot.problems:
            width = max(20, self.size.width - 4)
            told = [part for problem in snapshot.problems for part in wrap(problem, width)]
            head: Line = (("  Which boxes there are can't be told.", "strong"),)
            return [head, (), *(((f"  {part}", ""),) for part in told)]
        keys = [
            (self.key_of("setup"), "guided setup, of a rented box or one you have"),
            (self.key_of("add"), "paste the ssh command that your console shows"),
        ]
        typed = [
            ("rgt add 'ssh -p 34567 root@host'", "the same"),
            ("rgt demo", "five boxes to try it on"),
        ]
        return [
            (("  No box is known yet.", "strong"),),
            (),
            *(((f"  {key:3}", "strong"), (text, "")) for key, text in keys if key),
            (),
            (("  or in a shell", "dim"),),
            *(((f"  {words:34}", "strong"), (text, "dim")) for words, text in typed),
        ]

    @on(Roster.Moved)
    def _moved(self) -> None:
        self._describe()

    # -- actions -------------------------------------------------------------------------------------

    def action_open(self) -> None:
        key = self.roster.key
        box = self.host.snapshot.box(key[0]) if key else None
        if key is None or box is None:
            return
        if box.asked_secret is not None or (box.asked_key is not None and not self.host.read_only):
            self.ask(box)
        else:
            self.host.open_run(key[0], key[1] or None)

    def action_log(self) -> None:
        key = self.roster.key
        if key is None or not key[1]:
            self.host.say("This box has no watched run, so there is no log.", "attention")
            return
        self.host.open_run(key[0], key[1], zoom=True)

    def ask(self, box: BoxView) -> None:
        """Put the question that stops this box to the operator."""
        from tui.screens.ask import HostKeySheet, SecretSheet  # shown rarely, loaded late

        if box.asked_key is not None:
            self.app.push_screen(HostKeySheet(box.asked_key))
        elif box.asked_secret is not None:
            self.app.push_screen(SecretSheet(box.asked_secret))

    def action_reconnect(self) -> None:
        for box_name, _ in self._boxes():
            box = self.host.snapshot.box(box_name)
            if box is None:
                continue
            if box.asked_key is not None or box.asked_secret is not None:
                self.ask(box)
                return
            if self.host.send(ReconnectNow(box_name)):
                self.host.say(f"{box_name}: connecting now.")

    def action_probe(self) -> None:
        names = [name for name, _ in self._boxes() if self.host.send(ProbeNow(name))]
        if names:
            self.host.say(f"Probing {', '.join(names)} now.")

    def action_forget(self) -> None:
        runs = [run for _, run in self.roster.chosen() if run]
        if not runs:
            self.host.say("This row has no watched run.", "attention")
        elif self.twice("forget", f"stops watching {', '.join(runs)}; nothing happens to it"):
            for run in runs:
                self.host.send(ForgetRun(run))

    def action_clear(self) -> None:
        """Take destroyed boxes out of the list."""
        names = [name for name, _ in self._boxes()]
        over = [name for name in names if (box := self.host.snapshot.box(name)) and box.ended is not None]
        if not over:
            self.host.say("Only a destroyed box is cleared. D ends a box that may still bill.", "attention")
        for name in over:
            self.host.send(ForgetBox(name))

    def _boxes(self) -> list[Key]:
        seen: dict[str, Key] = {}
        for key in self.roster.chosen():
            seen.setdefault(key[0], key)
        return list(seen.values())

    def action_sort(self, text: str = "") -> None:
        from tui.widgets.roster_rows import SORTS

        if text and text not in SORTS:
            raise Failure(f"There is no order {text!r}.", do=f"Orders: {', '.join(SORTS)}.")
        self.roster.sort(text or None)
        self._describe()

    def action_reverse(self) -> None:
        self.roster.turn()
        self._describe()

    def action_mark(self) -> None:
        self.roster.mark()
        self.roster.action_cursor_down()
        self._describe()

    def action_copy(self) -> None:
        roster = self.roster
        if roster.marks:
            rows = [roster.row(key) for key in roster.chosen()]
            text = "\n".join("\t".join(c.text for c in row.cells.values() if c.text) for row in rows if row)
        else:
            row = roster.row(roster.key) if roster.key else None
            text = row.cells[roster.column].text if row else ""
        self.host.say(self.host.copy_text(text) if text else "There is nothing here to copy.")

    def action_explain(self) -> None:
        from tui.screens.explain import ExplainScreen, of_column

        look = self._look()
        if look is None:
            return
        row = self.roster.row((look.box.name, look.run.name if look.run else ""))
        value = row.cells[self.roster.column].text if row else ""
        self.app.push_screen(ExplainScreen(of_column(look.box, look.run, self.roster.column, value)))

    async def action_filter(self, text: str = "") -> None:
        if text:
            self._filter(text)
            return
        prompt = self.query_one("#prompt", Horizontal)
        if not prompt.children:
            entry = Input(id="filter", compact=True, placeholder="text   !not this   /regex/   -f fuzzy")
            entry.cursor_blink = False
            await prompt.mount(Lines(((("/", "accent"),),), id="slash"), entry)
        field = prompt.query_one("#filter", Input)
        self.add_class("-filtering")
        field.value = self.roster.query_text
        field.cursor_position = len(field.value)
        field.focus()

    def action_back(self) -> None:
        if self.has_class("-filtering") or self.roster.query_text:
            self._filter("")
            self._close_filter()
        elif self.roster.marks:
            self.roster.marks = frozenset()
            self.apply(self.host.snapshot, frozenset())
        else:
            self.host.say("This is the first view. ctrl+q leaves rgt; your runs go on.")

    @on(Input.Changed, "#filter")
    def _typing(self, event: Input.Changed) -> None:
        if not self.has_class("-filtering"):
            return
        try:
            self._filter(event.value)
        except Failure as failure:
            self.query_one("#top", Rule).label([("fleet  ", "title"), (failure.line, "attention")])

    @on(Input.Submitted, "#filter")
    def _typed(self) -> None:
        self._close_filter()

    def _close_filter(self) -> None:
        self.remove_class("-filtering")
        self.roster.focus()

    def _filter(self, text: str) -> None:
        self.roster.filter(text)
        self._describe()

    def go_to(self, box: str, run: str | None) -> bool:
        """Put the cursor on a row; a filter that hides it is dropped."""
        self._filter("")
        keys = [key for item in self.roster.items if isinstance(key := item.key, tuple)]
        wanted = next((k for k in keys if k[0] == box and (run is None or k[1] == run)), None)
        return wanted is not None and self.roster.select(wanted)


def _has_candidates(box: BoxView) -> bool:
    return bool(box.telemetry and box.telemetry.candidates.value)

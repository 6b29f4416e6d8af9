"""Works diagnoses out while the fleet is watched: when the operator asks, and when something turned bad.

The catalog and its readers are loaded with the first diagnosis; a healthy fleet never needs them.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui.box.looks import Subjects, take
from tui.box.survey import survey
from tui.box.transport import LinkLost, Transport
from tui.fleet.judge import fullest, time_left
from tui.fleet.store import Store
from tui.model.command import Diagnose, SurveyStorage, TakeLook
from tui.model.event import Diagnosed, LadderMade, Looked, Notice
from tui.model.failure import Failure
from tui.model.instance import LinkState
from tui.model.look import LookAnswer
from tui.model.run import RunState
from tui.model.snapshot import BoxView, FleetSnapshot, RunView
from tui.model.storage import Ladder
from tui.model.text import safe
from tui.triage.ladder import Kept, Outlook, Survey, ladder

if TYPE_CHECKING:
    from tui.triage.rules import Rules

LOOK_S = 1.0
"""How often the picture is compared with what it was at the last diagnosis."""
SETTLE_S = 3.0
"""What just turned bad is given this long, so that the log's last words are there, too."""
AGAIN_S = 20.0
"""A run in trouble whose log grows is diagnosed anew after this time, and later each time nothing changed."""
SELDOM_S = 600.0

KERNEL_S = 300.0
"""The kernel is asked about the same dead run no more often than this."""

Target = tuple[str, str | None]
_FIGURES = re.compile(r"[\d.,%]+")


class Triager:
    """Diagnoses for one `rgt`.

    Args:
        link: the live transport of a box, or None.
        own: folder of the operator's own incident files.
    """

    def __init__(self, store: Store, link: Callable[[str], Transport | None], own: Path) -> None:
        self._store = store
        self._link = link
        self._own = own
        self._rules: Rules | None = None
        self._loading = asyncio.Lock()
        self._seen: dict[Target, object] = {}
        self._due: dict[Target, float] = {}
        self._ends: dict[Target, int] = {}
        self._asked_kernel: dict[str, float] = {}
        self._gaps: dict[Target, float] = {}
        self._one_at_a_time = asyncio.Semaphore(1)  # each takes a core for a third of a second
        self._errands: set[asyncio.Task[None]] = set()
        self._under_way: set[object] = set()

    async def run(self) -> None:
        """Watch for what turns bad, until cancelled."""
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                for box, run in self._turned_bad(self._store.snapshot, self._store.clock()):
                    await self.handle(Diagnose(box, run))
        finally:
            for errand in self._errands:
                errand.cancel()

    async def handle(self, command: Diagnose | TakeLook | SurveyStorage) -> None:
        """Carry a command out beside the others; the same one is not begun twice at once."""
        if command in self._under_way:
            return
        self._under_way.add(command)
        errand = asyncio.create_task(self._errand(command))
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)

    async def _errand(self, command: Diagnose | TakeLook | SurveyStorage) -> None:
        try:
            match command:
                case Diagnose(box, run):
                    await self._diagnose(box, run)
                case TakeLook(box, run, look):
                    await self._look(box, run, look)
                case SurveyStorage(box, _, mount):
                    await self._survey(box, mount)
        except (Failure, TimeoutError) as failure:
            words = failure.line if isinstance(failure, Failure) else "no answer in time"
            await self._store.put(Notice(safe(f"{command.box}: {words}"), "attention", command.box))
        except Exception as fault:  # noqa: BLE001 - a task of its own: nobody else would ever hear of it
            text = f"Triage of {command.run or command.box} failed ({type(fault).__name__}: {fault})."
            await self._store.put(Notice(safe(text, 300), "attention", command.box))
            self._seen.pop((command.box, command.run), None)  # what turned bad is looked at once more
        finally:
            self._under_way.discard(command)

    # -- what turned bad ---------------------------------------------------------------------------------

    def _turned_bad(self, snapshot: FleetSnapshot, now: float) -> list[Target]:
        """Runs whose trouble is new, or whose log went on in it, after a moment for their last words."""
        known = {(r.spec.box, r.name): r for r in snapshot.runs}
        for gone in [t for t in self._seen if t not in known]:
            for table in (self._seen, self._due, self._ends, self._gaps):
                table.pop(gone, None)
        for place, run in known.items():
            target: Target = place
            trouble = troubles(snapshot.box(run.spec.box), run)
            if trouble != self._seen.get(target, frozenset()):
                self._seen[target] = trouble
                self._due[target] = now + SETTLE_S
            elif (
                trouble
                and target not in self._due
                and self._store.log(run.name).end != self._ends.get(target)
            ):
                self._due[target] = now + self._gaps.get(target, AGAIN_S)
        due = [target for target, at in self._due.items() if at <= now or at > now + 2 * SELDOM_S]
        for target in due:
            del self._due[target]
        return due

    # -- the work ----------------------------------------------------------------------------------------

    async def _diagnose(self, box_name: str, run_name: str | None) -> None:
        snapshot = self._store.snapshot
        box = snapshot.box(box_name)
        run = snapshot.run(run_name) if run_name is not None else None
        if box is None or (run_name is not None and run is None):
            return
        if run is not None and run.state is RunState.DEAD and await self._kernel_words(box, run):
            box = self._store.snapshot.box(box_name) or box
        rules = await self._loaded()
        buffer = self._store.log(run_name) if run_name is not None else None
        lines = (*buffer.lines, *([buffer.partial] if buffer.partial else ())) if buffer is not None else ()
        self._ends[(box_name, run_name)] = buffer.end if buffer is not None else 0
        now = self._store.clock()
        read_at = buffer.read_at if buffer is not None else None
        first = buffer.base if buffer is not None else 0

        def work() -> Diagnosed:
            from tui.workers.evidence import diagnosed, digest_of

            digest = digest_of(rules, lines, first) if read_at is not None else None
            return diagnosed(rules, box, run, digest, log_at=read_at, at=now)

        async with self._one_at_a_time:
            told = await asyncio.to_thread(work)
        before = run.diagnosed if run is not None else box.diagnosed
        self._space_out((box_name, run_name), before, told)
        await self._store.put(told)

    def _space_out(self, target: Target, before: Diagnosed | None, told: Diagnosed) -> None:
        """The same answer again is asked for half as often from now on."""
        same = before is not None and _classes(before) == _classes(told)
        self._gaps[target] = min(SELDOM_S, 2 * self._gaps.get(target, AGAIN_S)) if same else AGAIN_S

    async def _kernel_words(self, box: BoxView, run: RunView) -> bool:
        """Where a process is gone, ask the kernel once why: it keeps the answer for a while only.

        Returns:
            Whether an answer came in.
        """
        transport = self._link(box.name)
        gone_since = run.truth_at or 0.0
        asked = self._asked_kernel.get(run.name, float("-inf"))
        if transport is None or any(a.look == "dmesg" and a.at >= gone_since for a in box.looks):
            return False
        now = self._store.clock()
        if now - asked < KERNEL_S:
            return False
        self._asked_kernel[run.name] = now
        try:
            answer = await take(transport, "dmesg", Subjects(), at=now, box=box.name)
        except (Failure, TimeoutError):
            return False
        await self._told(answer)
        return True

    async def _told(self, answer: LookAnswer) -> None:
        """Hand an answer in, and wait until it is in the picture that a diagnosis is made from."""
        await self._store.put(Looked(answer))
        for _ in range(20):
            if answer in _looks(self._store.snapshot, answer.box):
                return
            await asyncio.sleep(0.05)

    async def _loaded(self) -> Rules:
        """The catalog made ready, once; what is wrong with the operator's own files is said."""
        async with self._loading:
            if self._rules is None:
                self._rules = await asyncio.to_thread(load_rules, self._own)
                for problem in self._rules.catalog.problems:
                    await self._store.put(Notice(problem.line, "attention"))
            return self._rules

    async def _look(self, box_name: str, run_name: str | None, look: str) -> None:
        snapshot = self._store.snapshot
        box = snapshot.box(box_name)
        if box is None:
            return
        transport = self._connected(box)
        subjects = subjects_of(box, snapshot.run(run_name) if run_name is not None else None)
        answer = await take(transport, look, subjects, at=self._store.clock(), box=box_name)
        await self._told(answer)
        await self._diagnose(box_name, run_name)

    async def _survey(self, box_name: str, mount: str) -> None:
        snapshot = self._store.snapshot
        box = snapshot.box(box_name)
        if box is None:
            return
        found = await survey(self._connected(box), mount)
        made = worked_out(found, box, snapshot.runs_on(box_name), mount, self._store.clock())
        await self._store.put(LadderMade(made))

    def _connected(self, box: BoxView) -> Transport:
        transport = self._link(box.name)
        if transport is None:
            raise LinkLost(f"{box.name} is not connected, so nothing can be looked at there now.")
        return transport


def load_rules(own: Path) -> Rules:
    """The shipped catalog and the operator's own incident files, ready to be used."""
    from tui.triage.catalog import load
    from tui.triage.rules import compiled

    return compiled(load(own))


def _classes(told: Diagnosed) -> tuple[str, ...]:
    return (told.diagnosis.outcome, *(one.cls for one in told.diagnosis.incidents))


def _looks(snapshot: FleetSnapshot, box_name: str) -> tuple[object, ...]:
    box = snapshot.box(box_name)
    return box.looks if box is not None else ()


def troubles(box: BoxView | None, run: RunView) -> frozenset[str]:
    """What is wrong with a run, without figures: a diagnosis is due when this changes."""
    found = {str(run.state.value)} if run.state in (RunState.DEAD, RunState.STALLED) else set()
    loss = run.progress.loss if run.progress is not None else None
    if loss is not None and not math.isfinite(loss):
        found.add("loss is no number")
    if box is not None:
        own = set(box.attention) - set(run.attention)
        found |= {_FIGURES.sub("", a.short).strip() for a in own}
        if box.link.state in (LinkState.REFUSED, LinkState.IDENTITY, LinkState.UNREACHABLE):
            found.add(box.link.state.value)
    return frozenset(found)


def subjects_of(box: BoxView, run: RunView | None) -> Subjects:
    """What the looks of this run are about: its process, its checkpoints, the mount that presses most."""
    worst = fullest(box)
    pid = None
    if run is not None:
        process = run.truth.process if run.truth is not None else None
        pid = process.pid if process is not None else run.spec.pid
    mount = str(worst.mount) if worst is not None else None
    return Subjects(mount, pid, run.spec.checkpoints if run is not None else None)


def worked_out(found: Survey, box: BoxView, runs: tuple[RunView, ...], mount: str, now: float) -> Ladder:
    """The ladder of a survey that was taken now, with what the runs on the box need."""
    outlook = outlook_of(box, runs, mount, now)
    return ladder(found, box=box.name, at=now, kept=kept_of(runs), outlook=outlook)


def kept_of(runs: tuple[RunView, ...]) -> Kept:
    """What the watched runs on a box need."""
    paths: list[tuple[str, str]] = []
    for run in runs:
        if run.spec.log:
            paths.append((run.spec.log, "log"))
        if run.spec.checkpoints:
            folder = re.split(r"[*?\[]", run.spec.checkpoints)[0].rpartition("/")[0]
            paths.append((folder or run.spec.checkpoints, "checkpoint folder"))
        cwd = run.truth.process.cwd if run.truth is not None and run.truth.process is not None else None
        if cwd:
            paths.append((str(cwd), "working folder"))
    return Kept(tuple(paths))


def outlook_of(box: BoxView, runs: tuple[RunView, ...], mount: str, now: float) -> Outlook:
    """How the pressing resource of a mount grows, and how long the longest run there still goes on."""
    growth = dict(box.growth).get(safe(mount))
    fs = fullest(box)
    if growth is None or fs is None:
        return Outlook()
    inodes = (fs.inode_use_pct or 0.0) > (fs.use_pct or 0.0)
    left = [seconds for run in runs if (seconds := time_left(run, now)) is not None]
    return Outlook(growth.inodes_per_s if inodes else growth.bytes_per_s, max(left, default=None))

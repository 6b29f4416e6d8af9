"""Folds events into the frozen snapshot. Pure: the same events at the same times give the same picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tui.fleet import attention, growth, judge, reconcile
from tui.fleet.thresholds import Thresholds
from tui.model.account import AccountView
from tui.model.command import CommandRecord
from tui.model.event import (
    AccountSeen,
    AccountsKnown,
    CommandRan,
    Diagnosed,
    Event,
    FleetChanged,
    ForwardChanged,
    HandbookRead,
    HostKeyAsked,
    LadderMade,
    LaunchChanged,
    LinkChanged,
    LogStateChanged,
    Looked,
    MatrixChanged,
    Notice,
    OpenEndsRead,
    ProgressRead,
    ReclaimChanged,
    Searched,
    SecretAsked,
    SetupChanged,
    TeardownChanged,
    TelemetryTaken,
    WatchHeld,
)
from tui.model.instance import Ended, LinkState
from tui.model.look import LookAnswer
from tui.model.snapshot import Attention, BoxView, FleetSnapshot, RunView
from tui.model.teardown import OpenEnd
from tui.model.telemetry import RunTruth, Telemetry
from tui.model.text import SafeText

MAX_COMMANDS = 500
MAX_NOTICES = 100
MAX_SEARCHES = 20
MAX_LOOKS = 30


@dataclass(frozen=True, slots=True)
class Rules:
    """What the judgement depends on besides the events."""

    thresholds: Thresholds = Thresholds()
    period_s: float = 2.0


def reduce(
    snapshot: FleetSnapshot,
    events: Sequence[Event],
    now: float,
    rules: Rules = Rules(),
    *,
    whole: bool = True,
) -> FleetSnapshot:
    """The snapshot after `events`, judged once at `now`.

    With no events it is judged again for the time that passed. The same object comes back when nothing
    changed, else its version is one higher.

    Args:
        whole: judge every box, as time asks for; False: only those that the events are about.
    """
    learned = _without_future(snapshot, now) if whole else snapshot
    for kind, alike in groupby(events, type):
        if kind is TelemetryTaken:
            learned = _taken(learned, alike)
            continue
        for event in alike:
            learned = _learn(learned, event)
    judged = _judge(learned, now, rules, None if whole else _subjects(learned, events))
    return snapshot if judged is snapshot else replace(judged, version=snapshot.version + 1)


def _subjects(snapshot: FleetSnapshot, events: Iterable[Event]) -> frozenset[str] | None:
    """Names of the boxes that the events can change the judgement of; None: any."""
    boxes: set[str] = set()
    runs: set[str] = set()
    for event in events:
        match event:
            case FleetChanged() | OpenEndsRead() | AccountSeen() | AccountsKnown():
                return None
            case LinkChanged(box) | TelemetryTaken(box):
                boxes.add(box)
            case ProgressRead(run):
                runs.add(run)
            case Diagnosed(box):
                boxes.add(box)
    boxes.update(r.spec.box for r in snapshot.runs if r.name in runs)
    return frozenset(boxes)


def _without_future(snapshot: FleetSnapshot, now: float) -> FleetSnapshot:
    """The snapshot without samples that lie ahead of `now`, which a clock set back leaves behind."""
    boxes = tuple(_past(box, now) for box in snapshot.boxes)
    return snapshot if _identical(boxes, snapshot.boxes) else replace(snapshot, boxes=boxes)


def _past(box: BoxView, now: float) -> BoxView:
    history, disks = growth.until(box.history, now), growth.until(box.disk_history, now)
    same = history is box.history and disks is box.disk_history
    return box if same else replace(box, history=history, disk_history=disks)


def _learn(snapshot: FleetSnapshot, event: Event) -> FleetSnapshot:
    """The snapshot with the fact in it, not yet judged."""
    match event:
        case FleetChanged():
            return _fleet(snapshot, event)
        case AccountSeen(account):
            return reconcile.learned(snapshot, account)
        case AccountsKnown(names):
            return reconcile.known(snapshot, names)
        case LinkChanged(box, link):
            answered = link.state in (LinkState.LIVE, LinkState.CONNECTING)
            return _box(
                snapshot,
                box,
                lambda b: replace(
                    b,
                    link=link,
                    asked_key=None if answered else b.asked_key,
                    asked_secret=None if answered else b.asked_secret,
                ),
            )
        case HostKeyAsked(box):
            return _box(snapshot, box, lambda b: replace(b, asked_key=event))
        case SecretAsked(box):
            return _box(snapshot, box, lambda b: replace(b, asked_secret=event))
        case LogStateChanged(state):
            return _run(snapshot, state.run, lambda r: replace(r, log_state=state))
        case ProgressRead(run, progress):
            return _run(snapshot, run, lambda r: replace(r, progress=progress))
        case Diagnosed(box, run):
            if run is None:
                return _box(snapshot, box, lambda b: replace(b, diagnosed=event))
            return _run(snapshot, run, lambda r: _diagnosed(r, event))
        case Looked(answer):
            return _box(snapshot, answer.box, lambda b: replace(b, looks=_add_look(b.looks, answer)))
        case LadderMade(ladder):
            return _box(snapshot, ladder.box, lambda b: replace(b, ladder=ladder))
        case ReclaimChanged(reclaim):
            return _box(snapshot, reclaim.plan.box, lambda b: replace(b, reclaim=reclaim))
        case WatchHeld(run, holder):
            return _run(snapshot, run, lambda r: replace(r, held_by=holder))
        case ForwardChanged():
            return _forward(snapshot, event)
        case CommandRan(record):
            return replace(snapshot, commands=_add_command(snapshot.commands, record))
        case Searched(result):
            kept = tuple(s for s in snapshot.searches if s.run != result.run)
            return replace(snapshot, searches=(*kept[-(MAX_SEARCHES - 1) :], result))
        case TeardownChanged(box, view):
            others = tuple(t for t in snapshot.teardowns if t.box != box)
            return replace(snapshot, teardowns=others if view is None else (*others, view))
        case SetupChanged(setup):
            return replace(snapshot, setup=setup)
        case LaunchChanged(launch):
            return replace(snapshot, launch=launch)
        case MatrixChanged(matrix):
            return replace(snapshot, matrix=matrix)
        case HandbookRead(page):
            return replace(snapshot, handbook=page)
        case OpenEndsRead(ends, ended):
            return replace(snapshot, open_ends=ends, ended=ended)
        case Notice():
            return replace(snapshot, notices=(*snapshot.notices[-(MAX_NOTICES - 1) :], event))
    return snapshot  # log lines go to the log buffers, not into the snapshot


def _fleet(snapshot: FleetSnapshot, event: FleetChanged) -> FleetSnapshot:
    """Known boxes and runs keep what was learned about them while they point to the same thing."""
    boxes = []
    for instance in event.instances:
        old = snapshot.box(instance.name)
        was = old.instance if old is not None else None
        same = was is not None and (was.endpoint, was.via) == (instance.endpoint, instance.via)
        fresh = BoxView(instance)
        boxes.append(replace(old, instance=instance, written=None, rented=None) if old and same else fresh)
    runs = []
    for spec in event.runs:
        before = snapshot.run(spec.name)
        runs.append(before if before is not None and before.spec == spec else RunView(spec))
    clocks = dict(event.clocks)
    caps = dict(event.inode_caps)
    with_clocks = [
        replace(b, clock=clock, file_clock=clock, inode_caps=caps.get(b.name, ()))
        for b in boxes
        for clock in (clocks.get(b.name),)
    ]
    seen = (*with_clocks, *(b for b in snapshot.boxes if b.unwritten))
    return reconcile.reconciled(
        replace(snapshot, boxes=seen, runs=tuple(runs), problems=event.problems, started=True)
    )


def _taken(snapshot: FleetSnapshot, events: Iterable[Event]) -> FleetSnapshot:
    """With the telemetry of many boxes, which comes in together, in one pass over them."""
    boxes = list(snapshot.boxes)
    places = {box.instance.name: at for at, box in enumerate(boxes)}
    truths: dict[str, tuple[RunTruth, float]] = {}
    for event in events:
        assert isinstance(event, TelemetryTaken)
        t, at = event.telemetry, places.get(event.box)
        if t.candidates.value:
            t = _unwatched(t, snapshot.runs_on(event.box))
        if at is not None:
            boxes[at], t = _with_telemetry(boxes[at], t)
        truths.update((truth.run, (truth, t.taken_at)) for truth in t.runs)
    runs = snapshot.runs
    if truths:
        told = ((r, truths.get(r.name)) for r in runs)
        runs = tuple(replace(r, truth=of[0], truth_at=of[1]) if of else r for r, of in told)
    return replace(snapshot, boxes=tuple(boxes), runs=runs)


def _with_telemetry(box: BoxView, telemetry: Telemetry) -> tuple[BoxView, Telemetry]:
    """The box with its telemetry, and that as it counts under the box's limits of files."""
    t = growth.capped(telemetry, box.inode_caps)
    same_disks = box.telemetry is not None and box.telemetry.filesystems is t.filesystems
    disk = box.disk_history if same_disks else growth.add_disk_sample(box.disk_history, growth.disk_sample(t))
    memory = t.memory.value
    oom = memory.oom_kills if memory else None
    learned = replace(
        box,
        telemetry=t,
        history=growth.add_sample(box.history, growth.sample(t)),
        disk_history=disk,
        first_oom=oom if box.first_oom is None else box.first_oom,
        growth=box.growth if disk is box.disk_history else growth.growths(disk, t.filesystems.value or ()),
    )
    return learned, t


def _unwatched(telemetry: Telemetry, runs: tuple[RunView, ...]) -> Telemetry:
    """Telemetry that proposes no run which is watched already."""
    candidates = telemetry.candidates.value
    pids = {r.spec.pid for r in runs} | {t.process.pid for t in telemetry.runs if t.process}
    if not candidates or not pids.intersection(c.pid for c in candidates):
        return telemetry
    left = tuple(c for c in candidates if c.pid is None or c.pid not in pids)
    return replace(telemetry, candidates=replace(telemetry.candidates, value=left))


def _forward(snapshot: FleetSnapshot, event: ForwardChanged) -> FleetSnapshot:
    def change(box: BoxView) -> BoxView:
        others = tuple(f for f in box.forwards if f.port != event.port)
        return replace(box, forwards=others if event.local_port is None else (*others, event))

    return _box(snapshot, event.box, change)


def _diagnosed(run: RunView, event: Diagnosed) -> RunView:
    told = replace(run, diagnosed=event)
    return replace(told, attention=attention.run_attention(told))


def _add_look(looks: tuple[LookAnswer, ...], answer: LookAnswer) -> tuple[LookAnswer, ...]:
    """The newest answer of each look about each subject."""
    kept = [old for old in looks if (old.look, old.subject) != (answer.look, answer.subject)]
    return (*kept[-(MAX_LOOKS - 1) :], answer)


def _add_command(commands: tuple[CommandRecord, ...], record: CommandRecord) -> tuple[CommandRecord, ...]:
    """A finished command replaces its own first record, which was made when it started."""
    for i in range(len(commands) - 1, max(-1, len(commands) - 40), -1):
        old = commands[i]
        if old.box == record.box and old.started_at == record.started_at and old.what == record.what:
            return (*commands[:i], record, *commands[i + 1 :])
    return (*commands[-(MAX_COMMANDS - 1) :], record)


def _judge(snapshot: FleetSnapshot, now: float, rules: Rules, only: frozenset[str] | None) -> FleetSnapshot:
    def meant(box: str) -> bool:
        return only is None or box in only

    known = tuple(_over(b, snapshot.ended) for b in snapshot.boxes)
    snapshot = snapshot if _identical(known, snapshot.boxes) else replace(snapshot, boxes=known)
    by_name = {b.instance.name: b for b in snapshot.boxes}
    runs = tuple(
        _judged_run(r, by_name.get(r.spec.box), now, rules) if meant(r.spec.box) else r for r in snapshot.runs
    )
    wanting: dict[str, list[Attention]] = {}
    for end in snapshot.open_ends:
        wanting.setdefault(end.box, []).append(_unfinished(end))
    for run in runs:
        wanting.setdefault(run.spec.box, []).extend(run.attention)
    boxes = tuple(
        _judged_box(b, wanting.get(b.name, ()), now, rules, snapshot.accounts) if meant(b.name) else b
        for b in snapshot.boxes
    )
    if _identical(runs, snapshot.runs) and _identical(boxes, snapshot.boxes):
        return snapshot
    return replace(snapshot, runs=runs, boxes=boxes)


def _over(box: BoxView, ended: Sequence[Ended]) -> BoxView:
    """The box, with its end where that is on record. One that answers is not gone, whatever is on record."""
    found = next((e for e in ended if e.is_of(box.instance)), None)
    seen = box.telemetry.taken_at if box.telemetry is not None else None
    if found is not None and box.link.state is LinkState.LIVE and seen is not None and seen > found.at:
        found = None
    return box if found == box.ended else replace(box, ended=found)


def _unfinished(end: OpenEnd) -> Attention:
    """A verb that was begun and whose end nobody has seen: the box may still bill."""
    return Attention("attention", SafeText("your word" if end.by_hand else "end unseen"), end.text)


def _judged_run(run: RunView, box: BoxView | None, now: float, rules: Rules) -> RunView:
    state, why = judge.judge_run(run, box, now, rules.period_s)
    if state is run.state and why == run.why:
        return run
    judged = replace(run, state=state, why=why)
    return replace(judged, attention=attention.run_attention(judged))


def _judged_box(
    box: BoxView,
    of_runs: Sequence[Attention],
    now: float,
    rules: Rules,
    accounts: Sequence[AccountView],
) -> BoxView:
    if box.ended is not None:
        return replace(box, attention=()) if box.attention else box
    own = attention.box_attention(box, box.first_oom, now, rules.thresholds)
    told = reconcile.attention(box, accounts, now)
    # of what is equally grave, what happened to a run is told before what its box lacks
    found = tuple(sorted((*of_runs, *own, *told), key=lambda a: a.level != "danger"))
    return box if found == box.attention else replace(box, attention=found)


def _identical(new: tuple[object, ...], old: tuple[object, ...]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


def _box(snapshot: FleetSnapshot, name: str, change: Callable[[BoxView], BoxView]) -> FleetSnapshot:
    boxes = snapshot.boxes
    for at, box in enumerate(boxes):
        if box.instance.name == name:
            return replace(snapshot, boxes=(*boxes[:at], change(box), *boxes[at + 1 :]))
    return snapshot


def _run(snapshot: FleetSnapshot, name: str, change: Callable[[RunView], RunView]) -> FleetSnapshot:
    if snapshot.run(name) is None:
        return snapshot
    return replace(snapshot, runs=tuple(change(r) if r.spec.name == name else r for r in snapshot.runs))

"""The fleet in text and JSON: what `rgt status` prints. Pure; null means not known."""

from __future__ import annotations

from collections.abc import Iterator

from tui.fleet import money
from tui.fleet.account_report import account_json, rented_json
from tui.fleet.age import age_word, long
from tui.fleet.judge import box_word, time_left
from tui.model.cells import width
from tui.model.failure import Exit
from tui.model.instance import LinkState
from tui.model.run import Progress, RunState
from tui.model.snapshot import BoxView, FleetSnapshot, RunView

_BAD_RUN = (RunState.DEAD, RunState.STALLED)


def exit_code(snapshot: FleetSnapshot) -> Exit:
    """The worst of the fleet as an exit code: attention, then unreachable, then unknown, then fine."""
    watched = [b for b in snapshot.boxes if not b.unwritten and b.ended is None]
    over = {b.name for b in snapshot.boxes if b.ended is not None}
    links = {b.link.state for b in watched}
    states = {r.state for r in snapshot.runs if r.spec.box not in over}
    if any(b.attention for b in snapshot.boxes) or snapshot.open_ends or states & set(_BAD_RUN):
        return Exit.ATTENTION
    if links & {LinkState.REFUSED, LinkState.IDENTITY, LinkState.NEEDS_SECRET}:
        return Exit.ATTENTION
    if links - {LinkState.LIVE}:
        return Exit.UNREACHABLE
    if RunState.UNKNOWN in states or any(b.telemetry is None for b in watched):
        return Exit.UNKNOWN
    return Exit.FINE


def status_json(snapshot: FleetSnapshot, now: float) -> dict[str, object]:
    """The fleet as plain JSON types. `boxes` is null where nothing of the fleet file could be read."""
    unread = bool(snapshot.problems) and not snapshot.boxes
    return {
        "taken_at": now,
        "problems": [str(problem) for problem in snapshot.problems],
        "boxes": None if unread else [_box_json(b, snapshot, now) for b in snapshot.boxes],
        "burn": [_total_json(t) for t in money.burn(money.burning(snapshot.boxes))],
        "spent": [_total_json(t) for t in money.spent_total(money.paid(snapshot.boxes), now)],
        "accounts": [account_json(view, now) for view in snapshot.accounts],
        "open_ends": [
            {"box": end.box, "verb": end.verb, "since": end.since, "by_hand": end.by_hand}
            for end in snapshot.open_ends
        ],
    }


def ends_elsewhere(snapshot: FleetSnapshot) -> Iterator[str]:
    """What was begun on boxes that are not shown, and whose end nobody has seen: it may still bill."""
    shown = {box.name for box in snapshot.boxes}
    yield from (f"{end.box}: {end.text}" for end in snapshot.open_ends if end.box not in shown)


def status_lines(snapshot: FleetSnapshot, now: float) -> Iterator[str]:
    """One line per run, or per box without a run, then what wants attention; no colour, no columns."""
    for box in snapshot.boxes:
        word = box_word(box, now).word
        runs = snapshot.runs_on(box.name)
        seen = age_word(box.telemetry.taken_at if box.telemetry else None, now)
        head = f"{box.name}  {box.instance.platform}  {word}"
        if not runs:
            yield f"{head}  no run watched  {worst_numbers(box)}  {seen}"
        for run in runs:
            state = f"{run.name} {run.state.value}: {run.why}"
            yield f"{head}  {state}  {_progress(run, now)}  {worst_numbers(box)}  {seen}"
        if box.link.state is not LinkState.LIVE and box.link.detail:
            yield f"  {box.link.detail}"
        for attention in box.attention:
            yield f"  {attention.level}: {attention.text}"


_HEAD = (
    "BOX",
    "PLATFORM",
    "STATE",
    "RUN",
    "RUN STATE",
    "PROGRESS",
    "GPU%",
    "VRAM%",
    "DISK%",
    "INODE%",
    "AGE",
)
_LEFT = 6  # columns of words; the rest are figures


def status_table(snapshot: FleetSnapshot, now: float) -> Iterator[str]:
    """The fleet in columns for a person, then one line for each thing that wants attention."""
    rows = [_HEAD, *(row for box in snapshot.boxes for row in _rows(snapshot, box, now))]
    widths = [max(width(row[n]) for row in rows) for n in range(len(_HEAD))]
    for row in rows:
        cells = (" " * (widths[n] - width(cell)) for n, cell in enumerate(row))
        padded = (
            cell + pad if n < _LEFT else pad + cell
            for n, (cell, pad) in enumerate(zip(row, cells, strict=True))
        )
        yield "  ".join(padded).rstrip()
    for box in snapshot.boxes:
        if box.link.state is not LinkState.LIVE and box.link.detail:
            yield f"{box.name}: {box.link.detail.removeprefix(f'{box.name}: ')}"
        yield from (f"{box.name}: {attention.text}" for attention in box.attention)


def _rows(snapshot: FleetSnapshot, box: BoxView, now: float) -> Iterator[tuple[str, ...]]:
    head = (box.name, box.instance.platform, box_word(box, now).word)
    tail = tuple(_percent(box, name, value) for name, value in figures(box).items())
    seen = age_word(box.telemetry.taken_at if box.telemetry else None, now)
    runs = snapshot.runs_on(box.name)
    for run in runs:
        cards = snapshot.machine_of(box, run)
        gpu = tail[:2] if cards is box else _cards(cards)
        yield (*head, run.name, run.state.value, _progress(run, now), *gpu, *tail[2:], seen)
    if not runs:
        yield (*head, "–", "–", "–", *tail, seen)


def _cards(box: BoxView | None) -> tuple[str, ...]:
    """GPU and VRAM of the machine that a scheduler runs a job on; unknown where it is no box of the fleet."""
    if box is None:
        return "?", "?"
    told = figures(box)
    return tuple(_percent(box, name, told[name]) for name in ("gpu", "vram"))


def worst_numbers(box: BoxView) -> str:
    """The four figures that matter, each with its unknown said."""
    told = ((name, _percent(box, name, value)) for name, value in figures(box).items())
    return "  ".join(f"{name} {word}{'%' if word[0].isdigit() else ''}" for name, word in told)


def _percent(box: BoxView, name: str, value: float | None) -> str:
    """A figure, ``?`` where it is not known, ``–`` where there is no card to have one."""
    if value is not None:
        return f"{value:.0f}"
    cardless = box.telemetry is not None and box.telemetry.gpus.value == ()
    return "–" if cardless and name in ("gpu", "vram") else "?"


def figures(box: BoxView) -> dict[str, float | None]:
    """Highest GPU utilisation, VRAM, disk and inode use of a box, in percent; None where not known."""
    t = box.telemetry
    gpus = (t.gpus.value if t else None) or ()
    disks = (t.filesystems.value if t else None) or ()
    vram = [
        100.0 * g.mem_used_mib / g.mem_total_mib
        for g in gpus
        if g.mem_used_mib is not None and g.mem_total_mib
    ]
    return {
        "gpu": _most(g.util_pct for g in gpus),
        "vram": max(vram, default=None),
        "disk": _most(f.use_pct for f in disks),
        "inode": _most(f.inode_use_pct for f in disks),
    }


def _progress(run: RunView, now: float) -> str:
    return progress_words(run.progress, time_left(run, now))


def progress_words(progress: Progress | None, left: float | None = None) -> str:
    """Progress as one short phrase, ``–`` when the log says nothing of it."""
    if progress is None or (progress.done is None and progress.loss is None):
        return "finished" if progress and progress.finished else "–"
    if progress.finished:
        return "finished"
    parts = []
    if progress.done is not None:
        total = f"/{progress.total:,}" if progress.total is not None else ""
        parts.append(f"{progress.unit or 'at'} {progress.done:,}{total}")
    if progress.loss is not None:
        parts.append(f"loss {progress.loss:.4g}")
    if left is not None:
        parts.append(f"{long(left)} left")
    return " ".join(parts)


def _most(values: Iterator[float | None]) -> float | None:
    return max((v for v in values if v is not None), default=None)


def _box_json(box: BoxView, snapshot: FleetSnapshot, now: float) -> dict[str, object]:
    instance = box.instance
    return {
        "name": box.name,
        "platform": instance.platform,
        "instance_id": instance.instance_id,
        "state": str(box_word(box, now).word),
        "link": box.link.state.value,
        "destroyed_at": box.ended.at if box.ended else None,
        "detail": str(box.link.detail) or None,
        "probed_at": box.telemetry.taken_at if box.telemetry else None,
        "price_per_hour": instance.price_per_hour,
        "currency": instance.currency,
        "spent": money.spent(money.metered(box), now),
        "next_clock": {"text": box.clock.text, "at": box.clock.at} if box.clock else None,
        "percent": figures(box),
        "attention": [{"level": a.level, "short": a.short, "text": a.text} for a in box.attention],
        "simulated": list(instance.simulated),
        "in_fleet_file": not box.unwritten,
        "provider": rented_json(box, now),
        "runs": [_run_json(r) for r in snapshot.runs_on(box.name)],
    }


def _run_json(run: RunView) -> dict[str, object]:
    progress = run.progress
    newest = run.truth.checkpoints.value[0] if run.truth and run.truth.checkpoints.value else None
    return {
        "name": run.name,
        "state": run.state.value,
        "why": str(run.why),
        "progress": None
        if progress is None
        else {
            "unit": progress.unit or None,
            "done": progress.done,
            "total": progress.total,
            "loss": _finite(progress.loss),
            "eta_s": progress.eta_s,
            "finished": progress.finished,
        },
        "log": run.spec.log,
        "newest_checkpoint": None
        if newest is None
        else {"path": newest.path, "size_bytes": newest.size_bytes, "modified_at": newest.modified_at},
        "held_by": run.held_by,
    }


def _finite(value: float | None) -> float | str | None:
    """JSON has no NaN; the word says it instead."""
    if value is None or value - value == 0:
        return value
    return str(value)


def _total_json(total: money.Total) -> dict[str, object]:
    return {"currency": total.currency, "amount": total.amount, "boxes_unknown": total.unknown}

"""What wants the operator: thresholds over telemetry, worst first. Diagnosis is the triage room's work."""

from __future__ import annotations

from collections.abc import Iterator

from tui.fleet.age import long, short
from tui.fleet.thresholds import Thresholds
from tui.model.run import RunState
from tui.model.snapshot import Attention, BoxView, Growth, RunView, Sample
from tui.model.telemetry import Filesystem, Memory, Telemetry
from tui.model.text import SafeText, safe


def box_attention(box: BoxView, first_oom: int | None, now: float, t: Thresholds) -> tuple[Attention, ...]:
    """Everything about a box that wants the operator, danger first.

    Args:
        first_oom: the oom_kill count of this session's first probe; only what came later is news.
    """
    found: list[Attention] = []
    telemetry = box.telemetry
    if telemetry is not None:
        growth = dict(box.growth)
        for fs in telemetry.filesystems.value or ():
            found += _filesystem(fs, growth.get(fs.mount), t)
        if telemetry.memory.value is not None:
            found += _memory(telemetry.memory.value, first_oom, t)
        found += _gpus(telemetry)
        found += _idle(box, t)
    if box.instance.ends_at is not None and 0 < box.instance.ends_at - now < t.contract_s:
        left = box.instance.ends_at - now
        found.append(
            _warn(f"ends {short(left)}", f"The contract ends in {long(left)}; save what is on the box.")
        )
    return tuple(sorted(found, key=lambda a: a.level != "danger"))


def run_attention(run: RunView) -> tuple[Attention, ...]:
    """What is wrong with a run: what triage found, while that holds; else its judged state."""
    if found := _diagnosed(run):
        return (found,)
    if run.state is RunState.DEAD:
        return (Attention("danger", SafeText("run dead"), SafeText(f"{run.spec.name} is dead: {run.why}.")),)
    if run.state is RunState.STALLED:
        return (_warn("stalled", f"{run.spec.name} makes no progress: {run.why}."),)
    return ()


def _diagnosed(run: RunView) -> Attention | None:
    """The first cause that triage named. A run that came back to life since is judged anew."""
    told = run.diagnosed.diagnosis if run.diagnosed is not None else None
    if told is None or not told.incidents:
        return None
    first = told.incidents[0]
    revived = told.outcome in ("dead", "stalled") and run.state not in (RunState.DEAD, RunState.STALLED)
    answers = told.outcome == "unreachable" and run.state not in (RunState.UNREACHABLE, RunState.UNKNOWN)
    if first.severity == "info" or revived or answers:
        return None
    level = "danger" if first.severity == "fatal" else "attention"
    return Attention(
        level, SafeText(first.cls.replace("_", " ")), SafeText(f"{run.spec.name}: {told.verdict}")
    )


def _filesystem(fs: Filesystem, growth: Growth | None, t: Thresholds) -> Iterator[Attention]:
    if fs.error:
        if "answer" in fs.error:  # a path that is not there yet is the run's affair, a hung mount is not
            yield _warn("mount hangs", f"{fs.mount}: {fs.error}.")
        return
    g = growth or Growth()
    rows = (
        ("inodes", fs.inode_use_pct, t.inode_pct, g.inodes_full_in_s, fs.inodes_free),
        ("disk", fs.use_pct, t.disk_pct, g.bytes_full_in_s, fs.avail_bytes),
    )
    for word, pct, limit, left, free in rows:
        soon = left is not None and left < t.full_in_s
        if pct is None or (pct < limit and not (soon and pct >= 50)):
            continue
        level = "danger" if pct >= t.danger_pct else "attention"
        yield Attention(level, SafeText(f"{word} {pct:.0f}%"), _filling(word, fs, pct, left, free))


def _filling(word: str, fs: Filesystem, pct: float, left: float | None, free: int | None) -> SafeText:
    """What is true of a mount that presses. What is used up does not run out any more."""
    if free == 0:
        what = "No inodes are left" if word == "inodes" else "The disk is full"
        return SafeText(f"{what} on {fs.mount}: nothing new can be written there.")
    what = "Inodes are running out" if word == "inodes" else "The disk is filling up"
    when = f", full in {long(left)} at this rate" if left is not None else ""
    return SafeText(f"{what} on {fs.mount}: {pct:.0f} % used{when}.")


def _memory(memory: Memory, first_oom: int | None, t: Thresholds) -> Iterator[Attention]:
    if memory.oom_kills is not None and first_oom is not None and memory.oom_kills > first_oom:
        new = memory.oom_kills - first_oom
        yield Attention(
            "danger",
            SafeText("oom kill"),
            SafeText(f"The kernel killed {new} process(es) of this box's cgroup for memory since rgt looks."),
        )
    if memory.limit_bytes and memory.used_bytes is not None:
        pct = 100.0 * memory.used_bytes / memory.limit_bytes
        if pct >= t.memory_pct:
            yield _warn(
                f"mem {pct:.0f}%", f"Memory is at {pct:.0f} % of the cgroup limit; an OOM kill is near."
            )


def _gpus(telemetry: Telemetry) -> Iterator[Attention]:
    for gpu in telemetry.gpus.value or ():
        if gpu.ecc_uncorrected:
            yield Attention(
                "danger",
                SafeText(f"gpu{gpu.index} ecc"),
                SafeText(f"GPU {gpu.index} counts {gpu.ecc_uncorrected} uncorrected memory errors."),
            )
    if telemetry.gpus.value is None and telemetry.gpus.source is not None:
        yield _warn("gpu n/a", f"The GPUs can't be read: {telemetry.gpus.reason}.")
    if telemetry.xid.value:
        yield _warn("xid", f"The kernel logged a GPU error: {safe(telemetry.xid.value[-1], 160)}")


def _idle(box: BoxView, t: Thresholds) -> Iterator[Attention]:
    """Money spent on cards that do nothing: shown only where a price is known and history reaches back."""
    if box.instance.price_per_hour is None or not box.history:
        return
    newest = box.history[-1]
    busy_at = next((s.at for s in reversed(box.history) if not _is_idle(s, t)), None)
    since = newest.at - (busy_at if busy_at is not None else box.history[0].at)
    if newest.gpu_util and since >= t.idle_gpu_s and _is_idle(newest, t):
        yield _warn(
            f"idle {short(since)}", f"No GPU of {box.name} did any work for {long(since)}; the meter runs."
        )


def _is_idle(sample: Sample, t: Thresholds) -> bool:
    return bool(sample.gpu_util) and all(u is not None and u <= t.idle_gpu_pct for u in sample.gpu_util)


def _warn(short_text: str, text: str) -> Attention:
    return Attention("attention", SafeText(short_text), SafeText(text))

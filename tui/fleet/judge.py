"""What the evidence supports about a run and a box. Silence is not health; unreachable is not stopped."""

from __future__ import annotations

from dataclasses import dataclass

from tui.fleet.age import is_stale, long, short
from tui.model.instance import LinkState
from tui.model.run import RunState
from tui.model.snapshot import BoxView, RunView
from tui.model.telemetry import Filesystem, RunTruth
from tui.model.text import SafeText

STALLED_AFTER_S = 900.0
FRESH_LOG_S = 120.0


@dataclass(frozen=True, slots=True)
class BoxWord:
    """A box's state for the roster: `kind` picks the glyph and colour, `word` says it."""

    kind: str  # "running" | "starting" | "unknown" | "attention" | "danger" | "stopped" | "gone" | "idle"
    word: SafeText


_WORD_OF_LINK = {
    LinkState.IDLE: ("unknown", "not probed"),
    LinkState.CONNECTING: ("starting", "connecting"),
    LinkState.REFUSED: ("attention", "login refused"),
    LinkState.IDENTITY: ("danger", "host key changed"),
    LinkState.NEEDS_SECRET: ("attention", "needs password"),
}


def box_word(box: BoxView, now: float, period_s: float = 2.0) -> BoxWord:
    """The box's state in a word. It is called running only while a fresh probe says so."""
    link = box.link
    if box.ended is not None:
        return BoxWord("gone", SafeText("destroyed"))
    if link.state in (LinkState.REFUSED, LinkState.IDENTITY, LinkState.NEEDS_SECRET):
        kind, word = _WORD_OF_LINK[link.state]
        return BoxWord(kind, SafeText(word))
    seen = box.telemetry.taken_at if box.telemetry else None
    if link.state is LinkState.LIVE and not is_stale(seen, now, period_s):
        if box.attention:
            return BoxWord(box.attention[0].level, box.attention[0].short)
        return BoxWord("running", SafeText("running"))
    told = _told_word(box, now)
    if told is not None:
        return told
    if seen is not None and link.state is not LinkState.CONNECTING:
        return BoxWord("unknown", SafeText(f"unknown {short(now - seen)}"))
    if link.state in (LinkState.LOST, LinkState.UNREACHABLE):
        return BoxWord("unknown", SafeText("unreachable"))
    kind, word = _WORD_OF_LINK.get(link.state, ("starting", "first probe"))
    return BoxWord(kind, SafeText(word))


_FRESH_LIST_S = 240.0
_OF_LISTS = ("unlisted", "gone at", "not listed", "list is old")


def _told_word(box: BoxView, now: float) -> BoxWord | None:
    """What its provider says of a box that can't be looked at itself; None where that says nothing of use.

    That a machine runs, by its provider, is no word about a box that is watched: its own silence is.
    """
    one = box.rented
    if one is None:
        return None
    if box.unwritten and box.attention:
        first = next((a for a in box.attention if a.short.startswith(_OF_LISTS)), box.attention[0])
        return BoxWord(first.level, first.short)
    if one.absent == 0 and now - one.seen_at <= _FRESH_LIST_S:
        kinds = {"stopped": "stopped", "gone": "gone", "starting": "starting", "destroying": "unknown"}
        kind = kinds.get(one.state)
        return None if kind is None else BoxWord(kind, SafeText(one.said.lower()))
    gone = next((a for a in box.attention if a.short.startswith("gone at ")), None)
    return None if gone is None else BoxWord("gone", gone.short)


def judge_run(
    run: RunView, box: BoxView | None, now: float, period_s: float = 2.0
) -> tuple[RunState, SafeText]:
    """The state of a run and the evidence for it in words."""
    if box is None:
        return RunState.UNKNOWN, SafeText(f"no box named {run.spec.box} in the fleet file")
    truth = run.truth
    if box.ended is not None:
        state = RunState.FINISHED if run.finished else RunState.UNKNOWN
        return state, SafeText(f"its box was destroyed {_ago(now - box.ended.at)}")
    if box.link.state is not LinkState.LIVE:
        return _without_link(run, box, now)
    if truth is None or run.truth_at is None:
        return RunState.UNKNOWN, SafeText("not probed yet")
    if is_stale(run.truth_at, now, period_s):
        return RunState.UNKNOWN, SafeText(f"the last probe is {long(now - run.truth_at)} old")
    return _from_truth(run, truth, box)


def time_left(run: RunView, now: float) -> float | None:
    """Seconds left by the log's own count, counted on by whole minutes since that line.

    None where the log gives no count, the count ran out, or nothing shows that the run goes on.
    """
    progress = run.progress
    if progress is None or progress.eta_s is None or run.state is not RunState.RUNNING:
        return None
    left = progress.eta_s - 60 * (max(0.0, now - progress.at) // 60)
    return left if left >= 0 else None


def over_words(box: BoxView, now: float) -> str:
    """What there is to say of a box that is destroyed; empty for any other."""
    if box.ended is None:
        return ""
    return f"Destroyed {_ago(now - box.ended.at)}, {box.ended.how}: it bills no more."


def _ago(seconds: float) -> str:
    """In steps of a minute: what is over is not drawn anew every second."""
    return f"{long(seconds // 60 * 60)} ago" if seconds >= 60 else "just now"


def _without_link(run: RunView, box: BoxView, now: float) -> tuple[RunState, SafeText]:
    waiting = box.link.state in (LinkState.IDLE, LinkState.CONNECTING)
    if run.truth is None or run.truth_at is None:
        if waiting:
            return RunState.UNKNOWN, SafeText("not probed yet")
        return RunState.UNREACHABLE, SafeText(f"{box.link.state.value}; never probed in this session")
    last = {True: "alive", False: "gone", None: "of unknown state"}[run.truth.alive]
    if run.truth.alive is not True and (run.finished or run.truth.end is not None):
        last = "finished" if run.finished else "gone"
    return (
        RunState.UNREACHABLE,
        SafeText(f"{box.link.state.value}; it was {last} {long(now - run.truth_at)} ago"),
    )


def _log_age(truth: RunTruth, box: BoxView) -> float | None:
    """Seconds since the log grew, both times by the box's clock; None when either is not known."""
    log = truth.log.value
    telemetry = box.telemetry
    if log is None or telemetry is None or telemetry.host.value is None:
        return None
    offset = telemetry.host.value.clock_offset_s
    return None if offset is None else max(0.0, telemetry.taken_at + offset - log.modified_at)


def _from_truth(run: RunView, truth: RunTruth, box: BoxView) -> tuple[RunState, SafeText]:
    finished = run.progress is not None and run.progress.finished
    silent = _log_age(truth, box)
    if truth.alive is True:
        pid = truth.process.pid if truth.process else run.spec.pid
        if finished:
            return RunState.RUNNING, SafeText(f"the log shows a regular end, pid {pid} is still there")
        if truth.process is not None and truth.process.state in ("T", "t"):
            return RunState.STALLED, SafeText(f"pid {pid} is stopped by a signal; kill -CONT lets it go on")
        if silent is not None and silent > STALLED_AFTER_S:
            return RunState.STALLED, SafeText(f"pid {pid} alive, no log line for {long(silent)}")
        return RunState.RUNNING, SafeText(f"pid {pid} alive")
    if truth.finished:
        return RunState.FINISHED, SafeText("every stage is done and its artifact is there, by its own record")
    reason = truth.gone_reason or SafeText(f"pid {run.spec.pid} is gone")
    if truth.end is not None:
        gone = f"; {reason}" if truth.alive is False else ""
        return RunState.DEAD, SafeText(f"it recorded its end: {truth.end}{gone}")
    if truth.alive is False:
        if finished:
            return RunState.FINISHED, SafeText(f"the log shows a regular end; {reason}")
        return RunState.DEAD, SafeText(f"{reason}; the log shows no regular end")
    if finished:
        return RunState.FINISHED, SafeText("the log shows a regular end; no process is named for this run")
    if silent is not None and silent < FRESH_LOG_S:
        return RunState.RUNNING, SafeText(
            f"the log grew {long(silent)} ago; no process is named for this run"
        )
    if truth.session_alive is False:
        return RunState.UNKNOWN, SafeText(f"session {run.spec.session} is gone; no process is named")
    tail = f"; the log is silent for {long(silent)}" if silent is not None else ""
    return RunState.UNKNOWN, SafeText(f"no process is named for this run{tail}")


def fullest(box: BoxView) -> Filesystem | None:
    """The mount whose bytes or inodes are nearest to their end; None where none is known."""
    mounts = (box.telemetry.filesystems.value if box.telemetry is not None else None) or ()
    told = [m for m in mounts if not m.error and (m.use_pct is not None or m.inode_use_pct is not None)]
    return max(told, key=lambda m: max(m.use_pct or 0.0, m.inode_use_pct or 0.0), default=None)

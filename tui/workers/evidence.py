"""What is known of a run, gathered into what a diagnosis is made from. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tui.fleet.judge import STALLED_AFTER_S, over_words
from tui.model.event import Diagnosed
from tui.model.incident import Diagnosis
from tui.model.instance import LinkState
from tui.model.look import LookAnswer
from tui.model.snapshot import BoxView, RunView
from tui.model.telemetry import RunTruth, Telemetry
from tui.model.text import LogText, SafeText, plain, safe
from tui.triage.engine import diagnose
from tui.triage.inputs import Known, Said, said
from tui.triage.rules import Rules
from tui.triage.scan import Digest, scan
from tui.workers.witnesses import about_this_run, as_ssh_says, in_our_words

BLOCK = 4096
"""Lines that are handed to the scan at once."""
FRESH_LOOK_S = 900.0
"""An older answer says what was; the operator can take the look again."""


def digest_of(rules: Rules, lines: Sequence[LogText], first: int = 0) -> Digest:
    """What a diagnosis needs of lines in memory.

    Args:
        first: number of lines before `lines[0]`; evidence counts from the log's first line.
    """
    return counted_from(scan(_blocks(lines), rules.finder), first)


def counted_from(digest: Digest, first: int) -> Digest:
    """The digest of the end of a log, with the numbers that its lines have in the whole."""
    if not first:
        return digest
    rows = tuple(replace(row, number=row.number + first) for row in digest.rows)
    return replace(digest, rows=rows, lines=digest.lines + first, before=digest.before + first)


def _blocks(lines: Sequence[LogText]) -> Iterator[bytes]:
    for start in range(0, len(lines), BLOCK):
        yield "".join(f"{plain(line)}\n" for line in lines[start : start + BLOCK]).encode()


def diagnosed(
    rules: Rules,
    box: BoxView,
    run: RunView | None,
    digest: Digest | None,
    *,
    log_at: float | None,
    at: float,
) -> Diagnosed:
    """The diagnosis of a run, or of a box when `run` is None.

    Args:
        digest: of the run's log; None where it could not be read.
        log_at: when the log's newest line was read here.
        at: now, seconds since the epoch.
    """
    name = run.name if run is not None else None
    if over := over_words(box, at):  # that it does not answer any more is no fault
        verdict = safe(f"{over} There is nothing left to look at.")
        return Diagnosed(box.name, name, Diagnosis("unknown", verdict, (), at), at)
    kernels = [about_this_run(look, box, run) for look in box.looks]
    judged = replace(box, looks=tuple(kernel.answer for kernel in kernels))
    told = diagnose(rules, digest, said_of(judged, at), box.telemetry, known_of(box, run, at))
    told = in_our_words(told, box.link.detail, box.link.since or None)
    others = tuple(dict.fromkeys(one for kernel in kernels for one in kernel.others))
    if others:
        told = replace(told, ruled_out=(*told.ruled_out, *others))
    press = pressing(box, run)
    told = _not_all_well(told, press, "its box" if run is not None else "the box")
    return Diagnosed(box.name, name, told, at, tuple(looked_at(box, run, digest, log_at)), press)


def pressing(box: BoxView, run: RunView | None) -> tuple[SafeText, ...]:
    """What the box wants attention for, less what is said of the run itself."""
    of_run = set(run.attention) if run is not None else set()
    return tuple(one.text for one in box.attention if one not in of_run)


def _not_all_well(told: Diagnosis, press: tuple[SafeText, ...], whose: str) -> Diagnosis:
    """No fault was found; but what is about to become one must not stand below "nothing is wrong"."""
    if not press or told.incidents or told.outcome not in ("running", "unknown"):
        return told
    return replace(told, verdict=SafeText(f"Nothing has failed yet, but {whose} needs you."))


def known_of(box: BoxView, run: RunView | None, at: float) -> Known:
    """What was known before and besides the newest probe."""
    host = box.telemetry.host.value if box.telemetry is not None else None
    offset = host.clock_offset_s if host is not None else None
    truth = run.truth if run is not None else None
    now = None if offset is None else at + offset
    return Known(
        run=run.name if run is not None else None,
        boot_id=run.spec.boot_id if run is not None else None,
        now=now,
        oom_kills=box.first_oom,
        alive=truth.alive if truth is not None else None,
        session_alive=truth.session_alive if truth is not None else None,
        log_age_s=_log_age(truth, box.telemetry, offset),
        reachable=_reachable(box),
        quiet_s=STALLED_AFTER_S,
        platform=box.instance.platform,
    )


def _log_age(truth: RunTruth | None, telemetry: Telemetry | None, offset: float | None) -> float | None:
    log = truth.log.value if truth is not None else None
    if log is None or telemetry is None or offset is None:
        return None
    return max(0.0, telemetry.taken_at + offset - log.modified_at)


def _reachable(box: BoxView) -> bool | None:
    if box.link.state is LinkState.LIVE:
        return True
    return None if box.link.state in (LinkState.IDLE, LinkState.CONNECTING) else False


def said_of(box: BoxView, at: float) -> tuple[Said, ...]:
    """Answers of looks that are fresh enough, and what stood in the way to the box."""
    fresh = [look for look in box.looks if at - look.at < FRESH_LOOK_S and (look.lines or look.note)]
    answers = [replace(said(look), source=source_of(look)) for look in fresh]
    if box.link.state is not LinkState.LIVE and box.link.detail:
        words = as_ssh_says(box.link.state, box.link.detail) or str(box.link.detail)
        answers.append(Said("ssh", SafeText("ssh"), words, at=box.link.since or None))
    return tuple(answers)


def source_of(look: LookAnswer) -> SafeText:
    """How evidence names a look: its command is a whole program, too long for a line."""
    return safe(f"{look.look.replace('_', ' ')} {look.subject}".strip(), 120)


def looked_at(
    box: BoxView, run: RunView | None, digest: Digest | None, log_at: float | None
) -> Iterator[tuple[SafeText, float | None]]:
    """What a diagnosis rests on, with the time each was taken; None: it could not be looked at."""
    telemetry = box.telemetry
    yield (SafeText("probe"), telemetry.taken_at if telemetry is not None else None)
    if run is not None and run.spec.log:
        yield (SafeText(f"log{_range(digest)}"), log_at)
    if telemetry is not None:
        parts = (
            ("cards", telemetry.gpus), ("disks", telemetry.filesystems), ("memory", telemetry.memory),
            ("kernel messages of cards", telemetry.xid),
        )  # fmt: skip
        for word, reading in parts:
            taken = reading.source.taken_at if reading.source is not None else telemetry.taken_at
            yield (SafeText(word), taken if reading.known else None)
    for look in box.looks:
        yield (safe(look.look.replace("_", " ")), look.at)


def _range(digest: Digest | None) -> str:
    """Which lines of a log were read."""
    if digest is None:
        return ""
    if not digest.before:
        return f" ({digest.lines:,} lines)"
    return f" (lines {digest.before + 1:,} to {digest.lines:,}; what lies before was not read)"


def clock(at: float) -> str:
    """A time of day as the screens write it."""
    return time.strftime("%H:%M:%S", time.localtime(at))

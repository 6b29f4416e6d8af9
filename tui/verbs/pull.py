"""`rgt pull` and `rgt readback`: the durable copy, and the proof that it can be read."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from tui.model.failure import Exit
from tui.model.text import amount, safe

if TYPE_CHECKING:
    from tui.box.transfer.meter import Progress
    from tui.custody.errand import Errand
    from tui.custody.readback import Need
    from tui.model.custody import CopyReport, Gap, ReadbackReport, Refusal
    from tui.verbs.wiring import Dialer

_SHOWN = 20
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([kKmMgG]?)(?:i?[bB])?(?:/s)?\Z")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    pull = sub.add_parser(
        "pull",
        help="make the durable copy of a run, every file proven",
        description="Copies what `rgt digest` hashed into a sealed folder named by its content; what is "
        "there already is hashed again and kept. Repeat it after any failure: it goes on where it stopped.",
    )
    pull.add_argument("name", metavar="RUN", help="a run, or a box with one run")
    pull.add_argument(
        "--to", required=True, metavar="DEST", help="a folder, BOX:FOLDER, or rclone:REMOTE:FOLDER"
    )
    pull.add_argument(
        "--bwlimit", type=_rate, metavar="RATE", help="at most so many bytes a second, such as 20M"
    )
    pull.add_argument(
        "--through-here", action="store_true", help="never from the box itself, even if it reaches the store"
    )
    pull.add_argument("--json", action="store_true", help="print the record as JSON")
    pull.set_defaults(run=lambda args: asyncio.run(_pull(args)))
    back = sub.add_parser(
        "readback",
        help="read the durable copy back, cold, by somebody who did not make it",
        description="Restores the copy into a fresh folder of another box or of this computer and hashes "
        "every byte there. The files stay for the steps after this one.",
    )
    back.add_argument("name", metavar="RUN", help="a run, or a box with one run")
    back.add_argument(
        "--on",
        metavar="BOX",
        help="who reads, remembered for the run: a box, or `here` (this computer); by default who was chosen "
        "last, else this computer",
    )
    back.add_argument("--json", action="store_true", help="print the record as JSON")
    back.set_defaults(run=lambda args: asyncio.run(_readback(args)))


def _rate(text: str) -> int:
    match = _RATE.match(text)
    rate = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    if rate < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate; write 500k, 20M or 1.5G")
    return rate


async def _pull(args: argparse.Namespace) -> int:
    from tui.custody.errand import errand
    from tui.fleet.paths import paths
    from tui.workers.steps import copy_run

    task = errand(args.name, paths())
    bar = _Lines("copied")
    try:
        report = await copy_run(
            task, _dialer(task), args.to, bar.show, cap=args.bwlimit, direct=not args.through_here
        )
    finally:
        bar.end()
    _print(args, report, copy_lines(report))
    return Exit.ATTENTION if report.refusals else Exit.FINE


async def _readback(args: argparse.Namespace) -> int:
    from tui.custody.errand import errand
    from tui.fleet.paths import paths
    from tui.model.custody import CopyReport
    from tui.workers.reader_choice import choose_reader, reader_of
    from tui.workers.steps import read_run_back

    task = errand(args.name, paths())
    on = reader_of(task) if args.on is None else choose_reader(task, args.on)
    bar = _Lines("read")
    try:
        report = await read_run_back(task, _dialer(task), on, _say_need, bar.show)
    finally:
        bar.end()
    _print(args, report, readback_lines(report, task.records.need(CopyReport, "")))
    return Exit.ATTENTION if report.refusals else Exit.FINE


def _dialer(task: Errand) -> Dialer:
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer

    return dialer(task.where, asker=TerminalAsker())


def _say_need(need: Need) -> None:
    print(f"rgt: the readback {need.line}", file=sys.stderr, flush=True)


class _Report(Protocol):
    @property
    def digest(self) -> str: ...

    def model_dump(self, *, mode: str) -> dict[str, object]: ...


def _print(args: argparse.Namespace, report: _Report, lines: Iterable[str]) -> None:
    if args.json:
        print(json.dumps({"digest": report.digest, **report.model_dump(mode="python")}, indent=1))
    else:
        print("\n".join(lines))


def copy_lines(report: CopyReport) -> Iterable[str]:
    """A copy in a few lines."""
    kept = f", {amount(report.resumed)} of it from before" if report.resumed else ""
    yield safe(f"{len(report.files)} files, {amount(report.size)}{kept}, {report.route}")
    yield safe(f"  {report.destination.uri}" if report.bag else f"  not finished: {report.destination.uri}")
    for one in report.admissions:
        gone = f"gone at {one.removed_at}" if one.removed_at else "NOT SEEN TO BE GONE"
        yield safe(f"  single-use key {one.fingerprint} on {one.target}: {gone}")
    yield from _verdict(report.refusals, report.gaps)
    yield report.digest


def readback_lines(report: ReadbackReport, copied: CopyReport) -> Iterable[str]:
    """A readback in a few lines."""
    size = sum(one.size for one in report.files)
    cold = "cold" if report.cold else "cache not proven cold"
    yield safe(
        f"{len(report.files)} of {len(copied.files)} files, {amount(size)}, {report.independence}, {cold}"
    )
    yield safe(f"  {report.consumer.uri}")
    for word, paths in (
        ("missing", report.missing),
        ("extra", report.extra),
        ("different", report.different),
    ):
        yield from (safe(f"  {word}: {path}") for path in paths[:_SHOWN])
    yield from _verdict(report.refusals, report.gaps)
    yield report.digest


def _verdict(refusals: Iterable[Refusal], gaps: Iterable[Gap]) -> Iterable[str]:
    refused = [
        f"refused: {one.code}{' ' + one.path if one.path else ''}: {one.detail.rstrip('.')}. {one.clears}"
        for one in refusals
    ]
    warned = [f"gap: {one.code}: {one.detail}" for one in gaps]
    for lines in (refused, warned):
        yield from (safe(line) for line in lines[:_SHOWN])
        if len(lines) > _SHOWN:
            yield f"and {len(lines) - _SHOWN} more; --json shows all"


class _Lines:
    """Says on stderr how far it is: one line that changes on a terminal, else a line now and then."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._terminal = sys.stderr.isatty()
        self._last = 0.0
        self._used = False

    def show(self, at: Progress) -> None:
        now = time.monotonic()
        if not self._terminal and (now - self._last < 5.0 or not at.done):
            return
        self._last, self._used = now, True
        end = "\x1b[K" if self._terminal else "\n"
        start = "\r" if self._terminal else ""
        print(f"{start}{progress_line(at, self._word)}", end=end, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._used and self._terminal:
            print(file=sys.stderr, flush=True)


def progress_line(at: Progress, word: str) -> str:
    """How far a transfer is, on one line."""
    share = 100 * at.done // at.total if at.total else 100
    parts = [
        f"{share:3d} %  {amount(at.done)} of {amount(at.total)} {word}",
        f"{at.files}/{at.files_total} files",
    ]
    if at.silent_s > 5 and at.done < at.total and not at.note:
        parts.append(f"nothing for {at.silent_s:.0f} s")
    else:
        parts.append("? B/s" if at.rate is None else f"{amount(int(at.rate))}/s")
        parts.append("? s left" if at.eta_s is None else f"{at.eta_s:.0f} s left")
    if at.links > 1:
        parts.append(f"link {at.links}")
    return safe("  ".join([*parts, at.note] if at.note else parts))

"""`rgt status`, `rgt probe`, `rgt logs`: the screens' facts without a screen. They take no watcher lock."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.log import LogBatch, LogState
from tui.model.text import LogText, plain

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance
    from tui.model.run import RunSpec
    from tui.model.snapshot import FleetSnapshot
    from tui.model.telemetry import Telemetry


_MOST_LINES = 10**9
ACCOUNTS_S = 25.0
"""What the providers get, beside the boxes: as long as one box."""


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    status = sub.add_parser("status", help="the fleet in a few lines")
    status.add_argument("names", nargs="*", metavar="BOX", help="only these boxes")
    _formats(status)
    status.set_defaults(run=lambda args: asyncio.run(_status(args)))
    probe = sub.add_parser("probe", help="one look at one box")
    probe.add_argument("target", metavar="TARGET", help="a box's name, an ssh address, or `local`")
    _formats(probe)
    probe.set_defaults(run=lambda args: asyncio.run(_probe(args)))
    logs = sub.add_parser("logs", help="the end of a run's log")
    logs.add_argument("name", metavar="NAME", help="a run, or a box with one run")
    logs.add_argument(
        "-f", "--follow", action="store_true", help="go on as it grows, through cuts and rotation"
    )
    logs.add_argument("-n", "--lines", type=_count, default=50, help="how many lines of its end (50)")
    _formats(logs)
    logs.set_defaults(run=lambda args: asyncio.run(_logs(args)))


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of lines")
    return min(int(text), _MOST_LINES)  # what `tail` on a box takes


def _formats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON; null is what is not known")
    parser.add_argument("--plain", action="store_true", help="plain lines, no colour")


async def _status(args: argparse.Namespace) -> int:
    from tui.fleet import leash_notes
    from tui.fleet.account_report import account_lines
    from tui.fleet.paths import paths
    from tui.fleet.report import ends_elsewhere, exit_code, status_json, status_lines, status_table

    snapshot, problems = await snapshot_of(paths(), args.names)
    for problem in problems:
        print(f"rgt: {problem.line}", file=sys.stderr)
    now = time.time()
    if args.json:
        print(json.dumps(status_json(snapshot, now), ensure_ascii=False, indent=1))
    elif not snapshot.boxes and not snapshot.problems:
        print("No box yet. Add one with: rgt add 'ssh -p PORT USER@HOST'")
    elif snapshot.boxes:
        told = status_lines if args.plain else status_table
        print("\n".join(told(snapshot, now)))
    if not args.json:
        leashes = leash_notes.lines(paths(), now, (box.instance.name for box in snapshot.boxes))
        for line in (*account_lines(snapshot, now), *ends_elsewhere(snapshot), *leashes):
            print(line)
    return max(exit_code(snapshot), Exit.ATTENTION) if problems else exit_code(snapshot)


async def snapshot_of(where: Paths, names: list[str]) -> tuple[FleetSnapshot, tuple[Failure, ...]]:
    """One look at every box at once, folded into a snapshot; one dead box delays no other."""
    from tui.fleet import settings
    from tui.fleet.fleet_source import FleetFile
    from tui.fleet.reducer import Rules, reduce
    from tui.model.event import AccountSeen, OpenEndsRead
    from tui.model.snapshot import FleetSnapshot
    from tui.verbs.accounting import sources
    from tui.verbs.wiring import dialer
    from tui.workers.accounts import look_once
    from tui.workers.once import look_at
    from tui.workers.open_ends import destroyed, open_ends

    fleet, problems = FleetFile(where).load()
    known = {i.name for i in fleet.instances}
    for name in names:
        if name not in known:
            raise _no_such(name, where)
    chosen = tuple(i for i in fleet.instances if not names or i.name in names)
    runs = tuple(r for r in fleet.runs if r.box in {i.name for i in chosen})
    dial = dialer(where)
    looks = [look_at(i, tuple(r for r in runs if r.box == i.name), dial, time.time) for i in chosen]
    asking = asyncio.create_task(look_once(sources(where), ACCOUNTS_S))
    found = [event for events in await asyncio.gather(*looks) for event in events]
    thresholds = settings.load(where.fleet_file).settings.thresholds
    rules = Rules(thresholds, period_s=60.0)  # one look: what it saw is the present
    seen = [AccountSeen(view) for view in await asking]
    try:
        ends, ended = open_ends(where), destroyed(where)
    except Failure as damaged:
        ends, ended, problems = (), (), (*problems, damaged)
    events = [replace(fleet, instances=chosen, runs=runs), *found, *seen, OpenEndsRead(ends, ended)]
    snapshot = reduce(FleetSnapshot(), events, time.time(), rules)
    if names:  # who asks for one box does not ask for what else there is
        snapshot = replace(snapshot, boxes=tuple(b for b in snapshot.boxes if not b.unwritten))
    return snapshot, problems


def _no_such(name: str, where: Paths) -> Failure:
    return Failure(
        f"No box is named {name!r} in {where.fleet_file}.", do="See `rgt status`.", exit=Exit.USAGE
    )


async def _probe(args: argparse.Namespace) -> int:
    from tui.box.probe.as_json import telemetry_json, telemetry_plain

    instance, telemetry = await _take(args.target)
    if args.json:
        print(json.dumps(telemetry_json(telemetry), ensure_ascii=False, indent=1))
    else:
        print(telemetry_plain(telemetry))
    return _verdict(instance, telemetry)


async def _take(target: str) -> tuple[Instance, Telemetry]:
    from tui.fleet.paths import paths
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer
    from tui.workers.once import take

    where = paths()
    instance, runs = _target(target, where)
    transport = await dialer(where, asker=TerminalAsker())(instance)
    try:
        return instance, await take(transport, instance.mounts, runs, time.time)
    finally:
        await transport.close()


def _target(target: str, where: Paths) -> tuple[Instance, tuple[RunSpec, ...]]:
    """A name of the fleet file, `local`, or an address in any pasted form. A name wins."""
    from tui.fleet.fleet_source import FleetFile
    from tui.model.instance import Instance

    fleet, _ = FleetFile(where).load()
    for instance in fleet.instances:
        if instance.name == target:
            return instance, tuple(r for r in fleet.runs if r.box == target)
    if target == "local":
        return Instance("local", "local", None), ()
    if not set(target) & set("@ :."):
        raise _no_such(target, where)
    from tui.box.address import parse_address

    address = parse_address(target)
    return Instance(address.host, address.platform, address.endpoint()), ()


def _verdict(instance: Instance, telemetry: Telemetry) -> Exit:
    """1 when a threshold is passed, 4 when a main part could not be told."""
    from tui.fleet.attention import box_attention
    from tui.fleet.thresholds import Thresholds
    from tui.model.snapshot import BoxView

    view = BoxView(instance, telemetry=telemetry)
    if box_attention(view, None, telemetry.taken_at, Thresholds()):
        return Exit.ATTENTION
    parts = (telemetry.host, telemetry.filesystems, telemetry.memory, telemetry.gpus)
    return Exit.FINE if all(part.known for part in parts) else Exit.UNKNOWN


async def _logs(args: argparse.Namespace) -> int:
    from tui.fleet.paths import paths
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer
    from tui.workers.once import log_end

    where = paths()
    instance, spec = _run_named(args.name, where)
    printer = Printer(as_json=args.json, colour=sys.stdout.isatty() and not args.plain)
    dial = dialer(where, asker=TerminalAsker())
    if args.follow:
        from tui.verbs.follow import follow_log

        return await follow_log(instance, spec, dial, printer, args.lines)
    transport = await dial(instance)
    try:
        lines = await log_end(transport, spec, max(64 * 1024, args.lines * 512))
    finally:
        await transport.close()
    if not lines:
        raise Failure(f"{spec.log} is empty or can't be read on {instance.name}.", exit=Exit.UNKNOWN)
    for line in lines[max(0, len(lines) - args.lines) :]:
        printer.line(line)
    return Exit.FINE


class Printer:
    """Prints log lines: with their colours, plain, or as one JSON object each."""

    def __init__(self, *, as_json: bool, colour: bool) -> None:
        self._json, self._colour = as_json, colour
        self._last_word = ""

    def line(self, line: LogText, number: int | None = None) -> None:
        if self._json:
            print(json.dumps({"number": number, "text": plain(line)}, ensure_ascii=False), flush=True)
        else:
            print(f"{line}\x1b[0m" if self._colour and "\x1b" in line else plain(line), flush=True)

    def batch(self, batch: LogBatch, skip: int = 0) -> None:
        for index, line in enumerate(batch.lines):
            if index >= skip:
                self.line(line, batch.first + index)

    def state(self, state: LogState) -> None:
        """Narration goes to stderr, and each change is said once."""
        if state.word != self._last_word:
            self._last_word = state.word
            print(f"rgt: {state.word} {state.detail}".rstrip(), file=sys.stderr, flush=True)


def _run_named(name: str, where: Paths) -> tuple[Instance, RunSpec]:
    from tui.fleet import settings

    loaded = settings.load(where.fleet_file)
    named = [r for r in loaded.runs if r.name == name] or [r for r in loaded.runs if r.box == name]
    if len(named) > 1:
        raise Failure(
            f"{name} has {len(named)} runs: {', '.join(r.name for r in named)}.",
            do="Name one.",
            exit=Exit.USAGE,
        )
    if not named:
        raise Failure(
            f"No run is named {name!r}.", do="See `rgt status`, or adopt one: rgt watch BOX.", exit=Exit.USAGE
        )
    spec = named[0]
    if spec.log is None:
        raise Failure(f"{spec.name} names no log.", do="Name one: rgt watch BOX --log PATH.", exit=Exit.USAGE)
    return next(i for i in loaded.instances if i.name == spec.box), spec

"""`rgt roster` and `rgt digest`: the first two links of the chain. Nothing on the box is changed."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import amount, safe

if TYPE_CHECKING:
    from tui.custody.digest import HashProgress
    from tui.custody.leftovers import Decision
    from tui.model.custody import DigestReport, Gap, Refusal, Roster
    from tui.verbs.errand import Errand
    from tui.workers.box import BoxTransport

_SHOWN = 20


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    roster = sub.add_parser(
        "roster",
        help="what of a run must survive, and what else would be destroyed",
        description="Lists the artifacts of a run and everything else on what the verb destroys; each group "
        "of leftovers is kept or scrapped by your decision, which is recorded.",
    )
    _run(roster)
    roster.add_argument(
        "--verb", choices=("destroy", "stop"), default="destroy", help="what shall be done (destroy)"
    )
    roster.add_argument("--root", metavar="DIR", help="folder on the box that holds the results")
    roster.add_argument(
        "--job", metavar="FILE", help="job file with a [custody] table; kept for the next steps"
    )
    roster.add_argument(
        "--keep", action="append", default=[], metavar="GROUP", help="put a group on the roster"
    )
    roster.add_argument(
        "--scrap",
        action="append",
        default=[],
        metavar="GROUP",
        help="give a group up; a pattern such as 'cache:*' never covers checkpoints",
    )
    roster.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    roster.set_defaults(run=lambda args: asyncio.run(_roster(args)))
    digest = sub.add_parser("digest", help="SHA-256 of every artifact, computed on the box")
    _run(digest)
    digest.set_defaults(run=lambda args: asyncio.run(_digest(args)))


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="RUN", help="a run, or a box with one run")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")


async def _roster(args: argparse.Namespace) -> int:
    from tui.custody.roster import Wanted, take_roster
    from tui.fleet import profiles
    from tui.fleet.paths import paths, shipped
    from tui.model.custody import Roster
    from tui.verbs.errand import errand, folder_of, moment, victim_of
    from tui.verbs.tiers import tiers_of

    where = paths()
    task = errand(args.name, where, args.job)
    before = task.records.newest(Roster)
    profile = profiles.load(shipped("profiles"), where.profiles).by_id.get(task.instance.platform)
    tiers = tiers_of(profile.facts if profile else None, args.verb, task.instance)
    transport = await _connect(task)
    try:
        root = await folder_of(transport, task, args.root)
        roster = await take_roster(
            transport,
            Wanted(task.spec.name, root, task.table),
            await victim_of(task.instance, transport),
            args.verb,
            tiers,
            _decisions(before, args),
            moment(),
        )
    finally:
        await transport.close()
    _check_decisions(roster, args)
    task.records.save(roster)
    if args.json:
        print(json.dumps({"digest": roster.digest, **roster.model_dump(mode="python")}, indent=1))
    else:
        print("\n".join(roster_lines(roster)))
    return Exit.ATTENTION if roster.refusals else Exit.FINE


async def _digest(args: argparse.Namespace) -> int:
    from tui.custody.digest import digest_on_box
    from tui.custody.digest_journal import DigestJournal, binding
    from tui.custody.manifest import MANIFEST
    from tui.custody.records import write_file
    from tui.fleet.paths import paths
    from tui.model.custody import Roster
    from tui.verbs.errand import errand, moment, same_machine, victim_of

    task = errand(args.name, paths())
    roster = task.records.need(Roster, f"Take it first: rgt roster {task.spec.name}.")
    journal = DigestJournal(task.folder / "digest-journal.jsonl", binding(roster))
    journal.open()
    bar = _Bar()
    transport = None
    try:
        transport = await _connect(task)
        same_machine(roster.victim, await victim_of(task.instance, transport))
        report, manifest = await digest_on_box(transport, roster, bar.show, moment, journal=journal)
    finally:
        bar.end()
        journal.close()
        if transport is not None:
            await transport.close()
    write_file(task.folder / MANIFEST, manifest)
    task.records.save(report)
    if args.json:
        print(json.dumps({"digest": report.digest, **report.model_dump(mode="python")}, indent=1))
    else:
        print("\n".join(digest_lines(report, roster, str(task.folder / MANIFEST))))
    return Exit.ATTENTION if report.refusals else Exit.FINE


async def _connect(task: Errand) -> BoxTransport:
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer

    return await dialer(task.where, asker=TerminalAsker())(task.instance)


def _decisions(before: Roster | None, args: argparse.Namespace) -> Mapping[str, Decision]:
    """What was decided for the last roster, with what the command line says on top."""
    from tui.custody.leftovers import Decision

    found: dict[str, Decision] = {}
    for one in before.leftovers if before is not None else ():
        if one.decision is not None:
            found[one.group] = Decision(one.decision, one.reason)
    found |= {group: Decision("scrap", args.reason) for group in args.scrap}
    return found | {group: Decision("keep", args.reason) for group in args.keep}


def _check_decisions(roster: Roster, args: argparse.Namespace) -> None:
    """A decision about a group that is not there is a mistake, or what it was about has changed."""
    from fnmatch import fnmatchcase

    there = {one.group for one in roster.leftovers}
    for name in (*args.keep, *args.scrap):
        if name.startswith("unlisted:") or name in there or any(fnmatchcase(one, name) for one in there):
            continue
        raise Failure(
            f"There is no group {name}.",
            means="Nothing was recorded. A group's name changes when its checkpoints do.",
            do=f"See rgt roster {roster.run}.",
            exit=Exit.USAGE,
            code="no-such-group",
        )


def roster_lines(roster: Roster) -> Iterable[str]:
    """A roster in a few lines."""
    size = sum(one.size for one in roster.artifacts)
    yield safe(
        f"{roster.run} on {roster.victim.name}: {_files(len(roster.artifacts), size)} in {roster.root}"
    )
    for role in dict.fromkeys(one.role for one in roster.artifacts):
        of_role = [one for one in roster.artifacts if one.role == role]
        yield f"  {role:<12} {_files(len(of_role), sum(one.size for one in of_role))}"
    places = ", ".join(tier.path for tier in roster.tiers if tier.survives is not True)
    yield safe(f"{roster.verb} takes with it: {places or 'nothing that is known'}")
    for left in roster.leftovers:
        mark = {"keep": "keep ", "scrap": "scrap", None: "?    "}[left.decision]
        yield safe(f"  {mark} {left.group}  {_files(left.count, left.size)}")
    yield from _verdict(roster.refusals, roster.gaps)
    yield roster.digest


def digest_lines(report: DigestReport, roster: Roster, manifest: str) -> Iterable[str]:
    """A digest report in a few lines."""
    size = sum(one.size for one in report.files)
    tools = ", ".join(sorted({one.tool for one in report.files}))
    yield safe(
        f"{roster.run}: {_files(len(report.files), size)} of {len(roster.artifacts)} hashed by {tools or '-'}"
    )
    yield safe(f"  {manifest}")
    yield from _verdict(report.refusals, ())
    yield report.digest


def _verdict(refusals: Iterable[Refusal], gaps: Iterable[Gap]) -> Iterable[str]:
    for at, one in enumerate(refusals):
        if at == _SHOWN:
            yield "refused: and more; --json shows all"
            break
        path = f" {one.path}" if one.path else ""
        yield safe(f"refused: {one.code}{path}: {one.detail}. {one.clears}")
    for at, one_gap in enumerate(gaps):
        if at == _SHOWN:
            yield "gap: and more; --json shows all"
            break
        yield safe(f"gap: {one_gap.code}: {one_gap.detail}")


def _files(count: int, size: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}, {amount(size)}"


class _Bar:
    """One line on a terminal's stderr that says how far the hashing is."""

    def __init__(self) -> None:
        self._used = False

    def show(self, at: HashProgress) -> None:
        if not sys.stderr.isatty():
            return
        self._used = True
        share = 100 * at.bytes // at.bytes_total if at.bytes_total else 100
        rate = f"{amount(int(at.rate))}/s" if at.rate is not None else "? B/s"
        eta = f"{at.eta_s:.0f} s left" if at.eta_s is not None else "? s left"
        text = (
            f"{share:3d} %  {amount(at.bytes)} of {amount(at.bytes_total)}  {at.files}/{at.files_total} files"
        )
        print(f"\r{text}  {rate}  {eta}  {at.tool}\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._used:
            print(file=sys.stderr, flush=True)

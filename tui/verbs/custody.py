"""`rgt roster` and `rgt digest`: the first two links of the chain. Nothing on the box is changed."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import amount, safe

if TYPE_CHECKING:
    from tui.custody.digest import HashProgress
    from tui.custody.errand import Errand
    from tui.model.custody import DigestReport, Gap, Refusal, Roster
    from tui.verbs.wiring import Dialer

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
    from tui.custody.decisions import decided, record
    from tui.custody.errand import errand
    from tui.custody.leftovers import Decision
    from tui.custody.moments import moment
    from tui.fleet.paths import paths
    from tui.model.custody import Roster
    from tui.workers.steps import keep_roster, look_for_roster

    task = errand(args.name, paths(), args.job)
    said = {group: Decision("scrap", args.reason) for group in args.scrap}
    said |= {group: Decision("keep", args.reason) for group in args.keep}
    decisions = decided(task.folder, task.records.newest(Roster)) | said
    roster = await look_for_roster(task, _dialer(task), args.verb, decisions, root=args.root)
    _check_decisions(roster, args)
    record(task.folder, said, moment(time.time()))
    await keep_roster(task, roster)
    if args.json:
        print(json.dumps({"digest": roster.digest, **roster.model_dump(mode="python")}, indent=1))
    else:
        print("\n".join(roster_lines(roster)))
    return Exit.ATTENTION if roster.refusals else Exit.FINE


async def _digest(args: argparse.Namespace) -> int:
    from tui.custody.errand import errand
    from tui.custody.manifest import MANIFEST
    from tui.fleet.paths import paths
    from tui.model.custody import Roster
    from tui.workers.steps import hash_on_box

    task = errand(args.name, paths())
    bar = _Bar()
    try:
        report = await hash_on_box(task, _dialer(task), bar.show)
    finally:
        bar.end()
    roster = task.records.need(Roster, "")
    if args.json:
        print(json.dumps({"digest": report.digest, **report.model_dump(mode="python")}, indent=1))
    else:
        print("\n".join(digest_lines(report, roster, str(task.folder / MANIFEST))))
    return Exit.ATTENTION if report.refusals else Exit.FINE


def _dialer(task: Errand) -> Dialer:
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer

    return dialer(task.where, asker=TerminalAsker())


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

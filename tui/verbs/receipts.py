"""`rgt receipts` and `rgt evidence`: what was done is on record, and what of a run is usable."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tui.model.failure import Exit
from tui.model.text import amount, safe

if TYPE_CHECKING:
    from tui.custody.evidence import Index
    from tui.custody.receipts import ChainReport


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both verbs to the command line."""
    receipts = sub.add_parser("receipts", help="list all receipts and verify their chain")
    receipts.add_argument("--json", action="store_true", help="print JSON")
    receipts.add_argument(
        "--codes", action="store_true", help="print every code a receipt may hold, and what clears it"
    )
    receipts.set_defaults(run=lambda args: _codes(args) if args.codes else _receipts(args))
    evidence = sub.add_parser(
        "evidence", help="what of a run is usable and how surely, then what is residual"
    )
    evidence.add_argument("name", metavar="RUN", help="a run, or a box with one run")
    evidence.add_argument("--json", action="store_true", help="print JSON")
    evidence.set_defaults(run=_evidence)


def _codes(args: argparse.Namespace) -> int:
    from tui.custody.codes import CODES

    if args.json:
        print(json.dumps({code: asdict(one) for code, one in CODES.items()}, ensure_ascii=True, indent=1))
        return Exit.FINE
    for code, one in sorted(CODES.items()):
        print(f"{one.kind:<8} {code:<29} {one.means} {one.clears}")
    return Exit.FINE


def _receipts(args: argparse.Namespace) -> int:
    from tui.custody.receipts import verify_chain
    from tui.fleet.paths import paths

    report = verify_chain(paths().receipts)
    if args.json:
        print(json.dumps(_as_json(report), ensure_ascii=True, indent=1))
    else:
        _print_chain(report)
    return Exit.FINE if report.holds else Exit.ATTENTION


def _as_json(report: ChainReport) -> dict[str, object]:
    bad = report.first_bad
    return {
        "holds": report.holds,
        "head": report.head,
        "first_bad": None if bad is None else {"number": bad.number, "path": str(bad.path), "why": bad.why},
        "receipts": [
            {"number": one.number, "digest": one.digest, **one.receipt.model_dump(mode="python")}
            for one in report.receipts
        ],
        "beside": [path.name for path in report.beside],
    }


def _print_chain(report: ChainReport) -> None:
    for one in report.receipts:
        what = one.receipt
        name = what.victim.name if what.victim else "–"
        line = f"{one.number:06d}  {what.at}  {what.act:<16} {what.result:<12} {name:<16} {what.run or ''}"
        print(safe(f"{line}  {what.detail}", 200).rstrip())
    if report.first_bad is not None:
        bad = report.first_bad
        print(safe(f"BAD  {bad.path} {bad.why}. What comes after it proves nothing about what came before."))
    elif report.head is None:
        print("No receipt yet.")
    else:
        print(f"The chain holds: {len(report.receipts)} receipts, head {report.head}")
    if report.beside:
        print(f"Receipts of accepted host keys, beside the chain: {len(report.beside)}")


def _evidence(args: argparse.Namespace) -> int:
    from tui.custody.errand import errand
    from tui.custody.evidence import Links, index
    from tui.custody.receipts import verify_chain
    from tui.custody.records import records
    from tui.fleet.entry_rules import NAME
    from tui.fleet.paths import paths
    from tui.model.custody import (
        CopyReport,
        DigestReport,
        LoadReport,
        MetricReport,
        ReadbackReport,
        Roster,
    )

    where = paths()
    # The records outlive the box: a run that left the fleet file is still to be found by its name.
    known = NAME.match(args.name) and (where.state / "custody" / args.name).is_dir()
    run = args.name if known else errand(args.name, where).spec.name
    found = records(where, run)
    roster = found.need(Roster, f"Take it first: rgt roster {run}.")
    told = index(
        Links(
            roster,
            found.newest(DigestReport),
            found.newest(CopyReport),
            found.newest(ReadbackReport),
            found.newest(LoadReport),
            found.newest(MetricReport),
        )
    )
    report = verify_chain(where.receipts)
    acts = [one for one in report.receipts if one.receipt.run == run]
    residual = list(told.residual)
    if not report.holds:
        residual.append("the chain of receipts is damaged; see `rgt receipts`")
    ends = [
        f"{one.receipt.act}: {one.receipt.result} at {one.receipt.at}, {one.receipt.detail}" for one in acts
    ]
    if args.json:
        print(json.dumps(_index_json(told, ends, residual), ensure_ascii=True, indent=1))
    else:
        _print_index(told, ends, residual)
    usable = told.items and all(one.status in ("loaded", "read back") for one in told.items)
    return Exit.FINE if usable else Exit.ATTENTION


def _index_json(told: Index, ends: list[str], residual: list[str]) -> dict[str, object]:
    return {
        "run": told.run,
        "artifacts": [
            {
                "path": one.path,
                "status": one.status,
                "role": one.role,
                "bytes": one.size,
                "sha256": one.sha256,
                "uri": one.uri,
                "detail": one.detail,
            }
            for one in told.items
        ],
        "metrics": [one.model_dump(mode="python") for one in told.metrics],
        "copy": dict(told.copy),
        "acts": ends,
        "residual": residual,
    }


def _print_index(told: Index, ends: list[str], residual: list[str]) -> None:
    print(safe(told.run))
    for one in told.items:
        digest = one.sha256.removeprefix("sha256:")[:12] if one.sha256 else "-" * 12
        line = f"  {one.status:<9} {one.role:<11} {amount(one.size):>9}  {digest}  {one.path}  {one.detail}"
        print(safe(line).rstrip())
    for metric in told.metrics:
        figures = f"reported {metric.reported or '–'}, recomputed {metric.recomputed or '–'}"
        print(safe(f"  metric    {metric.name}: {metric.verdict}, {figures}"))
    for name, value in told.copy:
        print(safe(f"  {name:<9} {value}"))
    for line in ends:
        print(safe(f"  {line}", 300))
    if residual:
        print("residual")
        for line in residual[:60]:
            print(safe(f"  {line}", 300))
        if len(residual) > 60:
            print(f"  and {len(residual) - 60} more; --json shows all")

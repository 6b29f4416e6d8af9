"""`rgt verify`: are files what they claim to be: digests, checkpoints, metrics. Needs no box."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui.checkpoints.acceptance import accept, effect_of, what_to_do
from tui.checkpoints.codes import CODES
from tui.checkpoints.examine import Options, examine_tree, listed
from tui.checkpoints.jailer import Jail
from tui.checkpoints.manifest import MANIFEST_NAME, Manifest, compare, read_manifest
from tui.custody.codes import CODES as ROOM
from tui.model.failure import Exit, Failure
from tui.model.text import amount, safe
from tui.model.verdict import Acceptance, CheckpointVerdict, Examination, Problem

EXITS: dict[Acceptance, Exit] = {
    "accepted": Exit.FINE,
    "refused": Exit.ATTENTION,
    "incomplete": Exit.UNKNOWN,
}
_SHOWN = 20
_WIDTH = len("needs_allowlist")
Out = Callable[[str], None]


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser(
        "verify",
        help="check the files of a folder: digests, checkpoints, metrics",
        description="Reads everything below a folder, loads its checkpoints in a jailed process and "
        "recomputes its metrics. exit codes: 0 accepted · 1 refused · 4 incomplete or unknown · 2 usage",
    )
    parser.add_argument(
        "target",
        metavar="RUN|DIR",
        help="a run, whose readback is verified, or a folder or file; with a / it is never a run's name",
    )
    parser.add_argument(
        "--manifest",
        metavar="FILE",
        help=f"SHA-256 list that must match exactly; {MANIFEST_NAME} in DIR if there",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plain", action="store_true", help="one line per finding, tab separated")
    parser.set_defaults(run=verify)


def verify(args: argparse.Namespace) -> int:
    """Print the verdict on a folder or file; the exit code tells it too. Raises Failure."""
    if _is_run(args.target):
        from tui.verbs.verify_run import verify_run

        return verify_run(args)
    root, only = _place(args.target)
    result = verified(root, only, args.manifest, progress=_Progress() if sys.stderr.isatty() else None)
    if args.json:
        print(json.dumps(result.as_json(), ensure_ascii=True, indent=1))
    elif args.plain:
        _print_plain(result)
    else:
        _print_human(result)
    return EXITS[result.verdict]


def _place(target: str) -> tuple[str, str | None]:
    """The folder, and the one file of it that was named."""
    if os.path.isdir(target):  # noqa: PTH112 - a Path would normalise the name
        return target, None
    if os.path.exists(target):  # noqa: PTH110
        folder, name = os.path.split(os.path.realpath(target))
        return folder, name
    if os.path.islink(target):  # noqa: PTH114 - a link to nothing, which is a finding and no mistake
        folder, name = os.path.split(os.path.abspath(target))  # noqa: PTH100
        return folder, name
    if "/" in target:
        raise Failure(
            f"There is nothing at {safe(target, 200)}.",
            do="Name a folder.",
            exit=Exit.USAGE,
            code="no-such-path",
        )
    raise Failure(f"There is nothing named {safe(target, 80)} here.", exit=Exit.USAGE, code="no-such-path")


def _is_run(target: str) -> bool:
    """A path has a ``/``; a name of the fleet file wins over a file of the same name here."""
    from tui.fleet.fleet_file import names
    from tui.fleet.paths import paths

    if "/" in target:
        return False
    try:
        known = names(paths().fleet_file)
    except Failure:
        return not os.path.lexists(target)
    if target in (*known.runs, *known.instances):
        return True
    if os.path.lexists(target):
        return False
    raise Failure(
        f"There is no folder, no file and no run {safe(target, 80)!r}.",
        do="Give a path, or the name of a run of `rgt status`.",
        exit=Exit.USAGE,
        code="nothing-to-verify",
    )


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that was found out. `metrics` are entries of the JSON, as the custody room made them."""

    root: str
    verdict: Acceptance
    examination: Examination
    metrics: list[dict[str, Any]]
    manifest: str | None

    def as_json(self) -> dict[str, Any]:
        """The answer of ``rgt verify --json``. Names that are no UTF-8 hold lone surrogates."""
        found = self.examination
        return {
            "verdict": self.verdict,
            "path": self.root,
            "manifest": self.manifest,
            "files": [file.model_dump(exclude_none=True) | {"sha256": file.sha256} for file in found.files],
            "checkpoints": [_checkpoint_json(one) for one in found.checkpoints],
            "metrics": self.metrics,
            "problems": [p.model_dump() | {"effect": effect_of(p)} for p in found.problems],
        }


def _checkpoint_json(found: CheckpointVerdict) -> dict[str, Any]:
    always = {"tensors": found.tensors, "elements": found.elements, "nonfinite": found.nonfinite}
    return found.model_dump(exclude_none=True) | always


def verified(
    root: str, only: str | None, manifest_file: str | None, *, progress: Callable[[int], None] | None = None
) -> Result:
    """Verify a folder, or one file of it.

    Args:
        manifest_file: None takes the folder's own, if it has one.

    Raises:
        Failure: the folder or the manifest cannot be read.
    """
    try:
        tree = listed(root, only)
    except OSError as fault:
        raise Failure(f"{safe(root, 200)} cannot be read: {fault.strerror}.", exit=Exit.UNKNOWN) from None
    own = tree.entries.get(MANIFEST_NAME)
    if manifest_file is None and only is None and own is not None and own.type != "special":
        manifest_file = tree.absolute(MANIFEST_NAME)
    manifest = _manifest(manifest_file, root) if manifest_file is not None else None
    digests = _of_one(manifest.digests, only) if manifest is not None else {}
    with Jail() as jail:
        found = examine_tree(tree, Options(jail=jail, digests=True, reference=digests, progress=progress))
    files, problems = found.files, list(found.problems)
    if manifest is not None:
        narrowed = Manifest(digests, manifest.problems, manifest.bag, manifest.own)
        files, more = compare(files, narrowed, tree)
        problems += [*manifest.problems, *more]
    metrics, metric_problems, outcome = _metrics(root) if only is None else ([], [_GAP_ONE_FILE], "accepted")
    problems += [*metric_problems, *_gaps(found, manifest, metrics)]
    whole = Examination(files=files, checkpoints=found.checkpoints, problems=tuple(problems))
    return Result(root, accept(whole, outcome), whole, metrics, manifest_file)


_GAP_ONE_FILE = Problem(code="metrics-not-checked", detail="only one file was named")


def _of_one(digests: dict[str, str], only: str | None) -> dict[str, str]:
    return digests if only is None else {path: sha for path, sha in digests.items() if path == only}


def _manifest(file: str, root: str) -> Manifest:
    try:
        return read_manifest(file, root)
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise Failure(
            f"The manifest {safe(file, 200)} cannot be read: {why}.",
            exit=Exit.USAGE,
            code="manifest-unreadable",
        ) from None


def _gaps(found: Examination, manifest: Manifest | None, metrics: list[dict[str, Any]]) -> list[Problem]:
    """What was not looked at, or not there."""
    gaps = []
    if manifest is None:
        gaps.append(Problem(code="no-manifest"))
    if not found.checkpoints:
        gaps.append(Problem(code="no-checkpoint"))
        if manifest is None and not metrics:
            gaps.append(Problem(code="nothing-judged"))
    return gaps


def _metrics(root: str) -> tuple[list[dict[str, Any]], list[Problem], Acceptance]:
    """Reported metrics beside their recomputation, by the custody room."""
    try:
        room = importlib.import_module("tui.custody.metrics")
    except ModuleNotFoundError as missing:
        return (
            [],
            [Problem(code="metrics-not-checked", detail=f"{safe(missing.name or '', 60)} is missing")],
            "accepted",
        )
    try:
        report = room.verify_metrics(Path(root))
    except Failure as failure:
        return [], [Problem(code="metrics-unreadable", detail=failure.line)], "incomplete"
    problems = [
        Problem(code=p.code, path=p.path or "", detail=p.detail, effect="gap" if p.gap else "incomplete")
        for p in report.problems
    ]
    if not report.metrics and not problems:
        why = "no figure in a metrics.json or in a summary beside predictions, and no custody.toml names one"
        problems.append(Problem(code="metrics-not-checked", detail=why))
    return report.as_json(), problems, report.outcome


# what the operator reads


def _print_human(result: Result, out: Out = print) -> None:
    found = result.examination
    for one in found.checkpoints:
        out(f"{one.verdict:<{_WIDTH}}  {safe(one.path, 200)}  {_reason(one)}")
    for metric in result.metrics:
        reported, recomputed = safe(str(metric.get("reported"))), safe(str(metric.get("recomputed")))
        word, name = safe(str(metric.get("verdict")), 40), safe(str(metric.get("name")), 80)
        detail = safe(str(metric.get("detail") or ""), 200)
        out(f"{word:<{_WIDTH}}  {name}  reported {reported}, recomputed {recomputed}  {detail}".rstrip())
    serious = [p for p in found.problems if effect_of(p) != "gap"]
    for problem in serious[:_SHOWN]:
        meaning = CODES[problem.code].meaning if problem.code in CODES else ""
        why = ": ".join(part for part in (meaning, safe(problem.detail, 200)) if part)
        out("  ".join(part for part in (f"{problem.code:<{_WIDTH}}", safe(problem.path, 200), why) if part))
    if len(serious) > _SHOWN:
        out(f"… and {len(serious) - _SHOWN} more; --json lists them all")
    out(_summary(result))
    for step, codes in what_to_do([*(p.code for p in serious), *(c.code for c in found.checkpoints)]):
        out(f"  {', '.join(codes)}: {step}")
    for code in sorted({p.code for p in serious} - CODES.keys() & ROOM.keys()):
        out(f"  {code}: {ROOM[code].clears}")
    gaps = sorted({p.code for p in found.problems if effect_of(p) == "gap"})
    if gaps:
        out(f"  not checked or not there: {', '.join(gaps)}")


_NOTES = {
    "hardlink_pair": "the same bytes as another name here",
    "mode_000": "nobody but root may read it",
    "mtime_future": "dated in the future",
    "mtime_1970": "dated before its time",
}


def _reason(found: CheckpointVerdict) -> str:
    """Why, in a few words; for a good one, what was seen."""
    parts: list[str] = [safe(found.reason, 300)] if found.reason else []
    if found.verdict == "ok":
        if found.tensors is not None:
            parts.append(f"{found.tensors:,} tensors, {found.elements or 0:,} numbers")
        if found.values is not None:
            parts.append("all finite")
        if found.loaded:
            parts.append("torch loads it")
        if found.resume_from:
            parts.append(f"go on from {safe(found.resume_from, 100)}")
        parts += [_NOTES.get(note, safe(note, 100)) for note in found.notes]
    return ", ".join(parts)


def _summary(result: Result) -> str:
    found = result.examination
    checkpoints = [one for one in found.checkpoints if one.kind != "series"]
    good = sum(one.verdict == "ok" for one in checkpoints)
    size = amount(sum(file.size or 0 for file in found.files))
    listed_ones = sum(file.listed == "same" for file in found.files)
    against = f", {listed_ones} with the SHA-256 of the manifest" if result.manifest else ""
    files = "1 file" if len(found.files) == 1 else f"{len(found.files):,} files"
    ones = "1 checkpoint is" if len(checkpoints) == 1 else f"{len(checkpoints):,} checkpoints are"
    counts = f"{files} ({size}){against}; {good:,} of {ones} good"
    return f"{result.verdict.upper()}: {counts}."


def _print_plain(result: Result, out: Out = print) -> None:
    for one in result.examination.checkpoints:
        out("\t".join(("checkpoint", one.verdict, one.code, safe(one.path), safe(one.reason))))
    for metric in result.metrics:
        out(
            "\t".join(
                (
                    "metric",
                    *(safe(str(metric.get(key))) for key in ("verdict", "name", "reported", "recomputed")),
                )
            )
        )
    for problem in result.examination.problems:
        out(
            "\t".join(("problem", problem.code, effect_of(problem), safe(problem.path), safe(problem.detail)))
        )
    out(f"verdict\t{result.verdict}")


class _Progress:
    """How much was read, on one line of the terminal that is erased at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = 0
        self._shown = time.monotonic()

    def __call__(self, size: int) -> None:
        with self._lock:
            self._done += size
            now = time.monotonic()
            if now - self._shown >= 0.5:
                self._shown = now
                print(f"\r{amount(self._done)} read\x1b[K\r", end="", file=sys.stderr, flush=True)

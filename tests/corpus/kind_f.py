"""Kind F: a tree of files with ``expected.json`` beside them. Only names are changed; nothing is decided.

`expected.json` maps a path (surrogate escapes for bytes that are no UTF-8) to what must be said of it.
``why`` is a remark, ``sha256_good`` the digest that a reference list would hold.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.corpus.runner import VERDICT_FIELDS, Case, Miss, Summary, misses
from tui.checkpoints.examine import Options, examine
from tui.checkpoints.jailer import Jail
from tui.checkpoints.sums import sum_line
from tui.model.verdict import CheckpointVerdict, Examination, FileVerdict

EXPECTED = "expected.json"
_GIVEN = frozenset({"why", "needs", "sha256_good"})


def run(folder: Path, fields: str = "all") -> Summary:
    """Examine the tree once and compare every case."""
    expected: dict[str, dict[str, Any]] = json.loads((folder / EXPECTED).read_text("utf-8"))
    reference = {path: case["sha256_good"] for path, case in expected.items() if "sha256_good" in case}
    with Jail() as jail:
        found = examine(str(folder), Options(jail=jail, digests=True, reference=reference))
    summary = Summary()
    for path, expect in expected.items():
        wanted = {
            k: v
            for k, v in expect.items()
            if k not in _GIVEN and (fields == "all" or k not in VERDICT_FIELDS)
        }
        missed = _fewest(path, wanted, found)
        counts = summary.by_kind.setdefault("F", {"total": 0, "passed": 0})
        counts["total"] += 1
        counts["passed"] += not missed
        summary.total += 1
        summary.passed += not missed
        summary.misses += missed
    return summary


def _fewest(path: str, wanted: Mapping[str, Any], found: Examination) -> list[Miss]:
    """A folder may be several things at once; the case asks for one of them."""
    case = Case(ascii(path), "F", None, None, b"", b"", expect=dict(wanted))
    each = [misses(case, wanted, answer) for answer in _answers(path, found)]
    return min(each, key=len, default=[Miss(ascii(path), "(entry)", dict(wanted), None)])


def _answers(path: str, found: Examination) -> Iterator[dict[str, Any]]:
    names: dict[str, Any] = {}
    file = next((file for file in found.files if file.path == path), None)
    if file is not None and file.sha256:
        line = sum_line(file.sha256, "./" + path.partition("/")[2])
        raw = os.fsencode(path.rpartition("/")[2])
        names = {
            "sha256sum_line_b64": base64.b64encode(line).decode(),
            "name_b64": base64.b64encode(raw).decode(),
        }
    for one in found.checkpoints:
        if one.path == path:
            yield _plain(one) | names
    if file is not None and file.verdict == "ignore":
        yield _plain(file) | {"incident": None} | names


def _plain(found: CheckpointVerdict | FileVerdict) -> dict[str, Any]:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in found.model_dump().items()}

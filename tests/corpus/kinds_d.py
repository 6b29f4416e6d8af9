"""Kind D: training logs."""

from __future__ import annotations

from typing import Any

from tests.corpus import evidence
from tests.corpus.runner import Case
from tui.model.text import log_lines, plain
from tui.triage.columns import Lines
from tui.triage.engine import diagnose
from tui.triage.progress_line import Found
from tui.triage.scan import scan

_ENCODINGS = {"gb18030": "gbk"}


def map_case(case: Case) -> dict[str, object]:
    """The product's answer to one log."""
    digest = scan([case.stdout], evidence.rules().finder)
    found = diagnose(evidence.rules(), digest, [], None, evidence.known(case))
    answer: dict[str, object] = {
        "encoding": _ENCODINGS.get(digest.encoding, digest.encoding),
        "partial_last_line": digest.cut_at_end,
        "progress": _progress(case.stdout, cut=digest.cut_at_end),
        "warn": "; ".join(found.notes) or None,
    }
    return {**answer, **evidence.fields(found)}


def _progress(raw: bytes, *, cut: bool) -> dict[str, Any]:
    """The newest epoch, step, total and loss; a last line that was cut tells only what an ended one could."""
    lines = [plain(line) for line in log_lines(raw)]
    folded: dict[str, Any] = {}
    reader = Lines()
    for place, line in enumerate(lines, 1):
        found = reader.read(line)
        if place == len(lines) and cut and _cut_short(found, folded):
            continue
        for name, value in (
            ("epoch", found.epoch), ("step", found.step), ("iter", found.step), ("total", found.steps),
            ("loss", found.loss),
        ):  # fmt: skip
            if value is not None:
                folded[name] = value
    return folded


def _cut_short(found: Found, folded: dict[str, Any]) -> bool:
    return found.step is not None and found.loss is None and found.step < folded.get("step", 0)

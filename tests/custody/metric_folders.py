"""Folders with predictions and the metrics reported of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tui.model.metrics import Declaration, Measured, MeasuredMetric

Rows = Sequence[Mapping[str, Any]]


def write_csv(path: Path, rows: Rows, columns: Sequence[str] | None = None) -> Path:
    """Rows as a CSV file; a missing value is an empty cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, columns or list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


def write_jsonl(path: Path, rows: Rows) -> Path:
    """Rows as one JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_metrics(folder: Path, **figures: Any) -> Path:
    """A metrics file; a str is written as the number it spells, digits and all."""
    folder.mkdir(parents=True, exist_ok=True)
    body = ", ".join(f'"{k}": {v if isinstance(v, str) else json.dumps(v)}' for k, v in figures.items())
    path = folder / "metrics.json"
    path.write_text("{" + body + "}")
    return path


def examined(root: Path, declaration: Declaration | dict[str, Any] | None = None) -> Measured:
    """The reference's report."""
    from tui.custody.scoring.findings import examine  # needs NumPy

    said = declaration
    if not isinstance(said, Declaration):
        said = Declaration.model_validate(said or {})
    return examine(root, said).report


def only(report: Measured) -> MeasuredMetric:
    """The one finding of a report."""
    (finding,) = report.metrics
    return finding


def answers(count: int = 20, wrong: Sequence[int] = (3, 7)) -> list[dict[str, Any]]:
    """Predictions of `count` samples in three classes, of which those at `wrong` are not the target."""
    rows = []
    for number in range(count):
        target = number % 3
        rows.append(
            {"id": f"img_{number:03d}", "target": target, "prediction": (target + (number in wrong)) % 3}
        )
    return rows

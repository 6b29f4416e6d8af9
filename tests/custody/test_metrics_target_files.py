"""Targets in a file of their own: joined by id, and each id must be in both."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.custody.metric_folders import answers, examined, only, write_csv, write_jsonl, write_metrics
from tui.custody.metrics import verify_metrics
from tui.model.failure import Failure
from tui.model.metrics import Declaration

np = pytest.importorskip("numpy")

Rows = list[dict[str, Any]]


def _apart(rows: Rows) -> tuple[Rows, Rows]:
    return (
        [{"id": row["id"], "prediction": row["prediction"]} for row in rows],
        [{"id": row["id"], "target": row["target"]} for row in rows],
    )


def _declared(**more: Any) -> dict[str, Any]:
    return {"predictions": [{"files": ["predictions.csv"], "targets": "labels.csv", **more}]}


def _run(folder: Path, predictions: Rows, targets: Rows, **more: Any) -> Any:
    write_csv(folder / "predictions.csv", predictions)
    write_csv(folder / "labels.csv", targets)
    write_metrics(folder, accuracy="0.900")
    return examined(folder, _declared(**more))


def test_rows_are_joined_by_id_whatever_their_order(tmp_path: Path) -> None:
    predictions, targets = _apart(answers())
    random.Random(3).shuffle(targets)
    report = _run(tmp_path, predictions, targets, count=20)
    assert only(report).verdict == "recomputed"
    assert report.outcome == "accepted"
    assert any("joined by id from labels.csv" in note for note in report.notes)


def test_agreeing_ids_alone_do_not_say_that_the_set_is_the_full_one(tmp_path: Path) -> None:
    report = _run(tmp_path, *_apart(answers()))
    assert only(report).verdict == "recomputed"
    assert [problem.code for problem in report.problems] == ["population-not-declared"]
    assert not _run(tmp_path, *_apart(answers()), ids="labels.csv").problems


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("no target", "2 predictions have no target ('img_000', 'img_001')"),
        ("no prediction", "2 targets have no prediction ('img_018', 'img_019')"),
        ("both", "1 predictions have no target ('img_000'); 1 targets have no prediction ('img_019')"),
        ("target twice", "the targets give 1 ids more than once ('img_003')"),
        ("prediction twice", "1 rows repeat an id ('img_003')"),
        ("target without id", "1 targets have no id"),
    ],
)
def test_ids_must_agree_both_ways(tmp_path: Path, change: str, says: str) -> None:
    predictions, targets = _apart(answers())
    match change:
        case "no target":
            targets = targets[2:]
        case "no prediction":
            predictions = predictions[:-2]
        case "both":
            predictions, targets = predictions[:-1], targets[1:]
        case "target twice":
            targets.append(targets[3])
        case "prediction twice":
            predictions.append(predictions[3])
        case "target without id":
            targets.append({"id": "", "target": 1})
    report = _run(tmp_path, predictions, targets)
    assert only(report).verdict == "population-incomplete"
    assert says in only(report).detail
    assert report.outcome == "refused"


def test_an_altered_target_changes_the_figure(tmp_path: Path) -> None:
    predictions, targets = _apart(answers())
    targets[0]["target"] = 2
    assert only(_run(tmp_path, predictions, targets, count=20)).verdict == "differs"


def test_a_target_beside_the_predictions_gives_way_to_the_declared_file(tmp_path: Path) -> None:
    rows, (_, targets) = answers(), _apart(answers())
    flattering = [{**row, "target": row["prediction"]} for row in rows]
    report = _run(tmp_path, flattering, targets, count=20)
    assert only(report).recomputed == "0.9"
    assert any("'target' of the predictions was not taken" in note for note in report.notes)


def test_targets_of_several_shards_and_formats_with_columns_by_other_names(tmp_path: Path) -> None:
    predictions, targets = _apart(answers())
    renamed = [{"image": row["id"], "klass": row["target"]} for row in targets]
    write_csv(tmp_path / "predictions.csv", predictions)
    write_jsonl(tmp_path / "truth" / "a.jsonl", renamed[:12])
    write_jsonl(tmp_path / "truth" / "b.jsonl", renamed[12:])
    write_metrics(tmp_path, accuracy="0.900")
    said = _declared(targets=["truth/*.jsonl"], targets_id="image", target="klass", count=20)
    assert only(examined(tmp_path, said)).verdict == "recomputed"


def test_a_lone_column_beside_the_id_is_the_target(tmp_path: Path) -> None:
    predictions, targets = _apart(answers())
    plain = [{"id": row["id"], "klass": row["target"]} for row in targets]
    assert only(_run(tmp_path, predictions, plain, count=20)).verdict == "recomputed"
    more = [{**row, "weight": 1} for row in plain]
    assert only(_run(tmp_path, predictions, more, count=20)).verdict == "no-ground-truth"


def test_arrays_are_joined_row_by_row(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((12, 4, 4))
    order = np.random.default_rng(1).permutation(12)
    np.savez(tmp_path / "predictions.npz", id=np.arange(12), prediction=values + 0.25)
    np.savez(tmp_path / "truth.npz", id=np.arange(12)[order], target=values[order])
    write_metrics(tmp_path, mae="0.250")
    said = {"predictions": [{"files": ["predictions.npz"], "targets": "truth.npz", "count": 12}]}
    assert only(examined(tmp_path, said)).verdict == "recomputed"


@pytest.mark.parametrize(
    ("targets", "verdict", "says"),
    [
        ("elsewhere.csv", "population-incomplete", "declared targets are not there: elsewhere.csv"),
        ("../labels.csv", "population-incomplete", "declared targets are not there"),
        ("no-id.csv", "not-declared", "no-id.csv has no column that is plainly the id"),
        ("torn.csv", "unreadable", "row 1 of torn.csv has 1 cells"),
    ],
)
def test_targets_that_are_not_there_or_no_use(tmp_path: Path, targets: str, verdict: str, says: str) -> None:
    predictions, rows = _apart(answers())
    root = tmp_path / "run"
    write_csv(root / "predictions.csv", predictions)
    write_csv(tmp_path / "labels.csv", rows)
    write_csv(root / "no-id.csv", [{"klass": 1, "weight": 2}])
    (root / "torn.csv").write_text("id,target\nx\n")
    write_metrics(root, accuracy="0.900")
    finding = only(examined(root, _declared(targets=targets)))
    assert (finding.verdict, says in finding.detail) == (verdict, True), finding.detail


def test_the_operators_own_list_may_lie_outside_and_a_folder_may_not_name_one(tmp_path: Path) -> None:
    predictions, targets = _apart(answers())
    root = tmp_path / "run"
    write_csv(root / "predictions.csv", predictions)
    own = write_csv(tmp_path / "labels.csv", targets)
    write_metrics(root, accuracy="0.900")
    said = _declared(targets=str(own), ids=str(own))
    report = verify_metrics(root, Declaration.model_validate(said))  # the second implementation joins, too
    assert only(report).verdict == "recomputed"
    assert float(only(report).second or "0.9") == pytest.approx(0.9)
    (root / "custody.toml").write_text(
        f'[custody]\n[[custody.predictions]]\nfiles = ["predictions.csv"]\ntargets = "{own}"\n'
    )
    with pytest.raises(Failure, match="outside the folder"):
        verify_metrics(root)


@pytest.mark.parametrize("more", [{"targets_id": "id", "targets": None}, {"ground_truth": False}])
def test_declarations_that_contradict_themselves_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Declaration.model_validate(_declared(**more))

"""Each sample once: what padding samplers, dropped batches, shards and careless joins do to a population."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.custody.metric_folders import answers, examined, only, write_csv, write_jsonl, write_metrics

np = pytest.importorskip("numpy")

IDS = [row["id"] for row in answers()]


def _declared(**more: Any) -> dict[str, Any]:
    return {"predictions": [{"files": ["predictions.csv"], "ids": IDS, **more}]}


def _run(
    folder: Path, rows: list[dict[str, Any]], declaration: dict[str, Any] | None = None, **figures: Any
) -> Any:
    write_csv(folder / "predictions.csv", rows, ["id", "target", "prediction"])
    write_metrics(folder, **{"accuracy": "0.900", **figures})
    return examined(folder, declaration)


def test_pred_dup_a_padding_sampler_repeats_samples(tmp_path: Path) -> None:
    """DistributedSampler fills the last batch up with the first samples: 22 rows, 20 samples."""
    rows = answers()
    for declaration in (_declared(), None):
        report = _run(tmp_path, rows + rows[:2], declaration)
        assert only(report).verdict == "population-incomplete" and only(report).recomputed is None
        assert "2 rows repeat an id ('img_000', 'img_001')" in only(report).detail
        assert report.outcome == "refused"


def test_pred_missing_drop_last_drops_samples(tmp_path: Path) -> None:
    report = _run(tmp_path, answers()[:16], _declared())
    assert only(report).verdict == "population-incomplete" and report.outcome == "refused"
    assert "4 declared ids are missing ('img_016', 'img_017', 'img_018' …)" in only(report).detail


def test_pred_extra_samples_that_nobody_declared(tmp_path: Path) -> None:
    stranger = {"id": "train_1", "target": 0, "prediction": 0}
    report = _run(tmp_path, [*answers(), stranger], _declared())
    assert "1 ids were never declared ('train_1')" in only(report).detail
    assert only(report).verdict == "population-incomplete"


def test_pred_reorder_order_means_nothing(tmp_path: Path) -> None:
    rows = answers()
    random.Random(4).shuffle(rows)
    report = _run(tmp_path, rows, _declared(), samples=20)
    assert only(report).verdict == "recomputed" and report.outcome == "accepted" and not report.problems


def test_one_dropped_and_one_doubled_sample_leave_the_count_right_and_are_caught(tmp_path: Path) -> None:
    rows = answers()
    rows[5] = rows[6]
    report = _run(tmp_path, rows, None, samples=20)
    assert only(report).verdict == "population-incomplete"


def test_a_count_is_held_to_where_ids_are_not_declared(tmp_path: Path) -> None:
    assert only(_run(tmp_path, answers(), None, samples=20)).verdict == "recomputed"
    assert "20 rows, 4 fewer than the 24 declared" in only(_run(tmp_path, answers(), None, samples=24)).detail
    count = {"predictions": [{"files": ["predictions.csv"], "count": 19}]}
    assert only(_run(tmp_path, answers(), count)).verdict == "population-incomplete"


def test_without_any_declaration_the_gap_is_said_and_does_not_stop_anybody(tmp_path: Path) -> None:
    report = _run(tmp_path, answers())
    assert only(report).verdict == "recomputed" and report.outcome == "accepted"
    assert [problem.code for problem in report.problems] == ["population-not-declared"]


def test_without_an_id_column_only_the_count_can_be_held_to(tmp_path: Path) -> None:
    rows = [{"target": row["target"], "prediction": row["prediction"]} for row in answers()]
    write_csv(tmp_path / "predictions.csv", rows)
    write_metrics(tmp_path, accuracy="0.900", samples=20)
    report = examined(tmp_path)
    assert only(report).verdict == "recomputed"
    assert "no id column" in report.problems[0].detail
    assert only(examined(tmp_path, _declared())).verdict == "population-incomplete"


@pytest.mark.parametrize("name", ["ids.txt", "ids.json", "ids.csv"])
def test_declared_ids_come_from_files_of_three_kinds(tmp_path: Path, name: str) -> None:
    import json

    path = tmp_path / name
    if name.endswith(".txt"):
        path.write_text("\r\n".join(IDS) + "\n")
    elif name.endswith(".json"):
        path.write_text(json.dumps(IDS))
    else:
        write_csv(path, [{"sample_id": i, "width": 3} for i in IDS])
    declaration = _declared(ids=str(path))
    assert only(_run(tmp_path / "run", answers(), declaration)).verdict == "recomputed"
    assert only(_run(tmp_path / "run", answers()[1:], declaration)).verdict == "population-incomplete"
    path.unlink()
    assert only(_run(tmp_path / "run", answers(), declaration)).verdict == "unreadable"


def test_whole_numbers_are_one_id_whatever_wrote_them(tmp_path: Path) -> None:
    declaration = {"predictions": [{"files": ["predictions.jsonl"], "ids": [str(n) for n in range(5)]}]}
    write_jsonl(
        tmp_path / "predictions.jsonl", [{"id": float(n), "target": 0, "prediction": 0} for n in range(5)]
    )
    write_metrics(tmp_path, accuracy="1.0")
    assert only(examined(tmp_path, declaration)).verdict == "recomputed"


def test_shards_of_ranks_are_joined_exactly_once(tmp_path: Path) -> None:
    rows = answers()
    write_metrics(tmp_path, accuracy="0.900", samples=20)
    for rank in range(4):
        write_csv(tmp_path / f"predictions_rank{rank}.csv", rows[rank::4])
    report = examined(tmp_path)
    assert only(report).verdict == "recomputed" and only(report).population == 20
    write_csv(tmp_path / "predictions_rank2.csv", rows[2::4] + rows[:1])  # padding of the last rank
    assert "1 rows repeat an id" in only(examined(tmp_path)).detail
    (tmp_path / "predictions_rank2.csv").unlink()
    assert "part 2 of 4 is missing" in only(examined(tmp_path)).detail


def test_a_total_in_the_names_shows_a_missing_last_shard(tmp_path: Path) -> None:
    write_metrics(tmp_path, accuracy="0.900")
    for place in range(2):
        write_csv(tmp_path / f"preds-{place:05d}-of-00003.csv", answers()[place::3])
    assert "part 2 of 3 is missing" in only(examined(tmp_path)).detail


def test_shards_beside_the_merged_file_are_not_chosen_between(tmp_path: Path) -> None:
    write_metrics(tmp_path, accuracy="0.900")
    write_csv(tmp_path / "predictions.csv", answers())
    write_csv(tmp_path / "predictions_rank0.csv", answers()[::2])
    write_csv(tmp_path / "predictions_rank1.csv", answers()[1::2])
    finding = only(examined(tmp_path))
    assert finding.verdict == "not-declared"
    assert "predictions.csv or predictions_rank0.csv and 1 more parts" in finding.detail
    declared = {"predictions": [{"files": ["predictions_rank*.csv"]}]}
    assert only(examined(tmp_path, declared)).verdict == "recomputed"


def test_shards_with_other_columns_do_not_fit_together(tmp_path: Path) -> None:
    write_metrics(tmp_path, accuracy="0.900")
    write_csv(tmp_path / "predictions_rank0.csv", answers()[::2])
    write_csv(tmp_path / "predictions_rank1.csv", [{"id": 1, "label": 1, "pred": 1}])
    assert only(examined(tmp_path)).verdict == "unreadable"


def test_an_empty_population_gives_no_figure(tmp_path: Path) -> None:
    finding = only(_run(tmp_path, [], None))
    assert finding.verdict == "population-incomplete" and finding.recomputed is None
    (tmp_path / "predictions.csv").write_bytes(b"")
    assert only(examined(tmp_path)).verdict == "unreadable"


def test_rows_without_a_prediction_or_target_are_counted_not_skipped(tmp_path: Path) -> None:
    rows = answers()
    rows[2] = {**rows[2], "prediction": ""}
    assert "1 of 20 rows have no prediction" in only(_run(tmp_path, rows)).detail
    rows = answers()
    rows[2] = {**rows[2], "target": ""}
    finding = only(_run(tmp_path, rows))
    assert finding.verdict == "population-incomplete" and "1 of 20 rows have no target" in finding.detail


def test_a_row_without_an_id_is_no_sample(tmp_path: Path) -> None:
    rows = answers()
    rows[2] = {**rows[2], "id": ""}
    assert "1 rows have no id" in only(_run(tmp_path, rows, _declared())).detail


_SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_SETTINGS
@given(st.permutations(range(20)))
def test_permuting_rows_never_changes_a_figure(tmp_path: Path, order: list[int]) -> None:
    generator = np.random.default_rng(3)
    scores = generator.dirichlet([1, 1, 1], 20).round(2)  # rounded: there are ties
    rows: list[dict[str, Any]] = [
        {"id": i, "target": i % 3, **{f"p{c}": repr(float(s)) for c, s in enumerate(scores[i])}}
        for i in range(20)
    ]
    names = ("accuracy", "top2_acc", "auroc_macro", "macro_f1", "average_precision_macro")
    figures = []
    for shuffled in (rows, [rows[i] for i in order]):
        write_csv(tmp_path / "predictions.csv", shuffled)
        write_metrics(tmp_path, **dict.fromkeys(names, "0.5"))
        figures.append([(m.name, m.recomputed, m.verdict) for m in examined(tmp_path).metrics])
    assert figures[0] == figures[1] and all(figure is not None for _, figure, _ in figures[0])


@_SETTINGS
@given(st.integers(0, 19), st.integers(0, 19), st.booleans())
def test_one_row_dropped_or_doubled_is_always_caught(tmp_path: Path, at: int, to: int, drop: bool) -> None:
    rows = answers()
    row = rows.pop(at)
    if not drop:
        rows[to:to] = [row, row]
    assert only(_run(tmp_path, rows, _declared())).verdict == "population-incomplete"


@_SETTINGS
@given(st.integers(0, 19))
def test_one_prediction_changed_changes_the_figure(tmp_path: Path, at: int) -> None:
    rows = answers()
    rows[at]["prediction"] = rows[at]["target"] if at in (3, 7) else (rows[at]["target"] + 1) % 3
    finding = only(_run(tmp_path, rows, _declared()))
    assert finding.verdict == "differs" and finding.recomputed in ("0.85", "0.95")

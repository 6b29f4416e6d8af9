"""Verdicts on reported figures: what is recomputed, what differs, and what is honestly not known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.custody.metric_folders import answers, examined, only, write_csv, write_jsonl, write_metrics

np = pytest.importorskip("numpy")


def _run(folder: Path, rows: list[dict[str, Any]], declaration: Any = None, **figures: Any) -> Any:
    write_jsonl(folder / "predictions.jsonl", rows)
    write_metrics(folder, **figures)
    return examined(folder, declaration)


def _binary() -> list[dict[str, Any]]:
    """Targets 1 1 1 0 0 0, of which the third and fourth are predicted wrongly."""
    pairs = [(1, 1, 0.9), (1, 1, 0.8), (1, 0, 0.4), (0, 1, 0.6), (0, 0, 0.2), (0, 0, 0.1)]
    return [{"id": i, "target": t, "prediction": p, "prob": s} for i, (t, p, s) in enumerate(pairs)]


def test_a_wrong_figure_differs_and_the_direction_says_whether_it_flatters(tmp_path: Path) -> None:
    report = _run(tmp_path, answers(), accuracy="0.950")
    finding = only(report)
    assert (finding.verdict, finding.recomputed, finding.direction) == ("differs", "0.9", "up")
    assert "better than the predictions show" in finding.detail and report.outcome == "refused"
    assert "worse than" in only(_run(tmp_path, answers(), accuracy="0.850")).detail
    rows = [{"id": i, "target": 1.0, "prediction": 3.0} for i in range(4)]
    finding = only(_run(tmp_path, rows, mae="1.50"))
    assert finding.direction == "down" and "better than the predictions show" in finding.detail


def test_raw_predictions_altered_while_the_score_column_is_left_intact_are_refused(tmp_path: Path) -> None:
    rows = [{**row, "correct": int(row["target"] == row["prediction"])} for row in answers()]
    assert only(_run(tmp_path, rows, accuracy="0.900")).verdict == "recomputed"
    rows[0]["prediction"] = 2
    assert only(_run(tmp_path, rows, accuracy="0.900")).verdict == "differs"
    rows[3]["prediction"] = rows[3]["target"]  # now the mean is right again
    finding = only(_run(tmp_path, rows, accuracy="0.900"))
    assert finding.verdict == "differs"
    assert "'correct' contradict the raw predictions in 2 rows (first: row 1)" in finding.detail


@pytest.mark.parametrize("metric", ["mae", "mse"])
def test_altered_numbers_beside_intact_stored_errors_are_refused(tmp_path: Path, metric: str) -> None:
    rows = [
        {
            "id": i,
            "target": float(i),
            "prediction": i + (0.5 if i % 2 else -0.5),
            "abs_error": 0.5,
            "sq_error": 0.25,
        }
        for i in range(10)
    ]
    reported = {"mae": "0.50", "mse": "0.25"}[metric]
    assert only(_run(tmp_path, rows, **{metric: reported})).verdict == "recomputed"
    rows[4]["prediction"] += 0.01
    assert only(_run(tmp_path, rows, **{metric: reported})).verdict == "differs"


def test_a_mean_of_stored_scores_is_only_re_aggregated(tmp_path: Path) -> None:
    rows = [{"id": i, "correct": i % 4 != 0, "lpips": 0.1 * i} for i in range(8)]
    report = _run(tmp_path, rows, accuracy="0.750", lpips="0.350")
    assert [m.verdict for m in report.metrics] == ["re-aggregated", "re-aggregated"]
    assert report.outcome == "incomplete" and report.metrics[1].direction == "down"
    report = _run(tmp_path, rows, accuracy="0.800", lpips="0.360")
    assert [m.verdict for m in report.metrics] == ["differs", "differs"]


def test_without_ground_truth_no_figure_is_given(tmp_path: Path) -> None:
    rows = [{"id": i, "prediction": 1} for i in range(4)]
    finding = only(_run(tmp_path, rows, accuracy="0.750"))
    assert (finding.verdict, finding.recomputed) == ("no-ground-truth", None)
    unlabelled: list[dict[str, Any]] = [{**row, "target": None} for row in rows]
    assert only(_run(tmp_path, unlabelled, accuracy="0.750")).verdict == "no-ground-truth"


def test_a_hardware_capture_that_claims_nothing_is_in_order_and_stays_apart(tmp_path: Path) -> None:
    declaration = {
        "predictions": [
            {"name": "capture", "files": ["predictions.jsonl"], "ground_truth": False, "kind": "hardware"}
        ]
    }
    report = _run(tmp_path, answers(), declaration, accuracy=None)
    finding = only(report)
    assert (finding.verdict, finding.recomputed, finding.kind) == ("no-ground-truth", None, "hardware")
    assert report.outcome == "accepted"
    assert _run(tmp_path, answers(), declaration, accuracy="0.9").outcome == "incomplete"


def test_a_name_alone_leaves_the_average_open_and_the_finding_says_which_was_met(tmp_path: Path) -> None:
    def finding(reported: str, **declared: Any) -> Any:
        declaration = {"metrics": [{"name": "f1", **declared}]} if declared else None
        return only(_run(tmp_path, answers(20, (0, 1, 3)), declaration, f1=reported))

    assert finding("0.8500").definition == "f1 (micro)"
    macro = finding("0.8500", average="macro")
    assert macro.verdict == "differs" and macro.definition == "f1 (macro)"
    assert finding(macro.recomputed).definition == "f1 (macro)"
    nothing = finding("0.1234")
    assert nothing.verdict == "differs" and "f1 (weighted) gives" in nothing.detail


def test_binary_metrics(tmp_path: Path) -> None:
    report = _run(
        tmp_path, _binary(), accuracy="0.667", precision="0.667", recall="0.667", f1="0.667", auroc="0.889",
        average_precision="0.917", nll="0.4149", iou="0.500",
    )  # fmt: skip
    assert {m.name: m.verdict for m in report.metrics} == dict.fromkeys(
        ("accuracy", "precision", "recall", "f1", "auroc", "average_precision", "nll", "iou"), "recomputed"
    )
    assert {m.definition for m in report.metrics} >= {"f1 (binary)", "AUROC (binary)"}


def test_a_declared_threshold_and_positive_class(tmp_path: Path) -> None:
    rows = [
        {"id": i, "target": t, "prob": s}
        for i, (t, s) in enumerate([("cat", 0.7), ("dog", 0.6), ("cat", 0.2)])
    ]
    population = {"files": ["predictions.jsonl"], "scores": "prob", "positive": "cat"}
    metrics = [{"name": "recall", "average": "binary", "threshold": 0.65}]
    declaration = {"predictions": [population], "metrics": metrics}
    assert only(_run(tmp_path, rows, declaration, recall="0.50")).verdict == "recomputed"


def test_percent_is_recognised_and_said(tmp_path: Path) -> None:
    for figures in ({"accuracy": "90.0"}, {"accuracy_%": "90.00"}, {"accuracy": '"90.0 %"'}):
        finding = only(_run(tmp_path, answers(), **figures))
        assert (finding.verdict, finding.recomputed) == (
            "recomputed",
            "90",
        ) and "percentage" in finding.detail
    assert only(_run(tmp_path, answers(), accuracy="91.0")).verdict == "differs"


def test_a_perfect_figure_is_not_a_rounded_one(tmp_path: Path) -> None:
    rows = answers(100, (5,))
    assert only(_run(tmp_path, rows, accuracy="1.0")).verdict == "differs"
    assert only(_run(tmp_path, rows, accuracy="1")).verdict == "differs"
    assert only(_run(tmp_path, answers(100, ()), accuracy="1.0")).verdict == "recomputed"


def test_figures_that_no_prediction_can_give_are_left_out_and_listed(tmp_path: Path) -> None:
    report = _run(
        tmp_path, answers(), accuracy="0.9", epoch=3, seed=1, eval_runtime="3.2", history=[0.1, 0.2]
    )
    assert [m.name for m in report.metrics] == ["accuracy"]
    assert any("epoch, seed, eval_runtime" in note for note in report.notes)
    assert [p.code for p in report.problems if p.code != "population-not-declared"] == ["list-not-compared"]


def test_an_unknown_metric_is_said_to_be_unknown(tmp_path: Path) -> None:
    report = _run(tmp_path, answers(), fid="12.3", loss="0.4")
    assert [m.verdict for m in report.metrics] == ["unknown-metric"] * 2 and report.outcome == "incomplete"
    assert report.metrics[0].direction == "down"


def test_two_columns_that_could_be_the_target_are_not_chosen_between(tmp_path: Path) -> None:
    rows = [{**row, "label": 0} for row in answers()]
    finding = only(_run(tmp_path, rows, accuracy="0.900"))
    assert finding.verdict == "not-declared" and "'target' or 'label'" in finding.detail
    declared = {"predictions": [{"files": ["predictions.jsonl"], "target": "target"}]}
    assert only(_run(tmp_path, rows, declared, accuracy="0.900")).verdict == "recomputed"
    declared["predictions"][0]["target"] = "no_such"
    assert "'no_such' is not in" in only(_run(tmp_path, rows, declared, accuracy="0.900")).detail


def test_probabilities_in_the_prediction_column_do_not_count_as_wrong_classes(tmp_path: Path) -> None:
    rows = [{"id": i, "target": i % 2, "prediction": 0.25 + 0.5 * (i % 2)} for i in range(6)]
    finding = only(_run(tmp_path, rows, accuracy="1.0"))
    assert finding.verdict == "not-declared" and "name it as scores" in finding.detail


def test_labels_of_which_none_is_on_both_sides_are_not_called_wrong_answers(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": i, "target": "yes" if i % 2 else "no", "prediction": i % 2} for i in range(6)
    ]
    finding = only(_run(tmp_path, rows, accuracy="1.0"))
    assert finding.verdict == "not-declared" and "no label in common" in finding.detail
    rows[0]["prediction"] = "no"
    assert only(_run(tmp_path, rows, accuracy="1.0")).verdict == "differs"


def test_the_best_of_many_evaluations_and_training_figures_are_not_compared(tmp_path: Path) -> None:
    report = _run(tmp_path, answers(), best_accuracy="0.95", train_accuracy="0.99", accuracy="0.900")
    assert [m.verdict for m in report.metrics] == ["not-declared", "not-declared", "recomputed"]


def test_a_figure_without_predictions_is_not_declared(tmp_path: Path) -> None:
    write_metrics(tmp_path, accuracy="0.900")
    report = examined(tmp_path)
    assert only(report).verdict == "not-declared" and report.outcome == "incomplete"
    declared = {"predictions": [{"files": ["predictions.csv"]}]}
    assert only(examined(tmp_path, declared)).verdict == "population-incomplete"


def test_no_metrics_at_all_is_nothing_to_refuse(tmp_path: Path) -> None:
    report = examined(tmp_path)
    assert not report.metrics and report.outcome == "accepted"


@pytest.mark.parametrize("raw", ["", "[1]", "{", '{"a": 1, "a": 2}', '{"a":' * 9000 + "1" + "}" * 9000])
def test_a_damaged_metrics_file_is_a_problem(tmp_path: Path, raw: str) -> None:
    (tmp_path / "metrics.json").write_text(raw)
    report = examined(tmp_path)
    assert [p.code for p in report.problems] == ["metrics-unreadable"] and report.outcome == "incomplete"


def test_the_sealed_layout_has_a_folder_for_each_test(tmp_path: Path) -> None:
    for name, wrong in (("cifar", (1,)), ("svhn", (1, 2))):
        write_csv(tmp_path / "test" / name / "results.csv", answers(20, wrong))
        write_metrics(tmp_path / "test" / name, accuracy=str(1 - len(wrong) / 20), samples=20)
    (tmp_path / "metrics.json").write_text(
        '{"test": {"cifar": {"accuracy": 0.95}, "svhn": {"accuracy": 0.95}}}'
    )
    report = examined(tmp_path)
    assert [(m.file, m.name, m.predictions, m.verdict) for m in report.metrics] == [
        ("metrics.json", "test/cifar/accuracy", "test/cifar", "recomputed"),
        ("metrics.json", "test/svhn/accuracy", "test/svhn", "differs"),
        ("test/cifar/metrics.json", "accuracy", "test/cifar", "recomputed"),
        ("test/svhn/metrics.json", "accuracy", "test/svhn", "recomputed"),
    ]


def test_splits_find_their_own_predictions(tmp_path: Path) -> None:
    write_csv(tmp_path / "val_predictions.csv", answers(20, (1,)))
    write_csv(tmp_path / "test_predictions.csv", answers(20, (1, 2)))
    write_metrics(tmp_path, val_accuracy="0.950", test_accuracy="0.900", accuracy="0.900")
    report = examined(tmp_path)
    assert [m.verdict for m in report.metrics] == ["recomputed", "recomputed", "not-declared"]
    (tmp_path / "test_predictions.csv").unlink()
    (tmp_path / "val_predictions.csv").rename(tmp_path / "predictions.csv")
    verdicts = [m.verdict for m in examined(tmp_path).metrics]
    assert verdicts == ["not-declared", "not-declared", "differs"]


def test_the_figures_of_one_class_in_a_classification_report_are_not_taken_for_averages(
    tmp_path: Path,
) -> None:
    write_csv(tmp_path / "predictions.csv", answers())
    (tmp_path / "metrics.json").write_text(
        '{"0": {"precision": 0.86, "support": 7}, "macro avg": {"f1-score": 0.9011}, "accuracy": 0.900}'
    )
    report = examined(tmp_path)
    assert [m.verdict for m in report.metrics] == ["not-declared", "recomputed", "recomputed"]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_prediction_that_is_no_number_gives_no_figure(tmp_path: Path, bad: float) -> None:
    rows: list[dict[str, Any]] = [{"id": i, "target": 1.0, "prediction": 2.0} for i in range(4)]
    rows[1]["prediction"] = bad
    report = _run(tmp_path, rows, mae="1.00", rmse="1.00")
    assert [m.verdict for m in report.metrics] == ["differs", "differs"]
    assert "1 of 4 predictions are not finite" in report.metrics[0].detail
    rows = [{"id": i, "target": i % 2, "probs": [0.5, bad if i == 2 else 0.5]} for i in range(4)]
    report = _run(tmp_path, rows, accuracy="0.50", nll="0.69", auroc="0.50", top2="1.0")
    assert {m.verdict for m in report.metrics} == {"differs"} and {m.recomputed for m in report.metrics} == {
        None
    }


def test_a_reported_nan_that_the_predictions_give_is_recomputed(tmp_path: Path) -> None:
    rows = [{"id": i, "target": 1.0, "prediction": math.nan if i else 1.0} for i in range(3)]
    finding = only(_run(tmp_path, rows, mse="NaN"))
    assert (finding.verdict, finding.reported) == ("recomputed", "NaN")
    assert finding.as_json()["reported"] is None
    json.dumps(finding.as_json(), allow_nan=False)


def test_a_reported_nan_is_told_as_such_although_json_has_no_number_for_it(tmp_path: Path) -> None:
    finding = only(_run(tmp_path, [{"id": i, "target": 1.0, "prediction": 2.0} for i in range(3)], mse="NaN"))
    assert (finding.verdict, finding.recomputed) == ("differs", "1")
    assert "NaN is reported" in finding.detail


def test_masked_logits_of_minus_infinity_are_numbers(tmp_path: Path) -> None:
    rows = [{"id": i, "target": i % 2, "logits": [1.0, 3.0, -math.inf]} for i in range(4)]
    report = _run(tmp_path, rows, accuracy="0.50", nll="1.127")
    assert [m.verdict for m in report.metrics] == ["recomputed", "recomputed"]


def test_equal_scores_that_decide_a_figure_are_no_pass(tmp_path: Path) -> None:
    rows = [{"id": i, "target": i % 3, "probs": [1 / 3, 1 / 3, 1 / 3]} for i in range(9)]
    report = _run(tmp_path, rows, accuracy="1.0", top2="0.667")
    assert [m.verdict for m in report.metrics] == ["disagree", "recomputed"]
    assert report.outcome == "incomplete"
    assert only(_run(tmp_path, rows, accuracy="0.333")).verdict == "recomputed"


def test_digits_the_file_does_not_keep_are_allowed_for_and_no_more(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    exact = generator.dirichlet([0.3] * 3, 200)
    targets = generator.integers(0, 3, 200)
    nll = -float(np.mean(np.log(exact[np.arange(200), targets])))
    stored = [[f"{p:.4f}" for p in row] for row in exact]
    rows = [
        {"id": i, "target": t, **dict(zip("abc", s, strict=True))}
        for i, (t, s) in enumerate(zip(targets, stored, strict=True))
    ]
    rows = [{"id": r["id"], "target": r["target"], "p0": r["a"], "p1": r["b"], "p2": r["c"]} for r in rows]
    write_csv(tmp_path / "predictions.csv", rows)
    write_metrics(tmp_path, nll=f"{nll:.3f}")
    assert only(examined(tmp_path)).verdict in ("recomputed", "disagree")
    write_metrics(tmp_path, nll=f"{nll + 0.5:.3f}")
    assert only(examined(tmp_path)).verdict != "recomputed"


def test_a_probability_of_zero_needs_a_declared_clamp(tmp_path: Path) -> None:
    rows = [{"id": 0, "target": 0, "probs": [0.0, 1.0]}, {"id": 1, "target": 1, "probs": [0.0, 1.0]}]
    finding = only(_run(tmp_path, rows, nll="13.8155"))
    assert finding.verdict == "differs" and "declare the clamp" in finding.detail
    declaration = {"metrics": [{"name": "nll", "clamp": 1e-12}]}
    assert only(_run(tmp_path, rows, declaration, nll="13.8155")).verdict == "recomputed"


def test_scores_that_are_no_probabilities_give_no_likelihood(tmp_path: Path) -> None:
    rows = [{"id": i, "target": 0, "scores": [2.0, 1.0]} for i in range(3)]
    report = _run(tmp_path, rows, accuracy="1.0", nll="0.313")
    assert [m.verdict for m in report.metrics] == ["recomputed", "not-declared"]
    declared = {"predictions": [{"files": ["predictions.jsonl"], "logits": "scores"}]}
    assert {m.verdict for m in _run(tmp_path, rows, declared, accuracy="1.0", nll="0.313").metrics} == {
        "recomputed"
    }


def test_class_names_in_the_score_columns_and_in_the_declaration(tmp_path: Path) -> None:
    rows = [{"id": i, "label": "dog", "prob_cat": 0.25, "prob_dog": 0.75} for i in range(3)]
    assert only(_run(tmp_path, rows, nll="0.28768")).verdict == "recomputed"
    rows = [{"id": i, "label": "dog", "probs": [0.25, 0.75]} for i in range(3)]
    assert only(_run(tmp_path, rows, nll="0.28768")).verdict == "not-declared"
    declared = {"predictions": [{"files": ["predictions.jsonl"], "classes": ["cat", "dog"]}]}
    assert only(_run(tmp_path, rows, declared, nll="0.28768")).verdict == "recomputed"


def test_a_curve_over_classes_says_which_have_no_targets(tmp_path: Path) -> None:
    rows = [
        {"id": i, "target": i % 2, "probs": [0.6 - 0.3 * (i % 2), 0.3 + 0.3 * (i % 2), 0.1]} for i in range(6)
    ]
    finding = only(_run(tmp_path, rows, auroc="1.0"))
    assert finding.verdict == "recomputed" and "'2'" in finding.detail
    rows = [{**row, "target": 0} for row in rows]
    finding = only(_run(tmp_path, rows, auroc="1.0"))
    assert (finding.verdict, finding.recomputed) == ("no-ground-truth", None)


def test_images_take_their_range_from_their_type_or_values_and_say_so(tmp_path: Path) -> None:
    true = np.arange(2 * 16 * 16, dtype=np.uint8).reshape(2, 16, 16)
    guess = true.copy()
    guess[:, 0, 0] ^= 8
    psnr = 10 * math.log10(255**2 / (64 / 256))
    write_metrics(tmp_path, psnr=f"{psnr:.2f}")
    np.savez(tmp_path / "predictions.npz", target=true, prediction=guess)
    assert only(examined(tmp_path)).verdict == "recomputed" and "span 255" in only(examined(tmp_path)).detail
    np.savez(tmp_path / "predictions.npz", target=true / 255, prediction=guess / 255)
    assert only(examined(tmp_path)).verdict == "recomputed" and "span 1" in only(examined(tmp_path)).detail
    np.savez(tmp_path / "predictions.npz", target=true * 9.0, prediction=guess * 9.0)
    assert only(examined(tmp_path)).verdict == "not-declared"
    declared = {"metrics": [{"name": "psnr", "data_range": 255 * 9}]}
    assert only(examined(tmp_path, declared)).verdict == "recomputed"


def test_masks_with_unlabelled_pixels(tmp_path: Path) -> None:
    target = np.array([[[0, 0], [1, 255]], [[1, 1], [255, 255]]], dtype=np.uint8)
    prediction = np.array([[[0, 1], [1, 1]], [[1, 1], [0, 0]]], dtype=np.uint8)
    np.savez(tmp_path / "predictions.npz", target_mask=target, pred_mask=prediction)
    write_metrics(tmp_path, miou="0.6250")  # (1/2 + 3/4) / 2
    finding = only(examined(tmp_path))
    assert (finding.verdict, finding.definition) == ("recomputed", "mIoU (without 255)")
    declared = {"metrics": [{"name": "miou", "ignore": 255}]}
    assert only(examined(tmp_path, declared)).definition == "mIoU"


def test_tokens_that_pad_do_not_count(tmp_path: Path) -> None:
    rows = [{"id": 0, "target": [1, 0, -100], "logits": [[0.0, 1.0], [1.0, 0.0], [5.0, 5.0]]}]
    finding = only(_run(tmp_path, rows, perplexity=f"{1 + math.exp(-1):.5f}"))
    assert finding.verdict == "recomputed" and "1 tokens with the target -100" in finding.detail
    assert only(_run(tmp_path, rows, ppl="1.50")).verdict == "differs"


def test_boxes_in_one_row_per_image(tmp_path: Path) -> None:
    rows = [
        {
            "image_id": i, "pred_boxes": [[0, 0, 10, 10]], "pred_scores": [0.9], "pred_labels": ["car"],
            "target_boxes": [[0, 0, 10, 8 if i else 10]], "target_labels": ["car"],
        }
        for i in range(2)
    ]  # fmt: skip
    report = _run(tmp_path, rows, mAP50="1.0", **{"mAP50-95": "0.8515"})
    assert (
        report.metrics[0].verdict == "recomputed" and report.metrics[1].definition == "mAP (COCO, 0.5:0.95)"
    )
    rows[0]["pred_boxes"] = [[10, 10, 5, 5]]
    assert "not x1, y1, x2, y2" in _run(tmp_path, rows, mAP50="1.0").metrics[0].detail


def test_a_declared_metric_that_nobody_reports_is_a_problem(tmp_path: Path) -> None:
    declaration = {"metrics": [{"name": "accuracy"}, {"name": "f1", "reported": "0.90", "average": "micro"}]}
    report = _run(tmp_path, answers(), declaration, nothing={})
    assert [p.code for p in report.problems if not p.gap] == ["metric-not-reported"]
    assert report.outcome == "incomplete"


def test_a_declared_direction_that_contradicts_the_metric_is_a_problem(tmp_path: Path) -> None:
    report = _run(
        tmp_path, answers(), {"metrics": [{"name": "accuracy", "direction": "down"}]}, accuracy="0.9"
    )
    assert "direction-contradicts" in [p.code for p in report.problems] and report.outcome == "incomplete"


def test_foreign_names_are_made_fit_to_be_shown(tmp_path: Path) -> None:
    write_csv(tmp_path / "predictions.csv", answers())
    (tmp_path / "metrics.json").write_text(
        '{"acc\\u001b[31muracy\\u202e": 0.5, "\\ud800": 1, "accuracy": 0.900}'
    )
    report = examined(tmp_path)
    assert all(m.name.isprintable() for m in report.metrics)
    assert report.metrics[2].verdict == "recomputed"


def test_labels_that_the_scores_beside_them_do_not_support_are_no_pass(tmp_path: Path) -> None:
    rows = [
        {**row, **{f"p{c}": 0.8 if c == row["prediction"] else 0.1 for c in range(3)}} for row in answers()
    ]
    assert only(_run(tmp_path, rows, accuracy="0.900")).verdict == "recomputed"
    rows[0].update(p0=0.1, p1=0.8)
    finding = only(_run(tmp_path, rows, accuracy="0.900"))
    assert finding.verdict == "disagree" and "in 1 of 20 rows" in finding.detail
    declared = {"predictions": [{"files": ["predictions.jsonl"], "prediction": "prediction"}]}
    assert only(_run(tmp_path, rows, declared, accuracy="0.900")).verdict == "recomputed"
    binary = _binary()
    binary[5]["prob"] = 0.95  # predicted 0, above every sample that is predicted 1
    assert only(_run(tmp_path, binary, accuracy="0.667")).verdict == "disagree"


def test_an_unbounded_score_orders_samples_and_decides_nothing(tmp_path: Path) -> None:
    rows = [{"id": i, "target": int(i > 2), "y_score": float(i - 2) * 3} for i in range(6)]
    report = _run(tmp_path, rows, auroc="1.0", accuracy="1.0")
    assert [m.verdict for m in report.metrics] == ["recomputed", "not-declared"]
    declared = {"metrics": [{"name": "accuracy", "threshold": 0.5}]}
    assert {m.verdict for m in _run(tmp_path, rows, declared, auroc="1.0", accuracy="1.0").metrics} == {
        "recomputed"
    }


def test_a_declared_k_makes_an_accuracy_top_k(tmp_path: Path) -> None:
    rows = [{"id": i, "target": 1, "probs": [0.5, 0.3, 0.2]} for i in range(4)]
    declared = {"metrics": [{"name": "accuracy", "k": 2}]}
    assert only(_run(tmp_path, rows, declared, accuracy="1.0")).definition == "top-k accuracy"


@pytest.mark.parametrize("figure", ["1e999999999", "123456789e999999", "0e-999999999", "1e-5000", "9" * 5000])
def test_absurd_figures_differ_and_cost_nothing(tmp_path: Path, figure: str) -> None:
    report = _run(tmp_path, answers(), accuracy=figure)
    assert only(report).verdict == "differs"
    assert only(_run(tmp_path, answers(), accuracy="0.9", samples=figure)).name == "accuracy"
    json.dumps(report.as_json(), allow_nan=False)


def test_versions_and_dates_are_no_figures(tmp_path: Path) -> None:
    report = _run(tmp_path, answers(), python='"3.11"', date='"2024"', accuracy='"0.900"')
    assert [(m.name, m.verdict) for m in report.metrics] == [("accuracy", "recomputed")]


SUMMARIES = {
    "eval_results.json": {"eval_accuracy": 0.9},
    "all_results.json": {"eval_accuracy": 0.9, "train_loss": 2.0},
    "test_metrics.json": {"accuracy": 0.9},
    "results.json": {"test": {"acc": "90 %"}},
}


@pytest.mark.parametrize(("name", "figure"), SUMMARIES.items(), ids=SUMMARIES)
def test_a_trainers_summary_is_held_to_the_predictions_beside_it(
    tmp_path: Path, name: str, figure: dict[str, Any]
) -> None:
    noise = {"eval_runtime": 1.5, "eval_loss": 0.3, "epoch": 3.0, "total_flos": 1e15}
    (tmp_path / name).write_text(json.dumps(figure | noise))
    assert not examined(tmp_path).metrics  # of a folder without predictions it says nothing
    write_csv(tmp_path / "predictions.csv", answers())
    assert [m.verdict for m in examined(tmp_path).metrics] == ["recomputed"]
    write_csv(tmp_path / "predictions.csv", answers(20, (1, 2, 4, 5)))
    assert only(examined(tmp_path)).verdict == "differs"
    (tmp_path / name).write_text("{")
    assert not examined(tmp_path).metrics


def test_summaries_of_two_splits_share_no_predictions(tmp_path: Path) -> None:
    write_csv(tmp_path / "predictions.csv", answers())
    (tmp_path / "eval_results.json").write_text('{"eval_accuracy": 0.9}')
    (tmp_path / "predict_results.json").write_text('{"predict_accuracy": 0.8}')
    assert [m.verdict for m in examined(tmp_path).metrics] == ["not-declared", "not-declared"]


def test_predictions_in_a_folder_of_that_name(tmp_path: Path) -> None:
    write_csv(tmp_path / "predictions" / "test.csv", answers())
    write_metrics(tmp_path, test_accuracy="0.900")
    assert only(examined(tmp_path)).verdict == "recomputed"
    for part in (0, 1):
        write_csv(tmp_path / "predictions" / f"part-{part}.csv", answers()[part::2])
    (tmp_path / "predictions" / "test.csv").unlink()
    assert only(examined(tmp_path)).population == 20


def test_a_lone_score_orders_the_samples_and_decides_nothing_beside_a_prediction(tmp_path: Path) -> None:
    rows = [{"id": i, "target": i % 2, "score": (i * 7 % 10) / 10} for i in range(10)]
    report = _run(tmp_path, rows, auroc="0.00")
    assert only(report).verdict == "differs" and only(report).recomputed is not None
    report = _run(tmp_path, [row | {"prediction": row["target"]} for row in rows], accuracy="1.000")
    assert only(report).verdict == "recomputed"


def test_correlations_and_shares_of_error(tmp_path: Path) -> None:
    true, guess = [1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 2.5, 4.5]
    rows = [{"id": i, "target": t, "prediction": p} for i, (t, p) in enumerate(zip(true, guess, strict=True))]
    report = _run(tmp_path, rows, r2="0.850", pearson="0.933", mape="0.1979")
    assert [m.verdict for m in report.metrics] == ["recomputed"] * 3
    report = _run(tmp_path, rows, r2="0.86", pearson="0.95", mape="0.21")
    assert [m.verdict for m in report.metrics] == ["differs"] * 3
    rows[0]["prediction"] = math.nan
    assert {m.verdict for m in _run(tmp_path, rows, r2="0.85", pearson="0.9", mape="0.2").metrics}.isdisjoint(
        {"recomputed"}
    )
    for same in (1.0, 0.1):  # of tenths not even the mean is one
        flat = [{"id": i, "target": same, "prediction": p} for i, p in enumerate(guess[:3])]
        assert {m.verdict for m in _run(tmp_path, flat, r2="0", pearson="0").metrics} == {"no-ground-truth"}


def test_dice_of_masks_over_pixels_and_over_images(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    true = np.array([[[1, 1], [0, 0]], [[1, 0], [0, 0]]])
    guess = np.array([[[1, 0], [0, 0]], [[1, 1], [1, 0]]])
    np.savez(tmp_path / "predictions.npz", id=np.arange(2), target=true, prediction=guess)
    # of class 1: 2 hits, 3 true and 4 predicted; of class 0: 3 hits, 5 true and 4 predicted
    for figure, definition in (("0.571", "class 1"), ("0.619", "classes"), ("0.617", "images")):
        write_metrics(tmp_path, dice=figure)
        found = only(examined(tmp_path))
        assert found.verdict == "recomputed" and definition in (found.definition or "")


def test_what_a_device_reports_is_no_figure_of_predictions(tmp_path: Path) -> None:
    report = _run(
        tmp_path, answers(), accuracy="0.900", gpu_mem_mb="1200", energy_kwh="0.3", latency_ms_p99="9"
    )
    assert only(report).verdict == "recomputed"


def test_true_is_the_positive_class_however_the_classes_are_sorted(tmp_path: Path) -> None:
    pairs = [(True, True), (True, False), (False, False), (False, False), (True, True)]
    rows = [{"id": i, "target": str(t), "prediction": str(p)} for i, (t, p) in enumerate(pairs)]
    report = _run(tmp_path, rows, f1="0.80", recall="0.667", specificity="1.0")
    assert [(m.verdict, "binary" in (m.definition or "")) for m in report.metrics] == [
        ("recomputed", True)
    ] * 3

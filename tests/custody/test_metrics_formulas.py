"""Every formula against a case small enough to be worked out by hand."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from tui.custody.scoring import figures
from tui.custody.scoring.names import is_bookkeeping, is_count, meaning

np = pytest.importorskip("numpy")

from tui.custody.scoring import detection, formulas, images  # noqa: E402 - need NumPy

# target down, prediction across: 3 of 4 right
CONFUSION = np.array([[2, 1], [0, 1]])


def test_accuracy_and_averages_of_a_confusion() -> None:
    assert formulas.accuracy(CONFUSION) == 0.75
    assert formulas.averaged(CONFUSION, "precision", "binary", 1) == 0.5
    assert formulas.averaged(CONFUSION, "recall", "binary", 1) == 1.0
    assert formulas.averaged(CONFUSION, "f1", "binary", 1) == pytest.approx(2 / 3)
    assert formulas.averaged(CONFUSION, "f1", "micro") == 0.75
    assert formulas.averaged(CONFUSION, "f1", "macro") == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert formulas.averaged(CONFUSION, "f1", "weighted") == pytest.approx((3 * 4 / 5 + 2 / 3) / 4)
    assert formulas.averaged(CONFUSION, "iou", "macro") == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert formulas.balanced_accuracy(CONFUSION) == pytest.approx((2 / 3 + 1) / 2)


def test_a_class_that_never_occurs_does_not_count_and_one_that_is_only_predicted_counts_as_nothing() -> None:
    with_absent = np.array([[2, 0, 0], [0, 2, 0], [0, 0, 0]])
    only_predicted = np.array([[2, 0, 0], [0, 1, 1], [0, 0, 0]])
    assert formulas.averaged(with_absent, "recall", "macro") == 1.0
    assert formulas.averaged(only_predicted, "recall", "macro") == pytest.approx((1 + 0.5 + 0) / 3)


def test_auroc_counts_ordered_pairs_and_half_of_the_ties() -> None:
    scores, positive = np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, True, False, True])
    assert formulas.auroc(scores, positive) == (1 + 0.5 + 1 + 1) / 4
    assert formulas.auroc(np.array([0.5, 0.5]), np.array([True, False])) == 0.5
    assert math.isnan(formulas.auroc(scores, np.zeros(4, dtype=bool)))


def test_average_precision_steps_once_for_equal_scores() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6])
    assert formulas.average_precision(scores, np.array([True, False, True, False])) == pytest.approx(
        0.5 * 1 + 0.5 * 2 / 3
    )
    tied = np.array([0.9, 0.5, 0.5])
    assert formulas.average_precision(tied, np.array([False, True, False])) == pytest.approx(1 / 3)
    assert formulas.average_precision(tied, np.array([False, False, True])) == pytest.approx(1 / 3)


def test_a_mean_over_classes_leaves_out_those_without_targets_and_names_them() -> None:
    scores = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1]])
    value, absent = formulas.over_classes(formulas.auroc, scores, np.array([0, 1, 0]))
    assert (value, absent) == (1.0, [2])


def test_psnr_of_a_known_error() -> None:
    assert formulas.psnr(0.01, 1.0) == pytest.approx(20.0)
    assert formulas.psnr(1.0, 255.0) == pytest.approx(48.1308, abs=1e-4)
    assert formulas.psnr(0.0, 1.0) == math.inf


def test_ssim_of_flat_images_is_the_luminance_term_alone() -> None:
    first, second = np.full((1, 16, 16), 0.5), np.full((1, 16, 16), 0.25)
    c1 = (0.01 * 1.0) ** 2
    expected = (2 * 0.5 * 0.25 + c1) / (0.5**2 + 0.25**2 + c1)
    for window in ("gaussian", "mirrored", "uniform"):
        assert images.ssim(first, second, 1.0, window) == pytest.approx(expected)
        assert images.ssim(first, first, 1.0, window) == pytest.approx(1.0)
    assert images.fits(11, 11, "gaussian") and not images.fits(11, 10, "gaussian")


def _scene(
    name: str, boxes: list[list[float]], scores: list[float], true: list[list[float]]
) -> detection.Scene:
    return detection.Scene(
        name,
        np.array(boxes, dtype=float).reshape(-1, 4),
        np.array(scores),
        np.zeros(len(boxes), dtype=int),
        np.array(true, dtype=float).reshape(-1, 4),
        np.zeros(len(true), dtype=int),
    )


def test_box_overlap() -> None:
    overlap = detection.box_iou(
        np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2], [5, 5, 6, 6], [0, 0, 2, 2]])
    )
    assert overlap.tolist() == [[pytest.approx(1 / 3), 0.0, 1.0]]


def test_map_of_one_hit_and_one_miss() -> None:
    """Two true boxes, the better-scored detection right and the other in the void: recall stops at a half."""
    scene = _scene("a", [[0, 0, 10, 10], [50, 50, 60, 60]], [0.9, 0.8], [[0, 0, 10, 10], [20, 20, 30, 30]])
    assert detection.mean_average_precision([scene], (0.5,)) == pytest.approx(51 / 101)


def test_map_matches_a_true_box_once_and_depends_on_the_threshold() -> None:
    doubled = _scene("a", [[0, 0, 10, 10], [0, 0, 10, 9]], [0.8, 0.9], [[0, 0, 10, 10]])
    assert detection.mean_average_precision([doubled], (0.5,)) == 1.0  # the second hit on it comes later
    near = _scene("a", [[0, 0, 10, 8]], [0.9], [[0, 0, 10, 10]])
    assert detection.mean_average_precision([near], detection.COCO_THRESHOLDS) == pytest.approx(0.7)
    assert math.isnan(detection.mean_average_precision([_scene("a", [], [], [])], (0.5,)))


@pytest.mark.parametrize(
    ("reported", "value", "is_same"),
    [
        ("0.93", 0.9349, True),
        ("0.93", 0.9351, False),
        ("0.9300", 0.9301, False),
        ("0.125", 0.125, True),
        ("0.12", 0.125, True),  # half to even
        ("0.13", 0.125, True),  # half up
        ("0.14", 0.125, False),
        ("0.28", 0.285, True),  # 0.285 is a little less in binary
        ("0.29", 0.285, True),  # and a tie as it prints
        ("31.4", 31.35, True),
        ("1e-3", 0.00149, True),
        ("0.8600000143051147", 0.86, True),  # a float32, printed whole
        ("0.8600100143051147", 0.86, False),
        ("1", 0.996, True),
        ("1.00", 0.994, False),
        ("-0.50", -0.5, True),
        ("0", 0.4, True),
        ("0.000", 0.0006, False),
        ("NaN", math.nan, True),
        ("0.5", math.nan, False),
        ("Infinity", math.inf, True),
        ("12", math.inf, False),
    ],
)
def test_a_figure_is_the_reported_one_at_the_digits_it_was_reported_with(
    reported: str, value: float, is_same: bool
) -> None:
    assert figures.same(Decimal(reported), value) is is_same


def test_declared_digits_make_the_comparison_coarser_and_never_finer() -> None:
    assert figures.same(Decimal("0.93456"), 0.9349, digits=3)
    assert not figures.same(Decimal("0.93456"), 0.9349)
    assert figures.same(Decimal("0.93"), 0.9349, digits=9)


def test_ties_and_stored_digits_that_do_not_decide_are_no_pass() -> None:
    tied = figures.Figure(0.5, tie_low=0.25, tie_high=0.75)
    assert figures.judge(Decimal("0.75"), tied, None)[0] == "disagree"
    assert figures.judge(Decimal("0.80"), tied, None)[0] == "differs"
    assert figures.judge(Decimal("0.50"), tied, None)[0] == "recomputed"
    narrow = figures.Figure(0.5, low=0.4999, high=0.5001)
    assert figures.judge(Decimal("0.50008"), narrow, None)[0] == "recomputed"
    wide = figures.Figure(2.0, low=1.0, high=math.inf)
    assert figures.judge(Decimal("9.00"), wide, None)[0] == "disagree"


@pytest.mark.parametrize(
    ("name", "metric", "k", "average", "split"),
    [
        ("accuracy", "accuracy", None, None, None),
        ("val/Acc@1", "accuracy", None, None, "val"),
        ("test_top5_acc", "top-k", 5, None, "test"),
        ("top-5 accuracy", "top-k", 5, None, None),
        ("macro_f1", "f1", None, "macro", None),
        ("F1Score", "f1", None, None, None),
        ("weighted avg/f1-score", "f1", None, "weighted", None),
        ("mAP@0.5", "map-50", None, None, None),
        ("mAP@[.5:.95]", "map-50-95", None, None, None),
        ("mAP50-95", "map-50-95", None, None, None),
        ("mAP@5", None, None, None, None),  # of retrieval, another thing
        ("mIoU", "miou", None, None, None),
        ("eval_loss", None, None, None, "val"),
        ("PSNR/mean", "psnr", None, None, None),
        ("top-k", "top-k", None, None, None),
    ],
)
def test_the_many_spellings_of_a_name(
    name: str, metric: str | None, k: int | None, average: str | None, split: str | None
) -> None:
    said = meaning(tuple(name.split("/")) if name.startswith(("weighted", "PSNR")) else (name,))
    assert (said.metric, said.average, said.split) == (metric, average, split)
    assert said.k == k


def test_names_that_are_no_metrics() -> None:
    assert is_count(("num_samples",)) and is_count(("test_samples",)) and not is_count(("accuracy",))
    assert is_bookkeeping(("eval_runtime",)) and is_bookkeeping(("samples_per_second",))
    assert not is_bookkeeping(("rms",))
    assert meaning(("best_acc",)).over_time
    assert (meaning(("f1", "macro")).metric, meaning(("f1", "macro")).average) == ("f1", "macro")
    assert meaning(("fid",)).direction == "down" and meaning(("loss",)).direction == "down"


def test_agreement_beyond_chance() -> None:
    confusion = np.array([[20, 5], [10, 15]])  # Cohen's own kind of table: 0.7 seen, 0.5 by chance
    assert formulas.kappa(confusion) == pytest.approx(0.4)
    assert formulas.matthews(confusion) == pytest.approx((20 * 15 - 5 * 10) / math.sqrt(25 * 25 * 30 * 20))
    assert formulas.specificity(confusion, 1) == 20 / 25
    assert formulas.matthews(np.array([[3, 0], [4, 0]])) == 0
    assert math.isnan(formulas.kappa(np.array([[5]])))

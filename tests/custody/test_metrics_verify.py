"""The whole verification, in its children: against torchmetrics, on the demo's job, with an own evaluator."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.custody.metric_folders import answers, examined, write_csv, write_jsonl, write_metrics
from tui.custody import child, metrics
from tui.custody.metrics import verify_metrics
from tui.custody.scoring.asks import Ask
from tui.model.failure import Failure
from tui.model.metrics import Declaration, Measured

np = pytest.importorskip("numpy")

CLASSES, ROWS = 4, 400


def _softmax(logits: Any) -> Any:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _populations(root: Path) -> dict[str, list[str]]:
    """Random populations of every kind, and the metrics to ask of each."""
    generator = np.random.default_rng(11)
    ids = np.arange(ROWS)
    target = generator.integers(0, CLASSES, ROWS)
    logits = generator.normal(size=(ROWS, CLASSES)) + 1.2 * np.eye(CLASSES)[target]
    both = generator.integers(0, 2, ROWS)
    prob = np.clip(generator.normal(0.4 + 0.2 * both, 0.25), 0.01, 0.99).round(2)  # rounded: many ties
    number = generator.normal(size=(ROWS, 3))
    true_images = generator.random((6, 24, 20, 3))
    images = np.clip(true_images + generator.normal(0, 0.1, true_images.shape), 0, 1)
    masks = generator.integers(0, 3, (8, 12, 12))
    seen = np.where(generator.random(masks.shape) < 0.7, masks, generator.integers(0, 3, masks.shape))
    void = np.where(generator.random(masks.shape) < 0.1, 255, masks)
    tokens = generator.integers(0, 7, (5, 9))
    tokens[:, -2:] = -100
    files: dict[str, dict[str, Any]] = {
        "labels": {"target": target, "prediction": logits.argmax(1)},
        "probabilities": {"target": target, "probs": _softmax(logits)},
        "logits": {"target": target, "logits": logits},
        "binary": {"target": both, "prediction": (prob > 0.5).astype(int), "prob": prob},
        "numbers": {"target": number, "prediction": number + generator.normal(0, 0.3, number.shape)},
        "images": {"target": true_images, "prediction": images},
        "masks": {"target": masks, "prediction": seen},
        "void": {"target": void, "prediction": seen},
        "pair": {"target": masks > 0, "prediction": seen > 0},
        "tokens": {"target": tokens, "logits": generator.normal(size=(5, 9, 7))},
    }
    for name, arrays in files.items():
        (root / name).mkdir(parents=True)
        np.savez(root / name / "predictions.npz", id=ids[: len(arrays["target"])], **arrays)
    write_jsonl(root / "boxes" / "predictions.jsonl", _scenes(generator))
    by_average = [f"{m}_{a}" for m in ("f1", "precision", "recall") for a in ("micro", "macro", "weighted")]
    classes = ["accuracy", "top2", "top3", "nll", "auroc_macro", "map", "perplexity"]
    return {
        "labels": ["accuracy", "error_rate", "balanced_accuracy", "iou", *by_average],
        "probabilities": classes,
        "logits": classes,
        "binary": ["accuracy", "f1", "precision", "recall", "auroc", "average_precision"],
        "numbers": ["mae", "mse", "rmse"],
        "images": ["psnr", "ssim"],
        "masks": ["miou"],
        "void": ["miou"],
        "pair": ["iou"],
        "tokens": ["perplexity"],
        "boxes": ["map50", "map75", "map50-95"],
    }


def _scenes(generator: Any) -> list[dict[str, Any]]:
    """Images with up to five true boxes in three classes, detections near some of them, and tied scores."""
    rows = []
    for image in range(30):
        corner = generator.uniform(0, 80, (int(generator.integers(0, 6)), 2))
        true = np.concatenate([corner, corner + generator.uniform(8, 20, corner.shape)], axis=1)
        near = true + generator.normal(0, 2.0, true.shape)
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 1)
        labels = generator.integers(0, 3, len(true))
        guessed = np.where(generator.random(len(true)) < 0.8, labels, 2)
        rows.append(
            {
                "id": f"{image:03d}", "pred_boxes": near.tolist(), "pred_labels": guessed.tolist(),
                "pred_scores": generator.uniform(0.2, 1, len(true)).round(1).tolist(),
                "target_boxes": true.tolist(), "target_labels": labels.tolist(),
            }
        )  # fmt: skip
    return rows


def _reported(root: Path, wanted: dict[str, list[str]]) -> Measured:
    """Report what the reference gives, with six digits, and verify it all."""
    for name, names in wanted.items():
        write_metrics(root / name, **dict.fromkeys(names, "0.123456"))
    first = examined(root)
    for name, names in wanted.items():
        mine = {m.name: m for m in first.metrics if m.predictions == name}
        assert all(mine[n].recomputed is not None for n in names), [mine[n] for n in names]
        write_metrics(root / name, **{n: f"{float(mine[n].recomputed or 'nan'):.6f}" for n in names})
    return verify_metrics(root)


def test_every_metric_agrees_with_torchmetrics_on_random_data(tmp_path: Path) -> None:
    for needed in ("torchmetrics", "pycocotools"):
        pytest.importorskip(needed)
    report = _reported(tmp_path, _populations(tmp_path))
    wrong = [m for m in report.metrics if m.verdict != "recomputed"]
    assert not wrong, wrong
    alone = [m.name for m in report.metrics if m.second is None]
    assert not alone and len(report.metrics) >= 45
    assert "second-opinion-missing" not in [p.code for p in report.problems]
    json.dumps(report.as_json(), allow_nan=False)


def test_both_ways_to_treat_the_border_of_an_image_agree_with_torchmetrics(tmp_path: Path) -> None:
    pytest.importorskip("torchmetrics")
    from tui.custody.scoring.images import ssim
    from tui.custody.scoring.second_opinion import _ssim

    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(5)
    first = generator.random((3, 17, 23))
    second = np.clip(first + generator.normal(0, 0.2, first.shape), 0, 1)
    tensors = torch.from_numpy(first)[None], torch.from_numpy(second)[None]
    ask = Ask(finding=0, source="", what="", first=0, data_range=1.0)
    assert ssim(first, second, 1.0, "gaussian") == pytest.approx(float(_ssim(inside=True)(*tensors, ask)))
    assert ssim(first, second, 1.0, "mirrored") == pytest.approx(float(_ssim(inside=False)(*tensors, ask)))


def test_two_implementations_that_part_are_no_pass() -> None:
    finding = Measured.model_validate(
        {
            "metrics": [
                {
                    "name": "f1",
                    "reported": "0.5",
                    "recomputed": "0.5",
                    "direction": "up",
                    "verdict": "recomputed",
                }
            ]
        }
    ).metrics[0]
    ask = Ask(finding=0, source="predictions", what="f1:macro", first=0.5)
    parted = metrics._weighed(finding, ask, 0.501)
    assert (parted.verdict, parted.second) == ("disagree", "0.501")
    assert metrics._weighed(finding, ask, 0.5 + 1e-9).verdict == "recomputed"


def test_the_job_of_the_demo_verifies_and_one_altered_prediction_does_not(tmp_path: Path) -> None:
    trainer = Path(metrics.__file__).parents[1] / "demo" / "trainer.py"
    environment = {**os.environ, "RGT_DEMO_NO_TORCH": "1"}
    argv = [sys.executable, str(trainer), "--out", str(tmp_path), "--epochs", "2", "--pause", "0"]
    subprocess.run(argv, check=True, env=environment, stdout=subprocess.DEVNULL, timeout=60)
    report = examined(tmp_path)
    assert [(m.name, m.verdict) for m in report.metrics] == [
        ("accuracy", "recomputed"),
        ("nll", "recomputed"),
    ]
    assert report.outcome == "accepted" and not report.problems  # its own count is the declared population
    lines = (tmp_path / "predictions.csv").read_text().splitlines()
    lines[1] = "0,0,0.00000001,0.99999998,0.00000001"
    (tmp_path / "predictions.csv").write_text("\n".join(lines) + "\n")
    assert examined(tmp_path).outcome == "refused"


def test_a_reader_that_dies_is_an_unknown_and_takes_nothing_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "predictions.csv", answers())
    write_metrics(tmp_path, accuracy="0.900")
    monkeypatch.setattr(metrics, "MEMORY", 64 << 20)  # not even NumPy fits
    report = verify_metrics(tmp_path)
    assert report.outcome == "incomplete" and report.problems[0].code == "predictions-unreadable"


def test_without_numpy_each_figure_is_said_to_be_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "predictions.csv", answers())
    write_metrics(tmp_path, accuracy="0.900")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    report = verify_metrics(tmp_path)
    assert [(m.verdict, m.recomputed) for m in report.metrics] == [("unreadable", None)]
    assert "NumPy is not installed" in report.problems[0].detail and report.outcome == "incomplete"


def test_asking_needs_no_numpy() -> None:
    program = "import sys, tui.custody.metrics; sys.exit('numpy' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_one_implementation_alone_is_said_to_be_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "predictions.csv", answers())
    write_metrics(tmp_path, accuracy="0.900", samples=20)
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torchmetrics" else there(name)
    )
    report = verify_metrics(tmp_path)
    assert [p.code for p in report.problems] == ["second-opinion-missing"] and report.outcome == "accepted"


def test_it_stops_when_told(tmp_path: Path) -> None:
    write_metrics(tmp_path, accuracy="0.900")
    began = time.monotonic()
    assert verify_metrics(tmp_path, stop=lambda: True).outcome == "incomplete"
    assert time.monotonic() - began < 20


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="is no folder"):
        verify_metrics(tmp_path / "nothing")


def test_a_declaration_in_the_folder_is_read_but_chooses_no_program(tmp_path: Path) -> None:
    write_csv(tmp_path / "out.csv", answers())
    write_metrics(tmp_path, quality="0.900")
    marker = tmp_path / "ran"
    (tmp_path / "custody.toml").write_text(
        "[[custody.predictions]]\nfiles = ['out.csv']\ncount = 20\n"
        "[[custody.metrics]]\nname = 'quality'\nmetric = 'accuracy'\n"
        f"[custody.evaluator]\ncommand = ['touch', '{marker}']\n"
    )
    report = verify_metrics(tmp_path)
    assert report.metrics[0].verdict == "recomputed" and report.outcome == "accepted"
    assert not marker.exists() and any("was not run" in note for note in report.notes)
    (tmp_path / "custody.toml").write_text(
        "[[custody.predictions]]\nfiles = ['out.csv']\nids = '/etc/passwd'\n"
    )
    with pytest.raises(Failure, match="outside the folder"):
        verify_metrics(tmp_path)


def test_a_declaration_needs_no_table_around_it_and_is_never_passed_over(tmp_path: Path) -> None:
    write_csv(tmp_path / "predictions.csv", answers())
    write_metrics(tmp_path, accuracy="0.900")
    own = tmp_path / "custody.toml"
    own.write_text("[[predictions]]\nfiles = ['predictions.csv']\ncount = 21\n")
    assert verify_metrics(tmp_path).metrics[0].verdict == "population-incomplete"
    own.write_text("[[prediction]]\nfiles = ['predictions.csv']\n")
    with pytest.raises(Failure, match=r"no \[custody\] table"):
        verify_metrics(tmp_path)
    own.write_text("# nothing yet\n")
    assert verify_metrics(tmp_path).metrics[0].verdict == "recomputed"


def test_the_job_file_in_the_folder_declares_where_the_predictions_it_names_lie_there(tmp_path: Path) -> None:
    write_csv(tmp_path / "predictions.csv", answers())
    write_metrics(tmp_path, accuracy="0.900")
    job = tmp_path / "job.toml"
    said = 'name = "x"\nrun = ["python3"]\n[[custody.predictions]]\nfiles = ["%s"]\ncount = 21\n'
    job.write_text(said % "predictions.csv")
    assert verify_metrics(tmp_path).metrics[0].verdict == "population-incomplete"
    job.write_text(said % "elsewhere/predictions.csv")  # the job's, and not this folder's
    assert verify_metrics(tmp_path).metrics[0].verdict == "recomputed"
    job.write_text("[custody]\nbroken = 1\n")
    report = verify_metrics(tmp_path)
    assert report.outcome == "accepted" and any("job.toml" in note for note in report.notes)


def _evaluated(root: Path, program: str, **evaluator: Any) -> Measured:
    write_csv(root / "predictions.csv", answers())
    write_metrics(root, accuracy="0.900", own_score="12.50")
    command = [sys.executable, "-c", program]
    said = Declaration.model_validate({"evaluator": {"command": command, **evaluator}})
    found = metrics._Work(root, said, 60, lambda: False)
    findings = list(examined(root).metrics)
    found._own_evaluator(findings)
    return Measured(metrics=tuple(findings), problems=tuple(found._problems))


def test_the_users_evaluator_decides_what_has_no_definition_here(tmp_path: Path) -> None:
    report = _evaluated(tmp_path, "import json; print('loading'); print(json.dumps({'own_score': 12.4961}))")
    assert [(m.verdict, m.recomputed) for m in report.metrics] == [
        ("recomputed", "0.9"),
        ("recomputed", "12.4961"),
    ]
    assert report.metrics[1].definition == f"the declared evaluator {Path(sys.executable).name}"
    report = _evaluated(tmp_path, 'print(\'{"own_score": 12.61, "accuracy": 0.5}\')')
    assert [m.verdict for m in report.metrics] == ["disagree", "differs"]


def test_the_evaluator_runs_on_a_copy_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "s3cret")
    program = (
        "import json, os; open('predictions.csv', 'w').close(); open('new', 'w').close();"
        "found = sum('s3cret' in value for value in os.environ.values());"
        "json.dump({'own_score': found}, open('answer.json', 'w'))"
    )
    report = _evaluated(tmp_path, program, output="answer.json")
    assert report.metrics[1].recomputed == "0"
    assert (tmp_path / "predictions.csv").stat().st_size > 0 and not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import sys; sys.exit('no such model')", "ended with 1: no such model"),
        ("print('fine')", "no valid JSON|is not valid"),
        ("import time; time.sleep(60)", "did not end within 1 s"),
        ("x = bytearray(1 << 30)", "MemoryError"),
        ("while True: print('x' * 65536)", "printing without end"),
    ],
)
def test_an_evaluator_that_fails_is_a_problem_and_leaves_nothing_running(
    tmp_path: Path, program: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import re

    monkeypatch.setattr(child, "ANSWER_BYTES", 1 << 20)
    evaluator = {"timeout": 1.0 if "sleep" in program else 30.0, "memory": 512 << 20}
    report = _evaluated(tmp_path, program, **evaluator)
    assert [p.code for p in report.problems] == ["evaluator-failed"] and report.outcome == "incomplete"
    assert re.search(says, report.problems[0].detail)


def test_a_grandchild_does_not_outlive_its_deadline(tmp_path: Path) -> None:
    program = "sleep 300 & echo $!; wait"
    ended = child.run_child(
        ["sh", "-c", program], cwd=tmp_path, env=child.clean_environment(tmp_path), limits=child.Limits(0.5)
    )
    assert ended.why == "timeout"
    for _ in range(50):
        if not Path(f"/proc/{int(ended.out)}").exists():
            return
        time.sleep(0.1)
    status = Path(f"/proc/{int(ended.out)}/status").read_text()
    assert "State:\tZ" in status  # dead, and waiting for an init that reaps

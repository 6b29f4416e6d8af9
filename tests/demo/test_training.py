"""The demo's job: it really learns, the same seed does the same, and it writes what a run should."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tui.demo import trainer

LOSS = re.compile(r"^epoch \d+/\d+ step \d+/\d+ loss (\d+\.\d+)", re.MULTILINE)


def train(out: Path, *words: str, torch: bool = False) -> str:
    """Run the job as its box does and give its log."""
    if torch and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: the demo trains in NumPy here")
    command = [sys.executable, "-u", trainer.__file__, "--out", str(out), "--pause", "0", *words]
    environment = {"PATH": os.environ["PATH"]} | ({} if torch else {"RGT_DEMO_NO_TORCH": "1"})
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True)
    return done.stdout


@pytest.mark.parametrize("torch", [False, True], ids=["numpy", "torch"])
def test_the_same_seed_has_the_same_losses_and_another_has_not(tmp_path: Path, torch: bool) -> None:
    first, again, other = (
        LOSS.findall(train(tmp_path / name, "--epochs", "1", "--seed", seed, torch=torch))
        for name, seed in (("a", "7"), ("b", "7"), ("c", "8"))
    )
    assert len(first) == 7
    assert first == again
    assert first != other


@pytest.mark.parametrize("torch", [False, True], ids=["numpy", "torch"])
def test_it_learns_and_leaves_predictions_metrics_and_checkpoints(tmp_path: Path, torch: bool) -> None:
    log = train(tmp_path, "--epochs", "12", torch=torch)
    assert ("torch is not installed" in log) is not torch
    losses = [float(loss) for loss in LOSS.findall(log)]
    assert sum(losses[-7:]) < 0.8 * sum(losses[:7])
    assert log.endswith("Training finished.\n")
    suffix = ".pt" if torch else ".safetensors"
    kept = sorted(path.name for path in tmp_path.glob("ckpt-*"))
    assert kept == [f"ckpt-{epoch:04d}{suffix}" for epoch in (11, 12)]  # a finished run leaves the last two
    assert not list(tmp_path.glob("*.tmp"))
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics == recomputed(tmp_path / "predictions.csv")
    assert metrics["accuracy"] > 0.5  # three classes: a guess is right in a third
    if torch:
        loaded(tmp_path / "best.pt")
    else:
        from safetensors.numpy import load_file

        assert load_file(tmp_path / "best.safetensors")["w1"].shape == (2, 32)


@pytest.mark.parametrize("torch", [False, True], ids=["numpy", "torch"])
def test_the_same_command_goes_on_to_the_same_end(tmp_path: Path, torch: bool) -> None:
    """The newest checkpoint is torn, as by a kill while it was written: the one before counts."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(whole, "--epochs", "4", torch=torch)
    train(cut, "--epochs", "3", torch=torch)
    newest = max(cut.glob("ckpt-*"))
    newest.write_bytes(newest.read_bytes()[:100])
    log = train(cut, "--epochs", "4", torch=torch)
    assert f"{newest.name} does not load" in log
    assert "going on after ckpt-0002" in log
    assert "epoch 2/4" not in log
    assert (cut / "predictions.csv").read_bytes() == (whole / "predictions.csv").read_bytes()
    assert re.search(r"^checkpoint saved: step 96, \d+ bytes in \d+\.\d\d s$", log, re.MULTILINE)


def recomputed(predictions: Path) -> dict[str, object]:
    """The metrics of a predictions file, from its rows alone."""
    with predictions.open() as handle:
        rows = list(csv.DictReader(handle))
    right, nll = 0, 0.0
    for row in rows:
        scores = [float(row[f"p{c}"]) for c in range(3)]
        right += scores.index(max(scores)) == int(row["target"])
        nll -= math.log(scores[int(row["target"])])
    return {
        "accuracy": round(right / len(rows), 6),
        "nll": pytest.approx(nll / len(rows), abs=1e-5),
        "samples": len(rows),
    }


def loaded(checkpoint: Path) -> None:
    """A checkpoint loads with nothing but tensors and plain values in it."""
    code = f"import torch; print(sorted(torch.load({str(checkpoint)!r}, weights_only=True)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "['model', 'optimizer', 'step']\n", done.stderr


def test_at_its_cap_of_files_it_fails_as_on_a_full_disk(tmp_path: Path) -> None:
    tree = tmp_path / "data"
    cap = ("--figures", "9", "--cap-tree", str(tree), "--file-cap", "60")
    command = [sys.executable, "-u", trainer.__file__, "--out", str(tree / "run"), "--pause", "0", *cap]
    environment = {"PATH": os.environ["PATH"], "RGT_DEMO_NO_TORCH": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode == 1
    assert "OSError: [Errno 28] No space left on device" in done.stderr
    assert 60 <= sum(1 for _ in tree.rglob("*")) < 75

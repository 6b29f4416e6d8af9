"""The checkpoint template under what kills runs: a training that was killed ends with the same weights."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tui.cli import main

torch = pytest.importorskip("torch")

TRAIN = """\
import os, random, sys, time
import torch
from checkpoint import Checkpoints

torch.set_num_threads(1)
torch.manual_seed(7); random.seed(7)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 120)
state = Checkpoints("ckpt", every_s=0.05)
begin = state.load(model=model, optimizer=optimizer, scheduler=scheduler)
print("begin", begin, flush=True)
for step in range(begin, 120):
    x = torch.randn(16, 4)
    loss = (model(x) - x.sum(1, keepdim=True) * random.random()).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step(); scheduler.step()
    time.sleep(float(sys.argv[1]))
    if state.due():
        state.save(step + 1, model=model, optimizer=optimizer, scheduler=scheduler)
state.save(120, model=model, optimizer=optimizer, scheduler=scheduler)
"""


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["template", "checkpoint"]) == 0
    (tmp_path / "checkpoint.py").write_text(capsys.readouterr().out)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def start(folder: Path, where: str, pause: float) -> subprocess.Popen[bytes]:
    place = folder / where
    place.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-u", str(folder / "train.py"), str(pause)],
        cwd=place,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
    )


def weights(folder: Path) -> dict[str, object]:
    state = torch.load(folder / "ckpt" / "step-000000120.pt", weights_only=True)
    return dict(state["parts"]["model"])


@pytest.mark.slow
def test_a_training_killed_three_times_ends_with_the_same_weights(made: Path) -> None:
    whole = start(made, "whole", 0.0)
    assert whole.wait(timeout=60) == 0
    chance = random.Random(3)
    for _ in range(3):
        killed = start(made, "killed", 0.03)
        assert killed.stdout is not None
        killed.stdout.readline()
        time.sleep(chance.uniform(0.5, 1.0))
        killed.send_signal(signal.SIGKILL)
        killed.wait(timeout=10)
        killed.stdout.close()
    last = start(made, "killed", 0.0)
    told, _ = last.communicate(timeout=60)
    assert last.returncode == 0
    assert b"resumed from" in told
    one, other = weights(made / "whole"), weights(made / "killed")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert len(list((made / "killed" / "ckpt").glob("step-*.pt"))) == 3


def test_a_damaged_newest_one_falls_back_and_none_left_stops(made: Path) -> None:
    first = start(made, "x", 0.0)
    assert first.wait(timeout=60) == 0
    kept = sorted((made / "x" / "ckpt").glob("step-*.pt"))
    kept[-1].write_bytes(kept[-1].read_bytes()[:300])
    again = start(made, "x", 0.0)
    told, _ = again.communicate(timeout=60)
    if len(kept) > 1:
        assert again.returncode == 0
        assert b"trying the one before" in told
    for path in (made / "x" / "ckpt").glob("step-*.pt"):
        path.write_bytes(b"x")
    none = start(made, "x", 0.0)
    told, _ = none.communicate(timeout=60)
    assert none.returncode != 0
    assert b"begin" not in told

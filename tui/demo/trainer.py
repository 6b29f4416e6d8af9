"""The job of the embedded fleet: a small model that really trains on data it makes.

Runs as a program on a demo box: ``python trainer.py --run NAME --out DIR …``. With torch it trains in torch
and saves ``.pt`` files; without, it says so in one line and trains in NumPy with safetensors.
It imports nothing of rgt, as no job on a rented box would.
"""

from __future__ import annotations

import argparse
import csv
import errno
import importlib.util
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

CLASSES = 3
FEATURES = 2
HIDDEN = 32
MOST_RATE = 1e37
"""Where a growing learning rate ends: beyond it the optimizer itself refuses, before the loss tells."""
Sample = tuple[list[float], int]


def make_data(count: int, seed: int) -> list[Sample]:
    """Points on three noisy spiral arms, and the arm each belongs to."""
    rng = random.Random(seed)
    data = []
    for _ in range(count):
        label = rng.randrange(CLASSES)
        radius = rng.uniform(0.1, 1.0)
        angle = 4 * radius + 2 * math.pi * label / CLASSES + rng.gauss(0, 0.12)
        data.append(([radius * math.cos(angle), radius * math.sin(angle)], label))
    return data


class Model(Protocol):
    """What the loop needs of a model, whichever library carries it."""

    suffix: str

    def step(self, batch: list[Sample], rate: float) -> float: ...

    def predict(self, points: list[list[float]]) -> list[list[float]]: ...

    def save(self, path: Path, step: int) -> None: ...

    def load(self, path: Path) -> None: ...


class TorchModel:
    """Two hidden layers in torch."""

    suffix = ".pt"

    def __init__(self, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self._torch = torch
        nn = torch.nn
        self._net = nn.Sequential(
            nn.Linear(FEATURES, HIDDEN),
            nn.Tanh(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.Tanh(),
            nn.Linear(HIDDEN, CLASSES),
        )
        self._optimizer = torch.optim.Adam(self._net.parameters())

    def step(self, batch: list[Sample], rate: float) -> float:
        torch = self._torch
        points = torch.tensor([p for p, _ in batch])
        labels = torch.tensor([c for _, c in batch])
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        loss = torch.nn.functional.cross_entropy(self._net(points), labels)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return float(loss.item())

    def predict(self, points: list[list[float]]) -> list[list[float]]:
        with self._torch.no_grad():
            scores: list[list[float]] = self._net(self._torch.tensor(points)).softmax(1).tolist()
        return scores

    def save(self, path: Path, step: int) -> None:
        state = {"model": self._net.state_dict(), "optimizer": self._optimizer.state_dict(), "step": step}
        self._torch.save(state, path)

    def load(self, path: Path) -> None:
        state = self._torch.load(path, weights_only=True)
        self._net.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])


class NumpyModel:
    """One hidden layer with plain gradient descent in NumPy."""

    suffix = ".safetensors"

    def __init__(self, seed: int) -> None:
        import numpy as np

        self._np = np
        rng = np.random.default_rng(seed)
        self._w1 = rng.normal(0, 1.0, (FEATURES, HIDDEN))
        self._b1 = np.zeros(HIDDEN)
        self._w2 = rng.normal(0, 0.3, (HIDDEN, CLASSES))
        self._b2 = np.zeros(CLASSES)

    def _forward(self, points: Any) -> tuple[Any, Any]:
        np = self._np
        hidden = np.tanh(points @ self._w1 + self._b1)
        scores = hidden @ self._w2 + self._b2
        scores = np.exp(scores - scores.max(1, keepdims=True))
        return hidden, scores / scores.sum(1, keepdims=True)

    def step(self, batch: list[Sample], rate: float) -> float:
        np = self._np
        rate *= 50  # no momentum here
        points = np.array([p for p, _ in batch])
        labels = np.array([c for _, c in batch])
        hidden, probabilities = self._forward(points)
        rows = np.arange(len(labels))
        loss = float(-np.log(probabilities[rows, labels] + 1e-9).mean())
        error = probabilities
        error[rows, labels] -= 1
        error /= len(labels)
        back = (error @ self._w2.T) * (1 - hidden**2)
        self._w2 -= rate * hidden.T @ error
        self._b2 -= rate * error.sum(0)
        self._w1 -= rate * points.T @ back
        self._b1 -= rate * back.sum(0)
        return loss

    def predict(self, points: list[list[float]]) -> list[list[float]]:
        scores: list[list[float]] = self._forward(self._np.array(points))[1].tolist()
        return scores

    def save(self, path: Path, step: int) -> None:
        from safetensors.numpy import save_file

        np = self._np
        tensors = {"w1": self._w1, "b1": self._b1, "w2": self._w2, "b2": self._b2, "step": np.array([step])}
        save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, str(path))

    def load(self, path: Path) -> None:
        from safetensors.numpy import load_file

        tensors = load_file(str(path))
        self._w1, self._b1, self._w2, self._b2 = (tensors[name] for name in ("w1", "b1", "w2", "b2"))


def new_model(seed: int) -> Model:
    """The best model this box can train; says in one line when torch is not there."""
    if os.environ.get("RGT_DEMO_NO_TORCH") != "1" and importlib.util.find_spec("torch") is not None:
        return TorchModel(seed)
    print("torch is not installed on this box: training in NumPy, checkpoints as safetensors", flush=True)
    return NumpyModel(seed)


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Write beside the target, sync, rename: a reader never meets half a file."""
    part = path.with_name(path.name + ".tmp")
    write(part)
    with part.open("rb") as handle:
        os.fsync(handle.fileno())
    part.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a small text file."""
    path.write_text(text + "\n")


class FileCap:
    """The simulated inode cap of a box: refuses new files as a full filesystem does."""

    def __init__(self, tree: Path, cap: int) -> None:
        self._tree, self._cap = tree, cap

    def check(self) -> None:
        used = sum(len(files) + len(folders) for _, folders, files in os.walk(self._tree))
        if self._cap and used >= self._cap:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._tree))


def train(args: argparse.Namespace, out: Path) -> None:
    """The whole job: go on from the newest checkpoint, train, evaluate, write predictions and metrics."""
    rng = random.Random(args.seed)
    data, held_out = make_data(1536, args.seed), make_data(512, args.seed + 1)
    model = new_model(args.seed)
    cap = FileCap(Path(args.cap_tree), args.file_cap) if args.cap_tree else None
    write_text(
        out / "config.json", json.dumps({"seed": args.seed, "epochs": args.epochs, "lr": args.lr}, indent=1)
    )
    step, batches = 0, len(data) // 64
    begun = restore(model, out)
    hoarded: list[bytearray] = []  # "augmented samples, kept in memory for speed"
    for epoch in range(1, args.epochs + 1):
        rng.shuffle(data)
        if epoch <= begun:  # the order of its samples is all that is left of it
            step += batches
            continue
        for index in range(batches):
            step += 1
            rate = min(args.lr * args.grow ** min(step, 600), MOST_RATE)
            loss = model.step(data[index * 64 : (index + 1) * 64], rate)
            if args.hoard:
                hoarded.append(bytearray(b"x" * (args.hoard << 20)))
            if index % 4 == 0 or index + 1 == batches:
                print(
                    f"epoch {epoch}/{args.epochs} step {index + 1}/{batches} loss {loss:.4f} lr {rate:g}",
                    flush=True,
                )
            if args.figures:
                write_figures(out / "vis", epoch, step, args.figures, cap)
            time.sleep(args.pause)
        accuracy = evaluate(model, held_out)[1]
        path = out / f"ckpt-{epoch:04d}{model.suffix}"
        started = time.monotonic()
        write_atomically(path, lambda part: model.save(part, step))  # noqa: B023 - called at once
        took, size = time.monotonic() - started, path.stat().st_size
        prune(out, model.suffix)
        print(f"checkpoint saved: step {step}, {size} bytes in {took:.2f} s", flush=True)
        print(f"epoch {epoch}/{args.epochs} done: val_acc {accuracy:.4f}, saved {path.name}", flush=True)
    finish(model, held_out, out)
    print("Training finished.", flush=True)


def restore(model: Model, out: Path) -> int:
    """Load the newest checkpoint that can be loaded; the epoch it was made after, 0 where there is none."""
    for path in sorted(out.glob(f"ckpt-*{model.suffix}"), reverse=True):
        try:
            model.load(path)
        except Exception as fault:  # noqa: BLE001 - whatever a library says of a torn file
            print(f"{path.name} does not load ({type(fault).__name__}); trying the one before", flush=True)
            continue
        print(f"going on after {path.name}", flush=True)
        return int(path.stem.removeprefix("ckpt-"))
    return 0


def evaluate(model: Model, samples: list[Sample]) -> tuple[list[list[float]], float]:
    """Class probabilities of every sample and the share that is right."""
    scores = model.predict([p for p, _ in samples])
    right = sum(
        max(range(CLASSES), key=s.__getitem__) == label for s, (_, label) in zip(scores, samples, strict=True)
    )
    return scores, right / len(samples)


def finish(model: Model, samples: list[Sample], out: Path) -> None:
    """Per-sample predictions with their targets, and the metrics computed from them."""
    scores, accuracy = evaluate(model, samples)
    nll = -sum(math.log(max(s[label], 1e-12)) for s, (_, label) in zip(scores, samples, strict=True)) / len(
        samples
    )

    def predictions(part: Path) -> None:
        with part.open("w", newline="") as handle:
            table = csv.writer(handle)
            table.writerow(["id", "target", *(f"p{c}" for c in range(CLASSES))])
            for number, (s, (_, label)) in enumerate(zip(scores, samples, strict=True)):
                table.writerow([number, label, *(f"{value:.8f}" for value in s)])

    write_atomically(out / "predictions.csv", predictions)
    metrics = {"accuracy": round(accuracy, 6), "nll": round(nll, 6), "samples": len(samples)}
    write_atomically(out / "metrics.json", lambda part: write_text(part, json.dumps(metrics, indent=1)))
    write_atomically(out / f"best{model.suffix}", lambda part: model.save(part, -1))
    prune(out, model.suffix, keep=2)


def write_figures(folder: Path, epoch: int, step: int, count: int, cap: FileCap | None) -> None:
    """One small file per sample: how real runs eat an inode quota."""
    folder.mkdir(exist_ok=True)
    if cap:
        cap.check()
    for number in range(count):
        (folder / f"e{epoch:04d}-s{step:06d}-{number:02d}.svg").write_text(
            "<svg xmlns='http://www.w3.org/2000/svg'/>\n"
        )


def prune(out: Path, suffix: str, keep: int = 5) -> None:
    """Keep the newest checkpoints only."""
    for old in sorted(out.glob(f"ckpt-*{suffix}"))[:-keep]:
        old.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.environ.get("RGT_RUN", "."))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--pause", type=float, default=0.25, help="seconds between steps")
    parser.add_argument("--figures", type=int, default=0, help="small files written at each step")
    parser.add_argument("--grow", type=float, default=1.0, help="factor on the learning rate at each step")
    parser.add_argument("--hoard", type=int, default=0, help="MiB kept in memory at each step")
    parser.add_argument("--cap-tree", default="", help="directory whose files count against --file-cap")
    parser.add_argument("--file-cap", type=int, default=0)
    args = parser.parse_args()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    train(args, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

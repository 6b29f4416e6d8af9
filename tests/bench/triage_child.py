"""One side of the triage figures, in a process of its own. Prints one JSON object.

python -m tests.bench.triage_child make KIND LOG SIZE WORDS | read LOG
"""

from __future__ import annotations

import json
import random
import re
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tui.triage.catalog import load
from tui.triage.engine import diagnose
from tui.triage.rules import compiled
from tui.triage.scan import scan

BLOCK = 1 << 20


def typical(rng: random.Random, step: int) -> str:
    """One line of a trainer's log."""
    loss, took = 2 + rng.random(), rng.random()
    forms = (
        f"2025-03-01 10:{step // 60 % 60:02}:{step % 60:02},{step % 1000:03} - INFO - step={step}"
        f" loss={loss:.4f} grad_norm={rng.random():.5f} lr={rng.random() * 1e-4:.3e}"
        f" tokens/s={rng.randint(9000, 20000)}\n",
        f"{{'loss': {loss}, 'grad_norm': {rng.random()}, 'learning_rate': {rng.random() * 1e-5},"
        f" 'epoch': {step / 9e5:.2f}}}\n",
        f"Epoch 3:  41%|####1     | {step}/9000000 [02:11<03:09,  {took:.2f}it/s, loss={loss:.3f}]\r",
        f"[rank{step % 8}]: iteration {step}/ 9000000 | elapsed time per iteration (ms): {4000 * took:.1f} |"
        f" lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {took:.3f} | number of nan iterations:   0 |\n",
    )
    if step % 200_001 == 200_000:
        return "WARNING: Connection refused, retrying in 3 s\n"
    return forms[step % len(forms)]


def unique(rng: random.Random, step: int, words: list[str]) -> str:
    return f"{' '.join(rng.choices(words, k=rng.randint(6, 24)))}.\n"


def make(kind: str, log: Path, size: int, words: Path) -> None:
    rng = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = ["".join(rng.choices(letters, range(26, 0, -1), k=rng.randint(2, 9))) for _ in range(30_000)]
    with log.open("wb") as file:
        step, written = 0, 0
        block = "".join(_lines(kind, rng, vocabulary, 0, 200_000))
        while written < size:
            # Figures differ from block to block; making every line anew would take longer than the bench.
            step += 1
            raw = block.replace("step=", f"step={step % 10}").encode()[: size - written]
            written += file.write(raw)
    rules = compiled(load())
    told = {word for one in rules.ready for pattern in one.match for word in pattern.words}
    told |= {word for one in rules.ready if one.reader for word in one.reader.words}
    words.write_text("\n".join(sorted(re.sub(r"([][\\.^$*+?(){}|])", r"\\\1", word) for word in told)) + "\n")


def _lines(kind: str, rng: random.Random, vocabulary: list[str], first: int, count: int) -> Iterator[str]:
    for step in range(first, first + count):
        yield typical(rng, step) if kind == "typical" else unique(rng, step, vocabulary)


def _blocks(log: Path) -> Iterator[bytes]:
    with log.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def read(log: Path) -> dict[str, float]:
    rules = compiled(load())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    diagnose(rules, scan(_blocks(log), rules.finder))
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "anonymous_mib": (after - before) / 1024}


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
        print(json.dumps({}))
    else:
        print(json.dumps(read(Path(sys.argv[2]))))

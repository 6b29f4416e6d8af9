"""One measurement in a process of its own: ``make FOLDER COUNT``, or ``load|structure|crc|whole FOLDER``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

_NAME = "m.pt"


def make(folder: Path, count: int) -> None:
    import torch

    torch.manual_seed(0)
    torch.save({f"layers.{n}.weight": torch.randn(2048, 2048) for n in range(count)}, folder / _NAME)


def load(folder: Path) -> float:
    import torch

    began = time.perf_counter()
    torch.load(folder / _NAME, weights_only=True)
    return time.perf_counter() - began


def judged(folder: Path, what: str) -> float:
    from tui.checkpoints.examine import Options, examine
    from tui.checkpoints.jailer import Jail
    from tui.checkpoints.one_file import judge_file

    with Jail() as jail:
        began = time.perf_counter()
        if what == "whole":
            word = examine(str(folder), Options(jail=jail, digests=True)).checkpoints[0].verdict
        else:
            word = judge_file(str(folder / _NAME), _NAME, crc=what == "crc").verdict.verdict
        taken = time.perf_counter() - began
    if word != "ok":
        raise RuntimeError(f"a good file was called {word}")
    return taken


def anonymous_mib() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    answer: dict[str, Any] = {}
    if what == "make":
        make(folder, int(sys.argv[3]))
    else:
        answer["seconds"] = load(folder) if what == "load" else judged(folder, what)
        answer["anonymous_mib"] = anonymous_mib()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()

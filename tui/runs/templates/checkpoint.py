"""Checkpoints that survive a kill at any moment, and a start that always goes on from the newest good one.

Copy this file beside your training script. It needs torch and nothing else.

    state = Checkpoints(os.path.join(os.environ.get("RGT_RUN", "."), "ckpt"))
    begin = state.load(model=model, optimizer=optimizer, scheduler=scheduler)  # 0 at the first start
    for step in range(begin, total):
        ...
        if state.due():
            state.save(step + 1, model=model, optimizer=optimizer, scheduler=scheduler)

The order of the samples after a resume is the data loader's affair: seed it by `step`, or save its state as
one more keyword argument that has `state_dict()` and `load_state_dict()`.
"""

import os
import pickle
import random
import re
import time
from pathlib import Path
from typing import Any

import torch

_NAME = re.compile(r"step-(\d{9})\.pt")
_DAMAGED = (RuntimeError, ValueError, KeyError, EOFError, OSError, pickle.UnpicklingError)


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: where they lie; made if it is missing.
        keep: how many of the newest stay. At least two: the newest may be one that a full disk cut short.
        every_s: seconds between two saves, by default RGT_CHECKPOINT_EVERY_S, else 900. The square root of
            2 × (seconds a save takes) × (seconds between two failures) loses the least time (Young 1974):
            5 s a save and a kill a day make 930 s. Each save tells its time; `rgt cadence` works it out.
    """

    def __init__(self, folder: str | Path, keep: int = 3, every_s: float | None = None) -> None:
        self.folder = Path(folder)
        self.keep = max(2, keep)
        self.every_s = float(os.environ.get("RGT_CHECKPOINT_EVERY_S", 900)) if every_s is None else every_s
        self.saved_at = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)

    def due(self) -> bool:
        """Whether it is time to save again."""
        return time.monotonic() - self.saved_at >= self.every_s

    def save(self, step: int, **parts: Any) -> None:
        """Write a checkpoint: whole under its name, or not at all.

        Args:
            step: how many steps are done.
            parts: whatever has `state_dict()`: model, optimizer, scheduler, scaler, sampler.
        """
        state = {
            "step": step,
            "parts": {name: part.state_dict() for name, part in parts.items()},
            "torch_rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "python_rng": repr(random.getstate()),
        }
        final = self.folder / f"step-{step:09d}.pt"
        partial = final.with_suffix(".pt.part")
        began = time.monotonic()
        try:
            with partial.open("wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(final)
        finally:
            partial.unlink(missing_ok=True)  # on a full disk a torn one would hold the room that is missing
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self.saved_at = time.monotonic()
        took, size = self.saved_at - began, final.stat().st_size
        print(f"checkpoint saved: step {step}, {size} bytes in {took:.2f} s", flush=True)
        for old in self._newest_first()[self.keep :]:
            old.unlink()

    def load(self, **parts: Any) -> int:
        """Restore the newest checkpoint that loads into `parts`; returns its step, 0 where there is none.

        One that does not load stays where it is and is told; the one before it is taken. If none of them
        loads, it raises: a run that silently began again at 0 would overwrite what is left.
        """
        found = self._newest_first()
        for path in found:
            try:
                state = torch.load(path, map_location="cpu", weights_only=True)
                for name, part in parts.items():
                    part.load_state_dict(state["parts"][name])
            except _DAMAGED as fault:
                print(f"checkpoint {path} does not load ({fault}); trying the one before", flush=True)
                continue
            torch.set_rng_state(state["torch_rng"])
            if state["cuda_rng"] and torch.cuda.is_available():
                torch.cuda.set_rng_state_all(state["cuda_rng"])
            random.setstate(_read_rng(state["python_rng"]))
            print(f"resumed from {path} at step {state['step']}", flush=True)
            return int(state["step"])
        if found:
            raise RuntimeError(
                f"none of the {len(found)} checkpoints in {self.folder} loads; none was changed"
            )
        return 0

    def _newest_first(self) -> list[Path]:
        return sorted((path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def _read_rng(text: str) -> tuple[int, tuple[int, ...], float | None]:
    """Python's generator state from its `repr`, without evaluating anything."""
    version, rest = text.strip("() ").split(",", 1)
    numbers, gauss = rest.rsplit(",", 1)
    inside = numbers.strip().strip("()")
    state = tuple(int(number) for number in inside.split(",") if number.strip())
    return int(version), state, None if gauss.strip() == "None" else float(gauss)

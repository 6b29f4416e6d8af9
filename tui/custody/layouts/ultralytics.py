"""Ultralytics: ``args.yaml``, ``results.csv`` and ``weights/{best,last}.pt`` in one folder a run."""

from __future__ import annotations

from tui.custody.layouts.tree import Claim, Tree, join

_MUST = ("weights/best.pt", "weights/last.pt", "results.csv")


def claim(tree: Tree) -> Claim | None:
    """What its runs must have. The checkpoints themselves are single files like others."""
    runs = [
        folder
        for folder, names in tree.folders.items()
        if "args.yaml" in names and "weights" in tree.subfolders.get(folder, ())
    ]
    if not runs:
        return None
    missing = [join(run, name) for run in runs for name in _MUST if join(run, name) not in tree.files]
    return Claim("ultralytics", required_missing=tuple(missing))

"""One file is one checkpoint: plain PyTorch, Lightning, Ultralytics, Keras.

A series is what has the same name but for its numbers; the numbers order it, since copying changes times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from tui.custody.layouts import deepspeed
from tui.custody.layouts.shards import distributed
from tui.custody.layouts.tree import (
    PINNED,
    Claim,
    Dangling,
    Generation,
    Tree,
    finished_name,
    is_weights,
    join,
    numbers,
    without_numbers,
)

_ENOUGH = 3  # files of a series, from which on one of another size is odd
_ALIKE = 0.02
_CUT_BELOW = 0.9
_COMPANIONS = ("optimizer", "scheduler", "rng_state", "scaler", "training_args")


def pointers(tree: Tree) -> list[str]:
    """Small files that name a checkpoint (detectron2, TensorFlow), whose contents are needed."""
    return [path for path in tree.files if path.rpartition("/")[2] == "last_checkpoint"]


def claim(tree: Tree, taken: frozenset[str] = frozenset()) -> Claim | None:
    """Every checkpoint-like file that belongs to nothing larger.

    Args:
        taken: files of generations that were recognised already.
    """
    generations = [
        _generation(tree, path)
        for path, entry in tree.files.items()
        if path not in taken and finished_name(path) is None and _counts(path, entry.size)
    ]
    generations = _cut_ones(tree, generations)
    dangling = tuple(_dangling(tree))
    if not generations and not dangling:
        return None
    return Claim("plain", tuple(generations), dangling=dangling)


def _cut_ones(tree: Tree, generations: list[Generation]) -> list[Generation]:
    """Mark what is much smaller than all others of its series, which have one size: a save that was cut."""
    series: dict[str, list[int]] = defaultdict(list)
    for one in generations:
        series[one.series].append(tree.files[one.name].size)
    return [_marked(one, tree.files[one.name].size, series[one.series]) for one in generations]


def _marked(one: Generation, size: int, sizes: list[int]) -> Generation:
    usual = sorted(sizes)[len(sizes) // 2]
    alike = sum(abs(other - usual) <= usual * _ALIKE for other in sizes)
    if one.missing or len(sizes) < _ENOUGH or alike < len(sizes) - 1 or size > usual * _CUT_BELOW:
        return one
    return replace(one, missing=(f"its end: {size} bytes, where the others have about {usual}",))


def _counts(path: str, size: int) -> bool:
    name = path.rpartition("/")[2]
    return is_weights(path, size) and not name.startswith(_COMPANIONS)


def _generation(tree: Tree, path: str) -> Generation:
    folder, _, name = path.rpartition("/")
    missing = ["its bytes"] if tree.empty(path) else []
    if f"{path}.aria2" in tree.files:
        missing.append("its end: aria2 has not finished it")
    return Generation(
        path,
        _layout(tree, folder, name),
        join(without_numbers(folder), without_numbers(name)),
        numbers(path),
        (path,),
        tuple(missing),
        pinned=bool(PINNED.search(name)),
    )


def _layout(tree: Tree, folder: str, name: str) -> str:
    parent, _, own = folder.rpartition("/")
    if own == "weights" and "args.yaml" in tree.folders.get(parent, ()):
        return "ultralytics"
    return "lightning" if name.endswith(".ckpt") else "plain"


def _dangling(tree: Tree) -> Iterator[Dangling]:
    for path in pointers(tree):
        named = tree.texts.get(path, b"").strip().decode("utf-8", "surrogateescape")
        if not named or len(named) > 255 or "\n" in named or named.startswith("/"):
            continue  # an absolute name may say where the file lay on another machine
        if join(path.rpartition("/")[0], named) not in tree.files:
            yield Dangling(path, named)


def folders(tree: Tree) -> Claim | None:
    """Lightning's sharded checkpoints: a folder ``*.ckpt``, in torch's distributed format or DeepSpeed's."""
    generations = []
    for folder in tree.folders:
        if not folder.endswith(".ckpt"):
            continue
        missing = distributed(tree, folder)
        if missing is not None and "meta.pt" not in tree.folders[folder]:
            missing = (*missing, "meta.pt")
        tags = [
            path for path in tree.folders if path.startswith(f"{folder}/") and deepspeed.is_tag(tree, path)
        ]
        if missing is None:
            missing = tuple(lack for tag in tags for lack in deepspeed.lacks(tree, tag))
            missing = missing if tags else ("everything: the folder holds no checkpoint",)
        generations.append(
            Generation(
                folder,
                "lightning",
                without_numbers(folder),
                numbers(folder),
                tuple(tree.below(folder)),
                missing,
                pinned=bool(PINNED.search(folder.rpartition("/")[2])),
            )
        )
    return Claim("lightning", tuple(generations)) if generations else None

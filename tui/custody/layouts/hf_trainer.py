"""HF Trainer: folders ``checkpoint-STEP`` with weights, optimizer and, at the end, ``trainer_state.json``.

``Trainer._save_checkpoint`` writes the weights first and the trainer's state after the optimizer's, and
``save_total_limit`` removes old folders file by file: so a folder may be cut at either end.
"""

from __future__ import annotations

import re
from collections import Counter

from tui.custody.layouts import deepspeed
from tui.custody.layouts.shards import distributed, shard_sets
from tui.custody.layouts.tree import Claim, Generation, Tree, join
from tui.model.custody import Refusal

_FOLDER = re.compile(r"(?:^|/)(?P<prefix>checkpoint)-(?P<step>\d+)\Z")
_WEIGHTS = (
    "model.safetensors",
    "pytorch_model.bin",
    "adapter_model.safetensors",
    "adapter_model.bin",
    "tf_model.h5",
    "flax_model.msgpack",
)
_STATE = "trainer_state.json"
_COMPANIONS = re.compile(
    r"(?:optimizer\.(?:pt|bin)|scheduler\.pt|scaler\.pt|rng_state(?:_\d+)?\.pth|training_args\.bin)\Z"
)


def claim(tree: Tree) -> Claim | None:
    """Every ``checkpoint-STEP`` of a trainer, and a final model beside them."""
    folders = [folder for folder in tree.folders if _FOLDER.search(folder) and _is_trainers(tree, folder)]
    if not folders:
        return None
    refusals: list[Refusal] = []
    generations: list[Generation] = []
    for parent in dict.fromkeys(folder.rpartition("/")[0] for folder in folders):
        own = [folder for folder in folders if folder.rpartition("/")[0] == parent]
        usual = _usual_companions(tree, own)
        for folder in own:
            missing, found = _missing(tree, folder, usual)
            refusals += found
            match = _FOLDER.search(folder)
            assert match is not None
            generations.append(
                Generation(
                    folder,
                    "hf-trainer",
                    join(parent, "checkpoint-#"),
                    (int(match["step"][:18]),),
                    tuple(tree.below(folder)),
                    missing,
                )
            )
        generations += _final(tree, parent, refusals)
    return Claim("hf-trainer", tuple(generations), refusals=tuple(refusals))


def _is_trainers(tree: Tree, folder: str) -> bool:
    """Also an empty folder, made before the save began; not another framework's of the same name."""
    names = tree.folders[folder]
    known = _STATE in names or any(name in names for name in _WEIGHTS) or any(map(_COMPANIONS.match, names))
    return known or bool(shard_sets(tree, folder)) or not tree.below(folder)


def _missing(tree: Tree, folder: str, usual: set[str]) -> tuple[tuple[str, ...], tuple[Refusal, ...]]:
    names = set(tree.folders[folder])
    missing = [] if _STATE in names else [f"{_STATE}, which is written last"]
    lacks, refusals = _weights_missing(tree, folder)
    missing += lacks
    missing += sorted(usual - names)
    missing += [f"the bytes of {name}" for name in sorted(names) if tree.empty(join(folder, name))]
    for name in tree.subfolders.get(folder, ()):
        below = join(folder, name)
        if deepspeed.is_tag(tree, below):
            missing += [join(name, lack) for lack in deepspeed.lacks(tree, below)]
        missing += [join(name, lack) for lack in distributed(tree, below) or ()]
    return tuple(missing), refusals


def _weights_missing(tree: Tree, folder: str) -> tuple[list[str], tuple[Refusal, ...]]:
    names = tree.folders[folder]
    sets = shard_sets(tree, folder)
    refusals = tuple(refusal for one in sets for refusal in one.refusals)
    if any(name in names for name in _WEIGHTS):
        return [], refusals
    if sets:
        best = min(sets, key=lambda one: len(one.missing))
        return list(best.missing), refusals
    below = [join(folder, name) for name in tree.subfolders.get(folder, ())]
    if any(deepspeed.is_tag(tree, one) or distributed(tree, one) is not None for one in below):
        return [], refusals
    return ["weights (model.safetensors, pytorch_model.bin, shards or an adapter)"], refusals


def _usual_companions(tree: Tree, folders: list[str]) -> set[str]:
    """What most checkpoints of the run have: one that lacks it was cut while it was written or removed."""
    found = Counter(name for folder in folders for name in tree.folders[folder] if _COMPANIONS.match(name))
    return {name for name, count in found.items() if 2 * count > len(folders)}


def _final(tree: Tree, parent: str, refusals: list[Refusal]) -> list[Generation]:
    """A model saved beside the checkpoints, by ``trainer.save_model()``."""
    names = tree.folders.get(parent, ())
    whole = [name for name in _WEIGHTS if name in names]
    sets = shard_sets(tree, parent)
    if not whole and not sets:
        return []
    refusals += (refusal for one in sets for refusal in one.refusals)
    missing = [] if whole else [lack for one in sets for lack in one.missing]
    missing += [f"the bytes of {name}" for name in whole if tree.empty(join(parent, name))]
    files = [*(join(parent, name) for name in whole), *(path for one in sets for path in one.files)]
    name = join(parent, "model")
    return [Generation(name, "hf-trainer", name, (), tuple(files), tuple(missing), pinned=True)]

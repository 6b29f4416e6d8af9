"""DeepSpeed ZeRO: one folder a tag, a pair of files a rank, and ``latest`` beside it that names the tag.

File names are those of deepspeed/runtime/engine.py: ``mp_rank_MM_model_states.pt``,
``[bf16_]zero_pp_rank_R_mp_rank_MM_{optim,model}_states.pt``. The world size stands only inside the files;
ranks that are missing at the end show by comparing with the other tags of the same folder.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from tui.custody.layouts.tree import Claim, Dangling, Generation, Tree, join, numbers

_MODEL = re.compile(r"mp_rank_(\d+)(?:_\w+)?_model_states\.pt\Z")
_RANK = re.compile(
    r"(?P<start>(?:bf16_|fp16_)?zero_pp_rank_)(?P<rank>\d+)(?P<end>_mp_rank_(?P<mp>\d+)_(?P<what>optim|model)_states\.pt)\Z"
)
_MOST = 100_000

Kinds = dict[tuple[str, str], set[int]]
"""Ranks by the parts of the name before and after the rank."""


def pointers(tree: Tree) -> Iterator[str]:
    """The ``latest`` files, whose contents are needed."""
    return (path for path in tree.files if path.rpartition("/")[2] == "latest")


def is_tag(tree: Tree, folder: str) -> bool:
    """Whether a folder holds what one DeepSpeed save writes."""
    return any(_MODEL.match(name) or _RANK.match(name) for name in tree.folders.get(folder, ()))


def lacks(tree: Tree, folder: str, siblings: Kinds | None = None) -> tuple[str, ...]:
    """The files that a tag's folder lacks.

    Args:
        siblings: the ranks that other tags of the same run have.
    """
    names = set(tree.folders.get(folder, ()))
    kinds = _kinds(names)
    wanted = _merged(kinds, siblings or {})
    missing = [
        f"{start}{rank}{end}"
        for (start, end), ranks in wanted.items()
        for rank in range(min(max(ranks) + 1, _MOST))
        if rank not in kinds.get((start, end), ())
    ]
    has_model = any(_MODEL.match(name) for name in names) or any("model_states" in end for _, end in kinds)
    if not has_model:
        missing.append("mp_rank_00_model_states.pt")
    missing += [f"the bytes of {name}" for name in sorted(names) if tree.empty(join(folder, name))]
    return tuple(missing)


def claim(tree: Tree) -> Claim | None:
    """Tags whose folder is not part of another framework's checkpoint."""
    tags: dict[str, list[str]] = defaultdict(list)
    for folder in tree.folders:
        if is_tag(tree, folder):
            tags[folder.rpartition("/")[0]].append(folder)
    if not tags:
        return None
    generations: list[Generation] = []
    dangling: list[Dangling] = []
    for parent, folders in tags.items():
        newest = _latest(tree, parent)
        if newest is not None and join(parent, newest) not in folders:
            dangling.append(Dangling(join(parent, "latest"), newest))
        for folder in folders:
            others = [_kinds(tree.folders[other]) for other in folders if other != folder]
            generations.append(
                Generation(
                    folder,
                    "deepspeed",
                    join(parent, "deepspeed"),
                    numbers(folder.rpartition("/")[2]),
                    tuple(tree.below(folder)),
                    lacks(tree, folder, _merged(*others)),
                    pinned=newest is not None and folder == join(parent, newest),
                )
            )
    return Claim("deepspeed", tuple(generations), dangling=tuple(dangling))


def _latest(tree: Tree, parent: str) -> str | None:
    raw = tree.texts.get(join(parent, "latest"))
    return None if raw is None else raw.strip().decode("utf-8", "surrogateescape")


def _kinds(names: set[str] | tuple[str, ...]) -> Kinds:
    kinds: Kinds = defaultdict(set)
    for name in names:
        if match := _RANK.match(name):
            kinds[match["start"], match["end"]].add(int(match["rank"]))
    return dict(kinds)


def _merged(*several: Kinds) -> Kinds:
    merged: Kinds = defaultdict(set)
    for kinds in several:
        for key, ranks in kinds.items():
            merged[key] |= ranks
    return dict(merged)

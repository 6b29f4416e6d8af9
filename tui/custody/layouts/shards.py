"""Checkpoints of several files: shards with an index (safetensors, .bin), and torch's distributed format."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tui.custody.codes import refusal
from tui.custody.layouts.tree import Claim, Generation, Tree, join, numbers, without_numbers
from tui.custody.names import leaves_tree
from tui.model.custody import Refusal

_SHARD = re.compile(
    r"(?P<stem>.+)-(?P<number>\d{2,6})-of-(?P<total>\d{2,6})(?P<end>\.safetensors|\.bin|\.pt)\Z"
)
_INDEX = re.compile(r"(?P<stem>.+?)(?P<end>\.safetensors|\.bin|\.pt)\.index\.json\Z")
_DISTCP = re.compile(r"__(?P<rank>\d+)_(?P<part>\d+)\.distcp\Z")
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class ShardSet:
    """The shards of one checkpoint in one folder.

    Attributes:
        files: index and shards that are there and belong to it.
        missing: names that belong to it and are not there.
        foreign: shards of another split, left over from an earlier save.
    """

    folder: str
    stem: str
    files: tuple[str, ...]
    missing: tuple[str, ...]
    foreign: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def indexes(tree: Tree) -> Iterator[str]:
    """The index files, whose contents are needed."""
    return (path for path in tree.files if _INDEX.search(path))


def shard_sets(tree: Tree, folder: str) -> list[ShardSet]:
    """Every sharded checkpoint whose files lie in `folder` itself."""
    shards: dict[tuple[str, str], dict[int, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    found: dict[tuple[str, str], str | None] = {}
    for name in tree.folders.get(folder, ()):
        if match := _SHARD.match(name):
            key = match["stem"], match["end"]
            shards[key][int(match["total"])].append((int(match["number"]), name))
            found.setdefault(key, None)
        elif match := _INDEX.match(name):
            found[match["stem"], match["end"]] = name
    return [_set(tree, folder, key, index, shards.get(key, {})) for key, index in found.items()]


def _set(
    tree: Tree,
    folder: str,
    key: tuple[str, str],
    index: str | None,
    shards: dict[int, list[tuple[int, str]]],
) -> ShardSet:
    stem, end = key
    here = {name for several in shards.values() for _, name in several}
    if index is None:
        total = max(shards)
        # how many digits the numbers have is the writer's choice: taken from a name that is there
        sample = shards[total][0][1]
        wanted = {_nth(sample, number) for number in range(1, min(total, _MOST) + 1)}
        if re.search(r"-0+-of-", sample):  # counted from 0
            wanted = {_nth(sample, number) for number in range(min(total, _MOST))}
        missing = [f"{stem}{end}.index.json", *sorted(wanted - here)]
        return _shard_set(tree, folder, stem, here & wanted, missing, here - wanted)
    path = join(folder, index)
    everything = (path, *(join(folder, name) for name in sorted(here)))
    if path not in tree.texts:
        return ShardSet(folder, stem, everything, (f"{index}, which could not be read",))
    wanted_or_none = _named(tree.texts[path])
    if wanted_or_none is None:
        damaged = refusal("layout-damaged", "it is no index of shards", path)
        return ShardSet(folder, stem, everything, (f"a readable {index}",), refusals=(damaged,))
    outside = sorted(name for name in wanted_or_none if leaves_tree(name) or "/" in name)
    refusals = tuple(refusal("leaves-tree", f"it names {name[:200]}", path) for name in outside[:3])
    names = wanted_or_none - set(outside)
    there = {name for name in names if join(folder, name) in tree.files}
    found = _shard_set(tree, folder, stem, {index} | there, sorted(names - there), here - names)
    return ShardSet(folder, stem, found.files, (*found.missing, *outside), found.foreign, refusals)


def _shard_set(
    tree: Tree, folder: str, stem: str, there: set[str], missing: list[str], foreign: set[str]
) -> ShardSet:
    empty = [f"the bytes of {name}" for name in sorted(there) if tree.empty(join(folder, name))]
    return ShardSet(
        folder,
        stem,
        tuple(join(folder, name) for name in sorted(there)),
        (*missing, *empty),
        tuple(join(folder, name) for name in sorted(foreign)),
    )


def _named(raw: bytes) -> set[str] | None:
    """The file names of an index's weight map; None when it is none."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    names = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(names, dict) or not all(isinstance(name, str) and name for name in names.values()):
        return None
    return set(names.values()) or None


def _nth(sample: str, number: int) -> str:
    match = _SHARD.match(sample)
    assert match is not None
    return f"{match['stem']}-{number:0{len(match['number'])}d}-of-{match['total']}{match['end']}"


def generations_of(one: ShardSet) -> Iterator[Generation]:
    """The checkpoint that a set of shards is, and each shard beside it that no index names."""
    name = join(one.folder, one.stem)
    series = without_numbers(name)
    yield Generation(name, "safetensors", series, numbers(name), one.files, one.missing)
    for path in one.foreign:
        lacks = ("a place in the index: it is left over from another save",)
        yield Generation(path, "safetensors", series, (), (path,), lacks)


def distributed(tree: Tree, folder: str) -> tuple[str, ...] | None:
    """What a folder of torch.distributed.checkpoint lacks; None when it is none.

    ``.metadata`` is written last, by rank 0, after every rank wrote its ``__RANK_PART.distcp``.
    """
    names = tree.folders.get(folder, ())
    parts = [match for name in names if (match := _DISTCP.match(name))]
    if not parts:
        return (".distcp files",) if ".metadata" in names else None
    missing = [] if ".metadata" in names else [".metadata, which is written last"]
    ranks = {int(match["rank"]) for match in parts}
    missing += [f"__{rank}_0.distcp" for rank in range(min(max(ranks), _MOST)) if rank not in ranks]
    missing += [f"the bytes of {name}" for name in names if tree.empty(join(folder, name))]
    return tuple(missing)


def claim(tree: Tree) -> Claim | None:
    """Sharded checkpoints in any folder, for runs that no other adapter knows."""
    generations: list[Generation] = []
    refusals: list[Refusal] = []
    for folder in tree.folders:
        for one in shard_sets(tree, folder):
            refusals += one.refusals
            generations += generations_of(one)
        lacks = distributed(tree, folder)
        if lacks is not None:
            files = tuple(tree.below(folder))
            generations.append(
                Generation(folder, "distributed", without_numbers(folder), numbers(folder), files, lacks)
            )
    if not generations:
        return None
    return Claim("safetensors", tuple(generations), refusals=tuple(refusals))

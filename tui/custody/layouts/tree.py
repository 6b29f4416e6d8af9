"""A listing that can be asked by path and by folder, and what an adapter claims of it."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tui.custody.listing import Entry, Listing
from tui.model.custody import Refusal

Order = tuple[int, ...]

PINNED = re.compile(r"(?:^|[._-])(?:best|last|latest|final)(?:[._-]|$)", re.IGNORECASE)
"""Names that programs give to the one checkpoint that counts."""

_WEIGHTS = (
    ".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".keras", ".onnx", ".gguf", ".ggml", ".msgpack", ".distcp",
    ".pdparams", ".pdopt", ".params", ".caffemodel", ".tflite", ".orbax", ".tar.pth", ".pth.tar", ".engine",
)  # fmt: skip
_MAYBE_WEIGHTS = (".bin", ".pkl", ".pickle", ".npz", ".model", ".tar")
_MAYBE_FROM = 1 << 20
_NUMBER = re.compile(r"\d+")
_FIGURE = re.compile(r"\d+\.\d+")  # a metric in the name says nothing of the order
_COUNTED = tuple(
    re.compile(rf"(?:^|[^a-z]){word}s?[=_-]?(\d{{1,18}})", re.IGNORECASE)
    for word in ("(?:global_?)?step", "iter(?:ation)?", "epoch", "ep")
)

_PARTIAL_END = (
    ".tmp", ".temp", ".part", ".partial", ".incomplete", ".crdownload", ".filepart", ".download", ".aria2",
    ".swp", "~",
)  # fmt: skip
_RSYNC = re.compile(r"\.(?P<name>.+)\.[A-Za-z0-9]{6}\Z")


@dataclass(frozen=True, slots=True)
class Tree:
    """A run's folder.

    Attributes:
        texts: contents of the small files that tell what belongs together, where they could be read.
    """

    files: Mapping[str, Entry]
    folders: Mapping[str, tuple[str, ...]]  # names of the files in each folder, also of empty ones
    subfolders: Mapping[str, tuple[str, ...]]
    links: Mapping[str, Entry]
    odd: Mapping[str, Entry]  # pipes, sockets, devices
    texts: Mapping[str, bytes] = field(default_factory=dict)

    def below(self, folder: str) -> list[str]:
        """Every file in a folder and its subfolders."""
        found: list[str] = []
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            found += [join(here, name) for name in self.folders.get(here, ())]
            waiting += [join(here, name) for name in self.subfolders.get(here, ())]
        return found

    def empty(self, path: str) -> bool:
        """Whether a file that is there has no bytes."""
        entry = self.files.get(path)
        return entry is not None and entry.size == 0


def tree_of(listing: Listing, texts: Mapping[str, bytes] | None = None) -> Tree:
    """Index a listing."""
    files, links, odd = {}, {}, {}
    folders: dict[str, list[str]] = defaultdict(list, {"": []})
    subfolders: dict[str, list[str]] = defaultdict(list)
    for entry in listing.entries:
        parent, _, name = entry.path.rpartition("/")
        if entry.kind == "f":
            files[entry.path] = entry
            folders[parent].append(name)
        elif entry.kind == "d":
            folders.setdefault(entry.path, [])
            subfolders[parent].append(name)
        elif entry.kind == "l":
            links[entry.path] = entry
        else:
            odd[entry.path] = entry
    return Tree(
        files,
        {path: tuple(names) for path, names in folders.items()},
        {path: tuple(names) for path, names in subfolders.items()},
        links,
        odd,
        texts or {},
    )


@dataclass(frozen=True, slots=True)
class Generation:
    """One checkpoint: a file, or a folder, or some files of a folder.

    Attributes:
        name: relative path of the file or folder; with a stem where a folder holds several.
        series: generations of one series replace each other; the newest of it counts.
        order: sorts a series, newest last.
        missing: what it lacks, in words or as names; empty when it is complete.
        pinned: the run's best, last or final one: kept whatever is newer.
    """

    name: str
    layout: str
    series: str
    order: Order
    files: tuple[str, ...]
    missing: tuple[str, ...] = ()
    pinned: bool = False

    @property
    def complete(self) -> bool:
        return not self.missing


class Dangling(NamedTuple):
    """A small file that names a checkpoint which is not there."""

    path: str
    named: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What one adapter recognised.

    Attributes:
        required_missing: files that a finished run of this layout must have and this one has not.
    """

    layout: str
    generations: tuple[Generation, ...] = ()
    required_missing: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    dangling: tuple[Dangling, ...] = ()


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def numbers(path: str) -> Order:
    """What orders a series: its step, then its epoch, then any number of its name, the last one first."""
    name = _FIGURE.sub("#", path.rpartition("/")[2])
    counted = tuple(int(found[1]) if (found := word.search(name)) else -1 for word in _COUNTED)
    return counted + tuple(int(found[0][:18]) for found in reversed(list(_NUMBER.finditer(name))))


def without_numbers(path: str) -> str:
    """What the generations of one series have in common."""
    return _NUMBER.sub("#", _FIGURE.sub("#", path))


def is_weights(path: str, size: int) -> bool:
    """Whether a file is checkpoint-like by its name, and by its size where the name alone does not tell."""
    name = posixpath.basename(path).lower()
    if name.endswith(_WEIGHTS):
        return True
    return name.endswith(_MAYBE_WEIGHTS) and size >= _MAYBE_FROM


def finished_name(path: str) -> str | None:
    """The name that a transfer or a save will give in the end; None for a name that is not "unfinished"."""
    folder, _, name = path.rpartition("/")
    match = _RSYNC.match(name)
    if match and "." in match["name"]:
        return join(folder, match["name"])
    if name.startswith(".~tmp~"):
        return join(folder, name[6:]) or None
    for end in _PARTIAL_END:
        if name.lower().endswith(end) and len(name) > len(end):
            return join(folder, name[: -len(end)])
    return None

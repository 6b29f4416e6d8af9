"""The folder as it lies there: names byte-exact, links never followed out of it, nothing opened."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import Literal

MAX_ENTRIES = 300_000
_MAX_LINKS = 40
"""Links in a row before it is called a loop, as in Linux."""

Type = Literal["file", "folder", "link", "special"]


@dataclass(slots=True, frozen=True)
class Entry:
    """One name in the folder. `path` is relative to it; `target` is what a link says, unresolved."""

    path: str
    type: Type
    size: int = 0
    mtime: float = 0.0
    mode: int = 0
    inode: tuple[int, int] = (0, 0)
    target: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> str:
        return self.path.rpartition("/")[0]


@dataclass(slots=True)
class Tree:
    """Everything below `root`. The root itself is the path ``""``.

    Attributes:
        unread: folders that could not be listed, with the reason.
        cut: there is more than `MAX_ENTRIES`.
    """

    root: str
    entries: dict[str, Entry] = field(default_factory=dict)
    folders: dict[str, dict[str, Entry]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    cut: bool = False

    def absolute(self, path: str) -> str:
        return os.path.join(self.root, path)  # noqa: PTH118 - a Path would normalise the name

    def links_to_one(self) -> set[str]:
        """Files that share their bytes with another name in the folder."""
        names: dict[tuple[int, int], list[str]] = {}
        for entry in self.entries.values():
            if entry.type == "file":
                names.setdefault(entry.inode, []).append(entry.path)
        return {path for paths in names.values() if len(paths) > 1 for path in paths}


def walk(root: str, only: str | None = None) -> Tree:
    """List a folder, or one file of it.

    Raises:
        OSError: the folder itself cannot be listed.
    """
    tree = Tree(root)
    if only is not None:
        entry = _entry(only, os.lstat(tree.absolute(only)), tree.absolute(only))
        tree.entries[only], tree.folders[""] = entry, {only: entry}
        return tree
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(tree.absolute(folder) if folder else root) as names:
                found = sorted(name.name for name in names)
        except OSError as fault:
            if not folder:
                raise
            tree.unread[folder] = fault.strerror or type(fault).__name__
            found = []
        tree.folders[folder] = {}
        for name in found:
            if len(tree.entries) >= MAX_ENTRIES:
                tree.cut = True
                return tree
            path = f"{folder}/{name}" if folder else name
            try:
                entry = _entry(path, os.lstat(tree.absolute(path)), tree.absolute(path))
            except OSError:
                continue  # it has just gone
            tree.entries[path] = tree.folders[folder][name] = entry
            if entry.type == "folder":
                waiting.append(path)
    return tree


def _entry(path: str, facts: os.stat_result, absolute: str) -> Entry:
    kind: Type = "special"
    target = ""
    if stat.S_ISREG(facts.st_mode):
        kind = "file"
    elif stat.S_ISDIR(facts.st_mode):
        kind = "folder"
    elif stat.S_ISLNK(facts.st_mode):
        kind, target = "link", os.readlink(absolute)  # noqa: PTH115 - a Path would normalise what it says
    inode = (facts.st_dev, facts.st_ino)
    return Entry(path, kind, facts.st_size, facts.st_mtime, facts.st_mode, inode, target)


@dataclass(slots=True, frozen=True)
class Resolved:
    """Where a link leads: ``inside`` with the entry (None: the root itself), or why nowhere."""

    state: Literal["inside", "outside", "dangling", "loop"]
    path: str = ""


def resolve(tree: Tree, link: Entry) -> Resolved:
    """Follow a link by names alone, step by step: nothing outside the folder is ever asked."""
    parts = [part for part in link.parent.split("/") if part]
    waiting = _steps(tree, link.target)
    if waiting is None:
        return Resolved("outside")
    if link.target.startswith("/"):
        parts = []
    links = 1
    while waiting:
        step = waiting.pop(0)
        if step == "..":
            if not parts:
                return Resolved("outside")
            parts.pop()
            continue
        path = "/".join((*parts, step))
        entry = tree.entries.get(path)
        if entry is None:
            return Resolved("dangling", path)
        if entry.type != "link":
            parts.append(step)
            continue
        links += 1
        more = _steps(tree, entry.target)
        if links > _MAX_LINKS:
            return Resolved("loop")
        if more is None:
            return Resolved("outside")
        parts = [] if entry.target.startswith("/") else parts
        waiting = more + waiting
    return Resolved("inside", "/".join(parts))


def _steps(tree: Tree, target: str) -> list[str] | None:
    """The names of a target one by one; None for an absolute one that leads elsewhere."""
    if target.startswith("/"):
        root = tree.root.rstrip("/")
        if target != root and not target.startswith(root + "/"):
            return None
        target = target[len(root) :]
    return [part for part in target.split("/") if part not in ("", ".")]

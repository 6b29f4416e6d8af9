"""Everything on the tiers that a verb destroys and that is no artifact: grouped, sized, each to be decided.

A group's name is what a decision is recorded by. Groups with checkpoint-like files carry a digest of their
content in the name, so that a decision about them does not cover a checkpoint that came later.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from tui.custody.kinds import cache_root, is_secrets, repository_roots
from tui.custody.layouts.tree import Generation, finished_name, is_weights
from tui.custody.listing import Entry
from tui.model.custody import Leftover
from tui.model.text import safe

MOST_GROUPS = 300
_EXAMPLES = 5

Kind = Literal["checkpoints", "unfinished", "repository", "cache", "system", "secrets", "files"]
_TITLES: Mapping[Kind, str] = {
    "checkpoints": "checkpoints in {}",
    "unfinished": "unfinished saves or transfers in {}",
    "repository": "git repository {}",
    "cache": "caches and installed packages in {}",
    "system": "operating system in {}",
    "secrets": "secrets of jobs in {}, which no copy takes along",
    "files": "other files in {}",
}


class Decision(NamedTuple):
    """What the operator decided about a group, and why."""

    word: Literal["keep", "scrap"]
    reason: str = ""


class Stray(NamedTuple):
    """A file that is no artifact. `path` is absolute."""

    path: str
    entry: Entry


class Counted(NamedTuple):
    """A folder of the operating system that was counted and not listed."""

    path: str
    files: int
    size: int


@dataclass(slots=True)
class _Group:
    kind: Kind
    folder: str
    strays: list[Stray] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Grouped:
    """The groups, checkpoint-like ones first, and the files of each by its name."""

    leftovers: tuple[Leftover, ...]
    members: Mapping[str, tuple[Stray, ...]]

    def undecided(self) -> tuple[Leftover, ...]:
        return tuple(one for one in self.leftovers if one.decision is None)

    def of_word(self, word: Literal["keep", "scrap"] | None) -> Iterator[Stray]:
        """The files of every group that was decided so."""
        for one in self.leftovers:
            if one.decision == word:
                yield from self.members[one.group]


def group(
    strays: Sequence[Stray],
    folders: Iterable[str],
    tops: Sequence[str],
    decisions: Mapping[str, Decision],
    *,
    generations: Sequence[Generation] = (),
    root: str = "/",
    system: Sequence[Counted] = (),
) -> Grouped:
    """Put strays into groups and apply the decisions.

    Args:
        folders: absolute paths of all folders, to find repositories.
        tops: absolute paths of the tiers and of the run's folder.
        decisions: by group name; a shell pattern is taken for groups without checkpoint-like files only.
        generations: checkpoints of the run that are not artifacts; each stays whole.
        root: what the generations' paths are relative to.
        system: folders that were counted only.
    """
    repositories = repository_roots(folders)
    whole = {
        posixpath.join(root, path): posixpath.join(root, one.name)
        for one in generations
        for path in one.files
    }
    groups: dict[tuple[Kind, str], _Group] = {}
    for stray in strays:
        kind, folder = _place(stray, repositories, tops, whole)
        groups.setdefault((kind, folder), _Group(kind, folder)).strays.append(stray)
    found = [_leftover(one, decisions) for one in _few(groups, tops)]
    counted = [_counted(one, decisions) for one in system]
    everything = sorted((*found, *counted), key=_rank)
    return Grouped(tuple(one for one, _ in everything), {one.group: strays for one, strays in everything})


def _place(
    stray: Stray, repositories: frozenset[str], tops: Sequence[str], whole: Mapping[str, str]
) -> tuple[Kind, str]:
    path = stray.path
    if path in whole:
        return "checkpoints", whole[path]
    cache = cache_root(path)
    if cache is not None:
        return "cache", cache
    folder = posixpath.dirname(path)
    if is_secrets(path):
        return "secrets", folder
    if finished_name(path) is not None:
        return "unfinished", folder
    if is_weights(path, stray.entry.size):
        return "checkpoints", folder
    above = folder
    while len(above) > 1:
        if above in repositories:
            return "repository", above
        above = posixpath.dirname(above)
    return "files", _near_top(path, tops)


def _near_top(path: str, tops: Sequence[str]) -> str:
    """The folder one level below the innermost tier; two below ``/``, where homes and mounts lie."""
    inside = [top for top in tops if path.startswith(top.rstrip("/") + "/")]
    top = max(inside, key=len, default="/").rstrip("/")
    parts = path[len(top) + 1 :].split("/")[:-1]
    return "/".join([top, *parts[: 1 if top else 2]]) or "/"


def _few(groups: dict[tuple[Kind, str], _Group], tops: Sequence[str]) -> list[_Group]:
    """At most `MOST_GROUPS`: beyond that the deepest folders are told together with their parents."""
    while len(groups) > MOST_GROUPS:
        deepest = max(folder.count("/") for _, folder in groups)
        merged: dict[tuple[Kind, str], _Group] = {}
        for (kind, folder), one in groups.items():
            above = (
                posixpath.dirname(folder) if folder.count("/") == deepest and folder not in tops else folder
            )
            merged.setdefault((kind, above), _Group(kind, above)).strays.extend(one.strays)
        if merged.keys() == groups.keys():
            break
        groups = merged
    return list(groups.values())


def _leftover(one: _Group, decisions: Mapping[str, Decision]) -> tuple[Leftover, tuple[Stray, ...]]:
    strays = sorted(one.strays)
    like = one.kind == "checkpoints" or any(_is_model(path, entry.size) for path, entry in strays)
    name = f"{one.kind}:{one.folder}"
    if like:
        name += f"#{_content(strays)}"
    sizes = {(entry.device, entry.inode): entry.size for _, entry in strays}  # a second name costs no bytes
    decision = _decision(name, like, decisions)
    leftover = Leftover(
        group=name,
        title=str(safe(_TITLES[one.kind].format(one.folder))),
        count=len(strays),
        size=sum(sizes.values()),
        examples=tuple(path for path, _ in strays[:_EXAMPLES]),
        checkpoint_like=like,
        decision=decision.word if decision else None,
        reason=decision.reason if decision else "",
    )
    return leftover, tuple(strays)


def _counted(one: Counted, decisions: Mapping[str, Decision]) -> tuple[Leftover, tuple[Stray, ...]]:
    name = f"system:{one.path}"
    decision = _decision(name, False, decisions)
    leftover = Leftover(
        group=name,
        title=str(safe(_TITLES["system"].format(one.path))),
        count=one.files,
        size=one.size,
        examples=(),
        decision=decision.word if decision else None,
        reason=decision.reason if decision else "",
    )
    return leftover, ()


def _decision(name: str, like: bool, decisions: Mapping[str, Decision]) -> Decision | None:
    if name in decisions:
        return decisions[name]
    if like:
        return None
    for pattern, decision in decisions.items():
        if "*" in pattern and decision.word == "scrap" and fnmatchcase(name, pattern):
            return decision
    return None


def _is_model(path: str, size: int) -> bool:
    """Whether a file among others is worth a look: packages bring many tiny ones for their tests."""
    return size >= 1 << 20 and is_weights(finished_name(path) or path, size)


def _content(strays: Iterable[Stray]) -> str:
    digest = hashlib.sha256()
    for path, entry in strays:
        digest.update(f"{path}\0{entry.size}\0{entry.modified_ns}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:12]


_LATE = {
    "checkpoints": 0,
    "unfinished": 2,
    "repository": 3,
    "files": 4,
    "cache": 5,
    "system": 6,
    "secrets": 7,
}
_ORDER: Mapping[str, int] = defaultdict(lambda: 9, _LATE)


def _rank(found: tuple[Leftover, tuple[Stray, ...]]) -> tuple[bool, int, int, str]:
    one = found[0]
    return not one.checkpoint_like, _ORDER[one.group.partition(":")[0]], -one.size, one.group

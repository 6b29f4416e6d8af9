"""Which checkpoints of a copy a run would go on from: the newest complete ones, each with all of its files.

A checkpoint may be a file, some files, or a folder of a trainer, of DeepSpeed or of torch's distributed
format. A file that names the one to load, such as DeepSpeed's ``latest``, goes along with what it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tui.checkpoints.names import POINTERS
from tui.custody.layouts.recognise import needed_texts, recognise
from tui.custody.layouts.tree import Generation, Order, Tree, finished_name, join, numbers, tree_of
from tui.custody.listing import Entry, Listing
from tui.model.failure import Exit, Failure
from tui.model.globs import matching
from tui.model.text import SafeText, safe

KEEP = 2
"""How many of the newest go over: the newest may be one that does not load."""

_UNREAD = ", which could not be read"
_WRITTEN_LAST = frozenset((".metadata", "trainer_state.json"))
_COUNTERS = 4  # the first figures of an order: step, iteration, epoch
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Found:
    """One file of a copy.

    Attributes:
        modified_ns: 0 where the copy does not tell it.
        apart: it lies in an archive of the copy, and can't be taken by itself.
    """

    size: int
    modified_ns: int = 0
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """What goes over.

    Attributes:
        files: by path in the copy, in the order in which they travel, its path below the run's folder.
        names: of the checkpoints, newest first.
        skipped: newer ones that are not whole, and what they lack.
    """

    files: Mapping[str, str]
    names: tuple[str, ...]
    skipped: tuple[SafeText, ...] = ()


@dataclass(slots=True)
class _Unit:
    """One checkpoint, by paths below the run's folder."""

    name: str
    files: list[str]
    missing: list[str] = field(default_factory=list)
    known: bool = True

    @property
    def order(self) -> Order:
        """Its step where the name counts steps, else its last number: what one save wrote has one order."""
        found = numbers(self.name)
        counted, rest = found[:_COUNTERS], found[_COUNTERS:]
        return counted if max(counted) >= 0 else (*counted, *rest[:1])

    @property
    def numbered(self) -> bool:
        return len(numbers(self.name)) > _COUNTERS


def wanted_texts(found: Mapping[str, Found]) -> list[str]:
    """Small files of the copy whose contents tell what belongs together."""
    pointers = [path for path in found if path.rpartition("/")[2] in POINTERS]
    return [*dict.fromkeys((*needed_texts(_tree(found, {})), *pointers))]


def choose(
    found: Mapping[str, Found],
    pattern: str,
    title: str,
    texts: Mapping[str, bytes] | None = None,
    *,
    own_name: str = "",
    keep: int = KEEP,
) -> Chosen:
    """The newest complete checkpoints of a copy.

    Args:
        found: its files by path: of the run's folder, of the checkpoints' own, of one checkpoint, or of a
            folder above.
        pattern: glob of the checkpoints below the run's folder; it may name files, folders, or what is in
            them.
        title: of the copy, safe to show.
        texts: contents of the `wanted_texts` that could be read.
        own_name: of the copy's folder, which may itself be a checkpoint.

    Raises:
        Failure: there is none, none is complete, or the one that would be loaded is not.
    """
    pattern = pattern.removeprefix("./")
    places = _placed(pattern, found, own_name)
    below = {places[path]: one for path, one in found.items() if path in places}
    read = {places[path]: text for path, text in (texts or {}).items() if path in places}
    tree = _tree(below, read)
    units = _units(tree, pattern)
    if not units:
        raise _none(pattern, title)
    for unit in units:
        unit.missing += [f"{path}, which lies in an archive" for path in unit.files if below[path].apart]
    ranked = _ranked(units, below)
    whole = [one for one in ranked if not one.missing]
    if not whole:
        raise _incomplete(ranked[0], title)
    pointers, pointed = _pointers(tree, ranked, below, title)
    taken = list(dict.fromkeys(one.name for one in (*pointed, *_newest(whole, keep))))
    chosen = [one for one in ranked if one.name in taken]
    paths = [path for one in chosen for path in sorted(one.files, key=_late)]
    paths += [path for path in pointers if path not in paths]
    back = {path: copy for copy, path in places.items()}
    newer = ranked[: ranked.index(whole[0])]
    skipped = tuple(safe(f"{one.name} is not whole: it lacks {one.missing[0]}", 300) for one in newer)
    return Chosen({back[path]: path for path in paths}, tuple(one.name for one in chosen), skipped)


def _tree(found: Mapping[str, Found], texts: Mapping[str, bytes]) -> Tree:
    folders = {"/".join(path.split("/")[:n]) for path in found for n in range(1, path.count("/") + 1)}
    entries = [Entry(folder, "d", 0, 0, 0, 0, 0) for folder in folders]
    entries += [Entry(path, "f", one.size, one.modified_ns, 0, 0, 0) for path, one in found.items()]
    return tree_of(Listing("", tuple(entries), 0, 0), texts)


def _placed(pattern: str, found: Iterable[str], own_name: str) -> dict[str, str]:
    """Each file of the copy with its path below the run's folder; empty where no checkpoint is among them."""
    paths = list(found)
    if matching(pattern, paths):
        return {path: path for path in paths}
    parts = pattern.split("/")
    for cut in range(1, len(parts)):
        above = "/".join(parts[:cut])
        if _WILD.search(above):
            break
        if matching("/".join(parts[cut:]), paths):
            return {path: f"{above}/{path}" for path in paths}
    if "**" in pattern:
        return {}
    above, _, last = pattern.rpartition("/")
    if own_name and not _WILD.search(above) and matching(last, [own_name]):
        return {path: join(above, f"{own_name}/{path}") for path in paths}
    roots = {root for path in paths for root in _roots(pattern, path)}
    if len(roots) != 1:  # of several runs nobody knows which one is meant
        return {}
    (root,) = roots
    return {path: path.removeprefix(root) for path in paths if path.startswith(root)}


def _roots(pattern: str, path: str) -> Iterable[str]:
    """The folders of the copy below which a file would be a checkpoint's."""
    parts = path.split("/")
    for at in range(1, len(parts)):
        if matching(pattern, ["/".join(parts[at:])]):
            yield "/".join(parts[:at]) + "/"


def _units(tree: Tree, pattern: str) -> list[_Unit]:
    """What the pattern names, as checkpoints."""
    generations = [one for claim in recognise(tree) for one in claim.generations]
    of = {path: one for one in generations for path in one.files}
    depth = pattern.count("/") + 1
    units: dict[str, _Unit] = {}
    for path in matching(pattern, tree.files):
        if path.rpartition("/")[2] in POINTERS and path not in of:
            continue
        top = path if "**" in pattern else "/".join(path.split("/")[:depth])
        unit = _unit(tree, path, top, of.get(path), generations)
        if unit is not None:
            units.setdefault(unit.name, unit)
    known = [one for one in units.values() if one.known]
    return known or list(units.values())  # what lies beside checkpoints is none


def _unit(
    tree: Tree, path: str, top: str, own: Generation | None, generations: Sequence[Generation]
) -> _Unit | None:
    """The checkpoint that a named file belongs to; None where it lies beside several.

    Args:
        top: what the pattern names: the file itself, or a folder that it is in.
        own: what it was recognised as.
    """
    if top == path:
        return _Unit(path, [path], known=False) if own is None else _of(own)
    inside = [one for one in generations if f"{one.name}/".startswith(f"{top}/")]
    if len(inside) < 2 or any(sign.isdigit() for sign in top.rpartition("/")[2]):
        missing = [lack for one in inside for lack in _lacks(one)]
        missing += ["its end, by its name"] if finished_name(top) is not None else []
        return _Unit(top, tree.below(top), missing, known=bool(inside))
    return None if own is None else _of(own)


def _of(one: Generation) -> _Unit:
    return _Unit(one.name, list(one.files), _lacks(one))


def _lacks(one: Generation) -> list[str]:
    """What is missing; of an index that nobody has read nothing is known."""
    return [lack for lack in one.missing if not lack.endswith(_UNREAD)]


def _ranked(units: Sequence[_Unit], found: Mapping[str, Found]) -> list[_Unit]:
    """Newest first: by the numbers of their names where each has one, else by times, which copies lose."""
    if all(one.numbered for one in units):
        return sorted(units, key=lambda one: (one.order, one.name), reverse=True)
    return sorted(units, key=lambda one: max(found[path].modified_ns for path in one.files), reverse=True)


def _newest(whole: Sequence[_Unit], keep: int) -> list[_Unit]:
    """The newest saves; one save may have written several files of one step."""
    if not all(one.numbered for one in whole):
        return list(whole[:keep])
    steps = list(dict.fromkeys(one.order for one in whole))[:keep]
    return [one for one in whole if one.order in steps]


def _pointers(
    tree: Tree, units: Sequence[_Unit], copy: Mapping[str, Found], title: str
) -> tuple[list[str], list[_Unit]]:
    """Files that name the checkpoint to load, and what they name. Raises Failure: one leads nowhere."""
    parents = dict.fromkeys(one.name.rpartition("/")[0] for one in units)
    there = [join(folder, name) for folder in parents for name in sorted(POINTERS)]
    found = [path for path in there if path in tree.files]
    pointed: list[_Unit] = []
    for path in found:
        if copy[path].apart:
            raise _out_of_reach(path, title)
        raw = tree.texts.get(path)
        text = "" if raw is None else raw.strip().decode("utf-8", "surrogateescape")
        if not text or "\n" in text or "/" in text or len(text) > 255:
            continue  # not read, or what it says was true on another machine
        named = next((one for one in units if _is_named(one, text)), None)
        if named is None and path.endswith(".txt"):
            continue  # Megatron's may say `release`
        if named is None or named.missing:
            raise _misled(path, text, named, title)
        pointed.append(named)
    return found, pointed


def _is_named(unit: _Unit, text: str) -> bool:
    """By its name, or by its number alone."""
    return unit.name.rpartition("/")[2] == text or (text.isdecimal() and int(text) in unit.order)


def _late(path: str) -> tuple[bool, str]:
    """What a program writes last travels last: half a folder then never looks like a whole one."""
    return path.rpartition("/")[2] in _WRITTEN_LAST, path


def _none(pattern: str, title: str) -> Failure:
    return Failure(
        f"Nothing in {title} is a checkpoint as the job has them, {safe(pattern, 100)}.",
        means="It would begin at step 0; nothing was started.",
        do="Give the folder of the durable copy with --from, or --from-scratch.",
        exit=Exit.USAGE,
        code="no-checkpoint",
    )


def _incomplete(newest: _Unit, title: str) -> Failure:
    return Failure(
        f"No checkpoint in {title} is whole: {safe(newest.name, 200)} lacks {safe(newest.missing[0], 200)}.",
        means="A run would not load it; nothing was started.",
        do="Give another copy with --from, or --from-scratch.",
        exit=Exit.USAGE,
        code="no-whole-checkpoint",
    )


def _out_of_reach(path: str, title: str) -> Failure:
    return Failure(
        f"{safe(path, 200)} names the checkpoint to load, and lies in an archive of {title}.",
        means="Without it the run would begin at step 0; nothing was started.",
        do="Unpack the copy, and name it with --from.",
        exit=Exit.USAGE,
        code="pointer-archived",
    )


def _misled(path: str, text: str, named: _Unit | None, title: str) -> Failure:
    lacks = "is not there" if named is None else f"lacks {safe(named.missing[0], 200)}"
    return Failure(
        f"{safe(path, 200)} in {title} names {safe(text, 100)}, which {lacks}.",
        means="The run would load nothing and begin at step 0; nothing was started.",
        do="Write the name of a whole one into it, or give another copy with --from.",
        exit=Exit.USAGE,
        code="misled",
    )

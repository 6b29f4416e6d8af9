"""Which files of a run's folder are its artifacts: pure, from the listing and what the job file declares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tui.custody.codes import gap, refusal
from tui.custody.kinds import cache_root, is_secrets, role_of
from tui.custody.layouts import sealed
from tui.custody.layouts.recognise import recognise
from tui.custody.layouts.tree import Claim, Generation, Tree, finished_name, is_weights
from tui.custody.links import Links
from tui.model.custody import Gap, Refusal, Role
from tui.model.custody_table import CustodyTable
from tui.model.globs import matching


@dataclass(slots=True)
class Selection:
    """What was chosen, and why the rest was not.

    Attributes:
        roles: the artifacts.
        generation_of: the checkpoint that an artifact belongs to.
        unkept: generations that are not chosen: incomplete ones, and complete ones that newer ones replace.
    """

    layout: str
    roles: dict[str, Role] = field(default_factory=dict)
    generation_of: dict[str, str] = field(default_factory=dict)
    unkept: list[Generation] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


def select(tree: Tree, top: str, table: CustodyTable | None) -> Selection:
    """Choose the artifacts.

    A sealed export is taken whole. Globs of a table are taken as they are said. Otherwise everything below
    the folder is taken but caches, unfinished files and the checkpoints that newer ones replace.
    """
    layout = table.layout if table is not None else "auto"
    declared = table is not None and bool(table.artifacts or table.optional)
    if layout == "sealed-export" or (layout == "auto" and not declared and sealed.is_sealed(tree)):
        return _sealed(tree, top)
    claims = recognise(tree)
    names = [claim.layout for claim in claims if claim.generations or claim.required_missing]
    chosen = Selection(names[0] if names else "plain")
    for claim in claims:
        chosen.refusals += claim.refusals
    links = Links(tree, top)
    if table is not None and declared:
        _by_globs(chosen, tree, table, claims, links)
    else:
        _by_default(chosen, tree, claims, links, table.generations if table is not None else 1)
    _pointers(chosen, claims)
    return chosen


def _sealed(tree: Tree, top: str) -> Selection:
    claim = sealed.claim(tree, top)
    chosen = Selection("sealed-export", refusals=list(claim.refusals))
    chosen.roles = {path: sealed.role_of(path) for path in tree.files}
    chosen.generation_of = {path: one.name for one in claim.generations for path in one.files}
    _required(chosen, claim)
    return chosen


def _by_globs(
    chosen: Selection, tree: Tree, table: CustodyTable, claims: Sequence[Claim], links: Links
) -> None:
    everything = [*tree.files, *tree.links, *tree.odd]
    for groups, needed in ((table.artifacts, True), (table.optional, False)):
        for role, patterns in groups.items():
            for pattern in patterns:
                found = matching(pattern, everything)
                if not found and needed:
                    chosen.refusals.append(refusal("roster-missing", f"nothing matches {pattern} ({role})"))
                for path in found:
                    _take(chosen, tree, links, path, role)
    generations = [one for claim in claims for one in claim.generations]
    whole = [one for one in generations if set(one.files) <= chosen.roles.keys() and one.files]
    keep = table.generations if "generations" in table.model_fields_set else 0
    for one in _unkept(chosen, whole, keep, links.pinned()):
        for path in one.files:
            chosen.roles.pop(path, None)
    for one in generations:
        if not one.complete and not set(one.files).isdisjoint(chosen.roles):
            chosen.refusals.append(_incomplete(one))


def _take(chosen: Selection, tree: Tree, links: Links, path: str, role: Role) -> None:
    """One path that the job file names: a file, or the reason why it can't be one. Secrets are never one."""
    if is_secrets(path):
        return
    if path in tree.files:
        chosen.roles.setdefault(path, role)
    elif path in tree.odd:
        chosen.refusals.append(refusal("not-a-file", "the job file names it", path))
    else:
        _link(chosen, links, path, role)


def _link(chosen: Selection, links: Links, path: str, role: Role) -> None:
    end = links.follow(path)
    if end.kind == "file":
        chosen.roles.setdefault(end.path, role)
    elif end.kind == "folder":
        chosen.gaps.append(gap("links-not-copied", f"{path} points at the folder {end.path or '.'}"))
    else:
        code = "leaves-tree" if end.kind == "outside" else "link-dangling"
        chosen.refusals.append(refusal(code, f"it points at {end.path}", path))


def _by_default(chosen: Selection, tree: Tree, claims: Sequence[Claim], links: Links, keep: int) -> None:
    chosen.gaps.append(
        gap("no-manifest", "everything below the folder was taken, as far as it is recognised")
    )
    generations = [one for claim in claims for one in claim.generations]
    unkept = {path for one in _unkept(chosen, generations, keep, links.pinned()) for path in one.files}
    for path, entry in tree.files.items():
        passed = path in unkept or is_secrets(path) or cache_root(path) is not None
        if not passed and finished_name(path) is None:
            chosen.roles[path] = role_of(path, entry.size)
    for one in generations:
        for path in one.files:
            if path in chosen.roles and is_weights(path, tree.files[path].size):
                chosen.roles[path] = "checkpoint"
    for claim in claims:
        _required(chosen, claim)
    for path in tree.links:
        if cache_root(path) is None:
            _default_link(chosen, links, path)
    for path in tree.odd:
        if is_weights(path, 0):
            chosen.refusals.append(refusal("not-a-file", "it is named like a checkpoint", path))
        else:
            chosen.gaps.append(gap("special-file", path))


def _default_link(chosen: Selection, links: Links, path: str) -> None:
    end = links.follow(path)
    matters = is_weights(path, 0) or role_of(path, 0) in ("predictions", "metrics")
    if end.kind == "outside" and matters:
        chosen.refusals.append(refusal("leaves-tree", f"it points at {end.path}", path))
    elif end.kind in ("dangling", "loop") and matters:
        chosen.refusals.append(refusal("link-dangling", f"it points at {end.path}", path))
    else:
        chosen.gaps.append(gap("links-not-copied", f"{path} points at {end.path or '.'}"))


def _unkept(
    chosen: Selection, generations: Iterable[Generation], keep: int, pinned: frozenset[str]
) -> list[Generation]:
    """Sort out incomplete generations and, of the complete ones of a series, all but the newest `keep`."""
    series: dict[str, list[Generation]] = defaultdict(list)
    for one in generations:
        series[one.series].append(one)
    left = []
    for several in series.values():
        several.sort(key=lambda one: one.order)
        complete = [one for one in several if one.complete]
        newest = complete[-keep:] if keep else complete
        kept = [one for one in complete if one in newest or one.pinned or one.name in pinned]
        for one in kept:
            chosen.generation_of.update(dict.fromkeys(one.files, one.name))
        left += [one for one in complete if one not in kept]
        for one in several:
            if not one.complete:
                left.append(one)
                _name_incomplete(chosen, one, complete)
    chosen.unkept += left
    return left


def _name_incomplete(chosen: Selection, one: Generation, complete: Sequence[Generation]) -> None:
    if complete and not one.pinned:
        instead = f"{_lacks(one)}; {complete[-1].name} is complete"
        chosen.gaps.append(gap("generation-skipped", f"{one.name} lacks {instead}"))
    else:
        chosen.refusals.append(_incomplete(one))


def _incomplete(one: Generation) -> Refusal:
    return refusal("generation-incomplete", f"it lacks {_lacks(one)}", one.name)


def _lacks(one: Generation) -> str:
    more = len(one.missing) - 3
    return ", ".join(one.missing[:3]) + (f" and {more} more" if more > 0 else "")


def _required(chosen: Selection, claim: Claim) -> None:
    chosen.refusals += [
        refusal("roster-missing", f"a {claim.layout} run has it", path) for path in claim.required_missing
    ]


def _pointers(chosen: Selection, claims: Sequence[Claim]) -> None:
    """A pointer to nothing is a warning where another complete checkpoint lies beside it."""
    kept = set(chosen.generation_of.values())
    for claim in claims:
        for path, named in claim.dangling:
            folder = path.rpartition("/")[0]
            instead = sorted(name for name in kept if name.rpartition("/")[0] == folder)
            if instead:
                text = f"{path} names {named}, which is not there; {instead[-1]} is complete"
                chosen.gaps.append(gap("generation-skipped", text))
            else:
                text = f"it names {named}, which is not there"
                chosen.refusals.append(refusal("generation-incomplete", text, path))


def counted(chosen: Selection, table: CustodyTable | None) -> Iterator[Refusal]:
    """What is wrong with how many artifacts there are: never none, and as many as are declared."""
    for role, count in (table.counts if table is not None else {}).items():
        found = sum(1 for one in chosen.roles.values() if one == role)
        if found != count:
            yield refusal("roster-count", f"{count} × {role} declared, {found} found")
    if not chosen.roles:
        yield refusal("roster-empty", f"layout {chosen.layout}")

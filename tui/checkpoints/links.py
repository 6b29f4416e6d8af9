"""The verdict on a symbolic link: what it leads to, as long as that stays inside the folder."""

from __future__ import annotations

from collections.abc import Callable

from tui.checkpoints.judged import say
from tui.checkpoints.names import STEP_FOLDER, claim_of
from tui.checkpoints.tree import Entry, Tree, resolve
from tui.model.text import safe
from tui.model.verdict import CheckpointVerdict

_WORDS = frozenset({"latest", "last", "best", "final", "current"})


def judge_link(
    tree: Tree, link: Entry, known: Callable[[str], CheckpointVerdict | None]
) -> CheckpointVerdict:
    """One checkpoint under two names is one checkpoint; a link that leads nowhere lacks it.

    Args:
        known: the verdict on a path of the tree.
    """
    path, place = link.path, resolve(tree, link)
    if place.state == "outside":
        why = safe(link.target, 200)
        return say(path, "link", "suspicious", "leaves_tree", why, target=link.target)
    if place.state == "dangling":
        if not any(_speaks_of_one(name) for name in (link.name, link.target.rpartition("/")[2])):
            return say(path, "link", "ignore", target=link.target)
        why = safe(link.target, 200)
        return say(path, "link", "incomplete", "link", why, missing=(link.target,), target=link.target)
    verdict = known(place.path) if place.state == "inside" and place.path else None
    if verdict is None or verdict.verdict == "ignore":
        return say(path, "link", "ignore", target=link.target)
    return verdict.model_copy(update={"path": path, "kind": "link", "target": link.target})


def _speaks_of_one(name: str) -> bool:
    return claim_of(name) is not None or name in _WORDS or STEP_FOLDER.fullmatch(name) is not None

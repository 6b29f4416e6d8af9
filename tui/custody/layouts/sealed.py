"""The sealed export: a run that was closed out, by one rename, into a folder with everything that counts."""

from __future__ import annotations

from tui.custody.codes import refusal
from tui.custody.layouts.tree import Claim, Generation, Tree, join
from tui.model.custody import Refusal, Role

_MUST = ("run.json", "config.yaml", "train.csv", "best.pth")
_TEST_MUST = ("metrics.json", "results.parquet")
_ROLES: dict[str, Role] = {
    "best.pth": "checkpoint",
    "last.pth": "checkpoint",
    "train.csv": "log",
    "config.yaml": "config",
    "run.json": "environment",
}


def is_sealed(tree: Tree) -> bool:
    """Whether the folder has an export's own marks."""
    return "run.json" in tree.files and ("best.pth" in tree.files or "test" in tree.subfolders.get("", ()))


def role_of(path: str) -> Role:
    """The role of a file in an export."""
    if path in _ROLES:
        return _ROLES[path]
    first, _, rest = path.partition("/")
    name = rest.rpartition("/")[2]
    if first == "test" and name == "metrics.json":
        return "metrics"
    return "predictions" if first == "test" and name == "results.parquet" else "other"


def claim(tree: Tree, top: str) -> Claim:
    """Everything in the export; what an export may not hold or must hold is refused.

    Args:
        top: the export's real path.
    """
    tests = tree.subfolders.get("test", ())
    must = [*_MUST, *(join(join("test", test), name) for test in tests for name in _TEST_MUST)]
    missing = [path for path in must if path not in tree.files]
    missing += [f"the bytes of {path}" for path in must if tree.empty(path)]
    refusals: list[Refusal] = []
    if ".partial" in top.split("/"):
        refusals.append(refusal("live-writer", "the close-out has not sealed this export yet", top))
    refusals += [
        refusal("not-a-file", "a sealed export holds plain files only", path)
        for path in (*tree.links, *tree.odd)
    ]
    generations = [
        Generation(name, "sealed-export", name, (), (name,), pinned=True)
        for name in ("best.pth", "last.pth")
        if name in tree.files
    ]
    return Claim("sealed-export", tuple(generations), tuple(missing), tuple(refusals))

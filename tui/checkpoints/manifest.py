"""A folder against its list of SHA-256: missing, extra and different files, each by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tui.checkpoints.bag_tags import bag_problems
from tui.checkpoints.sums import inside, read_sums
from tui.checkpoints.tree import Tree, resolve
from tui.model.text import safe
from tui.model.verdict import FileVerdict, Problem

MAX_MANIFEST = 64 << 20
MANIFEST_NAME = "manifest-sha256.txt"
_PAYLOAD = "data/"
_LISTED = 1000


@dataclass(slots=True)
class Manifest:
    """The digests a folder should have.

    Attributes:
        digests: by path below the folder.
        bag: the folder is a bag (RFC 8493): only what lies in ``data/`` is payload.
        own: the manifest's own path below the folder, which no manifest lists; None where it lies elsewhere.
    """

    digests: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    bag: bool = False
    own: str | None = None


def read_manifest(file: str, root: str) -> Manifest:
    """Read a manifest of `root`.

    Args:
        file: ``manifest-sha256.txt`` of a bag, or what ``sha256sum`` printed in `root`.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too large to be one.
    """
    with open(file, "rb") as stream:  # noqa: PTH123 - a Path would normalise the name
        raw = stream.read(MAX_MANIFEST + 1)
    if len(raw) > MAX_MANIFEST:
        raise ValueError(f"{len(raw)} bytes and more")
    home, top = os.path.dirname(os.path.realpath(file)), os.path.realpath(root)  # noqa: PTH120
    manifest = Manifest(bag=os.path.isfile(os.path.join(home, "bagit.txt")))  # noqa: PTH113, PTH118
    own = os.path.relpath(os.path.realpath(file), top)
    manifest.own = None if own.startswith("../") else own
    above = os.path.relpath(top, home) + "/" if manifest.bag and top != home else ""
    if above.startswith("../"):
        manifest.bag, above = False, ""  # a bag's manifest for some other folder: taken as a plain list
    _fill(manifest, raw, root, above)
    return manifest


def _fill(manifest: Manifest, raw: bytes, root: str, above: str) -> None:
    """`above` is what the bag's paths begin with, where a part of the bag was named."""
    for line in read_sums(raw, bag=manifest.bag):
        path = inside(line.path) if line.path is not None else None
        if line.path is None:
            manifest.problems.append(Problem(code="manifest-line", detail=f"line {line.number}"))
            continue
        if path is None:
            detail = f"line {line.number}: {safe(line.path, 200)}"
            manifest.problems.append(Problem(code="manifest-escapes", detail=detail))
            continue
        literal = inside(line.literal or "")
        if literal and literal != path and not _is_there(root, path) and _is_there(root, literal):
            path = literal  # a maker of bags that did not encode what it should have
        if above and not path.startswith(above):
            continue
        path = path.removeprefix(above)
        if manifest.digests.setdefault(path, line.sha256) != line.sha256:
            manifest.problems.append(Problem(code="manifest-twice", path=path, detail=f"line {line.number}"))
    if not manifest.digests and not manifest.problems:
        manifest.problems.append(Problem(code="manifest-empty"))
    del manifest.problems[_LISTED:]


def _is_there(root: str, path: str) -> bool:
    return os.path.lexists(os.path.join(root, path))  # noqa: PTH118


def compare(
    files: Iterable[FileVerdict], manifest: Manifest, tree: Tree
) -> tuple[tuple[FileVerdict, ...], list[Problem]]:
    """Each file with its place in the manifest, and what is missing, extra or different."""
    sums = {file.path: file.sha256 for file in files if file.sha256}
    known = {file.path for file in files}
    problems = [Problem(code="file-missing", path=path) for path in manifest.digests if path not in known]
    if manifest.bag:
        problems += bag_problems(tree, manifest.digests, sums)
    told = []
    for file in files:
        listed = _listed(file, manifest, sums, tree)
        told.append(file.model_copy(update={"listed": listed}))
        if listed in ("extra", "different"):
            detail = "" if listed == "extra" else f"{manifest.digests[file.path]} was expected"
            problems.append(Problem(code=f"file-{listed}", path=file.path, detail=detail))
    return tuple(told), problems


def _listed(file: FileVerdict, manifest: Manifest, sums: Mapping[str, str], tree: Tree) -> str:
    wanted = manifest.digests.get(file.path)
    if wanted is None:
        beside = file.path == manifest.own or (manifest.bag and not _is_payload(file.path, manifest))
        return "" if beside or file.type != "file" else "extra"
    digest = sums.get(file.path)
    if file.type == "link":
        place = resolve(tree, tree.entries[file.path])
        digest = sums.get(place.path) if place.state == "inside" else None
        return "same" if digest == wanted else "different"
    if digest is None:
        return "different" if file.type == "special" else ""  # it could not be read, which is told by itself
    return "same" if digest == wanted else "different"


def _is_payload(path: str, manifest: Manifest) -> bool:
    whole = any(listed.startswith(_PAYLOAD) for listed in manifest.digests)
    return path.startswith(_PAYLOAD) or not whole

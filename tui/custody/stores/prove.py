"""Whether a bag that is there already holds exactly what it should, every byte read where it lies."""

from __future__ import annotations

import shutil
from pathlib import Path

from tui.box.transfer.tarstream import TarRefused
from tui.custody.bag import DATA, DECLARATION, MANIFEST, TAG_MANIFEST, Layout, hashed, manifest, raw_name
from tui.custody.stores.base import Store, in_thread
from tui.custody.tar_copy import read_tar
from tui.model.custody import HashedFile, Sha256

_TAGS = (MANIFEST, "bag-info.txt", TAG_MANIFEST, "bagit.txt")
_TAG_CAP = 512 << 20


async def prove(store: Store, layout: Layout, staging: Path) -> tuple[HashedFile, ...] | None:
    """Every file of the sealed bag if it is exactly the bag of `layout`; None if it is anything else.

    Args:
        staging: folder of this computer for the tar and the tag files.

    Raises:
        Failure: the store can't be read.
    """
    listed = await store.listed()
    plain = [_hashed(f"{DATA}/{one.path}", one.size, one.sha256) for one in layout.plain]
    names = {one.path for one in plain} | set(_TAGS) | ({layout.tar} if layout.tar else set())
    if set(listed.files) != names or listed.others:
        return None
    beside = sorted(names - {one.path for one in plain})
    if any(listed.files[path] > _TAG_CAP for path in _TAGS):
        return None
    digests = await store.hashes([*plain, *(_hashed(path, listed.files[path]) for path in beside)])
    if any(digests.get(one.path) != one.sha256 for one in plain) or not all(
        path in digests for path in beside
    ):
        return None
    others = [_hashed(path, listed.files[path], digests[path]) for path in beside]
    try:
        failed = await store.fetch(others, staging, lambda count, path: None)
        good = not failed and await in_thread(_agrees, staging, layout, plain, others)
    finally:
        await in_thread(shutil.rmtree, staging, True)
    return (*plain, *others) if good else None


def _hashed(path: str, size: int, sha256: Sha256 = "sha256:" + "0" * 64) -> HashedFile:
    return HashedFile(path=path, size=size, sha256=sha256, tool="hashlib")


def _agrees(folder: Path, layout: Layout, plain: list[HashedFile], others: list[HashedFile]) -> bool:
    """The tar has exactly the members, and the tag files say what is there."""
    found = {one.path: one for one in others}
    payload = list(plain)
    if layout.tar is not None:
        payload.append(found[layout.tar])
        try:
            members = read_tar(folder / layout.tar, max(one.size for one in layout.tarred))
        except (OSError, TarRefused):
            return False
        if members != {raw_name(one.path): (one.size, one.sha256) for one in layout.tarred}:
            return False
    tags = {path: (folder / path).read_bytes() for path in _TAGS}
    if any(hashed(path, data).sha256 != found[path].sha256 for path, data in tags.items()):
        return False
    listed = manifest([hashed(path, data) for path, data in tags.items() if path != TAG_MANIFEST])
    return (
        tags["bagit.txt"] == DECLARATION
        and tags[MANIFEST] == manifest(payload)
        and tags[TAG_MANIFEST] == listed
    )

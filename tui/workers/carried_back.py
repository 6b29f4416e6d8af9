"""Checkpoints out of a durable copy, the recorded one or a folder, on their way to another box."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tui.custody.bag import DATA
from tui.custody.places import Connect, store_for
from tui.custody.records import records
from tui.custody.stores.base import in_thread
from tui.custody.stores.place import bag_of
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.model.custody import CopyReport, HashedFile
from tui.model.failure import Exit, Failure
from tui.model.text import safe
from tui.runs.carry import Carried
from tui.workers.generations import Chosen, Found, choose, wanted_texts

_SMALL = 4 << 20
_MOST = 200_000


@dataclass(frozen=True, slots=True)
class DurableCopy:
    """The newest checkpoints of a copy, by its record; nothing was read yet.

    Attributes:
        bag: the same files, as they are named in the copy.
        staging: folder of this computer that they come into; of a copy on this computer the copy itself.
        chosen: which checkpoints they are, and which were passed over.
        pattern: glob of the checkpoints below the run's folder.
    """

    report: CopyReport
    files: tuple[Carried, ...]
    bag: tuple[HashedFile, ...]
    staging: Path
    chosen: Chosen
    pattern: str

    @property
    def here(self) -> bool:
        """It lies on this computer, and is carried from where it is."""
        return self.report.destination.kind == "path"


def durable_copy(run: str, pattern: str, where: Paths) -> DurableCopy:
    """What the record of the last copy says of a run's checkpoints.

    Args:
        pattern: glob of the checkpoints below the run's folder.

    Raises:
        Failure: there is no finished copy, or it holds no checkpoint.
    """
    try:
        report = records(where, run).newest(CopyReport)
    except ValueError:  # a name that custody does not keep
        report = None
    if report is None or report.refusals or not report.bag:
        raise Failure(
            f"{'The durable copy' if report else 'No durable copy'} of {safe(run, 100)} "
            f"{'was not finished' if report else 'is on record here'}.",
            means="Nothing was started.",
            do=f"Make one: rgt pull {safe(run, 100)} --to DEST; or name a folder: --from DIR.",
            exit=Exit.USAGE,
            code="no-copy",
        )
    title, kept = safe(report.destination.uri, 200), {one.path: one for one in report.bag}
    here = report.destination.kind == "path"
    staging = Path(report.destination.path) if here else where.state / "carried" / run.replace("/", "_")
    found = {
        one.path: Found(one.size, one.modified_ns or 0, apart=f"{DATA}/{one.path}" not in kept)
        for one in report.files
    }
    texts = _texts(staging / DATA, wanted_texts(found)) if here else {}
    chosen = choose(found, pattern, title, texts)
    bag = tuple(kept[f"{DATA}/{path}"] for path in chosen.files)
    files = tuple(
        Carried(name, staging / one.path, one.size, one.sha256.removeprefix("sha256:"), title)
        for name, one in zip(chosen.files.values(), bag, strict=True)
    )
    return DurableCopy(report, _passing(chosen, files), bag, staging, chosen, pattern)


def copy_in(folder: Path, pattern: str) -> tuple[Carried, ...]:
    """The newest complete checkpoints of a copy in a folder of this computer, hashed.

    Args:
        folder: the copy: of the run's folder, of the one its checkpoints are in, or one checkpoint.
        pattern: glob of the checkpoints below the run's folder.

    Raises:
        Failure: there is none, none is complete, or one cannot be read.
    """
    found = _listed(folder)
    texts = _texts(folder, wanted_texts(found))
    chosen = choose(found, pattern, safe(str(folder), 200), texts, own_name=folder.absolute().name)
    return _passing(chosen, tuple(_carried(folder / path, below) for path, below in chosen.files.items()))


def _passing(chosen: Chosen, files: tuple[Carried, ...]) -> tuple[Carried, ...]:
    """The files, the first of them with what was passed over."""
    return (replace(files[0], beside=chosen.skipped), *files[1:])


def _listed(folder: Path) -> dict[str, Found]:
    """Every file below a folder; links to files count as what they lead to. Raises Failure."""
    found: dict[str, Found] = {}
    for here, _, names in os.walk(folder):
        for name in names:
            path = Path(here) / name
            try:
                told = path.stat()
            except OSError:
                continue  # a link to nothing
            if stat.S_ISREG(told.st_mode):
                found[path.relative_to(folder).as_posix()] = Found(told.st_size, told.st_mtime_ns)
        if len(found) > _MOST:
            raise Failure(
                f"{safe(str(folder), 200)} holds more than {_MOST} files.",
                do="Name the folder that the checkpoints are in.",
                exit=Exit.USAGE,
            )
    return found


def _texts(folder: Path, paths: Iterable[str]) -> dict[str, bytes]:
    """Contents of small files; what can't be read, or is large, is left out."""
    found = {}
    for path in paths:
        try:
            with (folder / path).open("rb") as file:
                text = file.read(_SMALL + 1)
        except OSError:
            continue
        if len(text) <= _SMALL:
            found[path] = text
    return found


def _carried(path: Path, name: str) -> Carried:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Carried(name, path, path.stat().st_size, digest)
    except OSError as error:
        raise Failure(f"{safe(str(path), 200)} cannot be read ({error.strerror}).") from None


async def bring_here(copy: DurableCopy, where: Paths, connect: Connect) -> None:
    """Have its checkpoints on this computer, every byte hashed; the same call goes on after a cut.

    Raises:
        Failure: one can't be had, or is not what was copied. LinkLost, TimeoutError: ask again.
    """
    problems: dict[str, str] = {}
    missing = [one for one in copy.bag if not await asyncio.to_thread(_same, copy.staging / one.path, one)]
    if missing and not copy.here:
        for one in missing:
            (copy.staging / one.path).unlink(missing_ok=True)
        to, name = bag_of(copy.report.destination)
        boxes = {one.name: one for one in settings.load(where.fleet_file).instances}
        store = store_for(to, name, connect, boxes)
        try:
            problems = await store.fetch(missing, copy.staging, lambda _count, _path: None)
        finally:
            await store.close()
    for one in missing:
        if not await asyncio.to_thread(_same, copy.staging / one.path, one):
            why = problems.get(one.path, "it is not what was copied, or can't be read")
            raise Failure(
                f"{safe(one.path, 200)} can't be had from {safe(copy.report.destination.uri, 200)}: "
                f"{safe(why, 200)}.",
                means="Nothing was started.",
                do="Look at the copy, or name another one: --from DIR.",
                code="copy-unread",
            )
    if not copy.here:
        await asyncio.to_thread(_still_chosen, copy)


def _still_chosen(copy: DurableCopy) -> None:
    """What came may name, or list, what did not. Raises Failure: the run would not load it."""
    data = copy.staging / DATA
    found = {path: Found(one.size) for path, one in zip(copy.chosen.files, copy.bag, strict=True)}
    texts = _texts(data, wanted_texts(found))
    title = safe(copy.report.destination.uri, 200)
    again = choose(found, copy.pattern, title, texts, keep=len(found))
    if set(again.files) != set(copy.chosen.files):
        raise Failure(
            f"{next(iter(again.skipped), 'A checkpoint is not whole')}, in {title}.",
            means="Nothing was started.",
            do="Name another copy: --from DIR.",
            code="no-whole-checkpoint",
        )


async def drop(copy: DurableCopy) -> None:
    """Remove what was brought here; a copy that lies here is left alone."""
    if not copy.here:
        await in_thread(shutil.rmtree, copy.staging, True)


def _same(path: Path, one: HashedFile) -> bool:
    try:
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == one.sha256
    except OSError:
        return False

"""Checkpoints out of the durable copy that `rgt pull` recorded, on their way to another box."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from dataclasses import dataclass
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
from tui.runs.carry import Carried, newest_of


@dataclass(frozen=True, slots=True)
class DurableCopy:
    """The newest checkpoints of a copy, by its record; nothing was read yet.

    Attributes:
        bag: the same files, as they are named in the copy.
        staging: folder of this computer that they come into; of a copy on this computer the copy itself.
    """

    report: CopyReport
    files: tuple[Carried, ...]
    bag: tuple[HashedFile, ...]
    staging: Path

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
    times = {one.path: (one.modified_ns or 0) / 1e9 for one in report.files if f"{DATA}/{one.path}" in kept}
    chosen = newest_of(times, pattern, title)
    here = report.destination.kind == "path"
    staging = Path(report.destination.path) if here else where.state / "carried" / run.replace("/", "_")
    bag = tuple(kept[f"{DATA}/{path}"] for path, _ in chosen)
    files = tuple(
        Carried(name, staging / one.path, one.size, one.sha256.removeprefix("sha256:"), title)
        for (_, name), one in zip(chosen, bag, strict=True)
    )
    return DurableCopy(report, files, bag, staging)


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

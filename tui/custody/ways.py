"""The ways bytes take from a box to a store: straight to this disk, through this computer, or box to box."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tui.box.transfer.disk import disk_failure
from tui.box.transfer.line import Dial, Patience
from tui.box.transfer.lots import lots
from tui.box.transfer.meter import Meter, OnProgress, Progress
from tui.box.transfer.pull import pull
from tui.box.transfer.tarstream import TarRefused
from tui.box.transfer.wanted import SMALL, Pulled, Wanted
from tui.custody.bag import DATA, Layout, hashed, raw_name, tag_files
from tui.custody.codes import refusal
from tui.custody.direct import DirectRoute, Sent, push_direct
from tui.custody.moments import moment
from tui.custody.on_box import push_rclone
from tui.custody.records import write_file
from tui.custody.stores.base import Store, in_thread
from tui.custody.stores.box import BoxStore
from tui.custody.stores.path import PathStore
from tui.custody.stores.rclone import RcloneStore
from tui.custody.tar_copy import read_tar, write_tar
from tui.durable import sync_folder
from tui.model.custody import Gap, HashedFile, KeyAdmission, Refusal
from tui.model.text import safe

Route = Literal["through this computer", "direct", "rclone on the box"]
_ODD = "odd"
_TICK_S = 0.125


@dataclass(frozen=True, slots=True)
class Source:
    """The box that made the files.

    Attributes:
        dial: makes a connection for this transfer alone.
        direct: how the box itself reaches the store's box; None: not at all, or not wanted.
        own_rclone: whether the box may use an rclone of its own.
    """

    box: str
    dial: Dial
    direct: DirectRoute | None = None
    own_rclone: bool = True


@dataclass(slots=True)
class Copying:
    """What one copy has come to so far.

    Attributes:
        done: files that are in the store and agree, by their path in the bag.
        resumed: bytes of them from an earlier attempt.
    """

    source: Source
    root: str
    run: str
    layout: Layout
    store: Store
    staging: Path
    meter: Meter
    cap: int | None
    patience: Patience | None
    tell: OnProgress
    done: dict[str, HashedFile] = field(default_factory=dict)
    problems: list[Refusal] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    admissions: list[KeyAdmission] = field(default_factory=list)
    resumed: int = 0
    route: Route = "through this computer"

    def moved(self, count: int, path: str) -> None:
        self.meter.arrived(count, path)


async def fill(work: Copying, clock: Callable[[], float]) -> tuple[HashedFile, ...]:
    """Bring everything into the store and seal it; returns what is in the bag, nothing when it isn't sealed.

    Raises:
        Failure: the link, the store or this computer's disk for good.
    """
    if isinstance(work.store, PathStore):
        await _straight(work, work.store)
        return await _sealed(work, clock)
    ticking = asyncio.ensure_future(_tick(work))
    try:
        await _through(work)
        return await _sealed(work, clock)
    finally:
        ticking.cancel()
        await in_thread(shutil.rmtree, work.staging, True)


async def _sealed(work: Copying, clock: Callable[[], float]) -> tuple[HashedFile, ...]:
    if work.problems:
        return ()
    payload = list(work.done.values())
    tags = tag_files(payload, work.run, moment(clock()))
    work.meter.note = "sealing"
    work.tell(work.meter.snapshot())
    if isinstance(work.store, PathStore):
        for path, data in tags.items():
            await in_thread(write_file, work.store.building / path, data)
    else:
        await _put_tags(work, tags)
    bag = (*payload, *(hashed(path, data) for path, data in tags.items()))
    wrong = [] if work.problems else await work.store.seal({one.path: one.size for one in bag})
    work.problems += [refusal("not-exact", line) for line in wrong[:20]]
    return () if work.problems else bag


def _bagged(one: HashedFile) -> HashedFile:
    """The file under its path in the bag, as it was hashed on its way here."""
    return HashedFile(path=f"{DATA}/{one.path}", size=one.size, sha256=one.sha256, tool="hashlib")


def _wanted(one: HashedFile, name: str) -> Wanted:
    return Wanted(one.path, one.size, one.sha256, name)


def _refuse(work: Copying, got: Pulled) -> None:
    for problem in got.problems:
        work.problems.append(refusal(problem.code, problem.detail, problem.path))


# --- straight to a folder of this computer ----------------------------------------------------------------


async def _straight(work: Copying, store: PathStore) -> None:
    await in_thread(store.prepare)
    tar = await _tar_there(work, store.building)
    odd = () if tar else work.layout.tarred
    names = {one.path: f"parts/{_ODD}/{number:06}" for number, one in enumerate(odd)}
    wanted = [_wanted(one, f"{DATA}/{one.path}") for one in work.layout.plain]
    wanted += [_wanted(one, names[one.path]) for one in odd]
    got = await pull(
        work.source.dial, work.root, wanted, store.building, store.parts,
        cap=work.cap, patience=work.patience, on_progress=work.tell,
    )  # fmt: skip
    _refuse(work, got)
    work.resumed = got.kept + (sum(one.size for one in work.layout.tarred) if tar else 0)
    work.meter.keep(got.fetched + work.resumed)
    work.meter.files = len(got.arrived) + (len(work.layout.tarred) if tar else 0)
    arrived = {wanted.path for wanted in got.arrived}
    work.done = {f"{DATA}/{one.path}": _bagged(one) for one in work.layout.plain if one.path in arrived}
    if odd and not arrived.issuperset(names):
        return
    if odd:
        tar = await _packed(work, store.building, lambda one: store.building / names[one.path])
    if tar is not None:
        work.done[tar.path] = tar


async def _tar_there(work: Copying, folder: Path) -> HashedFile | None:
    """The tar of an earlier attempt, if every member of it agrees."""
    if work.layout.tar is None:
        return None
    path = folder / work.layout.tar
    try:
        members = await in_thread(read_tar, path, max(one.size for one in work.layout.tarred))
        if members != {raw_name(one.path): (one.size, one.sha256) for one in work.layout.tarred}:
            return None
        return await in_thread(_hashed_file, path, work.layout.tar)
    except (OSError, TarRefused):
        return None


def _hashed_file(path: Path, name: str) -> HashedFile:
    import hashlib

    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return HashedFile(path=name, size=path.stat().st_size, sha256=f"sha256:{digest}", tool="hashlib")


async def _packed(work: Copying, folder: Path, where: Callable[[HashedFile], Path]) -> HashedFile:
    assert work.layout.tar is not None
    work.meter.note = "packing names that a portable folder can't carry"
    target = folder / work.layout.tar
    try:
        tar = await in_thread(write_tar, target, work.layout.tarred, where)
        await in_thread(sync_folder, folder)
    except OSError as error:
        raise disk_failure(error, target) from None
    return tar.model_copy(update={"path": work.layout.tar})


# --- through this computer to another place ---------------------------------------------------------------


async def _tick(work: Copying) -> None:
    while True:
        work.tell(work.meter.snapshot())
        await asyncio.sleep(_TICK_S)


async def _through(work: Copying) -> None:
    """A lot is fetched while the one before it is sent on, so this disk holds three of them at most."""
    bagged = {f"{DATA}/{one.path}": _bagged(one) for one in work.layout.plain}
    there = await work.store.begin(bagged)
    work.done = {path: bagged[path] for path in there}
    work.resumed = sum(bagged[path].size for path in there)
    work.meter.keep(work.resumed)
    left = [one for one in work.layout.plain if f"{DATA}/{one.path}" not in there]
    if work.source.direct is not None and isinstance(work.store, BoxStore):
        left = await _box_to_box(work, work.store, left)
    if work.source.own_rclone and left and isinstance(work.store, RcloneStore):
        left = await _box_to_remote(work, work.store, left)
    work.meter.files = len(work.done)
    ready: asyncio.Queue[tuple[Path, list[HashedFile]] | None] = asyncio.Queue(1)
    fetching = asyncio.ensure_future(_fetch(work, _batches(left), ready))
    try:
        while (batch := await _next(ready, fetching)) is not None:
            await _store(work, *batch)
        await fetching
    finally:
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)
    await _odd_ones(work)


async def _box_to_box(work: Copying, store: BoxStore, left: list[HashedFile]) -> list[HashedFile]:
    assert work.source.direct is not None
    large = [one for one in left if one.size >= SMALL]
    if not large:
        return left
    sent = await push_direct(work.source.dial, work.root, store, large, work.source.direct, moved=work.moved)
    return _after(work, sent, left, "direct")


async def _box_to_remote(work: Copying, store: RcloneStore, left: list[HashedFile]) -> list[HashedFile]:
    work.meter.note = "rclone on the box"
    sent = await push_rclone(work.source.dial, work.root, store, left, moved=work.moved)
    work.meter.note = ""
    return left if sent is None else _after(work, sent, left, "rclone on the box")


def _after(work: Copying, sent: Sent, left: list[HashedFile], route: Route) -> list[HashedFile]:
    """Take in what arrived by itself; returns what did not."""
    work.admissions += sent.admissions
    work.gaps += sent.gaps
    work.done |= {f"{DATA}/{one.path}": _bagged(one) for one in sent.stored}
    if sent.stored:
        work.route = route
    stored = {one.path for one in sent.stored}
    return [one for one in left if one.path not in stored]


def _batches(files: Iterable[HashedFile]) -> list[list[HashedFile]]:
    by_path = {one.path: one for one in files}
    small = [_wanted(one, "") for one in by_path.values() if one.size < SMALL]
    made = [[by_path[wanted.path] for wanted in lot] for lot in lots(small)]
    return made + [[one] for one in by_path.values() if one.size >= SMALL]


async def _fetch(
    work: Copying,
    batches: Sequence[list[HashedFile]],
    ready: asyncio.Queue[tuple[Path, list[HashedFile]] | None],
) -> None:
    for number, batch in enumerate(batches):
        folder = work.staging / f"{number:06}"
        wanted = [_wanted(one, f"{DATA}/{one.path}") for one in batch]
        got = await _pulled(work, wanted, folder)
        arrived = {wanted.path for wanted in got.arrived}
        await ready.put((folder, [_bagged(one) for one in batch if one.path in arrived]))
    await ready.put(None)


async def _pulled(work: Copying, wanted: Sequence[Wanted], folder: Path) -> Pulled:
    def told(progress: Progress) -> None:
        work.meter.note = f"fetching {safe(progress.path, 80)}" if not work.meter.fetched else work.meter.note

    got = await pull(
        work.source.dial, work.root, wanted, folder, work.staging / "parts",
        cap=work.cap, patience=work.patience, on_progress=told,
    )  # fmt: skip
    _refuse(work, got)
    return got


async def _next(
    ready: asyncio.Queue[tuple[Path, list[HashedFile]] | None], fetching: asyncio.Future[None]
) -> tuple[Path, list[HashedFile]] | None:
    """The next batch; what broke the fetching is raised here, too."""
    getting = asyncio.ensure_future(ready.get())
    both: set[asyncio.Future[object]] = {getting, fetching}  # type: ignore[arg-type]
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if not getting.done() and fetching.done() and fetching.exception() is not None:
        getting.cancel()
        fetching.result()
    return await getting


async def _store(work: Copying, folder: Path, files: list[HashedFile]) -> None:
    """Put files into the store, a second time where they did not arrive as they were."""
    wrong: dict[str, str | None] = {one.path: None for one in files}
    for _ in range(2):
        if wrong:
            wrong = dict(
                await work.store.put(folder, [one for one in files if one.path in wrong], work.moved)
            )
    for one in files:
        if one.path in wrong:
            work.problems.append(
                refusal("store-differs", f"{work.store.title} made other bytes of it.", one.path)
            )
        else:
            work.done[one.path] = one
            work.meter.files += 1
    await in_thread(shutil.rmtree, folder, True)


async def _odd_ones(work: Copying) -> None:
    if work.layout.tar is None:
        return
    folder = work.staging / _ODD
    names = {one.path: f"{number:06}" for number, one in enumerate(work.layout.tarred)}
    got = await _pulled(work, [_wanted(one, names[one.path]) for one in work.layout.tarred], folder)
    if len(got.arrived) == len(names):
        tar = await _packed(work, work.staging / "tar", lambda one: folder / names[one.path])
        await _store(work, work.staging / "tar", [tar])
    await in_thread(shutil.rmtree, folder, True)


async def _put_tags(work: Copying, tags: dict[str, bytes]) -> None:
    """One after another: the declaration makes it a bag, and must be the last thing that is written."""
    folder = work.staging / "tags"
    for path, data in tags.items():
        await in_thread(write_file, folder / path, data)
    for path, data in tags.items():
        if await work.store.put(folder, [hashed(path, data)], lambda count, path: None):
            work.problems.append(
                refusal("store-differs", f"{work.store.title} made other bytes of it.", path)
            )
            return

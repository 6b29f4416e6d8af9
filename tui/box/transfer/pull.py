"""Fetches a list of files and believes none of it before its hash agrees.

Large files come as one stream each, small ones together as a tar stream. The event loop only moves blocks;
hashing, writing and syncing happen in threads, a few megabytes behind the network at most.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tui.box.transfer.disk import disk_failure, need_room
from tui.box.transfer.line import Dial, Line, Patience, streams_for
from tui.box.transfer.lots import Lot, lots
from tui.box.transfer.meter import Meter, OnProgress, StallWatch, Throttle
from tui.box.transfer.part import CHUNK, HashDiffers, PartFile
from tui.box.transfer.tarstream import TarRefused
from tui.box.transfer.wanted import SMALL, Problem, Pulled, Wanted, proper_name
from tui.box.transport import Channel, LinkLost, Script
from tui.model.text import safe

T = TypeVar("T")

_BLOCK = (
    262_144  # dd's: one read and one write of this size; the last bytes before an offset are skipped here
)
_READ = 1 << 20
_BATCH = 4 << 20
_LOTS_AT_ONCE = 2
_TICK_S = 0.125
_SOON_S = 0.1

# dd, not `tail -c | head -c`: one process, and GNU head moves 8 KiB at a time.
_STREAM = """\
export LC_ALL=C
CDPATH= cd -- "$1" || exit 3
exec dd if="./$2" bs=262144 skip="$3"
"""

_IS_THERE = 'CDPATH= cd -- "$1" && [ -e "./$2" ]'

# -h: the bytes behind a link, as the hash was taken of. Names come NUL-terminated and start with "./", so
# that none is an option. Without GNU tar, xargs may start tar several times: archives in a row.
_TAR = """\
export LC_ALL=C COPYFILE_DISABLE=1
unset TAR_OPTIONS
CDPATH= cd -- "$1" || exit 3
case $(tar --version 2>/dev/null) in
*GNU*) head -c "$2" |
tar --null --no-recursion --no-unquote -h --hard-dereference --format=gnu -b 128 -cf - -T - ;;
*) head -c "$2" | xargs -0 tar -chf - ;;
esac
"""


async def pull(
    dial: Dial,
    root: str,
    files: Sequence[Wanted],
    into: Path,
    parts: Path,
    *,
    cap: int | None = None,
    patience: Patience | None = None,
    chunk: int = CHUNK,
    small: int = SMALL,
    on_progress: OnProgress = lambda progress: None,
) -> Pulled:
    """Fetch `files` from below `root` on a box.

    A file gets its name in `into` only when its SHA-256 agrees. What a former call left is hashed again and
    then kept; nothing is ever kept for its size or time.

    Args:
        dial: makes a connection for this transfer alone; called again when one is lost.
        into: a folder under construction: a file in it that is not what it must be is replaced.
        parts: folder for unfinished files, on the same filesystem.
        cap: bytes per second at most.
        chunk: bytes after which an unfinished file can be taken up again.
        small: files below this size travel together.
        on_progress: called about eight times a second from the event loop.

    Raises:
        Failure: this computer's disk, or the link for good. Problems of single files are in the result.
        ValueError: a name that could leave its folder, or two files of one name.
    """
    _check_names(files)
    work = _Pull(dial, root, files, into, parts, cap, patience or Patience(), chunk, small)
    return await work.run(on_progress)


def _check_names(files: Sequence[Wanted]) -> None:
    for wanted in files:
        if not (proper_name(wanted.path) and proper_name(wanted.local)):
            raise ValueError("a name leads out of its folder")
    if len({wanted.local for wanted in files}) != len(files):
        raise ValueError("two files would get the same name")


class _Pull:
    """One call of `pull`."""

    def __init__(
        self,
        dial: Dial,
        root: str,
        files: Sequence[Wanted],
        into: Path,
        parts: Path,
        cap: int | None,
        patience: Patience,
        chunk: int,
        small: int,
    ) -> None:
        self._line = Line(dial, patience, cap)
        self._root, self._files, self._into, self._parts = root, files, into, parts
        self._patience, self._chunk, self._small = patience, chunk, small
        self._meter = Meter(sum(wanted.size for wanted in files), len(files))
        self._throttle = Throttle(cap)
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(5, thread_name_prefix="pull")
        self._writers = ThreadPoolExecutor(3, thread_name_prefix="write")
        self._arrived: list[Wanted] = []
        self._problems: list[Problem] = []

    async def run(self, on_progress: OnProgress) -> Pulled:
        ticking = asyncio.ensure_future(self._tick(on_progress))
        try:
            missing = await self._thread(self._prepare)
            if missing:
                await self._fetch_all(missing)
        except OSError as error:
            raise disk_failure(error, self._into) from None
        finally:
            self._stop.set()
            ticking.cancel()
            await asyncio.shield(self._line.close())
            await asyncio.to_thread(self._pool.shutdown)
            await asyncio.to_thread(self._writers.shutdown)
            on_progress(self._meter.snapshot())
        return Pulled(
            tuple(self._arrived),
            tuple(self._problems),
            kept=self._meter.kept,
            fetched=self._meter.fetched,
            links=self._line.links,
        )

    async def _tick(self, on_progress: OnProgress) -> None:
        while True:
            self._meter.links = max(1, self._line.links)
            on_progress(self._meter.snapshot())
            await asyncio.sleep(_TICK_S)

    def _prepare(self) -> list[Wanted]:
        """Prove what is already there, and see that the rest has room. Returns the rest."""
        self._into.mkdir(parents=True, exist_ok=True)
        self._parts.mkdir(parents=True, exist_ok=True)
        for leftover in self._parts.glob("*.small"):
            leftover.unlink()
        there = _names_below(self._into)
        missing: list[Wanted] = []
        for wanted in self._files:
            if wanted.local in there and self._part(wanted).finished(self._meter.keep):
                self._have(wanted)
            else:
                missing.append(wanted)
        begun = sum(path.stat().st_blocks * 512 for path in self._parts.iterdir())
        size = sum(wanted.size for wanted in missing)
        need_room(self._into, max(0, size - begun), len(missing) + len(_folders(missing)) + 4)
        return missing

    async def _fetch_all(self, missing: list[Wanted]) -> None:
        await self._line.transport()
        small = deque(lots([w for w in missing if w.size < self._small]))
        large = deque(w for w in missing if w.size >= self._small)
        streams = streams_for(self._line.rtt or 0.0)
        # small files cost this computer more than the link: one lot gets its names while the next comes
        workers = [asyncio.ensure_future(self._work(small, deque())) for _ in range(streams, _LOTS_AT_ONCE)]
        workers += [asyncio.ensure_future(self._work(small, large)) for _ in range(streams)]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for worker in workers:
                worker.cancel()
            results = await asyncio.gather(*workers, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _work(self, small: deque[list[Wanted]], large: deque[Wanted]) -> None:
        while small:
            await self._lot(small.popleft())
        while large:
            await self._file(large.popleft())

    # --- one large file -----------------------------------------------------------------------------------

    async def _file(self, wanted: Wanted) -> None:
        part = self._part(wanted)
        problem: Problem | None = None
        try:
            for _ in range(2):  # a second time from the start, in case it was this computer that went wrong
                self._meter.note, self._meter.path = "hashing what was kept", wanted.path
                kept = await self._thread(part.resume, self._meter.keep)
                problem = await self._fill(wanted, part) or await self._commit(wanted, part)
                if problem is None:
                    self._have(wanted)
                    return
                self._meter.keep(-kept)
                self._meter.forget(part.offset - kept)
                await self._thread(part.discard)
                if problem.code != "hash-differs":
                    break
            if problem is not None:
                self._problems.append(problem)
        finally:
            part.close()

    async def _commit(self, wanted: Wanted, part: PartFile) -> Problem | None:
        try:
            await self._thread(part.commit)
        except HashDiffers:
            return Problem(
                wanted.path, "hash-differs", "the bytes that came are not the bytes that were hashed"
            )
        return None

    async def _fill(self, wanted: Wanted, part: PartFile) -> Problem | None:
        """Bring the part to its full length, over as many connections as it takes."""
        while True:
            try:
                return await self._stream(wanted, part)
            except (LinkLost, TimeoutError):
                self._meter.note = "connecting again"

    async def _stream(self, wanted: Wanted, part: PartFile) -> Problem | None:
        skip = part.offset % _BLOCK
        script = Script(
            _STREAM,
            (self._root, wanted.path, str(part.offset // _BLOCK)),
            why=f"fetch {safe(wanted.path, 80)}",
        )
        transport, channel = await self._line.open(script)
        over = False

        def put(blocks: list[bytes]) -> None:
            nonlocal over, skip
            fresh: list[memoryview] = []
            room = wanted.size - part.offset
            for block in blocks:
                piece = memoryview(block)[skip:]
                skip -= len(block) - len(piece)
                over = over or len(piece) > room
                fresh.append(piece[:room])
                room -= len(fresh[-1])
            part.write(fresh)

        counted = part.offset

        def count() -> None:
            nonlocal counted
            if part.offset > counted:
                self._meter.arrived(part.offset - counted, wanted.path)
                self._line.moved()
                counted = part.offset

        try:
            await self._flow(channel, put, count, lambda: over)
            return await self._end_of(channel, wanted, part.offset, over)
        except (LinkLost, TimeoutError):
            await self._line.lost(transport)
            raise
        finally:
            await channel.close()

    async def _end_of(self, channel: Channel, wanted: Wanted, offset: int, over: bool) -> Problem | None:
        """What the end of a stream says about the file on the box. Raises LinkLost, TimeoutError."""
        if over:
            return Problem(wanted.path, "source-changed", "it has grown since it was hashed")
        if offset == wanted.size:
            return None
        if not channel.exit:
            return Problem(wanted.path, "source-changed", "it has shrunk since it was hashed")
        said = bytes(getattr(channel, "stderr", b""))
        there = await self._line.run(
            Script(_IS_THERE, (self._root, wanted.path), why="is the file still there?")
        )
        if there.exit != 0:
            return Problem(wanted.path, "source-gone", "it is not there any more")
        reason = next((line for line in said.splitlines() if b"dd: " in line), b"it can't be read")
        return Problem(wanted.path, "source-unreadable", safe(reason.rpartition(b": ")[2], 200))

    # --- many small files ---------------------------------------------------------------------------------

    async def _lot(self, files: list[Wanted]) -> None:
        """One tar stream; what it does not bring rightly is fetched file by file, which tells why."""
        alone: list[Wanted] = []
        while files:
            lot = Lot(files, self._into, self._parts)
            try:
                await self._tar(lot)
                files = []
                alone += lot.left
            except (LinkLost, TimeoutError):
                files = lot.left
                self._meter.note = "connecting again"
            except TarRefused:
                files = []
                alone += lot.left
            finally:
                await self._thread(lot.settle)
                for wanted in lot.done:
                    self._have(wanted)
            alone += lot.refused
        for wanted in alone:
            await self._file(wanted)

    async def _tar(self, lot: Lot) -> None:
        names = b"".join(b"./" + os.fsencode(wanted.path) + b"\0" for wanted in lot.left)
        script = Script(_TAR, (self._root, str(len(names))), why=f"fetch {len(lot.left)} small files")
        transport, channel = await self._line.open(script)
        counted = 0

        def count() -> None:
            nonlocal counted
            if lot.bytes_done > counted:
                self._meter.arrived(lot.bytes_done - counted, lot.last)
                self._line.moved()
                counted = lot.bytes_done

        asking = asyncio.ensure_future(channel.write(names))
        try:
            await self._flow(channel, lot.feed, count, lambda: False)
            await asking
        except (LinkLost, TimeoutError):
            await self._line.lost(transport)
            raise
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            count()
            await channel.close()

    # --- shared -------------------------------------------------------------------------------------------

    async def _flow(
        self,
        channel: Channel,
        put: Callable[[list[bytes]], None],
        count: Callable[[], None],
        enough: Callable[[], bool],
    ) -> None:
        """Move a stream into `put`, which runs in a thread while the next bytes come. Raises LinkLost.

        Args:
            count: called in the event loop after every `put`, to count what became of the bytes.
            enough: asked after every `put`; the stream is left when it says so.
        """
        watch = StallWatch(self._patience.stall_s)
        batch: list[bytes] = []
        held = 0
        sent = time.monotonic()
        pending: asyncio.Future[None] | None = None
        try:
            while block := await _read(channel, watch):
                watch.moved(len(block))
                self._meter.heard()
                began = time.monotonic()
                await self._throttle.passed(len(block))
                batch.append(block)
                held += len(block)
                idle = pending is None or pending.done()
                if held >= _BATCH or (idle and (held >= _READ or began - sent > _SOON_S)):
                    if pending is not None:
                        await asyncio.shield(pending)
                        count()
                        if enough():
                            return
                    pending, batch, held, sent = self._submit(put, batch), [], 0, began
                watch.pause(time.monotonic() - began)
        finally:
            if pending is not None:
                await self._settled(pending)
            if batch and (pending is None or pending.exception() is None):
                await self._thread(put, batch)
            count()
        if pending is not None:
            pending.result()

    def _submit(self, put: Callable[[list[bytes]], None], batch: list[bytes]) -> asyncio.Future[None]:
        return asyncio.get_running_loop().run_in_executor(self._pool, put, batch)

    async def _settled(self, future: asyncio.Future[T]) -> None:
        """Wait for a thread even while being cancelled: it holds files that are closed next."""
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError:
            self._stop.set()
            await asyncio.wait({future})
            if not future.cancelled():
                future.exception()
            raise

    async def _thread(self, work: Callable[..., T], *args: object) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, *args)
        await self._settled(future)
        return future.result()

    def _part(self, wanted: Wanted) -> PartFile:
        final = self._into / wanted.local
        return PartFile(
            final, self._parts, wanted.size, wanted.sha256, self._stop, self._chunk, self._writers
        )

    def _have(self, wanted: Wanted) -> None:
        self._arrived.append(wanted)
        self._meter.files += 1


class Stalled(LinkLost):
    """Too few bytes for too long: as good as lost, and handled alike."""


async def _read(channel: Channel, watch: StallWatch) -> bytes:
    try:
        async with asyncio.timeout(max(0.01, watch.left)):
            return await channel.read(_READ)
    except TimeoutError:
        raise Stalled("Nothing arrived for a while, and the link did not say that it was lost.") from None


def _folders(files: Sequence[Wanted]) -> set[str]:
    """Every folder that these files lie in, also the ones in between."""
    found: set[str] = set()
    for wanted in files:
        folder = wanted.local.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _names_below(folder: Path) -> set[str]:
    found: set[str] = set()
    for where, _, names in os.walk(folder):
        below = os.path.relpath(where, folder)
        found.update(names if below == "." else (f"{below}/{name}" for name in names))
    return found

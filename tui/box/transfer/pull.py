"""Fetches a list of files and believes none of it before its hash agrees.

Large files come as one stream each, small ones together as a tar stream (`SmallFiles`).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tui.box.transfer.disk import disk_failure, need_room
from tui.box.transfer.flow import Flow
from tui.box.transfer.line import Dial, Line, Patience, streams_for
from tui.box.transfer.lots import lots
from tui.box.transfer.meter import Meter, OnProgress
from tui.box.transfer.part import CHUNK, HashDiffers, PartFile
from tui.box.transfer.small_files import SmallFiles
from tui.box.transfer.wanted import SMALL, Problem, Pulled, Wanted, proper_name
from tui.box.transport import Channel, LinkLost, Script
from tui.model.text import safe

_BLOCK = (
    262_144  # dd's: one read and one write of this size; the last bytes before an offset are skipped here
)
_LOTS_AT_ONCE = 2
_TICK_S = 0.125

# dd, not `tail -c | head -c`: one process, and GNU head moves 8 KiB at a time.
_STREAM = """\
export LC_ALL=C
CDPATH= cd -- "$1" || exit 3
exec dd if="./$2" bs=262144 skip="$3"
"""

_IS_THERE = 'CDPATH= cd -- "$1" && [ -e "./$2" ]'


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
        self._chunk, self._small = chunk, small
        self._meter = Meter(sum(wanted.size for wanted in files), len(files))
        self._flow = Flow(self._meter, cap, patience.stall_s)
        self._lots = SmallFiles(self._line, self._flow, self._meter, root, into, parts, self._have)
        self._writers = ThreadPoolExecutor(3, thread_name_prefix="write")
        self._arrived: list[Wanted] = []
        self._problems: list[Problem] = []

    async def run(self, on_progress: OnProgress) -> Pulled:
        ticking = asyncio.ensure_future(self._tick(on_progress))
        try:
            missing = await self._flow.thread(self._prepare)
            if missing:
                await self._fetch_all(missing)
        except OSError as error:
            raise disk_failure(error, self._into) from None
        finally:
            self._flow.stop.set()
            ticking.cancel()
            await asyncio.shield(self._line.close())
            await self._flow.close()
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
            for wanted in await self._lots.fetch(small.popleft()):
                await self._file(wanted)
        while large:
            await self._file(large.popleft())

    # --- one large file -----------------------------------------------------------------------------------

    async def _file(self, wanted: Wanted) -> None:
        part = self._part(wanted)
        problem: Problem | None = None
        try:
            for _ in range(2):  # a second time from the start, in case it was this computer that went wrong
                self._meter.note, self._meter.path = "hashing what was kept", wanted.path
                kept = await self._flow.thread(part.resume, self._meter.keep)
                problem = await self._fill(wanted, part) or await self._commit(wanted, part)
                if problem is None:
                    self._have(wanted)
                    return
                self._meter.keep(-kept)
                self._meter.forget(part.offset - kept)
                await self._flow.thread(part.discard)
                if problem.code != "hash-differs":
                    break
            if problem is not None:
                self._problems.append(problem)
        finally:
            part.close()

    async def _commit(self, wanted: Wanted, part: PartFile) -> Problem | None:
        try:
            await self._flow.thread(part.commit)
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
            await self._flow.move(channel, put, count, lambda: over)
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

    def _part(self, wanted: Wanted) -> PartFile:
        final = self._into / wanted.local
        return PartFile(
            final, self._parts, wanted.size, wanted.sha256, self._flow.stop, self._chunk, self._writers
        )

    def _have(self, wanted: Wanted) -> None:
        self._arrived.append(wanted)
        self._meter.files += 1


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

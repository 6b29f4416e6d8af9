"""Who reads a durable copy back: a new process on this computer, or another box."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import posixpath
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tui.box.local import LocalTransport
from tui.box.transfer.disk import disk_failure, room
from tui.box.transfer.line import Dial
from tui.box.transport import Script
from tui.custody.bag import DATA
from tui.custody.stores.base import Listed, Moved, Space, Store, in_thread, store_failure
from tui.custody.stores.box import BoxStore
from tui.custody.stores.devices import device_of
from tui.custody.stores.path import PathStore
from tui.model.custody import HashedFile, Place, Sha256
from tui.model.failure import Exit, Failure

_ANSWER_S = 300.0
_LINE_CAP = 256 << 20
_SHORT = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the consumer made of one file. `sha256` is None where it could not be read, for the `reason`."""

    sha256: Sha256 | None
    size: int = 0
    cold: bool = False
    reason: str = ""


class Consumer(Protocol):
    """Restores files of a store into a fresh folder of its own, and hashes them there.

    Attributes:
        place: the restored ``data`` folder.
        host_key: of the box it is; None for this computer.
    """

    place: Place
    host_key: str | None

    async def start(self) -> None:
        """Make the fresh folder. Raises Failure."""

    async def space(self) -> Space: ...

    async def listed(self, store: Store) -> Listed: ...

    async def take(self, store: Store, files: Sequence[HashedFile], moved: Moved) -> dict[str, Seen]:
        """Restore and hash files of the bag. Raises Failure when the consumer's own disk or link fails."""

    async def unpack(self, tar: HashedFile, members: Sequence[HashedFile]) -> dict[str, Seen]:
        """Restore and hash the members of a tar that was taken, and remove the tar."""

    async def drop(self, paths: Sequence[str]) -> None:
        """Remove restored files, by their path in the bag."""

    async def close(self, *, keep: bool) -> None:
        """End it; the restored files stay if they are kept. Never raises."""


class HereConsumer:
    """A new process on this computer.

    Args:
        below: where the fresh folder is made.
    """

    def __init__(self, below: Path) -> None:
        self._below = below
        self._folder = below
        self._process: asyncio.subprocess.Process | None = None
        self.place = Place(kind="path", path=str(below))
        self.host_key: str | None = None

    async def start(self) -> None:
        try:
            await in_thread(lambda: self._below.mkdir(parents=True, exist_ok=True))
            self._folder = Path(
                await in_thread(lambda: tempfile.mkdtemp(prefix="readback-", dir=self._below))
            )
        except OSError as error:
            raise disk_failure(error, self._below) from None
        device = await device_of(LocalTransport(), str(self._folder))
        self.place = Place(kind="path", path=str(self._folder / DATA), device=device)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tui.custody.reader",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True, limit=_LINE_CAP,
        )  # fmt: skip

    async def space(self) -> Space:
        free = await in_thread(room, self._folder)
        return Space(free.bytes, free.inodes)

    async def listed(self, store: Store) -> Listed:
        if not isinstance(store, PathStore):
            return await store.listed()
        answer = await self._ask({"do": "list", "from": str(store.final)})
        if "failed" in answer:
            raise store_failure(
                store.title, answer["failed"], "Look at it; a copy that can't be read is none."
            )
        return Listed(answer["files"], tuple(answer["others"]))

    async def take(self, store: Store, files: Sequence[HashedFile], moved: Moved) -> dict[str, Seen]:
        if isinstance(store, PathStore):
            return {one.path: await self._take(store, one, moved) for one in files}
        cold = await store.cool(files)
        failed = await store.fetch(files, self._folder, moved)
        seen = {path: _unfetched(reason) for path, reason in failed.items()}
        for one in files:
            if one.path not in seen:
                answer = await self._ask({"do": "hash", "from": str(self._folder / one.path)})
                seen[one.path] = _seen(answer, cold)
        return seen

    async def _take(self, store: PathStore, one: HashedFile, moved: Moved) -> Seen:
        told = 0

        def read(count: int) -> None:
            nonlocal told
            moved(count - told, one.path)
            told = count

        paths = {"from": str(store.final / one.path), "to": str(self._folder / one.path)}
        answer = await self._ask({"do": "take", **paths}, read)
        if "full" in answer:
            raise disk_failure(OSError(answer["errno"], answer["full"]), self._folder)
        read(int(answer.get("size", told)))
        return _seen(answer, None)

    async def unpack(self, tar: HashedFile, members: Sequence[HashedFile]) -> dict[str, Seen]:
        path = self._folder / tar.path
        largest = max((one.size for one in members), default=0)
        request = {"do": "tar", "from": str(path), "to": str(self._folder / DATA), "largest": largest}
        answer = await self._ask(request)
        await in_thread(path.unlink)
        if "failed" in answer:
            if answer.get("errno") in _SHORT:
                raise disk_failure(OSError(answer["errno"], answer["failed"]), self._folder)
            return {one.path: Seen(None, reason=answer["failed"]) for one in members}
        found = {name: Seen(sha256, size) for name, size, sha256 in answer["members"]}
        return found | {one.path: Seen(None, reason="missing") for one in members if one.path not in found}

    async def drop(self, paths: Sequence[str]) -> None:
        def remove() -> None:
            for path in paths:
                (self._folder / path).unlink(missing_ok=True)

        await in_thread(remove)

    async def close(self, *, keep: bool) -> None:
        if self._process is not None and self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            waiting = asyncio.ensure_future(self._process.wait())
            await asyncio.wait({waiting}, timeout=2)
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                await asyncio.wait({waiting}, timeout=2)
        if not keep and self._folder != self._below:
            await in_thread(shutil.rmtree, self._folder, True)

    async def _ask(self, request: dict[str, Any], told: Any = lambda count: None) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            await process.stdin.drain()
            while True:
                async with asyncio.timeout(_ANSWER_S):
                    line = await process.stdout.readline()
                if not line:
                    raise EOFError
                answer: dict[str, Any] = json.loads(line)
                if answer.get("done"):
                    return answer
                told(answer["read"])
        except (OSError, EOFError, TimeoutError, ValueError):
            raise Failure(
                "The process that reads the copy back ended or stopped answering.",
                means="Nothing is said about the copy.",
                do="Repeat the readback.",
                exit=Exit.UNKNOWN,
                code="reader-lost",
            ) from None


def _unfetched(reason: str) -> Seen:
    """A file that the transfer did not let through; bytes that differ are told apart from no bytes."""
    return Seen(None, reason=reason)


def _seen(answer: Mapping[str, Any], cold: bool | None) -> Seen:
    if "failed" in answer:
        return Seen(None, reason=str(answer["failed"]))
    return Seen(answer["sha256"], answer["size"], bool(answer["cold"]) if cold is None else cold)


# --- another box ------------------------------------------------------------------------------------------

_FRESH = (
    'umask 077; cd "${1:-${TMPDIR:-/tmp}}" && d=$(mktemp -d ./rgt-readback.XXXXXXXX) && cd "$d" && pwd -P'
)
_GONE = 'case $1 in */rgt-readback.*) rm -rf "$1" ;; esac'
_FREE = r"""
cd "$1" || exit 1
df -Pk . | awk 'NR == 2 {print $4}'
df -Pi . 2>/dev/null | awk 'NR == 2 {print $4}'
"""
_UNPACK = 'cd "$1" && tar -xf "./$2" -C data && rm -f "./$2"'
_FOLDER = re.compile(rb"(/[^\n\0]{1,1000})\n\Z")


class BoxConsumer:
    """Another box. Files go there through this computer, and are hashed there by its own tools.

    Args:
        dial: makes a connection for this consumer alone.
        below: folder on the box for the fresh folder; empty: its place for temporary files.
        staging: folder of this computer for files on their way.
    """

    def __init__(self, box: str, dial: Dial, staging: Path, below: str = "") -> None:
        self._box, self._dial, self._below, self._staging = box, dial, below, staging
        self.place = Place(kind="box", path=below or "/tmp", box=box)  # noqa: S108 - a place to be made
        self.host_key: str | None = None
        self._folder = ""
        self._store: BoxStore | None = None

    async def start(self) -> None:
        store = BoxStore(self._box, self._dial, "/", "readback")
        self._store = store
        transport = await store.line.transport()
        self.host_key = getattr(transport, "host_key", None) or None
        done = await transport.run(
            Script(_FRESH, (self._below,), why="make a fresh folder to read back into")
        )
        folder = _FOLDER.match(done.stdout)
        if done.exit != 0 or folder is None:
            raise store_failure(
                self._box, done.stderr or "no fresh folder could be made", "Give another --on."
            )
        self._folder = folder[1].decode("utf-8", "surrogateescape")
        store.folder, store.building = self._folder, posixpath.join(self._folder, "readback.part")
        await store.begin({})
        device = await device_of(transport, self._folder)
        self.place = Place(
            kind="box", path=posixpath.join(store.building, DATA), box=self._box, device=device
        )

    async def space(self) -> Space:
        done = await (await self._its().line.transport()).run(
            Script(_FREE, (self._folder,), why="room there")
        )
        words = (*done.stdout.split(b"\n"), b"", b"")[:2]
        free, inodes = (int(word) if word.isdigit() else None for word in words)
        return Space(None if free is None else free * 1024, inodes or None)

    async def listed(self, store: Store) -> Listed:
        return await store.listed()

    async def take(self, store: Store, files: Sequence[HashedFile], moved: Moved) -> dict[str, Seen]:
        cold = await store.cool(files)
        folder = self._staging / "on-its-way"
        await in_thread(shutil.rmtree, folder, True)  # what a killed process left there
        try:
            failed = await store.fetch(files, folder, lambda count, path: None)
            there = [one for one in files if one.path not in failed]
            wrong = await self._its().put(folder, there, moved) if there else {}
        finally:
            await in_thread(shutil.rmtree, folder, True)
        seen = {path: _unfetched(reason) for path, reason in failed.items()}
        for one in there:
            digest = wrong.get(one.path, one.sha256)
            seen[one.path] = Seen(digest, one.size, cold, "" if digest else "it could not be hashed there")
        return seen

    async def unpack(self, tar: HashedFile, members: Sequence[HashedFile]) -> dict[str, Seen]:
        """The tar as a whole was hashed there and is the one that was written from proven members."""
        store = self._its()
        script = Script(_UNPACK, (store.building, tar.path), why="unpack the files with odd names")
        done = await (await store.line.transport()).run(script, timeout=_ANSWER_S)
        if done.exit != 0:
            return {one.path: Seen(None, reason="the tar can't be unpacked there") for one in members}
        folder = posixpath.join(store.building, DATA)
        digests = await store.digests(folder, members)
        return {one.path: Seen(digests.get(one.path), one.size, reason="not there") for one in members}

    async def drop(self, paths: Sequence[str]) -> None:
        await self._its().settle([], paths, {})

    async def close(self, *, keep: bool) -> None:
        if self._store is None:
            return
        with contextlib.suppress(Failure, TimeoutError):
            if self._folder and not keep:
                transport = await self._store.line.transport()
                await transport.run(
                    Script(_GONE, (self._folder,), why="remove what was read back"), timeout=120
                )
        await self._store.close()

    def _its(self) -> BoxStore:
        assert self._store is not None
        return self._store

"""A durable copy on another box, over SSH."""

from __future__ import annotations

import asyncio
import hashlib
import os
import posixpath
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from tui.box.transfer.line import BulkTransport, Dial, Line, Patience
from tui.box.transfer.meter import Throttle
from tui.box.transfer.pull import pull
from tui.box.transfer.wanted import SMALL, Wanted
from tui.box.transport import Channel, LinkLost, Script
from tui.custody.bag import raw_name, tar_end, tar_header
from tui.custody.hashing import Hashed, Hasher, Job, hash_files, race
from tui.custody.listing import FolderMissing, take_listing
from tui.custody.stores.base import Listed, Moved, T, in_thread, store_failure, wrong_names
from tui.custody.stores.devices import device_of
from tui.custody.stores.path import sealed_already
from tui.model.custody import HashedFile, Place, Sha256
from tui.model.text import amount

_BLOCK = 1 << 20
_SHORT = Patience(attempts=5)
_SYNC_S = 300.0

# $1 folder, $2 name of the bag. 9: it is sealed. Then free KiB and inodes.
_BEGIN = r"""
LC_ALL=C; export LC_ALL; umask 077
[ -e "$1/$2" ] || [ -h "$1/$2" ] && exit 9
mkdir -p "$1/$2.part/parts" && [ -w "$1/$2.part" ] || exit 1
cd "$1" && pwd -P || exit 1
df -Pk . | awk 'NR == 2 {print $4}'
df -Pi . 2>/dev/null | awk 'NR == 2 {print $4}'
"""

_IS_SEALED = 'if [ -e "$1" ] || [ -h "$1" ]; then echo yes; else echo no; fi'

# $1 file, $2 MiB that are kept, $3 bytes to come. Only whole MiB are kept of what is there.
_TAKE = r"""
umask 077
dd if=/dev/null of="$1" bs=1048576 seek="$2" 2>/dev/null || exit 1
head -c "$3" >>"$1" || exit 1
dd if=/dev/null of="$1" conv=notrunc,fsync 2>/dev/null || sync
"""

_HAVE = 'if [ -f "$1" ]; then wc -c <"$1"; else echo 0; fi'

# $1 folder, $2 bytes of tar to come.
_TAKE_LOT = 'umask 077; cd "$1" && head -c "$2" | tar -xf -'

# $1 folder, $2 bytes of pairs of names on stdin.
_RENAME = r"""
cd "$1" || exit 1
head -c "$2" | xargs -0 -n 2 /bin/sh -c 'mkdir -p "$(dirname "$2")" && mv -f "$1" "$2" || exit 255' rgt
"""

_REMOVE = 'cd "$1" && head -c "$2" | xargs -0 rm -f'

# $1 folder, $2 name of the bag. 9: it is there already.
_SEAL = r"""
cd "$1" || exit 1
rm -rf "$2.part/parts"
sync
[ -e "$2" ] || [ -h "$2" ] && exit 9
mv "$2.part" "$2" && sync
"""

# $1 folder, $2 bytes of names on stdin: drops each from memory, then tells what stayed there.
_COOL = r"""
LC_ALL=C; export LC_ALL
cd "$1" || exit 1
head -c "$2" | xargs -0 -n 100 /bin/sh -c '
for f do dd if="$f" iflag=nocache count=0 2>/dev/null || exit 255; done
fincore -b -n -r -o RES "$@" || exit 255' rgt
"""


class BoxStore:
    """The bag `name` in `folder` of a box.

    Args:
        dial: makes a connection for this store alone.
        throttle: for what is sent; None: as fast as it goes.
    """

    def __init__(self, box: str, dial: Dial, folder: str, name: str, *, cap: int | None = None) -> None:
        self.box, self.folder, self.name = box, folder, name
        self.title = f"{box}:{posixpath.join(folder, name)}"
        self.place = Place(kind="box", path=posixpath.join(folder, name), box=box)
        self.line = Line(dial, _SHORT)
        self.building = posixpath.join(folder, f"{name}.part")
        self._dial, self._cap, self._throttle = dial, cap, Throttle(cap)
        self._hasher: Hasher | None = None

    async def identify(self) -> None:
        """Find out on which disk it lies. Raises Failure."""
        device = await device_of(await self.line.transport(), self.folder)
        self.place = self.place.model_copy(update={"device": device})

    async def sealed(self) -> bool:
        done = await self._run(Script(_IS_SEALED, (self.place.path,), why="is there a finished copy?"))
        return done == b"yes\n"

    async def begin(self, wanted: Mapping[str, HashedFile]) -> set[str]:
        script = Script(_BEGIN, (self.folder, self.name), why="make a folder for the copy")
        done = await self._again(lambda box: box.run(script))
        if done.exit == 9:
            raise sealed_already(self.title)
        if done.exit != 0:
            raise store_failure(self.title, done.stderr or "the folder can't be made", _ELSEWHERE)
        self._at(done.stdout)
        listed = await self._listing(self.building)
        known = [
            wanted[path]
            for path, size in listed.files.items()
            if path in wanted and wanted[path].size == size
        ]
        digests = await self.digests(self.building, known)
        there = {one.path for one in known if digests.get(one.path) == one.sha256}
        left = [one for path, one in wanted.items() if path not in there]
        self._room(done.stdout.split(b"\n"), sum(one.size for one in left), len(left))
        return there

    def _at(self, said: bytes) -> None:
        """The folder's real path, for later scripts: ``~`` and relative ones are the login's."""
        real = said.split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
        if real.startswith("/"):
            self.folder = real
            self.building = posixpath.join(real, f"{self.name}.part")
            self.place = self.place.model_copy(update={"path": posixpath.join(real, self.name)})

    def _room(self, said: list[bytes], need: int, files: int) -> None:
        free, inodes = (int(word) if word.isdigit() else None for word in (*said, b"", b"", b"")[1:3])
        if free is not None and need > free * 1024:
            what = f"{amount(free * 1024)} are free, {amount(need)} are needed"
            raise store_failure(self.title, what, _ELSEWHERE, "disk-full")
        if inodes and files + 16 > inodes:  # some filesystems count none and say 0
            what = f"{inodes} inodes are free, {files} files are to come"
            raise store_failure(self.title, what, _ELSEWHERE, "inodes-full")

    async def put(self, folder: Path, files: Sequence[HashedFile], moved: Moved) -> dict[str, Sha256 | None]:
        small = [one for one in files if one.size < SMALL]
        large = [one for one in files if one.size >= SMALL]
        for one in large:
            await self._large(folder / one.path, one, moved)
        if small:
            await self._again(lambda box: self._lot(folder, small, moved))
        renamed = {one.path: f"parts/{self._part_name(one)}" for one in large}
        digests = await self.digests(self.building, files, renamed)
        wrong = {one.path: digests.get(one.path) for one in files if digests.get(one.path) != one.sha256}
        await self.settle([one.path for one in files if one.path not in wrong], list(wrong), renamed)
        return wrong

    async def settle(self, good: Sequence[str], bad: Sequence[str], renamed: Mapping[str, str]) -> None:
        """Give the files whose hash agrees their names, and remove the others."""
        pairs = [name for path in good if path in renamed for name in (renamed[path], path)]
        if pairs:
            await self._with_names(_RENAME, pairs, "give finished files their names")
        if bad:
            await self._with_names(_REMOVE, [renamed.get(path, path) for path in bad], "remove what is wrong")

    def _part_name(self, one: HashedFile) -> str:
        return hashlib.sha256(raw_name(one.path)).hexdigest()[:32] + ".part"

    async def _large(self, source: Path, one: HashedFile, moved: Moved) -> None:
        target = posixpath.join(self.building, "parts", self._part_name(one))

        async def attempt(_: BulkTransport) -> None:
            had = await self._run(Script(_HAVE, (target,), why="how much is there already"))
            kept = min(int(had), one.size) // _BLOCK if had.strip().isdigit() else 0
            count = one.size - kept * _BLOCK
            script = Script(_TAKE, (target, str(kept), str(count)), why=f"store {one.path}")
            file = await in_thread(_opened, source)
            try:
                await in_thread(file.seek, kept * _BLOCK)
                await self._send(script, _blocks(file, count), lambda n: moved(n, one.path))
            finally:
                await in_thread(file.close)

        await self._again(attempt)

    async def _lot(self, folder: Path, files: Sequence[HashedFile], moved: Moved) -> None:
        tar = bytearray()
        for one in files:
            data = await in_thread((folder / one.path).read_bytes)
            tar += tar_header(raw_name("./" + one.path), len(data)) + data + bytes(-len(data) % 512)
        tar += tar_end(len(tar))
        script = Script(_TAKE_LOT, (self.building, str(len(tar))), why=f"store {len(files)} small files")

        async def blocks() -> bytes:
            block = bytes(tar[:_BLOCK])
            del tar[:_BLOCK]
            return block

        await self._send(script, blocks, lambda n: moved(n, files[-1].path))

    async def _send(
        self, script: Script, blocks: Callable[[], Awaitable[bytes]], moved: Callable[[int], None]
    ) -> None:
        """Feed a command that takes a known number of bytes. Raises Failure when it fails, LinkLost."""
        transport, channel = await self.line.open(script)
        lost: LinkLost | TimeoutError | None = None
        try:
            while block := await blocks():
                await channel.write(block)
                moved(len(block))
                self.line.moved()
                await self._throttle.passed(len(block))
            await _to_the_end(channel, _SYNC_S)
        except (LinkLost, TimeoutError) as error:
            lost = error  # a command that has ended takes no input, either: then its status says why
        finally:
            status = channel.exit
            await channel.close()
        if status:
            said = bytes(getattr(channel, "stderr", b"")) or f"exit status {status}".encode()
            raise store_failure(self.title, said, _ELSEWHERE, _code(said))
        if lost is not None:
            await self.line.lost(transport)
            raise lost

    async def seal(self, expected: Mapping[str, int]) -> tuple[str, ...]:
        listed = await self._listing(self.building)
        files = {path: size for path, size in listed.files.items() if not path.startswith("parts/")}
        wrong = wrong_names(files, listed.others, expected)
        if wrong:
            return wrong
        script = Script(_SEAL, (self.folder, self.name), why="seal the copy")
        done = await (await self.line.transport()).run(script, timeout=_SYNC_S)
        if done.exit == 9:
            raise sealed_already(self.title)
        if done.exit != 0:
            raise store_failure(self.title, done.stderr, _ELSEWHERE, _code(done.stderr))
        return ()

    async def listed(self) -> Listed:
        return await self._listing(self.place.path)

    async def _listing(self, folder: str) -> Listed:
        try:
            found = await self._again(lambda box: take_listing(box, folder))
        except FolderMissing:
            return Listed({})
        if found.complaints:
            raise store_failure(self.title, f"it can't be listed whole: {found.complaints[0]}", _ELSEWHERE)
        files = {entry.path: entry.size for entry in found.entries if entry.kind == "f"}
        return Listed(files, tuple(e.path for e in found.entries if e.kind not in "fd"))

    async def hashes(self, files: Sequence[HashedFile]) -> dict[str, Sha256]:
        return await self.digests(self.place.path, files)

    async def fetch(self, files: Sequence[HashedFile], into: Path, moved: Moved) -> dict[str, str]:
        wanted = [Wanted(one.path, one.size, one.sha256) for one in files]
        last = 0

        def told(done: int, path: str) -> None:
            nonlocal last
            moved(done - last, path)
            last = done

        parts = into / ".parts"
        got = await pull(
            self._dial, self.place.path, wanted, into, parts, cap=self._cap,
            on_progress=lambda p: told(p.done, p.path),
        )  # fmt: skip
        await in_thread(shutil.rmtree, parts, True)
        return {problem.path: problem.code for problem in got.problems}

    async def cool(self, files: Sequence[HashedFile]) -> bool:
        names = b"".join(b"./" + raw_name(one.path) + b"\0" for one in files)
        script = Script(_COOL, (self.place.path, str(len(names))), why="drop the copy from memory")
        done = await self._again(lambda box: box.run(script, stdin=names, timeout=_SYNC_S))
        told = done.stdout.split()
        return done.exit == 0 and len(told) == len(files) and set(told) == {b"0"}

    async def digests(
        self, folder: str, files: Sequence[HashedFile], renamed: Mapping[str, str] | None = None
    ) -> dict[str, Sha256]:
        """What the box says the files in `folder` are, every byte read. Raises Failure, LinkLost."""
        if not files:
            return {}
        real = renamed or {}
        back = {real.get(one.path, one.path): one.path for one in files}
        found: dict[str, Sha256] = {}

        async def hash_rest(box: BulkTransport) -> None:
            if self._hasher is None:
                self._hasher = await race(box)
            jobs = [Job(real.get(one.path, one.path), one.size) for one in files if one.path not in found]
            async for events in hash_files(box, folder, jobs, self._hasher):
                for event in events:
                    if isinstance(event, Hashed) and event.path in back:
                        found[back[event.path]] = f"sha256:{event.sha256}"
                        self.line.moved()

        await self._again(hash_rest)
        return found

    async def close(self) -> None:
        await self.line.close()

    # --- inside -------------------------------------------------------------------------------------------

    async def _run(self, script: Script) -> bytes:
        done = await self._again(lambda box: box.run(script))
        if done.exit != 0:
            raise store_failure(self.title, done.stderr or "it could not be asked", _ELSEWHERE)
        return done.stdout

    async def _with_names(self, text: str, names: Sequence[str], why: str) -> None:
        stdin = b"".join(b"./" + raw_name(name) + b"\0" for name in names)
        script = Script(text, (self.building, str(len(stdin))), why=why)
        done = await self._again(lambda box: box.run(script, stdin=stdin, timeout=60))
        if done.exit != 0:
            raise store_failure(self.title, done.stderr, _ELSEWHERE, _code(done.stderr))

    async def _again(self, work: Callable[[BulkTransport], Awaitable[T]]) -> T:
        """Repeat what a lost link interrupted; `Line` says when it is enough."""
        while True:
            transport = await self.line.transport()
            try:
                return await work(transport)
            except (LinkLost, TimeoutError):
                await self.line.lost(transport)


_ELSEWHERE = "Look at that box, or give another place with --to."


def _code(said: bytes) -> str:
    if b"No space left" in said or b"quota" in said.lower():
        return "disk-full"
    return "disk-read-only" if b"Read-only file system" in said else "store-failed"


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")


def _blocks(file: BinaryIO, count: int) -> Callable[[], Awaitable[bytes]]:
    left = count

    async def block() -> bytes:
        nonlocal left
        data = await in_thread(os.read, file.fileno(), min(_BLOCK, left)) if left else b""
        left -= len(data)
        return data

    return block


async def _to_the_end(channel: Channel, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while await channel.read():
            pass

"""A durable copy on any rclone remote, through the rclone of this computer and the operator's configuration.

Every call is an argument list; nothing of the configuration is read, written or shown. rclone's own checks
count for nothing here: with remotes that keep no hashes `rclone check` says "0 differences" about altered
files (rclone 1.60.1 over http). What counts is the readback.

Objects get their final names at once: on most remotes an upload appears whole or not at all, and there is no
rename there that is not a second copy. What makes the folder a bag is ``bagit.txt``, which is written last.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tui.box.local import LocalTransport
from tui.custody.stores.base import Listed, Moved, T, in_thread, store_failure, wrong_names
from tui.custody.stores.devices import device_of
from tui.custody.stores.path import sealed_already
from tui.model.custody import HashedFile, Place, Sha256
from tui.model.failure import Exit, Failure
from tui.model.text import safe

REMOTE = re.compile(r"[A-Za-z0-9_.+@][A-Za-z0-9_.+@ -]{0,126}:[^\x00-\x1f\x7f]{0,1000}\Z")
"""``name:path``; a name that starts with "-" would be an option, and one with a comma a configuration."""

_QUIET = ("--use-json-log", "--stats", "500ms", "--stats-log-level", "NOTICE", "--retries", "3")
_STALL_S = 300.0
_LIST_CAP = 256 << 20
_SAID_KEPT = 4000
_NOT_THERE = (3, 4)  # rclone's exit codes: directory not found, file not found
_DECLARATION = "bagit.txt"


class RcloneStore:
    """The bag `name` below ``REMOTE:PATH``.

    Args:
        cap: bytes per second at most.
        program: another rclone.
    """

    def __init__(self, remote: str, name: str, *, cap: int | None = None, program: str = "rclone") -> None:
        if not REMOTE.match(remote):
            raise Failure(
                f"rclone:{safe(remote, 80)} names no rclone remote.",
                do="Write rclone:REMOTE:PATH with a remote of `rclone listremotes`.",
                exit=Exit.USAGE,
                code="no-such-store",
            )
        base = remote if remote.endswith((":", "/")) else f"{remote}/"
        self.bag = f"{base}{name}"
        self.title = f"rclone:{self.bag}"
        self.place = Place(kind="rclone", path=self.bag)
        self._cap = cap
        self._program = shutil.which(program) or ""

    async def identify(self) -> None:
        """Look whether the remote is a folder of this computer. Raises Failure without rclone."""
        status, said, _ = await self._ask("backend", "features", self.bag.partition(":")[0] + ":")
        try:
            local = status == 0 and json.loads(said)["Features"]["IsLocal"] is True
        except (ValueError, KeyError, TypeError):
            local = False
        if local:
            device = await device_of(LocalTransport(), self.bag.partition(":")[2] or "/")
            self.place = self.place.model_copy(update={"device": device})

    async def sealed(self) -> bool:
        return _DECLARATION in (await self.listed()).files

    async def begin(self, wanted: Mapping[str, HashedFile]) -> set[str]:
        listed = await self.listed()
        if _DECLARATION in listed.files:
            raise sealed_already(self.title)
        there: set[str] = set()
        for path, size in listed.files.items():
            one = wanted.get(path)
            if one is not None and one.size == size and await self._digest(path) == one.sha256:
                there.add(path)
        return there

    async def put(self, folder: Path, files: Sequence[HashedFile], moved: Moved) -> dict[str, Sha256 | None]:
        with _name_list([one.path for one in files]) as names:
            await self._move(
                ("copy", "--ignore-times", "--no-traverse", "--files-from-raw", names, str(folder), self.bag),
                lambda count: moved(count, files[-1].path),
            )
        return {}

    async def seal(self, expected: Mapping[str, int]) -> tuple[str, ...]:
        listed = await self.listed()
        return wrong_names(listed.files, listed.others, expected)

    async def listed(self) -> Listed:
        status, raw, said = await self._ask("lsjson", "-R", "--no-modtime", "--no-mimetype", self.bag)
        if status in _NOT_THERE:
            return Listed({})
        if status != 0:
            raise self._failure(said)
        try:
            entries = [(str(e["Path"]), int(e["Size"])) for e in json.loads(raw) if not e["IsDir"]]
        except (ValueError, KeyError, TypeError):
            raise self._failure("its listing can't be read") from None
        return Listed(dict(entries))

    async def hashes(self, files: Sequence[HashedFile]) -> dict[str, Sha256]:
        found = {one.path: await self._digest(one.path) for one in files}
        return {path: digest for path, digest in found.items() if digest is not None}

    async def fetch(self, files: Sequence[HashedFile], into: Path, moved: Moved) -> dict[str, str]:
        """All at once; when rclone complains, one by one, so that one bad object hides no other."""
        path = files[-1].path
        with _name_list([one.path for one in files]) as names, contextlib.suppress(Failure):
            if files:
                await self._move(
                    (
                        "copy",
                        "--ignore-times",
                        "--no-traverse",
                        "--files-from-raw",
                        names,
                        self.bag,
                        str(into),
                    ),
                    lambda count: moved(count, path),
                )
        failed: dict[str, str] = {}
        for one in files:
            if not await in_thread((into / one.path).is_file):
                try:
                    await self._move(
                        ("copyto", "--ignore-times", f"{self.bag}/{one.path}", str(into / one.path))
                    )
                except Failure as failure:
                    failed[one.path] = failure.what
        return failed

    async def cool(self, files: Sequence[HashedFile]) -> bool:
        return False  # what a provider's machines hold in memory can't be seen from here

    async def close(self) -> None:
        """Nothing stands open."""

    # --- inside -------------------------------------------------------------------------------------------

    async def _digest(self, path: str) -> Sha256 | None:
        digest = hashlib.sha256()
        async with self._running("cat", f"{self.bag}/{path}") as process:
            assert process.stdout is not None
            while block := await _within(process.stdout.read(1 << 20)):
                await in_thread(digest.update, block)
            await _within(process.wait())
        return f"sha256:{digest.hexdigest()}" if process.returncode == 0 else None

    async def _ask(self, *args: str) -> tuple[int, bytes, str]:
        """Run a command with a bounded answer: exit status, stdout, what it complained of."""
        async with self._running(*args) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            out, said = await asyncio.gather(
                _collect(process.stdout, _LIST_CAP), _collect(process.stderr, _SAID_KEPT)
            )
            await _within(process.wait())
        if len(out) >= _LIST_CAP:
            raise self._failure("its listing is too long")
        return process.returncode or 0, out, said.decode("utf-8", "replace")

    async def _move(self, args: tuple[str, ...], moved: Callable[[int], None] = lambda count: None) -> None:
        """Run a copy and count its bytes. Raises Failure."""
        cap = () if self._cap is None else ("--bwlimit", f"{self._cap}B")
        said, last, moved_at = "", 0, time.monotonic()
        async with self._running(*args, *_QUIET, *cap) as process:
            assert process.stderr is not None
            while line := await _within(process.stderr.readline()):
                count, complaint = log_line(line)
                said = complaint or said
                if count is not None and count > last:
                    moved(count - last)
                    last, moved_at = count, time.monotonic()
                if time.monotonic() - moved_at > _STALL_S:
                    raise self._failure(f"nothing moved for {_STALL_S:.0f} s", "store-stalled")
            await _within(process.wait())
        if process.returncode != 0:
            raise self._failure(said or f"rclone ended with status {process.returncode}")

    @asynccontextmanager
    async def _running(self, *args: str) -> AsyncIterator[asyncio.subprocess.Process]:
        if not self._program:
            raise Failure(
                "rclone is not installed on this computer.",
                means=f"{self.title} can't be reached from here.",
                do="Install rclone (rclone.org/install), or give another place with --to.",
                code="no-rclone",
            )
        process = await asyncio.create_subprocess_exec(
            self._program,
            *args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if args[0] != "cat" else asyncio.subprocess.DEVNULL,
            start_new_session=True,
            limit=1 << 20,
        )
        try:
            yield process
        except TimeoutError:
            raise self._failure(f"rclone did not answer for {_STALL_S:.0f} s", "store-stalled") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await asyncio.wait({asyncio.ensure_future(process.communicate())}, timeout=5)

    def _failure(self, said: str, code: str = "store-failed") -> Failure:
        return store_failure(
            self.title, said, "See `rclone lsf` of it, or give another place with --to.", code
        )


async def _within(work: Awaitable[T]) -> T:
    async with asyncio.timeout(_STALL_S):
        return await work


async def _collect(stream: asyncio.StreamReader, cap: int) -> bytes:
    kept = bytearray()
    while block := await _within(stream.read(1 << 16)):
        kept += block[: cap - len(kept)]
    return bytes(kept)


def log_line(line: bytes) -> tuple[int | None, str]:
    """Bytes moved so far, and what it complains of."""
    try:
        said = json.loads(line)
        stats = said.get("stats") or {}
        if isinstance(stats.get("bytes"), int):
            return stats["bytes"], ""
        complaint = said["msg"] if said.get("level") in ("error", "fatal", "critical") else ""
        return None, safe(str(complaint), 300)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, safe(line, 300)


@contextlib.contextmanager
def _name_list(paths: Sequence[str]) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="rgt-names-", suffix=".txt") as file:
        file.write("".join(f"{path}\n" for path in paths))
        file.flush()
        yield file.name

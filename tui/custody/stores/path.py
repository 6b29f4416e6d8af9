"""A durable copy in a folder of this computer, or of a filesystem mounted on it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tui.box.local import LocalTransport
from tui.box.transfer.disk import disk_failure, need_room
from tui.box.transfer.part import HashDiffers, PartFile
from tui.custody.stores.base import Listed, Moved, in_thread, wrong_names
from tui.custody.stores.cold import drop
from tui.custody.stores.devices import device_of
from tui.durable import sync_folder
from tui.model.custody import HashedFile, Place, Sha256
from tui.model.failure import Failure

_READ = 4 << 20


class PathStore:
    """The bag `name` in `folder`. Until it is sealed it is called ``NAME.part``.

    Attributes:
        final, building: the sealed bag, and the one under construction.
        parts: unfinished files; gone when the bag is sealed.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.final = folder / name
        self.building = folder / f"{name}.part"
        self.parts = self.building / "parts"
        self.place = Place(kind="path", path=str(self.final))
        self.title = str(self.final)
        self._lock = -1
        self._stop = threading.Event()

    async def identify(self) -> None:
        """Find out on which disk it lies."""
        device = await device_of(LocalTransport(), str(self.folder))
        self.place = self.place.model_copy(update={"device": device})

    async def sealed(self) -> bool:
        return await in_thread(lambda: os.path.lexists(self.final))

    async def begin(self, wanted: Mapping[str, HashedFile]) -> set[str]:
        return await in_thread(self._begin, wanted)

    def _begin(self, wanted: Mapping[str, HashedFile]) -> set[str]:
        self.prepare()
        there: set[str] = set()
        try:
            for path, size in list_folder(self.building).files.items():
                want = wanted.get(path)
                if want is not None and want.size == size and self._part(want).finished(lambda count: None):
                    there.add(path)
            left = [one for path, one in wanted.items() if path not in there]
            need_room(self.building, sum(one.size for one in left), 2 * len(left) + 16)
        except OSError as error:
            raise disk_failure(error, self.building) from None
        return there

    def prepare(self) -> None:
        """Make the folder under construction, for one `rgt` at a time. Raises Failure."""
        try:
            self.parts.mkdir(parents=True, exist_ok=True)
            if self._lock < 0:
                self._lock = os.open(self.building, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(
                f"Another rgt is writing {self.building}.",
                do="Wait until it is done.",
                code="copy-in-progress",
            ) from None
        except OSError as error:
            raise disk_failure(error, self.building) from None

    async def put(self, folder: Path, files: Sequence[HashedFile], moved: Moved) -> dict[str, Sha256 | None]:
        return await in_thread(self._put, folder, files, moved)

    def _put(self, folder: Path, files: Sequence[HashedFile], moved: Moved) -> dict[str, Sha256 | None]:
        wrong: dict[str, Sha256 | None] = {}
        for one in files:
            part = self._part(one)
            try:
                part.resume(lambda count: None)
                with (folder / one.path).open("rb") as source:
                    source.seek(part.offset)
                    while part.offset < one.size and (block := source.read(_READ)):
                        part.write([block])
                        moved(len(block), one.path)
                part.commit()
            except HashDiffers:
                part.discard()
                wrong[one.path] = None
            except OSError as error:
                raise disk_failure(error, self.building / one.path) from None
            finally:
                part.close()
        return wrong

    async def seal(self, expected: Mapping[str, int]) -> tuple[str, ...]:
        return await in_thread(self._seal, expected)

    def _seal(self, expected: Mapping[str, int]) -> tuple[str, ...]:
        try:
            shutil.rmtree(self.parts, ignore_errors=True)
            listed = list_folder(self.building)
            wrong = wrong_names(listed.files, listed.others, expected)
            if wrong:
                return wrong
            for where, _, _ in os.walk(self.building, topdown=False):
                sync_folder(Path(where))
            if os.path.lexists(self.final):
                raise sealed_already(self.title)
            self.building.rename(self.final)
            sync_folder(self.folder)
        except OSError as error:
            raise disk_failure(error, self.final) from None
        return ()

    async def listed(self) -> Listed:
        try:
            return await in_thread(list_folder, self.final)
        except OSError as error:
            raise disk_failure(error, self.final) from None

    async def hashes(self, files: Sequence[HashedFile]) -> dict[str, Sha256]:
        return await in_thread(self._hashes, files)

    def _hashes(self, files: Sequence[HashedFile]) -> dict[str, Sha256]:
        found: dict[str, Sha256] = {}
        for one in files:
            with contextlib.suppress(OSError), (self.final / one.path).open("rb") as file:
                found[one.path] = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
        return found

    async def fetch(self, files: Sequence[HashedFile], into: Path, moved: Moved) -> dict[str, str]:
        return await in_thread(self._fetch, files, into, moved)

    def _fetch(self, files: Sequence[HashedFile], into: Path, moved: Moved) -> dict[str, str]:
        failed: dict[str, str] = {}
        for one in files:
            try:
                fd = os.open(self.final / one.path, os.O_RDONLY | os.O_NOFOLLOW)
            except OSError as error:
                failed[one.path] = error.strerror or str(error)
                continue
            target = into / one.path
            with os.fdopen(fd, "rb") as source:
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    file = target.open("xb")
                except OSError as error:
                    raise disk_failure(error, into) from None
                with file:
                    while block := _read(source.fileno(), one.path, failed):
                        try:
                            file.write(block)
                        except OSError as error:
                            raise disk_failure(error, into) from None
                        moved(len(block), one.path)
        return failed

    async def cool(self, files: Sequence[HashedFile]) -> bool:
        return await in_thread(lambda: all(list(map(drop, [self.final / one.path for one in files]))))

    async def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _part(self, one: HashedFile) -> PartFile:
        return PartFile(self.building / one.path, self.parts, one.size, one.sha256, self._stop)


def _read(fd: int, path: str, failed: dict[str, str]) -> bytes:
    try:
        return os.read(fd, _READ)
    except OSError as error:
        failed[path] = error.strerror or str(error)
        return b""


def list_folder(folder: Path) -> Listed:
    """Everything below `folder`, without following a link. Raises OSError: never half a list."""
    files: dict[str, int] = {}
    others: list[str] = []

    def refuse(error: OSError) -> None:
        raise error

    for where, folders, names in os.walk(folder, onerror=refuse):
        for name in (*names, *folders):
            path = Path(where, name)
            told = path.lstat()
            below = str(path.relative_to(folder))
            if stat.S_ISREG(told.st_mode):
                files[below] = told.st_size
            elif not stat.S_ISDIR(told.st_mode):
                others.append(below)
    return Listed(files, tuple(others))


def sealed_already(title: str) -> Failure:
    """A finished copy is never written over."""
    return Failure(
        f"{title} is a finished copy already.",
        means="It was not touched.",
        do="Read it back with `rgt readback`, or give another place with --to.",
        code="sealed-already",
    )

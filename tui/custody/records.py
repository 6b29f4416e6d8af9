"""Where the records of a run's chain lie, so that the next step finds them: written whole, never replaced.

``STATE/custody/RUN/roster-000001.json`` holds one record in canonical form, so the digest of the record is
the SHA-256 of the file's bytes and can be checked with `sha256sum` alone.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tui.durable import read_regular, sync_folder, write_whole, written_beside
from tui.fleet.entry_rules import NAME
from tui.fleet.paths import Paths
from tui.model.custody import Record, Sha256
from tui.model.failure import Exit, Failure

R = TypeVar("R", bound=Record)

CAP_BYTES = 512 << 20
"""Largest record that is read: a roster of two million files."""


@dataclass(frozen=True, slots=True)
class Records:
    """The stored records of one run."""

    folder: Path

    def save(self, record: Record) -> Path:
        """Store a record durably beside the earlier ones of its kind; returns its file.

        The newest one of the same digest is not written twice.

        Raises:
            Failure: this computer could not store it; nothing that was stored is harmed.
        """
        kind = kind_of(type(record))
        raw = record.canonical
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            numbered = self._numbered(kind)
            if numbered and _raw(numbered[-1][1]) == raw:
                return numbered[-1][1]
            number = numbered[-1][0] + 1 if numbered else 1
            with written_beside(self.folder / kind, raw) as temporary:
                while True:
                    path = self.folder / f"{kind}-{number:06d}.json"
                    try:
                        os.link(temporary, path)  # unlike a rename it never replaces what another rgt stored
                        break
                    except FileExistsError:
                        number += 1
            sync_folder(self.folder)
        except OSError as error:
            raise not_stored(error, self.folder) from None
        return path

    def newest(self, cls: type[R]) -> R | None:
        """The newest record of a kind, None when there is none. Raises Failure when it is damaged."""
        numbered = self._numbered(kind_of(cls))
        return self._read(numbered[-1][1], cls) if numbered else None

    def find(self, cls: type[R], digest: Sha256) -> R | None:
        """The record of this digest: the link of the chain that a later record names. Raises Failure."""
        for _, path in reversed(self._numbered(kind_of(cls))):
            record = self._read(path, cls)
            if record.digest == digest:
                return record
        return None

    def need(self, cls: type[R], do: str) -> R:
        """The newest record of a kind. Raises Failure, saying `do`, when that step was not made yet."""
        record = self.newest(cls)
        if record is None:
            kind = kind_of(cls)
            raise Failure(f"No {kind} of {self.folder.name} is stored.", do=do, code="step-missing")
        return record

    def _read(self, path: Path, cls: type[R]) -> R:
        try:
            return cls.parse(_raw(path))
        except ValueError as error:
            raise _damaged(path, f"is not what was stored ({type(error).__name__})") from None

    def _numbered(self, kind: str) -> list[tuple[int, Path]]:
        pattern = re.compile(re.escape(kind) + r"-(\d{6,})\.json\Z")
        try:
            names = [path for path in self.folder.iterdir() if pattern.match(path.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _damaged(self.folder, f"can't be listed ({error.strerror})") from None
        return sorted((int(path.stem.rpartition("-")[2]), path) for path in names)


def records(where: Paths, run: str) -> Records:
    """The records of a run, whose name is one of the fleet file's. Raises ValueError for any other."""
    return Records(custody_folder(where, run))


def custody_folder(where: Paths, run: str) -> Path:
    """The operator's own folder for the custody of one run: records, manifests, journals."""
    if not NAME.match(run):
        raise ValueError("not the name of a run")
    return where.state / "custody" / run


def kind_of(cls: type[Record]) -> str:
    """``DigestReport`` → ``digest-report``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole, durably, in place of what was there. Raises Failure."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise not_stored(error, path.parent) from None


def not_stored(error: OSError, folder: Path) -> Failure:
    """The failure of a write on this computer."""
    return Failure(
        f"Nothing could be stored in {folder} on this computer ({error.strerror}).",
        means="What was stored before is unharmed; this step does not count.",
        do="Make room or give access there, then repeat the step.",
        exit=Exit.UNKNOWN,
        code="not-stored",
    )


def _raw(path: Path) -> bytes:
    """The bytes of a stored record. Raises Failure."""
    try:
        raw = read_regular(path, CAP_BYTES + 1)
    except OSError as error:
        raise _damaged(path, f"can't be read ({error.strerror})") from None
    if len(raw) > CAP_BYTES:
        raise _damaged(path, f"is larger than {CAP_BYTES} bytes")
    return raw


def _damaged(path: Path, what: str) -> Failure:
    return Failure(
        f"{path} {what}.",
        means="It can't be evidence any more, and an older record is not taken in its place.",
        do="Move it away to keep it for a look, then repeat that step.",
        exit=Exit.UNKNOWN,
        code="record-damaged",
    )

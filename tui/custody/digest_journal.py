"""What of a run was hashed already, kept on this computer, so that a cut costs one file and not the night."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tui.custody.listing import Entry
from tui.custody.records import not_stored
from tui.model.custody import Roster, canonical

_SYNC_S = 2.0
_CAP_BYTES = 1 << 30
_VERSION = 1


class Facts(NamedTuple):
    """What must be the same for a digest to still hold: any write to the file changes the inode's time."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int
    device: int


class Known(NamedTuple):
    """A digest and the tool that made it."""

    facts: Facts
    sha256: str
    tool: str


def facts_of(entry: Entry) -> Facts:
    return Facts(entry.size, entry.modified_ns, entry.changed_ns, entry.inode, entry.device)


def binding(roster: Roster) -> str:
    """Which box and folder a journal is about. A restart of the same box keeps it."""
    victim = roster.victim
    who = (victim.name, victim.platform, victim.instance_id, victim.account, victim.host_key)
    return hashlib.sha256(canonical([_VERSION, who, roster.root])).hexdigest()


@dataclass(slots=True)
class DigestJournal:
    """An append-only file; a line that was cut in the middle is dropped when it is read again."""

    path: Path
    binding: str
    clock: Callable[[], float] = time.monotonic
    known: dict[str, Known] = field(default_factory=dict)
    _file: BinaryIO | None = None
    _synced_at: float = 0.0

    def open(self) -> None:
        """Read what is there and go on behind it; a journal of another box or folder is begun anew.

        Raises:
            Failure: this computer can't store it.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            kept = self._read()
            self.path.touch(mode=0o600)
            self._file = self.path.open("r+b" if kept else "wb")
            self._file.truncate(kept)
            self._file.seek(kept)
            if not kept:
                self._file.write(_line({"binding": self.binding}))
            self._flush()
        except OSError as error:
            raise not_stored(error, self.path.parent) from None

    def add(self, found: Iterable[tuple[str, Known]]) -> None:
        """Note digests whose facts were seen before their bytes were read. Raises Failure."""
        assert self._file is not None
        try:
            for path, one in found:
                self.known[path] = one
                self._file.write(_line([path, *one.facts, one.sha256, one.tool]))
            self._file.flush()
            if self.clock() - self._synced_at > _SYNC_S:
                self._flush()
        except OSError as error:
            raise not_stored(error, self.path.parent) from None

    def close(self) -> None:
        """Make everything durable. Raises Failure."""
        if self._file is None:
            return
        try:
            self._flush()
            self._file.close()
        except OSError as error:
            raise not_stored(error, self.path.parent) from None
        finally:
            self._file = None

    def _flush(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced_at = self.clock()

    def _read(self) -> int:
        """Take over the lines that are whole; returns how many bytes they are."""
        try:
            if self.path.stat().st_size > _CAP_BYTES:
                return 0
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return 0
        kept = 0
        for number, line in enumerate(raw.splitlines(keepends=True)):
            entry = _parsed(line)
            if number == 0:
                if entry != {"binding": self.binding}:
                    return 0
            elif isinstance(entry, list) and (one := _known(entry)) is not None:
                self.known[entry[0]] = one
            else:
                break
            kept += len(line)
        return kept


def _line(value: object) -> bytes:
    return canonical(value) + b"\n"


def _parsed(line: bytes) -> object:
    if not line.endswith(b"\n"):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _known(entry: list[object]) -> Known | None:
    if len(entry) != 8:
        return None
    path, *numbers, sha256, tool = entry
    integers = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool)]
    texts = isinstance(path, str) and isinstance(sha256, str) and isinstance(tool, str)
    if len(integers) != 5 or not texts or len(str(sha256)) != 64:
        return None
    return Known(Facts(*integers), str(sha256), str(tool))

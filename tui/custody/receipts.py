"""The ledger: receipts that are only ever added, each holding the digest of the bytes of the one before.

``receipts/000001.json``, ``000002.json`` … and ``head.json``, which names the newest: a chain cut short is
noticed. What `tui.box.trust` keeps beside them (``host-key-*.json``) is listed and left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui.custody.statement import CAP_BYTES, Read, Receipt, read, write
from tui.durable import read_regular, write_new, write_whole
from tui.model.custody import Sha256, canonical
from tui.model.failure import Exit, Failure

_NUMBERED = re.compile(r"([0-9]{6,12})\.json\Z")
_BESIDE = re.compile(r"host-key-.*\.json\Z")
_HEAD = "head.json"
_LOCK = ".lock"
_HALF_WRITTEN = re.compile(r"\.(?:[0-9]{6,12}|head)\.json-")
"""What `tui.durable` calls a file until it is whole. Host keys are written without the lock: not theirs."""
_LOCK_WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Bad:
    """The first receipt that is not what was written.

    Attributes:
        why: in words that go on from the file's name.
    """

    number: int
    path: Path
    why: str


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What became of a ledger.

    Attributes:
        receipts: all that can be read, also beyond a bad one, in order.
        head: digest of the newest receipt's bytes; None for an empty ledger.
        first_bad: None where the chain holds.
        beside: other receipts of the folder, which stand by themselves.
    """

    receipts: tuple[Read, ...]
    head: Sha256 | None
    first_bad: Bad | None
    beside: tuple[Path, ...] = ()

    @property
    def holds(self) -> bool:
        return self.first_bad is None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The receipts of one installation."""

    folder: Path

    def append(self, receipt: Receipt) -> Read:
        """Add a receipt. It is durable on return, also through a power cut; several rgt wait for each other.

        Raises:
            Failure: it could not be written. The chain is as it was.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _locked(self.folder / _LOCK):
                _sweep(self.folder)
                return self._append(receipt)
        except OSError as error:
            raise Failure(
                f"No receipt could be written in {self.folder} ({error.strerror or error}).",
                means="What was done is not on record; nothing further is done without a record.",
                do="Make room or give access there, then repeat the step.",
                exit=Exit.UNKNOWN,
                code="receipt-not-written",
            ) from None
        except ValueError as error:
            raise Failure(
                f"A receipt could not be made: {error}.", exit=Exit.UNKNOWN, code="receipt-not-written"
            ) from None

    def _append(self, receipt: Receipt) -> Read:
        numbers = _numbers(self.folder)
        last = numbers[-1] if numbers else None
        prev = None if last is None else _digest(_bytes(last[1]))
        number = 1 if last is None else last[0] + 1
        raw = write(receipt, number, prev)
        write_new(self.folder / f"{number:06d}.json", raw)
        done = read(raw)
        write_whole(self.folder / _HEAD, canonical({"number": number, "digest": done.digest}))
        return done

    def report(self) -> ChainReport:
        """Every receipt, and whether the chain holds."""
        return verify_chain(self.folder)


def verify_chain(folder: Path) -> ChainReport:
    """Read a ledger from its first receipt to its last, and name the first one that is bad.

    Raises:
        Failure: the folder cannot be listed.
    """
    try:
        numbers = _numbers(folder)
        names = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise Failure(
            f"The receipts in {folder} can't be listed ({error.strerror or error}).",
            means="Nothing is known of them.",
            exit=Exit.UNKNOWN,
            code="ledger-unreadable",
        ) from None
    links = [_link(number, path) for number, path in numbers]
    head = _head(folder)
    bad = {**_altered(links, head), **_missing([link.number for link in links], head)}
    bad |= {link.number: link.why for link in links if link.why}
    first = min(bad, default=None)
    return ChainReport(
        receipts=tuple(link.read for link in links if link.read),
        head=links[-1].digest if links else None,
        first_bad=None if first is None else Bad(first, folder / f"{first:06d}.json", bad[first]),
        beside=tuple(path for path in names if _BESIDE.match(path.name)),
    )


@dataclass(frozen=True, slots=True)
class _Link:
    """One file of the chain as it lies there. `why` says what is wrong with it by itself."""

    number: int
    digest: Sha256 | None
    read: Read | None
    why: str = ""


def _link(number: int, path: Path) -> _Link:
    try:
        raw = _bytes(path)
    except OSError as error:
        return _Link(number, None, None, f"can't be read ({error.strerror})")
    try:
        one = read(raw)
    except ValueError as error:
        return _Link(number, _digest(raw), None, str(error))
    wrong = f"says that it is number {one.number}" if one.number != number else ""
    if number == 1 and one.prev is not None:
        wrong = "names a receipt before it"
    return _Link(number, one.digest, one, wrong)


def _altered(links: list[_Link], head: _Head) -> dict[int, str]:
    """Receipts that are not the bytes their witness named: the next receipt, or head.json for the newest.

    Looked at from the end: a receipt that was altered itself is no witness against the one before it.
    """
    said = {head[0]: head[1]} if isinstance(head, tuple) else {}
    bad: dict[int, str] = {}
    for link in reversed(links):
        if said.get(link.number, link.digest) != link.digest:
            bad[link.number] = "was changed after it was written"
        elif link.read and link.read.prev and not link.why:
            said[link.number - 1] = link.read.prev
    return bad


def _missing(numbers: list[int], head: _Head) -> dict[int, str]:
    last = numbers[-1] if numbers else 0
    if head == "damaged":
        return {last + 1: "may be missing: head.json, which names the newest receipt, can't be read"}
    end = max(last, head[0]) if isinstance(head, tuple) else last
    gone = next((n for n, there in enumerate(numbers, start=1) if n != there), len(numbers) + 1)
    return {gone: "is missing"} if gone <= end else {}


_Head = tuple[int, Sha256] | Literal["damaged"] | None


def _head(folder: Path) -> _Head:
    """What head.json names; None without one: then only the end of the chain is not witnessed."""
    try:
        value = json.loads(read_regular(folder / _HEAD, CAP_BYTES))
        return int(value["number"]), str(value["digest"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "damaged"


def _numbers(folder: Path) -> list[tuple[int, Path]]:
    try:
        found = [(match, path) for path in folder.iterdir() if (match := _NUMBERED.match(path.name))]
    except FileNotFoundError:
        return []
    return sorted((int(match[1]), path) for match, path in found)


def _bytes(path: Path) -> bytes:
    return read_regular(path, CAP_BYTES + 1)


def _digest(raw: bytes) -> Sha256:
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def _sweep(folder: Path) -> None:
    """Remove what a killed rgt left half-written; called under the lock."""
    for path in folder.iterdir():
        if _HALF_WRITTEN.match(path.name):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an flock, which the kernel drops with the process. Raises OSError when it stays taken."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(110, "another rgt holds the ledger") from None
                time.sleep(0.005)
        yield
    finally:
        os.close(fd)

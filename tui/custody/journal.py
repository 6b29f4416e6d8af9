"""The journal of one machine's end: every step durable before the next, so that kill -9 loses no place.

One JSON object a line, each with the digest of the line before. What a crash left half-written at the end
never took effect and is dropped; damage anywhere else stops the teardown. An flock keeps a second rgt out.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from tui.custody.identity import identity
from tui.custody.moments import moment
from tui.durable import read_regular, sync_folder
from tui.fleet.paths import Paths
from tui.model.custody import Moment, Outcome, Verb, Victim, canonical
from tui.model.failure import Exit, Failure

Step = Literal[
    "roster", "digest", "copy", "readback", "load", "metrics", "proof", "approval",  # where the wizard stands
    "known", "preflight", "sending", "answered", "looked", "word", "outcome", "receipt",
]  # fmt: skip

_MOST_BYTES = 256 << 20

ENDS: tuple[str, ...] = ("proven", "attested", "already-gone", "already-stopped")
"""Kinds of outcome that settle a verb. A destroyed machine stays destroyed; a stopped one may start again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line."""

    step: Step
    at: Moment
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one verb stands.

    Attributes:
        sent: it may have been sent, and neither an outcome nor a plain refusal settles that yet.
        outcome: the newest one, whatever its kind.
        settled: the outcome that ended it.
        spent: nonces of approvals that were used, by any verb on this machine.
    """

    verb: Verb
    sent: Entry | None = None
    outcome: Outcome | None = None
    settled: Outcome | None = None
    receipted: bool = False
    spent: frozenset[str] = frozenset()


class Journal:
    """The journal file of one machine. Open it with `Journal.open`; it is a context manager.

    Attributes:
        entries: all that was written, in order.
    """

    def __init__(
        self, path: Path, fd: int, entries: list[Entry], prev: str, clock: Callable[[], float]
    ) -> None:
        self.path = path
        self.entries = entries
        self._fd = fd
        self._prev = prev
        self._clock = clock

    @classmethod
    def open(
        cls, path: Path, clock: Callable[[], float], busy: str = "is at the end of this machine"
    ) -> Self:
        """Take the journal for this process. Raises Failure: another rgt has it, or it is damaged.

        Args:
            busy: what another rgt that has it does.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _not_written(path, error) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            raw = _whole(fd)
            entries, prev, good = _read(raw, path)
            if good < len(raw):
                os.ftruncate(fd, good)
                os.fsync(fd)
            sync_folder(path.parent)
        except BlockingIOError:
            os.close(fd)
            raise Failure(
                f"Another rgt {busy}.",
                means="Nothing was done here.",
                do="Go on there, or close it first.",
                code="teardown-under-way",
            ) from None
        except OSError as error:
            os.close(fd)
            raise _not_written(path, error) from None
        except Failure:
            os.close(fd)
            raise
        return cls(path, fd, entries, prev, clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the journal free."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def add(self, step: Step, data: dict[str, Any]) -> Entry:
        """Write a step down; it is durable on return.

        Raises:
            Failure: it could not be written, and then it did not happen; or it contradicts what is settled.
        """
        self._allow(step, data)
        entry = Entry(step, moment(self._clock()), data)
        line = canonical({"at": entry.at, "data": data, "prev": self._prev, "step": step}) + b"\n"
        before = os.fstat(self._fd).st_size
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(self._fd, view) :]
            os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, before)  # a half line in the middle would be damage
            raise _not_written(self.path, error) from None
        self._prev = _sha(line)
        self.entries.append(entry)
        return entry

    def standing(self, verb: Verb) -> Standing:
        """Where `verb` stands."""
        return stand(self.entries, verb)

    def newest(self, step: Step) -> Entry | None:
        """The newest entry of a step: where the wizard goes on, with the same evidence."""
        return next((one for one in reversed(self.entries) if one.step == step), None)

    def _allow(self, step: Step, data: dict[str, Any]) -> None:
        """A settled fact is never overwritten, and an approval never used twice, whoever asks."""
        if step == "sending" and data.get("nonce") in _spent(self.entries):
            raise _contradiction("This approval was used already.")
        if self.standing("destroy").settled and step not in ("receipt", "looked"):
            raise _contradiction("The end of this machine is settled.")


def journal_path(where: Paths, victim: Victim) -> Path:
    """The journal of this machine, and not of the next one of its name."""
    return where.state / "teardown" / f"{victim.name}-{identity(victim)}.jsonl"


def peek(path: Path) -> list[Entry]:
    """The entries of a journal that another rgt may be writing. Raises Failure when it is damaged."""
    try:
        return _read(read_regular(path, _MOST_BYTES), path)[0]
    except OSError as error:
        raise _not_written(path, error) from None


def stand(entries: list[Entry], verb: Verb) -> Standing:
    """Where a verb stands after these entries. Pure."""
    sent: Entry | None = None
    outcome: Outcome | None = None
    receipted = False
    for entry in entries:
        if entry.data.get("verb") != verb:
            continue
        if entry.step == "sending":
            sent, outcome, receipted = entry, None, False
        elif entry.step == "outcome":
            outcome, receipted = Outcome.model_validate(_frozen(entry.data["outcome"])), False
            sent = None if outcome.kind in ENDS else sent
        elif entry.step == "answered" and entry.data.get("refused") is True:
            sent = None  # the platform surely did nothing
        elif entry.step == "word" and entry.data.get("said") == "there":
            sent = None  # the operator looked: it may be begun again
        elif entry.step == "receipt":
            receipted = True
    settled = outcome if outcome is not None and outcome.kind in ENDS else None
    return Standing(verb, sent, outcome, settled, receipted, _spent(entries))


def _spent(entries: list[Entry]) -> frozenset[str]:
    return frozenset(
        nonce for one in entries if one.step == "sending" and isinstance(nonce := one.data.get("nonce"), str)
    )


def _frozen(value: Any) -> Any:
    """JSON knows no tuples, and records know no lists."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return {key: _frozen(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _whole(fd: int) -> bytes:
    return b"".join(iter(_blocks(fd)))


def _blocks(fd: int) -> Iterator[bytes]:
    at = 0
    while block := os.pread(fd, 1 << 20, at):
        yield block
        at += len(block)


def _read(raw: bytes, path: Path) -> tuple[list[Entry], str, int]:
    """Entries, digest of the last line, and how many bytes are whole lines."""
    entries: list[Entry] = []
    prev, good = "", raw.rfind(b"\n") + 1
    for number, line in enumerate(raw[:good].splitlines(keepends=True), start=1):
        try:
            value = json.loads(line)
            if value["prev"] != prev or canonical(value) + b"\n" != line:
                raise ValueError("not what was written")
            entries.append(Entry(value["step"], value["at"], value["data"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Failure(
                f"Line {number} of {path} is not what was written.",
                means="It can't be told any more what was already done to this machine, so nothing more is.",
                do="Look at the provider's console. Keep the file for a look and move it away to begin anew.",
                exit=Exit.UNKNOWN,
                code="journal-damaged",
            ) from None
        prev = _sha(line)
    return entries, prev, good


def _sha(line: bytes) -> str:
    return "sha256:" + hashlib.sha256(line).hexdigest()


def _contradiction(what: str) -> Failure:
    return Failure(what, means="Nothing was done.", code="journal-contradiction")


def _not_written(path: Path, error: OSError) -> Failure:
    return Failure(
        f"The journal {path} can't be read or written ({error.strerror or error}).",
        means="Nothing is done without it.",
        do="Make room or give access there, then go on.",
        exit=Exit.UNKNOWN,
        code="journal-not-written",
    )

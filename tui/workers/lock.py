"""Exactly one watcher per run on this computer, and one starter: by flocks, which end with their process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tui.fleet.paths import Paths
from tui.model.failure import Failure
from tui.model.text import SafeText, safe


@dataclass(slots=True)
class WatchLock:
    """The claim of one process on one run.

    Args:
        path: the lock file. It stays after release: removing it would race with the next claim.
    """

    path: Path
    _fd: int | None = None

    def claim(self) -> SafeText | None:
        """Try to take the lock without waiting.

        Returns:
            None when it is ours now, else who holds it, in words.

        Raises:
            OSError: nothing can be locked there; whether another rgt watches is not known.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(os.pread(fd, 4096, 0))
            os.close(fd)
            return holder
        except OSError:
            os.close(fd)
            raise
        self._fd = fd
        with contextlib.suppress(OSError):  # a full disk: the lock holds, it only doesn't say whose it is
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps({"pid": os.getpid(), "since": time.time()}).encode(), 0)
        return None

    def release(self) -> None:
        """Give the run free for the next watcher."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def alone(
    path: Path, busy: Callable[[SafeText], str], *, about: str, means: str, do: str, code: str
) -> WatchLock:
    """The lock, which is ours from here on.

    Args:
        busy: the sentence about who has it.
        about: what cannot be told where nothing can be locked, after "Whether".
        do: what to do about another one's.

    Raises:
        Failure: another rgt has it, or nothing can be locked there.
    """
    lock = WatchLock(path)
    try:
        holder = lock.claim()
    except OSError as error:
        raise Failure(
            f"Whether {about} cannot be told ({error.strerror}).", means=means, do=f"Look at {path.parent}."
        ) from None
    if holder is not None:
        raise Failure(busy(holder), means=means, do=do, code=code)
    return lock


@contextlib.contextmanager
def starting(where: Paths, run: str) -> Iterator[None]:
    """Be the only one on this computer that starts a run, here or elsewhere, for the length of the block.

    Two on one box end in one attempt by themselves; on two boxes only this keeps them apart.

    Raises:
        Failure: another one starts it, or nothing can be locked.
    """
    lock = alone(
        where.locks / "start" / f"{run.replace('/', '_')}.lock",
        lambda holder: f"{safe(run, 100)} is being started by {holder}.",
        about=f"somebody starts {safe(run, 100)}",
        means="Nothing was started.",
        do="Wait for its answer; the same command looks first.",
        code="being-started",
    )
    try:
        yield
    finally:
        lock.release()


def _holder(raw: bytes) -> SafeText:
    try:
        record = json.loads(raw)
        since = time.strftime("%H:%M", time.localtime(float(record["since"])))
        return safe(f"rgt with pid {int(record['pid'])}, since {since}")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, OSError):
        return SafeText("another rgt")

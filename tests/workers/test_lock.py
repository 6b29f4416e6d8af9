"""Exactly one watcher per run on this computer, and the lock dies with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tui.model.failure import Failure
from tui.workers.lock import WatchLock, alone

HOLD = """
import sys, time
from pathlib import Path
from tui.workers.lock import WatchLock
lock = WatchLock(Path(sys.argv[1]))
assert lock.claim() is None
print("held", flush=True)
time.sleep(60)
"""


def test_the_second_one_is_told_who_holds_it(tmp_path: Path) -> None:
    first, second = WatchLock(tmp_path / "run.lock"), WatchLock(tmp_path / "run.lock")
    assert first.claim() is None
    holder = second.claim()
    assert holder is not None
    assert f"pid {os.getpid()}" in holder
    first.release()
    assert second.claim() is None
    second.release()


def test_another_process_holds_it_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        holder = WatchLock(path).claim()
        assert holder is not None
        assert f"pid {child.pid}" in holder
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=10)
        lock = WatchLock(path)
        assert lock.claim() is None
        lock.release()
    finally:
        child.kill()
        child.wait(timeout=10)


def test_alone_or_told_why_not(tmp_path: Path) -> None:
    def take(path: Path) -> WatchLock:
        return alone(
            path, lambda who: f"{who} has it.", about="it is free", means="Nothing.", do="Go.", code="had"
        )

    mine = take(tmp_path / "a.lock")
    with pytest.raises(Failure, match=rf"rgt with pid {os.getpid()}, since .* has it\. Nothing\. Go\."):
        take(tmp_path / "a.lock")
    mine.release()
    take(tmp_path / "a.lock").release()
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match=r"Whether it is free cannot be told \(.+\)\. Nothing\."):
        take(tmp_path / "file" / "b.lock")


def test_a_damaged_lock_file_is_still_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    first = WatchLock(path)
    assert first.claim() is None
    for garbage in (b"\x00\xff garbage", b"[" * 4096, b'{"pid": 1e999, "since": "x"}'):
        path.write_bytes(garbage)
        assert WatchLock(path).claim() == "another rgt"
    first.release()

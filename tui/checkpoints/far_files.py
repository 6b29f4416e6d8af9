"""The files of another machine: ``python3 -I far_files.py``, requests on stdin, answers on stdout.

Stands alone (standard library of Python 3.7 and newer). It lists, reads, sums and hashes, and writes
nothing. One line of JSON per request; per answer one line too, followed by as many raw bytes as it says. Long
sums tell a line now and then, so that whoever asked knows that it goes on.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import sys
import time
import zlib
from typing import Any

_BLOCK = 1 << 20
_LOT = 2000
_TELL_S = 2.0
MAX_READ = 4 << 20


def main() -> int:
    """Serve until stdin ends."""
    served = {
        "walk": _walk, "open": _open, "close": _close, "read": _read, "zero": _zero, "sum": _sum,
        "room": _room,
    }  # fmt: skip
    _say({"ready": True, "python": ".".join(map(str, sys.version_info[:3]))})
    for line in sys.stdin.buffer:
        request = json.loads(line.decode("ascii"))
        try:
            served[request["do"]](request)
        except OSError as fault:
            _say({"errno": fault.errno or errno.EIO, "failed": fault.strerror or "failed"})
    return 0


def _say(answer: Any, raw: bytes = b"") -> None:
    out = sys.stdout.buffer
    out.write(json.dumps(answer).encode("ascii") + b"\n")
    out.write(raw)
    out.flush()


def _walk(request: Any) -> None:
    """Every name below a folder; links are told and not followed."""
    root, most = request["root"], request["most"]
    waiting, lot, count, unread, cut = [""], [], 0, {}, False
    while waiting and not cut:
        folder = waiting.pop()
        try:
            names = sorted(os.listdir(os.path.join(root, folder) if folder else root))  # noqa: PTH118, PTH208
        except OSError as fault:
            if not folder:
                raise
            unread[folder] = fault.strerror or "failed"
            continue
        for name in names:
            if count >= most:
                cut = True
                break
            path = folder + "/" + name if folder else name
            try:
                row = _row(path, os.path.join(root, path))  # noqa: PTH118
            except OSError:
                continue  # it has just gone
            count += 1
            lot.append(row)
            if row[1] == "folder":
                waiting.append(path)
            if len(lot) >= _LOT:
                _say({"lot": lot})
                lot = []
    _say({"lot": lot, "unread": unread, "cut": cut, "done": True})


def _row(path: str, absolute: str) -> list[Any]:
    told = os.lstat(absolute)
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    kind = next((word for test, word in kinds if test(told.st_mode)), "special")
    target = os.readlink(absolute) if kind == "link" else ""  # noqa: PTH115
    return [path, kind, told.st_size, told.st_mtime, told.st_mode, told.st_dev, told.st_ino, target]


def _open(request: Any) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(request["path"], flags)
    told = os.fstat(fd)
    if not stat.S_ISREG(told.st_mode):
        os.close(fd)
        _say({"special": True})
        return
    _say({"fd": fd, "size": told.st_size, "blocks": getattr(told, "st_blocks", None)})


def _close(request: Any) -> None:
    os.close(request["fd"])
    _say({"done": True})


def _read(request: Any) -> None:
    data = os.pread(request["fd"], min(request["length"], MAX_READ), request["at"])
    _say({"bytes": len(data)}, data)


def _blocks(fd: int, at: int, end: int) -> Any:
    told = time.monotonic()
    while at < end:
        data = os.pread(fd, min(_BLOCK, end - at), at)
        if not data:
            return
        yield data
        at += len(data)
        if time.monotonic() - told > _TELL_S:
            told = time.monotonic()
            _say({"at": at})


def _zero(request: Any) -> None:
    """Whether a stretch holds nothing but zeros; holes are passed over."""
    fd, at, end = request["fd"], request["at"], request["at"] + request["length"]
    zeros = bytes(_BLOCK)
    while at < end:
        try:
            data = os.lseek(fd, at, os.SEEK_DATA)
        except (OSError, AttributeError) as fault:
            data = end if getattr(fault, "errno", None) == errno.ENXIO else at
        if data >= end:
            break
        at = max(at, data)
        stop = min(end, at + 16 * _BLOCK)
        for block in _blocks(fd, at, stop):
            if block != zeros[: len(block)]:
                _say({"zero": False, "done": True})
                return
        at = stop
    _say({"zero": True, "done": True})


def _sum(request: Any) -> None:
    """CRC-32 of a stretch, or SHA-256 of a whole file that nobody writes meanwhile."""
    fd, at, length = request["fd"], request["at"], request["length"]
    before = os.fstat(fd)
    crc, got, machine = 0, 0, hashlib.sha256()
    whole = request["what"] == "sha256"
    for block in _blocks(fd, at, at + length):
        got += len(block)
        if whole:
            machine.update(block)
        else:
            crc = zlib.crc32(block, crc)
    after = os.fstat(fd)
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    _say({"crc": crc, "sha256": machine.hexdigest(), "got": got, "same": same, "done": True})


def _room(request: Any) -> None:
    free = None
    try:
        with open("/proc/meminfo", "rb") as told:  # noqa: PTH123 - this file imports as little as it can
            for line in told:
                if line.startswith(b"MemAvailable:"):
                    free = int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    _say({"memory": free})


if __name__ == "__main__":
    sys.exit(main())

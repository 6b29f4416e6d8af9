"""The reader of a durable copy: a process of its own, which shares nothing with the one that wrote it.

    python -m tui.custody.reader

One JSON object a line on stdin, one or more on stdout; the last answer to a request has ``done``. Requests:
``list`` a folder, ``take`` a file (read it cold, write it elsewhere, hash what was read), ``hash`` a file,
``tar`` (hash the members of a tar, and restore them). Names travel as JSON with surrogate escapes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tui.box.transfer.tarstream import TarRefused
from tui.custody.stores.cold import drop_open
from tui.custody.stores.path import list_folder
from tui.custody.tar_copy import read_tar

_READ = 4 << 20
_TELL_S = 0.2

Answer = dict[str, Any]


def main() -> int:
    """Serve requests until stdin ends."""
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            for answer in _SERVED[request["do"]](request):
                _say(answer)
        except OSError as error:
            _say(
                {
                    "done": True,
                    "failed": error.strerror or str(error),
                    "errno": error.errno,
                    "at": request.get("to"),
                }
            )
        except TarRefused as error:
            _say({"done": True, "failed": str(error)})
    return 0


def _say(answer: Answer) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _list(request: Answer) -> Iterator[Answer]:
    listed = list_folder(Path(request["from"]))
    yield {"done": True, "files": dict(listed.files), "others": list(listed.others)}


def _take(request: Answer) -> Iterator[Answer]:
    """Read a file of the copy and restore it. What is hashed is what the disk gave."""
    target = Path(request["to"])
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        yield {"done": True, "full": error.strerror, "errno": error.errno}
        return

    def restore(block: bytes) -> None:
        view = memoryview(block)
        while view:
            try:
                view = view[os.write(out, view) :]
            except OSError as error:
                raise _NotRestored(error) from None

    try:
        yield from _read(request, restore)
    except _NotRestored as error:
        yield {"done": True, "full": error.cause.strerror, "errno": error.cause.errno}
    finally:
        os.close(out)


class _NotRestored(Exception):
    """This side of the copying failed: says nothing about the durable copy."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _hash(request: Answer) -> Iterator[Answer]:
    yield from _read(request, lambda block: None)


def _read(request: Answer, each: Callable[[bytes], None]) -> Iterator[Answer]:
    fd = os.open(request["from"], os.O_RDONLY | os.O_NOFOLLOW)
    try:
        cold = drop_open(fd)
        digest, size, told_at = hashlib.sha256(), 0, time.monotonic()
        while block := os.read(fd, _READ):
            digest.update(block)
            each(block)
            size += len(block)
            if time.monotonic() - told_at > _TELL_S:
                told_at = time.monotonic()
                yield {"read": size}
    finally:
        os.close(fd)
    yield {"done": True, "size": size, "sha256": f"sha256:{digest.hexdigest()}", "cold": cold}


def _tar(request: Answer) -> Iterator[Answer]:
    folder = Path(request["to"])

    def place(name: bytes) -> Path | None:
        target = folder / os.fsdecode(name)
        with contextlib.suppress(OSError, ValueError):  # a name that this disk can't have is hashed only
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
            target.unlink()
            return target
        return None

    found = read_tar(Path(request["from"]), int(request["largest"]), place)
    yield {"done": True, "members": [[os.fsdecode(name), *told] for name, told in found.items()]}


_SERVED: dict[str, Callable[[Answer], Iterator[Answer]]] = {
    "list": _list,
    "take": _take,
    "hash": _hash,
    "tar": _tar,
}

if __name__ == "__main__":
    sys.exit(main())

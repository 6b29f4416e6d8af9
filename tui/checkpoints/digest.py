"""The SHA-256 of a file that nobody writes meanwhile."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

from tui.checkpoints.source import NotAFile, Source


def digest_of(absolute: str, stop: Callable[[], bool]) -> tuple[str | None, str | None]:
    """The digest, or the code of what went wrong: a file that changes while it is read has none.

    Raises:
        Stopped: `stop` said so.
    """
    try:
        with Source(absolute, stop) as source:
            machine = hashlib.sha256()
            for block in source.blocks(0, source.size):
                machine.update(block)
            now = os.lstat(absolute)
            before = (source.stat.st_size, source.stat.st_mtime_ns, source.stat.st_ino)
            if (now.st_size, now.st_mtime_ns, now.st_ino) != before:
                return None, "file-changed"
            return machine.hexdigest(), None
    except NotAFile:
        return None, "special-file"
    except OSError:
        return None, "file-unreadable"

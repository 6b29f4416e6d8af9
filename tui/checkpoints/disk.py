"""Where the files lie that are judged: what opens them and what hashes them there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tui.checkpoints.digest import digest_of
from tui.checkpoints.source import Source


class Disk(Protocol):
    """A place of files."""

    def open(self, path: str, stop: Callable[[], bool] | None = None) -> Source:
        """A file to read from. Raises OSError, NotAFile."""

    def sha256(self, path: str, stop: Callable[[], bool]) -> tuple[str | None, str | None]:
        """Its digest in hex, or the code of what went wrong. Raises Stopped."""


class OwnDisk:
    """This computer's."""

    def open(self, path: str, stop: Callable[[], bool] | None = None) -> Source:
        return Source(path, stop)

    def sha256(self, path: str, stop: Callable[[], bool]) -> tuple[str | None, str | None]:
        return digest_of(path, stop)

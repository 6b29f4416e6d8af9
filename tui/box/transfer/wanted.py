"""What is to be fetched, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

SMALL = 1 << 20
"""Files below this size travel together; from it on each has a stream of its own."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One file that must arrive byte for byte.

    Attributes:
        path: on the box, relative to the root of the transfer; bytes that are no text as surrogate escapes.
        sha256: ``sha256:`` and 64 hexadecimal digits, as the box computed it.
        name: where it goes, relative to the folder of the transfer; empty: `path`.
    """

    path: str
    size: int
    sha256: str
    name: str = ""

    @property
    def local(self) -> str:
        return self.name or self.path


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be fetched as it was wanted.

    Attributes:
        code: ``source-changed``, ``source-gone``, ``source-unreadable`` or ``hash-differs``.
    """

    path: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Pulled:
    """The outcome of a transfer.

    Attributes:
        arrived: files that lie under their final names, every byte hashed and agreeing.
        kept: bytes of them that were already there and were hashed again instead of fetched.
        fetched: bytes that came over the network.
        links: connections that were used; more than one: the link was lost in between.
    """

    arrived: tuple[Wanted, ...]
    problems: tuple[Problem, ...]
    kept: int = 0
    fetched: int = 0
    links: int = 1


def proper_name(name: str) -> bool:
    """Whether `name` is a relative path that stays inside its folder, however it is resolved."""
    return "\0" not in name and all(part not in ("", ".", "..") for part in name.split("/"))

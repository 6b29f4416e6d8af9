"""What every durable store can do. A store is one bag in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from tui.model.custody import HashedFile, Place, Sha256
from tui.model.failure import Exit, Failure
from tui.model.text import safe

T = TypeVar("T")
Moved = Callable[[int, str], None]
"""Told of bytes that moved, and of which file."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything that lies in a bag.

    Attributes:
        files: size by path in the bag.
        others: what is neither a file nor a folder.
    """

    files: Mapping[str, int]
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Space:
    """What a place has left; None: nobody can say."""

    bytes: int | None
    inodes: int | None


class Store(Protocol):
    """One bag in one place.

    Writing: `begin`, any number of `put`, then `seal`. Reading: `listed`, `fetch`. Nothing is ever written
    over a sealed bag.

    Attributes:
        place: where the sealed bag is.
        title: how it is named to the operator.
    """

    place: Place
    title: str

    async def identify(self) -> None:
        """Find out on which disk it lies, for `place`. Raises Failure."""

    async def sealed(self) -> bool:
        """Whether the bag is there and finished. Raises Failure, LinkLost, TimeoutError."""

    async def begin(self, wanted: Mapping[str, HashedFile]) -> set[str]:
        """Make ready for writing; returns those of `wanted` that are there already, every byte hashed again.

        Raises:
            Failure: it cannot be written there.
        """

    async def put(self, folder: Path, files: Sequence[HashedFile], moved: Moved) -> dict[str, Sha256 | None]:
        """Write files that lie in `folder` on this computer, by their paths in the bag.

        Returns:
            Those that did not become what they must be, with what they became; None: nobody can say.

        Raises:
            Failure, LinkLost, TimeoutError.
        """

    async def seal(self, expected: Mapping[str, int]) -> tuple[str, ...]:
        """Finish the bag if exactly these files are in it; returns what is wrong otherwise."""

    async def listed(self) -> Listed:
        """Everything in the sealed bag. Raises Failure, LinkLost, TimeoutError."""

    async def hashes(self, files: Sequence[HashedFile]) -> dict[str, Sha256]:
        """What files of the sealed bag are, every byte read where they lie; unreadable ones are left out."""

    async def fetch(self, files: Sequence[HashedFile], into: Path, moved: Moved) -> dict[str, str]:
        """Read files of the sealed bag into a folder of this computer, as they are.

        Returns:
            Those that could not be read, with the reason.
        """

    async def cool(self, files: Sequence[HashedFile]) -> bool:
        """Drop what the store's computer holds of these files in memory; whether that is proven."""

    async def close(self) -> None:
        """Let go of connections. Never raises."""


def wrong_names(
    listed: Mapping[str, int], others: Sequence[str], expected: Mapping[str, int]
) -> tuple[str, ...]:
    """In words: how a listing is not exactly what it must be."""
    found = [f"{path} is missing" for path in expected if path not in listed]
    found += [f"{path} does not belong there" for path in (*listed, *others) if path not in expected]
    found += [
        f"{path} has {listed[path]} bytes instead of {size}"
        for path, size in expected.items()
        if listed.get(path, size) != size
    ]
    return tuple(str(safe(line, 400)) for line in found)


def store_failure(title: str, said: str | bytes, do: str, code: str = "store-failed") -> Failure:
    """The store did not do what it was asked."""
    reason = safe(said, 300).strip() or "it did not say why"
    return Failure(
        f"{title}: {reason}.",
        means="What was complete there before stays; the rest does not count as copied.",
        do=do,
        exit=Exit.ATTENTION,
        code=code,
    )


async def in_thread(work: Callable[..., T], *args: object) -> T:
    """Run blocking file work; when cancelled, wait for it: it holds files that are closed next."""
    future = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait({future})
        if not future.cancelled():
            future.exception()
        raise

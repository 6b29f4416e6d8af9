"""What can be done about a file system that runs full, worked out and not done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui.model.text import SafeText

Resource = Literal["bytes", "inodes", "quota"]


@dataclass(frozen=True, slots=True)
class Place:
    """A directory or file with what it takes up. None: not counted."""

    path: SafeText
    bytes: int | None = None
    files: int | None = None


@dataclass(frozen=True, slots=True)
class Protected:
    """Something that is never proposed, and why: active, checkpoint, result, or simply not known."""

    path: SafeText
    why: SafeText
    bytes: int | None = None
    files: int | None = None


@dataclass(frozen=True, slots=True)
class Reclaimable:
    """Something whose content comes back by itself or from elsewhere, with the proof of that.

    Attributes:
        kind: what it is, such as ``pip cache``.
        why: what shows that it is that, and where its content comes back from.
        identity: ``device:inode:mtime`` of `path` when it was looked at.
        command: removes exactly this path, and nothing when its identity has changed since.
        returns: its content comes back; False: it is gone for ever, though no run needs it.
    """

    path: SafeText
    kind: SafeText
    why: SafeText
    identity: str
    command: SafeText
    bytes: int | None = None
    files: int | None = None
    returns: bool = True


@dataclass(frozen=True, slots=True)
class Ladder:
    """The ways out of storage pressure on one mount, the mildest first.

    Attributes:
        mount, source, fstype: the real file system below the path that was asked about.
        resource: what runs out.
        used, limit: of that resource; None when not told.
        writers: who writes there now, in words.
        reclaim: the allow-list. Nothing else is ever proposed for removal.
        to_free: of the resource, to come down to `target_pct`; None when the limit is not known.
        shortfall: what remains to be found after all of `reclaim`; 0 when it is enough.
        expand_by: how much larger the file system must become for the rest of the run; None when not known.
        unread: what could not be looked at; then the ladder may be incomplete.
    """

    box: str
    mount: SafeText
    source: SafeText
    fstype: SafeText
    resource: Resource
    used: int | None
    limit: int | None
    at: float
    target_pct: float = 85.0
    largest: tuple[Place, ...] = ()
    writers: tuple[SafeText, ...] = ()
    protected: tuple[Protected, ...] = ()
    reclaim: tuple[Reclaimable, ...] = ()
    to_free: int | None = None
    frees: int = 0
    shortfall: int | None = None
    expand_by: int | None = None
    unread: tuple[SafeText, ...] = ()

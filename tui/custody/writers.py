"""Evidence that somebody still writes: open files, sizes that grow between two looks, unfinished names."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping

from tui.custody.box_looks import OpenFiles
from tui.custody.layouts.tree import finished_name
from tui.custody.listing import Entry, Listing, relative
from tui.model.custody import Writer

FRESH_S = 600
"""An unfinished name that was written to within this time may still be."""

_MOST = 200


def grown(first: Listing, second: Listing) -> Iterator[Writer]:
    """Files that came, went, or changed between two looks at the same folder."""
    before = {entry.path: entry for entry in first.files()}
    after = {entry.path: entry for entry in second.files()}
    for path in sorted(before.keys() | after.keys()):
        was, is_now = before.get(path), after.get(path)
        if was is None or is_now is None:
            yield Writer(
                path=path, evidence="came while we looked" if was is None else "went while we looked"
            )
        elif was.size != is_now.size:
            yield Writer(path=path, evidence=f"went from {was.size} to {is_now.size} bytes while we looked")
        elif (was.modified_ns, was.inode) != (is_now.modified_ns, is_now.inode):
            yield Writer(path=path, evidence="was written to while we looked")


def holding(held: OpenFiles, top: str) -> Iterator[Writer]:
    """Files below `top` that a process has open for writing; paths relative to it."""
    for one in held.held:
        below = relative(one.path, top)
        if below:
            gone = ", and deleted" if one.deleted else ""
            evidence = f"open for writing by {one.program or 'a process'}{gone}"
            yield Writer(path=below, evidence=evidence, pid=one.pid)


def unfinished(
    files: Mapping[str, Entry], artifacts: Collection[str], scrapped: Collection[str], now_s: int
) -> Iterator[Writer]:
    """Names that say "unfinished": of an artifact, beside an artifact, or written to a short time ago.

    Args:
        files: of the run's folder, by path.
        scrapped: paths that the operator decided to give up; they count only while they are fresh.
        now_s: the box's clock.
    """
    for path, entry in files.items():
        finished = finished_name(path)
        if finished is None:
            continue
        age = now_s - entry.modified_ns // 10**9
        if path in artifacts:
            yield Writer(path=path, evidence="its name says that it is unfinished")
        elif 0 <= age < FRESH_S:
            yield Writer(path=path, evidence=f"named as unfinished, and written to {age} s ago")
        elif finished in artifacts and path not in scrapped:
            yield Writer(path=finished, evidence=f"{posixpath.basename(path)} lies beside it, unfinished")


def told(writers: Iterable[Writer]) -> tuple[Writer, ...]:
    """One entry a path, at most 200; the first evidence given is the one that stays."""
    found: dict[str, Writer] = {}
    for writer in writers:
        if len(found) < _MOST:
            found.setdefault(writer.path, writer)
    return tuple(sorted(found.values(), key=lambda one: one.path))

"""Listings made of a few words, for the pure parts of the custody room."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tui.custody.layouts.tree import Tree, tree_of
from tui.custody.listing import Entry, Listing

TOP = "/data/exp/run1"


def listing(files: Mapping[str, int], links: Mapping[str, str] | None = None, *folders: str) -> Listing:
    """Files with their sizes, links with their targets, and empty folders; parents come by themselves."""
    numbers = itertools.count(10)
    there = set(folders)
    for path in (*files, *(links or {}), *folders):
        parts = path.split("/")
        there |= {"/".join(parts[:at]) for at in range(1, len(parts))}

    def entry(path: str, kind: str, size: int = 0, target: str | None = None) -> Entry:
        number = next(numbers)
        return Entry(path, kind, size, number * 10**9, number * 10**9, number, 1, target)

    return Listing(
        TOP,
        (
            *(entry(path, "d") for path in sorted(there)),
            *(entry(path, "f", size) for path, size in files.items()),
            *(entry(path, "l", 0, target) for path, target in (links or {}).items()),
        ),
        device=1,
        taken_s=10_000,
    )


def tree(
    files: Mapping[str, int],
    links: Mapping[str, str] | None = None,
    *folders: str,
    texts: Mapping[str, bytes] | None = None,
) -> Tree:
    return tree_of(listing(files, links, *folders), texts)

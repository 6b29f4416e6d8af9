"""Where the links of a listed folder end, worked out from the listing alone: nothing is opened."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tui.custody.layouts.tree import Tree, join
from tui.custody.listing import relative

_MOST_HOPS = 40  # what Linux allows


class End(NamedTuple):
    """Where a link ends. `path` is relative to the folder, but for ``outside``: there it is the target."""

    kind: Literal["file", "folder", "outside", "dangling", "loop", "odd"]
    path: str


@dataclass(frozen=True, slots=True)
class Links:
    """The links of one tree; `top` is its real path."""

    tree: Tree
    top: str

    def follow(self, path: str) -> End:
        """Where the link at `path` ends."""
        done: list[str] = []
        todo = list(reversed(path.split("/")))
        hops = 0
        target = path
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not done:
                    return End("outside", target)
                done.pop()
                continue
            here = join("/".join(done), part)
            link = self.tree.links.get(here)
            if link is None:
                done.append(part)
                continue
            hops += 1
            if hops > _MOST_HOPS:
                return End("loop", target)
            target = link.target or ""
            if target.startswith("/"):
                below = relative(posixpath.normpath(target), self.top)
                if below is None:
                    return End("outside", target)
                done, target_parts = [], below.split("/")
            else:
                target_parts = target.split("/")
            todo += reversed(target_parts)
        return self._end("/".join(done), target)

    def pinned(self) -> frozenset[str]:
        """What links point at inside the tree: ``last.ckpt → epoch=3.ckpt`` makes the target count."""
        ends = (self.follow(path) for path in self.tree.links)
        return frozenset(end.path for end in ends if end.kind in ("file", "folder"))

    def _end(self, path: str, target: str) -> End:
        if path in self.tree.files:
            return End("file", path)
        if path in self.tree.folders:
            return End("folder", path)
        return End("odd", path) if path in self.tree.odd else End("dangling", target)

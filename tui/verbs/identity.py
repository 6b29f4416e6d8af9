"""What becomes of a box's recorded host key when the box gets another name or is forgotten."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tui.box.trust import TrustStore
from tui.model.failure import Failure


@contextlib.contextmanager
def following(trust: TrustStore, old: str, new: str) -> Iterator[None]:
    """Let the record go with a box that is renamed inside the block, and back when that fails.

    Under a new name without its record a box would count as never met, and any key would be taken.

    Args:
        new: the name of no box; a record under it was left by one that is gone.
    """
    if old != new:
        trust.forget(new)
    trust.rename(old, new)
    try:
        yield
    except Failure:
        trust.rename(new, old)
        raise

"""Writes text that the operator asked for into a file on this computer; never over one that exists."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tui.model.failure import Failure
from tui.model.text import SafeText, safe

MOST_NAMES = 1000
"""Files of one name before the operator is asked for another."""


def save_lines(lines: Iterable[str], path: str, *, name: str, folder: Path) -> SafeText:
    """Save lines and tell in one sentence where.

    Args:
        path: as typed, ``~`` and relative paths included; empty picks `name` in `folder`.
        name: file name for a path that is empty or a folder.

    Raises:
        Failure: the file exists or cannot be written.
    """
    name = name.replace("/", "-")
    typed = Path(os.path.expanduser(path)) if path.strip() else folder / name  # noqa: PTH111 - ~user may fail
    target = typed / name if typed.is_dir() else typed
    text = "".join(f"{line}\n" for line in lines)
    try:
        if not path.strip():
            folder.mkdir(parents=True, exist_ok=True)
            target = _free(target)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError:
        raise Failure(f"{target} exists; nothing was written.", do="Choose another name.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Failure(f"{target} cannot be written: {reason}.", do="Choose another path.") from error
    return safe(f"{text.count(chr(10)):,} lines saved to {target}")


def _free(target: Path) -> Path:
    """This path, or the first numbered one beside it that is free."""
    names = (target, *(target.with_stem(f"{target.stem}-{n}") for n in range(2, MOST_NAMES)))
    return next((name for name in names if not name.exists()), target)

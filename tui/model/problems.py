"""Problems with the operator's own files: one sentence each, with file and line, and never the value's text.

A value may be a secret that landed in the wrong key, so a problem names the key and what is wrong with it.
Only numbers are repeated.
"""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from tui.model.failure import Exit, Failure

CAP_BYTES = 1 << 20
"""Largest user file that is read. A fleet of a thousand boxes is a fifth of this."""

BAD = "bad-entry"
WARNING = "warning"

_AT_LINE = re.compile(r"\(at line (\d+), column (\d+)\)")


def problem(
    file: str, line: int | None, what: str, *, means: str = "", do: str = "", code: str = BAD
) -> Failure:
    """A problem at one place of a user file.

    Args:
        file: the file's name as the operator knows it.
        line: 1 is the first; None when no single line is to blame.
        code: `BAD` when something was left out because of it, `WARNING` when not.
    """
    where = f"{file}:{line}: " if line is not None else f"{file}: "
    return Failure(where + what, means=means, do=do, exit=Exit.ATTENTION, code=code)


def read_user_file(path: Path, *, cap: int = CAP_BYTES, means: str = "") -> str | None:
    """The text of a user file, or None when there is no such file.

    Args:
        means: what follows for the operator when it cannot be read.

    Raises:
        Failure: it cannot be read, is no regular file, is larger than `cap` bytes or is not UTF-8.
    """
    look = f"Look at {path}."
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a FIFO would hang the start
            raise problem(path.name, None, "is not a regular file.", means=means, do=look)
        with path.open("rb") as file:
            raw = file.read(cap + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no usable path"
        raise problem(path.name, None, f"cannot be read ({reason}).", means=means, do=look) from None
    if len(raw) > cap:
        raise problem(path.name, None, f"is larger than {cap} bytes.", means=means, do=look)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = "is not UTF-8 text."
        raise problem(path.name, line, what, means=means, do="Save the file as UTF-8.") from None


def parse_toml(text: str, file: str, *, means: str = "") -> dict[str, Any]:
    """Parse a TOML text.

    Args:
        means: what follows for the operator when it is not TOML.

    Raises:
        Failure: it is not TOML; names the line.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise problem(file, None, "is nested too deeply.", means=means, do="Write it flatter.") from None
    except ValueError as error:  # TOMLDecodeError, and what date and int conversions raise
        said = str(error)
        found = _AT_LINE.search(said)
        line = int(found[1]) if found else None
        if "(at end of document)" in said:
            line = text.count("\n", 0, len(text.rstrip())) + 1
        what = f"is not TOML: {_without_text(said.split(' (at ')[0])}."
        raise problem(file, line, what, means=means, do="Correct the line.") from None


def _without_text(said: str) -> str:
    """tomllib quotes what it stumbled over. Single signs help; anything longer may be a secret."""
    return re.sub(r"\s*\(?(?:'[^']{3,}'|\"[^\"]{3,}\")\)?", "", said)[:120].rstrip(" :.") or "bad syntax"

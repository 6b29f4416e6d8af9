"""The patterns of a ``[custody]`` table: ``*`` stays in one folder, ``**`` crosses folders."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


def matching(pattern: str, paths: Iterable[str]) -> list[str]:
    """The paths that a pattern names; one that names a folder stands for everything in it."""
    match = _compiled(pattern).match
    return [path for path in paths if match(path)]


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    pattern = pattern.removeprefix("./")
    out, at = [], 0
    while at < len(pattern):
        sign = pattern[at]
        if pattern.startswith("**/", at):
            out.append("(?:[^/]+/)*")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        elif sign == "*":
            out.append("[^/]*")
            at += 1
        elif sign == "?":
            out.append("[^/]")
            at += 1
        elif sign == "[" and (end := pattern.find("]", at + 2)) > 0:
            inner = pattern[at + 1 : end]
            negated = "^" if inner[0] in "!^" else ""
            inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner[1:] if negated else inner)
            out.append(f"(?!/)[{negated}{inner}]")
            at = end + 1
        else:
            out.append(re.escape(sign))
            at += 1
    try:
        return re.compile("".join(out) + r"(?:/.*)?\Z", re.DOTALL)
    except re.error:  # such as [z-a]: then the signs mean themselves
        return re.compile(re.escape(pattern) + r"(?:/.*)?\Z", re.DOTALL)

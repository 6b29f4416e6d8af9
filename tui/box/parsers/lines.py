"""Text as parsers read it: lines ended by LF only, without colour codes, bounded."""

from __future__ import annotations

import re

_MAX_BYTES = 16 << 20
_MAX_LINE = 4096
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")


def decode(raw: bytes) -> str:
    """Bytes of a box as text. What is no UTF-8 survives as lone surrogates, so that a path keeps its name."""
    text = raw[:_MAX_BYTES].decode("utf-8", "surrogateescape")
    return (_COLOUR.sub("", text) if "\x1b" in text else text).removeprefix("\ufeff")


def lines(text: str) -> list[str]:
    """The lines of `text`, without the CR that a pty adds. Other separators do not end a line."""
    return [line[:_MAX_LINE].rstrip("\r") for line in text.split("\n")]

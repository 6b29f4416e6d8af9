"""Text as parsers read it: lines ended by LF only, without colour codes, bounded."""

from __future__ import annotations

import json
import re

_MAX_BYTES = 16 << 20
_MAX_LINE = 4096
_MAX_STARTS = 64  # of JSON, in one text
_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")


def decode(raw: bytes) -> str:
    """Bytes of a box as text. What is no UTF-8 survives as lone surrogates, so that a path keeps its name."""
    return uncoloured(raw[:_MAX_BYTES].decode("utf-8", "surrogateescape"))


def uncoloured(text: str) -> str:
    """`text` without colour codes and the mark that Windows begins files with."""
    return (_COLOUR.sub("", text) if "\x1b" in text else text).removeprefix("\ufeff")


def lines(text: str) -> list[str]:
    """The lines of `text`, without the CR that a pty adds. Other separators do not end a line."""
    return [line[:_MAX_LINE].rstrip("\r") for line in text.split("\n")]


def first_json(text: str) -> object | None:
    """The first JSON object or list that starts a line, after whatever warnings; None if there is none."""
    decoder = json.JSONDecoder()
    for number, match in enumerate(re.finditer(r"^[ \t]*(?=[\[{])", text, re.MULTILINE)):
        if number >= _MAX_STARTS:
            return None
        try:
            document, _ = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) or (
            isinstance(document, list) and any(isinstance(x, dict) for x in document)
        ):
            return document
        if document == []:
            return []
    return None

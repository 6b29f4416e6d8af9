"""Foreign text and JSON: every length is bounded before it is believed. Needs no NumPy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINE_BYTES = 16 << 20
"""Longest line of a text format. A row of logits over a vocabulary has a few megabytes."""


class Unreadable(Exception):
    """A prediction file is not what its name says, in one sentence."""


def text_lines(path: Path, name: str) -> Iterator[str]:
    """Lines of a UTF-8 file, each bounded; a byte order mark is dropped.

    Raises:
        Unreadable: a line is too long or no UTF-8.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LINE_BYTES + 1):
                number += 1
                if len(line) > LINE_BYTES:
                    raise Unreadable(f"line {number} of {name} is longer than {LINE_BYTES >> 20} MiB")
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    raise Unreadable(f"line {number} of {name} is not UTF-8") from None
                yield text
    except OSError as error:
        raise Unreadable(f"{name} cannot be read ({error.strerror})") from None


def parse_json(raw: str | bytes, where: str, *, numbers: Any = None) -> Any:
    """A foreign JSON value. A key that stands twice is refused: readers would differ in what they see.

    Args:
        where: what it is, for the sentence.
        numbers: makes a number of its digits; by default Python's.

    Raises:
        Unreadable: it is damaged, too deep or holds a key twice.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise Unreadable(f"{where} holds a key twice")
        return found

    try:
        return json.loads(
            raw, object_pairs_hook=once, parse_float=numbers, parse_int=numbers, parse_constant=numbers
        )
    except (ValueError, RecursionError):
        raise Unreadable(f"{where} is not valid JSON") from None

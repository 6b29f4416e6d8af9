"""Where a value came from, in the form that *explain* shows."""

from __future__ import annotations

from functools import lru_cache

from tui.box.parsers.lines import decode
from tui.model.reading import Source
from tui.model.text import SafeText, safe

RAW_LIMIT = 4096


def source(command: str, taken_at: float, raw: bytes | str = b"") -> Source:
    """A source with the lines that the command printed, without the blank ones."""
    text = raw[: 2 * RAW_LIMIT] if isinstance(raw, str) else decode(raw[: 2 * RAW_LIMIT])
    if len(text) <= RAW_LIMIT and text.isascii() and text.replace("\n", "").isprintable():
        plain = [SafeText(line) for line in map(str.rstrip, text.split("\n")) if line]
        return Source(_command(command), taken_at, tuple(plain))
    lines, room = list[SafeText](), RAW_LIMIT
    for line in text.replace("\r", "").split("\n"):
        if line.strip() and room > 0:
            lines.append(safe(line.rstrip(), room))
            room -= len(line)
    return Source(_command(command), taken_at, tuple(lines))


@lru_cache(1024)  # a box has about ten of them, tick after tick
def _command(text: str) -> SafeText:
    return safe(text, 512)


def reason(text: str) -> SafeText:
    """A reason why something is not known."""
    return safe(text, 300)

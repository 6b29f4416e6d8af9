"""Where a value came from, in the form that *explain* shows."""

from __future__ import annotations

from tui.box.parsers.lines import decode
from tui.model.reading import Source
from tui.model.text import SafeText, safe

RAW_LIMIT = 4096


def source(command: str, taken_at: float, raw: bytes | str = b"") -> Source:
    """A source with the lines that the command printed, without the blank ones."""
    text = raw[: 2 * RAW_LIMIT] if isinstance(raw, str) else decode(raw[: 2 * RAW_LIMIT])
    lines, room = list[SafeText](), RAW_LIMIT
    for line in text.replace("\r", "").split("\n"):
        if line.strip() and room > 0:
            lines.append(safe(line.rstrip(), room))
            room -= len(line)
    return Source(safe(command, 512), taken_at, tuple(lines))


def reason(text: str) -> SafeText:
    """A reason why something is not known."""
    return safe(text, 300)

"""Where a value came from, in the form that *explain* shows."""

from __future__ import annotations

from tui.box.parsers.lines import decode
from tui.model.reading import Source
from tui.model.text import SafeText, safe

RAW_LIMIT = 4096


def source(command: str, taken_at: float, raw: bytes | str = b"") -> Source:
    """A source whose raw text stands on one line, its own lines set apart by bars."""
    text = raw if isinstance(raw, str) else decode(raw[: 2 * RAW_LIMIT])
    lines = [line.rstrip() for line in text.replace("\r", "").split("\n")]
    return Source(safe(command, 512), taken_at, safe(" | ".join(line for line in lines if line), RAW_LIMIT))


def reason(text: str) -> SafeText:
    """A reason why something is not known."""
    return safe(text, 300)

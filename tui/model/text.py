"""The one gate between foreign bytes and the operator's terminal.

Rented boxes, user files and pasted strings are not trusted: Textual and Rich hand escape sequences in
their input straight to the terminal. Nothing reaches a widget that did not pass here.
"""

from __future__ import annotations

import re
from typing import NewType

SafeText = NewType("SafeText", str)
"""Printable characters of a stable cell width only: no control, escape, bidi or zero-width codes."""

LogText = NewType("LogText", str)
"""Like SafeText, but SGR colour sequences (``ESC [ ... m``) may stand in it. Only the log view draws it."""

_PLAIN = re.compile(r"[ -~]*\Z")
_UNSAFE = re.compile(r"[^ -~]")


def safe(raw: str | bytes, limit: int = 4096) -> SafeText:
    """Make foreign text fit to be shown: decoded, on one line, at most `limit` characters."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    text = text[:limit]
    if _PLAIN.match(text):
        return SafeText(text)
    return SafeText("".join(c if c.isprintable() else " " for c in text))

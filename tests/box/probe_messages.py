"""Answers of the probe's children, as tests write them down."""

from __future__ import annotations

from tui.box.probe.frame import Batch, Message
from tui.box.probe.system import Identity
from tui.model.text import SafeText

LINUX = Identity(SafeText("Linux"), root=True, home="/root", booted_at=1_000.0)


def said(**texts: str) -> Batch:
    """Messages by name, a double underscore standing for the dot; status 0, or what stands before a bar."""
    messages = {}
    for name, text in texts.items():
        status, bar, rest = text.partition("|")
        dotted = name.replace("__", ".")
        messages[dotted] = Message(dotted, status if bar else "0", (rest if bar else text).encode())
    return Batch(messages)

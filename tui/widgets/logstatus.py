"""The log view's own lines, in words: title, filters, status."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tui.widgets.figures import size
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, fit
from tui.widgets.logfilter import Rule
from tui.widgets.logreader import LogReader
from tui.widgets.rule import rule_line


def title_line(left: Sequence[Span], right: Span, width: int, glyphs: Glyphs) -> Line:
    """A rule with a title and a word at its end; the title is cut where there is no room for both."""
    tail = cell_len(right[0]) + 3 if right[0] else 0
    room = width - tail - 5
    spans: list[Span] = []
    for text, style in left:
        cut = text if cell_len(text) <= room else fit(text, max(0, room), ellipsis=glyphs.ellipsis)
        room -= cell_len(cut)
        if cut:
            spans.append((cut, style))
    return rule_line(width, glyphs, spans, [right] if right[0] else ())


def words(parts: Sequence[Span], width: int, glyphs: Glyphs) -> Line:
    """Words set apart by dots; the last ones are left out where they do not fit."""
    spans: list[Span] = []
    used = 0
    for text, style in parts:
        joint = f" {glyphs.dot} " if spans else " "
        if spans and used + cell_len(joint) + cell_len(text) > width:
            break
        spans += [(joint, "dim"), (text, style)]
        used += cell_len(joint) + cell_len(text)
    return tuple(spans)


def status_parts(reader: LogReader, asked: str = "", *, live: bool = True, note: str = "") -> list[Span]:
    """How the view stands, most important first.

    Args:
        live: whether the box can be heard; otherwise nobody knows how far behind these lines are.
        asked: what the view waits for, such as older lines from the spool.
        note: what is wrong with the following.
    """
    buffer = reader.buffer
    if reader.place.follow:
        parts: list[Span] = [("follow on", "strong")]
    else:
        parts = [("paused", "attention strong"), (f"{reader.waiting:,} new", "attention")]
    if reader.note:
        parts.append((reader.note, "strong"))
    if asked:
        parts.append((asked, "strong"))
    if note:
        parts.append((note, "attention"))
    parts.append(("wrap on" if reader.wrap else "wrap off", ""))
    if reader.skip and not reader.wrap:
        parts.append((f"from column {reader.skip + 1}", ""))
    if reader.marks:
        parts.append((f"{len(reader.marks)} marked", ""))
    if reader.filters.rules:
        parts += _filter_parts(reader)
    if live and buffer.file_bytes is not None:
        behind = buffer.behind_bytes
        parts.append((f"behind {size(behind)}", "attention" if behind else ""))
    else:
        parts.append(("behind n/a", "dim"))
    parts.append((f"file {size(buffer.file_bytes)}", ""))
    return parts


def _filter_parts(reader: LogReader) -> list[Span]:
    on = len(reader.filters.active)
    parts: list[Span] = [(f"{on} filter{'s' if on != 1 else ''}" if on else "filters off", "")]
    if on:
        parts.append((f"{reader.hidden:,} hidden", ""))
    return parts


def filter_line(reader: LogReader, width: int, glyphs: Glyphs) -> Line:
    """Each filter with the digit that turns it on and off."""
    parts: list[Span] = []
    for number, rule in enumerate(reader.filters.rules, 1):
        parts.append((_rule_words(number, rule), "" if rule.on else "dim"))
    if reader.filters.context:
        sign = "±" if glyphs.name == "unicode" else "+-"
        parts.append((f"{sign}{reader.filters.context} lines around", ""))
    return words(parts, width, glyphs)


def _rule_words(number: int, rule: Rule) -> str:
    source = rule.pattern.source
    shown = source if rule.pattern.is_regex else f'"{source}"'
    return f"{number} {'only' if rule.keep else 'hide'} {shown}{'' if rule.on else ' (off)'}"

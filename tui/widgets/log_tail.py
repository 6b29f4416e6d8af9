"""The newest lines of a run's log, for the room that a detail leaves below it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tui.model.text import LogText, plain
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, clip, end_of
from tui.widgets.logreader import ERROR_LIKE
from tui.widgets.rule import rule_line

LEAST = 5
"""Rows below which there is no point: air, the rule, and a few lines."""
_BEFORE = 2


def tail_lines(newest: Sequence[LogText], path: str, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """Air, a rule and the last of `newest` in at most `rows` lines; nothing where they are too few.

    Args:
        newest: the last one at the end.
    """
    if rows < LEAST or not newest:
        return []
    shown = [_line(text, width, glyphs) for text in newest[-(rows - len(("air", "rule"))) :]]
    where = end_of(path, max(0, width - len("- log  --")), ellipsis=glyphs.ellipsis)
    return [(), rule_line(width, glyphs, (("log ", "title"), (where, "dim"))), *shown]


def _line(text: LogText, width: int, glyphs: Glyphs) -> Line:
    """One line, quiet beside what was measured; one that looks like an error is not."""
    said = str(plain(text))
    wrong = ERROR_LIKE.matches(said)
    head = (" !", "danger") if wrong else (" " * _BEFORE, "")
    return clip((head, (said, "" if wrong else "dim")), width, glyphs.ellipsis)

"""A line as a rule reads it: without colour, launcher prefix and time, with the rank and level it names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.model.text import SafeText

LIMIT = 4096
"""Characters of a line that are read."""

_TIME = (
    r"\[?(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d[-/]\d\d|[A-Z][a-z]{2} +\d{1,2})?"
    r"[T ,_-]*\d\d:\d\d:\d\d[\d.,:]*(?:Z|[+-]\d\d:?\d\d| ?[AP]M)?\]?"
)
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|TRACE)"
_PREFIXES = tuple(
    re.compile(form)
    for form in (
        r"\[?(?:rank|local_rank|RANK|default|worker|node|proc(?:ess)?)[ _]?(?P<rank>\d{1,5})(?:\]:?|:|\])\s?",
        r"\[(?:Rank|R) ?(?P<rank>\d{1,5})\]:?\s?",
        r"\[\d+,(?P<rank>\d+)\]<std(?:err|out)>:\s?",
        r"(?P<rank>\d{1,5}):\s",
        r"\((?:[\w.<>=-]+ )*?(?:pid|ip|rank)=[\d.]+(?:, ?\w+=[\w.-]+)*\)\s*",
        r"(?!(?:\w+\.)+[A-Z])"  # sqlite3.OperationalError is no host
        r"(?P<name>[a-z][a-z0-9.-]*\d[\w.-]*|[a-z]+(?:-[a-z0-9]+){1,5})(?::| +\|)\s+(?=\S)",
        r"\d{4}-\d\d-\d\dT[\d:.]+Z? (?:stdout|stderr) [FP] ",
        _TIME + r"(?: +[\w.-]+ [\w.@/-]+(?:\[\d+\])?:)?[ |:,-]*",
        r"(?:\d+ )?\[?(?P<level>" + _LEVEL + r")\]?(?P<after>[ |:*,-]+(?:\[[\w.:]+\] *)?)",
        r"[\w.]+:[\w.<>]+:\d+ - ",
        r"\[[\w./-]+\.(?:py|cc|cpp|cu|go|rs):\d+\]:?\s?",
        r"> ?(?=\S)",
    )
)
_GLOG = re.compile(r"(?P<letter>[IWEF])\d{4} \d\d:\d\d:\d\d[\d.]* +\d+ (?P<where>[\w./-]+:\d+\]) ?")
_MOST = 5
_GAP = re.compile(r"\s{200,}")  # no table is that wide, and rules with gaps would try every way to share it
_ANY_LEVEL = re.compile(rf"(?:^|[\s\[|(-])(?P<level>{_LEVEL})(?=[\s\]|:)-]|$)")
_LETTERS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL"}


@dataclass(frozen=True, slots=True)
class Row:
    """One kept state of one line.

    Attributes:
        number: 1-based line in its text.
        text: as it may be shown.
        head: what the program itself said: without launcher prefix and time.
        low: `text` in lower case.
        rank: of the process that said it, where a prefix tells.
        level: as a logger names it, in capitals; empty where it does not.
        under: it was written over by a later state of the same line.
    """

    number: int
    text: SafeText
    head: str
    low: str
    rank: int | None = None
    level: str = ""
    under: bool = False

    @property
    def mild(self) -> bool:
        """Whether a logger ranked it below a warning."""
        return self.level in ("DEBUG", "INFO", "NOTICE", "TRACE")


def row(number: int, text: SafeText, *, under: bool = False) -> Row:
    """Read one line."""
    text = SafeText(_GAP.sub(" " * 200, text))
    head, rank, level = text.lstrip("\ufeff "), None, ""
    for _ in range(_MOST):
        for form in _PREFIXES:
            match = form.match(head)
            if match is None or match.end() == 0:
                continue
            named = match.groupdict()
            if named.get("rank"):
                rank = int(named["rank"]) if rank is None else rank
            level = named.get("level") or level
            head = head[match.end() :]
            break
        else:
            break
    glog = _GLOG.match(text)
    if glog:
        level, head = _LETTERS[glog["letter"]], text[glog.end() :]
    if not level:
        found = _ANY_LEVEL.search(text[:200])
        level = found["level"] if found else ""
    indent = text[: len(text) - len(text.lstrip())] if head == text.lstrip() else ""
    level = {"WARN": "WARNING"}.get(level, level)
    return Row(number, text, indent + head, text.lower(), rank, level, under)

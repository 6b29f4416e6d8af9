"""Which lines of a compound command's output belong to which of its parts.

``free -g; echo "###LIMIT $(cat memory.max)"; echo ---; grep oom memory.events`` prints one text. Echoes say
where the parts begin: one with a substitution names its line, a plain one is a separator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tui.box.parsers.cgroup import SINGLE_VALUES

_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`")
_ECHO = re.compile(r"\s*(?:echo|printf)\s+(?:-[neE]+\s+)*(?P<what>.*)$", re.DOTALL)
_SUBSTITUTION = re.compile(r"\$\((?P<new>(?:[^()]|\([^()]*\))*)\)|`(?P<old>[^`]*)`")
_AWK = re.compile(r"awk\s+'\{\s*print\s+\"(?P<label>[^\"]+)\"\s*,(?P<rest>[^}]*)\}'\s+(?P<file>\S+)")
_ONE_FILE = re.compile(r"(?:sudo\s+)?cat\s+(?!-)(?P<path>\S+)(?:\s+2>\s*\S+)?\s*$")
_VALUE = re.compile(r"\s*(?:max|-?\d{1,20})(?:\s+\d{1,18})?\s*$")


@dataclass(frozen=True, slots=True)
class Section:
    """One part: the command line that printed it, and its text. `first` is the number of its first line."""

    command: str
    text: str
    first: int = 1


def statements(line: str) -> list[str]:
    """The parts of a shell line between ``;``, ``&&``, ``||`` and newlines; quotes, ``$( )`` stay whole."""
    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        hidden.append(match.group())
        return f"\0{len(hidden) - 1}\0"

    def show(match: re.Match[str]) -> str:
        return hidden[int(match.group(1))]

    bare = _QUOTED.sub(hide, line.replace("\0", " "))
    parts = (re.sub("\0(\\d+)\0", show, part).strip() for part in re.split(r";|&&|\|\||\n", bare))
    return [part for part in parts if part]


def split_output(line: str, text: str) -> list[Section]:
    """The sections of `text`.

    Lines that no echo accounts for go to each of the other parts between the same separators: every parser
    skips what is not its own.
    """
    parts = statements(line)
    if len(parts) < 2:
        return [Section(line, text)]
    rows = list(enumerate(text.split("\n"), start=1))
    sections: list[Section] = []
    chunk: list[str] = []
    for part in parts:
        echo = _ECHO.match(part)
        label, inner = _labelled(part, echo)
        if inner is not None:
            at = _first(rows, lambda row, label=label: bool(label) and row.startswith(label))  # type: ignore[misc]
            if at is not None:
                number, row = rows.pop(at)
                sections.append(Section(inner, row.strip()[len(label) :].strip(), number))
        elif echo:
            mark = echo.group("what").strip().strip("\"'")
            at = _first(rows, lambda row, mark=mark: bool(mark) and row == mark)  # type: ignore[misc]
            if at is not None:
                sections += _shared(chunk, rows[:at])
                rows, chunk = rows[at + 1 :], []
        else:
            chunk.append(part)
    return sections + _shared(chunk, rows)


def _first(rows: list[tuple[int, str]], wanted: Callable[[str], bool]) -> int | None:
    return next((place for place, (_, row) in enumerate(rows) if wanted(row.strip())), None)


def _labelled(part: str, echo: re.Match[str] | None) -> tuple[str, str | None]:
    """The label that a part prints before a substituted output, and the command substituted."""
    awk = _AWK.match(part)
    if awk:
        return awk.group("label"), f"cat {awk.group('file')}"
    inner = _SUBSTITUTION.search(echo.group("what")) if echo else None
    if echo is None or inner is None:
        return "", None
    label = echo.group("what")[: inner.start()].strip().lstrip("\"'").strip()
    return label, (inner.group("new") or inner.group("old") or "").strip()


def _reads_one_value(part: str) -> bool:
    """Whether a part prints one control group file that holds one line."""
    match = _ONE_FILE.match(part)
    return bool(match) and match is not None and match.group("path").rpartition("/")[2] in SINGLE_VALUES


def _shared(parts: list[str], rows: list[tuple[int, str]]) -> list[Section]:
    single = [part for part in parts if _reads_one_value(part)]
    values = [(number, row) for number, row in rows if _VALUE.match(row)]
    if single and len(parts) > 1 and len(single) == len(values):
        by_value = [Section(part, row, number) for part, (number, row) in zip(single, values, strict=True)]
        rest = [part for part in parts if part not in single]
        return by_value + _shared(rest, [row for row in rows if row not in values])
    text = "\n".join(row for _, row in rows)
    first = rows[0][0] if rows else 1
    return [Section(part, text, first) for part in parts]

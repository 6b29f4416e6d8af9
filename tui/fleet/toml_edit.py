"""Changes to a TOML text that leave every other byte alone: comments, order, spacing.

tomlkit (0.15) writes the values here, but whole-document edits through it are not used: it counts the comment
above a table as part of the table before, so that removing one box takes away the words about the next.
Each function returns the new text; what a form of writing does not allow raises `NotHere`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

import tomlkit

from tui.fleet.toml_map import Path, TomlMap, map_toml

Value: TypeAlias = str | int | float | bool | datetime | list[str]

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


class NotHere(Exception):
    """The entry is written in a form that this edit cannot change without touching more."""


def add_table(text: str, path: tuple[str, ...], values: Mapping[str, Value]) -> str:
    """Add ``[a.b]`` or ``[a]`` after the last table of its kind, or at the end."""
    newline = _newline(text)
    lines = _lines(text)
    at = _end_of_kind(map_toml(text), path[0], lines)
    table = [f"[{'.'.join(map(_key, path))}]", *(f"{_key(k)} = {_written(v)}" for k, v in values.items())]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    before = [newline] if at and lines[at - 1].strip() else []
    after = [newline] if at < len(lines) and lines[at].strip() else []
    return "".join([*lines[:at], *before, *(line + newline for line in table), *after, *lines[at:]])


def remove_table(text: str, path: Path) -> str:
    """Remove a table with everything in it. Comments that stand outside of it stay."""
    positions = map_toml(text)
    lines = _lines(text)
    doomed: set[int] = set()
    for index, header in enumerate(positions.headers):
        if header.path[: len(path)] == path:
            last = _with_hanging(_last_line(positions, index), lines)
            doomed |= set(range(header.line, last + 1))
    for statement in positions.statements:
        if statement.path[: len(path)] == path:
            doomed |= set(range(statement.first_line, statement.last_line + 1))
    if not doomed:
        raise NotHere
    return _without(text, doomed)


def rename_key(text: str, path: Path, new: str) -> str:
    """Rename a table or key wherever its name is written out."""
    spots = [part for part in map_toml(text).parts if part.path == path]
    for part in sorted(spots, key=lambda part: -part.start):
        text = text[: part.start] + _key(new) + text[part.end :]
    return text


def set_value(text: str, path: Path, value: Value | None) -> str:
    """Set ``path`` to `value`, or remove it when `value` is None."""
    positions = map_toml(text)
    span = positions.values.get(path)
    if value is None:
        return text if span is None else _without_key(text, path, positions)
    if span is not None:
        return text[: span[0]] + _written(value) + text[span[1] :]
    return _with_key(text, path, value, positions)


def _without_key(text: str, path: Path, positions: TomlMap) -> str:
    for statement in positions.statements:
        if statement.path == path:
            return _without(text, set(range(statement.first_line, statement.last_line + 1)))
    raise NotHere


def _with_key(text: str, path: Path, value: Value, positions: TomlMap) -> str:
    written = f"{_key(str(path[-1]))} = {_written(value)}"
    for index, header in enumerate(positions.headers):
        if header.path == path[:-1]:
            lines = _lines(text)
            at = _last_line(positions, index)
            if not lines[at - 1].endswith("\n"):
                lines[at - 1] += _newline(text)
            return "".join([*lines[:at], written + _newline(text), *lines[at:]])
    span = positions.values.get(path[:-1])
    if span is None or text[span[0]] != "{":
        raise NotHere
    inside = text[span[0] + 1 : span[1] - 1].rstrip()
    inner = f"{inside}, {written} }}" if inside.strip() else f"{{ {written} }}".removeprefix("{")
    return text[: span[0] + 1] + inner + text[span[1] :]


def _last_line(positions: TomlMap, header: int) -> int:
    """The last line that belongs to a header: its last statement's, or its own."""
    own = [s.last_line for s in positions.statements if s.header == header]
    return max([positions.headers[header].line, *own])


def _end_of_kind(positions: TomlMap, kind: str, lines: list[str]) -> int:
    """How many lines stand before the place for one more table of this kind."""
    last = 0
    for index, header in enumerate(positions.headers):
        if header.path[0] == kind:
            last = max(last, _last_line(positions, index))
    return _with_hanging(last, lines) if last else len(lines)


def _with_hanging(last: int, lines: list[str]) -> int:
    """`last`, moved past the comments right below it when a blank line or the end follows them.

    Such comments belong to the table above; without a blank line they speak of what comes next.
    """
    end = last
    while end < len(lines) and lines[end].lstrip().startswith("#"):
        end += 1
    return end if end == len(lines) or not lines[end].strip() else last


def _without(text: str, doomed: set[int]) -> str:
    """The text without some lines; two blank lines that meet become one."""
    kept: list[str] = []
    in_cut = False
    for number, line in enumerate(_lines(text), start=1):
        if number in doomed:
            in_cut = True
        elif not (in_cut and not line.strip() and (not kept or not kept[-1].strip())):
            in_cut = False
            kept.append(line)
    return "".join(kept)


def _key(name: str) -> str:
    return name if _BARE.match(name) else str(tomlkit.item(name).as_string())


def _written(value: Value) -> str:
    return str(tomlkit.item(value).as_string())


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _lines(text: str) -> list[str]:
    """Lines with their ends, split at line feeds only, as TOML counts them."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)

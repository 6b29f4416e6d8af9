"""Where each key of a TOML text stands: for file:line problems, and for edits that touch nothing else.

Neither tomllib nor tomlkit tells positions. This reads texts that tomllib has accepted; it checks nothing.
"""

from __future__ import annotations

import bisect
import re
import tomllib
from dataclasses import dataclass, field
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys from the root; array elements by index."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\[\s\S])*?"""(?:"{0,2})'
    r"|'''[\s\S]*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


@dataclass(frozen=True, slots=True)
class Part:
    """One key as written in the text, at ``text[start:end]``."""

    path: Path
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Header:
    """A ``[table]`` or ``[[table]]`` line."""

    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A ``key = value``, which may span lines. `header` is the index of the header it stands under, or -1."""

    path: Path
    first_line: int
    last_line: int
    header: int


@dataclass(slots=True)
class TomlMap:
    """All positions of one text. Lines count from 1."""

    parts: list[Part] = field(default_factory=list)
    headers: list[Header] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of a key, or of the nearest enclosing one that is written out."""
        for length in range(len(path), 0, -1):
            found = self.lines.get(path[:length])
            if found is not None:
                return found
        return None


class _LostError(Exception):
    """The text is not what tomllib would accept; what was found so far still holds."""


def map_toml(text: str) -> TomlMap:
    """Positions of all keys in `text`. Never raises: of a broken text it knows the part before the break."""
    reader = _Reader(text)
    try:
        reader.document()
    except (_LostError, RecursionError):
        pass
    return reader.map


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.map = TomlMap()
        self._breaks = [i for i, c in enumerate(text) if c == "\n"]
        self._counts: dict[Path, int] = {}

    def document(self) -> None:
        prefix: Path = ()
        while True:
            self._skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self._peek() == "[":
                prefix = self._header()
            else:
                self._statement(prefix)

    def _header(self) -> Path:
        line = self._line(self.at)
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        path = self._keys((), last_is_array=is_array)
        self._expect("]]" if is_array else "]")
        self.map.headers.append(Header(path, line))
        return path

    def _statement(self, prefix: Path) -> None:
        first = self._line(self.at)
        path = self._keys(prefix)
        self._expect("=")
        self._value(path)
        header = len(self.map.headers) - 1
        self.map.statements.append(Statement(path, first, self._line(self.at - 1), header))

    def _keys(self, prefix: Path, *, last_is_array: bool = False) -> Path:
        path = prefix
        while True:
            self._skip(_SPACE)
            start = self.at
            name = self._key()
            path = (*self._inside(path), name)
            self.map.parts.append(Part(path, start, self.at))
            self.map.lines.setdefault(path, self._line(start))
            self._skip(_SPACE)
            if self._peek() != ".":
                break
            self.at += 1
        if last_is_array:
            count = self._counts.get(path, 0)
            self._counts[path] = count + 1
            path = (*path, count)
            self.map.lines.setdefault(path, self._line(self.at))
        return path

    def _inside(self, path: Path) -> Path:
        """`[a.b]` after `[[a]]` means the newest element of `a`."""
        count = self._counts.get(path)
        return path if count is None else (*path, count - 1)

    def _key(self) -> str:
        if self._peek() in "\"'":
            match = _STRING.match(self.text, self.at)
            if match is None:
                raise _LostError
            self.at = match.end()
            return str(tomllib.loads(f"k = {match[0]}")["k"])
        match = _BARE_KEY.match(self.text, self.at)
        if match is None:
            raise _LostError
        self.at = match.end()
        return match[0]

    def _value(self, path: Path) -> None:
        self._skip(_SPACE)
        start = self.at
        opening = self._peek()
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            match = (_STRING if opening in "\"'" else _SCALAR).match(self.text, self.at)
            if match is None:
                raise _LostError
            self.at = start + len(match[0].rstrip())
        self.map.values[path] = (start, self.at)

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while True:
            self._skip(_BLANK)
            if self._peek() == "]":
                self.at += 1
                return
            self.map.lines.setdefault((*path, index), self._line(self.at))
            self._value((*path, index))
            index += 1
            self._skip(_BLANK)
            if self._peek() == ",":
                self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while True:
            self._skip(_BLANK)
            if self._peek() == "}":
                self.at += 1
                return
            inner = self._keys(path)
            self._expect("=")
            self._value(inner)
            self._skip(_BLANK)
            if self._peek() == ",":
                self.at += 1

    def _expect(self, token: str) -> None:
        self._skip(_SPACE)
        if not self.text.startswith(token, self.at):
            raise _LostError
        self.at += len(token)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()

    def _peek(self) -> str:
        if self.at >= len(self.text):
            raise _LostError
        return self.text[self.at]

    def _line(self, offset: int) -> int:
        return bisect.bisect_left(self._breaks, offset) + 1

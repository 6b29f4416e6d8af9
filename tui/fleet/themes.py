"""Themes: TOML files of named colours, checked here, because Textual takes a bad colour and dies of it later.

Loaded before the first frame, so plain code and the standard library only. One accent marks focus and the
selected row and nothing else; `attention` and `danger` are the only state colours; fine has no colour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tui.fleet.problems import parse_toml, problem, read_user_file
from tui.fleet.toml_map import TomlMap, map_toml
from tui.model.failure import Failure
from tui.model.text import safe

DEFAULT = "default"
"""The terminal's own foreground or background."""

_HEX = re.compile(r"#[0-9a-f]{6}\Z")
_HUES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
SIXTEEN = tuple(f"{bright}{hue}" for bright in ("", "bright_") for hue in _HUES)
"""The sixteen colours of a terminal, in the order of their numbers."""

_ANSI = frozenset(f"ansi_{name}" for name in SIXTEEN)
_STYLES = frozenset(("bold", "dim", "italic", "reverse", "underline"))
_STYLED = ("accent", "attention", "danger", "dim", "money", "rule", "selection")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}\Z")
_CAP_BYTES = 64 << 10
_MOST_FILES = 200


@dataclass(frozen=True, slots=True)
class ThemeSpec:
    """One theme. Colours are ``#rrggbb``, ``ansi_NAME`` (the terminal's sixteen) or ``default``.

    Attributes:
        background: behind everything; `surface` behind header and footer; `panel` behind dialogs.
        text, dim: what is said, and what is said quietly (unknown, stale, units).
        rule: lines between regions.
        accent: focus and the selected row's marker, nothing else.
        attention, danger: the two state colours.
        money: prices and sums.
        selection_bg, selection_text: the selected row.
        styles: text styles that stand in for colour or support it, by part: ``{"danger": "bold reverse"}``.
        sixteen: the colours that a log's own escape codes name, by name: ``{"red": "#ff5f5f"}``; empty leaves
            them to the terminal, or to Textual where the theme has colours of its own.
    """

    name: str
    dark: bool
    background: str
    surface: str
    panel: str
    text: str
    dim: str
    rule: str
    accent: str
    attention: str
    danger: str
    money: str
    selection_bg: str
    selection_text: str
    styles: Mapping[str, str] = field(default_factory=dict)
    sixteen: Mapping[str, str] = field(default_factory=dict)

    @property
    def colours(self) -> dict[str, str]:
        """Every colour by its part's name."""
        return {part: getattr(self, part) for part in PARTS}

    @property
    def ansi(self) -> bool:
        """Whether it leaves the colours to the terminal, at least in part."""
        return not all(colour.startswith("#") for colour in self.colours.values())

    @property
    def mono(self) -> bool:
        """Whether it uses no colour at all."""
        return set(self.colours.values()) == {DEFAULT}


PARTS = tuple(f.name for f in fields(ThemeSpec) if f.name not in ("name", "dark", "styles", "sixteen"))

PLAIN = ThemeSpec(
    name="plain",
    dark=True,
    styles={"selection": "reverse", "danger": "bold"},
    sixteen={},
    **dict.fromkeys(PARTS, DEFAULT),
)
"""Stands in when no theme file can be read at all."""


@dataclass(frozen=True, slots=True)
class Themes:
    """The themes that can be chosen, shipped ones first, and what was wrong with the others."""

    by_name: dict[str, ThemeSpec]
    problems: tuple[Failure, ...] = ()

    def get(self, name: str) -> ThemeSpec:
        """The theme of this name, or the first there is."""
        return self.by_name.get(name) or self.by_name.get("dark") or next(iter(self.by_name.values()), PLAIN)


def load(folders: Sequence[Path]) -> Themes:
    """Read all ``*.toml`` of `folders`; a later folder's file replaces an earlier one of the same name.

    A bad file is reported and left out. Never raises.
    """
    good: dict[str, ThemeSpec] = {}
    problems: list[Failure] = []
    for folder in folders:
        for path in _files(folder):
            try:
                text = read_user_file(path, cap=_CAP_BYTES, means=_LEFT_OUT)
                if text is not None:
                    good[path.stem] = read(text, path.stem, f"{folder.name}/{path.name}", good)
            except Failure as failure:
                problems.append(failure)
    return Themes(good, tuple(problems))


def read(text: str, name: str, file: str, bases: Mapping[str, ThemeSpec] | None = None) -> ThemeSpec:
    """Validate the text of one theme.

    Args:
        name: the theme's name: its file's, without the ending.
        bases: themes that it may build on with ``base = "dark"``.

    Raises:
        Failure: the first thing that is wrong, with its line.
    """
    return _Reader(text, name, file, bases or {}).theme()


_LEFT_OUT = "This theme is left out."
_TOP = ("dark", "base", "colours", "styles", "ansi")


class _Reader:
    def __init__(self, text: str, name: str, file: str, bases: Mapping[str, ThemeSpec]) -> None:
        self.name = name
        self.file = file
        self.bases = bases
        self.data = parse_toml(text, file, means=_LEFT_OUT)
        self.lines: TomlMap = map_toml(text)

    def theme(self) -> ThemeSpec:
        if not _NAME.match(self.name):
            raise self._wrong((), "a theme file's name is small letters, digits and '-'.")
        self._known((), self.data, _TOP)
        base = self._base()
        dark = self.data.get("dark", base.dark if base else None)
        if not isinstance(dark, bool):
            raise self._wrong(("dark",), "dark must be true or false.")
        colours = {**(base.colours if base else {}), **self._colours()}
        missing = [part for part in PARTS if part not in colours]
        if missing:
            raise self._wrong(("colours",), f"colours lacks {', '.join(missing)}; or name a base.")
        return ThemeSpec(
            name=self.name,
            dark=dark,
            styles={**(base.styles if base else {}), **self._styles()},
            sixteen=self._sixteen(base),
            **colours,
        )

    def _base(self) -> ThemeSpec | None:
        if "base" not in self.data:
            return None
        base = self.data["base"]
        if not isinstance(base, str) or base not in self.bases:
            raise self._wrong(("base",), f"base must be one of {', '.join(self.bases)}.")
        return self.bases[base]

    def _colours(self) -> dict[str, str]:
        table = self._table("colours", PARTS)
        for part, value in table.items():
            if not isinstance(value, str) or not _is_colour(value.lower()):
                what = f'{part} must be "#rrggbb", "{DEFAULT}" or "ansi_red" and the like.'
                raise self._wrong(("colours", part), what)
        return {part: value.lower() for part, value in table.items()}

    def _sixteen(self, base: ThemeSpec | None) -> dict[str, str]:
        table = self._table("ansi", SIXTEEN)
        for name, value in table.items():
            if not isinstance(value, str) or not _HEX.match(value.lower()):
                raise self._wrong(("ansi", name), f'{name} must be "#rrggbb".')
        whole = {**(base.sixteen if base else {}), **{name: value.lower() for name, value in table.items()}}
        missing = [name for name in SIXTEEN if name not in whole]
        if whole and missing:
            raise self._wrong(("ansi",), f"ansi lacks {', '.join(missing)}; or name a base.")
        return whole

    def _styles(self) -> dict[str, str]:
        table = self._table("styles", _STYLED)
        for part, value in table.items():
            if not isinstance(value, str) or not set(value.split()) <= _STYLES:
                raise self._wrong(("styles", part), f"{part} must be words of {', '.join(sorted(_STYLES))}.")
        return {part: " ".join(value.split()) for part, value in table.items()}

    def _table(self, key: str, parts: Sequence[str]) -> dict[str, Any]:
        table = self.data.get(key, {})
        if not isinstance(table, dict):
            raise self._wrong((key,), f"must be a table, [{key}].")
        self._known((key,), table, parts)
        return table

    def _known(self, path: tuple[str, ...], table: Mapping[str, Any], known: Sequence[str]) -> None:
        for key in table:
            if key not in known:
                raise self._wrong((*path, key), f"{safe(key, 40)} is not known; known: {', '.join(known)}.")

    def _wrong(self, path: tuple[str, ...], what: str) -> Failure:
        return problem(self.file, self.lines.line(path), what, means=_LEFT_OUT)


def _is_colour(value: str) -> bool:
    return value == DEFAULT or value in _ANSI or _HEX.match(value) is not None


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.toml"))[:_MOST_FILES]
    except OSError:
        return []

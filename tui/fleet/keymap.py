"""``keymap.toml``: the operator's own keys, ``action-id = "key"`` or ``= ["key", "key"]``.

Textual accepts any id and any key name in silence, and of two actions with one key drops one without a word
(measured in 8.2). So everything is checked here, and a wrong line falls back to the default keys.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tui.fleet.problems import WARNING, parse_toml, problem, read_user_file
from tui.fleet.toml_map import map_toml
from tui.model.failure import Failure
from tui.model.text import safe

_MOVING = frozenset(("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete"))
_NAMED = _MOVING | {"escape", "enter", "tab", "space", "backspace"} | {f"f{n}" for n in range(1, 25)}
_RENAMED = {  # where Textual's name differs from Unicode's
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
_WORDS = {"esc": "escape", "return": "enter", "pgup": "pageup", "pgdn": "pagedown", "del": "delete"}
_EATEN = {
    "ctrl+b": "is tmux's prefix",
    "ctrl+a": "is screen's prefix",
    "ctrl+c": "stops programs in a terminal",
    "ctrl+i": "reaches programs as tab",
    "ctrl+m": "reaches programs as enter",
    "ctrl+j": "reaches programs as a line feed",
    "ctrl+h": "reaches programs as backspace",
    "ctrl+left_square_bracket": "reaches programs as escape",
}
_CTRL_SIGNS = frozenset(
    ("at", "backslash", "right_square_bracket", "circumflex_accent", "underscore", "space")
)
_NEEDED = ("back", "quit", "help")


class Bindable(Protocol):
    """What the keymap needs to know of an action of the registry."""

    @property
    def id(self) -> str: ...
    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def views(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Keymap:
    """The operator's keys by action id, in Textual's spelling, and what was wrong with the file."""

    overrides: dict[str, tuple[str, ...]]
    problems: tuple[Failure, ...] = ()


def load(path: Path, actions: Iterable[Bindable], reserved: Collection[str] = ()) -> Keymap:
    """Read the keymap at `path`; a missing file changes nothing, nothing in a file raises.

    Args:
        actions: the whole registry.
        reserved: keys that move the cursor and cannot be given away.
    """
    try:
        text = read_user_file(path, means=_DEFAULTS)
        return read(text, tuple(actions), reserved, path.name) if text is not None else Keymap({})
    except Failure as failure:
        return Keymap({}, (failure,))


def _stranger(name: str, value: object, known: Collection[str]) -> str:
    """What is wrong with a name that no action has, and how it is written."""
    if isinstance(value, dict):
        return f'[{safe(name, 40)}]: a keymap has no tables; write lines such as sort = "v" at its top.'
    near = difflib.get_close_matches(name, known, 1)
    meant = f"Did you mean {near[0]}?" if near else "`:` in rgt completes their names."
    return f"{safe(name, 40)} is not an action. {meant}"


def read(
    text: str, actions: Collection[Bindable], reserved: Collection[str] = (), file: str = "keymap.toml"
) -> Keymap:
    """Validate the text of a keymap. Raises Failure when it is not TOML at all."""
    data = parse_toml(text, file, means=_DEFAULTS)
    lines = map_toml(text)
    by_id = {action.id: action for action in actions}
    overrides: dict[str, tuple[str, ...]] = {}
    found: list[tuple[int, Failure]] = []

    def say(key: str, what: str) -> None:
        line = lines.line((key,))
        found.append((line or 0, problem(file, line, what, means="Its default keys hold.", code=WARNING)))

    for name, value in data.items():
        if name not in by_id:
            say(name, _stranger(name, value, by_id))
            continue
        try:
            overrides[name] = _keys(name, value, reserved)
        except ValueError as wrong:
            say(name, f"{name}: {wrong}.")
    for loser, winner, key in _settle(by_id, overrides):
        say(loser, f"{loser}: {key} is already {winner} in the same view.")
    return Keymap(overrides, tuple(failure for _, failure in sorted(found, key=lambda pair: pair[0])))


def canonical(key: str) -> str:
    """A key in Textual's spelling: ``?`` is ``question_mark``, ``Shift+A`` is ``A``.

    Raises:
        ValueError: no terminal sends such a key, or something else takes it first.
    """
    *modifiers, last = ["+"] if key == "+" else key.replace(" ", "").split("+")
    if not last and len(modifiers) > 1:  # "ctrl++"
        modifiers, last = modifiers[:-1], "+"
    modifiers = sorted({modifier.lower() for modifier in modifiers})
    name = _name(last)
    if name is None or not set(modifiers) <= {"alt", "ctrl", "shift"}:
        raise ValueError(f"{safe(key, 30)} is not a key")
    if modifiers == ["shift"] and len(name) == 1 and name.isalpha():
        modifiers, name = [], name.upper()
    if "ctrl" in modifiers and len(name) == 1:
        name = name.lower()
    whole = "+".join((*modifiers, name))
    if whole in _EATEN:
        raise ValueError(f"{whole} {_EATEN[whole]}")
    if not _sendable(modifiers, name):
        raise ValueError(f"{whole} is not sent by most terminals")
    return whole


def _name(key: str) -> str | None:
    if len(key) == 1:
        if not key.isprintable():
            return None
        if key.isalnum():
            return key
        if key == " ":
            return "space"
        name = unicodedata.name(key, "").lower().replace("-", "_").replace(" ", "_")
        return _RENAMED.get(name, name) or None
    lowered = _WORDS.get(key.lower(), key.lower())
    if lowered in _NAMED or lowered in _RENAMED.values():
        return lowered
    try:
        sign = unicodedata.lookup(lowered.replace("_", " ").upper())
    except KeyError:
        try:
            sign = unicodedata.lookup(lowered.replace("_", "-").upper())
        except KeyError:
            return {"colon": "colon", "comma": "comma"}.get(lowered)
    return lowered if sign.isprintable() and not sign.isalnum() else None


def _sendable(modifiers: list[str], name: str) -> bool:
    """Whether a terminal without extended keyboard protocols (tmux's default) can send it."""
    if not modifiers or modifiers == ["alt"]:
        return True
    if name in _MOVING or (name[0] == "f" and name[1:].isdigit()):
        return True
    if modifiers == ["ctrl"]:
        return (len(name) == 1 and name.isascii() and name.isalpha()) or name in _CTRL_SIGNS
    return modifiers == ["shift"] and name == "tab"


def _keys(action: str, value: object, reserved: Collection[str]) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(key, str) for key in listed):
        raise ValueError('must be a key or a list of keys, such as "x" or ["x", "f5"]')
    keys = tuple(dict.fromkeys(canonical(key) for key in listed))
    taken = next((key for key in keys if key in reserved), None)
    if taken is not None:
        raise ValueError(f"{taken} moves the cursor")
    if not keys and action in _NEEDED:
        raise ValueError("must keep a key")
    return keys


def _settle(by_id: dict[str, Bindable], overrides: dict[str, tuple[str, ...]]) -> list[tuple[str, str, str]]:
    """Drop overrides until no two actions of one view share a key; (dropped, keeper, key) of each."""
    dropped: list[tuple[str, str, str]] = []
    while True:
        clash = _clash(by_id, overrides)
        if clash is None:
            return dropped
        dropped.append(clash)
        del overrides[clash[0]]


def _clash(by_id: dict[str, Bindable], overrides: dict[str, tuple[str, ...]]) -> tuple[str, str, str] | None:
    for name in reversed(overrides):  # of two overrides the later line yields
        mine = by_id[name]
        for other in by_id.values():
            if other.id == name or not _share_view(mine, other):
                continue
            for key in overrides[name]:
                if key in overrides.get(other.id, other.keys):
                    return name, other.id, key
    return None


def _share_view(one: Bindable, other: Bindable) -> bool:
    return "*" in one.views or "*" in other.views or bool(set(one.views) & set(other.views))


_DEFAULTS = "The default keys hold."

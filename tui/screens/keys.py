"""Keys, made from the action registry: what a view binds, how a key is written for people.

A binding runs ``app.act(ID)``. The app then looks for a method ``action_<id>`` on the focused widget, its
ancestors, the screen and the app itself, in this order, and guards the call: a failure becomes a toast.
An action whose registry entry has `takes` gets one string when it is typed on the ``:`` line and none
when its key is pressed: write it as ``def action_filter(self, text: str = "") -> None``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from textual.binding import Binding, BindingsMap
from textual.dom import DOMNode

from tui.actions import Action, for_view
from tui.widgets.moves import MOVES, move_bindings

__all__ = ["MOVES", "act", "bindings_for", "install", "keys_of", "move_bindings", "shown"]

_NAMES = {
    "slash": "/",
    "backslash": "\\",
    "plus": "+",
    "minus": "-",
    "underscore": "_",
    "at": "@",
    "escape": "esc",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}
_ASCII_NAMES = {name: name for name in ("up", "down", "left", "right")}


def shown(key: str, *, ascii_only: bool = False) -> str:
    """How a key in Textual's spelling is written for people: ``question_mark`` is ``?``."""
    *modifiers, name = key.split("+") if key != "+" else ["+"]
    if ascii_only and name in _ASCII_NAMES:
        written = _ASCII_NAMES[name]
    elif name in _NAMES:
        written = _NAMES[name]
    elif "_" in name:
        try:
            written = unicodedata.lookup(name.replace("_", " ").upper())
        except KeyError:
            written = name
    else:
        written = {"colon": ":", "comma": ","}.get(name, name)
    return "+".join((*modifiers, written))


def keys_of(action: Action, overrides: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The keys of an action after the operator's keymap. An action may have none."""
    return overrides.get(action.id, action.keys)


def bindings_for(
    view: str, *, read_only: bool, overrides: Mapping[str, tuple[str, ...]] | None = None
) -> list[Binding]:
    """What a view binds.

    Args:
        view: name of the view as the registry spells it.
        read_only: leaves out whatever changes something.
        overrides: keys by action id, validated by the keymap's loader.
    """
    chosen = overrides or {}
    return [
        Binding(key=key, action=act(action.id), description=action.label, show=False, id=action.id)
        for action in for_view(view, read_only=read_only)
        for key in keys_of(action, chosen)
    ]


def act(action_id: str) -> str:
    """The Textual action string that runs an entry of the registry."""
    return f"app.act({action_id!r})"


def install(node: DOMNode, view: str) -> None:
    """Bind a view's keys on a screen; call it from ``on_mount``, when the app is known.

    Textual reads bindings from a class variable. Ours depend on read-only mode and the keymap, so they are
    merged into the instance.
    """
    bindings = bindings_for(
        view,
        read_only=bool(getattr(node.app, "read_only", False)),
        overrides=getattr(node.app, "key_overrides", {}),
    )
    node._bindings = BindingsMap.merge([BindingsMap(bindings), node._bindings])

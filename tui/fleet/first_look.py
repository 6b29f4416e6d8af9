"""What the first frame needs from ``fleet.toml``, read with the standard library alone.

The whole file is validated a moment later by `tui.fleet.settings`; nothing here is shown as true, it only
names rows. Whatever is odd is left out without a word, because `settings.load` will say it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui.fleet.entry_rules import NAME, is_secret_key
from tui.fleet.preferences import Settings
from tui.fleet.problems import read_user_file
from tui.model.failure import Failure


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Names and looks.

    Attributes:
        instances: name and platform, in the file's order.
        runs: name of the run and of its box.
    """

    theme: str = "dark"
    glyphs: str = "auto"
    read_only: bool = False
    mouse: bool = False
    bell: bool = True
    instances: tuple[tuple[str, str], ...] = ()
    runs: tuple[tuple[str, str], ...] = ()


def names_only(path: Path) -> FirstLook:
    """Names of boxes and runs and the looks that the first frame needs. Never raises."""
    try:
        data = tomllib.loads(read_user_file(path) or "")
    except (Failure, ValueError, RecursionError):
        return FirstLook()
    chosen = _table(data, "settings")
    default = Settings()
    theme, glyphs = chosen.get("theme"), chosen.get("glyphs")
    return FirstLook(
        theme=theme if isinstance(theme, str) and NAME.match(theme) else default.theme,
        glyphs=glyphs if glyphs in ("auto", "unicode", "ascii") else default.glyphs,
        read_only=chosen.get("read_only", False) is not False,  # unreadable counts as wanted
        mouse=chosen.get("mouse") is True,
        bell=chosen.get("bell") is not False,
        instances=tuple(
            (name, _word(entry.get("platform"), "ssh")) for name, entry in _entries(data, "instances")
        ),
        runs=tuple((name, _word(entry.get("box"), "")) for name, entry in _entries(data, "runs")),
    )


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _entries(data: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, entry)
        for name, entry in _table(data, key).items()
        if NAME.match(name) and isinstance(entry, dict) and not any(map(is_secret_key, entry))
    ]


def _word(value: object, default: str) -> str:
    return value if isinstance(value, str) and NAME.match(value) else default

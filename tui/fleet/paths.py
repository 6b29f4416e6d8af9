"""Where everything lies on the operator's machine. RGT_HOME moves all of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Paths:
    """Directories and files of one installation."""

    config: Path
    state: Path

    @property
    def fleet_file(self) -> Path:
        return self.config / "fleet.toml"

    @property
    def keymap_file(self) -> Path:
        return self.config / "keymap.toml"

    @property
    def themes(self) -> Path:
        return self.config / "themes"

    @property
    def profiles(self) -> Path:
        return self.config / "profiles"

    @property
    def jobs(self) -> Path:
        """Job files that are offered wherever `rgt` is started, each in a folder with its code."""
        return self.config / "jobs"

    @property
    def gotchas(self) -> Path:
        """The operator's own incident files."""
        return self.config / "gotchas"

    @property
    def spool(self) -> Path:
        return self.state / "spool"

    @property
    def receipts(self) -> Path:
        return self.state / "receipts"

    @property
    def locks(self) -> Path:
        return self.state / "locks"


def paths() -> Paths:
    """The operator's directories: under RGT_HOME when set, else where the platform keeps them."""
    home = os.environ.get("RGT_HOME")
    if home:
        base = Path(home)
        return Paths(config=base / "config", state=base / "state")
    import platformdirs  # imported late: the demo and the tests never need it

    return Paths(
        config=Path(platformdirs.user_config_dir("rgt", appauthor=False)),
        state=Path(platformdirs.user_state_dir("rgt", appauthor=False)),
    )


def shipped(room: str) -> Path:
    """The directory of a data room (``profiles`` or ``themes``), in the wheel or in the checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / room
    return inside if inside.is_dir() else package.parent / room

"""The operator's preferences as plain values. Imports nothing heavy: the first frame needs some of them."""

from __future__ import annotations

from dataclasses import dataclass

from tui.fleet.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class Settings:
    """The ``[settings]`` table of ``fleet.toml``.

    Attributes:
        theme: name of a shipped theme or of a file in the operator's ``themes/``.
        period_s: seconds between two probes of the box that is looked at.
        glyphs: ``auto`` measures the terminal, ``unicode`` and ``ascii`` force a set.
        mouse: False leaves the mouse to the terminal, so that its own selection works.
        bell: False: the terminal neither rings nor notifies when a run ends or wants somebody.
        ask_platforms: False: no provider is asked by itself what the account rents, and what it costs.
    """

    theme: str = "dark"
    read_only: bool = False
    period_s: float = 2.0
    glyphs: str = "auto"
    mouse: bool = False
    bell: bool = True
    ask_platforms: bool = True
    thresholds: Thresholds = Thresholds()

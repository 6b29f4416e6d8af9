"""Theme files that are edited while rgt runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tui.fleet.themes import ThemeSpec
from tui.verbs import screen


class Wearer:
    """What the app is to the one who follows the files."""

    def __init__(self) -> None:
        self.taken: list[Mapping[str, ThemeSpec]] = []
        self.said: list[str] = []

    def take_themes(self, found: Mapping[str, ThemeSpec]) -> None:
        self.taken.append(found)

    def say(self, text: str, level: str = "info") -> None:
        self.said.append(text)


async def test_an_edited_file_is_taken_once_and_a_bad_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "THEMES_S", 0.02)
    own, app = tmp_path / "themes", Wearer()
    following = asyncio.create_task(screen._follow_themes(app, own))  # type: ignore[arg-type]
    try:
        await asyncio.sleep(0.1)
        assert app.taken == []  # also without the folder
        own.mkdir()
        (own / "mine.toml").write_text('base = "dark"\n[colours]\naccent = "#ff00ff"\n')
        async with asyncio.timeout(20):
            while not app.taken:
                await asyncio.sleep(0.01)
        assert app.taken[0]["mine"].accent == "#ff00ff"
        await asyncio.sleep(0.1)
        assert len(app.taken) == 1
        (own / "mine.toml").write_text('base = "dark"\n[colours]\naccent = "pink"\n')
        async with asyncio.timeout(20):
            while not app.said:
                await asyncio.sleep(0.01)
        assert app.said[0].startswith("themes/mine.toml:3: accent")
    finally:
        following.cancel()

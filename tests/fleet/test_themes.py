"""Shipped themes can be read by everybody at every colour depth; a bad theme file is told and left out."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color

from tests.fleet import colour_sight as sight
from tui.fleet import themes
from tui.fleet.paths import shipped
from tui.fleet.themes import PARTS, SIXTEEN, ThemeSpec
from tui.model.failure import Failure

SHIPPED = themes.load([shipped("themes")])
FULL = [theme for theme in SHIPPED.by_name.values() if not theme.ansi]
GROUNDS = ("background", "surface", "panel", "selection_bg")
STATES = ("attention", "danger", "accent")

EVERY = pytest.mark.parametrize("theme", FULL, ids=lambda theme: theme.name)


def test_the_promised_themes_are_there_and_right() -> None:
    assert SHIPPED.problems == ()
    assert set(SHIPPED.by_name) == {
        "dark", "light", "high-contrast", "colourblind-dark", "colourblind-light", "ansi16", "mono"
    }  # fmt: skip
    assert len(FULL) == 5


def seen(theme: ThemeSpec, part: str, *, palette: bool) -> sight.Rgb:
    colour = sight.rgb(getattr(theme, part))
    return sight.in_256(colour) if palette else colour


@EVERY
@pytest.mark.parametrize("palette", [False, True], ids=["24bit", "256"])
def test_text_and_states_are_readable_on_every_ground(theme: ThemeSpec, palette: bool) -> None:
    strict = theme.name == "high-contrast"
    for ground in GROUNDS:
        behind = seen(theme, ground, palette=palette)
        for part, least in {"text": 4.5, "dim": 4.5, "money": 4.5, **dict.fromkeys(STATES, 3.0)}.items():
            if strict and ground == "background":
                least = 7.0
            ratio = sight.contrast(seen(theme, part, palette=palette), behind)
            assert ratio >= least, f"{part} on {ground}: {ratio:.2f}"
    row = sight.contrast(
        seen(theme, "selection_text", palette=palette), seen(theme, "selection_bg", palette=palette)
    )
    assert row >= 4.5


@EVERY
def test_nothing_falls_together_in_256_colours(theme: ThemeSpec) -> None:
    palette = {part: seen(theme, part, palette=True) for part in PARTS}
    for one, other in itertools.combinations(("background", "surface", "panel", "selection_bg", "accent"), 2):
        assert palette[one] != palette[other], f"{one} and {other}"
    for part in PARTS:  # a shipped theme shifts in no terminal
        assert palette[part] == sight.rgb(getattr(theme, part)), part


@EVERY
def test_states_differ_for_full_colour_vision(theme: ThemeSpec) -> None:
    for one, other in itertools.combinations((*STATES, "text"), 2):
        apart = sight.distance(*(sight.linear(sight.rgb(getattr(theme, p))) for p in (one, other)))
        assert apart >= 20, f"{one} and {other}: {apart:.0f}"


@pytest.mark.parametrize("name", ["colourblind-dark", "colourblind-light"])
@pytest.mark.parametrize("eyes", [sight.DEUTERANOPIA, sight.PROTANOPIA], ids=["deutan", "protan"])
def test_states_differ_for_red_green_blindness(name: str, eyes: tuple[sight.Rgb, ...]) -> None:
    theme = SHIPPED.by_name[name]
    for one, other in itertools.combinations((*STATES, "text"), 2):
        apart = sight.distance(*(sight.seen_with(eyes, sight.rgb(getattr(theme, p))) for p in (one, other)))
        assert apart >= 25, f"{one} and {other}: {apart:.0f}"


@EVERY
def test_the_colours_of_a_log_are_readable_and_lie_in_the_palette(theme: ThemeSpec) -> None:
    assert tuple(theme.sixteen) == SIXTEEN
    ground = sight.rgb(theme.background)
    for name, value in theme.sixteen.items():
        colour = sight.rgb(value)
        ratio = sight.contrast(colour, ground)
        assert ratio >= (7.0 if theme.name == "high-contrast" else 3.8), f"{name}: {ratio:.2f}"
        assert sight.in_256(colour) == colour, name


@pytest.mark.parametrize("name", ["colourblind-dark", "colourblind-light"])
@pytest.mark.parametrize("eyes", [sight.DEUTERANOPIA, sight.PROTANOPIA], ids=["deutan", "protan"])
def test_red_and_green_of_a_log_differ_for_red_green_blindness(
    name: str, eyes: tuple[sight.Rgb, ...]
) -> None:
    colours = SHIPPED.by_name[name].sixteen
    red, green = (sight.seen_with(eyes, sight.rgb(colours[hue])) for hue in ("red", "green"))
    assert sight.distance(red, green) >= 25


def test_themes_of_the_terminals_own_colours_leave_a_logs_colours_alone() -> None:
    assert not SHIPPED.by_name["ansi16"].sixteen and not SHIPPED.by_name["mono"].sixteen


def test_mono_uses_no_colour_and_ansi16_only_the_terminals_own() -> None:
    mono, ansi = SHIPPED.by_name["mono"], SHIPPED.by_name["ansi16"]
    assert mono.mono and mono.ansi and not ansi.mono
    assert not any(colour.startswith("#") for colour in ansi.colours.values())
    for theme in (mono, ansi):  # what colour does not tell, style must
        shown = [
            (getattr(theme, part), theme.styles.get(part, "")) for part in ("attention", "danger", "text")
        ]
        assert len(set(shown)) == 3
        assert theme.styles["selection"] == "reverse"


def test_every_colour_is_one_that_textual_knows() -> None:
    for theme in SHIPPED.by_name.values():
        for colour in theme.colours.values():
            Color.parse("ansi_default" if colour == themes.DEFAULT else colour)


GOOD = (shipped("themes") / "dark.toml").read_text()


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        (GOOD.replace('"#5fafff"', '"#5fafg0"'), "themes/my.toml:11: accent"),
        (GOOD.replace('"#5fafff"', '"blue"'), "themes/my.toml:11: accent"),
        (GOOD.replace('"#5fafff"', "3"), "themes/my.toml:11: accent"),
        (GOOD.replace("accent", "akzent"), "themes/my.toml:11: akzent is not known"),
        (GOOD.replace('accent = "#5fafff"\n', ""), "themes/my.toml:4: colours lacks accent"),
        (GOOD.replace('danger = "bold"', 'danger = "blink"'), "themes/my.toml:19: danger"),
        (GOOD.replace("dark = true", "dark = 1"), "themes/my.toml:2: dark"),
        ('base = "nope"\n', "themes/my.toml:1: base"),
        ("colours = 3\ndark = true\n", "themes/my.toml:1: "),
        (GOOD.replace('red = "#ff5f5f"', 'red = "ansi_red"'), "themes/my.toml:23: red"),
        (GOOD.replace('red = "#ff5f5f"\n', "", 1), "themes/my.toml:21: ansi lacks red"),
        (GOOD.replace('bright_white = "', 'white_bright = "'), "themes/my.toml:37: white_bright is not"),
        ("x = [", "themes/my.toml:1: is not TOML"),
        ("\ndark = 1", "themes/my.toml:2: dark"),
    ],
)
def test_a_bad_theme_is_told_with_its_line_and_left_out(tmp_path: Path, text: str, starts: str) -> None:
    folder = tmp_path / "themes"
    folder.mkdir()
    (folder / "my.toml").write_text(text)
    (folder / "fine.toml").write_text(GOOD)
    loaded = themes.load([shipped("themes"), folder])
    assert "my" not in loaded.by_name and "fine" in loaded.by_name
    (found,) = loaded.problems
    assert found.line.startswith(starts), found.line


def test_a_theme_of_ones_own_may_build_on_another_and_replace_one(tmp_path: Path) -> None:
    (tmp_path / "light.toml").write_text('base = "dark"\n[colours]\naccent = "#FF00FF"\n')
    loaded = themes.load([shipped("themes"), tmp_path])
    assert loaded.problems == ()
    mine = loaded.by_name["light"]
    assert mine.accent == "#ff00ff" and mine.text == SHIPPED.by_name["dark"].text and mine.dark


def test_no_folder_at_all_still_gives_a_theme(tmp_path: Path) -> None:
    assert themes.load([tmp_path / "none"]).get("dark").mono
    assert SHIPPED.get("no such theme").name == "dark"


@given(st.text(max_size=200))
def test_no_text_raises_anything_but_a_failure(text: str) -> None:
    try:
        themes.read(text, "my", "my.toml")
    except Failure as failure:
        assert failure.line.startswith("my.toml") and failure.line.isprintable()


def test_themes_are_read_without_the_heavy_libraries() -> None:
    code = (
        "import sys; from tui.fleet import themes; from tui.fleet.paths import shipped; "
        "assert themes.load([shipped('themes')]).by_name; "
        "print([m for m in ('pydantic', 'tomlkit', 'yaml', 'asyncssh', 'textual') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"

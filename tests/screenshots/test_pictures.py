"""The stored pictures are what the app draws today, and they are sound in themselves."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tests.screenshots import svg
from tests.screenshots.pictures import FOLDER, PICTURES, Picture, taken

ANEW = "If this change is meant, look at it and run `make screenshots`."


def difference(stored: str, fresh: str) -> str:
    """What differs, for a person: the screen's rows; where they are the same, the marks of the picture."""
    old, new = svg.rows_of(stored), svg.rows_of(fresh)
    kind = "rows"
    if old == new:
        kind, old, new = "same rows, other looks", stored.split("\n"), fresh.split("\n")
    lines = list(difflib.unified_diff(old, new, "stored", "fresh", lineterm="", n=1))
    return "\n".join([kind, *lines[:60], *(["…"] if len(lines) > 60 else [])])


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.name)
async def test_stored_pictures_are_what_the_app_draws(picture: Picture) -> None:
    assert picture.path.exists(), f"{picture.path.name} is not stored. {ANEW}"
    stored, fresh = picture.path.read_text(), await taken(picture)
    if stored != fresh:
        pytest.fail(f"{picture.path.name}: {difference(stored, fresh)}\n{ANEW}", pytrace=False)


def test_no_picture_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {picture.path.name for picture in PICTURES}


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.name)
def test_pictures_load_nothing_and_name_no_machine(picture: Picture) -> None:
    text = picture.path.read_text()
    ElementTree.fromstring(text)  # well-formed
    assert not re.search(r"url\(|@import|href|<script|\b(?:id|data-[a-z]+)=", text)
    assert not re.search(r"/home/(?!me/)|/tmp/|/Users/", text)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("ablate-02", "ablate-03"), "-"),
        (lambda text: text.replace("font-weight:bold", "font-weight:normal", 1), "same rows, other looks"),
    ],
)
def test_a_difference_is_told_readably(change: Callable[[str], str], said: str) -> None:
    stored = (FOLDER / "fleet-80x24.svg").read_text()
    told = difference(stored, change(stored))
    assert said in told
    assert "<text" not in told
    assert 4 <= len(told.splitlines()) < 12


def test_wide_characters_blocks_and_markup_keep_their_places() -> None:
    row = Strip([Segment("a 训 <b>  "), Segment("██▌", Style.parse("red on blue")), Segment(" │x")])
    drawn = svg.draw([row], "a & b")
    root = ElementTree.fromstring(drawn)
    space = {"s": "http://www.w3.org/2000/svg"}
    words = [(t.text, t.get("x"), t.get("textLength")) for t in root.findall("s:text", space)]
    assert words == [("a 训 <b>", "12", "76.8"), ("x", "156", "9.6")]
    assert svg.rows_of(drawn) == ["a 训 <b>  ██▌ │x"]
    fills = [r.get("fill") for r in root.findall("s:rect", space)]
    assert fills.count("#cd3131") == 2  # the two full cells as one, and the half

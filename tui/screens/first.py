"""The first frame: the names of the boxes, drawn before anything that could tell their state is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.screen import Screen

from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Lines, fit


class FirstScreen(Screen[None]):
    """Names and platforms. The fleet view takes its place within a moment.

    Args:
        boxes: name and platform of each box, as the fleet file has them.
    """

    # not CSS: Textual reads that of a screen when it is pushed, and this one never is
    DEFAULT_CSS = "FirstScreen Lines { height: 1fr; }"

    def __init__(self, boxes: Sequence[tuple[str, str]], glyphs: Glyphs) -> None:
        super().__init__()
        self._boxes = boxes
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        count = f"{len(self._boxes)} {'box' if len(self._boxes) == 1 else 'boxes'}"
        lines: list[Line] = [
            ((" rgt", "strong"), (f"   {count}", "")),
            ((f"{self._glyphs.rule} ", "rule"), ("fleet", "title")),
            (("  " + fit("BOX", 26) + fit("PLATFORM", 14) + "STATE", "dim"),),
        ]
        for name, platform in self._boxes[: self.app.size.height]:
            shown = fit(name, 24, ellipsis=self._glyphs.ellipsis)
            state = f"{self._glyphs.unknown} not probed"
            lines.append(((f"  {shown}  ", "strong"), (f"{fit(platform, 12)}  {state}", "dim")))
        yield Lines(lines)

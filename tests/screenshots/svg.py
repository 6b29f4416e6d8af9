"""A screen as an SVG that is the same to the byte on every machine.

Textual's own export names a web font, squeezes double-width characters into one cell and pads with spaces
that some viewers drop. Here every piece of text has its place and its length, block elements are rectangles,
so that bars meet without seams in any font, and the screen's rows stand in ``<desc>`` for who can't see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.color import Color, blend_rgb
from rich.color_triplet import ColorTriplet
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.strip import Strip

CELL = (9.6, 20.0)
"""Width and height of a cell in pixels."""
FONT_PX = 16
MARGIN = 12.0
FONTS = "ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',Consolas,'Noto Sans Mono CJK SC',monospace"

TERMINAL = TerminalTheme(
    (18, 18, 18),
    (208, 208, 208),
    [(0, 0, 0), (205, 49, 49), (13, 188, 121), (229, 229, 16),
     (59, 142, 234), (188, 63, 188), (17, 168, 205), (204, 204, 204)],
    [(118, 118, 118), (241, 76, 76), (35, 209, 139), (245, 245, 67),
     (102, 170, 255), (214, 112, 214), (41, 184, 219), (255, 255, 255)],
)  # fmt: skip
"""The colours a terminal gives to its own sixteen names; used only by themes that leave them to it."""

_LOWER = "▁▂▃▄▅▆▇█"
_LEFT = "▏▎▍▌▋▊▉"
_LINES = "─│┴━╸"
_PIECES = re.compile(r"─+|━+|█+|[{0}]|[^\s{0}]+(?: [^\s{0}]+)*".format(_LOWER + _LEFT + _LINES))


@dataclass(frozen=True, slots=True)
class Look:
    """What of a style a picture shows."""

    ink: str
    paper: str
    bold: bool
    italic: bool
    underline: bool

    @classmethod
    def of(cls, style: Style | None) -> Look:
        style = style or Style.null()
        ink, paper = _triplet(style.color, ink=True), _triplet(style.bgcolor, ink=False)
        if style.reverse:
            ink, paper = paper, ink
        if style.dim:
            ink = blend_rgb(ink, paper, 0.4)
        return cls(ink.hex, paper.hex, bool(style.bold), bool(style.italic), bool(style.underline))


@dataclass(frozen=True, slots=True)
class Piece:
    """Cells of one look that lie side by side."""

    column: int
    width: int
    text: str
    look: Look


def _triplet(color: Color | None, *, ink: bool) -> ColorTriplet:
    return (color or Color.default()).get_truecolor(TERMINAL, foreground=ink)


def draw(rows: Sequence[Strip], title: str) -> str:
    """The SVG of a screen; `title` is said to who can't see it."""
    width = max((row.cell_length for row in rows), default=0)
    pieces = [list(_pieces(row)) for row in rows]
    paper = _commonest(pieces)
    right, bottom = 2 * MARGIN + width * CELL[0], 2 * MARGIN + len(rows) * CELL[1]
    classes: dict[tuple[str, bool, bool, bool], str] = {}
    body = [mark for y, row in enumerate(pieces) for mark in _row(y, row, paper, classes)]
    said = "\n".join(row.text.rstrip() for row in rows)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(right)} {_n(bottom)}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(said)}</desc>",
        "<style>",
        f"text{{font:{FONT_PX}px {FONTS};white-space:pre}}",
        *(_rule(look, name) for look, name in classes.items()),
        "</style>",
        f'<rect width="{_n(right)}" height="{_n(bottom)}" rx="6" fill="{paper}"/>',
    )
    return "\n".join((*head, *body, "</svg>", ""))


def rows_of(svg: str) -> list[str]:
    """The rows of text of a picture that `draw` made; none when it has not its form."""
    found = re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)
    if found is None:
        return []
    return found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").split("\n")


def _pieces(row: Strip) -> Iterator[Piece]:
    column = 0
    for text, style, control in row:
        if control or not text:
            continue
        width = cell_len(text)
        yield Piece(column, width, text, Look.of(style))
        column += width


def _commonest(rows: Iterable[Iterable[Piece]]) -> str:
    """The background of most cells: the terminal's own, to the eye."""
    cells: dict[str, int] = {}
    for row in rows:
        for piece in row:
            cells[piece.look.paper] = cells.get(piece.look.paper, 0) + piece.width
    return max(cells, key=lambda paper: (cells[paper], paper), default="#000000")


def _row(
    y: int, row: list[Piece], paper: str, classes: dict[tuple[str, bool, bool, bool], str]
) -> Iterator[str]:
    for piece in row:
        if piece.look.paper != paper:
            yield _rect(piece.column, y, piece.look.paper, 0, 0, piece.width, 1)
    for piece in row:
        for part in _PIECES.finditer(piece.text):
            column = piece.column + cell_len(piece.text[: part.start()])
            yield _mark(column, y, part[0], piece.look, classes)


def _mark(
    column: int, y: int, text: str, look: Look, classes: dict[tuple[str, bool, bool, bool], str]
) -> str:
    if shapes := _shapes(text):
        return "\n".join(_rect(column, y, look.ink, *shape) for shape in shapes)
    key = (look.ink, look.bold, look.italic, look.underline)
    name = classes.setdefault(key, f"t{len(classes)}")
    width = cell_len(text) * CELL[0]
    place = (
        f'x="{_n(MARGIN + column * CELL[0])}" y="{_n(MARGIN + y * CELL[1] + 15)}" textLength="{_n(width)}"'
    )
    return f'<text class="{name}" {place} lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'


def _shapes(text: str) -> tuple[tuple[float, float, float, float], ...]:
    """Left, top, width and height, in cells, of what a character is drawn of; nothing for letters."""
    hair, stroke = 1 / CELL[1], 3 / CELL[1]
    match text[0]:
        case "─":
            return ((0, 0.5, len(text), hair),)
        case "━":
            return ((0, 0.5 - hair, len(text), stroke),)
        case "╸":
            return ((0, 0.5 - hair, 0.5, stroke),)
        case "┴":
            return ((0, 0.5, 1, hair), (0.5, 0.15, 1 / CELL[0], 0.35))
        case "│":
            return ((0.5, 0, 1 / CELL[0], 1),)
        case block if block in _LOWER:
            height = (_LOWER.index(block) + 1) / 8
            return ((0, 1 - height, len(text), height),)
        case block if block in _LEFT:
            return ((0, 0, (_LEFT.index(block) + 1) / 8, 1),)
    return ()


def _rect(column: int, y: int, fill: str, left: float, top: float, width: float, height: float) -> str:
    """A filled part of a row; all measures in cells."""
    place = f'x="{_n(MARGIN + (column + left) * CELL[0])}" y="{_n(MARGIN + (y + top) * CELL[1])}"'
    size = f'width="{_n(width * CELL[0])}" height="{_n(height * CELL[1])}"'
    return f'<rect {place} {size} fill="{fill}" shape-rendering="crispEdges"/>'


def _rule(look: tuple[str, bool, bool, bool], name: str) -> str:
    ink, bold, italic, underline = look
    extra = ";font-weight:bold" * bold + ";font-style:italic" * italic
    return f".{name}{{fill:{ink}{extra}{';text-decoration:underline' * underline}}}"


def _n(number: float) -> str:
    """A coordinate, as short as it can be written."""
    return f"{number:.2f}".rstrip("0").rstrip(".")

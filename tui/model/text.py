"""The one gate between foreign bytes and the operator's terminal.

Rented boxes, user files and pasted strings are not trusted: Textual and Rich hand escape sequences in
their input straight to the terminal. Nothing reaches a widget that did not pass here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NewType, TypeAlias

from tui.model.cells import fold, width

SafeText = NewType("SafeText", str)
"""One line of printable characters, each one or two cells wide everywhere: no control, escape, bidi or
zero-width codes."""

LogText = NewType("LogText", str)
"""Like SafeText, but SGR colour sequences (``ESC [ ... m``) may stand in it. Only the log view draws it."""

LINE_LIMIT = 8192
"""Characters of a log line that are kept; the rest is counted in a mark at its end."""

_SGR = r"\x1b\[[0-9]{0,3}(?:[;:][0-9]{0,3}){0,15}m"
_COLOURS = re.compile(_SGR)
_CSI = r"[0-?]{0,64}[ -/]{0,8}[@-~]"
_STRING = r"[^\x07\x1b\x9c\n]{0,65536}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, APC, PM, SOS with their end
# An unfinished string loses its introducer only: hostile text must not be able to hide what follows it.
_ESCAPE = (
    rf"(?:\[{_CSI}|[\]PX^_]{_STRING}|[ -/]{{0,8}}[0-~])?"
    rf"|\x9b{_CSI}|[\x90\x98\x9d-\x9f]{_STRING}"
)  # fmt: skip
_ANY_ESCAPE = re.compile(r"\x1b" + _ESCAPE)
_OTHER_ESCAPE = re.compile(rf"(?!{_SGR})\x1b" + _ESCAPE)
_CUT_COLOUR = re.compile(r"\x1b[^m]*\Z")
_HAS_C1 = re.compile(r"[\x80-\x9f]")
_NULS = re.compile(r"\0{2,}")
_BLANKS = str.maketrans(dict.fromkeys("\t\n\v\f\r\x1c\x1d\x1e\x85", " "))
_OVERWRITTEN = re.compile(rb"(?m)^[^\n]*\r")
_PLAIN_BYTES = bytes((10, *range(32, 127)))


def safe(raw: str | bytes, limit: int = 4096) -> SafeText:
    """Make foreign text fit to be shown: decoded, on one line, at most `limit` characters.

    Escape sequences are removed with their payload, blanks of all kinds become spaces, other control
    characters their control picture.
    """
    text = Charset().decode(raw) if isinstance(raw, bytes) else raw
    if not (text.isascii() and text.isprintable()):
        text = _ANY_ESCAPE.sub("", text[: 4 * limit + 65536])
        text = fold(text.translate(_BLANKS))
    return SafeText(text[:limit])


class Charset:
    """Decodes one stream: UTF-8, and GB18030 for lines that are not UTF-8 but plausible Chinese.

    Both encodings keep line feeds and carriage returns out of their multi-byte characters, so a stream can
    be split into lines before it is decoded.
    """

    def __init__(self) -> None:
        self._chinese = False

    @property
    def encoding(self) -> str:
        """What the stream was so far: ``gb18030`` once a line was that and no UTF-8."""
        return "gb18030" if self._chinese else "utf-8"

    def decode(self, block: bytes) -> str:
        """Text of complete lines. Bytes that are no text become U+FFFD."""
        if not self._chinese:
            try:
                return block.decode()
            except UnicodeDecodeError:
                pass
        return "\n".join(map(self._line, block.split(b"\n")))

    def decode_cut(self, raw: bytes) -> str:
        """Text of a line that may end inside a character, which is then left out."""
        for missing in range(min(4, len(raw) + 1)):
            text = self._valid(raw[: len(raw) - missing])
            if text is not None:
                return text
        odd = self._chinese_or_none(raw) is None
        return self._line(raw[:-1] if odd else raw)

    def _line(self, raw: bytes) -> str:
        text = self._valid(raw)
        if text is not None:
            return text
        damaged = raw.decode("utf-8", "replace")
        errors = damaged.count("\ufffd")
        good = sum(not c.isascii() for c in damaged) - errors
        if errors <= good:  # mostly UTF-8: a character was cut, or some bytes are noise
            return damaged
        chinese = self._chinese_or_none(raw)
        if chinese is not None:
            self._chinese = True
            return chinese
        return raw.decode("gb18030", "replace") if self._chinese else damaged

    def _valid(self, raw: bytes) -> str | None:
        """The text if it is UTF-8. Two-byte letters are Chinese instead in a stream that was so before."""
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            return None
        if self._chinese and not text.isascii() and max(text) < "\u0800":
            return self._chinese_or_none(raw) or text
        return text

    @staticmethod
    def _chinese_or_none(raw: bytes) -> str | None:
        try:
            text = raw.decode("gb18030")
        except UnicodeDecodeError:
            return None
        high = len(raw.translate(None, _ASCII))
        pairs = len(_IN_USE.findall(raw))  # GBK's other characters are rare in real text
        return text if 2 * pairs >= 0.75 * high else None


_ASCII = bytes(range(128))
_IN_USE = re.compile(rb"[\xa1-\xa9\xb0-\xf7][\xa1-\xfe]|[\x81-\xfe][0-9][\x81-\xfe][0-9]")


class LogGate:
    """Makes log lines of the bytes of one stream."""

    def __init__(self) -> None:
        self._charset = Charset()

    def lines(self, block: bytes) -> list[LogText]:
        """Lines of `block`, which holds whole lines only; a line feed at its end starts no further line."""
        if not block:
            return []
        if block.endswith(b"\n"):
            block = block[:-1]
        if not block.translate(None, _PLAIN_BYTES):
            return _limited(block.decode("ascii").split("\n"))
        if b"\r" in block:
            block = _last_states(block)
        return _limited(_neutral(self._charset.decode(block)).split("\n"))

    def line(self, raw: bytes, beyond: int = 0, *, finished: bool = False) -> LogText:
        """One line of which perhaps only the beginning is at hand.

        Args:
            beyond: further bytes of the line, which are named in a mark.
            finished: `raw` is the whole line; otherwise it may end inside a character.
        """
        decode = self._charset.decode if finished else self._charset.decode_cut
        text = _neutral(decode(_last_states(raw)))
        return _cut(text, beyond) if beyond or len(text) > LINE_LIMIT else LogText(text)


def log_lines(raw: str | bytes) -> list[LogText]:
    """Lines of a whole text, for callers that have no stream."""
    return LogGate().lines(raw.encode("utf-8", "replace") if isinstance(raw, str) else raw)


def log_text(raw: str | bytes) -> LogText:
    """The text as one log line."""
    lines = log_lines(raw)
    return LogText(" ".join(lines))


def plain(text: LogText) -> SafeText:
    """The line without its colours, for search and copy."""
    return SafeText(_COLOURS.sub("", text) if "\x1b" in text else text)


def _last_states(block: bytes) -> bytes:
    """Carriage returns overwrite a line: its last state is kept. CR LF is a line end."""
    block = re.sub(rb"\r+(?=\n|\Z)", b"", block)
    return _OVERWRITTEN.sub(b"", block) if b"\r" in block else block


def _neutral(text: str) -> str:
    """Text of one or more lines with nothing active in it but SGR."""
    if "\b" in text:
        text = "\n".join(map(_erased, text.split("\n")))
    if "\x1b" in text or (not text.isascii() and _HAS_C1.search(text)):
        text = _OTHER_ESCAPE.sub("", text)
    if "\0" in text:  # holes of logs that were truncated under their writer: one mark each
        text = _NULS.sub("\0", text)
    text = fold(text)
    return _untabbed(text) if "\t" in text else text


def _erased(line: str) -> str:
    """Backspaces carried out, as older progress bars use them."""
    if "\b" not in line:
        return line
    kept: list[str] = []
    for c in line:
        if c != "\b":
            kept.append(c)
        elif kept:
            kept.pop()
    return "".join(kept)


def _untabbed(text: str) -> str:
    if text.isascii() and "\x1b" not in text:
        return text.expandtabs(8)
    return "\n".join(_untabbed_line(line) if "\t" in line else line for line in text.split("\n"))


def _untabbed_line(line: str) -> str:
    """Tab stops counted in cells: wide characters take two, colours none."""
    parts = line.split("\t")
    column = 0
    for i, part in enumerate(parts[:-1]):
        column += width(_COLOURS.sub("", part))
        blanks = 8 - column % 8
        parts[i] = part + " " * blanks
        column += blanks
    return "".join(parts)


def _limited(lines: list[str]) -> list[LogText]:
    if max(map(len, lines)) > LINE_LIMIT:
        lines = [_cut(line) if len(line) > LINE_LIMIT else line for line in lines]
    return lines  # type: ignore[return-value]  # a NewType over str; a copy of a million would cost


def _cut(line: str, beyond: int = 0) -> LogText:
    kept = _CUT_COLOUR.sub("", line[:LINE_LIMIT])
    reset = "\x1b[0m" if "\x1b" in kept else ""
    return LogText(f"{kept}{reset} … {amount(beyond + len(line[LINE_LIMIT:].encode()))} more")


def amount(count: int) -> str:
    """A number of bytes in words: ``812 B``, ``1.2 MB``."""
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


Colour: TypeAlias = int | tuple[int, int, int]
"""A colour of the 256-colour palette (0-15 are the terminal's own), or red, green and blue."""


@dataclass(frozen=True, slots=True)
class Ink:
    """How a stretch of a log line is drawn. None: the view's own colour."""

    fg: Colour | None = None
    bg: Colour | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False


NO_INK = Ink()


def spans(text: LogText) -> list[tuple[SafeText, Ink]]:
    """The line cut where its colours change. Blinking and concealed text is drawn as ordinary text."""
    if "\x1b" not in text:
        return [(SafeText(text), NO_INK)] if text else []
    found: list[tuple[SafeText, Ink]] = []
    ink, at = NO_INK, 0
    for match in _COLOURS.finditer(text):
        if match.start() > at:
            found.append((SafeText(text[at : match.start()]), ink))
        ink, at = _inked(ink, match.group()[2:-1]), match.end()
    if at < len(text):
        found.append((SafeText(text[at:]), ink))
    return found


_SWITCHES: dict[int, dict[str, bool]] = {
    1: {"bold": True}, 2: {"dim": True}, 3: {"italic": True}, 4: {"underline": True}, 7: {"reverse": True},
    9: {"strike": True}, 21: {"underline": True}, 22: {"bold": False, "dim": False}, 23: {"italic": False},
    24: {"underline": False}, 27: {"reverse": False}, 29: {"strike": False},
}  # fmt: skip


def _inked(ink: Ink, params: str) -> Ink:
    """`ink` after one SGR sequence (ECMA-48 8.3.117; 38 and 48 as in ITU T.416 and as xterm writes them)."""
    groups = [[int(n) if n else None for n in group.split(":")] for group in params.split(";")]
    while groups:
        group = groups.pop(0)
        code = group[0] or 0
        if code == 0:
            ink = NO_INK
        elif code == 4 and group[1:] == [0]:
            ink = replace(ink, underline=False)
        elif code in _SWITCHES:
            ink = replace(ink, **_SWITCHES[code])
        elif code in (38, 48):
            colour = _extended(group[1:] if len(group) > 1 else _taken(groups))
            if colour is not None:
                ink = replace(ink, fg=colour) if code == 38 else replace(ink, bg=colour)
        else:
            ink = _palette(ink, code)
    return ink


def _palette(ink: Ink, code: int) -> Ink:
    if 30 <= code <= 37 or 90 <= code <= 97:
        return replace(ink, fg=code - 30 if code < 90 else code - 82)
    if 40 <= code <= 47 or 100 <= code <= 107:
        return replace(ink, bg=code - 40 if code < 100 else code - 92)
    if code == 39:
        return replace(ink, fg=None)
    return replace(ink, bg=None) if code == 49 else ink


def _taken(groups: list[list[int | None]]) -> list[int | None]:
    """The parameters that belong to a 38 or 48 written with semicolons, taken off the list."""
    kind = groups[0][0] if groups else None
    count = {5: 2, 2: 4}.get(kind or 0, 1)
    taken, groups[:count] = [group[0] for group in groups[:count]], []
    return taken


def _extended(params: list[int | None]) -> Colour | None:
    if len(params) >= 2 and params[0] == 5:
        index = params[1] or 0
        return index if index < 256 else None
    if len(params) >= 4 and params[0] == 2:
        red, green, blue = (n or 0 for n in params[-3:])  # a colour space may stand before them
        return (red, green, blue) if max(red, green, blue) < 256 else None
    return None

"""The terminal as Textual drives it, but for bytes that are no text, controls in a paste, and its end.

Textual (8.2.8) decodes what is typed strictly, so that one byte of another encoding, as a paste out of a GBK
document has, ended the app with a traceback; and so did a terminal that was closed under its reader. Of an
escape sequence inside a paste, such as a colour of a log, it makes key presses.
"""

from __future__ import annotations

import codecs
import contextlib
import re

from textual.drivers import linux_driver

from tui.model.failure import Exit

_BEGIN, _END = "\x1b[200~", "\x1b[201~"
"""What a terminal puts around a paste (xterm's bracketed paste mode, 2004)."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""But tab and line ends; with those that turn the direction of writing."""
_GONE = int(Exit.INTERRUPTED)


class Typed(codecs.IncrementalDecoder):
    """What comes from a terminal as text: ``�`` for what is none, and a paste without control characters."""

    def __init__(self) -> None:
        super().__init__("replace")
        self._plain = codecs.getincrementaldecoder("utf-8")("replace")
        self._pasting = False
        self._before = ""  # the last signs ahead of a paste: its mark may come in pieces
        self._held = ""  # the last signs of a paste, which may begin the mark of its end

    def decode(self, data: bytes, final: bool = False) -> str:  # type: ignore[override]
        """The next bytes."""
        text, self._held = self._held + self._plain.decode(data, final), ""
        out: list[str] = []
        while text:
            piece, text = self._in_paste(text, final) if self._pasting else self._outside(text)
            out.append(piece)
        return "".join(out)

    def _outside(self, text: str) -> tuple[str, str]:
        """As it is, up to and with the mark of a paste's begin; and the rest. Nothing waits: esc is a key."""
        seen = self._before + text
        at = seen.find(_BEGIN)
        if at < 0:
            self._before = seen[1 - len(_BEGIN) :]
            return text, ""
        self._pasting, end = True, at + len(_BEGIN) - len(self._before)
        self._before = ""
        return text[:end], text[end:]

    def _in_paste(self, text: str, final: bool) -> tuple[str, str]:
        pasted, mark, rest = text.partition(_END)
        if mark:
            self._pasting = False
        elif not final:
            begun = next((n for n in range(len(_END) - 1, 0, -1) if text.endswith(_END[:n])), 0)
            pasted, self._held = text[: len(text) - begun], text[len(text) - begun :]
        return _CONTROLS.sub("", pasted) + mark, rest


# Its reader makes its decoder by this name, and offers no other way to say which.
setattr(linux_driver, "getincrementaldecoder", lambda _encoding: Typed)  # noqa: B010 - mypy knows no such name


class TerminalDriver(linux_driver.LinuxDriver):
    """Reads on whatever comes, and leaves with a terminal that is gone."""

    def run_input_thread(self) -> None:
        """Wait for input and dispatch events."""
        try:
            super().run_input_thread()
        except OSError:  # there is nobody left to tell
            with contextlib.suppress(RuntimeError):  # the loop is closed: it has left already
                self._loop.call_soon_threadsafe(self._app.exit, _GONE, _GONE)

"""The probe's shell program, and the requests it understands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tui.box.transport import Script

_PARTS = ("bounded.sh", "linux.sh", "darwin.sh", "probe.sh")
_COMMENT = re.compile(r"^[ \t]*#.*\n", re.MULTILINE)


@cache
def source() -> str:
    """The whole program, without its comment lines: it crosses the link at every start."""
    here = files(__package__)
    return _COMMENT.sub("", "".join((here / part).read_text("utf-8") for part in _PARTS))


def script(nonce: str) -> Script:
    """The probe as a long-lived command. `nonce` marks its answers among whatever else a box may print."""
    return Script(source(), (nonce,), why="probe")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing the probe looks at whenever a tick asks for its kind.

    Attributes:
        kind: ``m`` a mount, ``r`` a run's files, ``p`` a process, ``k`` the folder a process works in.
        key: short, without blanks; answers carry it. The same thing keeps its key while a channel lives.
        texts: at most three; any characters but NUL, undecodable bytes as lone surrogates.
    """

    kind: str
    key: str
    texts: tuple[str, ...] = ()


def configure(entries: Iterable[Entry]) -> bytes:
    """The request that puts `entries` in place of all earlier ones."""
    request = [b"c\n"]
    for entry in entries:
        request.append(f"e {entry.kind} {entry.key}\n".encode())
        request += [_text(text) for text in (*entry.texts, "", "", "")[:3]]
    return b"".join(request)


def tick(number: int, flags: str) -> bytes:
    """The request for answer `number`. The flags are those of probe.sh; none is a plain tick."""
    return f"t {number} {flags or '-'}\n".encode()


def _text(text: str) -> bytes:
    if not text:
        return b"0\n"
    raw = text.replace("\0", "").encode("utf-8", "surrogateescape")
    return b"%d\n%s\n" % (raw.count(b"\n") + 1, raw)

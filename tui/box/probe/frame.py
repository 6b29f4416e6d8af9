"""Answers of the probe out of a stream of bytes: whole and ours, or not at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.model.failure import Exit, Failure

CAP = 1 << 20
"""Bytes one answer may have, and that may stand before it."""


class Garbled(Failure):
    """The box sent something that is no answer of the probe."""

    def __init__(self, what: str) -> None:
        super().__init__(
            what,
            means="Nothing of this look is used.",
            do="Look again; if it stays so, run the box's shell by hand (rgt ssh) and see what it prints.",
            exit=Exit.UNKNOWN,
            code="probe-garbled",
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole answer: section name -> its raw bytes."""

    tick: int
    sections: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Message:
    """What one child said: `status` is an exit status, or ``cut`` where the text is not all of it."""

    name: str
    status: str
    text: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """What the children of one tick said.

    Attributes:
        messages: by name.
        late: keys of children that were started and did not come back in time.
        stuck: keys not asked, since an earlier child still hangs there.
        denied: keys not asked, since two others hang.
    """

    messages: dict[str, Message]
    late: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()


class Frames:
    """Collects bytes and gives each answer once it is complete. Noise before an answer is dropped."""

    def __init__(self, nonce: str) -> None:
        self._head = re.compile(rb"@rgt %s (\d{1,18}) (\d{1,7})\n" % nonce.encode())
        self._tail = b"@end %s " % nonce.encode()
        self._held = bytearray()

    def feed(self, data: bytes) -> list[Answer]:
        """Take some bytes; give the answers they complete.

        Raises:
            Garbled: an answer larger than allowed, or one whose lengths do not fit.
        """
        self._held += data
        found: list[Answer] = []
        while self._held and (answer := self._next()) is not None:
            found.append(answer)
        return found

    def _next(self) -> Answer | None:
        head = self._head.search(self._held)
        if head is None:
            if len(self._held) > CAP:
                raise Garbled("The box printed more than 1 MiB that is no answer of the probe.")
            return None
        number, size = head[1], int(head[2])
        if size > CAP:
            raise Garbled(f"The probe's answer would have {size} bytes, more than 1 MiB.")
        tail = self._tail + number + b"\n"
        end = head.end() + size
        if len(self._held) < end + len(tail):
            return None
        body = bytes(self._held[head.end() : end])
        if self._held[end : end + len(tail)] != tail:
            raise Garbled("The probe's answer has another length than it says.")
        del self._held[: end + len(tail)]
        return Answer(int(number), sections(body))


_SECTION = re.compile(rb"# ([a-z]+) (\d+)\n")
_MESSAGE = re.compile(rb"a ([\w.]+) (\d+|cut) (\d+)\n")
_KEYED = re.compile(rb"([kzsd])([0-9a-f]*) (\w+)(?: \d* \d*)?\n")


def sections(body: bytes) -> dict[str, bytes]:
    """The sections of an answer's body. Raises Garbled where a length does not fit."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(body):
        head = _SECTION.match(body, at)
        if head is None:
            raise Garbled("The probe's answer has a part without a name.")
        end = head.end() + int(head[2])
        if body[end : end + 1] != b"\n":
            raise Garbled("A part of the probe's answer was cut.")
        found[head[1].decode()] = body[head.end() : end]
        at = end + 1
    return found


def batch(raw: bytes, nonce: str) -> Batch:
    """The children's messages. One that a deadline cut in the middle is left out, and its child is late."""
    messages: dict[str, Message] = {}
    keys: dict[str, set[str]] = {"k": set(), "z": set(), "s": set(), "d": set()}
    raw += b"\n"  # the shell drops the last newlines of what it captured
    at = 0
    while at < len(raw):
        head = _MESSAGE.match(raw, at)
        if head is not None:
            end = head.end() + int(head[3])
            if raw[end : end + 1] != b"\n":
                break
            name = head[1].decode()
            messages[name] = Message(name, head[2].decode(), raw[head.end() : end])
            at = end + 1
            continue
        keyed = _KEYED.match(raw, at)
        if keyed is not None and keyed[2] == nonce.encode():
            keys[keyed[1].decode()].add(keyed[3].decode())
        line = raw.find(b"\n", at)
        at = len(raw) if line < 0 else line + 1
    return Batch(messages, frozenset(keys["k"] - keys["z"]), frozenset(keys["s"]), frozenset(keys["d"]))

"""How commands reach a box: the interface every other part of this room is written against.

Rules that all transports keep:
* bytes only; a caller decodes through ``tui.model.text``;
* remote text is a constant `Script`; data travels as quoted positional parameters or on stdin, never
  spliced into the script;
* a lost link is an exception (`LinkLost`), never an empty answer or a ``None`` exit status;
* every wait has a deadline;
* closing a channel ends what it started on the box, also for root and without a pty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tui.model.failure import Exit, Failure


class LinkLost(Failure):
    """The connection broke while something was under way; what it did on the box is not known."""

    def __init__(self, what: str) -> None:
        super().__init__(
            what, means="What was under way is unknown.", exit=Exit.UNREACHABLE, code="link-lost"
        )


class SessionsExhausted(Failure):
    """The server refused one more session (MaxSessions); the connection itself is fine."""

    def __init__(self, what: str) -> None:
        super().__init__(what, do="Close a shell or a forward on this box.", code="sessions-exhausted")


@dataclass(frozen=True, slots=True)
class Script:
    """A POSIX-sh program and its positional parameters.

    Attributes:
        text: constant source; reads its parameters as ``$1``, ``$2``…
        args: data; a path may be any bytes but NUL.
        why: what it is for, in a few words; shown in the command log.
    """

    text: str
    args: tuple[str | bytes, ...] = ()
    why: str = ""

    def argv(self) -> list[bytes]:
        """The argument vector, for a transport that needs no shell in between."""
        return [b"/bin/sh", b"-c", self.text.encode(), b"rgt", *map(_bytes, self.args)]


def _bytes(arg: str | bytes) -> bytes:
    return arg.encode("utf-8", "surrogateescape") if isinstance(arg, str) else arg


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished remote command. `truncated` says that `stdout` was cut at the caller's limit."""

    exit: int
    stdout: bytes
    stderr: bytes
    took_s: float
    truncated: bool = False


class Channel(Protocol):
    """A long-lived remote process with open stdin and stdout."""

    async def read(self, size: int = 65536) -> bytes:
        """Up to `size` bytes as soon as some are there; ``b""`` at a regular end.

        Not reading holds the box back: at most one window of data is buffered.

        Raises:
            LinkLost: the connection broke.
        """

    async def write(self, data: bytes) -> None:
        """Send to the process's stdin. Raises LinkLost."""

    async def close(self) -> None:
        """End the process on the box and free its session. Never raises; bounded in time."""

    @property
    def exit(self) -> int | None:
        """Exit status once the process has ended by itself, else None."""


class Transport(Protocol):
    """A way into one box."""

    name: str

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        """Run a finite command.

        Args:
            timeout: seconds until `TimeoutError`; the remote process is ended then.
            limit: bytes of stdout kept.

        Raises:
            LinkLost, SessionsExhausted, TimeoutError.
        """

    async def open(self, script: Script, *, timeout: float = 15.0) -> Channel:
        """Start a long-lived command. Raises LinkLost, SessionsExhausted, TimeoutError."""

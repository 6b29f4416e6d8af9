"""A transport over something that carries one process at a time: a Slurm step, or ``kubectl exec``.

What carries has exit statuses of its own and loses connections with any of them. So the frame of
`tui.box.remote_shell` is closed here by a trailer on stderr that holds the script's own status: without it
the script did not end, whatever the carrier says, and that is a lost link and never a failed command.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from tui.box.command_log import OnCommand, Recorder
from tui.box.noise import NoiseCut, new_marker
from tui.box.remote_shell import framed
from tui.box.transport import Completed, LinkLost, Script
from tui.model.failure import Failure
from tui.model.text import safe

_STDERR_KEPT = 64 << 10
_CLOSE_S = 4.0

# $0 tells whether it has its own process group already; $1 its second half, then the frame's words.
# What carries may put a terminal behind stdout (srun --unbuffered does), which makes tools cut their lines to
# its width; so the script writes into a pipe, and the trailer follows when all of that has been passed on.
_OUTER = """\
case $0 in rgt) kill -0 "-$$" 2>/dev/null || ! command -v setsid >/dev/null 2>&1 ||
exec setsid /bin/sh -c 'eval "$1"' rgt-group "$@" ;; esac
eval "$1"
"""
_INNER = """\
shift
rgt_end=$1
exec 4>&1
rgt_status=$( { { (
%s
) 4>&- 5>&-; echo $? >&5; } | { exec 5>&-; cat >&4; }; } 5>&1 )
exec 4>&-
printf '%%s%%s;' "$rgt_end" "$rgt_status" >&2
exit "$rgt_status"
"""


def relayed(script: Script, marker: bytes) -> list[bytes]:
    """The argument vector that runs `script` in its frame, with a trailer, no login shell being between."""
    shell, option, frame, name, *words = framed(script, marker, None)
    return [shell, option, _OUTER.encode(), name, _INNER.encode() % frame, *words]


class Carried(Protocol):
    """One process that the carrier started: the streams as they come, and how the carrier itself ended."""

    @property
    def exit(self) -> int | None: ...

    @property
    def stderr(self) -> bytes: ...

    async def read(self, size: int = 65536) -> bytes:
        """Up to `size` bytes, ``b""`` at the end. Raises LinkLost."""

    async def write(self, data: bytes) -> None:
        """Raises LinkLost."""

    async def close(self) -> None:
        """End it. Never raises; bounded in time."""


Carry = Callable[[list[bytes], str], Awaitable[Carried]]
"""Starts an argument vector on the machine, for a reason in words. Raises Failure, LinkLost."""

Refused = Callable[[str], Failure]
"""Why nothing ran, from what the carrier said on stderr."""


class RelayedChannel:
    """A remote process; implements `tui.box.transport.Channel`."""

    def __init__(self, carried: Carried, marker: bytes, what: str, refused: Refused) -> None:
        self._carried = carried
        self._marker = marker
        self._what = what
        self._refused = refused
        self._cut = NoiseCut(marker)
        self._held = b""
        self._closed = False
        self._over = False
        self.record: Recorder | None = None

    async def begin(self) -> None:
        """Wait until the script itself begins. Raises Failure where it never does, LinkLost."""
        while not self._cut.open:
            data = await self._carried.read()
            if not data:
                raise self._never_ran()
            self._held += self._cut.feed(data)

    async def read(self, size: int = 65536) -> bytes:
        if self._held:
            data, self._held = self._held[:size], self._held[size:]
            return data
        if self._closed or self._over:
            return b""
        data = await self._carried.read(size)
        if not data and not self._closed:
            self._over = True
            status = self._status()
            self._told(status)
            if status is None:
                raise LinkLost(f"The link was lost while this ran: {self._what}.{self._said()}")
        return data

    async def write(self, data: bytes) -> None:
        if self._closed:
            raise LinkLost(f"The command has ended: {self._what}.")
        await self._carried.write(data)

    async def close(self) -> None:
        self._closed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await asyncio.shield(self._carried.close())
        self._told(None)

    @property
    def exit(self) -> int | None:
        return self._status() if self._over and not self._closed else None

    @property
    def stderr(self) -> bytes:
        """The first 64 KiB the command wrote to stderr, without what the carrier says around it."""
        _, found, text = self._carried.stderr.partition(self._marker)
        return text.partition(self._marker)[0][:_STDERR_KEPT] if found else b""

    def _status(self) -> int | None:
        """The script's own exit status, from its trailer; None where it did not come to its end."""
        found = re.search(re.escape(self._marker) + rb"([0-9]{1,3});", self._carried.stderr)
        return int(found[1]) if found else None

    def _never_ran(self) -> Failure:
        noise = self._carried.stderr + self._cut.all_noise()
        return self._refused(noise.decode("utf-8", "replace"))

    def _said(self) -> str:
        """The last line that the carrier wrote after the script's own."""
        lines = self._carried.stderr.decode("utf-8", "replace").strip().split("\n")
        last = lines[-1].rpartition(self._marker.decode())[2]
        return f" It was told: {safe(last, 200)}." if last.strip() else ""

    def _told(self, status: int | None) -> None:
        if self.record is not None:
            self.record.done(status)
            self.record = None


class RelayedTransport:
    """Implements `tui.box.transport.Transport` over a carrier."""

    def __init__(
        self,
        name: str,
        carry: Carry,
        refused: Refused,
        *,
        on_command: OnCommand = lambda record: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._carry = carry
        self._refused = refused
        self._on_command = on_command
        self._clock = clock

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        """Run a finite command; see `Transport.run`. Its stdin ends after `stdin`; the carrier's goes on."""
        record = Recorder(self.name, script, self._on_command, self._clock)
        channel: RelayedChannel | None = None
        try:
            async with asyncio.timeout(timeout):
                channel = await self._started(_bounded(script, len(stdin)))
                if stdin:
                    with contextlib.suppress(LinkLost):  # what ended before it took all tells its own status
                        await channel.write(stdin)
                kept, truncated = await _collected(channel, limit)
        except TimeoutError:
            record.done(None, f"no answer within {timeout:g} s")
            raise TimeoutError(f"{self.name}: no answer within {timeout:g} s: {script.why}") from None
        except asyncio.CancelledError:
            record.done(None, "cancelled")
            raise
        except Failure as failure:
            record.done(None, failure.what)
            raise
        finally:
            status, stderr = (channel.exit, channel.stderr) if channel else (None, b"")
            if channel is not None:
                await asyncio.shield(channel.close())
        record.done(status)
        return Completed(status or 0, kept, stderr, record.took(), truncated=truncated)

    async def open(self, script: Script, *, timeout: float = 15.0) -> RelayedChannel:
        """Start a long-lived command; see `Transport.open`."""
        record = Recorder(self.name, script, self._on_command, self._clock)
        try:
            async with asyncio.timeout(timeout):
                channel = await self._started(script)
        except TimeoutError:
            record.done(None, f"did not start within {timeout:g} s")
            raise TimeoutError(f"{self.name}: did not start within {timeout:g} s: {script.why}") from None
        except asyncio.CancelledError:
            record.done(None, "cancelled")
            raise
        except Failure as failure:
            record.done(None, failure.what)
            raise
        record.running()
        channel.record = record
        return channel

    async def _started(self, script: Script) -> RelayedChannel:
        """A channel whose script has begun. What did not begin is ended."""
        marker, what = new_marker(), f"{self.name}: {script.why or 'command'}"
        carried = await self._carry(relayed(script, marker), script.why)
        channel = RelayedChannel(carried, marker, what, self._refused)
        try:
            await channel.begin()
        except BaseException:
            await asyncio.shield(channel.close())
            raise
        return channel


# $1 how many bytes its stdin has, $2 the script, then its own words. The frame around it stays open, since
# the end of the carrier's stdin is what ends everything.
_BOUNDED = """\
rgt_n=$1 rgt_text=$2
shift 2
if [ "$rgt_n" -eq 0 ]; then eval "$rgt_text" </dev/null; else
head -c "$rgt_n" | { eval "$rgt_text"; }; fi
"""


def _bounded(script: Script, size: int) -> Script:
    """The script with a stdin of exactly `size` bytes."""
    return Script(_BOUNDED, (str(size), script.text, *script.args), script.why)


async def _collected(channel: RelayedChannel, limit: int) -> tuple[bytes, bool]:
    kept, truncated = bytearray(), False
    while data := await channel.read():
        room = limit - len(kept)
        truncated = truncated or len(data) > room
        kept += data[: max(0, room)]
    return bytes(kept), truncated

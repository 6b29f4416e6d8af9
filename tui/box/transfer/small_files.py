"""Many small files of a box as one tar stream: one round trip for thousands of names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tui.box.transfer.flow import Flow
from tui.box.transfer.line import Line
from tui.box.transfer.lots import Lot
from tui.box.transfer.meter import Meter
from tui.box.transfer.tarstream import TarRefused
from tui.box.transfer.wanted import Wanted
from tui.box.transport import LinkLost, Script

# -h: the bytes behind a link, as the hash was taken of. Names come NUL-terminated and start with "./", so
# that none is an option. Without GNU tar, xargs may start tar several times: archives in a row.
_TAR = """\
export LC_ALL=C COPYFILE_DISABLE=1
unset TAR_OPTIONS
CDPATH= cd -- "$1" || exit 3
case $(tar --version 2>/dev/null) in
*GNU*) head -c "$2" |
tar --null --no-recursion --no-unquote -h --hard-dereference --format=gnu -b 128 -cf - -T - ;;
*) head -c "$2" | xargs -0 tar -chf - ;;
esac
"""


class SmallFiles:
    """Fetches lots of small files from below `root`, over as many connections as it takes.

    Args:
        into, parts: folders of the final and of the unfinished files.
        have: told each file that lies under its final name.
    """

    def __init__(
        self,
        line: Line,
        flow: Flow,
        meter: Meter,
        root: str,
        into: Path,
        parts: Path,
        have: Callable[[Wanted], None],
    ) -> None:
        self._line, self._flow, self._meter = line, flow, meter
        self._root, self._into, self._parts = root, into, parts
        self._have = have

    async def fetch(self, files: list[Wanted]) -> list[Wanted]:
        """Fetch one lot. Raises Failure, OSError.

        Returns:
            What the stream did not bring rightly. Fetched one by one, each tells why.
        """
        alone: list[Wanted] = []
        while files:
            lot = Lot(files, self._into, self._parts)
            try:
                await self._tar(lot)
                files = []
                alone += lot.left
            except (LinkLost, TimeoutError):
                files = lot.left
                self._meter.note = "connecting again"
            except TarRefused:
                files = []
                alone += lot.left
            finally:
                await self._flow.thread(lot.settle)
                for wanted in lot.done:
                    self._have(wanted)
            alone += lot.refused
        return alone

    async def _tar(self, lot: Lot) -> None:
        names = b"".join(b"./" + os.fsencode(wanted.path) + b"\0" for wanted in lot.left)
        script = Script(_TAR, (self._root, str(len(names))), why=f"fetch {len(lot.left)} small files")
        transport, channel = await self._line.open(script)
        counted = 0

        def count() -> None:
            nonlocal counted
            if lot.bytes_done > counted:
                self._meter.arrived(lot.bytes_done - counted, lot.last)
                self._line.moved()
                counted = lot.bytes_done

        asking = asyncio.ensure_future(channel.write(names))
        try:
            await self._flow.move(channel, lot.feed, count, lambda: False)
            await asking
        except (LinkLost, TimeoutError):
            await self._line.lost(transport)
            raise
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            count()
            await channel.close()

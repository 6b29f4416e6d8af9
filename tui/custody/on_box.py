"""From the box straight to an rclone remote, where the box has rclone and knows the remote itself.

Nothing of this computer's configuration goes there. A remote of the same name need not be the same place:
what the box sent counts only when this computer finds it at its own remote, and when its bytes, read from the
remote again by the box, have the hashes they must have.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence

from tui.box.transfer.line import Dial
from tui.box.transport import Channel, LinkLost, Script
from tui.custody.bag import DATA, raw_name
from tui.custody.codes import gap
from tui.custody.direct import Sent
from tui.custody.stores.base import Moved
from tui.custody.stores.rclone import RcloneStore, log_line
from tui.model.custody import HashedFile
from tui.model.text import safe

_STALL_S = 300.0

# $1 the remote with its colon.
_KNOWS = 'command -v rclone >/dev/null 2>&1 && rclone listremotes 2>/dev/null | grep -q -x -F -e "$1"'

# $1 folder, $2 bytes of names on stdin, $3 where to.
_SEND = r"""
CDPATH= cd -- "$1" || exit 3
head -c "$2" | rclone copy --copy-links --ignore-times --no-traverse --files-from-raw - . "$3" \
  --use-json-log --stats 500ms --stats-log-level NOTICE --retries 3 2>&1
"""

# $1 bytes of names on stdin, $2 where they lie, $3 how many at a time. One line a file: number and digest.
_READ = r"""
LC_ALL=C; export LC_ALL
if printf x | openssl dgst -sha256 -r >/dev/null 2>&1; then t='openssl dgst -sha256 -r'
elif command -v sha256sum >/dev/null 2>&1; then t=sha256sum
else exit 4; fi
T=$t B=$2; export T B
head -c "$1" | xargs -0 -n 2 -P "$3" /bin/sh -c '
rclone cat "$B/$2" 2>/dev/null | $T | { read -r h _; echo "$1 $h"; }' rgt
"""

_DIGEST = re.compile(rb"(\d{1,9}) ([0-9a-f]{64})\Z")


async def push_rclone(
    dial: Dial, root: str, store: RcloneStore, files: Sequence[HashedFile], *, moved: Moved
) -> Sent | None:
    """Send files from below `root` of the box into the bag; None where the box knows no such remote.

    Whatever did not arrive right is not in the result and has to come another way.

    Raises:
        Failure: no connection to the box.
    """
    sent = Sent()
    box = await dial()
    try:
        remote = store.bag.partition(":")[0] + ":"
        if (
            await box.run(Script(_KNOWS, (remote,), why="does rclone of the box know it?"), timeout=30)
        ).exit != 0:
            return None
        try:
            names = b"".join(raw_name(one.path) + b"\n" for one in files)
            script = Script(
                _SEND, (root, str(len(names)), f"{store.bag}/{DATA}"), why="send with rclone of the box"
            )
            said = await _send(await box.open(script, timeout=30), names, files, moved)
            digests = await _digests(await box.open(_reading(store, files), timeout=30), files)
        except (LinkLost, TimeoutError):
            said, digests = "the link to the box was lost", {}
    finally:
        await asyncio.shield(box.close())
    there = (await store.listed()).files
    sent.stored = [
        one
        for one in files
        if digests.get(one.path) == one.sha256 and there.get(f"{DATA}/{one.path}") == one.size
    ]
    if len(sent.stored) < len(files):
        reason = said or "not all of it is at this computer's remote of that name"
        sent.gaps.append(
            gap("rclone-on-box-failed", f"{len(files) - len(sent.stored)} files: {safe(reason, 200)}.")
        )
    return sent


def _reading(store: RcloneStore, files: Sequence[HashedFile]) -> Script:
    return Script(
        _READ, (str(len(_numbered(files))), f"{store.bag}/{DATA}", "4"), why="read it from the remote again"
    )


def _numbered(files: Sequence[HashedFile]) -> bytes:
    return b"".join(b"%d\0%s\0" % (number, raw_name(one.path)) for number, one in enumerate(files))


async def _send(channel: Channel, names: bytes, files: Sequence[HashedFile], moved: Moved) -> str:
    """Feed the names and count the bytes; what rclone complained of last, empty when it ended well."""
    said, last, rest = "", 0, b""
    feeding = asyncio.ensure_future(channel.write(names))
    try:
        while block := await _within(channel):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                count, complaint = log_line(line)
                said = complaint or said
                if count is not None and count > last:
                    moved(count - last, files[-1].path)
                    last = count
        await feeding
        return "" if channel.exit == 0 else said or f"rclone of the box ended with status {channel.exit}"
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        await channel.close()


async def _digests(channel: Channel, files: Sequence[HashedFile]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    rest = b""
    feeding = asyncio.ensure_future(channel.write(_numbered(files)))
    try:
        while block := await _within(channel):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                match = _DIGEST.match(line)
                if match is not None and int(match[1]) < len(files):
                    found[files[int(match[1])].path] = f"sha256:{match[2].decode()}"
        return found
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        await channel.close()


async def _within(channel: Channel) -> bytes:
    async with asyncio.timeout(_STALL_S):
        return await channel.read()

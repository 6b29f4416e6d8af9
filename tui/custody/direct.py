"""From box to box, without this computer in between and without any key of the operator's.

A key pair is made on the source for this one transfer; its private half never leaves there. The target lets
it in with ``restrict,command=…,expiry-time=…``: all it can do is to hand over the bytes of numbered files,
each up to the size that this computer wrote down there. What they are called, and whether they are right, is
decided over our own connection to the target. Afterwards the key is taken out again, which is looked at and
recorded. Small files go through this computer: they are little, and the target need not unpack what an
untrusted box packed.
"""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tui.box.transfer.line import BulkTransport, Dial
from tui.box.transport import LinkLost, Script
from tui.box.trust import fingerprint_of
from tui.custody.bag import DATA
from tui.custody.codes import gap
from tui.custody.moments import moment
from tui.custody.stores.base import Moved
from tui.custody.stores.box import BoxStore
from tui.model.custody import Gap, HashedFile, KeyAdmission
from tui.model.failure import Failure
from tui.model.text import safe

_BLOCK = 1 << 20
_POLL_S = 0.5
_STALL_S = 60.0
_TRIES = 4
_DAYS = 2
_DIRECTORY = re.compile(rb"(/[A-Za-z0-9._/-]{1,200})\n")
_PUBLIC = re.compile(rb"(ssh-ed25519 [A-Za-z0-9+/=]{40,200}) [^\n]*\n\Z")

# Makes a folder and a key in it. $1 comment, $2 known_hosts line of the target.
_MAKE_KEY = r"""
command -v ssh >/dev/null 2>&1 && command -v ssh-keygen >/dev/null 2>&1 || exit 4
umask 077
d=$(mktemp -d "${TMPDIR:-/tmp}/rgt-once.XXXXXXXX") || exit 1
ssh-keygen -q -t ed25519 -N '' -C "$1" -f "$d/key" || exit 1
printf '%s\n' "$2" >"$d/known" || exit 1
printf '%s\n' "$d"
cat "$d/key.pub"
"""

# $1 where the files go, $2 one line of bytes for each file. Prints the folder of the receiver.
_PREPARE = r"""
umask 077
d=$(mktemp -d "${TMPDIR:-/tmp}/rgt-once.XXXXXXXX") || exit 1
mkdir -p "$1" || exit 1
printf '%s\n' "$1" >"$d/target"
printf '%s\n' "$2" >"$d/sizes"
cat >"$d/receive" || exit 1
printf '%s\n' "$d"
"""

# All that the key can do. What the source asks for is two numbers, or "check".
_RECEIVER = r"""
set -f
umask 077
here=${0%/*}
ask=$SSH_ORIGINAL_COMMAND
case $ask in check) echo rgt-ready; exit 0 ;; *[!0-9\ ]*|'') exit 77 ;; esac
set -- $ask
[ $# = 2 ] && [ "${#1}" -le 9 ] && [ "${#2}" -le 9 ] || exit 77
size=$(sed -n "${1}p" "$here/sizes")
[ -n "$size" ] || exit 77
IFS= read -r target <"$here/target"
left=$((size - $2 * 1048576))
[ "$left" -ge 0 ] || exit 77
dd if=/dev/null of="$target/$1" bs=1048576 seek="$2" 2>/dev/null || exit 1
head -c "$left" >>"$target/$1" || exit 1
dd if=/dev/null of="$target/$1" conv=notrunc,fsync 2>/dev/null || sync
echo rgt-done
"""

# $1 the whole line. A file without a line feed at its end must not swallow it.
_ADMIT = r"""
umask 077
mkdir -p ~/.ssh && cd ~/.ssh || exit 1
if [ -s authorized_keys ] && [ "$(tail -c 1 authorized_keys | od -An -tx1 | tr -d ' ')" != 0a ]; then
  echo >>authorized_keys
fi
printf '%s\n' "$1" >>authorized_keys
"""

# $1 the comment. Written in place: the file may be a link, and its rights stay as they are.
_RETIRE = r"""
umask 077
cd ~/.ssh || exit 1
new=$(mktemp ./rgt-XXXXXXXX) || exit 1
grep -v -F -e "$1" authorized_keys >"$new"
cat "$new" >authorized_keys
rm -f "$new"
if grep -q -F -e "$1" authorized_keys; then exit 9; fi
echo retired
"""

# $1 folder of the key, $2 port, $3 user@host, then what to run with ssh: a request.
_SSH = r"""
ssh -F none -T -i "$k/key" -o BatchMode=yes -o IdentitiesOnly=yes -o IdentityAgent=none \
  -o UserKnownHostsFile="$k/known" -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes \
  -o HostKeyAlias=rgt-target -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=3 \
  -o ClearAllForwardings=yes -o LogLevel=ERROR -p "$p" "$w" """

_CHECK = f"k=$1 p=$2 w=$3\n{_SSH.strip()} check </dev/null"

# $4 root, $5 file, $6 request, $7 MiB to skip.
_SEND = f"""k=$1 p=$2 w=$3
CDPATH= cd -- "$4" || exit 3
dd if="./$5" bs=1048576 skip="$7" 2>/dev/null | {_SSH.strip()} "$6"
"""

_SIZES = 'cd "$1" && wc -c "$2" 2>/dev/null || echo 0'


@dataclass(frozen=True, slots=True)
class DirectRoute:
    """How one box reaches another.

    Attributes:
        public_key: ``ssh-ed25519 AAAA…`` that the target proved to have when this computer met it.
        source, target: names for the record.
    """

    source: str
    target: str
    host: str
    port: int
    user: str
    public_key: str


@dataclass(slots=True)
class Sent:
    """What came of it."""

    stored: list[HashedFile] = field(default_factory=list)
    admissions: list[KeyAdmission] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


class _NoRoute(Exception):
    """The boxes do not find each other; says why in words that were made safe."""


async def push_direct(
    dial: Dial,
    root: str,
    store: BoxStore,
    files: Sequence[HashedFile],
    route: DirectRoute,
    *,
    moved: Moved,
    clock: Callable[[], float] = time.time,
) -> Sent:
    """Send files from below `root` of the source into the bag, which was begun.

    Whatever does not arrive right is not in the result and has to come another way.

    Raises:
        Failure: our own connections are lost for good.
    """
    sent = Sent()
    source = await dial()
    try:
        push = _Push(source, root, store, files, route, moved)
        try:
            await push.prepare()
            await push.admit(clock)
            for number, one in enumerate(files, 1):
                await push.send(number, one)
        except (_NoRoute, LinkLost, TimeoutError) as error:
            reason = str(error) if isinstance(error, _NoRoute) else "the link was lost on the way"
            sent.gaps.append(gap("direct-route-failed", f"{route.source} to {route.target}: {reason}."))
        finally:
            await asyncio.shield(_finish(push, sent, clock))
        sent.stored = await push.settle()
    finally:
        await asyncio.shield(source.close())
    return sent


async def _finish(push: _Push, sent: Sent, clock: Callable[[], float]) -> None:
    retired = await push.retire()
    await push.tidy()
    if push.admitted_at is None:
        return
    removed = moment(clock()) if retired else None
    sent.admissions.append(
        KeyAdmission(
            fingerprint=fingerprint_of(push.public_key),
            source=push.route.source,
            target=push.route.target,
            admitted_at=moment(push.admitted_at),
            removed_at=removed,
        )
    )
    if removed is None:
        sent.gaps.append(
            gap("key-not-removed", f"{push.route.target}: the line with the comment {push.comment}.")
        )


class _Push:
    """One transfer between two boxes."""

    def __init__(
        self,
        source: BulkTransport,
        root: str,
        store: BoxStore,
        files: Sequence[HashedFile],
        route: DirectRoute,
        moved: Moved,
    ) -> None:
        self.route = route
        self.comment = f"rgt-once-{secrets.token_hex(12)}"
        self.public_key = ""
        self.admitted_at: float | None = None
        self._source, self._root, self._store, self._files, self._moved = source, root, store, files, moved
        self._slots = posixpath.join(store.building, "parts", "direct")
        self._key_folder = self._receiver = ""
        self._arrived: list[tuple[int, HashedFile]] = []

    async def prepare(self) -> None:
        """A key on the source, a receiver on the target. Raises _NoRoute."""
        known = f"rgt-target {self.route.public_key}"
        script = Script(_MAKE_KEY, (self.comment, known), why="make a key for this transfer alone")
        done = await self._source.run(script, timeout=30)
        if done.exit == 4:
            raise _NoRoute("it has no ssh client")
        folder = _DIRECTORY.match(done.stdout)
        public = _PUBLIC.search(done.stdout)
        if done.exit != 0 or folder is None or public is None:
            raise _NoRoute("no key could be made there")
        self._key_folder = folder[1].decode()
        self.public_key = public[1].decode()
        sizes = "\n".join(str(one.size) for one in self._files)
        script = Script(_PREPARE, (self._slots, sizes), why="make ready to receive")
        target = await self._store.line.transport()
        done = await target.run(script, stdin=_RECEIVER.encode(), timeout=30)
        folder = _DIRECTORY.match(done.stdout)
        if done.exit != 0 or folder is None:
            raise _NoRoute("the target can't be made ready")
        self._receiver = folder[1].decode()

    async def admit(self, clock: Callable[[], float]) -> None:
        """Let the key in for this one purpose, and see whether the source gets through. Raises _NoRoute."""
        until = datetime.fromtimestamp(clock(), UTC) + timedelta(days=_DAYS)
        options = f'restrict,expiry-time="{until:%Y%m%d}",command="exec /bin/sh {self._receiver}/receive"'
        line = f"{options} {self.public_key} {self.comment}"
        target = await self._store.line.transport()
        self.admitted_at = clock()  # from now on it has to be taken out, whatever happens
        done = await target.run(Script(_ADMIT, (line,), why="let a single-use key in"), timeout=30)
        if done.exit != 0:
            raise _NoRoute("the target's authorized_keys can't be written")
        script = Script(_CHECK, self._way(), why="does the box reach the other one?")
        done = await self._source.run(script, timeout=45)
        if done.stdout != b"rgt-ready\n":
            said = safe(done.stderr.splitlines()[-1] if done.stderr else f"ssh ended with {done.exit}", 200)
            raise _NoRoute(f"it does not get through ({said})")

    async def send(self, number: int, one: HashedFile) -> None:
        """One file, over as many attempts as make progress. Raises _NoRoute, LinkLost."""
        tries, had = 0, 0
        while True:
            there = await self._there(number)
            tries = 0 if there > had else tries + 1
            had = max(had, there)
            if tries > _TRIES:
                raise _NoRoute("it stopped in the middle again and again")
            kept = there // _BLOCK
            if await self._attempt(number, one, kept, there):
                self._arrived.append((number, one))
                return

    async def _attempt(self, number: int, one: HashedFile, kept: int, there: int) -> bool:
        script = Script(
            _SEND,
            (*self._way(), self._root, one.path, f"{number} {kept}", str(kept)),
            why=f"send {safe(one.path, 80)} to {self.route.target}",
        )
        channel = await self._source.open(script, timeout=30)
        said = b""
        last, moved_at = kept * _BLOCK, time.monotonic()
        try:
            reading = asyncio.ensure_future(channel.read())
            while True:
                await asyncio.wait({reading}, timeout=_POLL_S)
                if reading.done():
                    block = reading.result()
                    said += block[:100]
                    if not block:
                        break
                    reading = asyncio.ensure_future(channel.read())
                now = min(await self._there(number), one.size)
                if now > last:
                    self._moved(now - last, one.path)
                    last, moved_at = now, time.monotonic()
                elif time.monotonic() - moved_at > _STALL_S:
                    return False
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, Failure):
                await reading
            await channel.close()
        return said == b"rgt-done\n"

    async def settle(self) -> list[HashedFile]:
        """Hash what arrived, over our own connection, and name what is right."""
        if not self._arrived:
            return []
        renamed = {f"{DATA}/{one.path}": f"parts/direct/{number}" for number, one in self._arrived}
        bagged = [one.model_copy(update={"path": f"{DATA}/{one.path}"}) for _, one in self._arrived]
        digests = await self._store.digests(self._store.building, bagged, renamed)
        good = [one.path for one in bagged if digests.get(one.path) == one.sha256]
        await self._store.settle(good, [path for path in renamed if path not in set(good)], renamed)
        return [one for _, one in self._arrived if f"{DATA}/{one.path}" in set(good)]

    async def retire(self) -> bool:
        """Take the key out of the target, and see that it is out."""
        if self.admitted_at is None:
            return True
        for _ in range(2):
            with contextlib.suppress(Failure, TimeoutError):
                target = await self._store.line.transport()
                script = Script(_RETIRE, (self.comment,), why="take the single-use key out again")
                if (await target.run(script, timeout=30)).stdout == b"retired\n":
                    return True
        return False

    async def tidy(self) -> None:
        """Remove what was made for this transfer on both boxes."""
        gone = 'case $1 in */rgt-once.*) rm -rf "$1" ;; esac'
        with contextlib.suppress(Failure, TimeoutError):
            if self._receiver:
                target = await self._store.line.transport()
                await target.run(Script(gone, (self._receiver,), why="remove the receiver"))
        with contextlib.suppress(Failure, TimeoutError):
            if self._key_folder:
                await self._source.run(Script(gone, (self._key_folder,), why="remove the single-use key"))

    async def _there(self, number: int) -> int:
        target = await self._store.line.transport()
        done = await target.run(Script(_SIZES, (self._slots, str(number)), why="how much has arrived"))
        word = done.stdout.split()[:1]
        return int(word[0]) if word and word[0].isdigit() else 0

    def _way(self) -> tuple[str, str, str]:
        return self._key_folder, str(self.route.port), f"{self.route.user}@{self.route.host}"

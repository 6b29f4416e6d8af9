"""Downloads on the box itself: resumable, bounded in bytes and time, and named only once their hash is right.

The address goes by stdin: it may hold a key, and an argument could be read by everybody on the box.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tui.box.transport import Completed, LinkLost, Script, Transport
from tui.model.failure import Exit, Failure
from tui.model.text import SafeText, amount, safe

SLICE_S = 45
"""How long one call downloads; then it is asked again, so that a dead link is noticed and nothing is lost."""

STALLED = 4
"""Slices without a byte until it is given up."""

MARGIN = 64 << 20
"""Bytes of the disk that are left free."""

_ADDRESS = re.compile(r"https?://[^\s\"\\\x00-\x1f\x7f]{1,4000}\Z")

# $1 destination. Its resolved path, then: its size or none, the part's size, free KiB, the tool.
_BEFORE = r"""
case $1 in '~/'*) d=$HOME/${1#??} ;; *) d=$1 ;; esac
echo "$d"
if [ -d "$d" ]; then echo folder; elif [ -e "$d" ]; then wc -c <"$d"; else echo none; fi
if [ -e "$d.part" ]; then wc -c <"$d.part"; else echo 0; fi
p=${d%/*}
[ -n "$p" ] || p=/
mkdir -p -- "$p" || exit 3
LC_ALL=C df -Pk "$p" | awk 'NR == 2 { print $4 }'
for t in curl wget; do if command -v $t >/dev/null 2>&1; then echo $t; break; fi; done
"""

# $1 resolved destination, $2 seconds, $3 tool, $4 most bytes. The address comes in. Says how it ended, and
# the part's size. One download to a place at a time: the lock is a folder that a live process stands behind.
_SLICE = r"""
umask 077
part=$1.part
IFS= read -r u || exit 4
mkdir -- "$part.lock" 2>/dev/null || {
  kill -0 "$(cat "$part.lock/pid" 2>/dev/null || echo 0)" 2>/dev/null && [ -s "$part.lock/pid" ] && exit 8
}
echo $$ >"$part.lock/pid"
trap 'rm -rf -- "$part.lock"' EXIT
trap 'exit 143' HUP TERM INT
if [ "$3" = curl ]; then
  printf 'url = "%s"\n' "$u" | curl -q -fsSL --max-redirs 5 --proto =http,https --proto-redir =http,https \
    --connect-timeout 15 --max-time "$2" --max-filesize "$4" -C - -o "$part" -K -
  s=$?
else
  printf '%s\n' "$u" | timeout "$2" wget -q -c --tries=1 --timeout=30 --max-redirect=5 -O "$part" -i -
  s=$?
fi
echo "$s $(wc -c <"$part" 2>/dev/null || echo 0)"
"""

# $1 resolved destination, $2 the hash it must have or nothing. Hashes the part and gives it its name.
_NAME = r"""
part=$1.part
if command -v sha256sum >/dev/null 2>&1; then h=$(sha256sum <"$part")
elif command -v openssl >/dev/null 2>&1; then h=$(openssl dgst -sha256 -r <"$part")
else h=$(shasum -a 256 <"$part"); fi
h=$(echo "$h" | cut -c 1-64)
echo "$h"
if [ -n "$2" ] && [ "$h" != "$2" ]; then mv -f -- "$part" "$1.wrong"; exit 7; fi
sync
ln -- "$part" "$1" 2>/dev/null && rm -f -- "$part" && exit
[ ! -e "$1" ] && mv -- "$part" "$1"
"""

_SUM = r"""
if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"
elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r <"$1"
else shasum -a 256 <"$1"; fi | cut -c 1-64
"""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that is on the box. `vouched` says that its hash is the one that was asked for."""

    path: str
    bytes: int
    sha256: str
    vouched: bool
    was_there: bool = False


async def fetch(
    dial: Callable[[], Awaitable[Transport]],
    address: str,
    destination: str,
    *,
    sha256: str | None = None,
    most: int | None = None,
    limit_s: float = 6 * 3600.0,
    told: Callable[[SafeText], None] = lambda _line: None,
    slice_s: int = SLICE_S,
) -> Fetched:
    """Download a file on the box; the same call goes on where another one was cut off.

    Args:
        dial: gives the connection, a new one where the last is dead.
        destination: absolute, or below ``~/``; nothing that is there is ever written over.
        most: bytes; by default what the disk has free, less a margin.
        limit_s: seconds altogether.

    Raises:
        Failure: it cannot be had, is too large, or is another file; what arrived stays as ``.part``.
    """
    if not _ADDRESS.match(address):
        raise Failure("That is no http or https address.", exit=Exit.USAGE, code="bad-address")
    if not destination.startswith(("/", "~/")) or "\n" in destination or destination.endswith("/"):
        raise Failure(
            "The destination is an absolute path of a file.", exit=Exit.USAGE, code="bad-destination"
        )
    ends = time.monotonic() + limit_s
    path, there, part, free, tool = await _before(await dial(), destination)
    if there is not None:
        return await _already(await dial(), path, there, sha256)
    bound = min(most or free, free + part)
    still = 0
    while True:
        before = part
        code, part = await _slice(dial, address, (path, str(slice_s), tool, str(bound)), part, slice_s)
        if code == 0 or (_over(code, tool) and part == before and part):
            break
        still = still + 1 if part <= before else 0
        _go_on(code, tool, part, bound, still)
        if time.monotonic() > ends:
            raise _stopped(f"{limit_s:.0f} s are over", part)
        told(safe(f"{amount(part)} of it are there"))
    return await _named(await dial(), path, part, sha256)


async def _before(box: Transport, destination: str) -> tuple[str, int | None, int, int, str]:
    done = await box.run(Script(_BEFORE, (destination,), why="what is at the destination?"), timeout=60)
    lines = [*done.stdout.decode("utf-8", "surrogateescape").split("\n"), "", "", "", "", ""]
    path, there, part, kib, tool = (line.strip() for line in lines[:5])
    if done.exit != 0 or there == "folder" or not kib.isdecimal():
        raise Failure(f"{safe(destination, 200)} cannot be written on the box.", means="Nothing was fetched.")
    if tool not in ("curl", "wget"):
        raise Failure("The box has neither curl nor wget.", means="Nothing was fetched.", code="no-tool")
    free = max(0, int(kib) * 1024 - MARGIN)
    return path, int(there) if there.isdecimal() else None, int(part or 0), free, tool


async def _slice(
    dial: Callable[[], Awaitable[Transport]],
    address: str,
    words: tuple[str, str, str, str],
    part: int,
    slice_s: int,
) -> tuple[int, int]:
    """One slice: the tool's status, and how much is there. A lost link is a slice without a word."""
    script = Script(_SLICE, words, why="download on the box")
    try:
        done = await (await dial()).run(script, stdin=f"{address}\n".encode(), timeout=slice_s + 30)
    except (LinkLost, TimeoutError):
        return 28, part
    if done.exit == 8:
        raise Failure("Another download to this very place is under way.", means="Nothing was fetched here.")
    status, _, size = done.stdout.decode("ascii", "replace").strip().partition(" ")
    if not (status.isdecimal() and size.strip().isdecimal()):
        raise _stopped(_last(done), part)
    return int(status), int(size)


def _over(code: int, tool: str) -> bool:
    """What a tool says when asked for what lies behind the end (416). The hash tells whether it is whole."""
    return code == (22 if tool == "curl" else 8)


_CURL = {
    3: "the address cannot be read", 6: "the name is not known there", 7: "nobody answers there",
    22: "the server refuses it", 23: "the disk took no more", 33: "the server cannot go on in the middle",
    35: "no TLS connection came about", 60: "the server's certificate is not trusted",
    63: "it is larger than allowed",
}  # fmt: skip
_WGET = {3: "the disk took no more", 4: "nobody answers there", 5: "its certificate is not trusted",
         8: "the server refuses it"}  # fmt: skip


def _go_on(code: int, tool: str, part: int, bound: int, still: int) -> None:
    """Whether another slice makes sense. Raises Failure where not."""
    why = (_CURL if tool == "curl" else _WGET).get(code)
    if part > bound:
        raise _stopped(f"it is larger than {amount(bound)}", part)
    if why is not None and (code in (3, 22, 23, 33, 60, 63) or still >= STALLED):
        raise _stopped(why, part)
    if still >= STALLED:
        raise _stopped("nothing came any more", part)


async def _named(box: Transport, path: str, size: int, sha256: str | None) -> Fetched:
    script = Script(_NAME, (path, sha256 or ""), why="is it the file?")
    done = await box.run(script, timeout=3600)
    found = done.stdout.decode("ascii", "replace").strip()
    if done.exit == 7:
        raise Failure(
            f"What came has the SHA-256 {safe(found[:16], 16)}… and must have {(sha256 or '')[:16]}….",
            means=f"It lies beside its place as {safe(path, 200)}.wrong; nothing has the name.",
            do="Look at it: mirrors answer with pages of their own.",
            code="other-bytes",
        )
    if done.exit != 0:
        raise Failure(f"{safe(path, 200)} could not be named: {_last(done)}.")
    return Fetched(path, size, found, sha256 is not None)


async def _already(box: Transport, path: str, size: int, sha256: str | None) -> Fetched:
    done = await box.run(Script(_SUM, (path,), why="is it the file?"), timeout=3600)
    found = done.stdout.decode("ascii", "replace").strip()
    if sha256 is None or found != sha256:
        raise Failure(
            f"{safe(path, 200)} is there already, {amount(size)}, sha256 {safe(found[:16], 16)}….",
            means="It was not written over.",
            do="Give another destination, or --sha256 to accept it.",
            code="is-there",
        )
    return Fetched(path, size, found, True, was_there=True)


def _stopped(why: str, part: int) -> Failure:
    return Failure(
        f"The download stopped: {safe(why, 200)}.",
        means=f"{amount(part)} of it stay beside its place as .part.",
        do="The same command goes on there.",
        code="fetch-stopped",
    )


def _last(done: Completed) -> str:
    return safe(done.stderr.decode("utf-8", "replace").strip().split("\n")[-1], 200) or f"status {done.exit}"

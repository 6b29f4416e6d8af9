"""What lies in a folder of a box: one bounded listing, exact to the byte, that follows no link.

The script runs in dash, bash and BusyBox ash. With GNU find one process tells everything; else find gives the
names and `stat` the rest in lots, each lot NUL-framed, so that no name can pass for the answer about another.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tui.box.transport import Script, Transport
from tui.model.failure import Exit, Failure
from tui.model.text import safe

MAX_FILES = 1_000_000
_MAX_BYTES = 512 << 20
_TIMEOUT_S = 300.0


class Entry(NamedTuple):
    """One name in a folder.

    Attributes:
        path: relative to the folder, bytes that are no UTF-8 as lone surrogates.
        kind: as find's: ``f`` file, ``d`` folder, ``l`` link, ``p`` pipe, ``s`` socket, ``b``/``c`` device
        modified_ns, changed_ns: of content and of inode, since the epoch, by the box's clock.
        target: what a link says; None for others.
    """

    path: str
    kind: str
    size: int
    modified_ns: int
    changed_ns: int
    inode: int
    device: int
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A folder at one moment.

    Attributes:
        top: its real path on the box, without links.
        entries: in no particular order; the folder itself is not among them.
        taken_s: by the box's clock, in whole seconds, when the listing began.
        coarse: times are to the second only.
        complaints: what could not be read.
    """

    top: str
    entries: tuple[Entry, ...]
    device: int
    taken_s: int
    coarse: bool = False
    complaints: tuple[str, ...] = ()

    def files(self) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.kind == "f")


class FolderMissing(Failure):
    """There is no such folder on the box, or this login may not enter it."""

    def __init__(self, box: str, path: str) -> None:
        super().__init__(
            f"{box} has no folder {path} that this login may enter.",
            do="Give the right one with --root.",
            exit=Exit.ATTENTION,
            code="root-missing",
        )


# One lot of names: all of them at once, or one by one where one of them went away meanwhile.
_LOT = r"""
f="%f %s %Y %Z %i %d %y|%z"
if o=$(stat -c "$f" "$@" 2>/dev/null); then printf "%s\0" "$@"; printf "\0%s\n\0" "$o"; exit; fi
for n do o=$(stat -c "$f" "$n" 2>/dev/null) && printf "%s\0\0%s\n\0" "$n" "$o"; done
exit 0"""

# $1 folder, then paths below it (as find -path patterns) that are left out.
_SCRIPT = r"""
LC_ALL=C; export LC_ALL; unset CDPATH
case $1 in /*) cd "$1" ;; *) cd "./$1" ;; esac 2>/dev/null || exit 66
shift
pwd -P; printf '\0'; date +%s; printf '\0'
for p do set -- "$@" -o -path "$p"; shift; done
if find . -maxdepth 0 -printf '' 2>/dev/null; then
  printf 'gnu\0'
  exec find . -xdev \( ! -name '*' "$@" \) -prune -o \
    -printf '%y\0%s\0%T@\0%C@\0%i\0%D\0%l\0%p\0'
fi
stat -c %s . >/dev/null 2>&1 || exit 67
printf 'stat\0'
find . -xdev \( ! -name '*' "$@" \) -prune -o -print0 | xargs -0 -n 200 /bin/sh -c '@LOT@' rgt
printf '\0'
find . -xdev \( ! -name '*' "$@" \) -prune -o -type l -print0 | xargs -0 -n 50 /bin/sh -c '
for l do printf "%s\0" "$l"; readlink -n "$l"; printf "\0"; done' rgt
""".replace("@LOT@", _LOT)

# NUL-delimited names on stdin ($2 bytes), relative to folder $1; the same fields as above.
_STAT_SCRIPT = r"""
LC_ALL=C; export LC_ALL; unset CDPATH
cd "$1" 2>/dev/null || exit 66
pwd -P; printf '\0'; date +%s; printf '\0'
if find . -maxdepth 0 -printf '' 2>/dev/null; then
  printf 'gnu\0'
  head -c "$2" | xargs -0 -n 1000 /bin/sh -c '
find "$@" -maxdepth 0 -printf "%y\0%s\0%T@\0%C@\0%i\0%D\0%l\0%p\0" 2>/dev/null' rgt
  exit 0
fi
stat -c %s . >/dev/null 2>&1 || exit 67
printf 'stat\0'
head -c "$2" | xargs -0 -n 200 /bin/sh -c '@LOT@' rgt
printf '\0'
exit 0
""".replace("@LOT@", _LOT)

_STAT_LINE = re.compile(rb"([0-9a-f]+) (\d+) (-?\d+) (-?\d+) (\d+) (\d+) ([^|\n]*)\|([^\n]*)\Z")
_FRACTION = re.compile(rb"\.(\d{9})\b")
_KINDS = {0x8: "f", 0x4: "d", 0xA: "l", 0x1: "p", 0xC: "s", 0x6: "b", 0x2: "c"}
_VANISHED = b"No such file or directory"  # went away while find looked: no complaint
_GLOB = re.compile(r"([\\*?\[])")


async def take_listing(
    transport: Transport, folder: str, *, leave_out: Sequence[str] = (), timeout: float = _TIMEOUT_S
) -> Listing:
    """List `folder` of a box.

    Args:
        folder: absolute, or relative to the login directory.
        leave_out: absolute real paths below it that are not entered.

    Raises:
        FolderMissing: there is no such folder.
        Failure: the box can't tell, or there are more than `MAX_FILES` entries.
        LinkLost, SessionsExhausted, TimeoutError.
    """
    # patterns are below the folder's real path, which only the box knows
    top = await real_path(transport, folder) if leave_out else folder
    patterns = [
        "./" + _GLOB.sub(r"\\\1", below)
        for path in leave_out
        if (below := relative(path, top)) not in (None, "")
    ]
    done = await transport.run(
        Script(_SCRIPT, (top, *patterns), why="list the files that matter"), timeout=timeout, limit=_MAX_BYTES
    )
    if done.exit == 66:
        raise FolderMissing(transport.name, folder)
    if done.truncated:
        raise _too_many(transport.name, folder)
    return await asyncio.to_thread(_parsed, transport.name, folder, done.stdout, done.exit, done.stderr)


async def look_again(
    transport: Transport, top: str, paths: Sequence[str], *, timeout: float = _TIMEOUT_S
) -> Listing:
    """The same facts for these paths of a folder, where they are still there. Raises as `take_listing`."""
    names = b"".join(f"./{path}".encode("utf-8", "surrogateescape") + b"\0" for path in paths)
    if not names:
        return Listing(top, (), 0, 0)
    script = Script(_STAT_SCRIPT, (top, str(len(names))), why="look at files again")
    done = await transport.run(
        script, stdin=names, timeout=timeout, limit=len(names) + 320 * len(paths) + 65536
    )
    if done.exit == 66:
        raise FolderMissing(transport.name, top)
    return await asyncio.to_thread(_parsed, transport.name, top, done.stdout, done.exit, b"")


async def real_path(transport: Transport, folder: str) -> str:
    """Where a folder of the box really lies. Raises FolderMissing, LinkLost, TimeoutError."""
    text = 'case $1 in /*) cd "$1" ;; *) cd "./$1" ;; esac 2>/dev/null || exit 66; pwd -P'
    done = await transport.run(Script(text, (folder,), why="where a folder really lies"))
    if done.exit != 0 or not done.stdout.startswith(b"/"):
        raise FolderMissing(transport.name, folder)
    return _text(done.stdout.removesuffix(b"\n"))


def relative(path: str, top: str) -> str | None:
    """`path` below `top`: "" for `top` itself, None when it lies elsewhere. Both are real, absolute paths."""
    if path == top:
        return ""
    inside = top if top.endswith("/") else top + "/"
    return path[len(inside) :] if path.startswith(inside) else None


def _parsed(box: str, folder: str, raw: bytes, exit_status: int, stderr: bytes) -> Listing:
    top, taken, form, body = _header(raw)
    if exit_status == 67 or form not in (b"gnu", b"stat"):
        raise Failure(
            f"{box} can't list {folder}: it has neither GNU find nor stat.",
            means="Without it nobody can say what is there.",
            do="Install coreutils or findutils on the box.",
            exit=Exit.UNKNOWN,
            code="no-listing-tool",
        )
    read: Callable[[bytes], tuple[list[Entry], bool]] = _from_find if form == b"gnu" else _from_stat
    try:
        entries, coarse = read(body)
    except (ValueError, IndexError):
        raise Failure(
            f"{box}'s answer about {folder} can't be read.",
            means="Nothing is concluded from it.",
            do="Try again; if it comes back, look at the box's find and stat.",
            exit=Exit.UNKNOWN,
            code="listing-unreadable",
        ) from None
    if len(entries) > MAX_FILES:
        raise _too_many(box, folder)
    itself = next((e for e in entries if e.path == ""), None)
    said = stderr.splitlines()
    complaints = tuple(str(safe(line, 300)) for line in said if not line.endswith(_VANISHED))[:50]
    if exit_status != 0 and not said:
        complaints = (f"find ended with status {exit_status}",)
    return Listing(
        _text(top),
        tuple(e for e in entries if e.path != ""),
        itself.device if itself else 0,
        taken,
        coarse,
        complaints,
    )


def _header(raw: bytes) -> tuple[bytes, int, bytes, bytes]:
    parts = raw.split(b"\0", 3)
    if len(parts) < 4 or not parts[1].strip().isdigit():
        return b"/", 0, b"", b""
    return parts[0].removesuffix(b"\n"), int(parts[1]), parts[2], parts[3]


def _from_find(body: bytes) -> tuple[list[Entry], bool]:
    fields = body.split(b"\0")
    if fields.pop() != b"" or len(fields) % 8:
        raise ValueError("cut")
    entries = []
    for at in range(0, len(fields), 8):
        kind, size, modified, changed, inode, device, target, path = fields[at : at + 8]
        entries.append(
            Entry(
                _below(path),
                kind.decode("ascii"),
                int(size),
                _nanoseconds(modified),
                _nanoseconds(changed),
                int(inode),
                int(device),
                _text(target) if kind == b"l" else None,
            )
        )
    return entries, False


def _from_stat(body: bytes) -> tuple[list[Entry], bool]:
    """Lots of ``name\\0…name\\0\\0line\\n…line\\n\\0``, an empty lot, then ``link\\0target\\0…``."""
    found: list[tuple[bytes, bytes]] = []
    at = 0
    while True:
        names = []
        while (end := body.index(b"\0", at)) > at:
            names.append(body[at:end])
            at = end + 1
        at = end + 1
        if not names:
            break
        end = body.index(b"\0", at)
        lines = body[at:end].split(b"\n")
        at = end + 1
        if lines.pop() != b"":
            raise ValueError("cut")
        found += zip(names, lines, strict=True)
    links = body[at:].split(b"\0")
    targets = dict(zip(links[::2], links[1::2], strict=False))
    return _stat_entries(found, targets)


def _stat_entries(
    found: Sequence[tuple[bytes, bytes]], targets: dict[bytes, bytes]
) -> tuple[list[Entry], bool]:
    entries, coarse = [], False
    for name, line in found:
        match = _STAT_LINE.match(line)
        if match is None:
            raise ValueError("no stat line")
        mode, size, modified, changed, inode, device, said_modified, said_changed = match.groups()
        kind = _KINDS.get(int(mode, 16) >> 12, "?")
        fractions = [_FRACTION.search(said) for said in (said_modified, said_changed)]
        coarse = coarse or None in fractions
        modified_ns, changed_ns = (
            int(seconds) * 10**9 + (int(part[1]) if part else 0)
            for seconds, part in zip((modified, changed), fractions, strict=True)
        )
        target = _text(targets.get(name, b"")) if kind == "l" else None
        numbers = int(size), modified_ns, changed_ns, int(inode), int(device)
        entries.append(Entry(_below(name), kind, *numbers, target))
    return entries, coarse


def _nanoseconds(said: bytes) -> int:
    """``1795991232.9312768100``: whole nanoseconds, without a float's loss."""
    whole, _, part = said.partition(b".")
    fraction = int(part[:9].ljust(9, b"0")) if part else 0
    seconds = int(whole)
    return seconds * 10**9 - fraction if whole.startswith(b"-") else seconds * 10**9 + fraction


def _below(path: bytes) -> str:
    if path == b".":
        return ""
    parts = path.split(b"/")
    if parts[0] != b"." or b".." in parts or b"" in parts:  # find never says so; a box that lies might
        raise ValueError("not below the folder")
    return _text(path[2:])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _too_many(box: str, folder: str) -> Failure:
    return Failure(
        f"{folder} on {box} holds more than {MAX_FILES:,} files.",
        means="They can't be accounted for one by one.",
        do="Pack or remove the small ones, or name a deeper folder.",
        code="too-many-files",
    )

"""What a roster needs of a box besides its listing: real paths, short texts, open files, counts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tui.box.transport import Script, Transport
from tui.custody.leftovers import Counted
from tui.model.failure import Exit, Failure

_TIMEOUT_S = 300.0
_TEXT_CAP = 8 << 20
_TEXTS_CAP = 64 << 20
_FD_CAP = 64 << 20

# Each argument: its real path, or "" where it is not there, or "-" where this login may not enter it.
_REAL = r"""
unset CDPATH
for p do
  case $p in '~') p=$HOME ;; '~/'*) p=$HOME/${p#'~/'} ;; /*) ;; *) p=./$p ;; esac
  if (cd "$p" 2>/dev/null && pwd -P); then :; elif [ -e "$p" ]; then echo -; else echo; fi
  printf '\0'
done
"""

# $1 folder, $2 bytes of NUL-delimited names on stdin, $3 most bytes of each.
_TEXTS = r"""
unset CDPATH
cd "$1" || exit 66
head -c "$2" | xargs -0 -n 1 /bin/sh -c '
if [ -f "$2" ] && [ ! -L "$2" ] && [ -r "$2" ]; then
  n=$(head -c "$1" "$2" | wc -c)
  printf "%s\0%s\0" "$2" "$((n))"
  head -c "$n" "$2"
fi
exit 0' rgt "$3"
"""

_FDS = r"""
LC_ALL=C; export LC_ALL
[ -d /proc/self/fd ] || exit 67
hidden=0
for d in /proc/[0-9]*; do
  [ -r "$d/fd" ] && continue
  x=; IFS= read -r x 2>/dev/null <"$d/cmdline"
  [ -n "$x" ] && hidden=$((hidden + 1))
done 2>/dev/null
printf '%s\0' "$hidden"
if find . -maxdepth 0 -printf '' 2>/dev/null; then
  find /proc/[0-9]*/fd -maxdepth 1 -type l -printf '%p\0%l\0' 2>/dev/null
else
  find /proc/[0-9]*/fd -maxdepth 1 -type l -print0 2>/dev/null | xargs -0 -n 100 /bin/sh -c '
for l do t=$(readlink -n "$l" 2>/dev/null; echo .) && printf "%s\0%s\0" "$l" "${t%.}"; done' rgt
fi
exit 0
"""

# Each argument PID/fd/N: what it was opened for, and who that is.
_FLAGS = r"""
for a do
  p=${a%%/*} n=${a##*/} f= c=
  while read -r k v; do case $k in flags:) f=$v ;; esac; done 2>/dev/null <"/proc/$p/fdinfo/$n"
  IFS= read -r c 2>/dev/null <"/proc/$p/comm"
  printf '%s\0%s\0%s\0' "$a" "$f" "$c"
done
"""

# Each argument: files below it, KiB on disk, then the large files with a checkpoint's name.
_COUNT = r"""
LC_ALL=C; export LC_ALL
for d do
  printf '%s\0' "$d"
  find "$d" -xdev -type f -print0 2>/dev/null | tr -dc '\000' | wc -c
  printf '\0'
  du -skx "$d" 2>/dev/null
  printf '\0'
  find "$d" -xdev -type f -size +2048 \( -name '*.pt' -o -name '*.pth' -o -name '*.ckpt' -o -name '*.h5' \
    -o -name '*.safetensors' -o -name '*.onnx' -o -name '*.gguf' -o -name '*.keras' \) -print0 2>/dev/null
  printf '\0'
done
exit 0
"""

_OCTAL = re.compile(rb"[0-7]{1,12}")
_WRITING = os.O_WRONLY | os.O_RDWR
_FD = re.compile(rb"/proc/(\d+)/fd/(\d+)\Z")


async def real_folders(transport: Transport, paths: Sequence[str]) -> dict[str, str | None]:
    """Where folders really lie: "" for one that this login may not enter, None for one that is not there.

    Args:
        paths: absolute, relative to the login directory, or beginning with ``~/``.

    Raises:
        LinkLost, SessionsExhausted, TimeoutError; Failure when the answer can't be read.
    """
    if not paths:
        return {}
    done = await transport.run(Script(_REAL, tuple(paths), why="where folders really lie"), timeout=60)
    answers = [part.removesuffix(b"\n") for part in done.stdout.split(b"\0")[:-1]]
    if len(answers) != len(paths):
        raise _unreadable(transport.name, "where folders lie")
    return {path: _real(answer) for path, answer in zip(paths, answers, strict=True)}


def _real(answer: bytes) -> str | None:
    if answer == b"-":
        return ""
    return answer.decode("utf-8", "surrogateescape") if answer.startswith(b"/") else None


async def read_texts(transport: Transport, top: str, paths: Sequence[str]) -> Mapping[str, bytes]:
    """The contents of small files, as far as they can be read; at most 8 MiB of each and 64 MiB of all."""
    if not paths:
        return {}
    names = b"".join(f"./{path}".encode("utf-8", "surrogateescape") + b"\0" for path in paths)
    script = Script(_TEXTS, (top, str(len(names)), str(_TEXT_CAP)), why="read what belongs together")
    done = await transport.run(script, stdin=names, timeout=_TIMEOUT_S, limit=_TEXTS_CAP)
    found: dict[str, bytes] = {}
    at = 0
    while at < len(done.stdout):
        name, size, _ = (
            (*done.stdout[at:].split(b"\0", 2), b"", b"")[:3] if at == 0 else _head(done.stdout, at)
        )
        if not size.isdigit():
            break
        start = at + len(name) + len(size) + 2
        body = done.stdout[start : start + int(size)]
        if len(body) == int(size) < _TEXT_CAP:
            found[name[2:].decode("utf-8", "surrogateescape")] = body
        at = start + int(size)
    return found


def _head(raw: bytes, at: int) -> tuple[bytes, bytes]:
    first = raw.find(b"\0", at)
    second = raw.find(b"\0", first + 1)
    return raw[at:first], raw[first + 1 : second]


class OpenFile(NamedTuple):
    """A file that a process holds open for writing. `path` is absolute."""

    path: str
    pid: int
    program: str
    deleted: bool


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """Who writes where. `hidden` processes could not be looked at; None where nothing could be."""

    held: tuple[OpenFile, ...]
    hidden: int | None


async def open_files(transport: Transport, below: Sequence[str]) -> OpenFiles:
    """Files below these real folders that any process this login can see has open for writing."""
    done = await transport.run(Script(_FDS, why="who has files open"), timeout=_TIMEOUT_S, limit=_FD_CAP)
    fields = done.stdout.split(b"\0")
    if done.exit == 67 or done.truncated or not fields[0].isdigit():
        return OpenFiles((), None)
    inside = tuple(top.rstrip("/").encode("utf-8", "surrogateescape") + b"/" for top in below)
    held = {
        f"{match[1].decode()}/fd/{match[2].decode()}": target
        for link, target in zip(fields[1::2], fields[2::2], strict=False)
        if target.startswith(inside) and (match := _FD.match(link))
    }
    if not held:
        return OpenFiles((), int(fields[0]))
    return OpenFiles(tuple(await _writing(transport, held)), int(fields[0]))


async def _writing(transport: Transport, held: Mapping[str, bytes]) -> list[OpenFile]:
    keys = list(held)
    found: list[OpenFile] = []
    for at in range(0, len(keys), 500):
        lot = tuple(keys[at : at + 500])
        done = await transport.run(Script(_FLAGS, lot, why="what files are open for"), timeout=60)
        fields = done.stdout.split(b"\0")
        for key, flags, program in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
            if not _OCTAL.fullmatch(flags) or not int(flags, 8) & _WRITING or key.decode() not in held:
                continue
            target = held[key.decode()]
            found.append(
                OpenFile(
                    target.removesuffix(b" (deleted)").decode("utf-8", "surrogateescape"),
                    int(key.partition(b"/")[0]),
                    program.decode("utf-8", "replace"),
                    target.endswith(b" (deleted)"),
                )
            )
    return found


async def count_system(transport: Transport, folders: Sequence[str]) -> tuple[list[Counted], list[str]]:
    """Count folders of the operating system, and the paths of large files in them named like checkpoints."""
    if not folders:
        return [], []
    script = Script(_COUNT, tuple(folders), why="count the system's files")
    done = await transport.run(script, timeout=_TIMEOUT_S, limit=_FD_CAP)
    fields = done.stdout.split(b"\0")
    counted, models, at = [], [], 0
    while at + 3 < len(fields):
        files, blocks = fields[at + 1].strip(), fields[at + 2].split()
        if not files.isdigit() or not blocks or not blocks[0].isdigit():
            raise _unreadable(transport.name, "the system's files")
        path = fields[at].decode("utf-8", "surrogateescape")
        counted.append(Counted(path, int(files), int(blocks[0]) * 1024))
        at += 3
        while at < len(fields) and fields[at]:
            models.append(fields[at].decode("utf-8", "surrogateescape"))
            at += 1
        at += 1
    return counted, models


def _unreadable(box: str, what: str) -> Failure:
    return Failure(
        f"{box}'s answer about {what} can't be read.",
        means="Nothing is concluded from it.",
        do="Try again.",
        exit=Exit.UNKNOWN,
        code="listing-unreadable",
    )

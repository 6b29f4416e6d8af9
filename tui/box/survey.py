"""One walk over one mount: what lies there, who writes, and what looks as if it came back by itself.

Read-only. Fields are ended by NUL, for a file name may hold any other byte: nobody who names a file can make
up a row. What is told about a candidate is checked on the box by its content, not by its name alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from tui.box.parsers.quota import most_pressing, read_quota
from tui.box.transport import Completed, Script, Transport
from tui.model.failure import Exit, Failure
from tui.model.reclaim import Room
from tui.triage.ladder import Found, Survey

DEADLINE_S = 150.0
OUTPUT = 2 << 20
FIELDS = {"M": 3, "B": 2, "I": 2, "Q": 1, "D": 2, "F": 2, "C": 5, "O": 2, "W": 3, "R": 2, "U": 1, "E": 0}
"""Fields of each kind of row."""

_ROOM = r"""
mount=$1
say() { printf '%s\0' "$@"; }
[ -d "$mount" ] || { say U 'there is no such folder'; exit 2; }

set -- $(df -Pk "$mount" 2>/dev/null | tail -n 1)
root=$6
case $# in 6) say B "$3" "$2" ;; *) root=$mount; say U 'df gave no figures' ;; esac
fstype=$(awk -v at="$root" '$2 == at { t = $3 } END { print t }' /proc/mounts 2>/dev/null)
say M "${1:-}" "$fstype" "$root"
set -- $(df -Pi "$mount" 2>/dev/null | tail -n 1)
case $2,$3 in *[!0-9,]* | , | 0,*) ;; *) say I "$3" "$2" ;; esac
"""

_WALK = r"""
exec 3>&1
nicely=; command -v nice >/dev/null && nicely='nice -n 19'
if command -v timeout >/dev/null; then
  walk() { timeout 30 $nicely "$@" 2>/dev/null || say U "$word" >&3; }
else walk() { $nicely "$@" 2>/dev/null || say U "$word" >&3; }; fi
command -v quota >/dev/null && say Q "$(quota -w 2>/dev/null)"

word='sizes of folders: some could not be read, or there was no time'
walk du -xk "$mount" | tr -d '\000' | sort -rn | head -n 60 | while IFS='	' read -r kib path; do
  case $kib in *[!0-9]* | '') ;; *) say D "$kib" "$path" ;; esac
done
word='counts of files: some folders could not be read, or there was no time'
walk find "$mount" -xdev ! -type d -print | tr -d '\000' |
  awk '/^\// { sub(/\/[^\/]*$/, ""); n[$0]++ } END { for (d in n) printf "%d\t%s\n", n[d], d }' |
  sort -rn | head -n 60 | while IFS='	' read -r count path; do say F "$count" "$path"; done
word='files written lately: some folders could not be read, or there was no time'
walk find "$mount" -xdev -type f -mmin -10 -print | tr -d '\000' |
  awk '/^\// { sub(/\/[^\/]*$/, ""); n[$0]++ } END { for (d in n) printf "%d\t%s\n", n[d], d }' |
  sort -rn | head -n 60 | while IFS='	' read -r count path; do say R "$count" "$path"; done
"""

_CLASSIFY = r"""
say() { printf "%s\0" "$@"; }
each="{"; each="$each}"  # find looks for those two in every argument, this text too
only() { [ -z "$(find "$1" -xdev ! -type d ! -name "$2" -print 2>/dev/null | head -n 1)" ]; }
for p do
  kind=
  case $p in
    */__pycache__) only "$p" "*.py[co]*" && kind=pycache ;;
    */CACHEDIR.TAG)
      [ "$(head -c 43 "$p")" = "Signature: 8a477f597d28d172789f06886806bc55" ] && kind=tagged p=${p%/*} ;;
    */.cache/pip)
      own="http|http-v2|wheels|selfcheck|CACHEDIR.TAG"
      [ -z "$(ls -A "$p" | grep -v -x -E "$own")" ] && kind=pip ;;
    */models--* | */datasets--*)
      [ -d "$p/blobs" ] && [ -d "$p/refs" ] && [ -d "$p/snapshots" ] && kind=hf ;;
    */pkgs) [ -f "$p/urls.txt" ] && [ -d "$p/cache" ] && kind=conda ;;
    */.triton/cache | */.nv/ComputeCache) kind=triton ;;
    */.Trash-[0-9]*) [ -d "$p/files" ] && kind=trash ;;
    */core | */core.[0-9]*)
      head=$(od -An -tx1 -N 18 "$p" 2>/dev/null | tr -d " \n" | cut -c 1-8,33-36)
      [ "$head" = 7f454c460400 ] && kind=core ;;
  esac
  [ -n "$kind" ] || continue
  id=$(stat -c %d:%i:%Y "$p") || continue
  files=$(find "$p" -xdev -print | wc -l)
  # What is also linked from elsewhere takes its room with or without this name.
  if [ -n "$(find "$p" -xdev -type f -links +1 -print | head -n 1)" ]; then
    kib=$(find "$p" -xdev -type f -links 1 -exec du -k "$each" + | awk "{ n += \$1 } END { print n + 0 }")
  else kib=$(du -xsk "$p" 2>/dev/null | cut -f 1); fi
  say C "$kind" "$id" "${kib:-0}" "$((files))" "$p"
done
"""

_FIND = r"""
word='caches: some folders could not be read, or there was no time'
walk find "$mount" -xdev \( -type d \( -name __pycache__ -o -path '*/.cache/pip' -o -name 'models--*' \
  -o -name 'datasets--*' -o -name pkgs -o -path '*/.triton/cache' -o -path '*/.nv/ComputeCache' \
  -o -name '.Trash-[0-9]*' \) -prune \
  -o -type f \( -name CACHEDIR.TAG -o -name core -o -name 'core.[0-9]*' \) \) -exec sh -c "$classify" sh {} +
"""

_HOLDERS = r"""
unread=0
for p in /proc/[0-9]*; do
  pid=${p#/proc/}
  [ "$pid" != $$ ] || continue
  out=$(ls -l "$p/fd" 2>/dev/null) || { [ -e "$p" ] && unread=$((unread + 1)); continue; }
  case $out in *" -> ${mount%/}/"*) ;; *) out= ;; esac
  [ -z "$out" ] || for fd in "$p/fd"/*; do
    at=$(readlink "$fd" 2>/dev/null) || continue
    case $at in "${mount%/}"/*) ;; *) continue ;; esac
    say O "$pid" "$at"
    flags=$(sed -n 's/^flags:[^0-9]*//p' "$p/fdinfo/${fd##*/}" 2>/dev/null)
    case $flags in *[12]) say W "$pid" "$at" "$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null | cut -c 1-120)" ;; esac
  done
  case $mount in /) continue ;; esac
  grep -F " ${mount%/}/" "$p/maps" 2>/dev/null | sed 's:^[^/]*::' | sort -u | head -n 60 |
    while IFS= read -r at; do say O "$pid" "$at"; done
done
[ "$unread" = 0 ] || say U "processes that could not be read: $unread; what they use is not known"
say E
"""

SURVEY = f"classify='{_CLASSIFY}'\n{_ROOM}{_WALK}{_FIND}{_HOLDERS}".lstrip()
assert "'" not in _CLASSIFY, "the classifier travels in single quotes"


async def survey(transport: Transport, path: str) -> Survey:
    """Walk over the file system below `path`.

    Raises:
        Failure: there is no such folder.
        LinkLost, SessionsExhausted, TimeoutError.
    """
    script = Script(SURVEY, (path,), "survey of storage: what lies there and what comes back by itself")
    done = await transport.run(script, timeout=DEADLINE_S, limit=OUTPUT)
    if done.exit == 2:
        raise Failure(f"There is no folder {path} on {transport.name}.", exit=Exit.UNKNOWN, code="no-folder")
    return read_survey(path, done)


async def room_on(transport: Transport, path: str) -> Room:
    """How full the file system below `path` is now. Raises LinkLost, SessionsExhausted, TimeoutError."""
    script = Script(_ROOM.lstrip(), (path,), "how full the file system is")
    return room_of(read_survey(path, await transport.run(script)))


def room_of(seen: Survey) -> Room:
    """What a survey was told by the file system itself."""
    return Room(seen.used_bytes, seen.size_bytes, seen.used_inodes, seen.inodes)


def read_survey(path: str, done: Completed) -> Survey:
    """The rows of the script's output. Rows of an unknown form end the reading, and it is said."""
    rows = list(_rows(done.stdout.split(b"\0")[:-1]))
    by: dict[str, list[list[str]]] = {kind: [] for kind in FIELDS}
    for kind, *fields in rows:
        by[kind].append(fields)
    source, fstype, mount = by["M"][0] if by["M"] else ("", "", path)
    blocks, inodes = _pair(by["B"]), _pair(by["I"])
    quota = most_pressing(read_quota(by["Q"][0][0])) if by["Q"] else None
    return Survey(
        mount=mount or path,
        source=source,
        fstype=fstype,
        used_bytes=None if blocks is None else blocks[0] * 1024,
        size_bytes=None if blocks is None else blocks[1] * 1024,
        used_inodes=inodes[0] if inodes else None,
        inodes=inodes[1] if inodes else None,
        quota_used=quota.used_bytes if quota else None,
        quota_limit=(quota.hard_bytes or quota.soft_bytes) if quota else None,
        by_bytes=_sized(by["D"], lambda kib: kib * 1024),
        by_files=_sized(by["F"], lambda count: count),
        found=tuple(
            Found(kind, at, identity, int(kib) * 1024, int(files))
            for kind, identity, kib, files, at in by["C"]
            if kib.isdecimal() and files.isdecimal()
        ),
        open_paths=tuple((at, int(pid)) for pid, at in by["O"]),
        writers=tuple((int(pid), at, command.strip()) for pid, at, command in by["W"]),
        recent=_sized(by["R"], lambda count: count),
        unread=tuple(dict.fromkeys(text for (text,) in by["U"])),
        whole=bool(by["E"]) and not done.truncated,
    )


def _rows(fields: list[bytes]) -> Iterator[list[str]]:
    words = [os.fsdecode(field) for field in fields]
    place = 0
    while place < len(words) and words[place] in FIELDS:
        count = FIELDS[words[place]] + 1
        if place + count > len(words):
            return
        yield words[place : place + count]
        place += count


def _pair(rows: list[list[str]]) -> tuple[int, int] | None:
    if not rows or not all(word.isdecimal() for word in rows[0]):
        return None
    return int(rows[0][0]), int(rows[0][1])


def _sized(rows: list[list[str]], scale: Callable[[int], int]) -> tuple[tuple[str, int], ...]:
    return tuple((at, scale(int(count))) for count, at in rows if count.isdecimal())

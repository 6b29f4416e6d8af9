"""Brings a sealed export to a shared file system, on the box itself; it is said to be there once proven.

Copied beside its place, hashed on both sides, renamed in one go. A copy that differs gets no name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tui.box.transport import Completed, Script, Transport
from tui.model.failure import Exit, Failure
from tui.model.text import SafeText, amount, safe

_COPY_S = 6 * 3600.0
_HASH_S = 3600.0

# $1 the export, $2 the folder it goes to, $3 name. Tells the folder as resolved, whether both are on one
# device, what is free there and what is needed, and what stands in the way.
_BEFORE = r"""
LC_ALL=C; export LC_ALL
case $2 in '~/'*) to=$HOME/${2#??} ;; *) to=$2 ;; esac
[ -d "$1" ] || { echo unsealed; exit 0; }
d=$to
while [ ! -d "$d" ]; do case $d in */*) d=${d%/*} ;; *) d= ;; esac; d=${d:-/}; done
[ -w "$d" ] || { echo unwritable; exit 0; }
echo "to $to"
a=$(df -P "$1" | awk 'NR == 2 { print $1, $6 }') b=$(df -P "$d" | awk 'NR == 2 { print $1, $6 }')
[ "$a" = "$b" ] && echo same || echo other
df -Pk "$d" | awk 'NR == 2 { print "free", $4 }'
du -sk "$1" | awk '{ print "need", $1 }'
[ -e "$to/$3" ] && echo there
exit 0
"""

# $1 the export, $2 the folder, $3 name. Files of the same size are kept: the hashes tell later.
_COPY = r"""
umask 022
part=$2/.partial-$3
mkdir -p -- "$part" && cd -- "$1" || exit 3
find . -type d -exec sh -c 'p=$0; for d; do mkdir -p -- "$p/$d" || exit 255; done' "$part" {} + || exit 4
find . -type f -exec sh -c '
p=$0
for f; do
  [ -f "$p/$f" ] && [ "$(wc -c <"$p/$f")" -eq "$(wc -c <"$f")" ] && continue
  cp -p -- "$f" "$p/$f.copying" && mv -f -- "$p/$f.copying" "$p/$f" || exit 255
done' "$part" {} + || exit 5
sync
"""

# $1 folder: ``hash path`` of every file in it, ended by NUL.
_SUMS = r"""
cd -- "$1" || exit 3
find . -type f -exec sh -c '
for f; do
  if command -v sha256sum >/dev/null 2>&1; then h=$(sha256sum <"$f")
  elif command -v openssl >/dev/null 2>&1; then h=$(openssl dgst -sha256 -r <"$f")
  else h=$(shasum -a 256 <"$f"); fi
  printf "%.64s %s\0" "$h" "${f#./}"
done' rgt {} +
"""

# $1 the folder, $2 name. One rename, never into a folder that is there.
_NAME = r"""
cd -- "$1" || exit 3
[ ! -e "$2" ] || exit 9
if mv -T -- ".partial-$2" "$2" 2>/dev/null; then exit 0; fi
[ ! -e "$2" ] && mv -- ".partial-$2" "$2"
"""

# $1 folder of the copy. Files that went bad come in, one a line, and go.
_DROP = 'cd -- "$1" && while IFS= read -r f; do rm -f -- "$f"; done'


@dataclass(frozen=True, slots=True)
class Gathered:
    """A copy that was proven. `same_disk` warns that both lie on one file system."""

    folder: str
    files: int
    was_there: bool
    same_disk: bool
    digests: tuple[tuple[str, str], ...]


async def gather(
    box: Transport, root: str, run: str, to: str, told: Callable[[SafeText], None] = lambda _line: None
) -> Gathered:
    """Copy the sealed export of a run into a folder; the same call goes on after a cut.

    Args:
        root: the project's folder on the box.
        to: absolute, or below ``~/``; the copy is named `run` there.

    Raises:
        Failure: it is not sealed, does not fit, or the copy is not the same.
        LinkLost, TimeoutError: ask again.
    """
    export = f"{root}/export/{run}"
    place, same, there = await _before(box, export, to, run)
    wanted = await _sums(box, export)
    if there:
        if await _sums(box, f"{place}/{run}") != wanted:
            raise Failure(
                f"{safe(place, 200)}/{run} is there already and holds other bytes.",
                means="Nothing was written over.",
                do="Give another --to, or look what lies there.",
                code="other-copy",
            )
        return _done(place, run, wanted, was_there=True, same=same)
    told(safe(f"copying {len(wanted)} files to {place}"))
    await _copied(box, export, place, run, wanted, told)
    named = await box.run(Script(_NAME, (place, run), why="name the copy"), timeout=60)
    if named.exit != 0:
        raise Failure(f"The copy could not be named: {_last(named)}.", code="copy-unnamed")
    return _done(place, run, wanted, was_there=False, same=same)


async def _copied(
    box: Transport,
    export: str,
    place: str,
    run: str,
    wanted: dict[str, str],
    told: Callable[[SafeText], None],
) -> None:
    """Copy until both sides have the same hashes; what went bad is copied once more. Raises Failure."""
    for last in (False, True):
        copied = await box.run(Script(_COPY, (export, place, run), why="copy the export"), timeout=_COPY_S)
        if copied.exit != 0:
            raise Failure(
                f"The copy stopped: {_last(copied)}.", means="Nothing has the name yet.", code="copy"
            )
        found = await _sums(box, f"{place}/.partial-{run}")
        if found == wanted:
            return
        odd = sorted(path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))
        body = "".join(f"{path}\n" for path in odd if "\n" not in path).encode("utf-8", "surrogateescape")
        drop = Script(_DROP, (f"{place}/.partial-{run}",), why="drop what went bad")
        await box.run(drop, stdin=body)
        if last:
            raise Failure(
                f"The copy in {safe(place, 200)} is not the same: {safe(odd[0], 200)}.",
                means="It has no name; the export is as it was.",
                do="Look at that file system.",
                code="copy-differs",
            )
        told(safe(f"{len(odd)} files arrived damaged or extra; once more"))


async def _before(box: Transport, export: str, to: str, run: str) -> tuple[str, bool, bool]:
    if not to.startswith(("/", "~/")) or "\n" in to:
        raise Failure("--to takes an absolute folder of the box, or ~/….", exit=Exit.USAGE)
    done = await box.run(Script(_BEFORE, (export, to.rstrip("/"), run), why="can it go there?"), timeout=300)
    told = done.stdout.decode("utf-8", "surrogateescape").split("\n")
    said = {topic: rest for topic, _, rest in (line.partition(" ") for line in told)}
    if "unsealed" in said:
        raise Failure(f"{run} has no sealed export.", do=f"Close it first: rgt close {run}", code="unsealed")
    if "unwritable" in said or "to" not in said:
        raise Failure(f"{safe(to, 200)} cannot be written on the box.", means="Nothing was copied.")
    free, need = said.get("free", ""), said.get("need", "")
    if "there" not in said and free.isdecimal() and need.isdecimal() and int(free) < int(need) * 1.02:
        text = f"{amount(int(free) * 1024)} free, {amount(int(need) * 1024)} needed"
        raise Failure(f"{safe(to, 200)} is too full: {text}.", means="Nothing was copied.", code="no-room")
    return said["to"], "same" in said, "there" in said


async def _sums(box: Transport, folder: str) -> dict[str, str]:
    done = await box.run(Script(_SUMS, (folder,), why="hash the copy"), timeout=_HASH_S, limit=64 << 20)
    if done.exit != 0 or done.truncated:
        raise Failure(f"{safe(folder, 200)} could not be hashed: {_last(done)}.", code="unhashed")
    found = {}
    for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0"):
        digest, _, path = entry.partition(" ")
        if path:
            found[path] = digest
    return found


def _done(place: str, run: str, wanted: dict[str, str], *, was_there: bool, same: bool) -> Gathered:
    return Gathered(f"{place}/{run}", len(wanted), was_there, same, tuple(sorted(wanted.items())))


def _last(done: Completed) -> str:
    return safe(done.stderr.decode("utf-8", "replace").strip().split("\n")[-1], 200) or f"status {done.exit}"

"""SHA-256 of many files on a box, with the fastest tool it has, on all its cores, results as they come.

Measured on two cores with SHA-NI: openssl hashes 1.8 GB/s a core, Python's hashlib 2.0, coreutils without
libcrypto 0.56, BusyBox 0.29; but a newer coreutils may be the fastest, so the tools race for it on the box:
all hash the same 32 MiB, who answers wrongly is out, and who took the least CPU wins, busy box or not.
Small files go in lots, because a process costs more than a file; large ones one by one, their position told.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tui.box.transport import Channel, LinkLost, Script, Transport
from tui.custody.codes import CODES
from tui.model.failure import Exit, Failure
from tui.model.text import safe

ZEROS = 32 << 20
ZEROS_SHA256 = "83ee47245398adee79bd9c0a8bc57b821e92aba10f5f9ade8a5d1fae4d8c4302"
"""Of 32 MiB of zeros: what every tool has to answer in the race."""

LARGE = 32 << 20
"""From this size on a file is hashed by itself."""

_TOLD_FROM = 256 << 20  # from this size on the position inside the file is told
_SMALL = 64 << 10
_SMALL_LOT = 2000
_SMALL_BLOCK = 3000
_MIDDLE_LOT = 16
_MOST_CORES = 64
_STALL_S = 180.0
_CHUNK = 64 << 10
_LONGEST_LINE = 3900  # with the digest below PIPE_BUF, so that lines of parallel workers never mix

_PYTHON = r"""import hashlib,os,sys
def h(f):
 d=hashlib.sha256()
 while True:
  b=f.read(1<<20)
  if not b:return d.hexdigest()
  d.update(b)
o=sys.stdout.buffer
if len(sys.argv)<2:o.write(h(sys.stdin.buffer).encode()+b" *-\n")
for n in sys.argv[1:]:
 try:
  with open(n,"rb",buffering=0) as f:o.write(h(f).encode()+b" *"+os.fsencode(n)+b"\n")
 except OSError as e:sys.stderr.write(str(e)+"\n")
"""

# $1 tool, $2 the Python program, then its arguments: becomes the command line.
_TOOL = r"""t=$1 p=$2; shift 2
case $t in
openssl) set -- openssl dgst -sha256 -r "$@" ;;
python3) set -- python3 -c "$p" "$@" ;;
busybox) set -- busybox sha256sum "$@" ;;
*) set -- sha256sum "$@" ;;
esac
"""

# $1 the tool chooser, $2 the Python program, $3 bytes. For each tool its name and its answer, then what
# `times` says: the shell's own CPU on one line, its children's on the next.
_RACE = r"""
LC_ALL=C; export LC_ALL
n=$(nproc 2>/dev/null || grep -c '^processor' /proc/cpuinfo 2>/dev/null) || n=1
q= p=
if read -r q p 2>/dev/null </sys/fs/cgroup/cpu.max; then :
elif read -r q 2>/dev/null </sys/fs/cgroup/cpu/cpu.cfs_quota_us; then
  read -r p 2>/dev/null </sys/fs/cgroup/cpu/cpu.cfs_period_us
fi
case $q in *[!0-9]*|'') ;; *) c=$(((q + p - 1) / p)); [ "$c" -ge 1 ] && [ "$c" -lt "$n" ] && n=$c ;; esac
printf 'cores %s\n' "${n:-1}"
printf '1\0' | xargs -0 -P 2 true 2>/dev/null && echo 'parallel yes'
[ "$(echo x | awk '{print; fflush()}' 2>/dev/null)" = x ] && echo 'awk yes'
[ -r /proc/self/fdinfo/0 ] && echo 'fdinfo yes'
for t in openssl sha256sum python3 busybox; do
  command -v "$t" >/dev/null 2>&1 || continue
  ( h=$(head -c "$3" /dev/zero | /bin/sh -c "$1"'"$@"' rgt "$t" "$2" 2>/dev/null)
    echo "tool $t ${h%% *}"; times )
done
"""

_LULL = r"""
LC_ALL=C; export LC_ALL; unset CDPATH
cd "$1" || exit 66
lull=
command -v nice >/dev/null 2>&1 && lull='nice -n 19'
command -v ionice >/dev/null 2>&1 && ionice -c 3 true 2>/dev/null && lull="$lull ionice -c 3"
"""

# $1 folder, $2 bytes of names on stdin, $3 a lot, $4 workers (0: no awk), $5 tool, $6 chooser, $7 Python,
# $8 bytes that awk gathers. Tools write blocks, which would mix between workers in the middle of a line; awk
# writes whole lines, never more at once than a pipe takes in one piece.
_LOTS = (
    _LULL
    + r"""
RGT_BLOCK=$8; export RGT_BLOCK
if [ "$4" = 0 ]; then
  head -c "$2" | $lull xargs -0 -n "$3" /bin/sh -c "$6"'"$@" 2>/dev/null; exit 0' rgt "$5" "$7"
else
  head -c "$2" | $lull xargs -0 -n "$3" -P "$4" /bin/sh -c \
    "$6"'"$@" 2>/dev/null | awk -v most="$RGT_BLOCK" "
function out() { printf \"%s\", held; fflush(); held = \"\"; n = 0 }
{
  size = length(\$0) + 1; if (n + size > 4000) out()
  held = held \$0 \"\n\"; n += size; if (n >= most) out()
}
END { out() }"; exit 0' rgt "$5" "$7"
fi
echo Z
"""
)

# $1 folder, $2 bytes of (index, told, name) on stdin, $3 workers, $4 tool, $5 chooser, $6 Python, $7 what
# runs for one file. The tool takes the place of a shell whose process id the teller knows; the teller must
# not hold the pipe that is waited for.
_SINGLES = (
    _LULL
    + r"""
INNER=$7 NL='
'
export INNER NL
head -c "$2" | $lull xargs -0 -n 3 -P "$3" /bin/sh -c '
i=$3 w=$4 f=$5; set -- "$1" "$2"
'"$5"'
exec 4>&1
h=$(/bin/sh -c "$INNER" rgt "$f" "$w" "$i" "$@")
s=${h%%"$NL"*} l=${h##*"$NL"}
[ "$s" = 0 ] || kill "$s" 2>/dev/null
case $l in
????????????????????????????????????????????????????????????????\ *) printf "H %s %s\n" "$i" "${l%% *}" ;;
*) set -f; IFS=$NL; set -- $h; shift; IFS=" "; printf "E %s %s\n" "$i" "$*" ;;
esac
exit 0' rgt "$4" "$6"
echo Z
"""
)

_INNER = r"""f=$1 w=$2 i=$3; shift 3
if [ "$w" = 1 ]; then
  ( while sleep 1 4>&-; do
      o=0; while read -r k v; do case $k in pos:) o=$v; break ;; esac; done <"/proc/$$/fdinfo/0"
      printf "P %s %s\n" "$i" "$o" >&4
    done ) >/dev/null 2>&1 &
  echo "$!"
else
  echo 0
fi
[ -r "$f" ] || { echo "this login may not read it"; exit 1; }
exec "$@" <"$f" 2>&1 4>&-
"""

_LINE = re.compile(rb"([0-9a-f]{64}) [ *]\./(.+)\Z", re.DOTALL)
_SINGLE = re.compile(rb"([HPE]) (\d{1,9}) (.*)\Z", re.DOTALL)
_SYSTEM_ERROR = re.compile(rb"error:8[0-9A-F]{7}:system library:[^:]*:([^:]+):")  # openssl's way to say errno
_HEX = re.compile(rb"[0-9a-f]{64}\Z")
_TIMES = re.compile(r"(\d+)m(\d+(?:\.\d+)?)s")
_ESCAPED = re.compile(r"[\n\r\\]")


class Job(NamedTuple):
    """A file to be hashed; `path` is relative to the folder."""

    path: str
    size: int


class Hashed(NamedTuple):
    """A file was hashed."""

    path: str
    sha256: str


class Position(NamedTuple):
    """So many bytes of a large file have been read."""

    path: str
    bytes: int


class Unreadable(NamedTuple):
    """A file could not be read, and what the tool said."""

    path: str
    said: str


Event = Hashed | Position | Unreadable


@dataclass(frozen=True, slots=True)
class Hasher:
    """What a box hashes with: the winner of the race."""

    tool: str
    workers: int
    has_awk: bool
    tells_position: bool


async def race(transport: Transport) -> Hasher:
    """Let the tools of a box compete.

    Raises:
        Failure: none of them gave the right answer (code ``no-hash-tool``).
        LinkLost, SessionsExhausted, TimeoutError.
    """
    script = Script(_RACE, (_TOOL, _PYTHON, str(ZEROS)), why="which tool hashes fastest here")
    done = await transport.run(script, timeout=60)
    facts, tools = _answers(done.stdout.decode("ascii", "replace").splitlines())
    if not tools:
        raise Failure(
            f"{transport.name} has no tool that computes SHA-256 rightly.",
            means="Its files can't be vouched for.",
            do=CODES["no-hash-tool"].clears,
            exit=Exit.UNKNOWN,
            code="no-hash-tool",
        )
    cores = int(facts["cores"]) if facts.get("cores", "").isdigit() else 1
    workers = min(max(cores, 1), _MOST_CORES) if "parallel" in facts else 1
    return Hasher(_winner(tools), workers, "awk" in facts, "fdinfo" in facts)


def _winner(tools: Sequence[tuple[float, str]]) -> str:
    """The first that is about as good as the best: they race in the order of what starting them costs.

    CPU time is told in ticks of 10 ms, and a lot of small files is a start each time.
    """
    best = min(took for took, _ in tools)
    return next(name for took, name in tools if took <= 1.25 * best + 0.01)


def _answers(lines: Sequence[str]) -> tuple[dict[str, str], list[tuple[float, str]]]:
    """What the box can do, and the tools that answered rightly with the CPU seconds they took."""
    facts: dict[str, str] = {}
    tools = []
    for at, line in enumerate(lines):
        kind, _, rest = line.partition(" ")
        name, _, answer = rest.partition(" ")
        if kind != "tool":
            facts[kind] = rest
        elif answer == ZEROS_SHA256:
            took = _TIMES.findall(lines[at + 2]) if at + 2 < len(lines) else []
            tools.append((sum(60 * int(m) + float(s) for m, s in took) if took else float("inf"), name))
    return facts, tools


async def hash_files(
    transport: Transport, top: str, jobs: Sequence[Job], hasher: Hasher
) -> AsyncGenerator[Sequence[Event], None]:
    """Hash files below `top`; every file ends as `Hashed` or `Unreadable`, a few at a time as they are done.

    A file's digest is of the bytes that were there while it was read: whether they stood still is for the
    caller to see.

    Raises:
        Failure: the box ended the work early, or said nothing for three minutes.
        LinkLost, SessionsExhausted.
    """
    alone = [job for job in jobs if job.size >= LARGE or not _fits_a_line(job.path)]
    in_lots = [job for job in jobs if job.size < LARGE and _fits_a_line(job.path)]
    async for events in _singly(transport, top, alone, hasher):
        yield events
    middle = [job for job in in_lots if job.size >= _SMALL]
    small = [job for job in in_lots if job.size < _SMALL]
    for lot, block, few in ((_MIDDLE_LOT, 1, middle), (_SMALL_LOT, _SMALL_BLOCK, small)):
        missed = {job.path: job for job in few}
        async for hashed in _in_lots(transport, top, few, lot, block, hasher):
            yield [one for one in hashed if missed.pop(one.path, None) is not None]
        # a lot's tool says nothing of a file that it can't read, or not in a form that can be trusted
        async for events in _singly(transport, top, list(missed.values()), hasher):
            yield events


def _fits_a_line(path: str) -> bool:
    """Whether a tool's line with this name can be taken apart again, and is written in one piece."""
    return _ESCAPED.search(path) is None and len(_bytes(path)) < _LONGEST_LINE


async def _in_lots(
    transport: Transport, top: str, jobs: Sequence[Job], lot: int, block: int, hasher: Hasher
) -> AsyncIterator[list[Hashed]]:
    names = b"".join(b"./" + _bytes(job.path) + b"\0" for job in jobs)
    workers = hasher.workers if hasher.has_awk else 0
    # not so many in a lot that some workers have none
    lot = max(1, min(lot, -(-len(jobs) // max(1, hasher.workers))))
    args = (top, str(len(names)), str(lot), str(workers), hasher.tool, _TOOL, _PYTHON, str(block))
    async for lines in _lines(transport, Script(_LOTS, args, why="hash small files"), names):
        matches = map(_LINE.match, lines)
        yield [Hashed(m[2].decode("utf-8", "surrogateescape"), m[1].decode()) for m in matches if m]


async def _singly(
    transport: Transport, top: str, jobs: Sequence[Job], hasher: Hasher
) -> AsyncIterator[list[Event]]:
    jobs = sorted(
        jobs, key=lambda job: -job.size
    )  # the largest first: all workers end at about the same time
    names = b"".join(
        b"%d\0%d\0./%s\0" % (index, hasher.tells_position and job.size >= _TOLD_FROM, _bytes(job.path))
        for index, job in enumerate(jobs)
    )
    args = (top, str(len(names)), str(hasher.workers), hasher.tool, _TOOL, _PYTHON, _INNER)
    left = dict(enumerate(jobs))
    async for lines in _lines(transport, Script(_SINGLES, args, why="hash files one by one"), names):
        yield [event for line in lines if (event := _single(line, left)) is not None]
    yield [Unreadable(job.path, "the box gave no answer") for job in left.values()]


def _single(line: bytes, left: dict[int, Job]) -> Event | None:
    """What one line says; a file that is done is taken out of `left`."""
    match = _SINGLE.match(line)
    job = left.get(int(match[2])) if match else None
    if match is None or job is None:
        return None
    said = match[3]
    if match[1] == b"P":
        return Position(job.path, min(int(said), job.size) if said.isdigit() else 0)
    del left[int(match[2])]
    if match[1] == b"H" and _HEX.match(said):
        return Hashed(job.path, said.decode())
    reason = _SYSTEM_ERROR.search(said)
    return Unreadable(job.path, str(safe(reason[1] if reason else said, 200)))


async def _lines(transport: Transport, script: Script, stdin: bytes) -> AsyncIterator[list[bytes]]:
    """The lines a script writes until its last one, ``Z``, as they come."""
    if not stdin:
        return
    channel = await transport.open(script, timeout=30)
    feeding = asyncio.ensure_future(_feed(channel, stdin))
    rest = b""
    try:
        while True:
            data = await _read(channel, transport.name)
            if not data:
                raise _ended_early(transport.name, channel.exit)
            *lines, rest = (rest + data).split(b"\n")
            if lines and lines[-1] == b"Z":
                yield lines[:-1]
                return
            yield lines
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])
        await channel.close()


async def _read(channel: Channel, box: str) -> bytes:
    try:
        async with asyncio.timeout(_STALL_S):
            return await channel.read(_CHUNK)
    except TimeoutError:
        raise Failure(
            f"{box} has hashed nothing for {_STALL_S:.0f} s.",
            means="Its disk may be stuck. What was hashed is kept.",
            do="Look at the box, then run the same again.",
            exit=Exit.UNKNOWN,
            code="hash-stalled",
        ) from None


async def _feed(channel: Channel, stdin: bytes) -> None:
    """Send the names while results are read, so that neither side waits for the other."""
    try:
        for at in range(0, len(stdin), _CHUNK):
            await channel.write(stdin[at : at + _CHUNK])
    except LinkLost:
        return  # the reader meets the same end and tells it


def _ended_early(box: str, status: int | None) -> Failure:
    return Failure(
        f"{box} ended the hashing early (status {status}).",
        means="What was hashed is kept.",
        do="Run the same again.",
        exit=Exit.UNKNOWN,
        code="hash-ended",
    )


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")

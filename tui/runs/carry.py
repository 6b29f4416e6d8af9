"""Takes checkpoints from a durable copy into a run's folder on another box, by way of this computer.

Each file arrives in pieces beside its name, is hashed there, and gets the name only when it is the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.box.transport import LinkLost, Script, Transport
from tui.model.failure import Failure
from tui.model.text import SafeText, amount, safe

PIECE = 8 << 20
_TRIES = 6
_LISTED = 3
"""Files of one folder that are told by name."""

# $1 the run's folder, $2 path below it, $3 where the piece begins. The piece comes in; how much is there goes
# out.
_PIECE = r"""
umask 022
cd -- "$1" || exit 3
case $2 in */*) mkdir -p -- "${2%/*}" || exit 4 ;; esac
part=$2.carried
have=$(wc -c <"$part" 2>/dev/null || echo 0)
[ "$have" -eq "$3" ] && cat >>"$part"
wc -c <"$part"
"""

# $1 the run's folder, $2 path below it. How much is there: of the part, or ``whole`` and the file's hash.
_HAVE = r"""
cd -- "$1" || exit 3
sum() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"
  elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r <"$1"
  else shasum -a 256 <"$1"; fi | cut -c 1-64
}
if [ -f "$2" ]; then echo "whole $(sum "$2")"
elif [ -f "$2.carried" ]; then echo "part $(wc -c <"$2.carried")"
else echo 'part 0'; fi
"""

# $1 the run's folder, $2 path below it, $3 its hash. Gives the part its name, or takes it away.
_NAME = r"""
cd -- "$1" || exit 3
part=$2.carried
if command -v sha256sum >/dev/null 2>&1; then h=$(sha256sum <"$part")
elif command -v openssl >/dev/null 2>&1; then h=$(openssl dgst -sha256 -r <"$part")
else h=$(shasum -a 256 <"$part"); fi
[ "$(echo "$h" | cut -c 1-64)" = "$3" ] || { rm -f -- "$part"; exit 7; }
[ ! -e "$2" ] || exit 9
sync
mv -- "$part" "$2"
"""


@dataclass(frozen=True, slots=True)
class Carried:
    """One file to take along.

    Attributes:
        path: below the run's folder.
        here: where it lies on this computer when it is carried.
        origin: where it comes from, where that is another place.
        beside: newer ones that are not whole, and were passed over for it.
    """

    path: str
    here: Path
    bytes: int
    sha256: str
    origin: str = ""
    beside: tuple[SafeText, ...] = ()


def carry_lines(files: Sequence[Carried]) -> Iterator[tuple[str, SafeText]]:
    """What would be carried, as titles and sentences: a file by itself, a folder in one line."""
    folders: dict[str, list[Carried]] = {}
    for one in files:
        folders.setdefault(one.path.rpartition("/")[0], []).append(one)
        for words in one.beside:
            yield "passed", words
    for folder, inside in folders.items():
        if len(inside) > _LISTED:
            size = amount(sum(one.bytes for one in inside))
            origin = inside[0].origin or inside[0].here.parent
            yield (
                "carry",
                safe(f"{folder}: {len(inside)} files, {size}, each by its SHA-256, from {origin}", 500),
            )
            continue
        for one in inside:
            told = f"{one.path}, {amount(one.bytes)}, sha256 {one.sha256[:12]}…"
            yield "carry", safe(f"{told}, from {one.origin or one.here}", 500)
    if not files:
        yield "carry", SafeText("nothing: it begins at step 0")


async def carry(
    dial: Callable[[], Awaitable[Transport]],
    run: str,
    files: Sequence[Carried],
    told: Callable[[SafeText], None] = lambda _line: None,
) -> None:
    """Bring files into a run's folder; the same call goes on after a cut. Nothing is ever written over.

    Raises:
        Failure: another file lies there, or it could not be written. LinkLost, TimeoutError: ask again.
    """
    for one in files:
        await _one(dial, run, one)
        told(safe(f"carried: {one.path}, {amount(one.bytes)}, the same there", 300))


async def _one(dial: Callable[[], Awaitable[Transport]], run: str, one: Carried) -> None:
    for left in range(_TRIES, 0, -1):
        try:
            await _brought(await dial(), run, one)
            return
        except (LinkLost, TimeoutError):
            if left == 1:
                raise
            await asyncio.sleep(1.0)


async def _brought(box: Transport, run: str, one: Carried) -> None:
    have = await box.run(Script(_HAVE, (run, one.path), why="is the checkpoint there?"), timeout=1800)
    kind, _, value = have.stdout.decode("ascii", "replace").strip().partition(" ")
    if kind == "whole":
        if value == one.sha256:
            return
        raise _refused(one, "another file of this name lies there")
    at = int(value) if kind == "part" and value.strip().isdecimal() else 0
    with one.here.open("rb") as file:
        file.seek(min(at, one.bytes))
        while piece := await asyncio.to_thread(file.read, PIECE):
            words = (run, one.path, str(at))
            script = Script(_PIECE, words, why="bring a checkpoint")
            done = await box.run(script, stdin=piece, timeout=60 + len(piece) / 50_000)
            if done.stdout.strip() != str(at + len(piece)).encode():
                said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
                raise _refused(one, said or "it did not take it")
            at += len(piece)
    script = Script(_NAME, (run, one.path, one.sha256), why="is the checkpoint the same?")
    done = await box.run(script, timeout=1800)
    if done.exit != 0:
        raise _refused(one, "what arrived is another file" if done.exit == 7 else f"status {done.exit}")


def _refused(one: Carried, why: str) -> Failure:
    return Failure(
        f"{safe(one.path, 200)} could not be brought to the box: {safe(why, 200)}.",
        means="The run was not started.",
        do="Look at the run's folder there; the same command goes on.",
        code="carry-refused",
    )

"""Brings code to a box: only files the box has not got, each checked there before anything is made of them.

The box keeps files by their hash in ``cache/code``. A run gets a copy of its own, which appears in one rename
once every byte of it was hashed, so that no later push can reach what a live process reads.
"""

from __future__ import annotations

import io
import secrets
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tui.box.transport import Completed, Script, Transport
from tui.model.failure import Failure
from tui.model.text import safe
from tui.runs.code_tree import CodeFile, CodeTree, content
from tui.runs.plan_files import SOURCE

_BATCH = 8 << 20

# Prints ``digest name`` for each file named; whichever tool there is.
_SUM = r"""
sum() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"
  elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r "$@"
  else shasum -a 256 "$@"; fi | sed 's/^\([0-9a-f]\{64\}\) [ *]/\1 /'
}
"""

# $1 the store. Hashes come in, those that are missing go out.
_MISSING = r"""
umask 077
mkdir -p -- "$1" && cd -- "$1" || exit 3
while read -r h; do [ -f "$h" ] || echo "$h"; done
"""

# $1 the store. A tar of files named by their hash; only those get in that have it.
_TAKE = (
    _SUM
    + r"""
umask 077
cd -- "$1" && mkdir "in.$$" && cd "in.$$" || exit 3
trap 'cd .. && rm -rf "in.$$"' EXIT
tar -xf - || exit 4
sync
sum * | while read -r h name; do
  if [ "$h" = "$name" ]; then mv -f -- "$name" ..; else echo "bad $name"; fi
done
"""
)

# $1 the store, $2 the run's folder, $3 name of the copy, $4 the summing function, $5 name of the one under
# construction, which is this launch's own. Lines of ``hash x path`` come in; what lies in the copy goes out.
_MAKE = r"""
umask 022
store=$1
cd -- "$2" || exit 3
if [ ! -d "$3" ]; then
  find . -maxdepth 1 -name "$3.part*" -mmin +120 -exec rm -rf {} + 2>/dev/null # of launches that died
  rm -rf -- "$5" && mkdir -- "$5" && cd -- "$5" || exit 4
  made=''
  while IFS= read -r line; do
    path=${line#* ? }
    case $path in
    */*) if [ "${path%/*}" != "$made" ]; then made=${path%/*} && mkdir -p -- "$made"; fi ;;
    esac
    cp -- "$store/${line%% *}" "$path" || exit 5
    case $line in *' x '"$path") chmod 755 -- "$path" ;; *) chmod 644 -- "$path" ;; esac
  done
  sync
else
  cd -- "$3" || exit 4
fi
find . -type f -exec sh -c "$4"' sum "$@"' rgt {} +
"""

# $1 the run's folder, $2 name of the copy, $3 of the one under construction: it is as it must be. Of two
# launches at the same time one gets the name, and the other's copy goes.
_KEEP = r"""
cd -- "$1" || exit 3
[ -d "$3" ] || { [ -d "$2" ]; exit; }
if [ ! -d "$2" ]; then
  mv -T -- "$3" "$2" 2>/dev/null && exit
  [ -d "$2" ] || mv -- "$3" "$2" || exit 4
fi
rm -rf -- "$3" "$2/$3"
"""

# $1 the store. Hashes of files that went bad come in.
_DROP = 'cd -- "$1" && while read -r h; do rm -f -- "$h"; done'


@dataclass(frozen=True, slots=True)
class Pushed:
    """What went over: files and bytes that were missing, of so many."""

    sent: int
    bytes: int
    files: int


async def push(
    transport: Transport, tree: CodeTree, store: str, told: Callable[[int, int], None] = lambda _a, _b: None
) -> Pushed:
    """Bring what is missing into the box's store; may be asked again after a cut, and goes on from there.

    Args:
        store: absolute folder on the box.
        told: hears bytes sent and bytes to send.

    Raises:
        Failure: the box could not take it. LinkLost, TimeoutError: ask again.
    """
    by_hash = {one.sha256: one for one in tree.files}
    lines = "".join(f"{one}\n" for one in by_hash).encode()
    asked = Script(_MISSING, (store,), why="which files of the code are missing?")
    done = await transport.run(asked, stdin=lines, timeout=60, limit=len(lines) + 1)
    if done.exit != 0:
        raise _refused(done, store)
    missing = [by_hash[name] for name in done.stdout.decode("ascii", "replace").split() if name in by_hash]
    total, sent = sum(one.bytes for one in missing), 0
    for batch in _batches(missing):
        script = Script(_TAKE, (store,), why="take files of the code")
        body = _tar([(one.sha256, content(tree.root, one)) for one in batch])
        done = await transport.run(script, stdin=body, timeout=60 + len(body) / 50_000)
        if done.exit != 0 or done.stdout:
            raise _refused(done, store)
        sent += sum(one.bytes for one in batch)
        told(sent, total)
    return Pushed(len(missing), total, len(tree.files))


async def make_copy(transport: Transport, tree: CodeTree, store: str, run: str) -> None:
    """Give a run its own copy of the tree, proven there file by file: none missing, none other, none extra.

    Raises:
        Failure: what lies there is not the tree. LinkLost, TimeoutError: ask again.
    """
    lines = "".join(f"{one.line()}\n" for one in tree.files).encode()
    part = f"{SOURCE}.part-{secrets.token_hex(4)}"
    script = Script(_MAKE, (store, run, SOURCE, _SUM, part), why="the run's own copy of the code")
    limit = len(lines) * 2 + (1 << 16)
    done = await transport.run(script, stdin=lines, timeout=120 + len(tree.files) / 100, limit=limit)
    if done.exit != 0:
        raise _refused(done, run)
    there = set()
    for line in done.stdout.decode("utf-8", "surrogateescape").split("\n"):
        digest, _, path = line.partition(" ")
        if path:
            there.add((digest, path.removeprefix("./")))
    wanted = {(one.sha256, one.path) for one in tree.files}
    if there == wanted:
        kept = await transport.run(Script(_KEEP, (run, SOURCE, part), why="the copy is whole"), timeout=60)
        if kept.exit != 0:
            raise _refused(kept, run)
        return
    bad = "".join(f"{digest}\n" for digest, _ in wanted - there).encode()
    await transport.run(Script(_DROP, (store,), why="drop what went bad"), stdin=bad)
    odd = sorted(path for _, path in there ^ wanted)
    raise Failure(
        f"The copy of the code in {safe(run, 200)} is not what was sent: {safe(odd[0], 200)}.",
        means="Nothing was started.",
        do="Once more sends what went bad again; if it stays, look what else writes there.",
        code="code-differs",
    )


def _batches(files: Sequence[CodeFile]) -> Iterator[list[CodeFile]]:
    batch: list[CodeFile] = []
    for one in files:
        if batch and sum(kept.bytes for kept in batch) + one.bytes > _BATCH:
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _tar(files: Sequence[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, body in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(body), 0o600
            tar.addfile(entry, io.BytesIO(body))
    return out.getvalue()


def _refused(done: Completed, where: str) -> Failure:
    said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().split("\n")[-1]
    return Failure(
        f"The box could not take the code into {safe(where, 200)}: {safe(said, 200) or done.exit}.",
        means="Nothing was started; what arrived whole is kept.",
        do="Look at its disk: bytes and inodes.",
        code="push-refused",
    )

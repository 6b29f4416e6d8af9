"""Close-out: what a finished run made becomes a sealed export, in one rename, or goes into quarantine.

Everything happens on the box, next to the run: copied into a folder of this close's own below
``export/.partial``, judged there, then renamed: of two at once, each names only what it judged.
A sealed export is never written over, and what did not pass keeps its reason beside it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from tui.box.transport import LinkLost, Script, SessionsExhausted, Transport
from tui.checkpoints.pickle_globals import NUMPY_SCALARS
from tui.model.failure import Failure
from tui.model.text import SafeText, safe
from tui.runs.book import Page
from tui.runs.export import IDENTITIES, choose, figures_missing, read_json
from tui.runs.truth import Truth

Kind = Literal["sealed", "sealed-before", "quarantined"]

_LOADABLE = (".pt", ".pth", ".ckpt", ".bin")
_JSON_CAP = 1 << 20
_LOAD_S = 900.0

# $1 the run's folder. NUL-ended ``size path`` of every regular file but rgt's own.
_LIST = r"""
cd -- "$1" || exit 3
find . -path ./.rgt -prune -o -path ./src -prune -o -type f -exec sh -c '
for f; do printf "%s %s\0" "$(wc -c <"$f" | tr -d " ")" "${f#./}"; done' rgt {} +
"""

# $1 the run's folder, $2 the project's, $3 run's name, $4 name of the copy. NUL-ended paths come in.
# What closes that died have left goes when it is older than any can be. 9: it is sealed already.
_GATHER = r"""
umask 022
cd -- "$1" || exit 3
in=$2/export/.partial to=$2/export/.partial/$4
[ ! -e "$2/export/$3" ] || exit 9
mkdir -p -- "$in" || exit 4
find "$in" -mindepth 1 -maxdepth 1 -type d -name "$3.*" -mmin +360 -exec rm -rf {} + 2>/dev/null
mkdir -- "$to" || exit 4
xargs -0 sh -c 'to=$0; for f; do
case $f in */*) mkdir -p -- "$to/${f%/*}" || exit 255 ;; esac
cp -p -- "$f" "$to/$f" || exit 255; done' "$to" || exit 5
"""

# $1 folder of the copy, $2 file in it; its content is stdin.
_PUT = 'cd -- "$1" && cat >"$2.part" && mv -f -- "$2.part" "$2"'

# $1 folder of the copy, $2 bytes, $3 file.
_SHOW = 'cd -- "$1" && head -c "$2" -- "$3"'

# $1 interpreter, $2 program; requests come on stdin.
_LOAD = 'LC_ALL=C.UTF-8 OMP_NUM_THREADS=1 exec "$1" -I -B -c "$2"'

# $1 the project's folder, $2 run's name, $3 name of the copy: everything on the disk first, then one rename.
# -T where mv has it, so that a folder that appeared meanwhile is an error and never a place to put it into.
_SEAL = r"""
cd -- "$1/export" || exit 3
[ ! -e "$2" ] || exit 9
sync
if mv -T -- ".partial/$3" "$2" 2>/dev/null; then exit 0; fi
[ ! -e "$2" ] || exit 9
mv -- ".partial/$3" "$2"
"""

# $1 the project's folder, $2 run's name, $3 attempt, $4 name of the copy; the reason is stdin. 9: that
# attempt lies there already.
_QUARANTINE = r"""
cd -- "$1" || exit 3
mkdir -p quarantine
to=quarantine/$2--$3
[ ! -e "$to" ] || exit 9
cat >"export/.partial/$4/REASON.txt" || exit 4
if mv -T -- "export/.partial/$4" "$to" 2>/dev/null; then exit 0; fi
[ ! -e "$to" ] || exit 9
mv -- "export/.partial/$4" "$to"
"""

# $1 the project's folder, $2 name of this close's own copy, which got no name. It is taken from sight first:
# a seal that is still under way, unanswered, then has all of it or nothing.
_FORGET = r"""
cd -- "$1/export/.partial" 2>/dev/null && mv -- "$2" "$2.dropped" 2>/dev/null && rm -rf -- "$2.dropped"
exit 0
"""


@dataclass(frozen=True, slots=True)
class Closed:
    """What became of it. `reasons` say why it lies in quarantine, `notes` what was not checked."""

    kind: Kind
    folder: str
    files: int = 0
    reasons: tuple[SafeText, ...] = ()
    notes: tuple[SafeText, ...] = ()


async def close_out(transport: Transport, page: Page, truth: Truth) -> Closed:
    """Make a sealed export of a run that is over, or put what it made into quarantine.

    Raises:
        Failure: the run is not over, or the box could not do it; nothing is lost, and it may be asked again.
    """
    _must_be_over(page, truth)
    sizes = await _listed(transport, page.folder)
    chosen, reasons = choose(page.job, tuple(sizes))
    if truth.state != "finished":
        reasons = (safe(f"The run did not finish: {truth.why}"), *reasons)
    copy = f"{page.run}.{secrets.token_hex(4)}"
    try:
        return await _named(transport, page, truth, copy, chosen, reasons)
    finally:  # where it got a name, nothing is left there; a lost link leaves it to the next close
        with suppress(LinkLost, SessionsExhausted, TimeoutError):
            await transport.run(Script(_FORGET, (page.root, copy), why="drop the unnamed copy"), timeout=20)


async def _named(
    transport: Transport,
    page: Page,
    truth: Truth,
    copy: str,
    chosen: Sequence[str],
    reasons: tuple[SafeText, ...],
) -> Closed:
    """Copy what was chosen, judge the copy, and give it its name. Raises Failure."""
    sealed = f"{page.root}/export/{page.run}"
    script = Script(_GATHER, (page.folder, page.root, page.run, copy), why="copy what the run made")
    names = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in chosen)
    done = await transport.run(script, stdin=names, timeout=3600)
    if done.exit == 9:
        return Closed("sealed-before", sealed)
    if done.exit != 0:
        raise _refused(page, done.stderr)
    place = f"{page.root}/export/.partial/{copy}"
    await _put(transport, place, IDENTITIES, json.dumps(identities(page, truth), indent=1).encode())
    bad, notes = await _judged(transport, place, page, chosen)
    reasons = (*reasons, *bad)
    if reasons:
        return await _quarantine(transport, page, truth, copy, reasons, notes, len(chosen))
    script = Script(_SEAL, (page.root, page.run, copy), why="seal the export")
    done = await transport.run(script, timeout=600)
    if done.exit == 9:
        return Closed("sealed-before", sealed)
    if done.exit != 0:
        raise _refused(page, done.stderr)
    return Closed("sealed", sealed, len(chosen) + 1, (), notes)


def identities(page: Page, truth: Truth) -> dict[str, object]:
    """What `run.json` says: identities and bindings, and no result."""
    return {
        "run": page.run,
        "plan": f"sha256:{page.plan}",
        "code": f"sha256:{page.code}",
        "commit": page.commit,
        "changes": f"sha256:{page.dirty}" if page.dirty else None,
        "config": f"sha256:{page.config}" if page.config else None,
        "data": f"sha256:{page.data}" if page.data else None,
        "cell": page.cell,
        "seed": page.job.seeds.seed,
        "box": page.box,
        "platform": page.platform,
        "instance_id": page.instance_id,
        "attempt": truth.attempt,
        "start": dict(truth.start),
        "end": dict(truth.end),
    }


async def _listed(transport: Transport, folder: str) -> Mapping[str, int]:
    done = await transport.run(Script(_LIST, (folder,), why="what the run made"), timeout=300, limit=64 << 20)
    if done.exit != 0 or done.truncated:
        raise Failure(f"The files in {safe(folder, 200)} could not be listed.", means="Nothing was closed.")
    found = {}
    for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0"):
        size, _, path = entry.partition(" ")
        if path and size.isdecimal():
            found[path] = int(size)
    return found


async def _judged(
    transport: Transport, copy: str, page: Page, chosen: Sequence[str]
) -> tuple[tuple[SafeText, ...], tuple[SafeText, ...]]:
    """What is wrong with the copies themselves, and what could not be looked at."""
    bad: list[SafeText] = []
    large: list[SafeText] = []
    held: dict[str, object] = {}
    for path in chosen:
        if path.endswith(".json"):
            script = Script(_SHOW, (copy, str(_JSON_CAP), path), why="is it JSON?")
            text = (await transport.run(script, timeout=60, limit=_JSON_CAP + 1)).stdout
            if len(text) >= _JSON_CAP:
                large.append(safe(f"{path} is larger than {_JSON_CAP >> 20} MiB: not looked at whole.", 300))
                continue
            try:
                held[path] = read_json(text)
            except ValueError:
                bad.append(safe(f"{path} is no JSON.", 300))
    bad += figures_missing(
        page.job, held, [one for one in chosen if one.endswith(".json") and one not in held]
    )
    loadable = [path for path in chosen if path.endswith(_LOADABLE)]
    wrong, notes = await _loaded(transport, copy, page.python, loadable)
    others = [path for path in chosen if path.endswith((".safetensors", ".npz"))]
    if others:
        notes = (*notes, safe(f"{len(others)} files were not loaded here; `rgt verify` does."))
    return (*bad, *wrong), (*large, *notes)


async def _loaded(
    transport: Transport, copy: str, python: str, paths: Sequence[str]
) -> tuple[tuple[SafeText, ...], tuple[SafeText, ...]]:
    """Load checkpoints in a jailed child of the box's own interpreter, weights only."""
    if not paths:
        return (), ()
    program = resources.files("tui.checkpoints").joinpath("jail.py").read_text("utf-8")
    asks = b"".join(
        json.dumps(
            {"path": f"{copy}/{path}", "load": True, "legacy": False, "scan": False, "memory": 64 << 30,
             "cpu": 600, "wall": 600, "allow": NUMPY_SCALARS, "spans": []}
        ).encode() + b"\n"
        for path in paths
    )  # fmt: skip
    try:
        script = Script(_LOAD, (python, program), why="load the checkpoints, weights only")
        done = await transport.run(script, stdin=asks, timeout=_LOAD_S, limit=4 << 20)
    except TimeoutError:
        return (), (safe(f"The checkpoints were not loaded within {_LOAD_S:.0f} s."),)
    answers = [_answer(line) for line in done.stdout.split(b"\n")[1:] if line]
    bad, notes = [], []
    for path, answer in zip(paths, [*answers, *[None] * len(paths)], strict=False):
        loaded = answer.get("loaded") if answer else None
        why = safe(str((answer or {}).get("refusal") or (answer or {}).get("fault") or "no answer"), 200)
        if loaded is False:
            bad.append(safe(f"{path} does not load: {why}", 400))
        elif loaded is None:
            notes.append(safe(f"{path} was not loaded: {why}", 400))
    return tuple(bad), tuple(notes)


async def _quarantine(
    transport: Transport,
    page: Page,
    truth: Truth,
    copy: str,
    reasons: tuple[SafeText, ...],
    notes: tuple[SafeText, ...],
    files: int,
) -> Closed:
    script = Script(
        _QUARANTINE, (page.root, page.run, str(truth.attempt), copy), why="set it apart, with the reason"
    )
    text = "".join(f"{reason}\n" for reason in reasons).encode()
    done = await transport.run(script, stdin=text, timeout=600)
    if done.exit not in (0, 9):
        raise _refused(page, done.stderr)
    folder = f"{page.root}/quarantine/{page.run}--{truth.attempt}"
    return Closed("quarantined", folder, files, reasons, notes)


async def _put(transport: Transport, folder: str, name: str, body: bytes) -> None:
    done = await transport.run(Script(_PUT, (folder, name), why="the run's identities"), stdin=body)
    if done.exit != 0:
        raise Failure(f"{name} could not be written into {safe(folder, 200)}.", means="Nothing was sealed.")


def _must_be_over(page: Page, truth: Truth) -> None:
    if truth.state in ("finished", "failed", "stopped", "lost"):
        if truth.plan != page.plan:
            raise Failure(
                f"{safe(page.folder, 200)} holds another plan than {page.run} was launched with.",
                means="What it made is another run's; nothing was done.",
                do="Look at that folder: the box may have been reset, or another computer launches there.",
                code="other-plan",
            )
        return
    raise Failure(
        f"{page.run} is {truth.state}: {truth.why}",
        means="Only what is over can be closed; nothing was done.",
        do=f"Wait for it: rgt status {page.box}.",
        code="run-not-over",
    )


def _answer(line: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _refused(page: Page, stderr: bytes) -> Failure:
    said = safe(stderr.decode("utf-8", "replace").strip().split("\n")[-1], 200)
    return Failure(
        f"The export of {page.run} could not be made: {said or 'the box refused'}.",
        means="Nothing was sealed; what the run made is where it was.",
        do="Look at the disk's bytes and inodes, then close it again.",
        code="close-refused",
    )

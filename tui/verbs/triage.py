"""`rgt triage`: what is wrong with a run, or what a saved log says was wrong."""

from __future__ import annotations

import argparse
import asyncio
import codecs
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.incident import Diagnosis, Incident
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.event import Diagnosed
    from tui.model.telemetry import Telemetry
    from tui.triage.rules import Rules
    from tui.triage.scan import Digest

BLOCK = 1 << 20
FIRST_LOOK = 64 << 10
"""Bytes of a file by which it is judged to be text."""
MOST_CONTROL = 0.1
"""Share of control codes above which it is none: a log has colours, bars and perhaps a hole of zeros."""

_CONTROL = bytes(range(1, 8)) + bytes(range(14, 27)) + bytes(range(28, 32))
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "a zip file",
}
_WIDE = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("triage", help="what is wrong with a run, what shows it, what to do")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a run, or a box")
    parser.add_argument(
        "--whole", action="store_true", help="with NAME: read all of the log on the box, not only its end"
    )
    parser.add_argument("--log", metavar="FILE", help="a saved log instead; - reads standard input")
    parser.add_argument("--probe", metavar="FILE", help="with --log: what `rgt probe NAME --json` printed")
    parser.add_argument("--run", metavar="RUN", help="with --probe: the run the log is of", dest="of_run")
    parser.add_argument("--json", action="store_true", help="print JSON; null is what is not known")
    parser.add_argument("--plain", action="store_true", help="plain lines, no colour")
    parser.set_defaults(run=triage)


def triage(args: argparse.Namespace) -> int:
    """Diagnose a run by name, or a saved log. Raises Failure."""
    if (args.name is None) == (args.log is None and args.probe is None):
        raise Failure(
            "Triage needs one thing to look at.",
            do="Name a run or a box, or give a saved log: rgt triage --log FILE.",
            exit=Exit.USAGE,
            code="nothing-to-triage",
        )
    if args.whole and args.name is None:
        raise Failure("--whole goes with a run's name; a saved log is read whole.", exit=Exit.USAGE)
    from tui.fleet.paths import paths
    from tui.workers.triage import load_rules

    where = paths()
    rules = load_rules(where.gotchas)
    for problem in rules.catalog.problems:
        print(f"rgt: {problem.line}", file=sys.stderr)
    if args.name is not None:
        told = asyncio.run(_of_name(args.name, where, rules, whole=args.whole))
        diagnosis, live = told.diagnosis, True
        looked, press = told.looked_at, told.pressing
    else:
        diagnosis, looked, press, live = _of_files(args, rules), (), (), args.probe is not None
    if args.json:
        print(json.dumps(diagnosis_json(diagnosis, looked, press), ensure_ascii=False, indent=1))
    else:
        print("\n".join(diagnosis_lines(diagnosis, looked, press)))
    return exit_of(diagnosis, live=live, pressed=bool(press))


async def _of_name(name: str, where: Paths, rules: Rules, *, whole: bool) -> Diagnosed:
    from tui.fleet import settings
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer
    from tui.workers.triage_once import look_closely

    loaded = settings.load(where.fleet_file)
    on_box = [r for r in loaded.runs if r.box == name]
    named = [r for r in loaded.runs if r.name == name] or (on_box if len(on_box) == 1 else [])
    box = named[0].box if named else name
    instance = next((i for i in loaded.instances if i.name == box), None)
    if instance is None:
        raise Failure(
            f"No run or box is named {safe(name, 80)!r}.",
            do="See `rgt status`; a saved log is read with --log.",
            exit=Exit.USAGE,
            code="unknown-name",
        )
    if not named and len(on_box) > 1:
        names = ", ".join(r.name for r in on_box)
        raise Failure(f"{name} has {len(on_box)} runs: {names}.", do="Name one.", exit=Exit.USAGE)
    dial = dialer(where, asker=TerminalAsker())
    others = tuple(r for r in loaded.runs if r.box == box)
    spec = named[0] if named else None
    thresholds = loaded.settings.thresholds
    return await look_closely(
        instance, spec, others, dial, time.time, rules, thresholds, whole=whole, told=_aside
    )


def _aside(line: str) -> None:
    print(f"rgt: {safe(line)}", file=sys.stderr, flush=True)


# -- saved files -------------------------------------------------------------------------------------------


def _of_files(args: argparse.Namespace, rules: Rules) -> Diagnosis:
    from tui.triage.engine import diagnose
    from tui.triage.inputs import Known

    if args.log == "-" and args.probe == "-":
        raise Failure("Standard input is one file.", do="Save one of them first.", exit=Exit.USAGE)
    telemetry = _probe(args.probe) if args.probe is not None else None
    digest = _digest(args.log, rules) if args.log is not None else None
    return diagnose(rules, digest, (), telemetry, Known(run=_run_of(args.of_run, telemetry)))


def _run_of(asked: str | None, telemetry: Telemetry | None) -> str | None:
    """The run that a saved probe tells of: the one asked for, or its only one."""
    runs = [truth.run for truth in telemetry.runs] if telemetry is not None else []
    if asked is not None and asked not in runs:
        known = f"It tells of {', '.join(map(safe, runs))}." if runs else "It tells of no run."
        raise Failure(f"The probe does not tell of {safe(asked, 80)}.", do=known, exit=Exit.USAGE)
    return asked if asked is not None else runs[0] if len(runs) == 1 else None


def _digest(name: str, rules: Rules) -> Digest:
    from tui.triage.scan import scan

    with _opened(name) as file:
        return scan(_text_of(file, name), rules.finder)


def _text_of(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The file's blocks. Raises Failure where it is no text; UTF-16 becomes UTF-8 on the way."""
    first = file.read(FIRST_LOOK)
    for magic, kind in _PACKED.items():
        if first.startswith(magic):
            raise Failure(
                f"{safe(name)} is {kind}, not a log.",
                do="Unpack it on the way: zcat FILE | rgt triage --log -",
                exit=Exit.USAGE,
                code="packed-log",
            )
    wide = next((word for mark, word in _WIDE.items() if first.startswith(mark)), None)
    if wide is not None:
        yield from _decoded(first, file, wide)
        return
    holes = first.count(0)
    words = len(first) - holes
    control = len(first) - len(first.translate(None, _CONTROL))
    if (words and control > MOST_CONTROL * words) or (words and holes and control > 0.02 * words):
        raise Failure(
            f"{safe(name)} is no text, so it is no log.",
            do="Give the file that the run's output went to.",
            exit=Exit.USAGE,
            code="binary-log",
        )
    yield first
    yield from _blocks(file)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def _decoded(first: bytes, file: IO[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in (first, *_blocks(file)):
        yield decoder.decode(block).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _probe(name: str) -> Telemetry:
    from tui.box.probe.from_json import telemetry_from

    with _opened(name) as file:
        raw = file.read(64 << 20)
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        raise Failure(
            f"{safe(name)} is not what `rgt probe NAME --json` prints: it is no JSON.",
            do="Save the output of that command as it is.",
            exit=Exit.USAGE,
            code="no-probe",
        ) from None
    return telemetry_from(data)


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """A file, a pipe, or standard input for ``-``. Raises Failure, also for an error while it is read."""
    from tui.verbs.log_file import opened

    try:
        if name == "-":
            yield sys.stdin.buffer
        else:
            with opened(name) as file:
                yield file
    except OSError as error:
        raise Failure(
            f"{safe(name)} cannot be read: {error.strerror or error}.",
            do="Give the path of a file on this computer; a run's own log is read by its name.",
            exit=Exit.USAGE,
            code="no-log",
        ) from None
    except ValueError as error:  # a NUL in the name
        raise Failure(f"{safe(name)!r} is no path: {error}.", exit=Exit.USAGE, code="no-log") from None


# -- what is told ------------------------------------------------------------------------------------------


def exit_of(told: Diagnosis, *, live: bool, pressed: bool = False) -> Exit:
    """0 nothing wrong, 1 something is, 3 unreachable, 4 not known.

    Args:
        live: something was asked about the present; a saved log alone cannot tell of it, and need not.
        pressed: its box wants attention, though nothing failed.
    """
    if told.outcome == "unreachable":
        return Exit.UNREACHABLE
    if (
        any(one.severity != "info" for one in told.incidents)
        or told.outcome in ("dead", "stalled")
        or pressed
    ):
        return Exit.ATTENTION
    return Exit.UNKNOWN if live and told.outcome == "unknown" else Exit.FINE


def diagnosis_json(
    told: Diagnosis, looked: Iterable[tuple[str, float | None]] = (), pressing: Iterable[str] = ()
) -> dict[str, object]:
    """A diagnosis as plain JSON values."""
    return {
        "outcome": told.outcome,
        "verdict": told.verdict,
        "taken_at": told.taken_at,
        "incidents": [_incident(one) for one in told.incidents],
        "ruled_out": [{"class": one.cls, "why": one.why} for one in told.ruled_out],
        "pressing": list(pressing),
        "looked_at": [{"what": what, "at": at} for what, at in looked],
    }


def _incident(one: Incident) -> dict[str, object]:
    return {
        "class": one.cls,
        "title": one.title,
        "severity": one.severity,
        "plane": one.plane,
        "confidence": round(one.confidence, 3),
        "retry": one.retry,
        "evidence": [{"source": e.source, "line": e.line, "text": e.text, "at": e.at} for e in one.evidence],
        "ruled_out": [{"class": r.cls, "why": r.why} for r in one.ruled_out],
        "remedy": [
            {"text": s.text, "level": s.level, "command": s.command, "look": s.look} for s in one.remedy
        ],
        "facts": {key: _fact(value) for key, value in one.facts},
        "also": list(one.also),
    }


def _fact(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _fact(one) for key, one in value.items()}
    return [_fact(one) for one in value] if isinstance(value, tuple) else value


_RETRY = {
    "identical": "the same configuration may be started again",
    "after-fix": "correct it before the next start",
    "never": "never start it like this again",
}
_UNKNOWN = ": a log tells what happened, and not whether the process lives"


def diagnosis_lines(
    told: Diagnosis, looked: Iterable[tuple[str, float | None]] = (), pressing: Iterable[str] = ()
) -> Iterator[str]:
    """A diagnosis as lines for a pipe or a plain terminal."""
    yield str(told.verdict)
    yield f"outcome {told.outcome}{_UNKNOWN if told.outcome == 'unknown' else ''}"
    yield from (f"needs you   {text}" for text in pressing)
    for one in told.incidents:
        yield ""
        yield f"{one.cls}{f' ({one.which})' if one.which else ''}: {one.title}"
        sure = f"{one.confidence * 100:.0f} % sure"
        yield f"  {one.severity}, {one.plane} plane, {sure}; {_RETRY.get(one.retry, one.retry)}"
        for number, piece in enumerate(one.evidence, 1):
            line = f" line {piece.line}" if piece.line is not None else ""
            yield f"  evidence {number}  {piece.source}{line}: {piece.text}"
        if one.also:
            yield f"  follows     {', '.join(one.follows)}"
        yield from (f"  ruled out   {r.cls}: {r.why}" for r in one.ruled_out)
        for step in one.remedy:
            yield f"  do L{step.level}       {step.text}"
            if step.command:
                yield f"              $ {step.command}"
    if told.ruled_out:
        yield ""
    yield from (f"not {r.cls}: {r.why}" for r in told.ruled_out)
    what = [word if at is not None else f"{word} (not read)" for word, at in looked]
    if what:
        yield f"looked at {', '.join(what)}"

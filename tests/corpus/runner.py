"""Reads cases, asks the product what it makes of them, and compares. Knows the format and no single case.

A case is one line of JSON: what a command printed, and the least a program must make of it (`expect`). What
the product answers comes from `map_case` of the module that covers the kind; here it is only compared.
"""

from __future__ import annotations

import base64
import functools
import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui.triage import catalog

load = functools.cache(catalog.load)
Answer = Mapping[str, object]

VERDICT_FIELDS = frozenset({"incident", "severity", "evidence", "evidence_line", "also", "accept"})
"""Fields that say what an output means for the run. Parsing does not answer them."""

MEMORY_FIELDS = frozenset({"mem_used", "mem_total", "mem_free"})
"""Fields in MiB; one tool counts bytes and another rounds, so 1 MiB apart is the same."""

_MAPPERS = {
    "A": "tests.corpus.kinds_ab",
    "B": "tests.corpus.kinds_ab",
    "C": "tests.corpus.kinds_ce",
    "D": "tests.corpus.kinds_d",
    "E": "tests.corpus.kinds_ce",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One input. `cmd` is None where the input came from no command (a log, a pasted string)."""

    id: str
    kind: str
    cmd: str | None
    rc: int | None
    stdout: bytes
    stderr: bytes
    ctx: dict[str, Any] = field(default_factory=dict)
    expect: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Miss:
    """One expected value that the product did not give."""

    id: str
    field: str
    expected: object
    got: object

    def line(self) -> str:
        return f"{self.id}  {self.field}: expected {_show(self.expected)}, got {_show(self.got)}"


@dataclass(slots=True)
class Score:
    """Verdicts about the classes of one group: right, not given, and given where they are not true."""

    found: int = 0
    missed: int = 0
    wrong: int = 0

    def as_json(self) -> dict[str, float | int | None]:
        given, wanted = self.found + self.wrong, self.found + self.missed
        return {
            "precision": round(self.found / given, 4) if given else None,
            "recall": round(self.found / wanted, 4) if wanted else None,
            "cases": wanted,
        }


@dataclass(slots=True)
class Summary:
    """What a whole run came to. `left_out`: cases that ask nothing in this mode."""

    total: int = 0
    passed: int = 0
    false_alarms: int = 0
    left_out: int = 0
    by_kind: dict[str, dict[str, int]] = field(default_factory=dict)
    by_group: dict[str, Score] = field(default_factory=dict)
    misses: list[Miss] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        return {
            "total": self.total,
            "passed": self.passed,
            "false_alarms": self.false_alarms,
            "left_out": self.left_out,
            "by_kind": self.by_kind,
            "by_group": {name: score.as_json() for name, score in sorted(self.by_group.items())},
        }

    def score(self, wanted: str | None, got: str | None, accepted: Sequence[object]) -> None:
        """Count one verdict for the groups of the classes it names."""
        if got == wanted or got in accepted:
            if wanted is not None and got is not None:
                self._of(wanted).found += 1
            return
        if wanted is not None:
            self._of(wanted).missed += 1
        if got is not None:
            self._of(got).wrong += 1

    def _of(self, cls: str) -> Score:
        return self.by_group.setdefault(group_of(cls), Score())


def read_case(line: str) -> Case:
    """One line of a case file.

    Raises:
        ValueError, KeyError: the line is no case.
    """
    raw = json.loads(line)
    ctx = raw.get("ctx") or {}
    stdout = base64.b64decode(raw["input_b64"]) if "input_b64" in raw else raw["input"].encode()
    return Case(
        id=raw["id"],
        kind=raw["kind"],
        cmd=ctx.get("cmd"),
        rc=ctx.get("rc"),
        stdout=stdout,
        stderr=str(ctx.get("stderr") or "").encode(),
        ctx=ctx,
        expect=raw["expect"],
    )


def read_cases(folder: Path) -> Iterator[Case]:
    """Every case of every ``*.jsonl`` file in `folder`, in the order of file names."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").split("\n"):
            if line.strip():
                yield read_case(line)


def group_of(cls: str) -> str:
    """The group of a class of the catalog."""
    entry = load().entries.get(cls)
    return entry.front.group if entry else "unknown"


def asked(case: Case, fields: str) -> dict[str, Any]:
    """What `case` asks for in this mode: everything, or in ``parse`` mode only what an output says."""
    if fields == "all":
        return dict(case.expect)
    return {key: value for key, value in case.expect.items() if key not in VERDICT_FIELDS}


def misses(case: Case, expect: Mapping[str, Any], answer: Answer) -> list[Miss]:
    """Every expected value that `answer` lacks or has otherwise. A missing key is a miss, also for null."""
    accepted = case.expect.get("accept") or []
    found: list[Miss] = []
    for key, wanted in expect.items():
        if key == "accept":
            continue
        got = answer.get(key, _ABSENT)
        if key == "incident" and got is not _ABSENT and got in accepted:
            continue
        found += [Miss(case.id, *found_at) for found_at in _compare(key, wanted, got)]
    return found


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


_ABSENT = _Absent()


def _compare(path: str, wanted: object, got: object) -> Iterator[tuple[str, object, object]]:
    """(path, expected, got) per difference; objects compare as subsets, lists element by element."""
    if isinstance(wanted, dict) and isinstance(got, Mapping):
        for key, inner in wanted.items():
            yield from _compare(f"{path}.{key}", inner, got.get(key, _ABSENT))
    elif isinstance(wanted, list) and isinstance(got, list | tuple) and len(wanted) == len(got):
        for place, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from _compare(f"{path}[{place}]", one, other)
    elif not _same(path.rpartition(".")[2], wanted, got):
        yield path, wanted, got


def _same(name: str, wanted: object, got: object) -> bool:
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    if isinstance(wanted, int | float) and isinstance(got, int | float):
        return abs(wanted - got) <= (1.0 if name in MEMORY_FIELDS else 1e-6)
    return wanted == got


def product_answer(case: Case) -> Answer:
    """What the product makes of `case`; empty where nothing covers its kind yet."""
    mapper = _mapper(case.kind)
    return mapper(case) if mapper else {}


def _mapper(kind: str) -> Callable[[Case], Answer] | None:
    name = _MAPPERS.get(kind)
    if name is None:
        return None
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as gone:
        if gone.name != name:
            raise
        return None  # not built yet: its cases count as missed
    mapper: Callable[[Case], Answer] = module.map_case
    return mapper


def run(folder: Path, fields: str = "parse") -> Summary:
    """Every case of `folder` through the product. An exception in the product is a miss like any other."""
    summary = Summary()
    for case in read_cases(folder):
        expect = asked(case, fields)
        answer, broke = _answer(case)
        if "incident" in case.expect:
            wanted, got = case.expect["incident"], answer.get("incident")
            summary.score(wanted, str(got) if got else None, case.expect.get("accept") or [])
            summary.false_alarms += wanted is None and bool(got)
        if not expect:
            summary.left_out += 1
            continue
        missed = broke or misses(case, expect, answer)
        counts = summary.by_kind.setdefault(case.kind, {"total": 0, "passed": 0})
        counts["total"] += 1
        counts["passed"] += not missed
        summary.total += 1
        summary.passed += not missed
        summary.misses += missed
    return summary


def _answer(case: Case) -> tuple[Answer, list[Miss]]:
    try:
        return product_answer(case), []
    except Exception as error:  # a parser that raises is a finding of this run, not its end
        return {}, [Miss(case.id, "(raised)", "an answer", f"{type(error).__name__}: {error}")]


def _show(value: object) -> str:
    return repr(value) if isinstance(value, _Absent) else json.dumps(value, ensure_ascii=False, default=repr)

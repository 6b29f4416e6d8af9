"""Launchers, containers and loggers put words before every line; the verdict stays the same."""

from __future__ import annotations

import copy

import pytest

from tests.triage import reading

CASES = [
    case for case in reading.cases()
    if case.lines and case.about.get("kind", "log") == "log" and "telemetry" not in case.about
]  # fmt: skip

PREFIXES = {
    "rank": "[rank0]: ",
    "torchrun": "[default0]:",
    "srun": "3: ",
    "mpirun": "[1,0]<stderr>:",
    "ray": "(TrainWorker pid=123, ip=10.0.0.3) ",
    "compose": "trainer-1  | ",
    "kubernetes": "2025-03-01T10:00:01.123456789Z stderr F ",
    "journal": "Nov 29 12:00:01 box train[991]: ",
    "logger": "2025-03-01 10:00:01 | ERROR | __main__:main:12 - ",
    "colour": "\\e[31m",
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_verdict_is_the_same_behind_a_prefix(prefix: str) -> None:
    for case in CASES:
        prefixed = copy.copy(case)
        prefixed.lines = [PREFIXES[prefix] + line for line in case.lines]
        assert reading.first(reading.judged(prefixed)) == case.wanted, (case.cls, case.name)


def test_windows_line_ends_change_nothing() -> None:
    for case in CASES:
        if not any("\\r" in line for line in case.lines):
            ended = copy.copy(case)
            ended.lines = [line + "\\r" for line in case.lines]
            assert reading.first(reading.judged(ended)) == case.wanted, (case.cls, case.name)

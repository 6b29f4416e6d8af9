"""What a login prints before an answer (a notice, loaded modules) changes nothing of what is read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus.runner import Case, asked, misses, product_answer, read_cases

BANNER = b"""Welcome to Ubuntu 22.04.4 LTS (GNU/Linux 5.15.0-105-generic x86_64)

 * Documentation:  https://help.example.com

  System load:  0.31      Users logged in: 0
*** maintenance on Friday, 10:00 ***
Loading cuda/12.4
  Loading requirement: gcc/12.2.0
"""
# A program's own log, a file read by its place, and what ssh itself says have no login before them.
WITHOUT = re.compile(r"(?:bash|zsh|python|ssh) |cat (?:/sys|slurm|run)")
CASES = [
    case
    for case in read_cases(Path(__file__).parents[1] / "cases")
    if case.cmd is not None and case.stdout.strip() and not WITHOUT.match(case.cmd) and asked(case, "parse")
]


def test_there_are_cases() -> None:
    assert len(CASES) > 150


@pytest.mark.parametrize("kind", sorted({case.kind for case in CASES}))
def test_what_a_login_prints_changes_nothing(kind: str) -> None:
    changed = [case.id for case in CASES if case.kind == kind and _differs(case)]
    assert changed == []


def _differs(case: Case) -> bool:
    behind = replace(case, stdout=BANNER + case.stdout)
    return bool(misses(case, asked(case, "parse"), product_answer(behind)))

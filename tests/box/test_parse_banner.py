"""What stands around an answer (a notice of the login, colours, a terminal's line ends) changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
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


AROUND: dict[str, Callable[[bytes], bytes]] = {
    "banner": lambda raw: BANNER + raw,
    "pty": lambda raw: re.sub(rb"(?<!\r)\n", b"\r\n", raw),
    "colours": lambda raw: b"".join(b"\x1b[0;32m" + line + b"\x1b[0m\n" for line in raw.split(b"\n") if line),
    "mark of Windows": lambda raw: b"\xef\xbb\xbf" + raw,
    "no last line end": lambda raw: raw.rstrip(b"\n"),
    "blank lines": lambda raw: b"\n\n" + raw + b"\n\n",
}


@pytest.mark.parametrize("way", AROUND)
def test_what_stands_around_an_answer_changes_nothing(way: str) -> None:
    changed = [case.id for case in CASES if _differs(case, AROUND[way](case.stdout))]
    assert changed == []


def _differs(case: Case, stdout: bytes) -> bool:
    return bool(misses(case, asked(case, "parse"), product_answer(replace(case, stdout=stdout))))

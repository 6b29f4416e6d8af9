"""File cases that come from outside, made afresh: every verdict is compared. A user's checkout has none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import kind_f

GENERATOR = Path(__file__).parents[3] / "shared" / "corpus" / "make_files.py"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_every_file_case_gets_its_verdict_and_nothing_in_them_ran(tmp_path: Path) -> None:
    if not GENERATOR.is_file():
        pytest.skip(f"the file cases are made by {GENERATOR}, which is not beside this checkout")
    for library in ("numpy", "torch", "safetensors"):
        pytest.importorskip(library)
    cases = tmp_path / "cases"
    made = subprocess.run(
        [sys.executable, str(GENERATOR), str(cases)], capture_output=True, text=True, timeout=90, check=False
    )
    assert made.returncode == 0, made.stderr[-2000:]
    summary = kind_f.run(cases)
    assert [miss.line() for miss in summary.misses] == []
    assert summary.total == summary.passed >= 145
    assert not (cases / "CANARY_EXECUTED").exists()

"""`rgt stage` on a real sshd: from the mirror, from here, never over anything."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.real import need
from tests.rig import Sshd
from tests.runs.test_fetch import BODY, SUM, site
from tests.verbs.launched import box, where
from tui.cli import main
from tui.fleet.paths import Paths

__all__ = ["box", "site", "where"]

HERE = b"words\n" * 5000


def job_of(tmp_path: Path, inputs: str) -> str:
    code = tmp_path / "code"
    code.mkdir(exist_ok=True)
    (code / "words.txt").write_bytes(HERE)
    (code / "job.toml").write_text(f'name = "t"\nproject = "p"\nrun = ["true"]\ninputs = [{inputs}]\n')
    return str(code / "job.toml")


def test_what_is_missing_is_brought_and_the_preflight_is_content(
    where: Paths, box: Sshd, tmp_path: Path, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    need("curl")
    digest = hashlib.sha256(HERE).hexdigest()
    job = job_of(
        tmp_path,
        f'{{ path = "~/data/set.bin", mirror = "{site}/set.bin", sha256 = "{SUM}", bytes = {len(BODY)} }}, '
        f'{{ path = "~/data/in/words.txt", here = "words.txt", sha256 = "{digest}" }}',
    )
    assert main(["launch", job, "--on", "box-1", "--dry-run"]) == 1
    assert main(["stage", job, "--on", "box-1", "--dry-run"]) == 0
    assert not (box.home / "data").exists()
    capsys.readouterr()
    assert main(["stage", job, "--on", "box-1"]) == 0, capsys.readouterr().err
    assert (box.home / "data" / "set.bin").read_bytes() == BODY
    assert (box.home / "data" / "in" / "words.txt").read_bytes() == HERE
    assert main(["launch", job, "--on", "box-1", "--dry-run", "--sums"]) == 0
    assert capsys.readouterr().out.count("has the SHA-256 that the job names") == 3
    (box.home / "data" / "set.bin").write_text("mine")
    assert main(["stage", job, "--on", "box-1"]) == 0
    assert (box.home / "data" / "set.bin").read_text() == "mine"


def test_other_bytes_are_not_brought_and_what_is_nowhere_is_told(
    where: Paths, box: Sshd, tmp_path: Path, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = "0" * 64
    job = job_of(
        tmp_path,
        f'{{ path = "~/a.bin", mirror = "{site}/set.bin", sha256 = "{wrong}" }}, '
        f'{{ path = "~/b.txt", here = "words.txt", sha256 = "{wrong}" }}, {{ path = "~/c" }}',
    )
    assert main(["stage", job, "--on", "box-1"]) == 1
    told = capsys.readouterr().err
    assert "must have 0000" in told
    assert "holds other bytes than the job names" in told
    assert "~/c: is not there, and neither" in told
    assert not [name for name in ("a.bin", "b.txt", "c") if (box.home / name).exists()]
    assert main(["--read-only", "stage", job, "--on", "box-1"]) == 1

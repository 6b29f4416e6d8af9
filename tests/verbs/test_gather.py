"""`rgt gather` after `rgt close`, on a real sshd."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.verbs.launched import box, until_ended, where
from tui.cli import main
from tui.fleet.paths import Paths

__all__ = ["box", "where"]


def test_a_closed_run_is_gathered_with_a_receipt(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "job.toml").write_text(
        'name = "t"\nproject = "p"\n'
        'run = ["sh", "-c", "echo {} >$RGT_RUN/metrics.json; echo step 1/1 loss: 1"]\n'
        'finish = "metrics.json"\n'
    )
    assert main(["launch", str(code / "job.toml"), "--on", "box-1", "--json"]) == 0
    run = Path(json.loads(capsys.readouterr().out)["folder"])
    until_ended(run)
    assert main(["gather", run.name, "--to", "~/shared"]) == 1
    assert "Close it first" in capsys.readouterr().err
    assert main(["close", run.name]) == 0
    capsys.readouterr()
    assert main(["gather", run.name, "--to", "~/shared"]) == 0
    said = capsys.readouterr()
    assert "every SHA-256 the same on both sides" in said.out
    assert "the same file system" in said.err
    assert (box.home / "shared" / run.name / "metrics.json").read_text() == "{}\n"
    assert main(["gather", run.name]) == 2  # a plain ssh box has no durable folder of its own
    assert main(["receipts", "--json"]) == 0
    last = json.loads(capsys.readouterr().out)["receipts"][-1]
    assert (last["act"], last["result"]) == ("gather", "passed")

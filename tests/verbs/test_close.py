"""`rgt close` on a real sshd: sealed by one rename, never written over, or in quarantine with the reason."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rig import Sshd
from tests.verbs.launched import box, until_ended, where
from tui.box.local import LocalTransport
from tui.box.transport import Completed, Script
from tui.cli import main
from tui.fleet.paths import Paths
from tui.model.failure import Failure
from tui.runs.book import book
from tui.runs.close import Closed, close_out
from tui.runs.truth import look

__all__ = ["box", "where"]

JOB = f"""\
name = "tiny"
project = "p"
run = ["{sys.executable}", "train.py"]
finish = "metrics.json"
checkpoints = "ckpt/*.pt"
data = "data.sha256"
code = {{ config = "job.toml" }}
"""

TRAIN = """\
import os, sys
run = os.environ["RGT_RUN"]
os.makedirs(run + "/ckpt")
open(run + "/metrics.json", "w").write('{"loss": 0.5}')
open(run + "/ckpt/latest.pth", "w").write("x")
open(run + "/ckpt/best.pt", "wb").write(open(sys.argv[0].replace("train.py", "weights.bin"), "rb").read())
print("step 1/1")
"""


@pytest.fixture
def weights(tmp_path: Path) -> bytes:
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(3)}, tmp_path / "w.pt")
    return (tmp_path / "w.pt").read_bytes()


def launched(tmp_path: Path, capsys: pytest.CaptureFixture[str], weights: bytes, train: str = TRAIN) -> Path:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(train)
    (code / "weights.bin").write_bytes(weights)
    (code / "data.sha256").write_text(f"{'0' * 64}  train.bin\n")
    (code / "job.toml").write_text(JOB)
    main(["launch", str(code / "job.toml"), "--on", "box-1", "--json"])
    run = Path(json.loads(capsys.readouterr().out)["folder"])
    until_ended(run)
    return run


def test_a_finished_run_is_sealed_once(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str], weights: bytes
) -> None:
    run = launched(tmp_path, capsys, weights)
    assert main(["close", run.name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    export = run.parent.parent / "export" / run.name
    assert (told["kind"], told["folder"], told["notes"]) == ("sealed", str(export), [])
    held = sorted(str(path.relative_to(export)) for path in export.rglob("*") if path.is_file())
    assert held == ["ckpt/best.pt", "metrics.json", "run.json", "train.log"]
    identities = json.loads((export / "run.json").read_text())
    assert identities["run"] == run.name
    assert identities["end"]["reason"] == "finished"
    assert identities["config"] == f"sha256:{hashlib.sha256(JOB.encode()).hexdigest()}"
    assert identities["data"].startswith("sha256:")
    (run / "metrics.json").write_text('{"loss": 0.1}')
    assert main(["close", run.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "sealed-before"
    assert (export / "metrics.json").read_text() == '{"loss": 0.5}'


async def test_of_two_closes_at_once_each_names_only_what_it_judged(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str], weights: bytes
) -> None:
    """The second begins while the first one loads its copy."""
    run = await asyncio.to_thread(launched, tmp_path, capsys, weights)
    page, truth = book(where).page(run.name), await look(LocalTransport(), str(run))
    second: list[Closed] = []

    class Slow(LocalTransport):
        async def run(self, script: Script, **more: Any) -> Completed:
            if script.why.startswith("load") and not second:
                second.append(await close_out(LocalTransport(), page, truth))
            return await super().run(script, **more)

    assert (await close_out(Slow(), page, truth)).kind == "sealed-before"
    assert second[0].kind == "sealed"
    assert (run.parent.parent / "export" / run.name / "ckpt/best.pt").read_bytes() == weights
    assert list((run.parent.parent / "export" / ".partial").iterdir()) == []


async def test_what_another_plan_made_is_not_sealed_under_this_name(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str], weights: bytes
) -> None:
    run = await asyncio.to_thread(launched, tmp_path, capsys, weights)
    (run / ".rgt/plan/id").write_text("another\n")
    with pytest.raises(Failure, match="another plan"):
        await close_out(LocalTransport(), book(where).page(run.name), await look(LocalTransport(), str(run)))
    assert not (run.parent.parent / "export").exists()


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("'{\"loss\": 0.5}'", "'{'", "metrics.json is no JSON"),
        (".read())\nprint", ".read()[:-40])\nprint", "best.pt does not load"),
        ("best.pt", "best.txt", "Nothing matches ckpt/*.pt"),
        ("print(", "sys.exit(3)\nprint(", "ended with status 3"),
    ],
)
def test_what_does_not_pass_goes_into_quarantine_with_the_reason(
    where: Paths,
    box: Sshd,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    weights: bytes,
    was: str,
    now: str,
    says: str,
) -> None:
    run = launched(tmp_path, capsys, weights, TRAIN.replace(was, now))
    assert main(["close", run.name]) == 1
    assert says in capsys.readouterr().out
    apart = run.parent.parent / "quarantine" / f"{run.name}--1"
    assert says in (apart / "REASON.txt").read_text()
    assert not (run.parent.parent / "export" / run.name).exists()
    assert (run / "metrics.json").exists()


def test_a_run_that_goes_on_is_not_closed(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "job.toml").write_text(
        'name = "x"\nproject = "p"\nrun = ["sh", "-c", "echo step 1/2; sleep 60"]\n'
    )
    main(["launch", str(code / "job.toml"), "--on", "box-1", "--json"])
    run = json.loads(capsys.readouterr().out)["run"]
    assert main(["close", run]) == 1
    assert f"{run} is running" in capsys.readouterr().err


def test_a_run_that_rgt_did_not_launch_is_named(where: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["close", "nobody"]) == 2
    assert "was not launched from this computer" in capsys.readouterr().err
    shutil.rmtree(where.state, ignore_errors=True)

"""`rgt job`, `smoke`, `push` and `launch` on a real sshd: from a job file to a run that is watched."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.verbs.launched import box, until_ended, where
from tui.cli import main
from tui.fleet import settings
from tui.fleet.paths import Paths

__all__ = ["box", "where"]

TRAIN = """\
import json, os, sys, time
print("token", "yes" if os.environ.get("HUB_TOKEN", "").endswith("cret") else "no", flush=True)
for step in range(1, 4):
    print(f"step {step}/3 loss: {1 / step:.3f}", flush=True)
    time.sleep(0.3)
json.dump({"loss": 0.3}, open(os.path.join(os.environ["RGT_RUN"], "metrics.json"), "w"))
"""

JOB = """\
name = "tiny"
project = "p"
run = ["python3", "train.py"]
finish = "metrics.json"
secrets = ["HUB_TOKEN"]
smoke = ["python3", "-c", "import train"]
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    file = code / "job.toml"
    file.write_text(JOB)
    return file


def rgt(*words: str) -> int:
    return main(list(words))


def test_a_job_is_launched_watched_and_ends_by_itself(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rgt("launch", str(job), "--on", "box-1", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] in ("first-step", "finished")
    run = Path(told["folder"])
    assert run == box.home / "rgt" / "p" / "active" / told["run"]
    assert until_ended(run).startswith("reason finished")
    log = (run / "train.log").read_text()
    assert log.startswith("token yes\n")
    secret = run / ".rgt" / "secrets"
    assert secret.stat().st_mode & 0o077 == 0
    spec = next(one for one in settings.load(where.fleet_file).runs if one.name == told["run"])
    assert (spec.box, spec.log) == ("box-1", str(run / "train.log"))
    assert rgt("launch", str(job), "--on", "box-1", "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["kind"], again["attempt"]) == ("finished", 1)
    assert rgt("receipts", "--json") == 0
    receipts = json.loads(capsys.readouterr().out)["receipts"]
    assert [one["act"] for one in receipts] == ["launch", "launch"]
    written = [
        path for path in (where.state, where.config, run) for path in path.rglob("*") if path.is_file()
    ]
    assert [path for path in written if b"hf_secret" in path.read_bytes()] == [secret]


def test_what_stops_a_launch_is_told_before_anything_is_done(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job.write_text(JOB + 'inputs = [{ path = "/no/such/set.tar", mirror = "https://example.com/set.tar" }]\n')
    assert rgt("launch", str(job), "--on", "box-1") == 1
    told = capsys.readouterr().out
    assert "/no/such/set.tar is not on the box; it can be fetched from https://example.com/set.tar" in told
    assert "Nothing was started." in told
    assert not (box.home / "rgt").exists()
    monkeypatch.delenv("HUB_TOKEN")
    assert rgt("launch", str(job), "--on", "box-1") == 1
    assert "HUB_TOKEN, which is not set here" in capsys.readouterr().err


def test_a_dry_run_shows_the_plan_and_does_nothing(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rgt("launch", str(job), "--on", "box-1", "--dry-run") == 0
    told = capsys.readouterr().out
    assert "done when metrics.json is there" in told
    assert "outlives its connection: tried" in told
    assert not (box.home / "rgt").exists()


def test_an_input_is_looked_for_on_the_box_here_and_at_its_mirror(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (job.parent / "set.bin").write_bytes(b"x" * 10)
    (box.home / "set.bin").write_bytes(b"y" * 10)
    digest = hashlib.sha256(b"x" * 10).hexdigest()
    job.write_text(
        JOB + 'inputs = [{ path = "~/set.bin", here = "set.bin", mirror = "http://127.0.0.1:9/set.bin", '
        f'bytes = 10, sha256 = "{digest}" }}]\n'
    )
    assert rgt("launch", str(job), "--on", "box-1", "--dry-run") == 0
    told = capsys.readouterr().out
    assert "~/set.bin is there." in told
    assert "set.bin has the SHA-256 that the job names." in told
    assert "mirror: http://127.0.0.1/set.bin did not answer" in told
    assert rgt("launch", str(job), "--on", "box-1", "--dry-run", "--sums") == 1
    assert "~/set.bin holds other bytes than the job names" in capsys.readouterr().out


def test_read_only_mode_launches_nothing(where: Paths, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rgt("--read-only", "launch", str(job), "--on", "box-1") == 1
    assert "read-only" in capsys.readouterr().err


def test_push_alone_brings_the_code(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rgt("push", str(job), "--on", "box-1", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sent"] == 2
    assert rgt("push", str(job), "--on", "box-1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["sent"] == 0


def test_smoke_runs_in_a_copy(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job.write_text(
        JOB.replace("import train", "import os; open('made', 'w'); print(os.environ['CUDA_VISIBLE_DEVICES'])")
    )
    assert rgt("smoke", str(job)) == 0
    assert not (job.parent / "made").exists()
    job.write_text(JOB.replace("import train", "raise SystemExit(3)"))
    assert rgt("smoke", str(job)) == 1
    assert "failed with 3" in capfd.readouterr().err
    job.write_text(JOB.replace("import train", "import time; time.sleep(60)"))
    assert rgt("smoke", str(job), "--timeout", "1") == 1


def test_job_is_checked_and_its_schema_printed(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rgt("job", str(job)) == 0
    assert "metrics.json" in capsys.readouterr().out
    assert rgt("job", "--schema") == 0
    assert "properties" in json.loads(capsys.readouterr().out)
    job.write_text(JOB.replace('name = "tiny"', "name = 3"))
    assert rgt("job", str(job)) == 1
    assert "job.toml:1:" in capsys.readouterr().err

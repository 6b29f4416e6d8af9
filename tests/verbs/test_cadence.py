"""`rgt cadence` on a real sshd: by the run's own words, and by its files and the disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.verbs.launched import box, until_ended, where
from tui.cli import main
from tui.fleet.paths import Paths

__all__ = ["box", "where"]

SAVES = """\
import os, sys, time
run = os.environ["RGT_RUN"]
for step in (1, 2, 3):
    path = f"{run}/step-{step}.pt"
    with open(path, "wb") as file:
        file.write(b"x" * 3_000_000)
    os.utime(path, (1_700_000_000 + 600 * step,) * 2)
    if sys.argv[1] == "tells":
        print(f"checkpoint saved: step {step}, 3000000 bytes in {step}.00 s", flush=True)
print("step 3/3 loss: 0.5", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("word", ["tells", "is silent"])
def test_it_is_worked_out_from_what_the_run_did(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(SAVES)
    (code / "job.toml").write_text(
        f'name = "t"\nproject = "p"\nrun = ["python3", "train.py", "{word}", "0"]\n'
        'checkpoints = "step-*.pt"\n'
    )
    assert main(["launch", str(code / "job.toml"), "--on", "box-1", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["checkpoint_every_s"] is None or word == "tells"
    run = Path(first["folder"])
    until_ended(run)
    told = main(["cadence", run.name, "--json"]), json.loads(capsys.readouterr().out)
    assert (told[1]["now_s"], told[1]["size"]) == (600.0, 3_000_000)
    if word == "tells":
        assert (told[0], told[1]["save_s"]) == (0, 2.0)
        (code / "job.toml").write_text(
            (code / "job.toml").read_text().replace('"tells", "0"', '"silent", "60"')
        )
        assert main(["launch", str(code / "job.toml"), "--on", "box-1"]) == 0
        assert f"checkpoints: a save takes 2.0 s (by {run.name}: " in capsys.readouterr().out
        return
    assert (told[0], told[1]["save_s"]) == (4, None)
    assert main(["cadence", run.name, "--measure"]) == 0
    said = capsys.readouterr().out
    assert "making it comes on top" in said
    assert "RGT_CHECKPOINT_EVERY_S" in said
    assert not list((run / ".rgt").glob("speed*"))
    assert main(["handbook", run.name]) == 0
    assert f"rgt cadence {run.name}" in capsys.readouterr().out

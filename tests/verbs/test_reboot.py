"""The power of a box is cut while a run is at work: what is told of it then, and how it goes on."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import need
from tests.rig.machine import Machine
from tests.verbs.launched import until_ended, where
from tui.cli import main
from tui.fleet.paths import Paths
from tui.runs.truth import Truth, look
from tui.verbs.ending import instance_named
from tui.verbs.line import line_to

__all__ = ["where"]

TRAIN = """\
import os, time
run = os.environ["RGT_RUN"]
try:
    step = int(open(run + "/ckpt").read())
except FileNotFoundError:
    step = 0
print("from", step, flush=True)
while step < 60:
    step += 1
    print(f"step {step}/60 loss: 0.5", flush=True)
    open(run + "/ckpt.part", "w").write(str(step)); os.replace(run + "/ckpt.part", run + "/ckpt")
    time.sleep(0.1)
open(run + "/out", "w").write("x")
"""


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Machine]:
    need("tmux")
    sockets = tmp_path / "tmux"
    sockets.mkdir()
    machine = Machine.start(tmp_path / "machine", extra_config=(f"SetEnv TMUX_TMPDIR={sockets}",))
    assert isinstance(machine, Machine)
    yield machine
    machine.stop()


def truth(where: Paths, run: Path) -> Truth:
    async def ask() -> Truth:
        async with line_to(instance_named("box-1", where), where) as line:
            return await look(await line(), str(run))

    return asyncio.run(ask())


@pytest.mark.slow
@pytest.mark.parametrize("as_container", [False, True], ids=["machine", "container"])
def test_a_rebooted_box_lost_the_run_which_is_told_and_goes_on_by_resume(
    where: Paths, box: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str], as_container: bool
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    (code / "job.toml").write_text(
        'name = "t"\nproject = "p"\nrun = ["python3", "-u", "train.py"]\nfinish = "out"\n'
    )
    assert main(["launch", str(code / "job.toml"), "--on", "box-1", "--json"]) == 0
    run = Path(json.loads(capsys.readouterr().out)["folder"])
    deadline = time.monotonic() + 20
    while "step 5/" not in (run / "train.log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    box.cut_power()
    deadline = time.monotonic() + 10
    while box.processes():
        assert time.monotonic() < deadline
    assert main(["resume", run.name]) == 3  # nobody is there: nothing is said of the run, nothing is started
    box.boot(as_container=as_container)
    if (
        not as_container
    ):  # another host of this name could have this disk, so a fresh heartbeat is no death yet
        assert truth(where, run).state == "unknown"
        (run / ".rgt" / "heartbeat").write_text(f"{time.time() - 200:.0f}\n")
    seen = truth(where, run)
    assert (seen.state, seen.alive, seen.attempt, seen.end) == ("lost", False, 1, {})
    assert ("started again since" in seen.why) is not as_container
    before = int((run / "ckpt").read_text())
    capsys.readouterr()
    assert main(["resume", run.name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"] in ("first-step", "finished"), told["attempt"]) == (True, 2)
    assert until_ended(run, 2).startswith("reason finished")
    begun = [line for line in (run / "train.log").read_text().split("\n") if line.startswith("from")]
    assert begun[0] == "from 0"
    assert begun[1:] == [f"from {before}"]
    assert truth(where, run).state == "finished"

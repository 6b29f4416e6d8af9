"""A copy that another box read back: loaded by its python, its metrics recomputed here, its reader chosen."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.box.boxes import Desk
from tests.checkpoints.made import calls, need_torch, torch_zip
from tests.rig import Sshd
from tests.workers.teardown_rig import Dialled, Rig, furnish, put, running, safetensors
from tui.box.timing import Timing
from tui.custody.errand import errand
from tui.custody.records import custody_folder
from tui.fleet.paths import Paths
from tui.model.custody import LoadReport, MetricReport, ReadbackReport
from tui.model.ending import ChooseDestination, ChooseReader, DecideLeftovers, RedoStep, StartTeardown
from tui.model.failure import Failure
from tui.model.teardown import TeardownView
from tui.workers.far_bridge import Python, best, private_folder
from tui.workers.local_box import LocalBox

OPEN = StartTeardown("box", "exp", "destroy")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.custody.roster.SETTLE_S", 0.02)


@pytest.fixture
def vault(sshd_factory: Callable[..., Sshd], tmp_path: Path) -> Sshd:
    """A second box, with a python that has NumPy and torch, and its own folder for what is restored there."""
    (tmp_path / "readbacks").mkdir()
    server = sshd_factory(extra_config=[f"SetEnv TMPDIR={tmp_path}/readbacks"])
    python = server.home / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return server


@pytest.fixture
def made(tmp_path: Path, vault: Sshd) -> tuple[Path, Path]:
    home, top = furnish(tmp_path)
    fleet = home / "config" / "fleet.toml"
    fleet.write_text(
        fleet.read_text()
        + f'\n[instances.vault]\nplatform = "ssh"\nhost = "{vault.host}"\nport = {vault.port}\n'
        f'user = "{vault.user}"\nkey = "{vault.client_key}"\n'
        f'\n[instances.alias]\nplatform = "ssh"\nhost = "box.example"\n'
    )
    return home, top


def predict(top: Path) -> None:
    """A test of 40 samples, of which every fourth is wrong."""
    put(
        top / "test" / "predictions.csv",
        b"id,target,prediction\n"
        + b"".join(b"%d,%d,%d\n" % (n, n % 2, n % 2 if n % 4 else 1 - n % 2) for n in range(40)),
    )
    put(top / "test" / "metrics.json", b'{"accuracy": 0.75}')


def to_both(tmp_path: Path) -> Dialled:
    """The box is this computer; the vault is reached over SSH."""
    connector = Desk(tmp_path, timing=Timing()).connector()  # these tests are about no lost link
    return lambda one: LocalBox(one.name) if one.name == "box" else connector.connect(one)


async def to_the_end(rig: Rig, reader: str = "vault") -> TeardownView:
    view = await rig.do(OPEN)
    await rig.do(DecideLeftovers("box", tuple(one.group for one in view.leftovers), "scrap", "old"))
    await rig.do(ChooseReader("box", reader))
    return await rig.do(ChooseDestination("box", str(rig.home / "copies")))


def reports(rig: Rig) -> tuple[ReadbackReport, LoadReport, MetricReport]:
    records = errand("exp", rig.where).records
    return records.need(ReadbackReport, ""), records.need(LoadReport, ""), records.need(MetricReport, "")


@pytest.mark.real
@pytest.mark.slow
async def test_loaded_there_and_measured_here(made: tuple[Path, Path], tmp_path: Path) -> None:
    """To the phrase, with all of it recorded."""
    torch = need_torch()
    predict(made[1])
    torch.save({"w": torch.arange(50_000, dtype=torch.float32)}, made[1] / "ckpt" / "last.pt")
    os.utime(made[1] / "ckpt" / "last.pt", (time.time() - 3600,) * 2)
    async with running(*made, dialled=to_both(tmp_path)) as rig:
        view = await to_the_end(rig)
        assert view.question == "phrase", view
        assert view.reader == "vault"
        assert view.readers == ("vault",)
        readback, loaded, measured = reports(rig)
        assert readback.consumer.box == "vault"
        assert {one.path: one.verdict for one in loaded.checkpoints} == {
            "ckpt/best.safetensors": "ok",
            "ckpt/last.pt": "ok",
        }
        there = next(one.detail for one in loaded.gaps if one.code == "loaded-on-box")
        assert there.startswith(f"on vault, by python {sys.version_info.major}.")
        assert "kept from" in there
        assert "memory" in there
        assert {one.code for one in loaded.gaps} & {"not-loaded", "values-not-checked"} == set()
        (metric,) = measured.metrics
        assert (metric.verdict, metric.recomputed, metric.population) == ("recomputed", "0.75", 40)
        assert "recomputed on this computer" in measured.gaps[0].detail
        task = errand("exp", rig.where)
        assert not (task.folder / "metrics-fetched").exists()


@pytest.mark.real
@pytest.mark.slow
async def test_a_declared_evaluator_runs_where_the_copy_was_read_back(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    predict(made[1])
    put(made[1] / "test" / "metrics.json", b'{"accuracy": 0.75, "own_score": 12.5}')
    program = "import json, os; print(json.dumps({'own_score': 12.5 if '/readbacks/' in os.getcwd() else 0}))"
    kept = custody_folder(Paths(made[0] / "config", made[0] / "state"), "exp") / "job.toml"
    kept.parent.mkdir(parents=True)
    kept.write_text(
        '[custody.artifacts]\ncheckpoint = ["ckpt/best.safetensors"]\n'
        'predictions = ["test/predictions.csv"]\nmetrics = ["test/metrics.json"]\n'
        f"[custody.evaluator]\ncommand = {json.dumps([sys.executable, '-c', program])}\n"
    )
    async with running(*made, dialled=to_both(tmp_path)) as rig:
        view = await to_the_end(rig)
        assert view.question == "phrase", view
        measured = reports(rig)[2]
        assert {one.name: one.verdict for one in measured.metrics} == {
            "accuracy": "recomputed",
            "own_score": "recomputed",
        }
        assert measured.gaps[0].detail.endswith("The declared evaluator ran on vault.")


@pytest.mark.real
@pytest.mark.slow
async def test_the_damaged_and_the_hostile_are_named_there(made: tuple[Path, Path], tmp_path: Path) -> None:
    whole = torch_zip(b"", {"0": os.urandom(600_000)})
    put(made[1] / "ckpt" / "cut.safetensors", safetensors()[:-2])
    put(made[1] / "ckpt" / "evil.pt", torch_zip(calls("os.system", f"touch {tmp_path}/ran"), {}))
    put(made[1] / "ckpt" / "flip.pt", whole[:300_000] + bytes([whole[300_000] ^ 8]) + whole[300_001:])
    async with running(*made, dialled=to_both(tmp_path)) as rig:
        view = await to_the_end(rig)
        assert view.phrase is None
        assert rig.step("load").state == "refused"
        _, loaded, _ = reports(rig)
        assert {one.path: one.code for one in loaded.checkpoints} == {
            "ckpt/best.safetensors": "ok",
            "ckpt/cut.safetensors": "corrupt-truncated",
            "ckpt/evil.pt": "unsafe-pickle",
            "ckpt/flip.pt": "corrupt-bitflip",
        }
        assert not (tmp_path / "ran").exists()
    # a bit that flips on the reader's disk after the readback
    (made[1] / "ckpt" / "cut.safetensors").unlink()
    (made[1] / "ckpt" / "evil.pt").unlink()
    (made[1] / "ckpt" / "flip.pt").unlink()
    async with running(*made, dialled=to_both(tmp_path)) as rig:
        view = await rig.do(OPEN)
        assert view.question == "phrase", view
        restored = Path(reports(rig)[0].consumer.path) / "ckpt" / "best.safetensors"
        raw = bytearray(restored.read_bytes())
        raw[-2] ^= 1
        restored.write_bytes(raw)
        view = await rig.do(RedoStep("box", "load"))
        assert view.phrase is None
        assert [(one.code, one.path) for one in rig.step("load").refusals] == [
            ("readback-changed", "ckpt/best.safetensors")
        ]
        shutil.rmtree(restored.parents[2])
        view = await rig.do(RedoStep("box", "load"))  # what was restored is gone: it is read back anew
        assert view.question == "phrase", view
        assert Path(reports(rig)[0].consumer.path) not in restored.parents
        view = await rig.do(ChooseReader("box", ""))  # another reader voids what the first one said
        assert view.question == "phrase", view
        assert reports(rig)[0].consumer.kind == "path"


@pytest.mark.real
@pytest.mark.slow
async def test_a_box_without_python_leaves_a_gap_and_says_what_is_missing(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.workers.far_bridge._PYTHONS", ":")
    predict(made[1])
    async with running(*made, dialled=to_both(tmp_path)) as rig:
        view = await to_the_end(rig)
        assert view.question == "phrase", view
        _, loaded, measured = reports(rig)
        assert [one.verdict for one in loaded.checkpoints] == ["not-loaded"]
        assert "install it" in next(one.detail for one in loaded.gaps if one.code == "no-python-there")
        assert [one.verdict for one in measured.metrics] == ["recomputed"]


@pytest.mark.real
@pytest.mark.slow
async def test_predictions_that_are_too_large_are_not_fetched(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.custody.metric_files.MOST", 100)
    predict(made[1])
    async with running(*made, dialled=to_both(tmp_path)) as rig:
        view = await to_the_end(rig)
        assert view.phrase is None
        step = view.step(view.current)
        assert step is not None
        assert step.state == "failed"
        assert "at most 100 B are fetched" in step.brief
        assert "rgt readback exp --on here" in step.brief
        records = errand("exp", rig.where).records
        assert records.newest(LoadReport) is not None
        assert records.newest(MetricReport) is None


async def test_the_producer_may_not_be_chosen_by_any_name(made: tuple[Path, Path]) -> None:
    async with running(*made) as rig:
        view = await rig.do(OPEN)
        assert view.reader == "here"
        for name in ("box", "alias"):
            with pytest.raises(Failure) as caught:
                await rig.do(ChooseReader("box", name))
            assert caught.value.code == "read-by-producer"
            assert "or here" in caught.value.line
        with pytest.raises(Failure, match="No box is named"):
            await rig.do(ChooseReader("box", "nowhere"))
        assert rig.view.reader == "here"
        assert "this computer" in rig.step("readback").runs
        await rig.do(ChooseReader("box", "vault"))
        assert "fresh folder of vault" in rig.step("readback").runs


@pytest.mark.slow
async def test_one_place_for_copy_and_reader_is_said_before_and_after(made: tuple[Path, Path]) -> None:
    async with running(*made) as rig:
        view = await to_the_end(rig, "here")
        assert view.question == "phrase"
        assert "same-device" in {one.code for one in rig.step("readback").gaps}
        assert "same-device" in rig.step("readback").brief
    async with running(*made) as rig:
        await rig.teardowns.handle(OPEN)
        view = await rig.until(lambda view: view.reader == "here")
        assert "recorded as same-device" in rig.step("readback").expected


@pytest.mark.real
@pytest.mark.slow
async def test_files_that_a_killed_readback_left_on_their_way_are_none_of_the_next(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    way = (
        custody_folder(Paths(made[0] / "config", made[0] / "state"), "exp")
        / "readback-staging"
        / "on-its-way"
    )
    put(way / "ckpt" / "best.safetensors", b"half")
    async with running(*made, dialled=to_both(tmp_path)) as rig:
        view = await to_the_end(rig)
        assert view.question == "phrase", view
        assert not way.exists()


WALK = """
import asyncio, sys
from pathlib import Path
from tests.workers.test_judged_there import OPEN, to_both
from tests.workers.teardown_rig import running
from tui.model.ending import ChooseDestination, ChooseReader, DecideLeftovers
import tui.custody.roster
tui.custody.roster.SETTLE_S = 0.02

async def main(home, top, tmp):
    async with running(Path(home), Path(top), dialled=to_both(Path(tmp))) as rig:
        view = await rig.do(OPEN)
        await rig.do(DecideLeftovers("box", tuple(one.group for one in view.leftovers), "scrap", "old"))
        await rig.do(ChooseReader("box", "vault"))
        await rig.teardowns.handle(ChooseDestination("box", home + "/copies"))
        while True:
            rig.store.fold()
            view = rig.store.snapshot.teardown("box")
            print(view.current, view.step(view.current).state, flush=True)
            await asyncio.sleep(0.005)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("at", ["readback running", "load running"])
async def test_kill_9_keeps_the_choice(made: tuple[Path, Path], tmp_path: Path, at: str) -> None:
    walker = subprocess.Popen(
        [sys.executable, "-c", WALK, str(made[0]), str(made[1]), str(tmp_path)],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    try:
        assert walker.stdout is not None
        end = time.monotonic() + 40
        while at not in (line := walker.stdout.readline()):
            assert line, "it ended by itself"
            assert time.monotonic() < end, line
    finally:
        walker.send_signal(signal.SIGKILL)
        walker.wait()
    async with running(*made, dialled=to_both(tmp_path)) as rig:
        view = await rig.do(OPEN)
        assert view.question == "phrase", view
        assert view.reader == "vault"
        assert rig.step("copy").reused
        assert rig.step("readback").reused == (at == "load running")
        assert reports(rig)[0].consumer.box == "vault"


def test_what_a_killed_process_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = subprocess.Popen(["true"])
    dead.wait()
    left, ours, odd = (tmp_path / f"rgt-bridge-{one}-x" for one in (dead.pid, os.getpid(), "y"))
    for folder in (left, ours, odd):
        folder.mkdir()
    made = private_folder()
    assert sorted(tmp_path.iterdir()) == sorted([ours, odd, made])


def _said(**more: object) -> bytes:
    told = {"path": "/usr/bin/python3", "version": [3, 11, 2], "numpy": "", "torch": "", **more}
    return json.dumps(told).encode()


def test_the_python_that_can_do_most() -> None:
    bare, numbers = _said(), _said(path="/a", numpy="2.1.0")
    old, safe = _said(path="/b", numpy="2", torch="2.1.0"), _said(path="/c", numpy="2", torch="2.10.0+cpu")
    assert best(b"\n".join([bare, safe, old, numbers])) == Python("/c", "3.11.2", "2", "2.10.0+cpu")
    assert best(b"\n".join([bare, old, numbers])) == Python("/b", "3.11.2", "2", "2.1.0")
    assert best(b"\n".join([bare, numbers])).path == "/a"  # type: ignore[union-attr]
    assert best(bare).lacks == "NumPy and torch"  # type: ignore[union-attr]
    too_old, relative = _said(version=[3, 6, 8]), _said(path="python3")
    assert best(b"\n".join([b"noise", b"[]", b"{}", too_old, relative])) is None

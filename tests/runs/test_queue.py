"""Cells have names of their own, are claimed once by boxes that share a folder, and go on after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.real import need
from tests.rig.tmpfs import fill, tmpfs
from tui.box.local import LocalTransport
from tui.model.failure import Failure
from tui.model.job import Job
from tui.runs import queue
from tui.runs.cells import Cell, cells, split
from tui.runs.detach import lay_down
from tui.runs.plan_files import Where, plan_files

SHELLS = ("dash", "busybox", "bash")


def job(matrix: dict[str, list[object]], *run: str) -> Job:
    words = run or ("sh", "-c", 'echo "$0" >>"$RGT_RUN/../../ran"; echo x >out', "{cell.seed}")
    return Job.model_validate({"name": "j", "project": "p", "run": words, "finish": "out", "matrix": matrix})


def test_a_matrix_makes_each_combination_once() -> None:
    found = cells(job({"seed": [1, 2], "lr": [0.1, "1e-3"]}), "c0de")
    assert [dict(one.values) for one in found] == [
        {"seed": "1", "lr": "0.1"}, {"seed": "1", "lr": "1e-3"},
        {"seed": "2", "lr": "0.1"}, {"seed": "2", "lr": "1e-3"},
    ]  # fmt: skip
    assert found[0].name.startswith("j-seed-1_lr-0.1-")
    assert [one.name for one in cells(job({"seed": [1, 2], "lr": [0.1, "1e-3"]}), "c0de")] == [
        one.name for one in found
    ]


def test_equal_values_are_refused_and_other_code_makes_other_runs() -> None:
    with pytest.raises(Failure, match="one place"):
        cells(job({"seed": [1, "1"]}), "c0de")
    with pytest.raises(Failure, match="no matrix"):
        cells(job({}), "c0de")
    assert cells(job({"seed": [1]}), "a")[0].name != cells(job({"seed": [1]}), "b")[0].name


@given(st.lists(st.text(st.characters(codec="ascii"), max_size=30), min_size=2, max_size=8, unique=True))
def test_names_that_look_alike_stay_apart(values: list[str]) -> None:
    names = [one.name.casefold() for one in cells(job({"seed": [*values]}), "c")]
    assert len(set(names)) == len(names)
    assert all("/" not in name and len(name) < 110 for name in names)


def test_work_is_split_so_that_all_end_together() -> None:
    many = tuple(Cell(f"c{n}", {}) for n in range(9))
    shares = split(many, {"fast": 2.0, "slow": 1.0})
    assert (len(shares["fast"]), len(shares["slow"])) == (6, 3)
    dear = split(many, {"a": 1.0, "b": 1.0}, {"c0": 8.0})
    assert [one.name for one in dear["a"]] == ["c0"]
    assert len(dear["b"]) == 8


class Workers:
    """Worker processes of a test's boxes; all boxes are this computer, told apart by their queue folders."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self.started: list[subprocess.Popen[bytes]] = []

    async def lay(self, box: str, one: Job, claims: Path) -> dict[str, str]:
        found = cells(one, "c0de")
        folders = queue.shares(found, str(self.tmp / "p"))
        for cell in found:
            run = folders[cell.name]
            await lay_down(LocalTransport(), run, plan_files(one, Where(run, {}, cell.values)))
        await queue.lay_down(LocalTransport(), str(self.tmp / box), folders, str(claims))
        return folders

    def start(self, box: str, shell: str = "dash") -> subprocess.Popen[bytes]:
        words = [need(shell)[shell], *(["sh"] if shell == "busybox" else [])]
        folder = self.tmp / box
        self.started.append(
            subprocess.Popen([*words, str(folder / queue.worker_name()), str(folder)], start_new_session=True)
        )
        return self.started[-1]


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    found = Workers(tmp_path)
    yield found
    for one in found.started:
        if one.poll() is None:
            for process in psutil.Process(one.pid).children(recursive=True):
                process.kill()
            one.kill()
            one.wait(timeout=5)


def test_shellcheck_has_nothing_to_say() -> None:
    tool = need("shellcheck")["shellcheck"]
    said = subprocess.run([tool, "-s", "sh", "-"], input=queue.worker(), capture_output=True, timeout=60)
    assert said.stdout == b""


@pytest.mark.parametrize("shell", SHELLS)
async def test_boxes_that_share_claims_run_each_cell_once(
    workers: Workers, tmp_path: Path, shell: str
) -> None:
    one, claims = job({"seed": [1, 2, 3, 4, 5, 6]}), tmp_path / "claims"
    folders = await workers.lay("a", one, claims)
    await workers.lay("b", one, claims)
    for process in [workers.start("a", shell), workers.start("b", shell)]:
        assert process.wait(timeout=60) == 0
    assert sorted((tmp_path / "p" / "ran").read_text().split()) == ["1", "2", "3", "4", "5", "6"]
    seen = await queue.read(LocalTransport(), str(claims), folders)
    assert {one.state for one in seen} == {"complete"}
    assert len(seen) == 6


async def test_a_cell_that_fails_does_not_stop_the_next_and_is_tried_again(
    workers: Workers, tmp_path: Path
) -> None:
    word = '[ "$0" != 2 ] || [ -e "$RGT_RUN/../../mended" ] || exit 3; echo x >out'
    one, claims = job({"seed": [1, 2, 3]}, "sh", "-c", word, "{cell.seed}"), tmp_path / "claims"
    folders = await workers.lay("a", one, claims)
    workers.start("a").wait(timeout=60)
    seen = await queue.read(LocalTransport(), str(claims), folders)
    assert [one.state for one in seen] == ["complete", "failed", "complete"]
    assert "status 3" in seen[1].why
    (tmp_path / "p" / "mended").touch()
    workers.start("a").wait(timeout=60)
    seen = await queue.read(LocalTransport(), str(claims), folders)
    assert [(one.state, one.attempt) for one in seen] == [("complete", 1), ("complete", 2), ("complete", 1)]


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_claim_that_a_full_disk_takes_no_record_of_is_given_back(
    workers: Workers, tmp_path: Path, shell: str
) -> None:
    one = job({"seed": [1, 2]})
    with tmpfs(tmp_path / "small", size=1 << 20) as disk:
        claims = disk / "claims"
        folders = await workers.lay("a", one, claims)
        claims.mkdir()
        ballast = fill(disk, 0)
        assert workers.start("a", shell).wait(timeout=60) == 0
        seen = await queue.read(LocalTransport(), str(claims), folders)
        assert [one.state for one in seen] == ["waiting", "waiting"]
        ballast.unlink()
        assert workers.start("a", shell).wait(timeout=60) == 0
        seen = await queue.read(LocalTransport(), str(claims), folders)
        assert [one.state for one in seen] == ["complete", "complete"]


async def test_after_a_crash_the_same_box_goes_on_and_a_second_worker_is_refused(
    workers: Workers, tmp_path: Path
) -> None:
    word = '[ -e "$RGT_RUN/../../go" ] || exec sleep 60; echo x >out'
    one, claims = job({"seed": [1, 2]}, "sh", "-c", word), tmp_path / "claims"
    folders = await workers.lay("a", one, claims)
    first = workers.start("a")
    deadline = time.monotonic() + 20
    while (await queue.read(LocalTransport(), str(claims), folders))[0].state != "running":
        assert time.monotonic() < deadline
    assert workers.start("a").wait(timeout=20) == 73
    children = psutil.Process(first.pid).children(recursive=True)
    first.kill()
    for process in children:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    first.wait(timeout=5)
    assert [one.state for one in await queue.read(LocalTransport(), str(claims), folders)] == [
        "lost",
        "waiting",
    ]
    (tmp_path / "p" / "go").touch()
    assert workers.start("a").wait(timeout=60) == 0
    assert {one.state for one in await queue.read(LocalTransport(), str(claims), folders)} == {"complete"}


async def test_a_cell_whose_worker_was_killed_is_waited_for(workers: Workers, tmp_path: Path) -> None:
    """The next cell would share its cards with it."""
    word = 'cd ../..; while [ ! -e go ]; do sleep 0.1; done; echo "$0" >>ran; echo x >"$RGT_RUN/out"'
    one, claims = job({"seed": [1, 2]}, "sh", "-c", word, "{cell.seed}"), tmp_path / "claims"
    folders = await workers.lay("a", one, claims)
    first = workers.start("a")
    deadline = time.monotonic() + 20
    while (await queue.read(LocalTransport(), str(claims), folders))[0].state != "running":
        assert time.monotonic() < deadline
    first.kill()
    first.wait(timeout=5)
    second = workers.start("a")
    log = tmp_path / "a" / "log"
    while log.read_text().count("began") < 2:
        assert time.monotonic() < deadline
    time.sleep(1.0)
    seen = await queue.read(LocalTransport(), str(claims), folders)
    assert [one.state for one in seen] == ["running", "waiting"]
    (tmp_path / "p" / "go").touch()
    assert second.wait(timeout=60) == 0
    seen = await queue.read(LocalTransport(), str(claims), folders)
    assert [(one.state, one.attempt) for one in seen] == [("complete", 1), ("complete", 1)]
    assert sorted((tmp_path / "p" / "ran").read_text().split()) == ["1", "2"]


async def test_a_claim_of_another_host_is_left_alone(workers: Workers, tmp_path: Path) -> None:
    one, claims = job({"seed": [1]}), tmp_path / "claims"
    folders = await workers.lay("a", one, claims)
    name = next(iter(folders))
    (claims / name).mkdir(parents=True)
    (claims / name / "holder").write_text("1 2 some-boot other-host\n")
    assert workers.start("a").wait(timeout=20) == 0
    seen = await queue.read(LocalTransport(), str(claims), folders)
    assert (seen[0].state, seen[0].by) == ("claimed", "other-host")
    assert not (tmp_path / "p" / "ran").exists()
    assert "skipped" in (tmp_path / "a" / "log").read_text()

"""A launch under way, with this computer as the box: nothing before the word, one start after it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.real import need
from tui.custody.receipts import Ledger
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import (
    BackLaunch,
    CheckAgain,
    ChooseBox,
    ChooseJob,
    LeaveLaunch,
    OpenLaunch,
    ReadHandbook,
    StartLaunch,
)
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.launch import LaunchView
from tui.workers.box import BoxTransport
from tui.workers.handbook import handbook_of
from tui.workers.job_files import described, job_files, job_named, near, needs
from tui.workers.launch import GOOD_S, Launching
from tui.workers.local_box import LocalBox
from tui.workers.run_views import RunViews

TRAIN = """\
import os, time
print("token", "yes" if os.environ.get("HUB_TOKEN") == "hf_secret" else "no", flush=True)
for step in range(1, 4):
    print(f"step {step}/3 loss: {1 / step:.3f}", flush=True)
    time.sleep(0.2)
open(os.path.join(os.environ["RGT_RUN"], "metrics.json"), "w").write("{}")
"""
JOB = 'name = "tiny"\nproject = "p"\nrun = ["python3", "train.py"]\nfinish = "metrics.json"\n'


class Recording(Store):
    """Folds at once, and keeps every view that was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.views: list[LaunchView] = []

    async def put(self, event: object) -> None:
        await super().put(event)  # type: ignore[arg-type]
        self.fold()
        if self.snapshot.launch is not None:
            self.views.append(self.snapshot.launch)


class Desk:
    """A launch, its files, and a clock that a test may turn."""

    def __init__(self, where: Paths, folder: Path, base: Path) -> None:
        self.where, self.folder, self.base = where, folder, base
        self.store = Recording()
        self.late = 0.0
        self.reloaded = 0
        self.dial: Callable[[Instance], object] | None = None
        self.launching = Launching(
            self.store, self._dial, where, self._reload, clock=self._clock, folder=folder
        )

    def _clock(self) -> float:
        return self.store.clock() + self.late

    async def _dial(self, instance: Instance) -> BoxTransport:
        if self.dial is not None:
            self.dial(instance)
        return LocalBox(instance.name, on_command=lambda _record: None)

    async def _reload(self) -> None:
        self.reloaded += 1

    @property
    def view(self) -> LaunchView:
        return self.launching._view

    async def until(self, holds: Callable[[LaunchView], bool], seconds: float = 60) -> LaunchView:
        async with asyncio.timeout(seconds):
            while not (holds(self.view) and not self.view.working):
                await asyncio.sleep(0.02)
        return self.view

    async def planned(self, *, file: str = "job.toml") -> LaunchView:
        """Everything up to the word."""
        await self.launching.handle(OpenLaunch("here", file))
        await self.until(lambda v: v.stage == "box")
        await self.launching.handle(ChooseBox("here"))
        return await self.until(lambda v: v.stage == "plan" or bool(v.problem) or v.stopped)


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    where = Paths(tmp_path / "config", tmp_path / "state")
    where.config.mkdir()
    base = tmp_path / "box"
    base.mkdir()
    where.fleet_file.write_text('[instances.here]\nplatform = "local"\n')
    monkeypatch.setenv("HOME", str(base))
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "job.toml").write_text(JOB)
    found = Desk(where, folder, base)
    yield found
    await found.launching.close()


@pytest.fixture(autouse=True)
def own_tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    need("tmux")
    sockets = tmp_path / "tmux"
    sockets.mkdir()
    monkeypatch.setenv("TMUX_TMPDIR", str(sockets))
    yield
    for process in psutil.process_iter(["environ"]):  # what a launch leaves running on purpose
        if (process.info["environ"] or {}).get("TMUX_TMPDIR") == str(sockets) and process.pid != os.getpid():
            process.kill()


async def test_from_a_file_to_the_first_step(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUB_TOKEN", "hf_secret")
    (desk.folder / "job.toml").write_text(JOB + 'secrets = ["HUB_TOKEN"]\n')
    view = await desk.planned()
    assert view.stage == "plan", view
    assert {"place", "code", "train", "secrets"} <= {title for title, _ in view.plan}
    assert not (desk.base / "rgt").exists()  # nothing was written on the box so far
    assert not (desk.where.state / "runs").exists()
    with pytest.raises(Failure):
        await desk.launching.handle(StartLaunch("0" * 64))
    assert desk.view.stage == "plan"
    await desk.launching.handle(StartLaunch(view.consent))
    with pytest.raises(Failure):  # the word counts once
        await desk.launching.handle(StartLaunch(view.consent))
    with pytest.raises(Failure):
        await desk.launching.handle(BackLaunch("box"))
    await desk.launching.handle(LeaveLaunch())
    view = await desk.until(lambda v: v.answer is not None or bool(v.problem))
    assert view.answer is not None, view.problem
    assert view.answer.kind in ("first-step", "finished")
    assert any("files sent" in line for line in view.told)
    assert desk.reloaded == 1
    (run,) = settings.load(desk.where.fleet_file).runs
    assert (run.name, run.box) == (view.run, "here")
    assert [one.receipt.act for one in Ledger(desk.where.receipts).report().receipts] == ["launch"]
    assert any(view.run in str(notice.text) for notice in desk.store.snapshot.notices)  # nobody looked
    assert "hf_secret" not in repr(desk.store.views)
    page = handbook_of(view.run, desk.where)
    assert page.launched
    assert dict(page.lines)["goes on"] == f"rgt resume {view.run}"  # type: ignore[index]
    await desk.launching.handle(OpenLaunch("here"))
    assert desk.view.answer is not None  # it ended while nobody looked: it is shown once
    await desk.launching.handle(LeaveLaunch())
    await desk.launching.handle(OpenLaunch("here"))
    view = await desk.until(lambda v: v.jobs is not None)
    assert view.answer is None
    assert view.jobs is not None
    assert view.jobs[0].earlier


async def test_a_job_that_dies_tells_its_last_words(desk: Desk) -> None:
    (desk.folder / "train.py").write_text("import nothing_of_this_name\n")
    view = await desk.planned()
    await desk.launching.handle(StartLaunch(view.consent))
    view = await desk.until(lambda v: v.answer is not None or bool(v.problem))
    assert view.answer is not None
    assert view.answer.kind == "dead"
    assert "nothing_of_this_name" in view.answer.last[-1]


async def test_a_stop_leaves_nothing_to_start(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUB_TOKEN", raising=False)
    inputs = 'secrets = ["HUB_TOKEN"]\ninputs = [{ path = "/no/such/set.tar" }]\n'
    (desk.folder / "job.toml").write_text(JOB + inputs)
    view = await desk.planned()
    assert (view.stage, view.consent) == ("preflight", "")
    assert [one.name for one in view.checks if one.verdict == "stop"] == ["secrets", "input"]
    with pytest.raises(Failure):
        await desk.launching.handle(StartLaunch(""))
    (desk.folder / "job.toml").write_text(JOB)
    await desk.launching.handle(CheckAgain())
    assert (await desk.until(lambda v: v.stage == "plan")).consent


async def test_an_old_preflight_is_made_again_in_place_of_a_start(desk: Desk) -> None:
    view = await desk.planned()
    desk.late = GOOD_S + 1
    await desk.launching.handle(StartLaunch(view.consent))
    assert desk.view.stage == "preflight"
    view = await desk.until(lambda v: v.stage == "plan")
    assert not (desk.base / "rgt").exists()
    assert any("made again" in str(n.text) for n in desk.store.snapshot.notices)


async def test_another_job_takes_the_plan_of_the_first_away(desk: Desk) -> None:
    view = await desk.planned()
    (desk.folder / "other.toml").write_text(JOB.replace("tiny", "other"))
    await desk.launching.handle(ChooseJob("other.toml"))
    other = await desk.until(lambda v: v.stage == "box")
    assert (other.consent, other.checks, other.plan, other.box) == ("", (), (), "")
    with pytest.raises(Failure):
        await desk.launching.handle(StartLaunch(view.consent))


async def test_what_is_wrong_with_a_file_is_told_where_it_was_chosen(desk: Desk) -> None:
    await desk.launching.handle(OpenLaunch("here"))
    await desk.until(lambda v: v.jobs is not None)
    await desk.launching.handle(ChooseJob("gone.toml"))
    view = await desk.until(lambda v: bool(v.problem))
    assert (view.stage, "gone.toml" in view.problem) == ("job", True)
    await desk.launching.handle(ChooseJob("job.toml"))
    assert (await desk.until(lambda v: v.stage == "box")).problem == ""
    with pytest.raises(Failure):
        await desk.launching.handle(CheckAgain())


async def test_a_matrix_is_told_with_what_starts_it(desk: Desk) -> None:
    (desk.folder / "my sweep.toml").write_text(JOB + "[matrix]\nseed = [1, 2, 3]\nlr = [0.1, 0.2]\n")
    await desk.launching.handle(OpenLaunch("here"))
    await desk.until(lambda v: v.jobs is not None)
    await desk.launching.handle(ChooseJob("my sweep.toml"))
    view = await desk.until(lambda v: bool(v.problem))
    assert view.stage == "job"
    assert "a matrix of 6 cells" in view.problem
    assert f":queue '{desk.folder}/my sweep.toml' --on here starts it" in view.problem


async def test_a_box_that_lets_nobody_in_is_told_and_tried_again(desk: Desk) -> None:
    def refuse(_instance: Instance) -> None:
        raise Failure("here refuses the login.")

    desk.dial = refuse
    view = await desk.planned()
    assert (view.stage, view.problem) == ("preflight", "here refuses the login.")
    desk.dial = None
    await desk.launching.handle(CheckAgain())
    assert (await desk.until(lambda v: v.stage == "plan")).problem == ""
    await desk.launching.handle(BackLaunch("box"))
    assert (desk.view.stage, desk.view.proposed, desk.view.consent) == ("box", "here", "")
    desk.dial = refuse
    await desk.launching.handle(ChooseBox("here"))
    await desk.until(lambda v: bool(v.problem))
    await desk.launching.handle(BackLaunch("box"))
    assert desk.view.problem == ""


async def test_a_run_that_was_not_launched_here_has_what_is_known_of_it(desk: Desk) -> None:
    desk.where.fleet_file.write_text(
        '[instances.here]\nplatform = "local"\n[runs.old]\nbox = "here"\nlog = "/data/a b/train.log"\n'
    )
    views = RunViews(desk.store, desk._dial, desk.where, lambda _box: None, desk._reload)
    await views.handle(ReadHandbook("old"))
    page = desk.store.snapshot.handbook
    assert page is not None
    assert not page.launched
    assert "did not launch" in page.note
    assert ("look", "tail -n 50 '/data/a b/train.log'") in page.lines
    await views.handle(ReadHandbook("never-heard-of"))
    page = desk.store.snapshot.handbook
    assert page is not None
    assert (page.launched, page.lines) == (False, ())
    assert "was not launched from this computer" in page.note
    await views.close()


def test_job_files_near_by_are_those_that_say_so(tmp_path: Path) -> None:
    where = Paths(tmp_path / "config", tmp_path / "state")
    folder = tmp_path / "work"
    (folder / "a" / "b" / "c").mkdir(parents=True)
    (folder / ".venv").mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (folder / "job.toml").write_text("name = [")
    (folder / "a" / "sweep.toml").write_text(JOB + "[matrix]\nseed = [1, 2, 3]\n")
    (folder / "a" / "b" / "deep.toml").write_text(JOB.replace("p\n", "p\n"))
    (folder / "a" / "b" / "c" / "too_deep.toml").write_text(JOB)
    (folder / ".venv" / "job.toml").write_text(JOB)
    (folder / "big.toml").write_text(JOB + "#" * (300 << 10))
    assert [str(p.relative_to(folder)) for p in near(folder)] == ["job.toml", "a/sweep.toml", "a/b/deep.toml"]
    told = {one.title: one for one in job_files(where, folder)}
    assert not told["job.toml"].fits  # type: ignore[index]
    (where.jobs / "own").mkdir(parents=True)
    (where.jobs / "own" / "job.toml").write_text(JOB)
    assert [one.title for one in job_files(where, folder)][:2] == ["jobs/own/job.toml", "job.toml"]
    assert job_named("own", where, folder) == where.jobs / "own" / "job.toml"
    assert job_named("a/sweep.toml", where, folder) == folder / "a" / "sweep.toml"
    (folder / "own").write_text(JOB)
    assert job_named("own", where, folder) == folder / "own"
    assert "3 cells" in told["a/sweep.toml"].note  # type: ignore[index]


def test_a_job_is_told_in_a_few_words() -> None:
    from tui.runs.job_file import parse_job

    job = parse_job(JOB + '[resources]\ngpu = "A100:2, >=40 GB"\n', "job.toml")
    assert described(job) == "tiny of p, 1 stage"
    assert needs(job) == "2 A100 cards of 40 GB"
    assert needs(parse_job(JOB, "job.toml")) == ""

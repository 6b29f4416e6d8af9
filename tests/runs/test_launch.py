"""A launch on a real sshd: detached in tmux or by nohup, and never doubled, wherever the link is cut."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.box.boxes import Desk, instance
from tests.real import need
from tests.rig import Sshd
from tests.rig.proxy import Faults, proxy
from tui.box.session import SshTransport
from tui.box.transport import Transport
from tui.model.failure import Failure
from tui.model.job import Job
from tui.model.run import Progress
from tui.model.text import safe
from tui.runs.detach import How, RunExists
from tui.runs.launch import PATIENCE_S, Launch, _kind, launch
from tui.runs.plan_files import Where, plan_files
from tui.runs.truth import Truth, look

STEPS = 'n=0; while [ $n -lt 100 ]; do n=$((n+1)); echo "step $n/100 loss: 0.$n"; sleep 0.2; done'
Dial = Callable[[], Awaitable[Transport]]


def made(run: Path, *argv: str, how: How = "nohup", **job: object) -> Launch:
    one = Job.model_validate({"name": "r", "project": "p", "run": argv, **job})
    return Launch(str(run), plan_files(one, Where(str(run))), one.log, "rgt-r-1", how)


@pytest.fixture
def box(sshd_factory: Callable[..., Sshd], tmp_path: Path) -> Sshd:
    sockets = tmp_path / "tmux"
    sockets.mkdir()
    return sshd_factory(extra_config=(f"SetEnv TMUX_TMPDIR={sockets}",))


@asynccontextmanager
async def dialled(box: Sshd, tmp_path: Path, port: int | None = None) -> AsyncIterator[Dial]:
    desk, opened = Desk(tmp_path), list[SshTransport]()
    there = instance(box)
    assert there.endpoint is not None
    there = replace(there, endpoint=replace(there.endpoint, port=port or box.port))

    async def dial() -> Transport:
        opened.append(await desk.connector().connect(there))
        return opened[-1]

    try:
        yield dial
    finally:
        for one in opened:
            await one.close()


@pytest.mark.parametrize("how", ["tmux", "nohup"])
async def test_the_first_step_is_seen_and_a_second_launch_starts_nothing(
    box: Sshd, tmp_path: Path, how: How
) -> None:
    need("tmux")
    run = box.home / "p" / "active" / "r-1"
    what = made(run, "sh", "-c", STEPS, how=how)
    async with dialled(box, tmp_path) as dial:
        answer = await launch(dial, what)
        assert (answer.kind, answer.truth.alive) == ("first-step", True)
        assert answer.started is not None
        assert answer.started.how == how
        assert answer.progress is not None
        again = await launch(dial, what)
        assert (again.kind, again.started, again.truth.attempt) == ("first-step", None, 1)
        with pytest.raises(RunExists):
            await launch(dial, made(run, "sh", "-c", "other"))


async def test_it_goes_on_when_every_connection_is_gone(box: Sshd, tmp_path: Path) -> None:
    run = box.home / "p" / "active" / "r-1"
    word = "echo step 1/2; while [ ! -e go ]; do sleep 0.1; done; echo x >out"
    async with dialled(box, tmp_path) as dial:
        assert (await launch(dial, made(run, "sh", "-c", word, finish="out"))).kind == "first-step"
        box.kill_sessions()
    (run / "go").touch()
    async with dialled(box, tmp_path) as dial:
        transport = await dial()
        for _ in range(300):
            truth = await look(transport, str(run))
            if truth.state == "finished":
                break
            await asyncio.sleep(0.1)
        assert truth.state == "finished"


async def test_death_is_told_with_its_status_and_last_words(box: Sshd, tmp_path: Path) -> None:
    run = box.home / "p" / "active" / "r-1"
    async with dialled(box, tmp_path) as dial:
        answer = await launch(dial, made(run, "sh", "-c", "echo no such module; exit 3"))
    assert answer.kind == "dead"
    assert "status 3" in answer.why
    assert answer.last[-1] == "no such module"


async def test_alive_without_a_step_is_said_as_that(box: Sshd, tmp_path: Path) -> None:
    run = box.home / "p" / "active" / "r-1"
    async with dialled(box, tmp_path) as dial:
        answer = await launch(dial, made(run, "sh", "-c", "echo loading data; sleep 60"), answer_s=3.0)
    assert (answer.kind, answer.last) == ("alive", ("loading data",))


async def test_code_that_was_long_under_way_takes_no_time_from_the_sign(box: Sshd, tmp_path: Path) -> None:
    run = box.home / "p" / "active" / "r-1"

    async def slow(_box: Transport) -> None:
        await asyncio.sleep(4.5)

    async with dialled(box, tmp_path) as dial:
        answer = await launch(dial, made(run, "sh", "-c", STEPS), bring=slow, answer_s=4.0)
    assert answer.kind == "first-step"


async def test_log_other_run_steps_of_an_older_attempt_are_no_sign(box: Sshd, tmp_path: Path) -> None:
    run = box.home / "p" / "active" / "r-1"
    word = "[ -e ran ] && exec sleep 60; touch ran; echo step 7/9 loss 0.1; exit 1"
    async with dialled(box, tmp_path) as dial:
        assert (await launch(dial, made(run, "sh", "-c", word))).kind in ("dead", "first-step")
        while (await look(await dial(), str(run))).state == "running":
            await asyncio.sleep(0.1)
        again = await launch(dial, made(run, "sh", "-c", word), answer_s=8.0)
    assert (again.kind, again.truth.attempt) == ("alive", 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
async def test_job_double_a_link_cut_anywhere_never_starts_it_twice(
    box: Sshd, tmp_path: Path, seed: int
) -> None:
    """JOB-DOUBLE: the connection is reset after some hundred or thousand bytes, again and again."""
    chance = random.Random(seed)
    run = box.home / "p" / "active" / "r-1"
    what = made(run, "sh", "-c", f"echo begun >>begun; {STEPS}")
    cuts = [chance.randrange(1500, 12000) for _ in range(4)]
    faults = Faults(cut_after=lambda: cuts.pop() if cuts else None)
    async with proxy(box.host, box.port, faults) as way, dialled(box, tmp_path, way.port) as dial:
        for _ in range(6):
            try:
                answer = await launch(dial, what)
            except Failure:  # a connection that never came about; the operator asks again
                continue
            break
    assert answer.kind == "first-step"
    assert (run / "begun").read_text() == "begun\n"
    assert [one.name for one in (run / ".rgt" / "attempts").iterdir()] == ["1"]


def test_the_end_of_an_older_attempt_is_no_end_of_the_new_one() -> None:
    """A detached wrapper takes a moment to claim its attempt; what is read before that is the older end."""
    old = Truth("failed", safe("The job ended with status 1."), attempt=1)
    assert _kind(old, None, 0.5, after=1) is None
    assert _kind(replace(old, attempt=2), None, 0.5, after=1) == "dead"
    assert _kind(old, None, 3 * PATIENCE_S, after=1) == "dead"
    assert _kind(old, None, 0.5) == "dead"


def test_a_first_step_is_told_once_it_is_known_which_process_made_it() -> None:
    stepped = Progress("step", 1, 2)
    seen = Truth("running", safe("Its wrapper is alive."), attempt=1)
    assert _kind(seen, stepped, 1.0) is None
    assert _kind(replace(seen, start={"pid": "5"}), stepped, 1.0) == "first-step"

"""A wrapper at work in this computer's own processes, under the shell of the test's choice."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from tests.real import need
from tui.box.local import LocalTransport
from tui.model.job import Job
from tui.runs.detach import lay_down
from tui.runs.plan_files import Where, plan_files, wrapper_name
from tui.runs.truth import Truth, look

Begin = Callable[..., Awaitable["Begun"]]


class Begun:
    """One wrapper at work on a run of this test."""

    def __init__(
        self, shell: str, run: Path, before: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> None:
        self.run = run
        words = [need(shell)[shell], *(["sh"] if shell == "busybox" else [])]
        self.process = subprocess.Popen(
            [*before, *words, str(run / wrapper_name()), str(run)],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=env,
        )

    def wait(self) -> int:
        return self.process.wait(timeout=30)

    async def until(self, so: Callable[[Truth], bool], deadline_s: float = 15.0) -> Truth:
        """Look until something is true of it."""
        ends = time.monotonic() + deadline_s
        while not so(truth := await look(LocalTransport(), str(self.run))):
            assert time.monotonic() < ends, truth
            time.sleep(0.05)
        return truth


async def laid_down(place: Path, /, **job: object) -> Path:
    """A run's folder with its plan, not begun."""
    made = Job.model_validate({"name": "r", "project": "p", **job})
    await lay_down(LocalTransport(), str(place), plan_files(made, Where(str(place))))
    return place


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    begun: list[Begun] = []

    async def make(
        shell: str = "dash",
        *,
        place: Path | None = None,
        before: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        **job: object,
    ) -> Begun:
        folder = place or tmp_path / "active" / "r-1"
        if not folder.exists():
            await laid_down(folder, **job)
        begun.append(Begun(shell, folder, before, env))
        return begun[-1]

    yield make
    runs = {str(one.run) for one in begun}
    for process in psutil.process_iter(["environ"]):  # a job outlives a wrapper that a test has killed
        if (process.info["environ"] or {}).get("RGT_RUN") in runs:
            process.kill()
    for one in begun:
        one.process.kill()
        one.process.wait(timeout=5)

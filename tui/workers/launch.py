"""The launch under way: job, box, preflight, plan, and only then, on the operator's word, the start.

It works on when nobody looks. What it starts needs neither it nor this computer.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import (
    BackLaunch,
    CheckAgain,
    ChooseBox,
    ChooseJob,
    Command,
    LeaveLaunch,
    OpenLaunch,
    StartLaunch,
)
from tui.model.event import LaunchChanged, Notice
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.job import Job
from tui.model.launch import STAGES, AnswerView, CheckView, LaunchView, Stage
from tui.model.text import SafeText, plain, safe
from tui.runs.errand import Errand, secrets_of
from tui.runs.job_file import read_job
from tui.runs.launch import Answer
from tui.workers.box import Dial
from tui.workers.job_files import cells_of, described, job_files, job_named, needs
from tui.workers.launch_once import Looked, begin, look_around, look_first, plan_id, plan_lines, worked_out
from tui.workers.line import line_of
from tui.workers.lock import starting

CHECK_S = 240.0
GOOD_S = 600.0
"""How long a preflight counts: what was free then may be taken now."""
_TOLD = 40


class Launching:
    """The one launch of this `rgt`.

    Args:
        dial: opens a connection of the launch's own.
        reload: makes the workers watch what was started.
        folder: where job files are looked for, and what typed paths begin at.
    """

    def __init__(
        self,
        store: Store,
        dial: Dial,
        where: Paths,
        reload: Callable[[], Awaitable[None]],
        *,
        clock: Callable[[], float] = time.time,
        folder: Path | None = None,
    ) -> None:
        self._store, self._dial, self._where, self._reload = store, dial, where, reload
        self._clock, self._folder = clock, folder or Path.cwd()
        self._work: asyncio.Task[None] | None = None
        self._view = LaunchView()
        self._opened = False
        self._seen = False  # the operator has seen how it ended
        self._watched = False
        self._file: Path | None = None
        self._looked: Looked | None = None
        self._secrets: Mapping[str, str] = {}

    async def handle(self, command: Command) -> None:
        """Do what the operator asks. Raises Failure: it can't be asked now."""
        match command:
            case OpenLaunch(box, file, anew):
                await self._open(box or "", file, anew=anew)
            case LeaveLaunch():
                self._watched, self._seen = False, self._over
            case ChooseJob(path):
                await self._free("job")
                self._start(self._choose(path))
            case ChooseBox(box):
                await self._free("box")
                if self._file is None:
                    raise Failure("Choose a job first.")
                await self._forget(box=box)
                self._start(self._check())
            case CheckAgain():
                await self._free("preflight")
                if self._file is None or not self._view.box:
                    raise Failure("Choose a job and a box first.")
                await self._forget()
                self._start(self._check())
            case BackLaunch(stage):
                await self._back(stage)
            case StartLaunch(consent):
                await self._begin(consent)
            case _:
                raise TypeError(command)

    async def close(self) -> None:
        """End what runs here; what was started on a box goes on."""
        await self._cancel()

    # --- where it stands ----------------------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        return self._work is not None and not self._work.done()

    @property
    def _starting(self) -> bool:
        return self._busy and self._view.stage == "answer"

    @property
    def _over(self) -> bool:
        return self._view.stage == "answer" and not self._busy

    async def _open(self, box: str, file: str, *, anew: bool) -> None:
        """Go on with the launch under way, or begin one."""
        self._watched = True
        begins = anew or bool(file) or not self._opened or (self._over and self._seen)
        if not begins:
            await self._show()
            return
        if self._starting:
            raise Failure(
                f"A launch of {self._view.run} is under way.", do="L shows it; wait until it has answered."
            )
        await self._cancel()
        self._opened, self._seen, self._file, self._looked, self._secrets = True, False, None, None, {}
        self._view = LaunchView(near=safe(str(self._folder), 200), proposed=box)
        self._start(self._find(file))

    async def _find(self, file: str) -> None:
        """Look for job files; take the one that was named."""
        found = await asyncio.to_thread(job_files, self._where, self._folder)
        await self._show(jobs=found)
        if file:
            await self._choose(file)

    async def _choose(self, path: str) -> None:
        file = await asyncio.to_thread(job_named, path.strip(), self._where, self._folder)
        job = await asyncio.to_thread(read_job, file)
        if job.matrix:
            raise Failure(
                f"{file.name} is a matrix of {cells_of(job)} cells, which a queue runs.",
                do=f":queue {shlex.quote(str(file))} --on {self._view.proposed or 'BOX'} starts it; "
                "further boxes follow after commas.",
            )
        self._file = file
        self._take_in(job, file)
        await self._forget(stage="box", box="", proposed=self._view.box or self._view.proposed)

    def _take_in(self, job: Job, file: Path) -> None:
        self._view = replace(
            self._view,
            job=safe(f"{file.name}: {described(job)}", 200),
            needs=safe(needs(job), 100),
            platforms=job.platforms,
        )

    async def _forget(self, **changes: Any) -> None:
        """What was looked at belongs to what was chosen then."""
        self._looked, self._secrets = None, {}
        self._view = replace(
            self._view, stage="preflight", run="", checks=(), checked_at=None, plan=(), consent="",
            told=(), began_at=None, answer=None,
        )  # fmt: skip
        await self._show(**changes)

    async def _back(self, stage: Stage) -> None:
        """Choose again; whatever was looked at meanwhile is dropped."""
        if self._starting:
            raise Failure("It is being started, which can't be taken back.", do="Wait for the answer.")
        if stage not in ("job", "box") or STAGES.index(stage) >= STAGES.index(self._view.stage):
            raise Failure("Nothing is to be chosen there.")
        await self._cancel()
        here = self._view.box or self._view.proposed
        await self._forget(stage=stage, box="", proposed=here, problem=SafeText(""))
        if stage == "job":
            self._file = None
            self._view = replace(self._view, job=SafeText(""), needs=SafeText(""), platforms=())
            self._start(self._find(""))

    async def _free(self, stage: Stage) -> None:
        """Nothing runs that this would disturb, and it is late enough for it. Raises Failure."""
        if self._busy:
            raise Failure("It is at work.", do="Wait, or go back a step to end it.")
        if STAGES.index(stage) > STAGES.index(self._view.stage):
            raise Failure("Something else is to be chosen before that.")

    # --- before the start ---------------------------------------------------------------------------------

    async def _check(self) -> None:
        """Work the job out for its box, and look at everything there. Nothing is changed."""
        assert self._file is not None
        instance = self._instance(self._view.box)
        job = await asyncio.to_thread(read_job, self._file)
        self._take_in(job, self._file)
        task = await asyncio.to_thread(worked_out, self._file, instance, self._where)
        await self._show(run=task.run_id)
        async with asyncio.timeout(CHECK_S), line_of(instance, self._dial) as line:
            looked = await look_first(task, await line())
            looked = await look_around(line, looked, self._file.parent)
        consent = plan_id(looked)
        secrets, missing = _secrets(task)
        checks = (*missing, *(CheckView(safe(c.name, 20), c.verdict, c.said) for c in looked.checks))
        self._view = replace(
            self._view,
            checks=checks,
            checked_at=self._clock(),
            plan=tuple((safe(title, 63), text) for title, text in plan_lines(looked.task)),
        )
        if self._view.stopped:
            await self._show()
            return
        self._looked, self._secrets = looked, secrets
        await self._show(stage="plan", consent=consent)

    def _instance(self, name: str) -> Instance:
        for one in settings.load(self._where.fleet_file).instances:
            if one.name == name:
                return one
        raise Failure(f"No box is named {safe(name, 80)} in {self._where.fleet_file}.")

    # --- the start ----------------------------------------------------------------------------------------

    async def _begin(self, consent: str) -> None:
        await self._free("plan")
        looked, at = self._looked, self._view.checked_at
        if looked is None or at is None or not self._view.consent or self._view.stage != "plan":
            raise Failure("There is no plan to start.", means="Nothing was started.")
        if consent != self._view.consent:
            raise Failure("That was for another plan.", means="Nothing was started.")
        if not 0 <= self._clock() - at < GOOD_S:
            await self._store.put(
                Notice(SafeText("The preflight is too old to rely on; it is made again."), "attention")
            )
            await self._forget()
            self._start(self._check())
            return
        await self._show(stage="answer", consent="", began_at=self._clock())
        self._start(self._launch(looked))

    async def _launch(self, looked: Looked) -> None:
        assert self._file is not None
        with starting(self._where, looked.task.run_id):
            async with line_of(looked.task.instance, self._dial) as line:
                answer = await begin(line, looked, self._file, self._where, self._secrets, self._tell)
        self._view = replace(self._view, answer=_answer(answer))
        await self._reload()

    # --- work and view ------------------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = asyncio.create_task(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """What fails is told where it stands."""
        await self._show(working=True, problem=SafeText(""))
        try:
            await work
        except Failure as failure:
            self._view = replace(self._view, problem=failure.line)
        except TimeoutError:
            self._view = replace(self._view, problem=safe(f"{self._view.box} did not answer in time."))
        except Exception as fault:  # noqa: BLE001 - told where it stands; the watch goes on
            text = safe(f"An error of rgt's own: {type(fault).__name__}: {fault}", 300)
            self._view = replace(self._view, problem=text)
        await self._show(working=False)
        if self._view.stage == "answer" and not self._watched:
            await self._store.put(self._news())

    def _news(self) -> Notice:
        """How it ended, for an operator who looks elsewhere."""
        view = self._view
        if view.answer is None:
            return Notice(safe(f"The launch of {view.run}: {view.problem}", 300), "attention", view.box)
        level = "info" if view.answer.kind in ("first-step", "alive", "finished", "pending") else "danger"
        return Notice(safe(f"{view.run} on {view.box}: {view.answer.why}", 300), level, view.box)

    async def _cancel(self) -> None:
        work = self._work
        if work is not None and not work.done():
            work.cancel()
            await asyncio.wait([work])
        self._view = replace(self._view, working=False)

    def _tell(self, line: SafeText) -> None:
        """What was done so far; called from within the work."""
        self._view = replace(self._view, told=(*self._view.told, line)[-_TOLD:])
        self._store.offer(LaunchChanged(self._view))

    async def _show(self, **changes: Any) -> None:
        self._view = replace(self._view, **changes)
        await self._store.put(LaunchChanged(self._view))


def _secrets(task: Errand) -> tuple[dict[str, str], tuple[CheckView, ...]]:
    """The job's secrets, or the check that says what is missing."""
    if not task.job.secrets:
        return {}, ()
    try:
        found = secrets_of(task.job)
    except Failure as failure:
        return {}, (CheckView(SafeText("secrets"), "stop", safe(f"{failure.what} {failure.do}", 400)),)
    said = safe(f"{', '.join(task.job.secrets)}: set here.", 400)
    return found, (CheckView(SafeText("secrets"), "ok", said),)


def _answer(answer: Answer) -> AnswerView:
    last = tuple(safe(plain(line), 300) for line in answer.last)
    return AnswerView(answer.kind, answer.why, last, answer.pace.said if answer.pace else SafeText(""))

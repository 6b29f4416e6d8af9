"""The guided setup under way: asks one thing at a time, does it, keeps what came of it on disk.

What is kept is where it goes on, in this process or the next. It works on when nobody looks. One rgt of a
computer has it at a time: two would write over each other what was rented.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from tui.fleet.store import Store
from tui.model.command import AnswerSetup, BackSetup, Command, LeaveSetup, SkipSetup, StartSetup
from tui.model.event import SetupChanged
from tui.model.failure import Failure
from tui.model.setup import SetupStep, SetupView, StepId
from tui.model.text import SafeText, safe
from tui.setup import state as kept
from tui.setup.state import STEPS, Did, Shown, State, Step, Tools, lines
from tui.setup.walk import steps
from tui.workers.lock import WatchLock, alone

_TOLD = 8


class Setup:
    """The one setup of this computer.

    Args:
        steps: what each step does; injected by tests.
    """

    def __init__(self, store: Store, tools: Tools, steps: Callable[[], dict[StepId, Step]] = steps) -> None:
        self._store, self._tools = store, tools
        self._steps = steps()
        self._state = State()
        self._work: asyncio.Task[None] | None = None
        self._view = SetupView()
        self._lock: WatchLock | None = None
        self._left = False

    async def handle(self, command: Command) -> None:
        """Do what the operator asks. Raises Failure: it can't be asked now."""
        match command:
            case StartSetup(name, anew):
                await self._open(name, anew=anew)
            case AnswerSetup(step, answer):
                await self._hold()
                self._free(step)
                self._start(self._take(step, answer))
            case SkipSetup(step, reason):
                await self._hold()
                await self._skip(step, reason)
            case BackSetup(step):
                await self._hold()
                await self._back(step)
            case LeaveSetup():
                self._left = True
                self._let_go()
            case _:
                raise TypeError(command)

    async def close(self) -> None:
        """End what runs; what is kept stays kept."""
        self._left = True
        await self._cancel()
        self._let_go()

    async def _open(self, name: str, *, anew: bool) -> None:
        """Go on with the setup that is under way, or begin one, perhaps with a platform or a box."""
        try:
            await self._hold()
        except Failure as failure:
            self._draw()
            await self._show(working=False, problem=failure.line)
            raise
        if self._busy:
            await self._show()
            return
        if anew:
            kept.drop(self._tools.where)
        self._state = await asyncio.to_thread(kept.load, self._tools.where)
        if name and not self._state.done:
            self._state = self._begun_with(name)
        self._draw()
        self._start(self._ask(self._state.current))

    def _begun_with(self, name: str) -> State:
        """A platform is chosen already; a box has its platform, its renting and its login behind it."""
        if name in self._tools.profiles:
            return State(done={"platform": self._platform(name)})
        instance = self._tools.instance(name)
        done: dict[StepId, Did] = {"rent": Did(brief=f"{name} is there")}
        if instance.platform in self._tools.profiles:
            done["platform"] = self._platform(instance.platform)
        return State(box=name, done=done)

    def _platform(self, name: str) -> Did:
        facts = self._tools.profiles[name].facts
        return Did(brief=facts.title, observed=(facts.summary,), data={"id": name})

    # --- one rgt at a time --------------------------------------------------------------------------------

    async def _hold(self) -> None:
        """Have the setup alone, as it stands on disk. Raises Failure: another rgt has it."""
        self._left = False
        if self._lock is not None:
            return
        self._lock = alone(
            self._tools.where.locks / "setup.lock",
            lambda holder: f"{holder} is at the setup.",
            about="another rgt is at the setup",
            means="Nothing was done here.",
            do="Go on there, or close it and open the setup again.",
            code="setup-held",
        )
        self._state = await asyncio.to_thread(kept.load, self._tools.where)

    def _let_go(self) -> None:
        """Another rgt may have it, once nobody looks and nothing runs."""
        if self._left and not self._busy and self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def _busy(self) -> bool:
        return self._work is not None and not self._work.done()

    # --- one step -----------------------------------------------------------------------------------------

    async def _ask(self, step: StepId) -> None:
        """Show what a step will do and wants to know."""
        await self._shown(step, await self._steps[step].ask(self._state, self._tools))

    async def _take(self, step: StepId, answer: str) -> None:
        """Act on an answer, and go on to the next step, or ask further."""
        came = await self._steps[step].take(self._state, self._tools, answer, self._tell)
        if isinstance(came, Shown):
            await self._shown(step, came)
            return
        await self._done(step, came)

    async def _done(self, step: StepId, did: Did) -> None:
        self._state = self._state.with_done(step, did, did.data.get("box"))
        if step == STEPS[-1]:
            await asyncio.to_thread(kept.drop, self._tools.where)
        else:
            await asyncio.to_thread(kept.save, self._tools.where, self._state)
        self._draw()
        if step == STEPS[-1]:
            await self._show(over=True, working=False)
        else:
            await self._ask(self._state.current)

    async def _skip(self, step: StepId, reason: str) -> None:
        self._free(step)
        shown = self._view.step(step)
        if shown is not None and not shown.may_skip:
            raise Failure("Nothing later makes sense without this step.")
        if not reason.strip():
            raise Failure("A reason is needed; it stands in the summary.")
        self._start(self._done(step, Did(brief="skipped", skipped=safe(reason.strip(), 200))))

    async def _back(self, step: StepId) -> None:
        """To a step before; what was rented, written or measured stays as it is."""
        await self._cancel()
        if step not in STEPS or STEPS.index(step) > STEPS.index(self._state.current):
            raise Failure("That step is still to come.")
        self._state = self._state.back_to(step)
        await asyncio.to_thread(kept.save, self._tools.where, self._state)
        self._draw()
        self._start(self._ask(step))

    # --- work and view ------------------------------------------------------------------------------------

    def _free(self, step: StepId) -> None:
        if self._busy:
            raise Failure("It is at work.", do="Wait, or go back a step to end it.")
        if step != self._state.current:
            raise Failure("That was for another step.", means="Nothing was done.")

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = asyncio.create_task(self._guarded(work))

        def ended(_task: asyncio.Task[None]) -> None:
            work.close()  # it may never have begun
            self._let_go()

        self._work.add_done_callback(ended)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """What fails is told at its step and asked again."""
        await self._show(working=True, problem=SafeText(""))
        step = self._state.current
        try:
            await work
        except Failure as failure:
            await self._failed(self._state.current, failure)
        except Exception as fault:  # noqa: BLE001 - a fault in one step must not end the watch
            told = Failure(f"This step failed ({type(fault).__name__}: {safe(str(fault), 200)}).")
            await self._failed(step, told)
        await self._show(working=False)

    async def _failed(self, step: StepId, failure: Failure) -> None:
        self._step(step, state="failed", brief=safe(failure.what, 200))
        await self._show(problem=failure.line)
        try:
            shown = await self._steps[step].ask(self._state, self._tools)
        except Failure:
            return
        asked = shown.asked
        self._step(step, asked=asked, may_skip=shown.may_skip, observed=shown.about)

    async def _cancel(self) -> None:
        work = self._work
        if work is not None and not work.done():
            work.cancel()
            await asyncio.wait([work])

    async def _shown(self, step: StepId, shown: Shown) -> None:
        self._step(
            step,
            state="needs-you",
            runs=shown.runs,
            expected=shown.expected,
            asked=shown.asked,
            may_skip=shown.may_skip,
            observed=shown.about,
            brief=shown.asked.prompt if shown.asked else SafeText(""),
        )
        await self._show(current=step)

    def _tell(self, line: SafeText) -> None:
        """What a step says while it works, newest last."""
        step = self._state.current
        before = self._view.step(step)
        told = (*(before.observed if before else ()), line)[-_TOLD:]
        self._step(step, state="running", observed=told, brief=line)
        self._store.offer(SetupChanged(self._view))

    def _draw(self) -> None:
        """The view of everything that is done."""
        self._view = SetupView(
            steps=tuple(_drawn(name, self._state.done.get(name)) for name in STEPS),
            current=self._state.current,
            platform=safe(self._title(), 40),
            box=safe(self._state.box or "", 80),
        )

    def _title(self) -> str:
        found = self._tools.profiles.get(self._state.platform or "")
        return found.facts.title if found else ""

    def _step(self, name: StepId, **changes: Any) -> None:
        drawn = tuple(replace(one, **changes) if one.id == name else one for one in self._view.steps)
        self._view = replace(self._view, steps=drawn)

    async def _show(self, **changes: Any) -> None:
        self._view = replace(self._view, **changes)
        await self._store.put(SetupChanged(self._view))


def _drawn(name: StepId, did: Did | None) -> SetupStep:
    if did is None:
        return SetupStep(name)
    state = "skipped" if did.skipped else "done"
    return SetupStep(
        name,
        "skipped" if state == "skipped" else "done",
        brief=safe(did.brief, 200),
        observed=lines(did.observed),
        reason=safe(did.skipped or "", 200),
    )

"""What is shown of one teardown: changed here and nowhere else, and told no oftener than it helps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tui.fleet.store import Store
from tui.model.event import TeardownChanged
from tui.model.teardown import StepId, StepProgress, StepView, TeardownView
from tui.model.text import SafeText, safe
from tui.workers.teardown_ahead import waiting

_SHOWN_S = 0.2
_TOLD = 12


class Board:
    """The view of one teardown.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, store: Store, view: TeardownView, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._told_at = float("-inf")
        self.view = view

    async def show(self, **changes: Any) -> None:
        """Change the view and tell it; waits while the store is full."""
        self.change(**changes)
        await self._store.put(TeardownChanged(self.view.box, self.view))

    def change(self, **changes: Any) -> None:
        """Change the view; told with the next change that is."""
        self.view = replace(self.view, **changes)

    def begin(self) -> None:
        """Work begins: what was asked is asked no more."""
        nothing = SafeText("")
        self.change(working=True, question=None, phrase=None, answer=nothing, problem=nothing)
        self._store.offer(TeardownChanged(self.view.box, self.view))

    def step(self, name: StepId, **changes: Any) -> None:
        """Change one step."""
        self.change(steps=tuple(replace(s, **changes) if s.id == name else s for s in self.view.steps))

    def step_is(self, made: StepView) -> None:
        """Put a step in place of what was said of it."""
        self.change(steps=tuple(made if s.id == made.id else s for s in self.view.steps))

    def again_from(self, later: tuple[StepId, ...]) -> None:
        """These steps are still to come."""
        steps = tuple(waiting(s.id) if s.id in later else s for s in self.view.steps)
        self.change(steps=steps, current=later[0], phrase=None, summary=(), question=None, ended="")

    def progressed(self, step: StepId, at: StepProgress) -> None:
        """Long work tells where it is; shown a few times a second."""
        if step != self.view.current:
            self.step(step, state="running")
            self.change(current=step)
        self.step(step, progress=at)
        now = self._clock()
        if now - self._told_at >= _SHOWN_S:
            self._told_at = now
            self._store.offer(TeardownChanged(self.view.box, self.view))

    def heard(self, line: str) -> None:
        """What a platform was asked and said, newest last."""
        step = self.view.step("outcome")
        lines = (*(step.observed if step else ()), safe(line, 300))[-_TOLD:]
        self.step("outcome", observed=lines, brief=lines[-1])
        self._store.offer(TeardownChanged(self.view.box, self.view))

"""The last step of a teardown: the act, once, and what became of it; or the operator's word."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from tui.custody.by_hand import Word
from tui.custody.journal import ENDS
from tui.fleet.store import Store
from tui.model.custody import Outcome
from tui.model.event import Notice
from tui.model.text import SafeText, safe
from tui.workers import teardown_end_words as end_words
from tui.workers.end import End
from tui.workers.patience import Patience
from tui.workers.teardown_board import Board

_OVER = ("box-busy", "box-unknown")
"""What a stop that loses nothing may go on over, with a reason."""


class Closing:
    """Carries an end out and tells it.

    Args:
        changed: called when something was begun or settled.
    """

    def __init__(
        self, board: Board, store: Store, patience: Patience, changed: Callable[[], Awaitable[None]] | None
    ) -> None:
        self._board, self._store, self._patience, self._changed = board, store, patience, changed

    async def carry_out(self, end: End) -> None:
        """Do it once, or look what became of it. Raises Failure."""
        begun = end.standing is not None
        self._board.step(
            "approval", state="done", brief=SafeText("begun earlier" if begun else "approved by you, once")
        )
        self._board.step("outcome", state="running", brief=SafeText(""), refusals=(), observed=())
        await self._board.show(current="outcome")
        try:
            outcome = await end.carry_out(self._board.heard)
        finally:
            if self._changed is not None:
                await self._changed()
        if end.waits_for_word:
            await self._ask_word(end, outcome, sent_now=not begun)
        else:
            await self._ended(end, outcome)

    async def attest(self, end: End, word: Word) -> None:
        """Record what the operator says the console shows. Raises Failure."""
        ssh = (await end.look()).ssh
        try:
            outcome = await asyncio.to_thread(end.attest, word, ssh)
        finally:
            if self._changed is not None:
                await self._changed()
        await self._ended(end, outcome, waits=end.waits_for_word)
        if end.waits_for_word:
            await self._board.show(question="word", answer=safe(f"Recorded: {word}. {outcome.check_by_hand}"))

    async def _ask_word(self, end: End, outcome: Outcome, *, sent_now: bool) -> None:
        plane = end.by_hand
        assert plane is not None
        if sent_now and end.in_box(plane):
            await asyncio.sleep(self._patience.in_box_s)
        self._board.step("outcome", brief=SafeText("asking SSH"))
        await self._board.show(console=safe(plane.console, 400))
        ssh = safe((await end.look()).ssh, 300)
        step = end_words.outcome_step(outcome, waits=True)
        hint = safe(f"SSH says: {ssh}. That is a hint, not proof.")
        self._board.step_is(replace(step, observed=(*step.observed, hint)))
        await self._board.show(question="word")

    async def _ended(self, end: End, outcome: Outcome, *, waits: bool = False) -> None:
        self._board.step_is(end_words.outcome_step(outcome, waits=waits))
        over = outcome.kind == "refused" and not end.order.needs_proof
        asks = over and all(one.code in _OVER for one in outcome.refusals)
        await self._board.show(ended="" if waits else outcome.kind, question="anyway" if asks else None)
        if outcome.kind in ENDS:
            box = self._board.view.box
            done = f"{outcome.verb} of {box}: {outcome.kind}. {outcome.detail}"
            forget = f" In a shell, rgt remove {box} forgets it." if outcome.verb == "destroy" else ""
            await self._store.put(Notice(safe(f"{done}{forget}", 400), box=box))

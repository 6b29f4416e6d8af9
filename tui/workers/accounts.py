"""Asks every configured account, slowly and for ever, what it rents; tells the store.

What asks (an HTTP client, the vendors' models) is loaded only when there is an account to ask, and in a
thread: the screen is drawn and links are opened meanwhile.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from tui.fleet.platform_facts import PlatformFacts
from tui.fleet.store import Store
from tui.model.account import AccountSpec, AccountView
from tui.model.event import AccountSeen, AccountsKnown, Notice
from tui.model.text import SafeText, safe

if TYPE_CHECKING:
    from tui.platforms.vendors import Account

FIRST_S = 1.0
"""Links to the boxes come first."""
TICK_S = 5.0
PERIOD_S = 60.0
SLOWEST_S = 900.0
_END_S = 1.0
MOST = 20
"""Accounts asked at all."""

Facts = Mapping[str, PlatformFacts]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be asked, and what is known of platforms."""

    specs: tuple[AccountSpec, ...]
    facts: Facts


class Sources(Protocol):
    """Where plans come from, and how accounts are opened and looked at."""

    def plan(self) -> Plan:
        """Reads files; called in a thread."""

    def open(self, spec: AccountSpec) -> Account | str:
        """The account, or why it can't be asked, as a sentence. Called in a thread."""

    def look(self, account: Account, facts: Facts) -> Awaitable[AccountView]: ...


@dataclass(slots=True)
class _Due:
    """When an account is asked next."""

    at: float = 0.0
    failures: int = 0
    task: asyncio.Task[None] | None = None
    told: SafeText = SafeText("")


@dataclass(slots=True)
class AccountsWatch:
    """The one worker of all accounts.

    Args:
        clock: seconds that only go forward.
        changed: tells when the fleet file is another one, so that the plan is made again.
    """

    store: Store
    sources: Sources
    clock: Callable[[], float]
    changed: Callable[[], object]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    period_s: float = PERIOD_S
    _due: dict[AccountSpec, _Due] = field(default_factory=dict)
    _plan: Plan = Plan((), {})
    _stamp: object = None
    _planned: bool = False

    async def run(self) -> None:
        """Watch until cancelled; whatever is being asked is cancelled, too."""
        try:
            await self.sleep(FIRST_S)
            while True:
                await self._look_at_plan()
                self._ask_those_due()
                await self.sleep(TICK_S)
        finally:
            asking = [due.task for due in self._due.values() if due.task and not due.task.done()]
            for task in asking:
                task.cancel()
            if asking:
                await asyncio.wait(asking, timeout=_END_S)

    async def _look_at_plan(self) -> None:
        stamp = self.changed()
        if self._planned and stamp == self._stamp:
            return
        self._stamp, self._planned = stamp, True
        plan = await asyncio.to_thread(self.sources.plan)
        specs = plan.specs[:MOST]
        if len(plan.specs) > MOST:
            await self.store.put(Notice(safe(f"Only the first {MOST} accounts are asked."), "attention"))
        self._plan = replace(plan, specs=specs)
        for spec in [one for one in self._due if one not in specs]:
            task = self._due.pop(spec).task
            if task is not None:
                task.cancel()
        for spec in specs:
            self._due.setdefault(spec, _Due(at=self.clock()))
        if specs or self.store.snapshot.accounts:
            await self.store.put(AccountsKnown(tuple(spec.name for spec in specs)))

    def _ask_those_due(self) -> None:
        for spec, due in self._due.items():
            busy = due.task is not None and not due.task.done()
            if not busy and self.clock() >= due.at:
                due.task = asyncio.create_task(self._ask(spec, due), name=f"account {spec.name}")

    async def _ask(self, spec: AccountSpec, due: _Due) -> None:
        """One look. The next one waits longer where this one failed."""
        view = await _look(self.sources, spec, self._plan.facts, self.store.clock())
        due.failures = due.failures + 1 if view.told_at is None else 0
        due.at = self.clock() + min(SLOWEST_S, self.period_s * 2**due.failures)
        await self.store.put(AccountSeen(view))
        if view.why != due.told:
            due.told = view.why
            if view.why:
                await self.store.put(Notice(safe(f"{spec.name}: {view.why}", 300), "attention"))


async def _look(sources: Sources, spec: AccountSpec, facts: Facts, at: float | None = None) -> AccountView:
    """One account as it answers; why it does not, where it does not."""
    try:
        account = await asyncio.to_thread(sources.open, spec)
        if isinstance(account, str):
            return AccountView(spec.name, spec.platform, asked_at=at, why=safe(account, 300))
        return await sources.look(account, facts)
    except Exception as fault:  # noqa: BLE001 - an account's fault must not end the look at the others
        why = safe(f"rgt itself failed to ask it ({type(fault).__name__}).", 200)
        return AccountView(spec.name, spec.platform, asked_at=at, why=why)


@dataclass(slots=True)
class FleetSources:
    """Accounts by the operator's fleet file and this computer's keys."""

    plans: Callable[[], Plan]
    wall: Callable[[], float]
    call_s: float | None = None

    def plan(self) -> Plan:
        return self.plans()

    def open(self, spec: AccountSpec) -> Account | str:
        from tui.model.failure import Failure
        from tui.platforms.credentials import Missing

        vendors = importlib.import_module("tui.platforms.vendors")
        importlib.import_module("tui.platforms.accounts")
        try:
            found: Account | Missing = vendors.account(spec, vendors.finder())
        except Failure as failure:
            return failure.line
        if isinstance(found, Missing):
            return f"{spec.platform} {found.why}."
        return found

    def look(self, account: Account, facts: Facts) -> Awaitable[AccountView]:
        from tui.platforms import accounts

        return accounts.look(account, facts, self.wall, call_s=self.call_s or accounts.CALL_S)


async def look_once(sources: Sources, deadline_s: float) -> Sequence[AccountView]:
    """One look at every account at once, for verbs without a screen. Nothing of it goes on afterwards."""
    plan = await asyncio.to_thread(sources.plan)
    tasks = {spec: asyncio.create_task(_look(sources, spec, plan.facts)) for spec in plan.specs[:MOST]}
    if not tasks:
        return ()
    late: set[asyncio.Task[AccountView]] = set(tasks.values())
    try:
        _, late = await asyncio.wait(late, timeout=deadline_s)
    finally:
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_END_S)
    why = safe(f"It did not answer within {deadline_s:g} s.")
    return [
        AccountView(spec.name, spec.platform, why=why) if task in late else task.result()
        for spec, task in tasks.items()
    ]

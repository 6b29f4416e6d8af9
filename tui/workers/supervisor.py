"""Starts, restarts and stops the workers, and carries the screens' commands to them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from tui.box import wake
from tui.box.backoff import Backoff
from tui.box.transport import Transport
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import (
    AdoptRun,
    CancelSearch,
    CloseForward,
    Command,
    Diagnose,
    ForgetBox,
    ForgetRun,
    GiveSecret,
    LoadOlder,
    OpenForward,
    ProbeNow,
    ReconnectNow,
    ReloadFleet,
    SearchLog,
    SurveyStorage,
    TakeLook,
    TrustHostKey,
    ViewAt,
)
from tui.model.event import FleetChanged, Notice
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.run import RunSpec
from tui.model.text import SafeText, safe
from tui.workers.box import BoxWorker, Dial, Pace
from tui.workers.desk import Desk, NewSetup
from tui.workers.lock import WatchLock
from tui.workers.run import RunWorker
from tui.workers.secrets import StoreAsker
from tui.workers.triage import Triager

FILE_S = 2.0
"""How often the fleet file is looked at: another rgt, or an editor, may have changed it."""
GRACE_S = 0.7
"""What closing all links may take when the app leaves."""


class Fleet(Protocol):
    """Where instances and runs are written down."""

    def load(self) -> tuple[FleetChanged, tuple[Failure, ...]]: ...

    def stamp(self) -> object: ...

    def add_run(self, spec: RunSpec) -> None: ...

    def remove_run(self, name: str) -> None: ...

    def remove_box(self, name: str) -> tuple[str, ...]: ...


Accept = Callable[[str, str], None]
"""Records the host key (name of the box, fingerprint) that the operator accepts. Raises Failure."""


@dataclass(slots=True)
class _Boxed:
    worker: BoxWorker
    task: asyncio.Task[None]
    runs: dict[str, tuple[RunWorker, asyncio.Task[None]]] = field(default_factory=dict)


class Supervisor:
    """Owns every worker of one `rgt`.

    Args:
        dial: opens a transport to an instance.
        fleet: reads and writes ``fleet.toml``.
        accept_key: records a host key the operator accepts.
        asker: where typed secrets go.
        new_backoff: makes the delays of one box; injected for tests.
        accounts: asks providers for ever; None: none is asked.
    """

    def __init__(
        self,
        store: Store,
        dial: Dial,
        *,
        fleet: Fleet,
        accept_key: Accept,
        asker: StoreAsker,
        paths: Paths,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        new_backoff: Callable[[], Backoff] = Backoff,
        accounts: Callable[[], Awaitable[None]] | None = None,
        new_setup: NewSetup | None = None,
    ) -> None:
        self._store = store
        self._dial = dial
        self._fleet = fleet
        self._accept_key = accept_key
        self._asker = asker
        self._paths = paths
        self._pace = pace
        self._new_backoff = new_backoff
        self._accounts = accounts
        self._boxes: dict[str, _Boxed] = {}
        self._specs: tuple[RunSpec, ...] = ()
        self._known = FleetChanged((), ())
        self._told: frozenset[SafeText] = frozenset()
        self._triage = Triager(store, self._transport, paths.gotchas)
        self._desk = Desk(
            store, dial, paths, transport=self._transport, reload=self.reload, new_setup=new_setup
        )

    async def run(self) -> None:
        """Watch the fleet until cancelled, then close every link within a bounded time."""
        try:
            stamp = self._fleet.stamp()
            await self.reload()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._obey())
                group.create_task(self._follow_file(stamp))
                group.create_task(wake.watch(self._woke_up))
                if self._accounts is not None:
                    group.create_task(self._keep_alive(self._accounts, "", "the accounts"))
                group.create_task(self._desk.read_open_ends())
                group.create_task(self._keep_alive(self._triage.run, "", "triage"))
        finally:
            await self._stop_all()

    async def _forget_box(self, name: str) -> None:
        """Only a box that is over: one that may run would bill on unseen. Raises Failure."""
        from tui.custody.host_keys import trust_store  # needed seldom, loaded late

        box = self._store.snapshot.box(name)
        if box is None or box.ended is None:
            raise Failure(
                f"{name} is not destroyed on record, so it stays in the list.",
                do=f"`rgt remove {safe(name)}` forgets a box that may still run and bill.",
            )
        self._fleet.remove_box(name)
        trust_store(self._paths).forget(name)  # the next box of this name is another machine
        await self.reload()
        await self._store.put(Notice(safe(f"{name} is off the list. Its receipts stay: rgt receipts.")))

    async def reload(self) -> None:
        """Read the fleet file and make the workers match it.

        A file of which nothing can be read, such as one that is half edited, takes no box out of sight.
        """
        fleet, problems = await asyncio.to_thread(self._fleet.load)
        if fleet.problems and not fleet.instances:
            fleet = replace(self._known, problems=fleet.problems)
        self._known, self._specs = fleet, fleet.runs
        await self._store.put(fleet)
        await self._tell(problems)
        wanted = {i.name: i for i in fleet.instances}
        for name in [n for n, b in self._boxes.items() if _way(wanted.get(n)) != _way(b.worker.instance)]:
            await self._stop_box(self._boxes.pop(name))
        for instance in fleet.instances:
            if instance.name in self._boxes:
                self._boxes[instance.name].worker.instance = instance
            else:
                self._boxes[instance.name] = self._start_box(instance)
        for boxed in self._boxes.values():
            await self._match_runs(boxed)

    async def _tell(self, problems: tuple[Failure, ...]) -> None:
        """Say what is wrong with the operator's files, once each."""
        lines = [problem.line for problem in problems]
        for line in lines:
            if line not in self._told:
                await self._store.put(Notice(line, "attention"))
        self._told = frozenset(lines)

    async def _follow_file(self, seen: object) -> None:
        while True:
            await asyncio.sleep(FILE_S)
            stamp = self._fleet.stamp()
            if stamp != seen and self._store.send(ReloadFleet()):
                seen = stamp

    def _start_box(self, instance: Instance) -> _Boxed:
        name = instance.name
        worker = BoxWorker(
            instance,
            self._dial,
            self._store,
            runs=lambda: tuple(s for s in self._specs if s.box == name),
            pace=self._pace,
            backoff=self._new_backoff(),
        )
        return _Boxed(worker, asyncio.create_task(self._keep_alive(worker.run, name, name)))

    async def _match_runs(self, boxed: _Boxed) -> None:
        name = boxed.worker.instance.name
        wanted = {s.name: s for s in self._specs if s.box == name}
        for run in [r for r, (w, _) in boxed.runs.items() if wanted.get(r) != w.spec]:
            await _end(boxed.runs.pop(run)[1])
        for spec in wanted.values():
            if spec.name not in boxed.runs:
                worker = RunWorker(
                    spec,
                    boxed.worker.link,
                    self._store,
                    spool=self._paths.spool / _file_name(spec.name),
                    lock=WatchLock(self._paths.locks / f"{_file_name(spec.name)}.lock"),
                )
                task = asyncio.create_task(self._keep_alive(worker.run, name, spec.name))
                boxed.runs[spec.name] = (worker, task)

    async def _keep_alive(self, work: Callable[[], Awaitable[None]], box: str, who: str) -> None:
        """Run a worker for ever: a fault in one is told and restarted, and never touches another."""
        backoff = self._new_backoff()
        while True:
            try:
                await work()
                return
            except Exception as fault:  # noqa: BLE001 - the last resort of a supervisor, and it reports
                text = safe(
                    f"The worker of {who} failed ({type(fault).__name__}: {fault}); it is restarted.", 300
                )
                await self._store.put(Notice(text, "attention", box))
            await asyncio.sleep(backoff.failed() or 1.0)

    async def _obey(self) -> None:
        while True:
            command = await self._store.commands.get()
            try:
                await self._carry_out(command)
            except Failure as failure:
                await self._store.put(Notice(failure.line, "attention"))
            except Exception as fault:  # noqa: BLE001 - one command's fault must not end the whole watch
                what = f"{type(command).__name__} failed ({type(fault).__name__}: {fault})"
                await self._store.put(Notice(safe(f"{what}. The watch goes on.", 300), "danger"))

    async def _carry_out(self, command: Command) -> None:
        match command:
            case ViewAt(box):
                for name, boxed in self._boxes.items():
                    boxed.worker.viewed = name == box
            case AdoptRun(spec):
                self._fleet.add_run(spec)
                await self.reload()
                await self._store.put(Notice(safe(f"Watching {spec.name} on {spec.box}."), box=spec.box))
            case ForgetRun(run):
                self._fleet.remove_run(run)
                await self.reload()
                text = f"{run} is no longer watched; nothing was done to it."
                await self._store.put(Notice(safe(text)))
            case ForgetBox(name):
                await self._forget_box(name)
            case ReloadFleet():
                await self.reload()
            case GiveSecret():
                if not self._asker.answer(command):
                    raise Failure(
                        f"{command.box} no longer waits for a password.", do="Press C to connect again."
                    )
            case SearchLog(run) | CancelSearch(run) | LoadOlder(run):
                worker = self._run_worker(run)
                if worker is not None:
                    await worker.handle(command)
            case Diagnose() | TakeLook() | SurveyStorage():
                await self._triage.handle(command)
            case ProbeNow() | ReconnectNow() | TrustHostKey() | OpenForward() | CloseForward():
                await self._to_box(command)
            case _:
                await self._desk.handle(command)

    async def _to_box(
        self, command: ProbeNow | ReconnectNow | TrustHostKey | OpenForward | CloseForward
    ) -> None:
        boxed = self._boxes.get(command.box)
        if boxed is None:
            raise Failure(f"No box is named {command.box}.")
        worker = boxed.worker
        match command:
            case ProbeNow():
                worker.probe_now()
            case ReconnectNow():
                worker.retry_now()
            case TrustHostKey(box, fingerprint):
                self._accept_key(box, fingerprint)
                worker.retry_now()
            case OpenForward(_, port, local_port):
                await worker.open_forward(port, local_port)
            case CloseForward(_, port):
                await worker.close_forward(port)

    def _transport(self, box: str) -> Transport | None:
        boxed = self._boxes.get(box)
        return boxed.worker.link.current if boxed is not None else None

    def _run_worker(self, run: str) -> RunWorker | None:
        return next((b.runs[run][0] for b in self._boxes.values() if run in b.runs), None)

    async def _woke_up(self, _slept_s: float) -> None:
        for boxed in self._boxes.values():
            boxed.worker.woke_up()

    async def _stop_box(self, boxed: _Boxed) -> None:
        for _, task in boxed.runs.values():
            await _end(task)
        await _end(boxed.task)

    async def _stop_all(self) -> None:
        await self._desk.close()
        tasks = [t for b in self._boxes.values() for t in (b.task, *(task for _, task in b.runs.values()))]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_S)
        self._boxes.clear()


def _way(instance: Instance | None) -> object:
    """What a connection depends on: a new price must not cut the link, nor close its forwards."""
    return instance and (instance.endpoint, instance.via, instance.host_key, instance.password_env)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task], timeout=GRACE_S)


def _file_name(run: str) -> str:
    """A file name no run name can escape from; two runs never share one."""
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in run)[:40]
    return f"{plain}-{hashlib.sha256(run.encode()).hexdigest()[:8]}"

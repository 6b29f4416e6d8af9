"""A job of a Slurm cluster, asked about on the login node (any version since 17; read 2026-11).

The text forms are asked, not the JSON: ``squeue --json`` ignores filters and dumps the whole cluster, some
sites lack its plug-in, and the text's one word is the safe one: a flag such as COMPLETING, while which the
nodes are still held, hides the terminal word there.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from tui.box.connect import Connector
from tui.box.parsers.report import Output
from tui.box.parsers.slurm import long_state, refusal_of, seconds
from tui.box.parsers.slurm_records import pairs
from tui.box.transport import Completed, LinkLost, Script, Transport
from tui.box.trust import TrustStore
from tui.fleet.paths import Paths
from tui.model.custody import Victim
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.text import safe
from tui.model.via import SlurmStep
from tui.platforms.control import (
    ControlError,
    Listing,
    Machine,
    NoAnswer,
    NoSuchMachine,
    NotAllowed,
    Price,
    State,
    VerbRefused,
)

PLATFORM = "slurm"
CALL_S = 30.0
_JOB_ID = re.compile(r"[0-9]{1,12}(?:_[0-9]{1,9}|\+[0-9]{1,4})?\Z")

_WHO = r"""
LC_ALL=C; export LC_ALL
command -v squeue >/dev/null 2>&1 || { echo none; exit 0; }
echo "user $(id -un)"
echo "cluster $(scontrol show config 2>/dev/null | sed -n 's/^ClusterName *= *//p')"
"""

# $1 the job. Its record, one line a task, and what accounting remembers; whatever was said instead.
_ABOUT = (
    _WHO
    + r"""
scontrol -o show job "$1" 2>&1 | sed 's/^/job /'
sacct -X -n -P -j "$1" -S 2000-01-01 -o JobID,State,ExitCode,Submit 2>&1 | sed 's/^/past /'
exit 0
"""
)

# Every job of this user that the controller knows, ended ones too while it remembers them.
_ALL = (
    _WHO
    + r"""
if told=$(squeue -h -t all -u "$(id -un)" -o 'row %i|%A|%T|%r|%M|%l|%j' 2>&1); then
  echo "$told"; echo complete
else
  echo "$told" | sed 's/^/refused /'
fi
exit 0
"""
)

_CANCEL = 'LC_ALL=C; export LC_ALL; exec scancel -- "$1"'

_HELD: Mapping[str, State] = {
    **dict.fromkeys(("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"), "starting"),
    **dict.fromkeys(("RESV_DEL_HOLD", "CONFIGURING", "POWER_UP_NODE", "EXPEDITING"), "starting"),
    **dict.fromkeys(("RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING"), "running"),
    **dict.fromkeys(("COMPLETING", "STAGE_OUT", "UPDATE_DB"), "destroying"),
    **dict.fromkeys(("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"), "gone"),
    **dict.fromkeys(("OUT_OF_MEMORY", "TIMEOUT", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"), "gone"),
}
"""PREEMPTED is in neither: where the job may be requeued it comes back."""


class _Line(Protocol):
    async def close(self) -> None: ...


class Login(Transport, _Line, Protocol):
    """A connection to the login node."""


Dial = Callable[[], Awaitable[Login]]
Reach = Callable[[Instance], Awaitable[Login]]
"""Connects to a box."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """One user's jobs on one cluster. Each question is a connection of its own."""

    dial: Dial
    name: str
    call_s: float = CALL_S
    platform: str = PLATFORM

    async def describe(self, victim: Victim) -> Machine:
        said = await self._asked(Script(_ABOUT, (_job(victim),), why="how the job stands"))
        return described(said, _job(victim))

    async def list_all(self) -> Listing:
        return listed(await self._asked(Script(_ALL, why="all jobs of this user")))

    async def stop(self, victim: Victim) -> str:
        raise VerbRefused(
            f"Job {_job(victim)} can't be stopped and kept: Slurm only cancels or requeues.",
            means="Nothing was sent.",
            do=f"`rgt down {victim.name}` cancels it; scontrol requeue {_job(victim)} starts it over.",
            code="no-stop",
        )

    async def destroy(self, victim: Victim) -> str:
        """scancel, once. Its steps get SIGTERM, and SIGKILL after the site's KillWait."""
        job = _job(victim)
        try:
            async with self._open() as login:
                done = await login.run(Script(_CANCEL, (job,), why="cancel the job"), timeout=self.call_s)
        except (LinkLost, TimeoutError):
            raise NoAnswer(f"The login node did not say what became of scancel {job}.") from None
        if done.exit == 0:
            return "scancel took it"
        raise _refusal(done, job)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Login]:
        try:
            login = await self.dial()
        except Failure as failure:
            raise NoAnswer(f"The login node can't be reached: {failure.line}") from None
        try:
            yield login
        finally:
            await login.close()

    async def _asked(self, script: Script) -> str:
        try:
            async with self._open() as login:
                done = await login.run(script, timeout=self.call_s, limit=8 << 20)
        except (LinkLost, TimeoutError):
            raise NoAnswer(f"The login node did not answer within {self.call_s:g} s.") from None
        if done.truncated:
            raise NoAnswer("Slurm's answer does not end.")
        return done.stdout.decode("utf-8", "replace")


def _job(victim: Victim) -> str:
    if not _JOB_ID.match(victim.instance_id or ""):
        raise NoAnswer("No job id tells Slurm which job is meant.")
    return victim.instance_id or ""


def _refusal(done: Completed, job: str) -> ControlError:
    """What scancel's refusal amounts to."""
    text = done.stderr.decode("utf-8", "replace") or done.stdout.decode("utf-8", "replace")
    refusal = refusal_of(Output(done.stdout.decode("utf-8", "replace"), text, done.exit))
    said = safe(text.strip().split("\n")[-1], 200)
    if refusal is not None and refusal.error == "invalid_job_id":
        return NoSuchMachine(f"Slurm does not know job {job}: {said}", code="no-such-machine")
    if refusal is not None and refusal.error == "permission":
        return NotAllowed(f"Slurm lets this user not cancel job {job}: {said}", code="not-allowed")
    if "already complet" in text:
        return VerbRefused(f"Job {job} is ending or over: {said}", code="verb-refused")
    return NoAnswer(f"scancel ended with {done.exit}: {said}")


@dataclass(frozen=True, slots=True)
class _Said:
    """The lines of an answer by their first word, and whose jobs they are."""

    lines: tuple[tuple[str, str], ...]
    account: str | None

    def of(self, topic: str) -> list[str]:
        return [rest for word, rest in self.lines if word == topic]


def _read(text: str) -> _Said:
    lines = tuple(line.partition(" ")[::2] for line in text.split("\n") if line)
    found = dict(lines)
    if "none" in found:
        raise NoAnswer("The login node has no squeue: it is no login node of Slurm.")
    user, cluster = found.get("user", ""), found.get("cluster", "")
    return _Said(lines, str(safe(f"{user}@{cluster}", 120)) if user and cluster else None)


def described(text: str, job: str) -> Machine:
    """One job from what scontrol and sacct said. Raises ControlError."""
    said = _read(text)
    records = [pairs(line)[0] for line in said.of("job") if line.startswith("JobId=")]
    if records:
        return _from_record(records, job)
    words = "\n".join(said.of("job"))
    refusal = refusal_of(Output("", words, 1))
    if refusal is None or refusal.error != "invalid_job_id":
        raise NoAnswer(f"Slurm does not answer: {safe(words.strip() or 'nothing was said', 200)}.")
    past = [row.split("|") for row in said.of("past") if row.count("|") >= 3]
    if not past:
        memory = "accounting told nothing" if said.of("past") else "accounting knows none either"
        raise NoSuchMachine(
            f"The controller knows no job {job}, and {memory}.",
            means="It ended more than MinJobAge ago, or never was.",
            code="no-such-machine",
        )
    _, word, code, _ = past[-1][:4]
    state, _ = long_state(word)
    kind = _HELD.get(state or "", "unknown")
    # Accounting can lag: that it runs is no news from a controller that does not know it.
    told: State = "gone" if kind == "gone" else "unknown"
    return Machine(id=job, name="", state=told, said=f"{safe(word, 60)} {safe(code, 20)}")


def _from_record(records: list[dict[str, str]], job: str) -> Machine:
    """A job, or a whole array: it is gone when all of its tasks are."""
    states = [_state(record) for record in records]
    order: tuple[State, ...] = ("running", "destroying", "stopping", "unknown", "starting", "gone")
    first = min(range(len(states)), key=lambda n: order.index(states[n]))
    record = records[first]
    ran, limit = seconds(record.get("RunTime", "")), seconds(record.get("TimeLimit", ""))
    since = time.time() - ran if ran and states[first] == "running" else None
    reason = record.get("Reason", "")
    notes = [] if reason in ("", "None") else [f"It waits: {safe(reason, 120)}."]
    if record.get("Requeue") == "1" and states[first] != "gone":
        notes.append("It is requeued after preemption or a node's failure, with the same id.")
    return Machine(
        id=job,
        name=str(safe(record.get("JobName", ""), 80)),
        state=states[first],
        created_at=record.get("SubmitTime") if record.get("Restarts") == "0" else None,
        said=str(safe(record.get("JobState", ""), 40)),
        price=Price(None, "USD", "Slurm has no price: resource hours count against the account"),
        gpu=_gpus(record),
        since=since,
        ends_at=since + limit if since and limit else None,
        notes=tuple(notes),
    )


def _state(record: Mapping[str, str]) -> State:
    word, _ = long_state(record.get("JobState", ""))
    if word == "PREEMPTED":
        return "stopping" if record.get("Requeue") == "1" else "gone"
    return _HELD.get(word or "", "unknown")


def _gpus(record: Mapping[str, str]) -> str:
    """The cards, with their type where one of the fields names it."""
    fields = " ".join(record.get(key, "") for key in ("AllocTRES", "ReqTRES", "TRES", "TresPerNode", "Gres"))
    found = re.findall(r"gres[/:]gpu(?::([A-Za-z][\w.-]*))?[=:](\d+)", fields)
    best = next((one for one in found if one[0]), found[0] if found else None)
    return f"{best[1]} × {safe(best[0] or 'gpu', 40)}" if best else ""


def listed(text: str) -> Listing:
    """Every job of the user that the controller knows. Raises ControlError."""
    said = _read(text)
    if "complete" not in {word for word, _ in said.lines}:
        words = "; ".join(said.of("refused"))
        raise NoAnswer(f"squeue does not answer: {safe(words or 'nothing was said', 200)}.")
    rows = [row.split("|", 6) for row in said.of("row")]
    machines: dict[str, Machine] = {}
    for row in rows:
        if len(row) != 7:
            return Listing(tuple(machines.values()), complete=False, account=said.account)
        shown, raw, word, reason, _, _, name = row
        state, _ = long_state(word)
        one = Machine(
            id=shown,
            name=str(safe(name, 80)),
            state="stopping" if state == "PREEMPTED" else _HELD.get(state or "", "unknown"),
            said=str(safe(word, 40)),
            notes=() if reason in ("", "None") else (f"{safe(reason, 120)}",),
        )
        machines |= {shown: one, raw: replace(one, id=raw)}
    return Listing(tuple(machines.values()), complete=True, account=said.account)


def plane(instance: Instance, where: Paths, reach: Reach | None = None) -> Slurm | str:
    """The cluster of a job; in words why nothing can be asked about this box.

    Args:
        reach: connects to a box as the operator's other connections are made, which may ask for a password
            once and knows it then; None: by keys alone.
    """
    if not isinstance(instance.via, SlurmStep) or instance.endpoint is None:
        return "is a login node: it is not rented, and its jobs are boxes of their own"
    login = replace(instance, name=instance.via.login, via=None)
    by = reach or Connector(TrustStore(where.state / "hostkeys", where.receipts)).connect
    return Slurm(lambda: by(login), instance.via.login)

"""A stateful control plane that lags, lies, fails and forgets, as real ones do. Every call is on record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.custody.chains import VICTIM
from tui.model.custody import Victim
from tui.platforms.control import Listing, Machine, NoAnswer, NoSuchMachine, NotAllowed, State, VerbRefused

OURS = Machine(id="inst-77", name="done-01", state="running", created_at="2026-11-01", said="RUNNING")
OTHER = Machine(id="inst-12", name="other", state="running", created_at="2026-10-01", said="RUNNING")


@dataclass
class FakePlane:
    """One account.

    Attributes:
        lag: looks during which a verb that was carried out does not show yet.
        one_lag, list_lag: further looks for get-one, or for the list, alone.
        ignores: verbs that are acknowledged and not carried out.
        answers: what the next calls of a verb raise; afterwards it works.
        applies_though: verbs that are carried out although they answer with an error.
        bad_key: get-one says 404 and the list says 401, as with a rejected credential.
        bad_key_empty: get-one says 404 and the list is empty, and nobody says why.
    """

    machines: dict[str, Machine] = field(default_factory=lambda: {OURS.id: OURS, OTHER.id: OTHER})
    account: str | None = "acct-1"
    lag: int = 0
    one_lag: int = 0
    list_lag: int = 0
    ignores: set[str] = field(default_factory=set)
    answers: dict[str, list[Exception]] = field(default_factory=dict)
    applies_though: bool = False
    bad_key: bool = False
    bad_key_empty: bool = False
    one_fails: bool = False
    list_fails: bool = False
    incomplete: bool = False
    volumes: tuple[str, ...] | None = None
    calls: list[str] = field(default_factory=list)
    on_verb: Callable[[str], None] = lambda verb: None
    platform: str = "vast"
    _stale_one: list[Machine | None] = field(default_factory=list)
    _stale_list: list[Machine | None] = field(default_factory=list)

    @property
    def sent(self) -> list[str]:
        """The verbs that reached it."""
        return [call for call in self.calls if call in ("stop", "destroy")]

    async def describe(self, victim: Victim) -> Machine:
        self.calls.append("describe")
        if self.bad_key or self.bad_key_empty:
            raise NoSuchMachine("404: no such instance")
        if self.one_fails:
            raise NoAnswer("500 from get-one")
        here = self._stale_one.pop(0) if self._stale_one else self.machines.get(victim.instance_id or "")
        if here is None:
            raise NoSuchMachine("404: no such instance")
        return here

    async def list_all(self) -> Listing:
        self.calls.append("list")
        if self.bad_key:
            raise NotAllowed("401: bad key")
        if self.bad_key_empty:
            return Listing((), complete=True, account=None)
        if self.list_fails:
            raise NoAnswer("500 from list")
        machines = dict(self.machines)
        if self._stale_list and (stale := self._stale_list.pop(0)) is not None:
            machines[stale.id] = stale
        return Listing(
            tuple(machines.values()), complete=not self.incomplete, account=self.account, volumes=self.volumes
        )

    async def stop(self, victim: Victim) -> str:
        return self._verb("stop", victim)

    async def destroy(self, victim: Victim) -> str:
        return self._verb("destroy", victim)

    def _verb(self, verb: str, victim: Victim) -> str:
        self.calls.append(verb)
        self.on_verb(verb)
        error = self.answers[verb].pop(0) if self.answers.get(verb) else None
        if error is None or self.applies_though:
            self._apply(verb, victim)
        if error is not None:
            raise error
        return "202 accepted"

    def _apply(self, verb: str, victim: Victim) -> None:
        here = self.machines.get(victim.instance_id or "")
        if verb in self.ignores or here is None:
            return
        self._stale_one = [here] * (self.lag + self.one_lag)
        self._stale_list = [here] * (self.lag + self.list_lag)
        if verb == "destroy":
            del self.machines[here.id]
        else:
            self.becomes("stopped")

    def becomes(self, state: State) -> None:
        """Our machine goes into a state by itself, or by somebody else's hand."""
        here = self.machines[VICTIM.instance_id or ""]
        self.machines[here.id] = replace(here, state=state, said=state.upper())

    def vanishes(self) -> None:
        """Our machine is destroyed by somebody else: the balance ran out, the contract ended."""
        self.machines.pop(VICTIM.instance_id or "", None)


@dataclass
class StoredPlane(FakePlane):
    """One whose state lies in a file, as a real one's outlives the process that is killed."""

    file: Path = Path("/nonexistent")

    def load(self) -> StoredPlane:
        if self.file.exists():
            stored = json.loads(self.file.read_text())
            self.calls = stored["calls"]
            self.machines = {one["id"]: Machine(**one | {"volumes": ()}) for one in stored["machines"]}
        return self

    def _verb(self, verb: str, victim: Victim) -> str:
        self.load()
        answer = super()._verb(verb, victim)
        machines = [
            {
                "id": one.id,
                "name": one.name,
                "state": one.state,
                "created_at": one.created_at,
                "said": one.said,
            }
            for one in self.machines.values()
        ]
        self.file.write_text(json.dumps({"calls": self.sent, "machines": machines}))
        return answer


def refuses(what: str = "409: the machine is locked") -> VerbRefused:
    return VerbRefused(what)

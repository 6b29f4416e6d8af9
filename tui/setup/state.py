"""What a setup knows, and where it is kept, so that it goes on after a crash where it was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from tui.box.transport import Transport
from tui.durable import write_whole
from tui.fleet.paths import Paths
from tui.fleet.profiles import Profile
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.setup import Asked, StepId
from tui.model.text import SafeText, safe
from tui.platforms.credentials import Missing
from tui.platforms.vendors import Account

STEPS: tuple[StepId, ...] = (
    "platform", "surface", "key", "credentials", "rent", "connect", "identity",
    "audit", "budget", "secrets", "mirrors", "summary",
)  # fmt: skip

Tell = Callable[[SafeText], None]


class Closable(Transport, Protocol):
    async def close(self) -> None: ...


class Did(BaseModel):
    """What came of a step, as it is kept. `data` is for later steps; never a secret."""

    model_config = ConfigDict(frozen=True)

    brief: str
    observed: tuple[str, ...] = ()
    skipped: str | None = None
    data: dict[str, str] = {}


class Kept(BaseModel):
    """The file of a setup that is under way."""

    model_config = ConfigDict(frozen=True)

    box: str | None = None
    done: dict[str, Did] = {}


@dataclass(frozen=True, slots=True)
class Tools:
    """What steps need of the world; everything that touches it is injected.

    Attributes:
        dial: opens a transport to a box.
        add_box: writes a pasted login into the fleet file under a name; answers with the name.
        account: opens the account of a platform with the key that is found.
        keep_key: puts a typed key of a platform into the keyring. Raises Failure.
        forget_key: takes a host key back that was trusted a moment ago.
        reload: tells the watching workers that the fleet file changed.
    """

    where: Paths
    profiles: Mapping[str, Profile]
    dial: Callable[[Instance], Awaitable[Closable]]
    add_box: Callable[[str, str, str], str]
    instance: Callable[[str], Instance]
    boxes: Callable[[], Sequence[Instance]]
    edit_box: Callable[[str, Mapping[str, str | float]], None]
    forget_key: Callable[[str], None]
    reload: Callable[[], Awaitable[None]]
    account: Callable[[str], Account | Missing]
    keep_key: Callable[[str, str], object]
    keys: Path
    environ: Mapping[str, str]
    today: Callable[[], date] = date.today
    clock: Callable[[], float] = field(default=lambda: 0.0)


@dataclass(frozen=True, slots=True)
class State:
    """A setup under way.

    Attributes:
        box: the box it is about, once there is one.
        done: steps that are done or skipped, in any order.
    """

    box: str | None = None
    done: Mapping[StepId, Did] = field(default_factory=dict)

    @property
    def current(self) -> StepId:
        """The first step that is neither done nor skipped; the last one when all are."""
        return next((one for one in STEPS if one not in self.done), STEPS[-1])

    def told(self, step: StepId, key: str) -> str | None:
        did = self.done.get(step)
        return did.data.get(key) if did else None

    @property
    def platform(self) -> str | None:
        return self.told("platform", "id")

    def with_done(self, step: StepId, did: Did, box: str | None = None) -> State:
        return replace(self, done={**self.done, step: did}, box=box or self.box)

    def back_to(self, step: StepId) -> State:
        """Without this step and those after it; a box that is known stays known."""
        kept = {one: did for one, did in self.done.items() if STEPS.index(one) < STEPS.index(step)}
        return replace(self, done=kept, box=self.box if STEPS.index(step) > STEPS.index("connect") else None)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a step shows before it runs.

    Attributes:
        asked: None where it runs by itself.
        may_skip: False where nothing later makes sense without it.
        about: what to read before answering.
    """

    runs: SafeText
    expected: SafeText
    asked: Asked | None
    may_skip: bool = True
    about: tuple[SafeText, ...] = ()


class Step(Protocol):
    """One step. `ask` may look, `take` acts on the answer."""

    async def ask(self, state: State, tools: Tools) -> Shown:
        """What it will do and wants to know. Raises Failure."""

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did | Shown:
        """Do it; a `Shown` asks something further first. Raises Failure: it may be tried again.

        What is asked further is forgotten with the process: nothing was done until there is a `Did`.
        """


def load(where: Paths) -> State:
    """The setup that is under way; a new one where there is none, or where its file can't be read."""
    try:
        kept = Kept.model_validate_json(_file(where).read_bytes())
    except (OSError, ValidationError, ValueError):
        return State()
    done = {name: did for name in STEPS if (did := kept.done.get(name)) is not None}
    return State(kept.box, done)


def save(where: Paths, state: State) -> None:
    """Keep a setup, whole. Raises Failure."""
    kept = Kept(box=state.box, done={str(name): did for name, did in state.done.items()})
    try:
        write_whole(_file(where), kept.model_dump_json(indent=1))
    except OSError as error:
        raise Failure(
            f"The setup could not be kept ({error.strerror}).",
            means="It goes on, but not after a restart.",
            do=f"Look at {where.state}.",
        ) from None


def drop(where: Paths) -> None:
    """Forget a setup; what it made stays made."""
    _file(where).unlink(missing_ok=True)


def _file(where: Paths) -> Path:
    return where.state / "setup.json"


def lines(found: Sequence[str], limit: int = 300) -> tuple[SafeText, ...]:
    return tuple(safe(line, limit) for line in found)

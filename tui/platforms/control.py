"""What a platform's control plane is asked, and what it may answer. Implementations live elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from tui.model.custody import Victim
from tui.model.failure import Exit, Failure

State = Literal["starting", "running", "stopping", "stopped", "destroying", "gone", "unknown"]


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine as its control plane tells it.

    Attributes:
        state: ``gone`` where a platform still lists what it deleted; ``unknown`` for a word nobody knows.
        created_at: as the platform writes it. An id with another date is another machine.
        volumes: ids of disks that are its own.
        said: the platform's own word for the state.
    """

    id: str
    name: str
    state: State
    created_at: str | None = None
    volumes: tuple[str, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """Every machine of the account, in every state.

    Attributes:
        complete: all pages were read and nothing was filtered out.
        account: whom the credential belongs to, told to a valid credential only; None: not told.
        volumes: ids of disks that exist, None where the platform was not asked.
    """

    machines: tuple[Machine, ...]
    complete: bool
    account: str | None = None
    volumes: tuple[str, ...] | None = None

    def find(self, id_: str) -> Machine | None:
        return next((one for one in self.machines if one.id == id_), None)


class ControlError(Failure):
    """A control plane did not do or tell what it was asked."""


class NoSuchMachine(ControlError):
    """It says that there is no machine of this id. That is also what some say to a credential they reject."""


class NotAllowed(ControlError):
    """The credential was rejected. Nothing is known of the machine."""


class VerbRefused(ControlError):
    """It surely did not carry out the verb, and says why."""


class NoAnswer(ControlError):
    """No usable answer: a server's error, a limit, silence, nonsense. A verb may have been carried out."""

    def __init__(self, what: str) -> None:
        super().__init__(
            what, means="Whether it was carried out is unknown.", exit=Exit.UNKNOWN, code="no-answer"
        )


class ControlPlane(Protocol):
    """One account at one platform. Every method has a deadline of its own and raises ControlError."""

    @property
    def platform(self) -> str: ...

    async def describe(self, victim: Victim) -> Machine:
        """Ask for this one machine by its id."""

    async def list_all(self) -> Listing:
        """Ask for all machines, in every state."""

    async def stop(self, victim: Victim) -> str:
        """Ask once for the stop; what was answered, in words. An answer is no proof."""

    async def destroy(self, victim: Victim) -> str:
        """Ask once for the deletion; what was answered, in words. An answer is no proof."""


@dataclass(frozen=True, slots=True)
class NoControlPlane:
    """A machine whose platform can't be asked: the operator looks at the console and gives his word.

    Attributes:
        why: such as "ordinary instances have no API".
        console: what to do by hand at the provider, in words.
        in_box: the command on the box itself that does it, where there is one.
    """

    platform: str
    why: str
    console: str
    in_box: str | None = None

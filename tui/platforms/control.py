"""What a platform's control plane is asked, and what it may answer. Implementations live elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from tui.model.custody import Victim
from tui.model.failure import Exit, Failure
from tui.model.instance import Endpoint

State = Literal["starting", "running", "stopping", "stopped", "destroying", "gone", "unknown"]


@dataclass(frozen=True, slots=True)
class Price:
    """What something costs an hour.

    Attributes:
        per_hour: None where nobody tells; that is never shown as 0.
        source: where the figure is from, in words.
    """

    per_hour: float | None
    currency: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine as its control plane tells it.

    Attributes:
        state: ``gone`` where a platform still lists what it deleted; ``unknown`` for a word nobody knows.
        created_at: as the platform writes it. An id with another date is another machine.
        volumes: ids of disks that are its own.
        said: the platform's own word for the state.
        endpoint: where SSH answers now; it moves with each power cycle. None: not told, or not up yet.
        price: what it costs in the state it is in; None: not told here (`describe` may tell it).
        gpu: its accelerators in words, empty where not told.
        since, stopped_at, ends_at: seconds since the epoch; when the meter started, when it was stopped,
            when the contract ends.
        notes: what the operator should know of it, a sentence each.
    """

    id: str
    name: str
    state: State
    created_at: str | None = None
    volumes: tuple[str, ...] = ()
    said: str = ""
    endpoint: Endpoint | None = None
    price: Price | None = None
    gpu: str = ""
    since: float | None = None
    stopped_at: float | None = None
    ends_at: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Every machine of the account, in every state.

    Attributes:
        complete: all pages were read and nothing was filtered out.
        account: whom the credential belongs to, told to a valid credential only; None: not told.
        volumes: ids of disks that exist, None where the platform was not asked.
        account_told: False: `account` is only the key that was used, because the platform names nobody. Then
            a machine that was seen beside the one in question has to be seen again.
    """

    machines: tuple[Machine, ...]
    complete: bool
    account: str | None = None
    volumes: tuple[str, ...] | None = None
    account_told: bool = True

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
class Balance:
    """What is left to spend.

    Attributes:
        amount: None where the platform does not tell.
        per_hour: what the platform itself says that everything costs an hour, storage and all.
        why: where the figure is from, or why there is none.
    """

    amount: float | None
    currency: str
    per_hour: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be rented.

    Attributes:
        id: what a request names it by.
        price: of the whole machine, all its accelerators.
        regions: where it is to be had now; empty where that is not told.
        available: None where stock is not told.
        spot: can be taken away.
        multiplied: one machine can have several of it; then `price` is of one.
        most: how many of it at most; None: not told.
        facts: further figures worth a look, in words.
    """

    id: str
    gpu: str
    gpus: int
    price: Price
    regions: tuple[str, ...] = ()
    available: bool | None = None
    spot: bool = False
    multiplied: bool = False
    most: int | None = None
    gpu_memory_gb: float | None = None
    disk_gb: float | None = None
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator wants to rent.

    Attributes:
        name: ``<project>-<purpose>-<date>``, so that nobody wonders later what it was for.
        image: container or machine image in the platform's own words; None: its default, where it has one.
        gpus: how many, where an offer is for one and can be multiplied; None: as offered.
        ssh_key: name of a key at the platform, where a request must name one.
        region: one of the offer's.
        more: further keys of the request's body, as the platform spells them.
    """

    name: str
    offer: Offer
    image: str | None = None
    gpus: int | None = None
    disk_gb: int | None = None
    ssh_key: str | None = None
    region: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def price(self) -> Price:
        """Of the whole machine as it is wished for."""
        one = self.offer.price
        times = self.gpus or self.offer.gpus
        if one.per_hour is None or not self.offer.multiplied or times == 1:
            return one
        return replace(one, per_hour=one.per_hour * times)


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Exactly what will be sent to rent a machine: what is shown is what is sent."""

    platform: str
    method: str
    path: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Created:
    """A machine was asked for. `id` is None where the answer named none; the list then has to tell."""

    id: str | None
    said: str


class ApiRetired(VerbRefused):
    """The interface itself is gone (410). That says nothing whatever about a machine."""


class Provider(ControlPlane, Protocol):
    """A control plane of a vendor: everything that it can be asked."""

    @property
    def lists_all(self) -> bool:
        """The list tells prices and endpoints; otherwise only `describe` does."""

    async def start(self, victim: Victim) -> str:
        """Ask once for the start. Endpoint, host key and price may be others afterwards."""

    async def balance(self) -> Balance:
        """What is left to spend."""

    async def offers(self) -> tuple[Offer, ...]:
        """What can be rented, cheapest first."""

    def request(self, wish: Wish) -> CreateRequest:
        """The request that a wish becomes. Raises Failure where the wish lacks something."""

    async def create(self, request: CreateRequest) -> Created:
        """Send it once. NoAnswer: a machine may exist and bill; the list has to tell."""


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

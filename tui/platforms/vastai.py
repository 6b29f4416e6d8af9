"""vast.ai (spec of vast-ai/docs c6246226, 2026-08; what its own CLI does where the spec is silent).

The old list, ``/api/v0/instances/``, answers a failure object inside a 200 since 2026-08; clients that took
it for an empty list rented everything again. `exited`, `stopped` and `offline` are contracts that still bill
storage: only an id that is nowhere any more is destroyed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from tui.model.custody import Victim
from tui.model.failure import Failure
from tui.model.instance import Endpoint
from tui.platforms.control import (
    Balance,
    ControlError,
    Created,
    CreateRequest,
    Listing,
    Machine,
    NoAnswer,
    NoSuchMachine,
    NotAllowed,
    Offer,
    Price,
    State,
    VerbRefused,
    Wish,
)
from tui.platforms.http import Answer, Asked, Edge, Vendor, bearer, machine_id
from tui.platforms.told import (
    OR_NONE,
    MaybeAmount,
    MaybeBool,
    MaybeFinite,
    MaybeInt,
    MaybePort,
    MaybeText,
    Told,
    each,
    host_of,
    parse,
    positive,
)

VENDOR = Vendor(
    id="vastai",
    title="vast.ai",
    base_url="https://console.vast.ai",
    header=bearer,
    # Least seconds between two calls of one kind, from the 429 texts of the spec.
    every_s={"one": 2.0, "list": 1.0, "destroy": 3.0, "volumes": 5.5, "user": 2.0, "*": 1.0},
)
MOST_PAGES = 80
"""2000 contracts; a list that goes on beyond that is called incomplete."""

_STATES: Mapping[str, State] = {
    "created": "starting",
    "loading": "starting",
    "running": "running",
    "rebooting": "running",
    "stopped": "stopped",
    "frozen": "running",
    "exited": "stopped",
    # The host can't be seen; the contract is there.
    "offline": "running",
    "unknown": "running",
}
_CODES: Mapping[str, int] = {
    "auth_error": 401,
    "no_such_instance": 404,
    "not_found": 404,
    "rate_limit_exceeded": 429,
    "deprecated_endpoint": 410,
}
"""What the code of an envelope amounts to, whatever its HTTP status is."""


class _Rates(Told):
    totalHour: MaybeFinite = None  # noqa: N815 - as the platform spells it
    discountedTotalPerHour: MaybeFinite = None  # noqa: N815


class _Instance(Told):
    id: int
    actual_status: MaybeText = None
    intended_status: MaybeText = None
    cur_state: MaybeText = None
    next_state: MaybeText = None
    label: MaybeText = None
    ssh_host: MaybeText = None
    ssh_port: MaybePort = None
    public_ipaddr: MaybeText = None
    ports: Annotated[dict[str, Any] | None, OR_NONE] = None
    image_runtype: MaybeText = None
    gpu_name: MaybeText = None
    num_gpus: MaybeInt = None
    start_date: MaybeFinite = None
    end_date: MaybeFinite = None
    is_bid: MaybeBool = None
    dph_total: MaybeAmount = None
    storage_total_cost: MaybeAmount = None
    instance: Annotated[_Rates | None, OR_NONE] = None


class _Page(Told):
    success: bool
    instances: list[Any]
    next_token: str | None = None
    total_instances: MaybeInt = None


class _One(Told):
    instances: dict[str, Any] | None


class _User(Told):
    id: int
    balance: MaybeFinite = None
    credit: MaybeFinite = None


class _Ask(Told):
    id: int
    gpu_name: MaybeText = None
    num_gpus: MaybeInt = None
    gpu_ram: MaybeAmount = None
    dph_total: MaybeAmount = None
    disk_space: MaybeAmount = None
    geolocation: MaybeText = None
    reliability2: MaybeAmount = None
    rentable: MaybeBool = None
    is_bid: MaybeBool = None
    duration: MaybeFinite = None
    inet_down: MaybeAmount = None
    cuda_max_good: MaybeAmount = None


class _Asks(Told):
    offers: list[Any]


class _Made(Told):
    success: bool
    new_contract: int


@dataclass(frozen=True, slots=True)
class VastAi:
    """One account at vast.ai."""

    edge: Edge
    platform: str = VENDOR.id
    lists_all: bool = True

    async def describe(self, victim: Victim) -> Machine:
        path = f"/api/v0/instances/{machine_id(victim, VENDOR.title)}/"
        told = self._object(await self.edge.read(path, kind="one"), "machine")
        one = parse(_One, told, VENDOR.title).instances
        if one is None:  # what it says of a destroyed id besides, or instead of, a 404
            raise NoSuchMachine("vast.ai says that there is no such instance.", code="no-such-machine")
        return _machine(parse(_Instance, one, VENDOR.title))

    async def list_all(self) -> Listing:
        found: dict[str, Machine] = {}
        complete, token, total = False, None, None
        for _ in range(MOST_PAGES):
            params = {"limit": "25"} | ({"after_token": token} if token else {})
            told = self._object(await self.edge.read("/api/v1/instances/", params, kind="list"), "list")
            page = parse(_Page, told, VENDOR.title)
            instances, bad = each(_Instance, page.instances)
            found |= {str(one.id): _machine(one) for one in instances}
            total = page.total_instances if page.total_instances is not None else total
            if bad:
                break
            if not page.next_token:
                complete = total is None or len(found) >= total
                break
            token = page.next_token
        account = (await self._user()).id
        return Listing(
            tuple(found.values()), complete, account=f"user-{account}", volumes=await self._volumes()
        )

    async def _user(self) -> _User:
        told = self._object(await self.edge.read("/api/v0/users/current/", kind="user"), "list")
        return parse(_User, told, VENDOR.title)

    async def _volumes(self) -> tuple[str, ...] | None:
        try:
            told = self._object(await self.edge.read("/api/v0/volumes/", kind="volumes"), "list")
        except ControlError:
            return None
        found = told.get("volumes")
        if not isinstance(found, list):
            return None
        return tuple(str(one["id"]) for one in found if isinstance(one, dict) and one.get("id") is not None)

    async def stop(self, victim: Victim) -> str:
        return await self._state(victim, "stopped")

    async def start(self, victim: Victim) -> str:
        return await self._state(victim, "running")

    async def _state(self, victim: Victim, wanted: str) -> str:
        path = f"/api/v0/instances/{machine_id(victim, VENDOR.title)}/"
        answer = await self.edge.send("PUT", path, {"state": wanted})
        return self._acknowledged(answer)

    async def destroy(self, victim: Victim) -> str:
        path = f"/api/v0/instances/{machine_id(victim, VENDOR.title)}/"
        return self._acknowledged(await self.edge.delete(path, {}, kind="destroy"))

    def _acknowledged(self, answer: Answer) -> str:
        told = self._object(answer, "verb")
        if told.get("success") is not True:
            raise NoAnswer("vast.ai's answer does not say that it succeeded.")
        words = self.edge.words(told.get("msg"))
        return f"{answer.status}, {words}" if words else str(answer.status)

    async def balance(self) -> Balance:
        try:
            user = await self._user()
        except ControlError as error:
            return Balance(None, "USD", why=error.what)
        amount = user.credit if user.credit is not None else user.balance
        return Balance(amount, "USD", why="vast.ai's account" if amount is not None else "not told")

    async def offers(self) -> tuple[Offer, ...]:
        question = {
            "limit": 100,
            "type": "ondemand",
            "verified": {"eq": True},
            "rentable": {"eq": True},
            "rented": {"eq": False},
            "order": [["dph_total", "asc"]],
        }
        told = self._object(await self.edge.read_by_post("/api/v0/bundles/", question), "list")
        asks, _ = each(_Ask, parse(_Asks, told, VENDOR.title).offers)
        return tuple(_offer(one) for one in asks)

    def request(self, wish: Wish) -> CreateRequest:
        if not wish.offer.id.isdigit():
            raise Failure(
                "This is no offer of vast.ai.", do="Choose one of the list.", code="wish-incomplete"
            )
        if not wish.image and "template_hash_id" not in wish.more:
            raise Failure(
                "vast.ai wants an image or a template.", do="Name one, with its tag.", code="wish-incomplete"
            )
        body: dict[str, Any] = {
            "label": wish.name,
            "runtype": "ssh_direct",  # the proxy is slow for bulk copies
            "target_state": "running",
            "cancel_unavail": True,  # else a contract that can't start is kept, and bills its disk
        }
        if wish.image:
            body["image"] = wish.image
        if wish.disk_gb:
            body["disk"] = float(wish.disk_gb)
        return CreateRequest(VENDOR.id, "PUT", f"/api/v0/asks/{wish.offer.id}/", body | dict(wish.more))

    async def create(self, request: CreateRequest) -> Created:
        answer = await self.edge.send(request.method, request.path, dict(request.body))
        if answer.status == 410:  # here it means that somebody else was faster, not that the API is gone
            raise VerbRefused(
                f"The offer is gone: {self.edge.words(_said(answer))}".rstrip(": ") + ".",
                do="Choose another offer.",
                code="offer-gone",
            )
        made = parse(_Made, self._object(answer, "verb"), VENDOR.title)
        return Created(str(made.new_contract), str(answer.status))

    # --- answers --------------------------------------------------------------------------------------------

    def _object(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        """A good answer. A failure inside a 200 is a failure; its code says which."""
        body = answer.body if isinstance(answer.body, dict) else {}
        if body.get("success") is False or (answer.status >= 400 and body.get("error")):
            status = _CODES.get(str(body.get("error")), answer.status)
            raise self.edge.error(status if status >= 300 else 500, asked, _said(answer))
        if answer.status == 404 and asked == "list":
            raise NotAllowed(
                "vast.ai answers 404 to a list.",
                means="That is what it says to a key that it rejects. Nothing is known of any machine.",
                code="not-allowed",
            )
        return self.edge.object(answer, asked, _said(answer))


def asked_to_wait(answer: Answer) -> float | None:
    """Seconds between two calls that a 429 names, as ``threshold=N``: there is no Retry-After."""
    if answer.status != 429:
        return None
    found = re.search(r"threshold=(\d{1,3}(?:\.\d{1,3})?)", _said(answer) or answer.words)
    return float(found.group(1)) if found else None


def _said(answer: Answer) -> str:
    body = answer.body if isinstance(answer.body, dict) else {}
    words = [body.get("error"), body.get("msg") or body.get("detail")]
    return ": ".join(str(word) for word in words if word)


def _machine(one: _Instance) -> Machine:
    state = _state(one)
    notes = []
    if one.actual_status in ("exited", "unknown", "offline") and one.intended_status == "running":
        notes.append(f"vast.ai says that a box that is {one.actual_status} does not come back.")
    outbid = one.is_bid and {one.cur_state, one.intended_status, one.next_state} == {"stopped"}
    if outbid:
        notes.append("It is interruptible and was stopped: somebody may have bid more.")
    return Machine(
        id=str(one.id),
        name=one.label or "",
        state=state,
        # no created_at: an id is a contract's and never used again, and nobody says that its date stays
        said=one.actual_status or "being provisioned",
        endpoint=_endpoint(one),
        price=_price(one, state),
        gpu=f"{one.num_gpus or 1} × {one.gpu_name}" if one.gpu_name else "",
        since=one.start_date,
        ends_at=one.end_date if one.end_date and one.end_date > 0 else None,
        notes=tuple(notes),
    )


def _state(one: _Instance) -> State:
    """A contract is never gone while it is listed, whatever its container does."""
    if one.actual_status is None:
        return "stopped" if one.cur_state == "stopped" else "starting"
    if one.actual_status == "running" and one.intended_status == "stopped":
        return "stopping"
    if one.actual_status in ("stopped", "exited") and one.intended_status == "running":
        return "running"  # nobody asked for it: what it bills is not settled
    return _STATES.get(one.actual_status, "unknown")


def _endpoint(one: _Instance) -> Endpoint | None:
    """The published port where there is one; else vast.ai's proxy, one port higher for Jupyter images."""
    published = (one.ports or {}).get("22/tcp")
    direct = published[0] if isinstance(published, list) and published else None
    address = host_of(one.public_ipaddr)
    port = direct.get("HostPort") if isinstance(direct, dict) else None
    if address and str(port).isascii() and str(port).isdigit() and 0 < int(str(port)) < 65536:
        return Endpoint(address, int(str(port)), "root")
    host = host_of(one.ssh_host)
    if host is None or one.ssh_port is None:
        return None
    return Endpoint(host, one.ssh_port + ("jupyter" in (one.image_runtype or "")), "root")


def _price(one: _Instance, state: State) -> Price:
    """What is billed now. A stopped contract goes on with its storage, which `dph_total` says nothing of."""
    rates = one.instance or _Rates()
    now = rates.discountedTotalPerHour if rates.discountedTotalPerHour is not None else rates.totalHour
    if positive(now) is not None:
        return Price(now, "USD", "vast.ai's own figure for now")
    if state == "stopped":
        return Price(positive(one.storage_total_cost), "USD", "storage of a stopped contract")
    return Price(positive(one.dph_total), "USD", "vast.ai's rate while it runs")


def _offer(ask: _Ask) -> Offer:
    facts = []
    if ask.reliability2 is not None:
        facts.append(f"reliability {100 * ask.reliability2:.1f} %")
    if ask.inet_down is not None:
        facts.append(f"{ask.inet_down:.0f} Mbit/s down")
    if ask.cuda_max_good is not None:
        facts.append(f"CUDA up to {ask.cuda_max_good:g}")
    if ask.duration is not None:
        facts.append(f"contract of at most {ask.duration / 86400:.0f} days")
    return Offer(
        id=str(ask.id),
        gpu=ask.gpu_name or "?",
        gpus=ask.num_gpus or 1,
        price=Price(positive(ask.dph_total), "USD", "vast.ai's offer; bandwidth is billed besides"),
        regions=(ask.geolocation,) if ask.geolocation else (),
        available=ask.rentable is not False,
        spot=bool(ask.is_bid),
        gpu_memory_gb=None if ask.gpu_ram is None else ask.gpu_ram / 1024,
        disk_gb=ask.disk_space,
        facts=tuple(facts),
    )

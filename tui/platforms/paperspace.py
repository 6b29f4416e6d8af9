"""Paperspace machines (https://api.paperspace.com/v1/openapi.json, as its own CLI c7bdd42 uses it).

The old Core API is dead since 2024-07. A machine that is off still bills storage, a static address and its
snapshots; those outlive a deletion, or may, so they are listed as what is left.
"""

from __future__ import annotations

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
    Offer,
    Price,
    State,
    Wish,
)
from tui.platforms.http import Answer, Asked, Edge, Vendor, bearer, machine_id
from tui.platforms.told import (
    OR_NONE,
    Id,
    MaybeAmount,
    MaybeBool,
    MaybeInt,
    MaybeText,
    Told,
    each,
    epoch,
    host_of,
    parse,
    positive,
)

VENDOR = Vendor(
    id="paperspace",
    title="Paperspace",
    base_url="https://api.paperspace.com/v1",
    header=bearer,
    every_s={"*": 0.5},  # undocumented; 429 exists
)
MOST_PAGES = 20
_STATES: Mapping[str, State] = {
    "off": "stopped",
    "starting": "starting",
    "provisioning": "starting",
    "stopping": "stopping",
    "restarting": "running",
    "upgrading": "running",
    "serviceready": "running",
    "ready": "running",
}
_LEFT = {"snapshots": "snapshot", "shared-drives": "shared drive", "public-ips": "address"}


class _Gpu(Told):
    name: str
    count: MaybeInt = 1


class _Found(Told):
    id: Id
    state: str
    name: MaybeText = None
    machineType: MaybeText = None  # noqa: N815 - as the platform spells it
    accelerators: Annotated[list[_Gpu] | None, OR_NONE] = None
    publicIp: MaybeText = None  # noqa: N815
    publicIpType: MaybeText = None  # noqa: N815
    storageRate: MaybeAmount = None  # noqa: N815
    usageRate: MaybeAmount = None  # noqa: N815
    autoShutdownEnabled: MaybeBool = None  # noqa: N815
    autoShutdownTimeout: MaybeInt = None  # noqa: N815
    dtCreated: MaybeText = None  # noqa: N815
    dtDeleted: MaybeText = None  # noqa: N815


class _Page(Told):
    items: list[Any]
    hasMore: bool  # noqa: N815
    nextPage: str | None = None  # noqa: N815


class _Team(Told):
    id: Id


class _Session(Told):
    team: _Team


class _Event(Told):
    state: str
    error: MaybeText = None


class _Changed(Told):
    event: Annotated[_Event | None, OR_NONE] = None
    data: Annotated[dict[str, Any] | None, OR_NONE] = None


@dataclass(frozen=True, slots=True)
class Paperspace:
    """One team at Paperspace; a key belongs to exactly one."""

    edge: Edge
    platform: str = VENDOR.id
    lists_all: bool = True

    async def describe(self, victim: Victim) -> Machine:
        path = f"/machines/{machine_id(victim, VENDOR.title)}"
        return _machine(parse(_Found, self._object(await self.edge.read(path), "machine"), VENDOR.title))

    async def list_all(self) -> Listing:
        rows, complete = await self._pages("machines")
        machines, bad = each(_Found, rows)
        account = await self._account()
        return Listing(
            tuple(map(_machine, machines)),
            complete and not bad,
            account=account,
            account_told=account != self.edge.account,
            volumes=await self._left(),
        )

    async def _account(self) -> str:
        """The team where the session tells it; else the key, which belongs to one team as well."""
        try:
            told = self._object(await self.edge.read("/auth/session"), "list")
            return f"team-{parse(_Session, told, VENDOR.title).team.id}"
        except NoAnswer:
            return self.edge.account

    async def _pages(self, what: str) -> tuple[list[Any], bool]:
        rows: list[Any] = []
        after: str | None = None
        for _ in range(MOST_PAGES):
            params = {"limit": "120"} | ({"after": after} if after else {})
            page = parse(_Page, self._object(await self.edge.read(f"/{what}", params), "list"), VENDOR.title)
            rows += page.items
            if not page.hasMore:
                return rows, True
            if not page.nextPage or page.nextPage == after:
                break
            after = page.nextPage
        return rows, False

    async def _left(self) -> tuple[str, ...] | None:
        """What outlives machines and bills; None where one of the lists can't be had."""
        found: list[str] = []
        for what, word in _LEFT.items():
            try:
                rows, complete = await self._pages(what)
            except ControlError:
                return None
            if not complete:
                return None
            keys = ("ip", "id") if what == "public-ips" else ("id",)
            for row in rows:
                name = next((row[key] for key in keys if isinstance(row, dict) and row.get(key)), None)
                if name is not None:
                    found.append(f"{word} {name}")
        return tuple(found)

    async def stop(self, victim: Victim) -> str:
        return await self._change(victim, "stop")

    async def start(self, victim: Victim) -> str:
        return await self._change(victim, "start")

    async def _change(self, victim: Victim, verb: str) -> str:
        path = f"/machines/{machine_id(victim, VENDOR.title)}/{verb}"
        return self._event(await self.edge.send("PATCH", path, {}))  # it wants a body, even an empty one

    async def destroy(self, victim: Victim) -> str:
        return self._event(await self.edge.delete(f"/machines/{machine_id(victim, VENDOR.title)}"))

    def _event(self, answer: Answer) -> str:
        """What became of the request so far. An event is the start of something, never its end."""
        told = self._object(answer, "verb")
        event = parse(_Changed, told, VENDOR.title).event
        if event is None:
            return str(answer.status)
        if event.state in ("error", "cancelled"):
            raise NoAnswer(
                f"Paperspace says {event.state}: {self.edge.words(event.error) or 'no reason told'}."
            )
        return f"{answer.status}, {self.edge.words(event.state)}"

    async def balance(self) -> Balance:
        return Balance(None, "USD", why="Paperspace's API tells no balance; it is on cloud.digitalocean.com")

    async def offers(self) -> tuple[Offer, ...]:
        raise NoAnswer("Paperspace's API lists no prices: its console does.")

    def request(self, wish: Wish) -> CreateRequest:
        if not wish.region or not wish.image:
            raise Failure(
                "Paperspace wants a region and the id of a template.",
                do="`pspace machine create --help` and the console name them.",
                code="wish-incomplete",
            )
        body: dict[str, Any] = {
            "name": wish.name,
            "machineType": wish.offer.id,
            "templateId": wish.image,
            "region": wish.region,
            "diskSize": wish.disk_gb or 50,
            "publicIpType": "dynamic",  # a static one bills after the machine is gone
            "startOnCreate": True,
        }
        return CreateRequest(VENDOR.id, "POST", "/machines", body | dict(wish.more))

    async def create(self, request: CreateRequest) -> Created:
        answer = await self.edge.send(request.method, request.path, dict(request.body))
        made = parse(_Changed, self._object(answer, "verb"), VENDOR.title).data or {}
        return Created(str(made["id"]) if made.get("id") else None, str(answer.status))

    # --- answers --------------------------------------------------------------------------------------------

    def _object(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        body = answer.body if isinstance(answer.body, dict) else {}
        code = str(body.get("code") or "")
        said = ": ".join(str(body[key]) for key in ("code", "message") if body.get(key))
        status = {"UNAUTHORIZED": 401, "FORBIDDEN": 403, "TOO_MANY_REQUESTS": 429}.get(code, answer.status)
        if status == 404 and code != "NOT_FOUND":
            raise NoAnswer("Paperspace answered 404 without its own NOT_FOUND: no such address.")
        if status >= 300:
            raise self.edge.error(status, asked, said)
        return self.edge.object(answer, asked, said)


def _machine(one: _Found) -> Machine:
    state: State = "gone" if one.dtDeleted else _STATES.get(one.state, "unknown")
    host = host_of(one.publicIp)
    notes = []
    if one.publicIpType == "static":
        notes.append("Its static address is billed by itself, also after it is gone.")
    if one.publicIpType == "none":
        notes.append("It has no public address.")
    if one.autoShutdownEnabled and one.autoShutdownTimeout:
        notes.append(f"Paperspace turns it off {one.autoShutdownTimeout} h after its start.")
    gpus = one.accelerators or []
    return Machine(
        id=one.id,
        name=one.name or "",
        state=state,
        created_at=one.dtCreated,
        volumes=(f"address {host}",) if host and one.publicIpType == "static" else (),
        said=one.state,
        endpoint=Endpoint(host, 22, "paperspace") if host and state not in ("stopped", "gone") else None,
        price=_price(one, state),
        gpu=", ".join(f"{gpu.count or 1} × {gpu.name}" for gpu in gpus) or (one.machineType or ""),
        since=epoch(one.dtCreated),
        notes=tuple(notes),
    )


def _price(one: _Found, state: State) -> Price | None:
    """Its rates are bare numbers: usage is an hour's USD; the unit of storage is not documented."""
    if state == "gone":
        return Price(0.0, "USD", "Paperspace says it is deleted")
    if state == "stopped":
        return Price(None, "USD", "storage, snapshots and address bill on; the API names no unit for them")
    return Price(positive(one.usageRate), "USD", "Paperspace's usage rate, taken as an hour's")

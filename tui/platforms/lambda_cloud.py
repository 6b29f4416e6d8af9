"""Lambda Cloud (spec v1.10.0, https://docs.lambda.ai/api/cloud/spec.json).

There is no stop: what ends the bill ends the machine. A shutdown from inside leaves it billing. One request
a second, and one launch in twelve.
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
    VerbRefused,
    Wish,
)
from tui.platforms.http import Answer, Asked, Edge, Vendor, bearer, machine_id
from tui.platforms.told import (
    OR_NONE,
    Id,
    MaybeInt,
    MaybeNames,
    MaybeText,
    Told,
    each,
    host_of,
    names_more,
    parse,
)

VENDOR = Vendor(
    id="lambda",
    title="Lambda",
    base_url="https://cloud.lambda.ai",
    header=bearer,
    every_s={"launch": 12.0, "*": 1.1},
)
_STATES: Mapping[str, State] = {
    "booting": "starting",
    "active": "running",
    "unhealthy": "running",  # unreachable for Lambda, and billed
    "preempted": "running",  # new and not explained: whether it bills is not known, so it counts as there
    "terminating": "destroying",
    "terminated": "gone",
}
_NO_STOP = "Lambda has no stop: only termination ends the bill, and it takes the disk with it."


class _Specs(Told):
    gpus: MaybeInt = None
    storage_gib: MaybeInt = None
    memory_gib: MaybeInt = None
    vcpus: MaybeInt = None


class _Type(Told):
    name: str
    gpu_description: MaybeText = None
    price_cents_per_hour: MaybeInt = None
    specs: Annotated[_Specs | None, OR_NONE] = None


class _Action(Told):
    available: bool
    reason_code: MaybeText = None
    reason_description: MaybeText = None


class _Actions(Told):
    terminate: Annotated[_Action | None, OR_NONE] = None


class _Instance(Told):
    id: Id
    status: str
    name: MaybeText = None
    ip: MaybeText = None
    file_system_names: MaybeNames = None
    instance_type: Annotated[_Type | None, OR_NONE] = None
    actions: Annotated[_Actions | None, OR_NONE] = None


class _List(Told):
    data: list[Any]


class _One(Told):
    data: _Instance


class _Terminated(Told):
    terminated_instances: list[Any]


class _Launched(Told):
    instance_ids: list[Id]


class _Region(Told):
    name: str


class _Item(Told):
    instance_type: _Type
    regions_with_capacity_available: list[_Region]


@dataclass(frozen=True, slots=True)
class Lambda:
    """One account at Lambda. The API tells nobody's name, so the account is the key itself."""

    edge: Edge
    platform: str = VENDOR.id
    lists_all: bool = True

    async def describe(self, victim: Victim) -> Machine:
        path = f"/api/v1/instances/{machine_id(victim, VENDOR.title)}"
        told = self._object(await self.edge.read(path), "machine")
        return _machine(parse(_One, told, VENDOR.title).data)

    async def list_all(self) -> Listing:
        told = self._object(await self.edge.read("/api/v1/instances"), "list")
        instances, bad = each(_Instance, parse(_List, told, VENDOR.title).data)
        return Listing(
            tuple(map(_machine, instances)),
            complete=not bad and not names_more(told),
            account=self.edge.account,
            account_told=False,
            volumes=await self._filesystems(),
        )

    async def _filesystems(self) -> tuple[str, ...] | None:
        """Names of file systems, which outlive every machine and bill on."""
        try:
            told = self._object(await self.edge.read("/api/v1/file-systems"), "list")
            found = parse(_List, told, VENDOR.title).data
        except ControlError:
            return None
        return tuple(str(one["name"]) for one in found if isinstance(one, dict) and one.get("name"))

    async def stop(self, victim: Victim) -> str:
        raise VerbRefused(_NO_STOP, do="`rgt down` ends it once everything is safe.", code="no-stop")

    async def start(self, victim: Victim) -> str:
        raise VerbRefused(f"{_NO_STOP} So nothing can be started again.", code="no-start")

    async def destroy(self, victim: Victim) -> str:
        """Terminate, sent once: while it terminates a second one is answered with ``global/unknown``."""
        machine_id(victim, VENDOR.title)
        body = {"instance_ids": [victim.instance_id]}
        answer = await self.edge.send("POST", "/api/v1/instance-operations/terminate", body)
        if _code(answer) == "global/unknown":
            raise NoAnswer(f"Lambda answered {answer.status}, global/unknown: it may be ending already.")
        told = self._object(answer, "verb")
        named = parse(_Terminated, told.get("data"), VENDOR.title).terminated_instances
        if not any(isinstance(one, dict) and one.get("id") == victim.instance_id for one in named):
            raise NoAnswer("Lambda's answer does not name this instance among those that it terminates.")
        return f"{answer.status}, terminating"

    async def balance(self) -> Balance:
        return Balance(None, "USD", why="Lambda has no question for it; it bills a card at the week's end")

    async def offers(self) -> tuple[Offer, ...]:
        told = self._object(await self.edge.read("/api/v1/instance-types"), "list")
        found = told.get("data")
        items, _ = each(_Item, list(found.values()) if isinstance(found, dict) else [])
        offers = [_offer(item) for item in items]
        return tuple(sorted(offers, key=lambda o: (not o.available, o.price.per_hour or float("inf"))))

    def request(self, wish: Wish) -> CreateRequest:
        region = wish.region or next(iter(wish.offer.regions), None)
        if not region or not wish.ssh_key:
            raise Failure(
                "Lambda wants a region with capacity and the name of exactly one SSH key of the account.",
                do="Add a key at cloud.lambda.ai, then name it; try again while a region has capacity.",
                code="wish-incomplete",
            )
        body: dict[str, Any] = {
            "region_name": region,
            "instance_type_name": wish.offer.id,
            "ssh_key_names": [wish.ssh_key],
            "name": wish.name[:64],
        }
        if wish.image:
            body["image"] = {"family": wish.image}
        return CreateRequest(VENDOR.id, "POST", "/api/v1/instance-operations/launch", body | dict(wish.more))

    async def create(self, request: CreateRequest) -> Created:
        answer = await self.edge.send(request.method, request.path, dict(request.body), kind="launch")
        told = self._object(answer, "verb")
        ids = parse(_Launched, told.get("data"), VENDOR.title).instance_ids
        return Created(ids[0] if ids else None, str(answer.status))

    # --- answers --------------------------------------------------------------------------------------------

    def _object(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        """A good answer. What failed is told by its code; its status alone does not say."""
        code = _code(answer)
        if code == "global/object-does-not-exist" and asked != "list":
            raise self.edge.error(404, asked, _said(answer))
        if answer.status == 404 and code != "global/object-does-not-exist":
            raise NoAnswer(f"Lambda answered 404 ({self.edge.words(code) or 'no code'}): no such address.")
        if code == "global/invalid-api-key":
            raise self.edge.error(401, asked, _said(answer))
        if code.startswith(("provider/", "global/internal-error", "global/unknown")):
            raise NoAnswer(
                f"Lambda answered {answer.status}: {self.edge.words(_said(answer))}".rstrip(".") + "."
            )
        if code and answer.status < 300:
            raise self.edge.error(500, asked, _said(answer))
        return self.edge.object(answer, asked, _said(answer))


def _error(answer: Answer) -> Mapping[str, Any]:
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    return error if isinstance(error, dict) else {}


def _code(answer: Answer) -> str:
    return str(_error(answer).get("code") or "")


def _said(answer: Answer) -> str:
    error = _error(answer)
    return ": ".join(str(error[key]) for key in ("code", "message", "suggestion") if error.get(key))


def _machine(one: _Instance) -> Machine:
    state = _STATES.get(one.status, "unknown")
    kind = one.instance_type
    cents = kind.price_cents_per_hour if kind else None
    notes = []
    terminate = one.actions.terminate if one.actions else None
    if terminate is not None and not terminate.available and state != "destroying":
        why = terminate.reason_code or terminate.reason_description or "no reason told"
        notes.append(f"It can't be terminated now: {why}.")
    if one.status == "unhealthy":
        notes.append("Lambda can't reach it, and bills it.")
    if one.status == "preempted":
        notes.append("It was taken away. Whether it bills is not told, so it counts as there.")
    host = host_of(one.ip)
    rate = Price(cents / 100 if cents else None, "USD", "Lambda's list price of its type")
    return Machine(
        id=one.id,
        name=one.name or "",
        state=state,
        volumes=tuple(one.file_system_names or ()),
        said=one.status,
        endpoint=Endpoint(host, 22, "ubuntu") if host else None,
        price=Price(0.0, "USD", "Lambda says it is terminated") if state == "gone" else rate,
        gpu=kind.gpu_description or kind.name if kind else "",
        notes=tuple(notes),
    )


def _offer(item: _Item) -> Offer:
    kind, specs = item.instance_type, item.instance_type.specs or _Specs()
    regions = tuple(region.name for region in item.regions_with_capacity_available)
    facts = [f"{specs.vcpus} vCPU"] if specs.vcpus else []
    if specs.memory_gib:
        facts.append(f"{specs.memory_gib} GiB memory")
    cents = kind.price_cents_per_hour
    return Offer(
        id=kind.name,
        gpu=kind.gpu_description or kind.name,
        gpus=specs.gpus or 1,
        price=Price(cents / 100 if cents else None, "USD", "Lambda's list price"),
        regions=regions,
        available=bool(regions),
        disk_gb=specs.storage_gib,
        facts=tuple(facts),
    )

"""RunPod, REST v2 (spec 2.0.0, https://api.runpod.io/v2/openapi.json, read 2026-08).

Version 1 is retired since 2026-11-15: its 410 must never be read as "gone". A stopped pod keeps its volume
disk, which `cost` leaves out. Only the balance still comes from GraphQL, which retires early in 2027.
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
    MaybePort,
    MaybeText,
    Told,
    each,
    epoch,
    host_of,
    names_more,
    parse,
    positive,
    user_of,
)

VENDOR = Vendor(
    id="runpod",
    title="RunPod",
    base_url="https://api.runpod.io",
    header=bearer,
    every_s={"*": 1.0},  # the example policy of the spec: 60 a minute, 3000 an hour
)
STOPPED_GB_MONTH = 0.20
"""USD for the volume disk of a stopped pod (docs.runpod.io/pods/pricing, read 2026-08)."""
HOURS_A_MONTH = 730.0

_STATES: Mapping[str, State] = {
    "PROVISIONING": "starting",
    "STARTING": "starting",
    "RUNNING": "running",
    "ERROR": "running",  # the container is broken, the pod is there and may bill
    "EXITED": "stopped",
    "TERMINATED": "gone",
}


class _SshEnd(Told):
    host: str
    port: MaybePort = None
    username: MaybeText = None


class _Ssh(Told):
    proxy: Annotated[_SshEnd | None, OR_NONE] = None
    direct: Annotated[_SshEnd | None, OR_NONE] = None


class _Gpu(Told):
    id: str
    count: MaybeInt = 1


class _Pod(Told):
    id: Id
    status: str
    name: MaybeText = None
    createdAt: MaybeText = None  # noqa: N815 - as the platform spells it
    startedAt: MaybeText = None  # noqa: N815
    cost: MaybeAmount = None
    locked: MaybeBool = None
    mounts: Annotated[dict[str, Any] | None, OR_NONE] = None
    ssh: Annotated[_Ssh | None, OR_NONE] = None
    gpu: Annotated[_Gpu | None, OR_NONE] = None
    cluster: Annotated[dict[str, Any] | None, OR_NONE] = None


class _Pods(Told):
    pods: list[Any]


class _Volumes(Told):
    networkVolumes: list[dict[str, Any]]  # noqa: N815


class _GpuPrice(Told):
    secure: MaybeAmount = None
    community: MaybeAmount = None


class _GpuCount(Told):
    """Of one pod, by cloud."""

    secure: MaybeAmount = None
    community: MaybeAmount = None


class _GpuType(Told):
    id: str
    name: MaybeText = None
    memory: MaybeAmount = None
    secure: MaybeBool = None
    community: MaybeBool = None
    price: _GpuPrice
    maxCount: _GpuCount = _GpuCount()  # noqa: N815
    availability: MaybeText = None
    dataCenters: Annotated[list[dict[str, Any]] | None, OR_NONE] = None  # noqa: N815


class _GpuTypes(Told):
    gpus: list[Any]


class _Myself(Told):
    clientBalance: MaybeAmount = None  # noqa: N815
    currentSpendPerHr: MaybeAmount = None  # noqa: N815


@dataclass(frozen=True, slots=True)
class RunPod:
    """One account at RunPod. The API tells nobody's name, so the account is the key itself."""

    edge: Edge
    platform: str = VENDOR.id
    lists_all: bool = True

    async def describe(self, victim: Victim) -> Machine:
        path = f"/v2/pods/{machine_id(victim, VENDOR.title)}"
        told = self._object(await self.edge.read(path), "machine")
        return _machine(parse(_Pod, told, VENDOR.title))

    async def list_all(self) -> Listing:
        told = self._object(await self.edge.read("/v2/pods", {"includeClusterPods": "true"}), "list")
        pods, bad = each(_Pod, parse(_Pods, told, VENDOR.title).pods)
        return Listing(
            tuple(map(_machine, pods)),
            complete=not bad and not names_more(told),
            account=self.edge.account,
            account_told=False,
            volumes=await self._volumes(),
        )

    async def _volumes(self) -> tuple[str, ...] | None:
        """Network volumes outlive every pod and bill on; None where nobody tells."""
        try:
            told = self._object(await self.edge.read("/v2/network-volumes"), "list")
            found = parse(_Volumes, told, VENDOR.title).networkVolumes
        except ControlError:
            return None
        return tuple(str(one["id"]) for one in found if one.get("id"))

    async def stop(self, victim: Victim) -> str:
        return await self._action(victim, "stop")

    async def start(self, victim: Victim) -> str:
        return await self._action(victim, "start")

    async def _action(self, victim: Victim, action: str) -> str:
        path = f"/v2/pods/{machine_id(victim, VENDOR.title)}/action"
        answer = await self.edge.send("POST", path, {"action": action})
        if not answer.fine:
            self._fail(answer, "verb")
        now = answer.body.get("status") if isinstance(answer.body, dict) else None
        return f"{answer.status}{f', {self.edge.words(now)}' if now else ''}"

    async def destroy(self, victim: Victim) -> str:
        answer = await self.edge.delete(f"/v2/pods/{machine_id(victim, VENDOR.title)}")
        if not answer.fine:
            self._fail(answer, "verb")
        return str(answer.status)

    async def balance(self) -> Balance:
        question = {"query": "query { myself { clientBalance currentSpendPerHr } }"}
        try:
            told = self._object(await self.edge.read_by_post("/graphql", question), "list")
            if told.get("errors"):
                raise NoAnswer("RunPod's GraphQL answers with errors.")
            data = told.get("data")
            myself = parse(_Myself, data.get("myself") if isinstance(data, dict) else None, VENDOR.title)
        except ControlError as error:
            return Balance(None, "USD", why=error.what)
        return Balance(myself.clientBalance, "USD", myself.currentSpendPerHr, "RunPod's account")

    async def offers(self) -> tuple[Offer, ...]:
        params = {"include": "AVAILABILITY", "product": "POD"}
        told = self._object(await self.edge.read("/v2/catalog/gpus", params), "list")
        types, _ = each(_GpuType, parse(_GpuTypes, told, VENDOR.title).gpus)
        found = [offer for one in types for offer in _offers(one)]
        return tuple(sorted(found, key=lambda o: (o.price.per_hour is None, o.price.per_hour or 0.0)))

    def request(self, wish: Wish) -> CreateRequest:
        if not wish.image and "templateId" not in wish.more:
            raise Failure(
                "RunPod wants an image or a template.",
                do="Name one, such as runpod/pytorch with its tag, from docs.runpod.io.",
                code="wish-incomplete",
            )
        gpu, _, cloud = wish.offer.id.rpartition("@")
        body: dict[str, Any] = {
            "name": wish.name,
            "gpu": {"id": gpu, "count": wish.gpus or wish.offer.gpus},
            "cloud": cloud,
            "ports": ["22/tcp"],  # without it SSH goes through the proxy, which copies no files
            "startSsh": True,
        }
        if wish.image:
            body["image"] = wish.image
        if wish.disk_gb:
            body["disk"] = wish.disk_gb
        if wish.region:
            body["dataCenterIds"] = [wish.region]
        return CreateRequest(VENDOR.id, "POST", "/v2/pods", body | dict(wish.more))

    async def create(self, request: CreateRequest) -> Created:
        answer = await self.edge.send(request.method, request.path, dict(request.body))
        told = self._object(answer, "verb")
        pod = parse(_Pod, told, VENDOR.title)
        return Created(pod.id, f"{answer.status}, {self.edge.words(pod.status)}")

    # --- answers --------------------------------------------------------------------------------------------

    def _object(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        return self.edge.object(answer, asked, _detail(answer))

    def _fail(self, answer: Answer, asked: Asked) -> None:
        self.edge.fail(answer, asked, _detail(answer))


def _detail(answer: Answer) -> str:
    """What an RFC 9457 problem says; `detail` is the part about this request."""
    body = answer.body if isinstance(answer.body, dict) else {}
    errors = body.get("errors")
    more = "; ".join(map(str, errors[:3])) if isinstance(errors, list) else ""
    return ": ".join(str(part) for part in (body.get("detail") or body.get("title") or "", more) if part)


def _machine(pod: _Pod) -> Machine:
    state = _STATES.get(pod.status, "unknown")
    notes = []
    if pod.status == "ERROR":
        notes.append("Its container is in an error that it does not get out of.")
    if pod.locked:
        notes.append("It is locked: a stop is refused until it is unlocked in the console.")
    if pod.cluster:
        notes.append("It belongs to a cluster and ends only with that.")
    if state == "stopped":
        notes.append("Its GPU may be taken by somebody else: then it starts without one.")
    return Machine(
        id=pod.id,
        name=pod.name or "",
        state=state,
        created_at=pod.createdAt,
        volumes=_volumes(pod.mounts or {}),
        said=pod.status,
        endpoint=_endpoint(pod.ssh),
        price=_price(pod, state),
        gpu=f"{pod.gpu.count or 1} × {pod.gpu.id}" if pod.gpu else "",
        since=epoch(pod.startedAt),  # its last start: what it cost before is not told here
        notes=tuple(notes),
    )


def _volumes(mounts: Mapping[str, Any]) -> tuple[str, ...]:
    network = mounts.get("network")
    found = network if isinstance(network, list) else []
    return tuple(str(one["volumeId"]) for one in found if isinstance(one, dict) and one.get("volumeId"))


def _endpoint(ssh: _Ssh | None) -> Endpoint | None:
    """The pod's own sshd where it is published; else the proxy, which gives a shell and nothing else."""
    for end, proxied in ((ssh.direct, False), (ssh.proxy, True)) if ssh else ():
        host = host_of(end.host) if end else None
        if end is not None and host is not None and end.port is not None:
            return Endpoint(host, end.port, user_of(end.username) or "root", proxied=proxied)
    return None


def _price(pod: _Pod, state: State) -> Price | None:
    if state == "stopped":
        persistent = (pod.mounts or {}).get("persistent")
        size = persistent.get("size") if isinstance(persistent, dict) else None
        if persistent is not None and not isinstance(size, int | float):
            return Price(None, "USD", "the size of its volume disk is not told")
        rate = float(size or 0.0) * STOPPED_GB_MONTH / HOURS_A_MONTH
        return Price(rate, "USD", f"volume disk of a stopped pod, {STOPPED_GB_MONTH:.2f} USD a GB and month")
    if state == "gone":
        return Price(0.0, "USD", "RunPod says it is terminated")
    return Price(positive(pod.cost), "USD", "RunPod's own figure for now")


def _offers(gpu: _GpuType) -> list[Offer]:
    where = [one for one in gpu.dataCenters or [] if one.get("availability") not in (None, "NONE")]
    found = []
    for cloud, there, price, most in (
        ("SECURE", gpu.secure, gpu.price.secure, gpu.maxCount.secure),
        ("COMMUNITY", gpu.community, gpu.price.community, gpu.maxCount.community),
    ):
        if there:
            found.append(
                Offer(
                    id=f"{gpu.id}@{cloud}",
                    gpu=gpu.name or gpu.id,
                    gpus=1,
                    price=Price(positive(price), "USD", "RunPod's catalogue, for one GPU"),
                    regions=tuple(str(one["id"]) for one in where if one.get("id")),
                    available=None if gpu.availability is None else gpu.availability != "NONE",
                    multiplied=True,
                    most=None if most is None else int(most),
                    gpu_memory_gb=gpu.memory,
                    facts=(f"{cloud.lower()} cloud",)
                    + ((f"stock {gpu.availability.lower()}",) if gpu.availability else ()),
                )
            )
    return found

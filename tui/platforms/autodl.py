"""AutoDL, 容器实例 Pro (developer API, read 2026-08). Ordinary instances have no API: see `pro_id`.

Every answer is a 200 with a code inside. `power_off` of a box that still starts is accepted and ignored, and
`release` wants it shut down first. Address, port and password may change with each power cycle.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
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
    Offer,
    Price,
    State,
    VerbRefused,
    Wish,
)
from tui.platforms.http import Answer, Asked, Edge, Vendor, machine_id
from tui.platforms.told import (
    OR_NONE,
    Id,
    MaybeAmount,
    MaybeInt,
    MaybePort,
    MaybeText,
    Told,
    each,
    epoch,
    host_of,
    parse,
    user_of,
)

VENDOR = Vendor(
    id="autodl",
    title="AutoDL",
    base_url="https://api.autodl.com",
    header=lambda token: {"Authorization": token},  # raw, without Bearer
    every_s={"*": 0.5},  # undocumented
)
_ROOT = "/api/v1/dev"
MOST_PAGES = 40
_STATES: Mapping[str, State] = {
    "creating": "starting",
    "starting": "starting",
    "running": "running",
    "shutting_down": "stopping",
    "shutdown": "stopped",
    "shutdown_by_starting_error": "stopped",
    "releasing": "destroying",
    "released": "gone",
    "failed": "running",  # it did not start; whether it bills is not known, so it counts as there
}
_CODES: Mapping[str, int] = {
    "RecordNotFoundError": 404,
    "AuthorizeFailed": 401,
    "PermissionDenied": 403,
    "TORealName": 403,
    "RequestParameterIsWrong": 400,
    "BadRequest": 400,
}
"""What the codes that were seen amount to; there is no list of them. Every other one is a 5xx."""


class _When(Told):
    """Go's NullTime: only `Valid` says whether there is a date."""

    Time: MaybeText = None
    Valid: bool

    @property
    def at(self) -> float | None:
        return epoch(self.Time) if self.Valid else None


MaybeWhen = Annotated[_When | None, OR_NONE]


class _Row(Told):
    uuid: Id
    status: str
    name: MaybeText = None
    gpu_spec_uuid: MaybeText = None
    req_gpu_amount: MaybeInt = None
    created_at: MaybeText = None
    started_at: MaybeWhen = None
    stopped_at: MaybeWhen = None
    expired_at: MaybeWhen = None
    timed_shutdown_at: MaybeWhen = None


class _Page(Told):
    list: list[Any]
    page_index: int
    max_page: int
    result_total: MaybeInt = None


class _Snapshot(Told):
    payg_price: MaybeInt = None
    snapshot_gpu_alias_name: MaybeText = None
    ssh_command: MaybeText = None
    proxy_host: MaybeText = None
    ssh_port: MaybePort = None


class _Wallet(Told):
    assets: int
    voucher_balance: MaybeAmount = None


PRO_ID = r"pro-[0-9a-zA-Z]+"
"""Ids of the product line that has an API."""


def pro_id(instance_id: str | None) -> bool:
    """Whether the id is of the product line that has an API."""
    return bool(re.fullmatch(PRO_ID, instance_id or ""))


@dataclass(frozen=True, slots=True)
class AutoDL:
    """One account at AutoDL. The API tells nobody's name, so the account is the token itself."""

    edge: Edge
    platform: str = VENDOR.id
    lists_all: bool = False

    async def describe(self, victim: Victim) -> Machine:
        said = await self._status(victim)
        state = _STATES.get(said, "unknown")
        try:
            told = await self._about(victim, "snapshot")
            more = parse(_Snapshot, told, VENDOR.title)
        except ControlError:  # the state is what matters, price and address are extras
            more = _Snapshot()
        return Machine(
            id=victim.instance_id or "",
            name="",
            state=state,
            said=said,
            endpoint=_endpoint(more) if state == "running" else None,
            price=_price(more, state),
            gpu=more.snapshot_gpu_alias_name or "",
        )

    async def _status(self, victim: Victim) -> str:
        said = await self._about(victim, "status")
        if not isinstance(said, str):
            raise NoAnswer("AutoDL's answer makes no sense: the state is no word.")
        return said

    async def _about(self, victim: Victim, what: str) -> Any:
        machine_id(victim, VENDOR.title)
        path, uuid = f"{_ROOT}/instance/pro/{what}", {"instance_uuid": victim.instance_id or ""}
        answer = await self.edge.read(path, uuid)
        if isinstance(answer.body, dict) and answer.body.get("code") == "RequestParameterIsWrong":
            answer = await self.edge.read(path, body=uuid)  # as the docs show it; live, the query works
        return self._data(answer, "machine")

    async def list_all(self) -> Listing:
        found: dict[str, Machine] = {}
        complete = False
        for index in range(1, MOST_PAGES + 1):
            body = {"page_index": index, "page_size": 50}
            answer = await self.edge.read_by_post(f"{_ROOT}/instance/pro/list", body)
            page = parse(_Page, self._data(answer, "list"), VENDOR.title)
            rows, bad = each(_Row, page.list)
            found |= {row.uuid: _machine(row) for row in rows}
            if bad:
                break
            if index >= page.max_page:
                complete = page.page_index == index and (
                    page.result_total is None or len(found) >= page.result_total
                )
                break
        return Listing(tuple(found.values()), complete, account=self.edge.account, account_told=False)

    async def stop(self, victim: Victim) -> str:
        """Shut down. While it starts AutoDL accepts this and goes on starting, so then it is not sent."""
        said = await self._status(victim)
        if _STATES.get(said) == "starting":
            raise VerbRefused(
                f"{victim.name} is {said}: AutoDL accepts a power_off now and ignores it.",
                means="Nothing was sent.",
                do="Ask again once it is running.",
                code="still-starting",
            )
        if _STATES.get(said) == "stopping":
            return "it is shutting down already; nothing was sent"
        return await self._verb(victim, "power_off")

    async def start(self, victim: Victim) -> str:
        return await self._verb(victim, "power_on", {"payload": "gpu"})

    async def destroy(self, victim: Victim) -> str:
        said = await self._status(victim)
        if _STATES.get(said, "unknown") not in ("stopped", "destroying", "gone"):
            raise VerbRefused(
                f"{victim.name} is {self.edge.words(said)}: AutoDL releases only what is shut down.",
                means="Nothing was sent.",
                do=f"`rgt stop {victim.name}` first.",
                code="not-shut-down",
            )
        return await self._verb(victim, "release")

    async def _verb(self, victim: Victim, verb: str, more: Mapping[str, str] | None = None) -> str:
        body = {"instance_uuid": victim.instance_id or ""} | dict(more or {})
        answer = await self.edge.send("POST", f"{_ROOT}/instance/pro/{verb}", body)
        self._data(answer, "verb")
        return "Success"

    async def balance(self) -> Balance:
        try:
            told = self._data(await self.edge.read_by_post(f"{_ROOT}/wallet/balance", {}), "list")
            wallet = parse(_Wallet, told, VENDOR.title)
        except ControlError as error:
            return Balance(None, "CNY", why=error.what)
        voucher = (
            f", vouchers of {wallet.voucher_balance / 1000:.2f} besides" if wallet.voucher_balance else ""
        )
        return Balance(wallet.assets / 1000, "CNY", why=f"AutoDL's wallet{voucher}")

    async def offers(self) -> tuple[Offer, ...]:
        raise NoAnswer("AutoDL's API lists neither prices nor stock of Pro instances: its console does.")

    def request(self, wish: Wish) -> CreateRequest:
        if not wish.image or "cuda_v_from" not in wish.more:
            raise Failure(
                "AutoDL wants the id of an image and the least CUDA version.",
                do="Name the image, and cuda_v_from such as 118.",
                code="wish-incomplete",
            )
        body: dict[str, Any] = {
            "gpu_spec_uuid": wish.offer.id,
            "req_gpu_amount": wish.gpus or wish.offer.gpus,
            "expand_system_disk_by_gb": wish.disk_gb or 0,
            "image_uuid": wish.image,
            "instance_name": wish.name,
        }
        if wish.region:
            body["data_center_list"] = [wish.region]
        return CreateRequest(VENDOR.id, "POST", f"{_ROOT}/instance/pro/create", body | dict(wish.more))

    async def create(self, request: CreateRequest) -> Created:
        answer = await self.edge.send(request.method, request.path, dict(request.body))
        made = self._data(answer, "verb")
        return Created(made if isinstance(made, str) and made else None, "Success; it boots at once")

    # --- answers --------------------------------------------------------------------------------------------

    def _data(self, answer: Answer, asked: Asked) -> Any:
        """What an envelope carries. Its code is the truth; the status is nearly always 200."""
        body = answer.body if isinstance(answer.body, dict) else {}
        code = str(body.get("code") or "")
        said = ": ".join(str(body[key]) for key in ("code", "msg") if body.get(key))
        if answer.fine and code == "Success" and "data" in body:
            return body["data"]
        if not answer.fine and not (code and answer.status < 500):
            if answer.status == 404:
                raise NoAnswer("AutoDL answered 404 without a code of its own: no such address.")
            raise self.edge.error(answer.status, asked, said or answer.words)
        if not code or code == "Success":
            raise NoAnswer("AutoDL's answer makes no sense: it has no envelope.")
        error = self.edge.error(_CODES.get(code, 500), asked, said)
        if isinstance(error, NoSuchMachine) and asked == "verb":
            raise NoSuchMachine(error.what, means=error.means, code="no-such-machine")
        raise error


def _machine(row: _Row) -> Machine:
    state = _STATES.get(row.status, "unknown")
    gpu = f"{row.req_gpu_amount or 1} × {row.gpu_spec_uuid}" if row.gpu_spec_uuid else ""
    off_at = row.timed_shutdown_at.at if row.timed_shutdown_at else None
    return Machine(
        id=row.uuid,
        name=row.name or "",
        state=state,
        created_at=row.created_at,
        said=row.status,
        gpu=gpu,
        since=row.started_at.at if row.started_at else None,
        stopped_at=row.stopped_at.at if row.stopped_at and state == "stopped" else None,
        ends_at=row.expired_at.at if row.expired_at else None,
        notes=("AutoDL shuts it down at a set time.",) if off_at and state == "running" else (),
    )


def _endpoint(told: _Snapshot) -> Endpoint | None:
    host, port, user = host_of(told.proxy_host), told.ssh_port, "root"
    if host is None and told.ssh_command:
        host, port, user = _from_command(told.ssh_command)
    return Endpoint(host, port, user) if host and port else None


def _from_command(command: str) -> tuple[str | None, int | None, str]:
    """Host, port and user of ``ssh -p PORT USER@HOST``; nothing else of it is used."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None, None, "root"
    port = next((w for o, w in pairwise(words) if o == "-p"), "22")
    user, _, host = next((w for w in words if "@" in w), "").partition("@")
    fine = port.isascii() and port.isdigit() and 0 < int(port) < 65536
    return host_of(host), int(port) if fine else None, user_of(user) or "root"


def _price(told: _Snapshot, state: State) -> Price | None:
    if state == "stopped":
        return Price(None, "CNY", "an extra data disk bills on while it is off; its price is not told")
    if state == "gone":
        return Price(0.0, "CNY", "AutoDL says it is released")
    price = told.payg_price
    return Price(price / 1000 if price and price > 0 else None, "CNY", "AutoDL's own figure")

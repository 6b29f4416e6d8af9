"""The simulated provider of the embedded fleet: an HTTP API on loopback whose verbs really happen.

It is asked as a vendor is: with a token, one machine or all of them, and its answers lag behind what it does.

    GET  /account                     {"id"}
    GET  /machines                    {"machines": […], "complete": true}
    GET  /machines/ID                 {"id", "name", "state", "created_at"}; 404 once it is deleted
    GET  /machines/ID/price           {"per_hour", "currency"}; of the disk alone while it is stopped
    POST /machines/ID/stop            202, ends its processes and keeps its disk
    POST /machines/ID/start           202, takes logins again
    POST /machines/ID/destroy         202, ends its processes and deletes its disk
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

State = Literal["running", "stopping", "stopped", "starting", "destroying", "gone"]
Answer = tuple[int, Mapping[str, object]]
Deed = Callable[[], Awaitable[None]]

LAG_S = 1.5
"""How long a verb takes, and after it, how long nothing shows yet."""

DISK_PER_HOUR = 0.01
_HEAD_BYTES = 16 << 10
_REQUEST_S = 5.0
_WORDS = {200: "OK", 202: "Accepted", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
          409: "Conflict", 500: "Internal Server Error"}  # fmt: skip


@dataclass(slots=True)
class Rental:
    """One machine of the account. `halt`, `boot` and `erase` carry the verbs out."""

    id: str
    name: str
    created_at: str
    price: float
    currency: str
    halt: Deed
    boot: Deed
    erase: Deed
    state: State = "running"
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    def told(self) -> Mapping[str, object]:
        return {"id": self.id, "name": self.name, "state": self.state, "created_at": self.created_at}


_VERBS: Mapping[str, tuple[State, State, tuple[State, ...]]] = {
    "stop": ("stopping", "stopped", ("running",)),
    "start": ("starting", "running", ("stopped",)),
    "destroy": ("destroying", "gone", ("running", "stopping", "stopped", "starting")),
}
"""The state on the way, the state at the end, and the states a verb is taken in."""


class Provider:
    """The control plane of one demo.

    Args:
        lag_s: seconds from a verb to its deed, and once more until its state shows.
    """

    def __init__(self, rentals: Iterable[Rental], *, lag_s: float = LAG_S) -> None:
        self._rentals = {one.id: one for one in rentals}
        self._lag_s = lag_s
        self._token = secrets.token_urlsafe(32)
        self._account = f"demo-{secrets.token_hex(3)}"
        self._server: asyncio.Server | None = None
        self._deeds: set[asyncio.Task[None]] = set()

    @property
    def account(self) -> str:
        return self._account

    async def start(self, handed_over: Path) -> None:
        """Listen on a free loopback port; address and token go into a file that its owner alone can read."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_HEAD_BYTES)
        port = self._server.sockets[0].getsockname()[1]
        access = {"url": f"http://127.0.0.1:{port}", "token": self._token}
        fd = os.open(handed_over, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump(access, file)

    async def close(self) -> None:
        """Stop listening. What was begun and not done yet is left undone."""
        if self._server is not None:
            self._server.close()
        for deed in self._deeds:
            deed.cancel()
        if self._deeds:
            await asyncio.wait(self._deeds, timeout=5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
            code, told = self.answer(*_request(head))
            body = json.dumps(told).encode()
            writer.write(
                f"HTTP/1.1 {code} {_WORDS[code]}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            async with asyncio.timeout(_REQUEST_S):
                await writer.drain()
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # no request, or nobody who waits for its answer
        finally:
            with contextlib.suppress(OSError):
                writer.close()

    def answer(self, method: str, path: str, bearer: str) -> Answer:
        """What is answered to one request; a verb that is taken begins."""
        if not hmac.compare_digest(bearer.encode(), f"Bearer {self._token}".encode()):
            return 401, {"error": "no such token"}
        match path.strip("/").split("/"):
            case ["account"] if method == "GET":
                return 200, {"id": self._account}
            case ["machines"] if method == "GET":
                return 200, {"machines": [one.told() for one in self._rentals.values()], "complete": True}
            case ["machines", id_, *rest]:
                rental = self._rentals.get(id_)
                return (
                    (404, {"error": "no such machine"}) if rental is None else self._one(method, rental, rest)
                )
            case _:
                return 404, {"error": "no such path"}

    def _one(self, method: str, rental: Rental, rest: list[str]) -> Answer:
        match method, rest:
            case "GET", []:
                return 200, rental.told()
            case "GET", ["price"]:
                on = rental.state in ("running", "starting", "stopping")
                return 200, {"per_hour": rental.price if on else DISK_PER_HOUR, "currency": rental.currency}
            case "POST", [verb] if verb in _VERBS:
                return self._verb(verb, rental)
            case _:
                return 405, {"error": "not offered"}

    def _verb(self, verb: str, rental: Rental) -> Answer:
        on_the_way, end, taken_in = _VERBS[verb]
        if rental.state == on_the_way:
            return 202, {"state": on_the_way}
        if rental.state not in taken_in:
            return 409, {"error": f"the machine is {rental.state}"}
        rental.state = on_the_way
        task = asyncio.get_running_loop().create_task(self._carry_out(verb, rental, on_the_way, end))
        self._deeds.add(task)
        task.add_done_callback(self._deeds.discard)
        return 202, {"state": on_the_way}

    async def _carry_out(self, verb: str, rental: Rental, on_the_way: State, end: State) -> None:
        deed = {"stop": rental.halt, "start": rental.boot, "destroy": rental.erase}[verb]
        async with rental._busy:
            await asyncio.sleep(self._lag_s)
            await deed()
            await asyncio.sleep(self._lag_s)
            if rental.state == on_the_way:  # not overtaken by a destroy meanwhile
                rental.state = end
            if end == "gone":
                del self._rentals[rental.id]


def _request(head: bytes) -> tuple[str, str, str]:
    """Method, path and Authorization of a request without a body. Raises ValueError."""
    first, *lines = head.decode("ascii").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    return method, path.partition("?")[0], headers.get("authorization", "")

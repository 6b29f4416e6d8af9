"""The simulated provider of `rgt demo`: a small HTTP API on loopback whose boxes are really deleted."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx

from tui.fleet.paths import Paths
from tui.model.custody import Victim
from tui.model.text import safe
from tui.platforms.control import (
    Listing,
    Machine,
    NoAnswer,
    NoSuchMachine,
    NotAllowed,
    State,
    VerbRefused,
)

PLATFORM = "simulated"
CREDENTIAL = "simulated-provider.json"
"""In the state folder of the demo: address and token, readable by its owner alone."""

CALL_S = 10.0
_MOST_BYTES = 1 << 20
_STATES: Mapping[str, State] = {
    "running": "running",
    "stopping": "stopping",
    "stopped": "stopped",
    "destroying": "destroying",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Where the provider listens, and the token of this run."""

    url: str
    token: str = field(repr=False)


def plane(where: Paths) -> Simulated | str:
    """The demo's provider; in words, why it can't be asked, where this is no running demo."""
    path = where.state / CREDENTIAL
    try:
        access = _access(path)
    except OSError:
        return "belongs to a demo that has ended"
    except ValueError as error:
        return f"can't be asked about: {path.name} {error}"
    return Simulated(access)


def _access(path: Path) -> Access:
    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise ValueError("can be read by others than its owner")
        raw = file.read(4096)
    try:
        told = json.loads(raw)
        return Access(str(told["url"]), str(told["token"]))
    except (ValueError, KeyError, TypeError):
        raise ValueError("holds no address and token") from None


@dataclass(frozen=True, slots=True)
class Simulated:
    """The one account of a demo. Each question is a connection of its own.

    Args:
        call_s: seconds that one question may take, from connecting to the last byte.
    """

    access: Access
    call_s: float = CALL_S
    platform: str = PLATFORM

    async def describe(self, victim: Victim) -> Machine:
        told = await self._asked("GET", f"/machines/{_id(victim)}")
        return _machine(told)

    async def list_all(self) -> Listing:
        told = await self._asked("GET", "/machines")
        account = await self._asked("GET", "/account")
        try:
            machines = tuple(_machine(one) for one in told["machines"])
            return Listing(machines, complete=told["complete"] is True, account=str(account["id"]))
        except (KeyError, TypeError):
            raise NoAnswer("The simulated provider's list makes no sense.") from None

    async def stop(self, victim: Victim) -> str:
        return await self._verb("stop", victim)

    async def destroy(self, victim: Victim) -> str:
        return await self._verb("destroy", victim)

    async def _verb(self, verb: str, victim: Victim) -> str:
        told = await self._asked("POST", f"/machines/{_id(victim)}/{verb}")
        return str(safe(f"202, {told.get('state')}", 80))

    async def _asked(self, method: str, path: str) -> dict[str, Any]:
        """One question and its answer. Raises ControlError."""
        try:
            async with (
                asyncio.timeout(self.call_s),
                httpx.AsyncClient(base_url=self.access.url, trust_env=False, timeout=self.call_s) as client,
                client.stream(
                    method, path, headers={"Authorization": f"Bearer {self.access.token}"}
                ) as answer,
            ):
                body = bytearray()
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise NoAnswer("The simulated provider's answer does not end.")
                return _decoded(answer.status_code, bytes(body), verb=method == "POST")
        except TimeoutError:
            raise NoAnswer(f"The simulated provider did not answer within {self.call_s:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NoAnswer(f"The simulated provider can't be reached ({type(error).__name__}).") from None


def _id(victim: Victim) -> str:
    if not victim.instance_id:
        raise NoAnswer("No id tells the simulated provider which machine is meant.")
    return quote(victim.instance_id, safe="")


def _decoded(status: int, body: bytes, *, verb: bool) -> dict[str, Any]:
    """What an answer says. Raises ControlError."""
    try:
        told = json.loads(body)
    except ValueError:
        told = None
    words = safe(str(told.get("error", "")) if isinstance(told, dict) else "", 200)
    said = f"{status} from the simulated provider{f': {words}' if words else ''}."
    if status in (401, 403):
        raise NotAllowed(said, means="The token is not this demo's.", code="not-allowed")
    if status == 404:
        raise NoSuchMachine(said, code="no-such-machine")
    if status in (400, 405, 409, 422) and verb:
        raise VerbRefused(said, means="It was not carried out.", code="verb-refused")
    if not 200 <= status < 300 or not isinstance(told, dict):
        raise NoAnswer(said)
    return cast("dict[str, Any]", told)


def _machine(told: Mapping[str, Any]) -> Machine:
    try:
        said = str(told["state"])
        return Machine(
            id=str(told["id"]),
            name=str(safe(str(told["name"]), 80)),
            state=_STATES.get(said, "unknown"),
            created_at=str(told["created_at"]),
            said=str(safe(said, 40)),
        )
    except (KeyError, TypeError):
        raise NoAnswer("The simulated provider described no machine.") from None

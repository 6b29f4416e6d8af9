"""The one way out to a vendor's API: deadline, rate limit, bounded retries, decoding, and no secret in words.

Reads and deletions are repeated, everything else is sent once. Redirects are never followed: they would
carry the credential to another host. An answer is judged here by its status; what an envelope inside a 200
says is the vendor's module's to decode.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NoReturn
from urllib.parse import quote, urlsplit

import httpx

from tui.model.custody import Victim
from tui.model.failure import Failure
from tui.platforms.control import (
    ApiRetired,
    ControlError,
    NoAnswer,
    NoSuchMachine,
    NotAllowed,
    VerbRefused,
)
from tui.platforms.limit import Spacing, shared
from tui.platforms.secret import Secret, redacted

MOST_BYTES = 8 << 20
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

Asked = Literal["list", "machine", "verb"]
"""What an answer is about: a list or an account, one machine, or an act on one."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One API.

    Attributes:
        title: its name in sentences.
        base_url: where it lives.
        header: the header that carries the credential.
        every_s: least seconds between two calls, by kind.
    """

    id: str
    title: str
    base_url: str
    header: Callable[[str], Mapping[str, str]]
    every_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often is asked.

    Attributes:
        whole_s: seconds for one question with all its repetitions and waits.
        call_s: seconds for one exchange.
        tries: exchanges at most, where it may be repeated.
        first_s: the first wait before a repetition; it doubles, with jitter.
    """

    whole_s: float = 25.0
    call_s: float = 12.0
    tries: int = 4
    first_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        body: the decoded JSON; None where there was none.
        sense: the body is JSON, or there was none.
        words: of a body that is no JSON, its beginning.
        after_s: seconds that the vendor asks to wait.
    """

    status: int
    body: Any = None
    sense: bool = True
    words: str = field(default="", repr=False)
    after_s: float | None = None

    @property
    def fine(self) -> bool:
        return 200 <= self.status < 300 and self.sense


def bearer(key: str) -> Mapping[str, str]:
    """The usual header."""
    return {"Authorization": f"Bearer {key}"}


class Edge:
    """Asks one vendor with one credential. Every method raises ControlError.

    Args:
        base_url: another address than the vendor's; only https, or http on this computer.
        delay: reads from an answer how long the vendor wants to be left alone, besides ``Retry-After``.
    """

    def __init__(
        self,
        vendor: Vendor,
        secret: Secret,
        *,
        base_url: str | None = None,
        patience: Patience = Patience(),
        delay: Callable[[Answer], float | None] = lambda answer: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        spacing: Spacing | None = None,
    ) -> None:
        self.vendor = vendor
        self.base_url = checked_url(base_url or vendor.base_url, vendor.title)
        self.account = f"key-{secret.fingerprint}"
        self.patience = patience
        self._secret = secret
        self._delay = delay
        self._sleep = sleep
        self._spacing = spacing or shared(vendor.id, f"{self.base_url} {self.account}", vendor.every_s)

    def __repr__(self) -> str:
        return f"Edge({self.vendor.id}, {self.account})"

    # --- asking ---------------------------------------------------------------------------------------------

    async def read(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        *,
        body: object = None,
        kind: str = "*",
    ) -> Answer:
        """GET, repeated where it may help."""
        return await self._ask("GET", path, kind, params=params, body=body, again=True)

    async def read_by_post(self, path: str, body: object, *, kind: str = "*") -> Answer:
        """A question that some vendors want as a POST; it changes nothing, so it is repeated."""
        return await self._ask("POST", path, kind, body=body, again=True)

    async def delete(self, path: str, body: object = None, *, kind: str = "*") -> Answer:
        """DELETE, repeated: a second one of the same id does no harm."""
        return await self._ask("DELETE", path, kind, body=body, again=True)

    async def send(self, method: str, path: str, body: object = None, *, kind: str = "*") -> Answer:
        """Something that is not the same when it is done twice: sent once."""
        return await self._ask(method, path, kind, body=body, again=False)

    async def _ask(
        self,
        method: str,
        path: str,
        kind: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        again: bool,
    ) -> Answer:
        whole = self.patience.whole_s
        try:
            async with asyncio.timeout(whole):
                return await self._asked(method, path, kind, params, body, again)
        except TimeoutError:
            raise NoAnswer(f"{self.vendor.title} did not answer within {whole:g} s.") from None

    async def _asked(
        self, method: str, path: str, kind: str, params: Mapping[str, str] | None, body: object, again: bool
    ) -> Answer:
        tries = self.patience.tries if again else 1
        for number in range(1, tries + 1):
            await self._spacing.turn(kind)
            asked_to_wait = None
            try:
                answer = await self._once(method, path, params, body)
            except httpx.HTTPError as error:
                if number == tries:
                    raise self._unreached(error, again) from None
            else:
                asked_to_wait = answer.after_s if answer.after_s is not None else self._delay(answer)
                if answer.status == 429:
                    self._spacing.rest(min(asked_to_wait or 0.0, 60.0))
                if answer.status not in _AGAIN or number == tries:
                    return answer
            await self._wait(number, asked_to_wait)
        raise AssertionError("unreachable")

    async def _wait(self, number: int, asked_to_wait: float | None) -> None:
        first = self.patience.first_s * 2 ** (number - 1)
        await self._sleep(max(asked_to_wait or 0.0, first * random.uniform(0.5, 1.0)))  # noqa: S311 - jitter

    async def _once(self, method: str, path: str, params: Mapping[str, str] | None, body: object) -> Answer:
        headers = {"Accept": "application/json", **self.vendor.header(self._secret.reveal())}
        async with (
            httpx.AsyncClient(
                base_url=self.base_url,
                timeout=self.patience.call_s,
                verify=_trust() if self.base_url.startswith("https") else False,
                trust_env=not _is_loopback(self.base_url),  # the operator's proxy, never before this computer
                follow_redirects=False,
            ) as client,
            client.stream(
                method,
                path,
                params=dict(params) if params else None,
                headers=headers,
                **({} if body is None else {"json": body}),  # type: ignore[arg-type]
            ) as reply,
        ):
            raw = bytearray()
            async for part in reply.aiter_bytes():
                raw += part
                if len(raw) > MOST_BYTES:
                    raise NoAnswer(f"{self.vendor.title}'s answer does not end.")
            return _decoded(reply.status_code, bytes(raw), reply.headers.get("retry-after"))

    def _unreached(self, error: httpx.HTTPError, again: bool) -> ControlError:
        name = type(error).__name__
        if isinstance(error, _UNSENT) and not again:
            return VerbRefused(
                f"{self.vendor.title} can't be reached ({name}).", means="Nothing was sent.", code="unreached"
            )
        return NoAnswer(f"{self.vendor.title} can't be reached, or broke off ({name}).")

    # --- judging --------------------------------------------------------------------------------------------

    def words(self, text: object) -> str:
        """Words of the vendor, safe to show and without our credential."""
        return redacted(str(text), (self._secret,)) if text not in (None, "") else ""

    def object(self, answer: Answer, asked: Asked, told: str = "") -> dict[str, Any]:
        """The JSON object of a good answer. Raises ControlError for every other one."""
        if not answer.fine or not isinstance(answer.body, dict):
            self.fail(answer, asked, told)
        return answer.body

    def fail(self, answer: Answer, asked: Asked, told: str = "") -> NoReturn:
        """Raise what an answer with a bad status, or without sense, means.

        Args:
            told: the vendor's own words for it.
        """
        raise self.error(answer.status, asked, told or answer.words)

    def error(self, status: int, asked: Asked, told: str = "") -> ControlError:
        """What a status means. Nothing that is said here takes absence for granted."""
        title, words = self.vendor.title, self.words(told)
        said = f"{title} answered {status}: {words}" if words else f"{title} answered {status}"
        said = said.rstrip(".") + "."
        if status == 401:
            return NotAllowed(
                said,
                means="The key is wrong, or expired. Nothing is known of the machine.",
                do=f"Check the {title} key: `rgt status --json` says where it was found (key_from).",
                code="not-allowed",
            )
        if status == 403:
            return NotAllowed(said, means="The key may not do or see this.", code="not-allowed")
        if status == 404 and asked != "list":
            return NoSuchMachine(
                said, means="That is also what some say to a key they reject.", code="no-such-machine"
            )
        if status == 410:
            return ApiRetired(
                said,
                means="This interface is retired; that says nothing of the machine.",
                do="Look for a newer rgt, and use the provider's console meanwhile.",
                code="api-retired",
            )
        if 300 <= status < 400:
            return NoAnswer(f"{title} sends to another address ({status}), which is not followed with a key.")
        if status == 429 and asked == "verb":
            return VerbRefused(said, means="Too many requests: it was not carried out.", code="rate-limited")
        if 400 <= status < 500 and status != 408 and asked == "verb":
            return VerbRefused(said, means="It was not carried out.", code="verb-refused")
        if 200 <= status < 300:
            return NoAnswer(f"{title}'s answer makes no sense{f': {words}' if words else ''}.")
        return NoAnswer(said)


def machine_id(victim: Victim, title: str) -> str:
    """The id as a part of a path, so that none can name another path. Raises NoAnswer."""
    if not victim.instance_id or victim.instance_id.strip(".") == "":
        raise NoAnswer(f"No id tells {title} which machine is meant.")
    return quote(victim.instance_id, safe="")


def checked_url(url: str, title: str) -> str:
    """A base address that a credential may be sent to. Raises Failure."""
    parts = urlsplit(url)
    plain_here = parts.scheme == "http" and _is_loopback(url)
    if not parts.hostname or parts.username or parts.query or not (parts.scheme == "https" or plain_here):
        raise Failure(
            f"The address set for {title} is not one that a key may be sent to.",
            do="Use an https:// address without a user or a query in it.",
            code="unsafe-address",
        )
    return url.rstrip("/")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@cache
def _trust() -> ssl.SSLContext:
    """Read once: the store of certificates takes a tenth of a second."""
    return httpx.create_ssl_context()


def _decoded(status: int, raw: bytes, retry_after: str | None) -> Answer:
    after = _seconds(retry_after)
    if not raw.strip():
        return Answer(status, after_s=after)
    try:
        return Answer(status, json.loads(raw, parse_constant=_no_constant), after_s=after)
    except (ValueError, RecursionError):
        return Answer(status, sense=False, words=raw[:2000].decode("utf-8", "replace"), after_s=after)


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no figure")


def _seconds(text: str | None) -> float | None:
    """``Retry-After`` in seconds; its form with a date is left to our own backoff."""
    if text is None or not text.strip().isascii() or not text.strip().isdigit():
        return None
    return float(min(int(text), 3600))

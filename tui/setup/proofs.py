"""What proves that a secret works: one read call of the service that gave it, and what its answer shows.

Nothing here touches the world. Sources, read 2026-11: Hugging Face ``/api/whoami-v2`` and its roles
(huggingface.js, `AuthInfo`); W&B's GraphQL ``viewer`` with basic auth ``api:KEY`` (wandb's own client);
GitHub ``GET /user`` and its ``X-OAuth-Scopes``; Kaggle ``/api/v1/competitions/list``, which answers 401 to
nobody, with USERNAME:KEY or a bearer token (kagglesdk); ModelScope ``/openapi/v1/users/me`` (modelscope_hub).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from tui.model.text import safe

HUB = "https://huggingface.co"
BASES: Mapping[str, str] = {
    "hf": HUB,
    "wandb": "https://api.wandb.ai",
    "github": "https://api.github.com",
    "kaggle": "https://www.kaggle.com",
    "modelscope": "https://modelscope.cn",
}

_HERE = ("127.0.0.1", "localhost", "::1")
_REMOTE = re.compile(r"RCLONE_CONFIG_([A-Za-z0-9_]+)_TYPE\Z")
_WEBHOOK = re.compile(r"//hooks\.|/webhooks?/|/bot/v2/hook/|/robot/send|/webhook/send")
_VIEWER = '{"query":"query { viewer { username entity } }"}'


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request: a GET, or a POST where it has a body. Its headers are never shown."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Names of headers are in lower case; `data` is None where the body is no JSON."""

    status: int
    headers: Mapping[str, str]
    data: Any


@dataclass(frozen=True, slots=True)
class Call:
    """A secret that a request proves, and what its answer shows; ``""``: it shows nothing."""

    names: tuple[str, ...]
    request: Request
    shows: Callable[[Answer], str]


@dataclass(frozen=True, slots=True)
class Remote:
    """Secrets that rclone reads from the environment: listing `remote` proves them."""

    names: tuple[str, ...]
    remote: str


@dataclass(frozen=True, slots=True)
class Told:
    """Secrets that are not tried, and why; `why` goes on from their names."""

    names: tuple[str, ...]
    why: str


Proof = Call | Remote | Told


def proofs(values: Mapping[str, str], bases: Mapping[str, str]) -> list[Proof]:
    """How each secret is proven; every name is in one of them.

    Args:
        bases: where each service answers, by the keys of `BASES`.
    """
    found: list[Proof] = []
    left = dict(values)
    for make in (_hub, _wandb, _github, _kaggle, _modelscope, _rclone, _s3):
        made = make(left, bases)
        found += made
        for name in [name for one in made for name in one.names]:
            left.pop(name, None)
    return found + [_untried(name, value) for name, value in left.items()]


def proven(call: Call, answer: Answer) -> str:
    """What an answer proves, as a line that goes on from the names."""
    host = safe(call.request.host, 80)
    if 200 <= answer.status < 300:
        shown = call.shows(answer)
        return f"{host} {shown}" if shown else f"unknown: {host} answered, and not as it should"
    if answer.status == 401:
        return f"mind: {host} refuses it"
    if answer.status == 403:
        return f"mind: {host} does not let it read that (HTTP 403)"
    return f"unknown: {host} answered HTTP {answer.status}, which proves nothing"


# --- each service -----------------------------------------------------------------------------------------


def _hub(values: Mapping[str, str], bases: Mapping[str, str]) -> list[Proof]:
    base = values.get("HF_ENDPOINT") or bases["hf"]
    return [
        _bearer((name, *_beside(values, "HF_ENDPOINT")), values[name], base, "/api/whoami-v2", _hub_shows)
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
        if name in values
    ]


def _hub_shows(answer: Answer) -> str:
    name = _text(answer.data, "name")
    role = _text(answer.data, "auth", "accessToken", "role")
    writes = {"write": "yes", "admin": "yes", "read": "no"}.get(role, "not told")
    if role == "fineGrained":
        fine = _inside(answer.data, "auth", "accessToken", "fineGrained")
        writes = "yes, where it was given" if '"repo.write"' in json.dumps(fine) else "no"
    return _reads_as(name, writes)


def _wandb(values: Mapping[str, str], bases: Mapping[str, str]) -> list[Proof]:
    if "WANDB_API_KEY" not in values:
        return []
    base = values.get("WANDB_BASE_URL") or bases["wandb"]
    names = ("WANDB_API_KEY", *_beside(values, "WANDB_BASE_URL"))
    headers = {"Authorization": _basic("api", values["WANDB_API_KEY"]), "Content-Type": "application/json"}
    return [_call(names, base, "/graphql", headers, _wandb_shows, _VIEWER)]


def _wandb_shows(answer: Answer) -> str:
    if _inside(answer.data, "data", "viewer", default=0) is None:
        return "takes it for nobody's: it does not know the key"
    return _reads_as(_text(answer.data, "data", "viewer", "username"), "not told")


def _github(values: Mapping[str, str], bases: Mapping[str, str]) -> list[Proof]:
    return [
        _bearer((name,), values[name], bases["github"], "/user", _github_shows)
        for name in ("GITHUB_TOKEN", "GH_TOKEN")
        if name in values
    ]


def _github_shows(answer: Answer) -> str:
    """A fine-grained token has no scopes to tell; a classic one without any has an empty list."""
    told = answer.headers.get("x-oauth-scopes")
    scopes = {one.strip() for one in (told or "").split(",")}
    writes = "not told" if told is None else "yes" if scopes & {"repo", "public_repo"} else "no"
    until = answer.headers.get("github-authentication-token-expiration")
    said = _reads_as(_text(answer.data, "login"), writes)
    return f"{said}; until {safe(until, 40)}" if said and until else said


def _kaggle(values: Mapping[str, str], bases: Mapping[str, str]) -> list[Proof]:
    found: list[Proof] = []
    path = "/api/v1/competitions/list"
    pair = _beside(values, "KAGGLE_USERNAME", "KAGGLE_KEY")
    if len(pair) == 2:
        headers = {"Authorization": _basic(values["KAGGLE_USERNAME"], values["KAGGLE_KEY"])}
        shows = partial(_kaggle_shows, user=values["KAGGLE_USERNAME"])
        found.append(_call(pair, bases["kaggle"], path, headers, shows))
    elif "KAGGLE_KEY" in pair:
        found.append(Told(pair, "unknown: not verified without KAGGLE_USERNAME"))
    if "KAGGLE_API_TOKEN" in values:
        token = values["KAGGLE_API_TOKEN"]
        found.append(_bearer(("KAGGLE_API_TOKEN",), token, bases["kaggle"], path, _kaggle_shows))
    return found


def _kaggle_shows(answer: Answer, user: str = "") -> str:
    if not isinstance(answer.data, list | dict):
        return ""
    return _reads_as(user, "not told") or "lists competitions with it; may write: not told"


def _modelscope(values: Mapping[str, str], bases: Mapping[str, str]) -> list[Proof]:
    return [
        _bearer((name,), values[name], bases["modelscope"], "/openapi/v1/users/me", _modelscope_shows)
        for name in ("MODELSCOPE_API_TOKEN", "MODELSCOPE_SDK_TOKEN", "MODELSCOPE_API_KEY")
        if name in values
    ]


def _modelscope_shows(answer: Answer) -> str:
    if _inside(answer.data, "success") is not True:
        return ""
    return _reads_as(_text(answer.data, "data", "username"), "not told")


def _rclone(values: Mapping[str, str], bases: Mapping[str, str]) -> list[Proof]:
    """Remotes that stand in the environment: ``RCLONE_CONFIG_NAME_TYPE`` and what belongs to it."""
    found: list[Proof] = []
    remotes = sorted((kind[1] for name in values if (kind := _REMOTE.match(name))), key=len, reverse=True)
    taken: set[str] = set()
    for remote in remotes:
        prefix = f"RCLONE_CONFIG_{remote}_"
        names = tuple(name for name in values if name.startswith(prefix) and name not in taken)
        taken |= set(names)
        found.append(Remote(names, f"{remote.lower()}:"))
    return found


def _s3(values: Mapping[str, str], bases: Mapping[str, str]) -> list[Proof]:
    names = tuple(name for name in values if name.startswith("AWS_"))
    pair = _beside(values, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    if len(pair) == 2:
        return [Remote(names, ":s3:")]
    why = "unknown: not verified: it takes AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return [Told(names, why)] if pair else []


def _untried(name: str, value: str) -> Told:
    if "WEBHOOK" in name.upper() or _WEBHOOK.search(value):
        return Told((name,), "stored, not called: a call would post a message")
    return Told((name,), "stored, not verified: rgt knows no call that proves it")


# --- making and reading -----------------------------------------------------------------------------------


def _bearer(
    names: tuple[str, ...], token: str, base: str, path: str, shows: Callable[[Answer], str]
) -> Call | Told:
    return _call(names, base, path, {"Authorization": f"Bearer {token}"}, shows)


def _call(
    names: tuple[str, ...],
    base: str,
    path: str,
    headers: Mapping[str, str],
    shows: Callable[[Answer], str],
    body: str = "",
) -> Call | Told:
    """The call; none where the secret would go in clear, or can stand in no header."""
    parts = urlsplit(base)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _HERE):
        return Told(names, f"unknown: not verified: {safe(base, 80)} is no https address")
    if not all(value.isascii() and value.isprintable() for value in (base, *headers.values())):
        return Told(names, "mind: it is no plain text, as a token is")
    more = {"User-Agent": "rgt", "Accept": "application/json"}
    return Call(names, Request(base.rstrip("/") + path, {**more, **headers}, body), shows)


def _basic(user: str, key: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{key}".encode()).decode()


def _beside(values: Mapping[str, str], *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name in values)


def _inside(data: Any, *keys: str, default: Any = None) -> Any:
    for key in keys:
        if not isinstance(data, dict) or key not in data:
            return default
        data = data[key]
    return data


def _text(data: Any, *keys: str) -> str:
    found = _inside(data, *keys)
    return found if isinstance(found, str) else ""


def _reads_as(user: str, writes: str) -> str:
    return f"reads as user {safe(user, 60)}; may write: {writes}" if user else ""

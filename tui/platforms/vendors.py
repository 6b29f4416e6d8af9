"""The vendors that can be asked, and how one of their accounts is opened. A vendor is one line here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tui.model.account import AccountSpec
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.platforms import autodl, lambda_cloud, paperspace, runpod, vastai
from tui.platforms.control import Provider
from tui.platforms.credentials import Credential, Finder, Missing
from tui.platforms.http import Answer, Edge, Patience, Vendor
from tui.platforms.vault import Keyring


@dataclass(frozen=True, slots=True)
class Way:
    """How a vendor is asked.

    Attributes:
        open: makes the plane of an account.
        delay: reads from an answer how long the vendor wants to be left alone.
        serves: what is wrong with an id for this API, in words that go on from the machine's name.
    """

    vendor: Vendor
    open: Callable[[Edge], Provider]
    delay: Callable[[Answer], float | None] = lambda answer: None
    serves: Callable[[str], str] = lambda id_: ""


def _ordinary(id_: str) -> str:
    return "" if autodl.pro_id(id_) else "is an ordinary instance, which has no API"


WAYS: Mapping[str, Way] = {
    "autodl": Way(autodl.VENDOR, autodl.AutoDL, serves=_ordinary),
    "lambda": Way(lambda_cloud.VENDOR, lambda_cloud.Lambda),
    "paperspace": Way(paperspace.VENDOR, paperspace.Paperspace),
    "runpod": Way(runpod.VENDOR, runpod.RunPod),
    "vastai": Way(vastai.VENDOR, vastai.VastAi, vastai.asked_to_wait),
}
"""By the id of the platform's profile."""


PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class Account:
    """An account that can be asked."""

    spec: AccountSpec
    plane: Provider
    source: str
    warnings: tuple[Failure, ...] = ()


def finder(*, keyring: bool = True) -> Finder:
    """Looks for keys as the operator's own tools do."""
    return Finder(os.environ, Path.home(), Keyring() if keyring else None)


def opened(
    platform: str, credential: Credential, url: str | None = None, patience: Patience = PATIENCE
) -> Provider:
    """The plane of an account. Raises Failure: the address is not one that a key may be sent to."""
    way = WAYS[platform]
    return way.open(Edge(way.vendor, credential.secret, base_url=url, delay=way.delay, patience=patience))


def account(spec: AccountSpec, finder: Finder) -> Account | Missing:
    """The account of a spec; what is missing where it can't be asked. Raises Failure for a bad address."""
    if spec.platform not in WAYS:
        return Missing(spec.platform, "has no API that rgt knows")
    vendor = WAYS[spec.platform].vendor
    if (
        spec.url
        and spec.key_env is None
        and urlsplit(spec.url).hostname != urlsplit(vendor.base_url).hostname
    ):
        return Missing(
            spec.platform, "has another address in the fleet file: name the key meant for it with key_env"
        )
    found = finder.find(spec.platform, name=None if spec.found else spec.name, variable=spec.key_env)
    if isinstance(found, Missing):
        return found
    plane = opened(spec.platform, found, spec.url)
    return Account(spec, plane, found.source, found.warnings)


def specs(written: Iterable[AccountSpec]) -> tuple[AccountSpec, ...]:
    """The accounts of the fleet file, and one of each platform of which the file names none."""
    written = tuple(written)
    named = {spec.platform for spec in written}
    rest = (AccountSpec(name, name, found=True) for name in WAYS if name not in named)
    return (*written, *rest)


def control(instance: Instance, written: Iterable[AccountSpec], finder: Finder) -> Provider | str:
    """The control plane of a machine; or why there is none, in words that go on from its name."""
    way = WAYS.get(instance.platform)
    if way is None:
        return "is at a platform that rgt can't ask"
    if not instance.instance_id:
        return f"has no instance_id in the fleet file: nothing tells which one at {way.vendor.title} it is"
    if wrong := way.serves(instance.instance_id):
        return wrong
    of_platform = [spec for spec in specs(written) if spec.platform == instance.platform]
    named = [spec for spec in of_platform if spec.name == instance.asked_as]
    if not named and len(of_platform) > 1:
        names = ", ".join(spec.name for spec in of_platform)
        return f"does not say which account it belongs to; set its account to one of: {names}"
    spec = (named or of_platform)[0]
    try:
        found = account(spec, finder)
    except Failure as failure:
        return f"can't be asked about: {failure.what}"
    if isinstance(found, Missing):
        return f"can't be asked about: {way.vendor.title} {found.why}"
    return found.plane

"""Which of a platform's offers a job can run on, the best first; and what is asked for then."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tui.model.failure import Failure
from tui.model.job import Resources
from tui.model.text import safe
from tui.platforms.control import Offer, Wish
from tui.platforms.sent import Terms

_GB = 1e9
_SHORT = 0.95
"""A card's memory in GB is rounded, and counted in thousands by some platforms: 24 for 23.99."""
_DISK_MARGIN = 1.2


def fitting(offers: Iterable[Offer], needs: Resources) -> tuple[Offer, ...]:
    """Offers that a constraint allows: by whole name, then what is never taken away, then by price.

    What is sold out is left out; so is what does not tell a figure that the constraint asks for.
    """
    fit = [one for one in offers if one.available is not False and _fits(one, needs)]
    return tuple(sorted(fit, key=lambda one: (not _named(one, needs), one.spot, _cost(one, needs))))


def offer_of(offers: Iterable[Offer], id_: str) -> Offer:
    """The offer of this id. Raises Failure: it is not to be had."""
    found = next((one for one in offers if one.id == id_), None)
    if found is None or found.available is False:
        why = "is not among the platform's offers now" if found is None else "is sold out"
        raise Failure(f"Offer {safe(id_, 80)} {why}.", do="Leave --offer out to see those that fit.")
    return found


def wish_for(needs: Resources, offer: Offer, name: str, terms: Terms, region: str | None = None) -> Wish:
    """What to ask for: an offer, on terms, with at least the disk needed; by default in its first region."""
    need = int(needs.disk * _DISK_MARGIN / _GB) + 1 if needs.disk else 0
    disk = max(terms.disk_gb or 0, need) or None
    return Wish(
        name=name,
        offer=offer,
        image=terms.image,
        gpus=terms.gpus or _times(offer, needs),
        disk_gb=disk,
        ssh_key=terms.ssh_key,
        region=region or next(iter(offer.regions), None),
        more=dict(terms.more),
    )


def machine_name(stem: str, day: str, taken: Iterable[str]) -> str:
    """A name for a machine that nobody has yet, such as ``sweep-a1b2c3-20261130``.

    Args:
        day: the date, in digits.
        taken: names of the account's machines and of the fleet's boxes.
    """
    stem = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:28].strip("-") or "run"
    known, name, number = frozenset(taken), f"{stem}-{day}", 1
    while name in known:
        number += 1
        name = f"{stem}-{day}-{number}"
    return name


def _fits(offer: Offer, needs: Resources) -> bool:
    gpu = needs.gpu
    if not gpu.count:
        return True
    memory = offer.gpu_memory_gb
    return (
        (not gpu.model or _plain(gpu.model) in _plain(offer.gpu))
        and gpu.count <= _most(offer)
        and (not gpu.memory or (memory is not None and memory * _GB >= gpu.memory * _SHORT))
    )


def _most(offer: Offer) -> float:
    """Cards that a machine of this offer can have; what is multiplied without a limit told may have any."""
    if not offer.multiplied:
        return offer.gpus
    return float("inf") if offer.most is None else offer.most


def _named(offer: Offer, needs: Resources) -> bool:
    """The card's name has the constraint's word as a word of its own: ``L4`` is not ``L40``."""
    word = needs.gpu.model
    if not word:
        return True
    whole = rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])"
    return re.search(whole, offer.gpu, re.IGNORECASE) is not None


def _cost(offer: Offer, needs: Resources) -> float:
    """By the hour; what is not told comes last."""
    return Wish("", offer, gpus=_times(offer, needs)).price.per_hour or float("inf")


def _times(offer: Offer, needs: Resources) -> int | None:
    return max(1, needs.gpu.count) if offer.multiplied else None


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())

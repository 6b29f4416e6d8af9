"""What was asked to be rented and was not seen to be up yet; and the terms on which a machine was rented.

A request is written down before it goes out, so that neither a crash nor a second `rgt` rents again while a
machine may exist and bill. Terms are kept so that the next machine of a run can be the same kind of machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tui.durable import write_new, write_whole
from tui.fleet.entry_rules import is_secret_key
from tui.fleet.paths import Paths
from tui.model.failure import Exit, Failure
from tui.platforms.control import Wish

_FREE_TEXT = re.compile(r"(?i)env|auth|credential|login|start|entry|command|cmd|args|script|user_?data")
"""Words of a request in whose values people put secrets, besides those whose names say so."""


class Terms(BaseModel):
    """What was wished for besides an offer, as in `Wish`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    image: str | None = None
    gpus: int | None = None
    disk_gb: int | None = None
    ssh_key: str | None = None
    more: dict[str, str] = {}

    @classmethod
    def of(cls, wish: Wish) -> Terms:
        """The terms of a wish, without what may be a secret."""
        more = {key: str(value) for key, value in wish.more.items() if not _private(key)}
        return cls(image=wish.image, gpus=wish.gpus, disk_gb=wish.disk_gb, ssh_key=wish.ssh_key, more=more)


class Sent(BaseModel):
    """One request.

    Attributes:
        at: a date in words.
        id: the machine's, where the platform answered with one.
        per_hour: None where nobody told the price.
        run: the run that is to go on there; empty where it is for none.
    """

    model_config = ConfigDict(frozen=True)

    platform: str
    name: str
    at: str
    id: str | None = None
    per_hour: float | None = None
    currency: str = ""
    run: str = ""
    terms: Terms = Terms()


def _private(key: str) -> bool:
    """Whether a word of a request is not written down."""
    return is_secret_key(key) or _FREE_TEXT.search(key) is not None


def mark(where: Paths, sent: Sent) -> None:
    """Write it down, before it is sent. Raises Failure: it could not be, or another one is open."""
    try:
        write_new(_file(where, sent.platform), sent.model_dump_json())
    except FileExistsError:
        raise Failure(
            "Another request to this platform is open, perhaps of another rgt.",
            means="Nothing was sent.",
            do="The same again looks first what became of that one.",
        ) from None
    except OSError as error:
        raise Failure(
            f"What is sent could not be written down first ({error.strerror}).",
            means="Nothing was sent.",
            do=f"Look at {where.state}.",
        ) from None


def find(where: Paths, platform: str) -> Sent | None:
    """The request that is open. Raises Failure: there is one, and it can't be read."""
    path = _file(where, platform)
    try:
        return Sent.model_validate_json(path.read_bytes()[:65536])
    except FileNotFoundError:
        return None
    except (OSError, ValidationError, ValueError):
        raise Failure(
            f"{path} can't be read: a request to rent may be open.",
            means="A machine may exist and bill; nothing is sent.",
            do="Look at the platform's console, then remove that file.",
            exit=Exit.UNKNOWN,
        ) from None


def drop(where: Paths, sent: Sent) -> None:
    """It was seen to be up, surely refused, or is not there by the operator's word. Raises Failure.

    A request that another rgt made since then stays.
    """
    if _is_open(where, sent):
        _file(where, sent.platform).unlink(missing_ok=True)


def keep_id(where: Paths, sent: Sent, id_: str) -> None:
    """Remember its machine: where that can't be written, it is looked for by its name."""
    with contextlib.suppress(OSError, Failure):
        if _is_open(where, sent):
            kept = sent.model_copy(update={"id": id_})
            write_whole(_file(where, sent.platform), kept.model_dump_json())


def _is_open(where: Paths, sent: Sent) -> bool:
    there = find(where, sent.platform)
    return there is not None and (there.name, there.at) == (sent.name, sent.at)


def keep_terms(where: Paths, platform: str, instance_id: str, terms: Terms) -> None:
    """Remember how a machine was rented: a convenience, so where it can't be written nobody is stopped."""
    with contextlib.suppress(OSError):
        write_whole(_terms_file(where, platform, instance_id), terms.model_dump_json())


def terms_of(where: Paths, platform: str, instance_id: str | None) -> Terms | None:
    """How a machine was rented; None where that is not known, or can't be read any more."""
    try:
        return Terms.model_validate_json(_terms_file(where, platform, instance_id or "").read_bytes()[:65536])
    except (OSError, ValidationError, ValueError):
        return None


def _terms_file(where: Paths, platform: str, instance_id: str) -> Path:
    """Ids are the platform's own words, so a digest of it makes the name."""
    digest = hashlib.sha256(f"{platform}\0{instance_id}".encode()).hexdigest()
    return where.state / "rented" / f"{digest[:32]}.json"


def _file(where: Paths, platform: str) -> Path:
    return where.state / f"renting-{platform.replace('/', '_')}.json"

"""What was asked to be rented and was not seen to be up yet.

It is written before the request goes out, so that neither a crash nor a second `rgt` rents again while a
machine may exist and bill.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tui.fleet.paths import Paths
from tui.model.failure import Exit, Failure


class Sent(BaseModel):
    """One request. `per_hour` is None where nobody told the price; `at` is a date in words."""

    model_config = ConfigDict(frozen=True)

    platform: str
    name: str
    at: str
    per_hour: float | None = None
    currency: str = ""


def mark(where: Paths, sent: Sent) -> None:
    """Write it down, before it is sent. Raises Failure: it could not be, or another one is open."""
    try:
        where.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(_file(where, sent.platform), flags, 0o600), "w", encoding="utf-8") as file:
            file.write(sent.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise Failure(
            "Another request to this platform is open, perhaps of another rgt.",
            means="Nothing was sent.",
            do="Look at the step again: it offers to look what became of it.",
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


def drop(where: Paths, platform: str) -> None:
    """It was seen to be up, surely refused, or is not there by the operator's word."""
    _file(where, platform).unlink(missing_ok=True)


def _file(where: Paths, platform: str) -> Path:
    return where.state / f"renting-{platform.replace('/', '_')}.json"

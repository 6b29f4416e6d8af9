"""What vendors tell, read strictly where a decision rests on it and leniently where not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from tui.model.text import safe
from tui.platforms.control import NoAnswer


class Told(BaseModel):
    """An answer, or a part of one. What it does not need it does not look at."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, hide_input_in_errors=True, populate_by_name=True
    )


def _or_none(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError:
        return None


Finite = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Id = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]

OR_NONE = WrapValidator(_or_none)
"""Makes a part None where it is missing or makes no sense."""

MaybeText = Annotated[str | None, OR_NONE]
MaybeAmount = Annotated[Amount | None, OR_NONE]
MaybeFinite = Annotated[Finite | None, OR_NONE]
MaybeInt = Annotated[int | None, OR_NONE]
MaybeBool = Annotated[bool | None, OR_NONE]
MaybePort = Annotated[Annotated[int, Field(ge=1, le=65535)] | None, OR_NONE]
MaybeNames = Annotated[list[str] | None, OR_NONE]

T = TypeVar("T", bound=Told)


def parse(model: type[T], value: object, title: str) -> T:
    """The answer as what it should be. Raises NoAnswer, which names the field and not its value."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise NoAnswer(f"{title}'s answer makes no sense: {safe(where, 80)} is not as expected.") from None


def each(model: type[T], values: list[Any]) -> tuple[tuple[T, ...], int]:
    """Those elements of a list that are as expected, and how many are not."""
    good = []
    for value in values:
        try:
            good.append(model.model_validate(value))
        except ValidationError:
            continue
    return tuple(good), len(values) - len(good)


def names_more(told: Mapping[str, Any]) -> bool:
    """Whether a list names a further page, which its spec does not know yet: so it is incomplete."""
    signs = ("next", "cursor", "hasmore", "has_more", "pagination", "truncated")
    return any(value and any(sign in key.lower() for sign in signs) for key, value in told.items())


def epoch(text: str | None) -> float | None:
    """A date of ISO 8601 in seconds since the epoch; None where it is none, or names no zone."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or moment.year < 2000:
        return None
    return moment.timestamp()


def host_of(text: str | None) -> str | None:
    """A host name or address that is one, without the blanks that some put around it."""
    host = (text or "").strip()
    fine = host and not host.startswith("-") and all(c.isalnum() or c in ".-:_" for c in host)
    return host if fine and host.isascii() and len(host) <= 253 else None


def user_of(text: str | None) -> str | None:
    """A login name that is one."""
    user = (text or "").strip()
    fine = user and not user.startswith("-") and all(c.isalnum() or c in ".-_" for c in user)
    return user if fine and user.isascii() and len(user) <= 128 else None


def positive(value: float | None) -> float | None:
    """A price that is one: a running machine at 0 is a price that nobody told."""
    return value if value is not None and math.isfinite(value) and value > 0 else None

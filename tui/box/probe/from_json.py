"""Reads back what ``rgt probe … --json`` printed. Unknown keys are left out; a wrong type is an error."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from tui.model.failure import Exit, Failure
from tui.model.reading import Reading, Source, known, unknown
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, safe

NAMES = {"gpus": "gpu_error"}
"""Where the reason why a part is not known lies under another name than ``<part>_error``."""

_DEEPEST = 12


def telemetry_from(data: object) -> Telemetry:
    """The telemetry of a probe's JSON.

    Raises:
        Failure: this is not what a probe printed; the sentence names the place.
    """
    if not isinstance(data, dict) or not isinstance(data.get("taken_at"), int | float):
        raise _wrong("it names no time it was taken at")
    if isinstance(data["taken_at"], bool):
        raise _wrong("taken_at is no time")
    try:
        return _telemetry(data)
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong(str(error)) from None


def _wrong(why: str) -> Failure:
    return Failure(
        f"This is not what `rgt probe NAME --json` prints: {safe(why, 200)}.",
        do="Save its output as it is, and give that file to --probe.",
        exit=Exit.USAGE,
        code="no-probe",
    )


def _telemetry(data: dict[str, Any]) -> Telemetry:
    taken_at = float(data["taken_at"])
    source = Source(SafeText("the probe that was saved"), taken_at)
    found: dict[str, Any] = {"taken_at": taken_at, "took_s": float(data.get("took_s") or 0.0)}
    hints = get_type_hints(Telemetry)
    for field in fields(Telemetry):
        hint = hints[field.name]
        if field.name in found or field.name not in data:
            continue
        if get_origin(hint) is Reading:
            reason = data.get(NAMES.get(field.name, f"{field.name}_error"))
            found[field.name] = _reading(hint, data[field.name], reason, source, field.name)
        else:
            found[field.name] = _value(hint, data[field.name], field.name, source)
    return Telemetry(**found)


def _reading(hint: Any, value: object, reason: object, source: Source, at: str) -> Reading[Any]:
    if value is None:
        return unknown(safe(str(reason or "not told")), source)
    return known(_value(get_args(hint)[0], value, at, source), source)


def _value(hint: Any, value: object, at: str, source: Source, depth: int = 0) -> Any:
    """`value` as a `hint`. Raises ValueError with its place."""
    if depth > _DEEPEST:
        raise ValueError(f"{at} is nested too deeply")
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _value(next(a for a in args if a is not type(None)), value, at, source, depth + 1)
    if origin is tuple:
        return _tuple(args, value, at, source, depth)
    if is_dataclass(hint):
        return _record(hint, value, at, source, depth)
    return _plain(hint, value, at)


def _tuple(args: tuple[Any, ...], value: object, at: str, source: Source, depth: int) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{at} is no list")
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(_value(args[0], one, f"{at}[{n}]", source, depth + 1) for n, one in enumerate(value))
    if len(args) != len(value):
        raise ValueError(f"{at} has {len(value)} parts, not {len(args)}")
    return tuple(_value(a, one, at, source, depth + 1) for a, one in zip(args, value, strict=True))


def _record(hint: Any, value: object, at: str, source: Source, depth: int) -> object:
    if not isinstance(value, dict):
        raise ValueError(f"{at} is no record")
    hints = get_type_hints(hint)
    found: dict[str, Any] = {}
    for field in fields(hint):
        if field.name not in value:
            continue
        place, one = f"{at}.{field.name}", value[field.name]
        if get_origin(hints[field.name]) is Reading:
            reason = value.get(f"{field.name}_error")
            found[field.name] = _reading(hints[field.name], one, reason, source, place)
        else:
            found[field.name] = _value(hints[field.name], one, place, source, depth + 1)
    return hint(**found)


def _plain(hint: Any, value: object, at: str) -> object:
    name = getattr(hint, "__name__", str(hint))
    if name in ("SafeText", "LogText", "str"):
        if not isinstance(value, str):
            raise ValueError(f"{at} is no text")
        return safe(value)
    if hint is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{at} is neither true nor false")
        return value
    if hint in (int, float):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{at} is no number")
        return float(value) if hint is float else int(value)
    raise ValueError(f"{at} cannot be read")

"""``KEY=VALUE`` words of the command line as typed values of ``fleet.toml``."""

from __future__ import annotations

from datetime import UTC, datetime

from tui.fleet.toml_edit import Value
from tui.model.failure import Exit, Failure
from tui.model.text import safe

_INTEGERS = ("port", "pid", "pid_start")
_LISTS = ("jump", "mounts")
_MOMENTS = ("rented_at", "ends_at")


def read_change(text: str) -> tuple[str, Value | None]:
    """One change; an empty value removes the key. Raises Failure, which never repeats the value."""
    key, found, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not found or not key:
        raise _usage("A change is written KEY=VALUE.", "An empty value removes the key.")
    if not value:
        return key, None
    try:
        return key, _typed(key, value)
    except ValueError:
        raise _usage(f"{safe(key, 40)}: the value cannot be read.", _FORMS.get(key, "")) from None


_FORMS = {
    **dict.fromkeys(_INTEGERS, "It is a whole number."),
    **dict.fromkeys(_MOMENTS, "It is a date and time such as 2026-11-29T14:00, or now."),
    "price_per_hour": "It is a number.",
    "proxied": "It is true or false.",
}


def _typed(key: str, value: str) -> Value:
    if key in _INTEGERS:
        return int(value)
    if key == "price_per_hour":
        return float(value)
    if key in _LISTS:
        return [part.strip() for part in value.split(",") if part.strip()]
    if key in _MOMENTS:
        moment = datetime.now(UTC) if value == "now" else datetime.fromisoformat(value)
        return moment.astimezone().replace(microsecond=0)  # without an offset: the operator's own time
    if key == "proxied":
        if value.lower() not in ("true", "false"):
            raise ValueError(value)
        return value.lower() == "true"
    return value


def _usage(what: str, do: str) -> Failure:
    return Failure(what, do=do, exit=Exit.USAGE, code="usage")

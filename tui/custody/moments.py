"""Times of the chain: UTC text to the second in records, seconds since the epoch in the programme."""

from __future__ import annotations

from datetime import UTC, datetime

from tui.model.custody import Moment


def moment(seconds: float) -> Moment:
    """Seconds since the epoch as a record writes them."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(at: Moment) -> float:
    """Seconds since the epoch of a record's time. Raises ValueError."""
    return datetime.strptime(at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()

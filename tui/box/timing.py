"""The deadlines of connecting, and how soon a silent link counts as dead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Deadlines in seconds.

    Attributes:
        connect: until TCP stands.
        login: from then until the login is done; it starts again after the operator answered a question.
        keepalive, keepalive_misses: a silent link is dead after ``keepalive * (keepalive_misses + 1)``.
    """

    connect: float = 15.0
    login: float = 20.0
    keepalive: float = 10.0
    keepalive_misses: int = 2

"""Failures a person can meet, and the one table of exit codes."""

from __future__ import annotations

from enum import IntEnum

from tui.model.text import SafeText, safe


class Exit(IntEnum):
    """Exit codes of every verb."""

    FINE = 0
    ATTENTION = 1  # something needs attention, or the act was refused
    USAGE = 2
    UNREACHABLE = 3
    UNKNOWN = 4  # incomplete, or it could not be told
    INTERRUPTED = 130


class Failure(Exception):
    """One failure in one clear sentence each: what happened, what it means, what to do.

    Args:
        what: what happened, without secrets.
        means: what follows from it for the operator.
        do: the next step.
        exit: the exit code a verb ends with when it fails this way.
        code: a stable machine-readable name, such as ``host-key-changed``.
    """

    def __init__(
        self, what: str, *, means: str = "", do: str = "", exit: Exit = Exit.ATTENTION, code: str = ""
    ) -> None:
        self.what: SafeText = safe(what)
        self.means: SafeText = safe(means)
        self.do: SafeText = safe(do)
        self.exit = exit
        self.code = code
        super().__init__(self.line)

    @property
    def line(self) -> SafeText:
        """The whole failure on one line."""
        return SafeText(" ".join(part for part in (self.what, self.means, self.do) if part))

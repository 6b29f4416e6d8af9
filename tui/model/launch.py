"""A launch as the operator sees it: what is chosen, what was looked at, what would be done, what came of it.

Plain values, made by the worker and drawn by the screen. Foreign text in it is safe to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui.model.text import SafeText

Stage = Literal["job", "box", "preflight", "plan", "answer"]
"""Where it stands: what is chosen or done next."""

STAGES: tuple[Stage, ...] = ("job", "box", "preflight", "plan", "answer")


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job file that can be chosen.

    Attributes:
        path: as it is chosen; not to be shown, it may hold any characters.
        note: whose job it is, or what is wrong with the file.
        fits: it can be read and launched.
        earlier: a run was launched from it before.
    """

    path: str
    title: SafeText
    note: SafeText = SafeText("")
    fits: bool = True
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class CheckView:
    """One thing that was looked at before the launch."""

    name: SafeText
    verdict: Literal["ok", "warn", "stop", "unknown"]
    said: SafeText


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What a launch came to.

    Attributes:
        kind: such as ``first-step``, ``alive``, ``dead``, ``finished`` or ``unknown``.
        last: the newest lines of its log.
        pace: how often it should save; empty where that can't be told.
    """

    kind: str
    why: SafeText
    last: tuple[SafeText, ...] = ()
    pace: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class LaunchView:
    """One launch.

    Attributes:
        jobs: files that can be chosen; None: they are being looked for.
        near: the folder they were looked for in.
        job: what was chosen: the file and what it says of itself.
        needs: the hardware that the job asks for.
        platforms: those that the job prefers, in order.
        proposed: the box where the operator looked; it is not chosen by that.
        checks: stops first.
        checked_at: when they were made, in seconds since the epoch.
        plan: titles and sentences of what would be done.
        consent: names the plan that is shown; it has to come back with the word to start. Empty: none can.
        told: what was done so far.
        began_at: when it was started, in seconds since the epoch.
        working: something runs now. It goes on when the screen is left.
        problem: why it does not go on from where it stands.
    """

    stage: Stage = "job"
    jobs: tuple[JobFile, ...] | None = None
    near: SafeText = SafeText("")
    job: SafeText = SafeText("")
    needs: SafeText = SafeText("")
    platforms: tuple[str, ...] = ()
    proposed: str = ""
    box: str = ""
    run: str = ""
    checks: tuple[CheckView, ...] = ()
    checked_at: float | None = None
    plan: tuple[tuple[SafeText, SafeText], ...] = ()
    consent: str = ""
    told: tuple[SafeText, ...] = ()
    began_at: float | None = None
    answer: AnswerView | None = None
    working: bool = False
    problem: SafeText = SafeText("")

    @property
    def stopped(self) -> bool:
        """Something that was looked at forbids the launch."""
        return any(one.verdict == "stop" for one in self.checks)

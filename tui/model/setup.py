"""A guided setup as the operator sees it: its steps, what each showed, and what is asked of him now.

Plain values, made by the worker and drawn by the screen. Foreign text in it is safe to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui.model.text import SafeText

StepId = Literal[
    "platform", "surface", "key", "credentials", "rent", "connect", "identity",
    "audit", "budget", "secrets", "mirrors", "summary",
]  # fmt: skip

StepState = Literal["waiting", "running", "done", "skipped", "needs-you", "failed"]

Kind = Literal["choose", "text", "secret", "read"]
"""``choose``: one of the options. ``text``, ``secret``: typed. ``read``: read it, then go on."""


@dataclass(frozen=True, slots=True)
class Option:
    """Something to choose. `note` says what speaks for it or against it."""

    id: str
    title: SafeText
    note: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked.

    Attributes:
        prompt: the question, in a few words.
        hint: the form of the answer, or what Enter alone means.
        word: what must be typed exactly, where it costs money; then nothing else goes on.
    """

    kind: Kind
    prompt: SafeText
    hint: SafeText = SafeText("")
    options: tuple[Option, ...] = ()
    word: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One step.

    Attributes:
        brief: what came of it, in one line.
        runs, expected, observed: what is done, what must come of it, and what did.
        reason: why it was skipped.
        may_skip: False where nothing later makes sense without it.
    """

    id: StepId
    state: StepState = "waiting"
    brief: SafeText = SafeText("")
    runs: SafeText = SafeText("")
    expected: SafeText = SafeText("")
    observed: tuple[SafeText, ...] = ()
    asked: Asked | None = None
    reason: SafeText = SafeText("")
    may_skip: bool = True


@dataclass(frozen=True, slots=True)
class SetupView:
    """One setup.

    Attributes:
        platform: title of the chosen one; empty before.
        box: the box it made or was begun with; empty before.
        problem: why the current step did not do.
        over: everything is done or skipped.
    """

    steps: tuple[SetupStep, ...] = ()
    current: StepId = "platform"
    platform: SafeText = SafeText("")
    box: SafeText = SafeText("")
    working: bool = False
    problem: SafeText = SafeText("")
    over: bool = False

    def step(self, name: StepId) -> SetupStep | None:
        return next((one for one in self.steps if one.id == name), None)

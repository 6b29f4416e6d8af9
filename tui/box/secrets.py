"""Passwords, passphrases and one-time codes: asked when needed, kept in memory only, shown nowhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

from tui.model.text import safe


class Asker(Protocol):
    """Asks the operator."""

    async def ask(self, box: str, prompt: str) -> str | None:
        """The operator's answer to `prompt` (made safe, may be in any language); None: there will be none."""


class NoAsker:
    """For verbs that run unattended: every question stays unanswered."""

    async def ask(self, box: str, prompt: str) -> str | None:
        return None


class Vault:
    """What was typed in this session, by box and purpose. It has no readable form."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], str] = {}

    def get(self, box: str, purpose: str) -> str | None:
        return self._held.get((box, purpose))

    def put(self, box: str, purpose: str, secret: str) -> None:
        self._held[box, purpose] = secret

    def drop(self, box: str, purpose: str | None = None) -> None:
        """Forget one secret of a box, or all of them."""
        for key in [k for k in self._held if k[0] == box and purpose in (None, k[1])]:
            del self._held[key]

    def __repr__(self) -> str:
        return f"<Vault: {len(self._held)} kept>"


PASSWORD = "password"


class PasswordSource:
    """Answers one login's questions: the environment first, then what was typed before, then the operator.

    Each known answer is given once: repeating a wrong one only gets the address blocked.

    Args:
        env_name: the variable that holds the password, as ``fleet.toml`` names it.
        tries: how often the operator is asked in one login.

    Attributes:
        given: how many answers were sent.
        unanswered: a question for a secret got no answer.
    """

    def __init__(
        self,
        box: str,
        vault: Vault,
        asker: Asker,
        *,
        env_name: str | None = None,
        environ: Mapping[str, str] | None = None,
        tries: int = 3,
    ) -> None:
        self._box, self._vault, self._asker = box, vault, asker
        self._env_name = env_name
        known = [(environ or os.environ).get(env_name) if env_name else None, vault.get(box, PASSWORD)]
        self._known = [secret for secret in known if secret]
        self._tries = tries
        self._typed: str | None = None
        self.given = 0
        self.unanswered = False
        self.env_missing = bool(env_name) and known[0] is None

    async def password(self, prompt: str) -> str | None:
        """The next password to try, or None when there is no further one."""
        if self._known:
            self.given += 1
            return self._known.pop(0)
        self._vault.drop(self._box, PASSWORD)
        if self._tries <= 0:
            return None
        answer = await self._ask(prompt)
        if answer is not None:
            self._typed = answer
        return answer

    async def challenge(self, prompts: list[tuple[str, bool]]) -> list[str] | None:
        """Answer the prompts of a keyboard-interactive round: ``(text, whether typing may be seen)``.

        The first hidden prompt is the password's, in whatever language it asks; any other (a one-time code)
        is for the operator.
        """
        answers: list[str] = []
        password_due = True
        for text, echo in prompts:
            if not echo and password_due:
                password_due = False
                answer = await self.password(text)
            else:
                answer = await self._ask(text)
            if answer is None:
                return None
            answers.append(answer)
        return answers

    def accepted(self) -> None:
        """The login succeeded: what was typed serves the next connection, too."""
        if self._typed is not None:
            self._vault.put(self._box, PASSWORD, self._typed)

    async def _ask(self, prompt: str) -> str | None:
        if self._tries <= 0:
            return None
        self._tries -= 1
        answer = await self._asker.ask(self._box, safe(prompt, 200).strip() or "Password:")
        if answer is None:
            self.unanswered = True
            self._tries = 0
        else:
            self.given += 1
        return answer

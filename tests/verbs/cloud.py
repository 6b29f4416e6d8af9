"""An account at the fake provider whose new machines are a real sshd."""

from __future__ import annotations

from typing import Any

import pytest

from tests.platforms.world import Box, World
from tests.rig import Sshd

ASKS = {"runpod": "POST /v2/pods", "vastai": "PUT /api/v0/asks/"}
"""How a machine is asked for."""


class Cloud(World):
    """`server` is what every new machine is."""

    def __init__(self, server: Sshd, platform: str) -> None:
        super().__init__()
        self.server, self.platform = server, platform

    def create(self, name: str) -> Box:
        made = super().create(name)
        self.put(made.id, state="running", host=self.server.host, port=self.server.port)
        return made

    @property
    def asked(self) -> list[Any]:
        """Bodies of the requests that asked for a machine."""
        ask = ASKS[self.platform]
        return [one.body for one in self.log if ask in f"{one.method} {one.path}"]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the operator types, one answer a question."""
    answers: list[str] = []
    monkeypatch.setattr("tui.custody.keyboard.read_line", lambda _prompt, _timeout: answers.pop(0))
    return answers

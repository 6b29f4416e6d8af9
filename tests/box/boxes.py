"""What the connection tests share: a connector with short deadlines, and instances that point at a rig."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.rig import Sshd
from tui.box.connect import Connector
from tui.box.timing import Timing
from tui.box.trust import TrustStore
from tui.model.command import CommandRecord
from tui.model.instance import Endpoint, Instance

QUICK = Timing(connect=3.0, login=5.0, keepalive=0.4, keepalive_misses=2)
"""A silent link is dead after 1.2 s: for tests of just that; a busy machine can be silent so long."""

USUAL = Timing(connect=5.0, login=10.0, keepalive=1.0, keepalive_misses=5)


@dataclass
class Typist:
    """An operator who gives these answers, one after another, and remembers the questions."""

    answers: list[str | None] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def ask(self, box: str, prompt: str) -> str | None:
        self.asked.append((box, prompt))
        return self.answers.pop(0) if self.answers else None


@dataclass
class Desk:
    """One operator's computer: its trust store, its command log and its ssh configuration."""

    tmp: Path
    timing: Timing = USUAL
    typist: Typist = field(default_factory=Typist)
    records: list[CommandRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trust = TrustStore(self.tmp / "trust", self.tmp / "receipts")
        self.empty_config = self.tmp / "empty_ssh_config"
        self.empty_config.write_text(
            "Host *\n  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n  IdentityAgent none\n"
        )

    def connector(self, config: Path | None = None, **more: object) -> Connector:
        options: dict[str, object] = {
            "timing": self.timing,
            "config": str(config or self.empty_config),
            **more,
        }
        return Connector(self.trust, self.typist, on_command=self.records.append, **options)  # type: ignore[arg-type]


def instance(server: Sshd, name: str = "box", **more: object) -> Instance:
    """An entry of fleet.toml that names everything itself."""
    endpoint = Endpoint(server.host, server.port, server.user, key=str(server.client_key))
    return Instance(name, "ssh", endpoint, **more)  # type: ignore[arg-type]

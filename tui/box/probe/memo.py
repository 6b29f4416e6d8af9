"""What is remembered from one answer of the probe to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tui.box.probe.watched import Files
from tui.model.telemetry import ProcessInfo, Session


@dataclass(slots=True)
class Memo:
    """What has to be remembered from one answer to the next while a shell lives.

    Attributes:
        hello: sections of the first answer.
        resolved: path -> the mount that df found it on.
        commands: processes listed with their whole command line, by pid and start time.
        files: key -> what was last told about a run's files.
        slurm: jobs; asked once a minute.
    """

    hello: Mapping[str, bytes] = field(default_factory=dict)
    listed: bytes | None = None
    resolved: dict[str, str] = field(default_factory=dict)
    commands: dict[tuple[int, int], ProcessInfo] = field(default_factory=dict)
    files: dict[str, Files] = field(default_factory=dict)
    slurm: tuple[Session, ...] = ()
    keys: dict[tuple[str, ...], str] = field(default_factory=dict)

    @property
    def mounts(self) -> bytes:
        """The mount table as last sent."""
        return self.listed if self.listed is not None else self.hello.get("mounts", b"")

    def key(self, kind: str, *what: str) -> str:
        """The key of this thing, made when it is first asked for."""
        return self.keys.setdefault((kind, *what), f"{kind}{len(self.keys)}")

"""Where a benchmark happens: a folder of its own, servers on loopback, and fleet files that name them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rig import Sshd


@dataclass(frozen=True, slots=True)
class Bench:
    """What every figure is taken with.

    Attributes:
        quick: fewer repetitions, boxes and seconds.
        folder: emptied at the end.
    """

    quick: bool
    folder: Path

    def new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.folder))

    @contextmanager
    def sshd(self, **options: Any) -> Iterator[Sshd]:
        """A server that lets in as many connections as there are boxes."""
        server = Sshd.start(self.new_folder() / "sshd", max_startups="500:30:600", **options)
        try:
            yield server
        finally:
            server.stop()


def ssh_config(server: Sshd) -> Path:
    """For the `ssh` program: the same cipher as ours, no questions."""
    return server.ssh_config(
        "box", "StrictHostKeyChecking accept-new", "LogLevel ERROR", "Ciphers aes128-gcm@openssh.com"
    )


def on_server(server: Sshd) -> dict[str, Any]:
    """The entry of a box that is this server."""
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "key": str(server.client_key),
        "host_key": server.host_key_fingerprint,
    }


def write_fleet(
    home: Path, boxes: Mapping[str, Mapping[str, Any]], runs: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """``fleet.toml`` below an RGT_HOME."""
    lines: list[str] = []
    for kind, entries in (("instances", boxes), ("runs", runs or {})):
        for name, entry in entries.items():
            lines.append(f'[{kind}."{name}"]')
            lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "fleet.toml").write_text("\n".join(lines) + "\n")


def environment(**more: str) -> dict[str, str]:
    """For a child: byte code is kept, and neither a user's terminal nor his agent shows through."""
    dropped = ("PYTHONDONTWRITEBYTECODE", "TMUX", "SSH_CONNECTION", "SSH_AUTH_SOCK", "NO_COLOR", "COLORTERM")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return {**kept, "LANG": "C.UTF-8", **more}


def child(module: str, *arguments: str, timeout: float, **more: str) -> Any:
    """Run a module of this package in a process of its own; the JSON it prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{module}", *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=environment(**more),
        timeout=timeout,
        check=False,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{module} {arguments[0] if arguments else ''} failed: {done.stderr[-600:]}")
    return json.loads(done.stdout)


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(512)
        yield int(listener.getsockname()[1])


def closed_ports(count: int) -> Sequence[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    _close(sockets)
    return ports


def _close(sockets: Iterable[socket.socket]) -> None:
    for one in sockets:
        one.close()

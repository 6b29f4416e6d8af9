"""Fixtures that every room's tests may use."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.rig import Sshd

# Whoever runs the tests may have keys of real providers in his home: no test asks those.
os.environ["RGT_NO_ACCOUNTS"] = "1"
# pytest's readline leaves a size in the C environment, which would be that of every terminal of the tests.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
    os.unsetenv(name)

# nohup and a shell's `&` make what they start ignore signals, and so would every program that a test starts.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

TOGETHER = ("slurm",)
"""Rooms whose tests share what is dear to start: one process does all of such a room."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several processes (``-n 2 --dist loadgroup``) the tests of a file stay in one, as do fixtures."""
    rooms = Path(__file__).parent
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            path = item.path.relative_to(rooms)
            group = path.parts[0] if path.parts[0] in TOGETHER else str(path.with_suffix(""))
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture
def sshd_factory(tmp_path: Path) -> Iterator[Callable[..., Sshd]]:
    """Start OpenSSH servers with options (see `Sshd.start`); all are ended with the test."""
    running: list[Sshd] = []

    def start(**options: object) -> Sshd:
        server = Sshd.start(tmp_path / f"sshd{len(running)}", **options)  # type: ignore[arg-type]
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def sshd(sshd_factory: Callable[..., Sshd]) -> Sshd:
    """A real OpenSSH server on loopback that lets the current user in with `client_key`."""
    return sshd_factory()

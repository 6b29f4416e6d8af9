"""Ports of a box on this computer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.box.boxes import Desk, instance
from tests.rig import Sshd
from tui.box.transport import LinkLost
from tui.model.failure import Failure

pytestmark = pytest.mark.real


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.read(100))
    await writer.drain()
    writer.close()


async def test_a_port_is_forwarded_and_closed(sshd: Sshd, tmp_path: Path) -> None:
    service = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = service.sockets[0].getsockname()[1]
    box = await Desk(tmp_path).connector().connect(instance(sshd))
    forward = await box.forward_local(port)
    assert (forward.port, await forward.problem()) == (port, None)
    reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port)
    writer.write(b"hello")
    assert await reader.read() == b"hello"
    writer.close()
    await forward.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", forward.local_port)
    service.close()
    await box.close()


async def test_what_stands_in_the_way_is_said(sshd: Sshd, tmp_path: Path) -> None:
    box = await Desk(tmp_path).connector().connect(instance(sshd))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        free_on_box = taken.getsockname()[1]
        with pytest.raises(Failure, match="cannot be used"):
            await box.forward_local(6006, free_on_box)
    forward = await box.forward_local(free_on_box)
    problem = await forward.problem()
    assert problem is not None
    assert problem.code == "nothing-listens"
    with pytest.raises(Failure, match="no pair of ports"):
        await box.forward_local(0)
    sshd.kill_sessions()
    await asyncio.wait_for(box.wait_closed(), 20)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", forward.local_port)
    with pytest.raises(LinkLost):
        await box.forward_local(6006)
    await box.close()


async def test_a_box_that_forbids_it(sshd_factory: Callable[..., Sshd], tmp_path: Path) -> None:
    server = sshd_factory(extra_config=["AllowTcpForwarding no"])
    box = await Desk(tmp_path).connector().connect(instance(server))
    problem = await (await box.forward_local(6006)).problem()
    assert problem is not None
    assert problem.code == "forwarding-forbidden"
    await box.close()

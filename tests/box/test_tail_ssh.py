"""The log follower over a real sshd whose sessions are killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.box.boxes import Desk, instance
from tests.box.tail_box import Watcher, numbered_lines, write
from tests.real import need
from tests.rig import Sshd
from tui.box.errors import ConnectFailure
from tui.box.transport import Script, Transport
from tui.model.command import SearchLog
from tui.model.log import SearchResult

pytestmark = pytest.mark.real


async def linked(server: Sshd, desk: Desk) -> Transport:
    """A new connection; a server that has just lost its sessions may need another try."""
    for _ in range(20):
        try:
            return await desk.connector().connect(instance(server))
        except ConnectFailure:
            await asyncio.sleep(0.1)
    raise AssertionError("no connection in 20 tries")


async def numbered(server: Sshd, tmp_path: Path, total: int) -> Watcher:
    desk = Desk(tmp_path)
    watch = Watcher(await linked(server, desk), str(server.home / "train.log"), tmp_path / "spool")

    async def again() -> Transport:
        return await linked(server, desk)

    await numbered_lines(server.home / "train.log", total, watch, server.kill_sessions, again)
    return watch


@pytest.mark.timeout(90)
async def test_numbered_lines_through_killed_sessions(sshd: Sshd, tmp_path: Path) -> None:
    watch = await numbered(sshd, tmp_path, 100_000)
    assert len(watch.gaps) == 1


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_million_lines_through_killed_sessions(sshd: Sshd, tmp_path: Path) -> None:
    await numbered(sshd, tmp_path, 1_000_000)


@pytest.mark.parametrize("shell", ["fish", "bash"])
async def test_login_shells_and_what_they_print(
    sshd_factory: Callable[..., Sshd], tmp_path: Path, shell: str
) -> None:
    greeting = "echo 'welcome to the box'; echo begin"
    server = sshd_factory(rc_text=greeting, login_shell=need(shell)[shell])
    box = await linked(server, Desk(tmp_path))
    write(server.home / "train.log", "one")
    async with Watcher(box, "~/train.log", tmp_path / "spool") as watch:
        await watch.seen("one")
        write(server.home / "train.log", "two")
        await watch.seen("two")
    assert watch.lines == ["one", "two"]


async def test_a_closed_follower_leaves_nothing(sshd: Sshd, tmp_path: Path) -> None:
    box = await linked(sshd, Desk(tmp_path))
    write(sshd.home / "train.log", "one")
    before = len(sshd.processes())
    async with Watcher(box, "~/train.log", tmp_path / "spool") as watch:
        await watch.seen("one")
        assert len(sshd.processes()) > before
    async with asyncio.timeout(20):
        while len(sshd.processes()) > before:
            await asyncio.sleep(0.05)
    assert (await box.run(Script("echo alive"))).stdout == b"alive\n"
    assert [f.name for f in sshd.home.iterdir() if not f.name.startswith(".")] == ["train.log"]


async def test_search_over_ssh(sshd: Sshd, tmp_path: Path) -> None:
    box = await linked(sshd, Desk(tmp_path))
    log = sshd.home / "it's.log"
    write(log, *[f"{n} it's {n % 7}" for n in range(50_000)])
    async with Watcher(box, "~/it's.log", tmp_path / "spool") as watch:
        await watch.seen("49999 it's 5")
        read = len(watch.lines)
        assert read < 30_000, "only the end is read at first"
        told: list[SearchResult] = []
        wanted = SearchLog("run", "1234 it's", ignore_case=False)
        result = await watch.follower.search(box, wanted, told.append)
    assert [hit.text for hit in result.hits] == [
        f"{n} it's {n % 7}" for n in (41234, 31234, 21234, 11234, 1234)
    ]
    assert result.complete and result.covered.startswith(f"lines 1-{read:,} on this computer; bytes 0-")

"""Several logs over one channel: where a server allows few sessions, every log is followed all the same."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.box.boxes import Desk as OperatorsDesk
from tests.box.boxes import instance
from tests.box.tail_box import SHELLS, ShellBox, Watcher, numbered_lines, write
from tests.rig import Sshd
from tui.box.tail import desk as desk_module
from tui.box.tail.desk import OWN_CHANNELS, Desk
from tui.box.tail.wire import SLOTS, spelled
from tui.box.transport import Channel, LinkLost, Script, SessionsExhausted, Transport

ECHO_LINES = Script("while read -r l; do echo $l; done")


class NarrowBox(ShellBox):
    """A box that allows `sessions` at a time."""

    sessions = 1

    async def open(self, script: Script, *, timeout: float = 15.0) -> Channel:
        if self.open_now >= self.sessions:
            raise SessionsExhausted("no further session")
        return await super().open(script, timeout=timeout)

    @property
    def open_now(self) -> int:
        return sum(channel.exit is None for channel in self.channels)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def watchers(box: Transport, tmp_path: Path, names: list[str], *, hold: str = "") -> list[Watcher]:
    desk = Desk(box)
    return [Watcher(box, name, tmp_path / f"spool{n}", hold=hold, desk=desk) for n, name in enumerate(names)]


@contextlib.asynccontextmanager
async def all_of(watches: list[Watcher]):  # type: ignore[no-untyped-def]
    async with contextlib.AsyncExitStack() as stack:
        for watch in watches:
            await stack.enter_async_context(watch)
        yield


@pytest.mark.parametrize("hold", ["", "name"])
@pytest.mark.parametrize("shell", SHELLS)
async def test_three_logs_over_one_session(home: Path, tmp_path: Path, shell: str, hold: str) -> None:
    names = ["a.log", "with blank.log", "sub/-c%b\\n.log"]
    (home / "sub").mkdir()
    box = NarrowBox(home, shell)
    watches = watchers(box, tmp_path, names, hold=hold)
    for name in names[:2]:
        write(home / name, f"{name} 1")
    async with all_of(watches):
        for watch, name in zip(watches[:2], names, strict=False):
            await watch.seen(f"{name} 1")
        write(home / names[2], f"{names[2]} 1")  # a path that appears later
        (home / names[0]).rename(home / "a.log.1")
        write(home / "a.log.1", f"{names[0]} 2")  # held open beyond its name
        write(home / names[0], f"{names[0]} 3")
        write(home / names[1], f"{names[1]} 2")
        await watches[0].seen("a.log 3")
        await watches[1].seen(f"{names[1]} 2")
        await watches[2].seen(f"{names[2]} 1")
        assert box.open_now == len(box.channels) == 1
    assert watches[0].lines == ["a.log 1", "a.log 2", "a.log 3"]
    assert watches[1].lines == [f"{names[1]} 1", f"{names[1]} 2"]
    assert box.open_now == 0


@pytest.mark.timeout(60)
async def test_no_line_is_lost_or_doubled_where_logs_take_turns(home: Path, tmp_path: Path) -> None:
    box = NarrowBox(home)
    names = ["a/train.log", "b/train.log", "c/train.log"]
    for name in names:
        (home / name).parent.mkdir()
    watches = watchers(box, tmp_path, names)

    async def again() -> Transport:
        return box

    await asyncio.gather(
        *(
            numbered_lines(home / name, 20_000, watch, box.cut, again, seed=n)
            for n, (name, watch) in enumerate(zip(names, watches, strict=True))
        )
    )
    assert all(len(watch.gaps) <= 1 for watch in watches)


async def test_who_leaves_lets_go_of_the_file_and_disturbs_nobody(home: Path, tmp_path: Path) -> None:
    box = NarrowBox(home)
    stays, leaves = watchers(box, tmp_path, ["stays.log", "leaves.log"])
    for name in ("stays.log", "leaves.log"):
        write(home / name, "one")
    async with stays:
        async with leaves:
            await stays.seen("one")
            await leaves.seen("one")
            held = Path(f"/proc/{box.channels[0].process.pid}/fd")
            assert str(home / "leaves.log") in _targets(held)
        async with asyncio.timeout(20):
            while str(home / "leaves.log") in _targets(held):
                await asyncio.sleep(0.05)
        write(home / "stays.log", "two")
        await stays.seen("two")
    assert stays.lines == ["one", "two"]


def _targets(folder: Path) -> list[str]:
    return [os.readlink(one) for one in folder.iterdir()]


async def test_logs_take_three_sessions_and_share_them_after_that(home: Path, tmp_path: Path) -> None:
    box = NarrowBox(home)
    box.sessions = 100
    names = [f"{n}.log" for n in range(OWN_CHANNELS * 2 + 1)]
    for name in names:
        write(home / name, name)
    watches = watchers(box, tmp_path, names)
    async with all_of(watches):
        for watch, name in zip(watches, names, strict=True):
            await watch.seen(name)
        assert box.open_now == OWN_CHANNELS


async def test_a_full_channel_is_no_place_and_one_more_is_opened(home: Path) -> None:
    box = NarrowBox(home)
    desk = Desk(box)
    seats = [await desk.seat("r", f"{n}.log") for n in range(len(SLOTS))]
    with pytest.raises(SessionsExhausted):
        await desk.seat("r", "more.log")
    box.sessions = 2
    seats.append(await desk.seat("r", "more.log"))
    assert (await seats[-1].open()).word == "absent"
    for seat in seats:
        await seat.leave()
    assert box.open_now == 0


async def test_a_session_is_given_back_to_who_finds_none(home: Path, tmp_path: Path) -> None:
    box = NarrowBox(home)
    box.sessions = 2
    watches = watchers(box, tmp_path, ["a.log", "b.log"])
    write(home / "a.log", "one")
    write(home / "b.log", "one")
    async with all_of(watches):
        for watch in watches:
            await watch.seen("one")
        assert box.open_now == 2
        assert watches[0].desk is not None
        await watches[0].desk.spare()
        probe = await box.open(ECHO_LINES)
        write(home / "b.log", "two")
        await watches[1].seen("two")
        assert box.open_now == 2  # the probe's and the one of both logs
        await watches[0].desk.spare()  # the last channel stays
        write(home / "a.log", "two")
        await watches[0].seen("two")
        await probe.close()


async def test_a_log_that_hangs_sits_alone_afterwards(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "OWN_CHANNELS", 1)
    monkeypatch.setattr("tui.box.tail.wire.ANSWER_WITHIN", 0.5)
    box = NarrowBox(home)
    box.sessions = 2
    (home / "dead").symlink_to("/proc/self/mem")
    hangs, well = watchers(box, tmp_path, ["hangs.log", "well.log"])
    real = hangs.follower._read_on

    async def read_on(remote, emit, state):  # type: ignore[no-untyped-def]
        raise TimeoutError if well.lines == ["one"] and not hangs.lines else await real(remote, emit, state)

    monkeypatch.setattr(hangs.follower, "_read_on", read_on)
    write(home / "well.log", "one")
    async with well:
        await well.seen("one")
        async with hangs:
            await hangs.until(lambda: hangs.follower._silenced)
            await hangs.until(lambda: len(box.channels) >= 2)  # its own, whoever else is there
            write(home / "well.log", "two")
            await well.seen("two")
    assert well.lines == ["one", "two"]


def test_a_path_is_spelled_without_blanks() -> None:
    assert spelled("a b/\n%\\é~.log") == r"a\0040b/\0012\0045\0134\0303\0251~.log"
    assert spelled("\udcff") == r"\0377"


@pytest.mark.real
async def test_three_logs_and_a_probe_where_sshd_allows_two_sessions(
    sshd_factory: Callable[..., Sshd], tmp_path: Path
) -> None:
    server = sshd_factory(max_sessions=2)
    box = await OperatorsDesk(tmp_path).connector().connect(instance(server))
    probe = await box.open(ECHO_LINES)
    names = ["a.log", "b.log", "c.log"]
    for name in names:
        write(server.home / name, f"{name} 1")
    watches = watchers(box, tmp_path, [str(server.home / name) for name in names])
    async with all_of(watches):
        for turn in (1, 2):
            for watch, name in zip(watches, names, strict=True):
                await watch.seen(f"{name} {turn}")
                write(server.home / name, f"{name} {turn + 1}")
        await probe.write(b"here\n")
        assert await probe.read() == b"here\n"
    assert watches[2].lines[:2] == ["c.log 1", "c.log 2"]
    with pytest.raises(LinkLost):
        await box.close()
        await box.open(ECHO_LINES)

"""Commands and channels over a real sshd, and what becomes of them when it misbehaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.box.boxes import QUICK, Desk, instance
from tests.real import need
from tests.rig import Sshd
from tui.box.errors import CommandRefused
from tui.box.timing import Timing
from tui.box.transport import LinkLost, Script, SessionsExhausted, Transport

pytestmark = pytest.mark.real

ECHO_LINES = Script('while read -r line; do echo "<$line>"; done', why="echo lines")
SLEEP = Script("sleep 300", why="sleep")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def gone(server: Sshd, seconds: float = 20.0) -> bool:
    """Whether the box has no process of ours left within `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not server.processes():
            return True
        await asyncio.sleep(0.05)
    return False


async def test_output_status_stdin_and_bytes(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    typed: Transport = box  # the interface is met
    done = await typed.run(
        Script(
            'cat; printf "%s|" "$@"; echo oops >&2; exit 3',
            ("it's", b"\xff\xfe", "two\nlines", "中"),
            why="try",
        ),
        stdin=b"\x00\xff\n",
    )
    assert done.exit == 3
    assert done.stdout == b"\x00\xff\nit's|\xff\xfe|two\nlines|\xe4\xb8\xad|"  # T2: no byte kills the link
    assert done.stderr == b"oops\n"
    assert (await box.run(Script("kill -9 $$"))).exit == 137
    assert desk.records[0].exit == 3
    assert desk.records[0].why == "try"
    assert "it" in desk.records[0].what
    await box.close()
    assert await box.wait_closed() is None


async def test_large_input_and_limited_output(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    data = bytes(range(256)) * 4096
    assert (await box.run(Script("cat"), stdin=data, limit=2 << 20)).stdout == data
    cut = await box.run(Script("cat"), stdin=data, limit=1000)
    assert (cut.stdout, cut.truncated, cut.exit) == (data[:1000], True, 0)
    ignored = await box.run(Script("exit 4"), stdin=b"not read")
    assert ignored.exit == 4
    await box.close()


async def test_deadline_ends_the_command_on_the_box(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    with pytest.raises(TimeoutError, match="sleep"):
        await box.run(Script("sleep 300 | cat", why="sleep"), timeout=0.3)
    assert desk.records[-1].exit is None
    assert "0.3" in desk.records[-1].note
    assert await gone(sshd)
    assert (await box.run(Script("echo still here"))).stdout == b"still here\n"
    await box.close()


async def test_a_cut_in_mid_run_is_a_lost_link_and_never_a_result(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    channel = await box.open(ECHO_LINES)
    running = asyncio.ensure_future(box.run(Script("echo part; sleep 300", why="long one")))
    reading = asyncio.ensure_future(channel.read())
    await asyncio.sleep(0.3)
    sshd.kill_sessions()
    with pytest.raises(LinkLost, match="long one"):  # T1: asyncssh itself returns normally here
        await running
    with pytest.raises(LinkLost):
        await reading
    with pytest.raises(LinkLost):
        await channel.write(b"x")
    with pytest.raises(LinkLost):
        await box.run(Script(":"))
    lost = await asyncio.wait_for(box.wait_closed(), 20)
    assert lost is not None
    assert "box" in lost.what
    assert desk.records[-1].exit is None
    await box.close()
    assert await gone(sshd), sshd.processes()  # T4: the box cleaned up by itself


async def test_bytes_that_a_cut_took_are_missed_although_the_exit_code_came(sshd: Sshd, desk: Desk) -> None:
    """The box has sent everything and ended with 0; the link is cut before anybody has read it."""
    box = await desk.connector().connect(instance(sshd))
    channel = await box.open(Script("head -c 1500000 /dev/zero", why="a megabyte"))
    end = time.monotonic() + 10
    while (ended := channel.exit) is None:
        assert time.monotonic() < end, "the exit code never came"
        await asyncio.sleep(0.02)
    assert ended == 0
    sshd.kill_sessions()
    await asyncio.wait_for(box.wait_closed(), 20)
    got = 0
    with pytest.raises(LinkLost):
        while block := await channel.read():
            got += len(block)
    assert got < 1_500_000
    assert channel.exit is None
    await box.close()


async def test_our_own_close_leaves_nothing_on_the_box(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    await box.open(Script("sleep 300 | cat"))
    await box.open(Script("trap '' TERM; sleep 300"))
    running = asyncio.ensure_future(box.run(SLEEP))
    await asyncio.sleep(0.2)
    assert len(sshd.processes()) > 5
    began = time.monotonic()
    await box.close()
    assert time.monotonic() - began < 5
    with pytest.raises(LinkLost):
        await running
    assert await gone(sshd), sshd.processes()


async def test_half_open_is_noticed_by_keep_alive(sshd: Sshd, desk: Desk) -> None:
    desk.timing = QUICK
    box = await desk.connector().connect(instance(sshd))
    channel = await box.open(ECHO_LINES)
    sshd.freeze()
    began = time.monotonic()
    with pytest.raises(LinkLost):
        await channel.read()
    took = time.monotonic() - began
    assert 0.7 < took < 20, took  # 0.4 s × (2 + 1)
    await box.close()
    sshd.thaw()
    assert await gone(sshd)


async def test_a_pause_shorter_than_keep_alive_drops_nothing(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    channel = await box.open(ECHO_LINES)
    sshd.freeze()
    await asyncio.sleep(0.5)
    sshd.thaw()
    await channel.write(b"back\n")
    assert await channel.read() == b"<back>\n"
    assert await box.alive()
    await box.close()


async def test_after_sleep_a_dead_link_is_dropped_at_once(sshd: Sshd, tmp_path: Path) -> None:
    box = await Desk(tmp_path, timing=Timing()).connector().connect(instance(sshd))
    sshd.freeze()
    assert not await box.alive(timeout=0.3)
    assert await asyncio.wait_for(box.wait_closed(), 10) is not None
    await box.close()


async def test_closing_is_quick_when_the_box_hangs(sshd: Sshd, tmp_path: Path) -> None:
    box = await Desk(tmp_path, timing=Timing()).connector().connect(instance(sshd))
    channel = await box.open(ECHO_LINES)
    sshd.freeze()
    began = time.monotonic()
    await box.close()
    assert time.monotonic() - began < 1.5
    await channel.close()
    assert await channel.read() == b""


async def test_the_session_limit_is_told_and_the_connection_survives(
    sshd_factory: Callable[..., Sshd], desk: Desk
) -> None:
    server = sshd_factory(max_sessions=2)
    box = await desk.connector().connect(instance(server))
    first, second = await box.open(ECHO_LINES), await box.open(ECHO_LINES)
    with pytest.raises(SessionsExhausted):
        await box.run(Script(":"))
    await second.close()
    for _ in range(50):  # T5: a closed channel has given its session back
        channel = await box.open(Script("sleep 300 & wait"))
        await channel.close()
    await first.write(b"alive\n")
    assert await first.read() == b"<alive>\n"
    await box.close()
    assert await gone(server)


async def test_more_commands_than_sessions_wait_their_turn(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    results = await asyncio.gather(*(box.run(Script("echo $1", (str(n),))) for n in range(40)))
    assert [r.stdout for r in results] == [b"%d\n" % n for n in range(40)]
    await box.close()


async def test_not_reading_holds_the_box_back(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    channel = await box.open(
        Script(
            'n=0; while :; do printf "%01048576d" 0; n=$((n + 1)); echo $n >"$1"; done',
            (str(desk.tmp / "n"),),
        )
    )
    await asyncio.sleep(1.0)
    sent = int((desk.tmp / "n").read_text() or 0)
    await asyncio.sleep(0.5)
    assert int((desk.tmp / "n").read_text()) == sent  # it stands still
    assert sent <= 3
    got = 0
    while got < 20 << 20:
        got += len(await channel.read())
    assert got >= 20 << 20  # and goes on when somebody reads
    await channel.close()
    assert await channel.read() == b""
    await box.close()


async def test_a_giant_line_arrives_whole(sshd: Sshd, desk: Desk) -> None:
    """T12: asyncssh's readline would split it silently; we hand out bytes and leave lines to the caller."""
    box = await desk.connector().connect(instance(sshd))
    channel = await box.open(Script("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end"))
    data = b""
    while chunk := await channel.read():
        data += chunk
    assert data == b"x" * 5000000 + b"\nend\n"
    assert channel.exit == 0
    assert (desk.records[-1].exit, desk.records[-2].exit, desk.records[-2].took_s) == (0, None, None)
    await box.close()


async def test_a_login_shell_that_prints(sshd_factory: Callable[..., Sshd], desk: Desk) -> None:
    server = sshd_factory(rc_text="echo Welcome; echo 'disk 80% full' >&2; printf '<rgt:no newline'")
    box = await desk.connector().connect(instance(server))
    done = await box.run(Script("echo ours; echo theirs >&2"))
    assert (done.stdout, done.stderr) == (b"ours\n", b"theirs\n")
    channel = await box.open(ECHO_LINES)
    await channel.write(b"a\n")
    assert await channel.read() == b"<a>\n"
    await box.close()


async def test_fish_as_login_shell(sshd_factory: Callable[..., Sshd], desk: Desk) -> None:
    server = sshd_factory(login_shell=need("fish")["fish"])
    box = await desk.connector().connect(instance(server))
    done = await box.run(Script('a=1; printf "%s\\n" "$a" "$1"', ("back\\slash 'quote' $HOME",)))
    assert done.stdout == b"1\nback\\slash 'quote' $HOME\n"
    channel = await box.open(SLEEP)
    await channel.close()
    await box.close()
    assert await gone(server)


@pytest.mark.parametrize("shell", ("dash", "busybox"))
async def test_the_box_has_only_a_small_shell(
    shell: str, sshd_factory: Callable[..., Sshd], desk: Desk
) -> None:
    sh = desk.tmp / "sh"  # busybox decides by its name what it is
    sh.symlink_to(need(shell)[shell])
    server = sshd_factory(login_shell=str(sh))
    box = await desk.connector().connect(instance(server))
    assert (await box.run(Script('echo "$1"', ("x",)))).stdout == b"x\n"
    await box.close()


async def test_a_login_that_runs_no_commands_says_so(sshd_factory: Callable[..., Sshd], desk: Desk) -> None:
    server = sshd_factory(rc_text="echo 'This account is currently not available.'; exit 1")
    box = await desk.connector().connect(instance(server))
    with pytest.raises(CommandRefused, match="currently not available"):
        await box.run(Script("echo never"))
    with pytest.raises(CommandRefused):
        await box.open(ECHO_LINES)
    await box.close()


async def test_a_cancelled_run_ends_on_the_box_and_frees_its_session(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    for delay in (0.0, 0.001, 0.004, 0.1):
        running = asyncio.ensure_future(box.run(SLEEP))
        await asyncio.sleep(delay)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert await gone(sshd)
    await asyncio.gather(*(box.run(Script(":")) for _ in range(9)))
    await box.close()


async def test_a_hundred_small_commands_leak_nothing(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    for _ in range(10):
        await asyncio.gather(*(box.run(Script("echo hi | cat")) for _ in range(10)))
    assert await gone(sshd)
    assert not box._background
    await box.close()

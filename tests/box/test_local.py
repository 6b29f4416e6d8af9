"""This computer as a box."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tui.box.local import LocalTransport
from tui.box.transport import LinkLost, Script, Transport
from tui.model.command import CommandRecord


async def test_output_status_and_input() -> None:
    records: list[CommandRecord] = []
    local: Transport = LocalTransport(on_command=records.append)
    done = await local.run(
        Script('cat; printf "%s|" "$@"; echo oops >&2; exit 3', (b"\xff", "it's\n"), "try"), stdin=b"\0in"
    )
    assert (done.exit, done.stdout, done.stderr) == (3, b"\0in\xff|it's\n|", b"oops\n")
    assert (records[0].box, records[0].exit, records[0].why) == ("local", 3, "try")
    assert (await local.run(Script("kill -9 $$"))).exit == 137
    cut = await local.run(Script("head -c 300000 /dev/zero"), limit=1000)
    assert (len(cut.stdout), cut.truncated) == (1000, True)
    assert (await local.run(Script("exit 4"), stdin=b"x" * 1_000_000)).exit == 4


async def test_a_deadline_ends_the_whole_group() -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="stuck"):
        await LocalTransport().run(Script('sleep "$1" | cat', (f"4{os.getpid()}",), "stuck"), timeout=0.2)
    assert time.monotonic() - began < 20
    assert not _running(f"sleep 4{os.getpid()}")


async def test_a_channel() -> None:
    records: list[CommandRecord] = []
    local = LocalTransport(on_command=records.append)
    channel = await local.open(Script('while read -r l; do echo "<$l>"; done; exit 5'))
    await channel.write(b"a\n")
    assert await channel.read() == b"<a>\n"
    assert channel.exit is None
    await channel.close()
    assert await channel.read() == b""
    with pytest.raises(LinkLost):
        await channel.write(b"b\n")
    ended = await local.open(Script("echo bye; echo why >&2; exit 5"))
    assert await ended.read() == b"bye\n"
    assert await ended.read() == b""
    assert (ended.exit, ended.stderr) == (5, b"why\n")
    await ended.close()
    assert [r.exit for r in records] == [None, None, None, 5]


async def test_not_reading_holds_the_command_back(tmp_path: Path) -> None:
    counter = tmp_path / "n"
    source = 'n=0; while :; do printf "%0102400d" 0; n=$((n + 1)); echo $n >"$1"; done'
    channel = await LocalTransport().open(Script(source, (str(counter),)))
    await asyncio.sleep(0.5)
    sent = counter.read_text()
    await asyncio.sleep(0.3)
    assert counter.read_text() == sent
    assert int(sent) < 20
    await channel.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see what is left")
def test_a_killed_program_leaves_nothing_running() -> None:
    sleep = f"sleep 3{os.getpid()}"  # like no other on this machine
    program = (
        "import asyncio\nfrom tui.box.local import LocalTransport\nfrom tui.box.transport import Script\n"
        "async def main():\n"
        f"    channel = await LocalTransport().open(Script('{sleep}'))\n"
        "    print('up', flush=True)\n    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert _within(5, lambda: _running(sleep))
        os.kill(process.pid, signal.SIGKILL)
        assert _within(5, lambda: not _running(sleep))
    finally:
        process.kill()
        process.communicate()


def _within(seconds: float, true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _running(command: str) -> bool:
    wanted = command.replace(" ", "\0").encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(wanted):
                return True
        except OSError:
            continue
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see what is left")
async def test_a_start_that_is_given_up_ends_in_time_and_leaves_nothing() -> None:
    mark = f"rgt-given-up-{os.getpid()}"
    for step in range(40):
        opening = asyncio.ensure_future(LocalTransport().open(Script("sleep 60; : $1", (mark,))))
        began = time.monotonic()
        while not opening.done() and time.monotonic() - began < step * 0.0005:
            await asyncio.sleep(0)
        opening.cancel()
        done, _ = await asyncio.wait({opening}, timeout=8)
        assert done, f"cancelled after {step / 2} ms"
        if not opening.cancelled():
            await opening.result().close()
    deadline = time.monotonic() + 10  # the frame gives what it ends a second to tidy up
    while left := [name for name in os.listdir("/proc") if name.isdigit() and mark in _command(name)]:
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.1)


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""

"""A transport over something that carries processes, and loses them with any status."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tui.box.cluster import start
from tui.box.kubectl import _Exec
from tui.box.relayed import RelayedTransport
from tui.box.transport import LinkLost, Script
from tui.model.command import CommandRecord
from tui.model.failure import Failure


class Carrier:
    """Runs what it is given on this computer; `breaks` makes it say something and end with that status."""

    def __init__(self, *before: str) -> None:
        self.before = before
        self.carried: list[_Exec] = []
        self.pids: list[int] = []

    async def __call__(self, argv: list[bytes], why: str) -> _Exec:
        process = await start([*self.before, *argv])
        self.pids.append(process.pid)
        self.carried.append(_Exec(process, why))
        return self.carried[-1]


def never(said: str) -> Failure:
    return Failure(f"Nothing ran: {said.strip()}")


@pytest.fixture
def records() -> list[CommandRecord]:
    return []


def box(carrier: Carrier, records: list[CommandRecord] | None = None) -> RelayedTransport:
    told = records.append if records is not None else lambda record: None
    return RelayedTransport("job", carrier, never, on_command=told)


async def test_status_output_and_words_come_back_as_they_are() -> None:
    script = Script('printf %s "$1"; cat; printf err >&2; exit 7', ("a b\n'x$(y)",), "words")
    done = await box(Carrier()).run(script, stdin=b"\0in\n")
    assert (done.exit, done.stdout, done.stderr) == (7, b"a b\n'x$(y)\0in\n", b"err")


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
async def test_every_shell_that_a_container_brings(shell: str, tmp_path: Path) -> None:
    found = Path("/bin") / shell
    if not found.exists():
        found = Path("/usr/bin") / shell
    if not found.exists():
        pytest.skip(f"no {shell} here")
    # The carrier's /bin/sh is the one of the container: put the shell in its place.
    words = (str(found), "sh") if shell == "busybox" else (str(found),)

    class Other(Carrier):
        async def __call__(self, argv: list[bytes], why: str) -> _Exec:
            process = await start([*words, *argv[1:]])
            self.carried.append(_Exec(process, why))
            return self.carried[-1]

    done = await box(Other()).run(Script("cat; exit 9"), stdin=b"x" * 300_000)
    assert (done.exit, len(done.stdout)) == (9, 300_000)


async def test_input_that_nobody_reads_does_not_hold_the_answer_back() -> None:
    done = await box(Carrier()).run(Script("echo done"), stdin=b"x" * 200_000)
    assert (done.exit, done.stdout) == (0, b"done\n")


async def test_output_is_cut_at_the_limit_and_said() -> None:
    done = await box(Carrier()).run(Script("head -c 100000 /dev/zero"), limit=1000)
    assert (len(done.stdout), done.truncated, done.exit) == (1000, True, 0)


async def test_a_carrier_that_dies_is_a_lost_link_and_no_failed_command() -> None:
    """Also where a child of its own holds its pipes open."""
    carrier = Carrier()
    channel = await box(carrier).open(Script('sh -c "echo \\$\\$; exec sleep 60"; exit', why="long"))
    child = int(await channel.read())
    os.kill(carrier.pids[0], signal.SIGKILL)
    async with asyncio.timeout(30):
        with pytest.raises(LinkLost, match="long"):
            await channel.read()
    assert channel.exit is None
    os.kill(child, signal.SIGKILL)
    await channel.close()


async def test_what_the_carrier_says_after_the_script_is_not_the_scripts() -> None:
    after = Carrier("/bin/sh", "-c", '"$@"; echo "srun: error: task 0 exited" >&2; exit 1', "carrier")
    done = await box(after).run(Script("echo mine >&2; exit 3"))
    assert (done.exit, done.stderr) == (3, b"mine\n")


async def test_a_refusal_is_told_in_the_carriers_words() -> None:
    with pytest.raises(Failure, match="Nothing ran: pods not found"):
        await box(Carrier("/bin/sh", "-c", "echo pods not found >&2; exit 1")).run(Script("echo hi"))


async def test_a_deadline_ends_what_runs_there(tmp_path: Path, records: list[CommandRecord]) -> None:
    transport, pid_file = box(Carrier(), records), tmp_path / "pid"
    with pytest.raises(TimeoutError):
        await transport.run(Script('echo $$ >"$1"; exec sleep 60', (str(pid_file),)), timeout=0.7)
    pid = int(pid_file.read_text())
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists():
            break
        await asyncio.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists()
    assert "no answer within" in str(records[-1].note)


async def test_closing_a_channel_ends_the_whole_group(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    channel = await box(Carrier()).open(Script('sleep 60 & echo $! >"$1"; echo ok; wait', (str(pid_file),)))
    assert await channel.read() == b"ok\n"
    await channel.close()
    pid = int(pid_file.read_text())
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it lives on")


async def test_a_channel_talks_both_ways_and_ends_regularly(records: list[CommandRecord]) -> None:
    channel = await box(Carrier(), records).open(
        Script("while read -r x; do echo got $x; [ $x != end ] || exit 4; done")
    )
    await channel.write(b"one\n")
    assert await channel.read() == b"got one\n"
    await channel.write(b"end\n")
    assert await channel.read() == b"got end\n"
    assert await channel.read() == b""
    assert channel.exit == 4
    await channel.close()
    assert records[-1].exit == 4


class Process:
    """A carrier's process in a test's hands."""

    def __init__(self) -> None:
        self.stdin, self.stdout, self.stderr = None, asyncio.StreamReader(), asyncio.StreamReader()
        self.returncode: int | None = None

    async def wait(self) -> int | None:
        return self.returncode


async def test_what_came_to_a_read_that_was_given_up_belongs_to_the_next_one() -> None:
    """Bytes and the reader's deadline in one turn of the loop; they may be the marker of a begin."""
    process = Process()
    carried = _Exec(process, "look")  # type: ignore[arg-type]
    for _ in range(2):
        given_up = asyncio.ensure_future(carried.read())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        process.stdout.feed_data(b"marker")
        await asyncio.sleep(0)  # the stream has given it away by now
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert await carried.read() == b"marker"
    process.stdout.feed_eof()
    process.stderr.feed_eof()
    process.returncode = 0
    assert await carried.read() == b""
    await carried.close()


async def test_output_of_a_carrier_that_ends_with_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends within the silence that is waited for: its last words count all the same."""
    monkeypatch.setattr("tui.box.kubectl._SILENT_S", 0.05)
    process = Process()
    carried = _Exec(process, "look")  # type: ignore[arg-type]
    reading = asyncio.ensure_future(carried.read())
    await asyncio.sleep(0.04)
    process.returncode = 0
    await asyncio.sleep(0.03)  # one silence is over; it was not a whole one since the end
    assert not reading.done()
    process.stdout.feed_data(b"marker and all")
    assert await reading == b"marker and all"
    assert await carried.read() == b""
    await carried.close()


async def test_a_script_that_ends_before_it_took_its_stdin_tells_its_status() -> None:
    done = await box(Carrier()).run(Script("exec <&-; echo no; exit 9"), stdin=b"x" * 4_000_000, timeout=60)
    assert (done.exit, done.stdout) == (9, b"no\n")

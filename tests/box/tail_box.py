"""A box that is only a shell on this computer, with links to cut, and an operator who reads along."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.real import need
from tui.box.tail import Follower, Spool
from tui.box.tail.desk import Desk
from tui.box.transport import Channel, Completed, LinkLost, Script, Transport
from tui.model.log import LogBatch, LogState

SHELLS = ("dash", "bash", "busybox")
_APPLETS = ("ls", "dd", "find", "head", "tail", "grep", "cut", "tr", "wc", "uname", "cat")


class ShellChannel:
    """A process's pipes. `cut` is what a lost link looks like from here, and on the box."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._cut = asyncio.Event()
        self._reading: asyncio.Task[bytes] | None = None

    async def read(self, size: int = 65536) -> bytes:
        assert self.process.stdout is not None
        if self._reading is None:  # one reading outlives whoever gave it up, as in a real channel's buffer
            self._reading = asyncio.ensure_future(self.process.stdout.read(size))
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait({self._reading, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cut.cancel()
        if self._cut.is_set():
            raise LinkLost("the link was cut")
        reading, self._reading = self._reading, None
        return reading.result()

    async def write(self, data: bytes) -> None:
        if self._cut.is_set() or self.process.stdin is None:
            raise LinkLost("the link was cut")
        self.process.stdin.write(data)
        with contextlib.suppress(ConnectionError):
            await self.process.stdin.drain()

    async def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # its dd may be waiting for us to read
        if self._reading is not None:
            await asyncio.wait({self._reading})
            self._reading = None
        await self.process.communicate()

    def cut(self) -> None:
        self._cut.set()

    @property
    def exit(self) -> int | None:
        return self.process.returncode


class ShellBox:
    """A transport. `shell` is one of SHELLS; with busybox all programs are its own too."""

    name = "box"

    def __init__(self, home: Path, shell: str = "dash") -> None:
        self.home = home
        self.channels: list[ShellChannel] = []
        self.down = False
        self._argv = [need(shell)[shell], *(["sh"] if shell == "busybox" else [])]
        self._env = {**os.environ, "HOME": str(home), "TIME_STYLE": "long-iso", "BLOCK_SIZE": "1K"}
        if shell == "busybox":
            programs = home.parent / "busybox"
            programs.mkdir(exist_ok=True)
            for applet in _APPLETS:
                with contextlib.suppress(FileExistsError):
                    (programs / applet).symlink_to(self._argv[0])
            self._env["PATH"] = str(programs)

    async def _start(self, script: Script) -> asyncio.subprocess.Process:
        if self.down:
            raise LinkLost("the box is not reached")
        return await asyncio.create_subprocess_exec(
            *self._argv, *[word.decode() for word in script.argv()[1:]], cwd=self.home, env=self._env,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 20,
            start_new_session=True,
        )  # fmt: skip

    async def open(self, script: Script, *, timeout: float = 15.0) -> Channel:
        channel = ShellChannel(await self._start(script))
        self.channels.append(channel)
        return channel

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        began = time.monotonic()
        process = await self._start(script)
        try:
            out, _ = await process.communicate(stdin)
        except asyncio.CancelledError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()
            raise
        return Completed(
            process.returncode or 0, out[:limit], b"", time.monotonic() - began, len(out) > limit
        )

    def cut(self) -> None:
        for channel in self.channels:
            channel.cut()


class Watcher:
    """Runs a follower, gathers what it emits, and can break and mend its link."""

    def __init__(
        self, box: Transport, path: str, spool_at: Path, *, hold: str = "", desk: Desk | None = None
    ) -> None:
        self.box = box
        self.desk = desk
        self.spool = Spool(spool_at)
        self.follower = Follower("run", path, self.spool, hold=hold)
        self.batches: list[LogBatch] = []
        self.states: list[LogState] = []
        self.lines: list[str] = []
        self.gaps: list[str] = []
        self.partial = ""
        self.base = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Watcher:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        self.spool.close()

    def start(self) -> None:
        following = self.follower.follow(self.box, self._emit, self.states.append, desk=self.desk)
        self._task = asyncio.ensure_future(following)

    @property
    def idle(self) -> bool:
        """Whether the follower gave up because its link is gone."""
        return self._task is not None and self._task.done()

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, LinkLost):
            await self._task

    async def lost(self) -> None:
        """Wait until the follower noticed that its link is gone."""
        assert self._task is not None
        async with asyncio.timeout(10):
            with contextlib.suppress(LinkLost):
                await self._task

    async def until(self, holds: Callable[[], object], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert self._task is not None
            if self._task.done():
                self._task.result()
            assert time.monotonic() < deadline, (self.lines[-5:], self.gaps, self.states[-3:])
            await asyncio.sleep(0.02)

    async def seen(self, line: str, seconds: float = 30.0) -> None:
        await self.until(lambda: line in self.lines[-5000:], seconds)

    async def _emit(self, batch: LogBatch) -> None:
        self.batches.append(batch)
        if batch.lines:
            self.base = self.base if self.lines else batch.first
            assert batch.first == self.base + len(self.lines), "line numbers join"
        gaps = dict(batch.gaps)
        for index, line in enumerate(batch.lines):
            if index in gaps:
                self.gaps.append(line)
            self.lines.append(line)
        self.partial = batch.partial


def write(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))


async def numbered_lines(
    log: Path,
    total: int,
    watch: Watcher,
    cut: Callable[[], object],
    link: Callable[[], Awaitable[Transport]],
    seed: int = 5,
) -> None:
    """Write `total` numbered lines while the link is cut 20 times, the log truncated and rotated once."""
    chance = random.Random(seed)
    faults = sorted(chance.sample(range(1, 200), 22))
    events = dict.fromkeys(faults, "cut")
    events[faults[7]], events[faults[15]] = "truncate", "rotate"
    step = total // 200

    async def writer() -> None:
        for turn in range(200):
            numbers = range(turn * step, (turn + 1) * step)
            text = "".join(f"{n:07d} step loss=2.3456 lr=1.0e-04 tok/s=123456 mem=71.2GiB\n" for n in numbers)
            middle = chance.randrange(len(text))
            for part in (text[:middle], text[middle:]):
                with log.open("a") as file:
                    file.write(part)
                await asyncio.sleep(0)
            event = events.get(turn)
            if event == "cut":
                cut()
            elif event == "truncate":
                os.truncate(log, 0)
            elif event == "rotate":
                log.rename(log.with_name("train.log.1"))
            await asyncio.sleep(chance.random() * 0.03)
        write(log, "END")

    write(log, "START")
    async with watch:
        await watch.seen("START")
        writing = asyncio.ensure_future(writer())
        while not writing.done() or "END" not in watch.lines[-10:]:
            if watch.idle:
                await watch.lost()
                watch.box = await link()
                watch.start()
            await asyncio.sleep(0.02)
        await writing
    check_numbers(watch.lines, watch.gaps, total)


_NUMBERED = re.compile(r"\d{7} step loss=2.3456 lr=1.0e-04 tok/s=123456 mem=71.2GiB")


def check_numbers(lines: list[str], gaps: list[str], total: int) -> None:
    """Each number once and in order, or missing where a gap is declared."""
    expected = 0
    holes = []
    for index, line in enumerate(lines):
        if not _NUMBERED.fullmatch(line):
            continue  # a gap, or the piece of a line whose rest was truncated away
        number = int(line[:7])
        if number != expected:
            assert number > expected, f"{number} is doubled"
            around = lines[max(0, index - 3) : index]
            assert any(a in gaps for a in around), f"{expected}-{number - 1} are lost without a word"
            holes.append((expected, number))
        expected = number + 1
    assert expected == total
    assert len(gaps) <= 1, "only the truncation loses something"
    assert len(holes) <= 1

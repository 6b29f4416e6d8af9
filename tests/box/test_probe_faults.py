"""The probe against what goes wrong: mounts and tools that hang, full inodes, late and cut answers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.box.fuse_rig import mounted
from tests.box.probe_rig import SHELLS, ShellTransport, probing, stand_in, with_path
from tests.real import absent, need
from tui.box.local import LocalTransport
from tui.box.probe.frame import Garbled
from tui.box.probe.loop import Probe, ProbeEnded, ProbeLate
from tui.box.probe.plan import ProbeRequest
from tui.box.transport import Completed, LinkLost, Script
from tui.model.run import RunSpec
from tui.model.telemetry import Filesystem, Telemetry


def disk(telemetry: Telemetry, path: Path) -> Filesystem:
    assert str(path) in [one.mount for one in telemetry.filesystems.value or ()], telemetry.filesystems
    return next(one for one in telemetry.filesystems.value or () if one.mount == str(path))


@pytest.mark.parametrize("shell", ["dash", "busybox ash", "bash"])
async def test_a_mount_that_hangs_delays_nothing_else(shell: str, tmp_path: Path) -> None:
    place = tmp_path / "hung here"
    run = RunSpec("r", "b", log=str(place / "train.log"))
    request = ProbeRequest((run,), (str(place),))
    transport = ShellTransport(shell)
    with mounted(place) as folder:
        async with probing(transport) as probe:
            healthy = await probe.tick(request, gpus=False)
            folder.answering.clear()
            first = await probe.tick(request, gpus=False)
            asked = folder.asked_while_silent
            later = [await probe.tick(request, gpus=False) for _ in range(3)]
            again = folder.asked_while_silent
            children = children_of(transport)
    assert disk(healthy, place).inodes == 500
    assert disk(healthy, place).inodes_used == 400
    assert disk(healthy, place).size_bytes == 1000 * 4096
    for telemetry in (first, *later):
        assert disk(telemetry, place).error == "mount does not answer"
        assert disk(telemetry, place).used_bytes is None
        assert disk(telemetry, Path("/")).used_bytes is not None
        assert telemetry.runs[0].log.value is None
        assert "does not answer" in telemetry.runs[0].log.reason
    assert first.took_s < 5
    assert all(telemetry.took_s < 2 for telemetry in later)  # not started again while the first still hangs
    assert asked == again
    assert children == 0  # of the shell's own; what hangs is nobody's child, and lets go with the mount


def children_of(transport: ShellTransport) -> int:
    pid = transport.channels[0].process.pid
    stats = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    return sum(stat.rpartition(b") ")[2].split()[1] == b"%d" % pid for stat in stats)


async def test_a_mount_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    place = tmp_path / "slow"
    request = ProbeRequest((), (str(place),))
    bin_folder = tmp_path / "bin"
    real = need("df")["df"]
    text = f'case $* in *slow*) while [ -e {tmp_path}/hang ]; do sleep 0.1; done;; esac; exec {real} "$@"'
    stand_in(bin_folder, "df", text)
    place.mkdir()
    with small_tmpfs(place):
        (tmp_path / "hang").touch()
        async with probing(ShellTransport("dash", with_path(bin_folder))) as probe:
            hung = await probe.tick(request, gpus=False)
            (tmp_path / "hang").unlink()
            await asyncio.sleep(0.5)
            back = await probe.tick(request, gpus=False)
    assert disk(hung, place).error == "mount does not answer"
    assert disk(back, place).error == ""
    assert disk(back, place).size_bytes == 1 << 20


@contextmanager
def small_tmpfs(place: Path) -> Iterator[None]:
    mount, umount = need("mount", "umount").values()
    options = "size=1m,nr_inodes=32"
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", options, "rgt-test", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        absent(f"a tmpfs cannot be mounted: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run([umount, "-l", str(place)], check=True)


def filled(place: Path) -> int:
    """Make files until no more can be made; how many there are."""
    for number in range(100):
        try:
            (place / f"{number}").touch()
        except OSError:
            return number
    return 100


@pytest.mark.parametrize("shell", ["dash", "busybox ash"])
async def test_inodes_run_out_while_bytes_are_free(shell: str, tmp_path: Path) -> None:
    place = tmp_path / "data 我"
    place.mkdir()
    with small_tmpfs(place):
        made = filled(place)
        async with probing(ShellTransport(shell)) as probe:
            full = disk(await probe.tick(ProbeRequest(), gpus=False), place)
    assert 0 < made < 32
    assert (full.inodes, full.inodes_used, full.inode_use_pct) == (32, 32, 100)
    assert full.use_pct is not None
    assert full.use_pct < 10
    assert full.fstype == "tmpfs"
    assert full.read_only is False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "limiter"),
    [("dash", "timeout"), ("busybox ash", "none"), ("bash", "timeout"), ("zsh --emulate sh", "none")],
)
async def test_a_tool_that_hangs_is_left_alone_and_ended_with_the_shell(
    shell: str, limiter: str, tmp_path: Path
) -> None:
    mark = f"{tmp_path}/hanging"
    stand_in(tmp_path, "nvidia-smi", f"echo $$ >>{mark}; sleep 61; echo late")
    if limiter == "none":
        stand_in(tmp_path, "timeout", "exit 125")
    transport = ShellTransport(shell, with_path(tmp_path))
    async with probing(transport) as probe:
        first = await probe.tick(ProbeRequest())
        second = await probe.tick(ProbeRequest())
        pids = [int(line) for line in Path(mark).read_text().split()]
        assert alive(pids[0])
    assert first.gpus.value is None
    assert first.gpus.reason == "nvidia-smi does not answer"
    assert first.took_s < 7.5
    assert any(one.mount == "/" and one.used_bytes for one in first.filesystems.value or ())
    assert first.processes.value is not None
    assert second.gpus.value is None
    assert second.took_s < 3.5
    assert len(pids) == 1
    assert not await_sleepers(tmp_path)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


def await_sleepers(folder: Path) -> list[str]:
    """Processes that still run with our folder on their PATH, once the shell has ended."""
    deadline = time.monotonic() + 6
    while True:
        left = [pid for pid in os.listdir("/proc") if pid.isdigit() and has_path(pid, str(folder))]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def has_path(pid: str, folder: str) -> bool:
    try:
        return f"PATH={folder}:".encode() in Path(f"/proc/{pid}/environ").read_bytes() and alive(int(pid))
    except OSError:
        return False


async def test_closing_in_the_middle_of_a_look_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "nvidia-smi", f"echo $$ >>{tmp_path}/hanging; sleep 61")
    monkeypatch.setenv("PATH", with_path(tmp_path)["PATH"])
    probe = Probe(LocalTransport())
    looking = asyncio.ensure_future(probe.tick(ProbeRequest()))
    async with asyncio.timeout(10):
        while not (tmp_path / "hanging").exists():
            await asyncio.sleep(0.02)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    await probe.close()
    assert await_sleepers(tmp_path) == []


async def test_without_timeout_the_shell_itself_keeps_the_deadline(tmp_path: Path) -> None:
    stand_in(tmp_path, "timeout", "exit 125")
    async with probing(ShellTransport("busybox ash", with_path(tmp_path))) as probe:
        telemetry = await probe.tick(ProbeRequest())
    assert telemetry.took_s < 2
    assert telemetry.gpus.known
    assert telemetry.processes.value
    assert await_sleepers(tmp_path) == []


@pytest.mark.parametrize("shell", SHELLS)
async def test_the_shell_ends_with_its_input(shell: str) -> None:
    transport = ShellTransport(shell)
    probe = Probe(transport)
    await probe.tick(ProbeRequest())
    await probe.close()
    assert transport.channels[0].exit == 0


class Scripted:
    """A box that answers as a test says: a list of replies, one for each read; None hangs."""

    name = "scripted"

    def __init__(self, *boxes: list[bytes | None]) -> None:
        self.boxes = list(boxes)
        self.opened: list[Answering] = []

    async def open(self, script: Script, *, timeout: float = 15.0) -> Answering:
        channel = Answering(str(script.args[0]), self.boxes[len(self.opened)])
        self.opened.append(channel)
        return channel

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        raise NotImplementedError


class Answering:
    def __init__(self, nonce: str, replies: list[bytes | None]) -> None:
        self.nonce = nonce
        self.replies = replies
        self.release = asyncio.Event()
        self.closed = False
        self.written = b""

    async def read(self, size: int = 65536) -> bytes:
        if not self.replies:
            await asyncio.Event().wait()
        if self.replies[0] is None:
            await self.release.wait()
            del self.replies[0]
            return await self.read(size)
        reply = self.replies.pop(0) or b""
        return reply.replace(b"NONCE", self.nonce.encode())

    async def write(self, data: bytes) -> None:
        if self.closed:
            raise LinkLost("closed")
        self.written += data

    async def close(self) -> None:
        self.closed = True

    @property
    def exit(self) -> int | None:
        return 7


def framed(number: int, **sections: bytes) -> bytes:
    body = b"".join(b"# %s %d\n%s\n" % (name.encode(), len(text), text) for name, text in sections.items())
    return b"@rgt NONCE %d %d\n%s@end NONCE %d\n" % (number, len(body), body, number)


HELLO = framed(0, os=b"Linux", who=b"0 root\n/root", identity=b"hostname x\n")
LOAD = b"1.50 1.00 1.00 1/2 3"


async def test_a_late_answer_is_never_taken_for_the_next() -> None:
    late = [HELLO, None, framed(1, load=b"9.99 9 9 1/2 3")]
    transport = Scripted(late, [b"Welcome!\n" + HELLO, framed(1, load=LOAD)])
    probe = Probe(transport, deadline_s=0.1)
    with pytest.raises(ProbeLate, match="did not answer"):
        await probe.tick(ProbeRequest(), gpus=False, filesystems=False)
    telemetry = await probe.tick(ProbeRequest(), gpus=False, filesystems=False)
    assert telemetry.cpu.value is not None
    assert telemetry.cpu.value.load1 == 1.5
    transport.opened[0].release.set()
    await asyncio.sleep(0.05)
    assert transport.opened[0].closed  # it answered after all, and is let go
    await probe.close()
    assert all(channel.closed for channel in transport.opened)


async def test_no_third_shell_is_started_while_two_hang() -> None:
    hanging: list[list[bytes | None]] = [[HELLO, None, framed(1)] for _ in range(2)]
    transport = Scripted(*hanging, [HELLO, framed(1, load=LOAD)])
    probe = Probe(transport, deadline_s=0.05)
    for _ in range(2):
        with pytest.raises(ProbeLate, match="did not answer"):
            await probe.tick(ProbeRequest())
    with pytest.raises(ProbeLate, match="2 earlier looks still hang"):
        await probe.tick(ProbeRequest())
    assert len(transport.opened) == 2
    transport.opened[0].release.set()
    await asyncio.sleep(0.05)
    await probe.tick(ProbeRequest(), gpus=False, filesystems=False)
    await probe.close()


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (framed(1, load=LOAD)[:-3], ProbeLate),  # cut: the end is missing
        (framed(1, load=LOAD).replace(b"1.50", b"1.5"), ProbeLate),  # a byte is missing
        (framed(1, load=LOAD).replace(b"1.50", b"1.505"), Garbled),  # one too many
        (framed(1, load=LOAD).replace(b"@rgt NONCE 1 ", b"@rgt NONCE 1 99999"), Garbled),  # says it is huge
        (b"x" * (2 << 20), Garbled),  # noise without an end
        (b"", ProbeEnded),
        (framed(1, failed=b"too large"), Garbled),
    ],
)
async def test_what_is_no_whole_answer_is_not_used(reply: bytes, failure: type[Exception]) -> None:
    transport = Scripted([HELLO, reply], [HELLO, framed(1, load=LOAD)])
    probe = Probe(transport, deadline_s=0.3)
    with pytest.raises(failure):
        await probe.tick(ProbeRequest(), gpus=False, filesystems=False)
    telemetry = await probe.tick(ProbeRequest(), gpus=False, filesystems=False)
    assert telemetry.cpu.value is not None
    assert telemetry.cpu.value.load1 == 1.5
    await probe.close()


async def test_a_box_without_a_shell_says_what_it_printed() -> None:
    transport = Scripted([b"Please use the web console.\x1b[31m\n", b""])
    probe = Probe(transport)
    with pytest.raises(ProbeEnded, match="status 7, after it had printed: Please use the web console"):
        await probe.tick(ProbeRequest())
    await probe.close()


async def test_cancelling_a_look_leaves_the_probe_usable() -> None:
    transport = Scripted([HELLO, None], [HELLO, framed(1, load=LOAD)])
    probe = Probe(transport)
    task = asyncio.ensure_future(probe.tick(ProbeRequest(), gpus=False, filesystems=False))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    telemetry = await probe.tick(ProbeRequest(), gpus=False, filesystems=False)
    assert telemetry.tick == 1
    await probe.close()
    assert transport.opened[0].closed


async def test_what_was_read_before_a_reboot_is_forgotten() -> None:
    def hello(letter: str) -> bytes:
        boot = f"{letter * 8}-{letter * 4}-{letter * 4}-{letter * 4}-{letter * 12}"
        return framed(0, os=b"Linux", who=b"0 root\n/root", identity=f"boot_id {boot}\n".encode())

    none = b"a gpu.none 127 0\n\n"
    transport = Scripted(
        [hello("a"), framed(1, load=LOAD, batch=none), b""], [hello("b"), framed(1, load=LOAD)]
    )
    probe = Probe(transport)
    first = await probe.tick(ProbeRequest(), gpus=True, filesystems=False)
    assert first.gpus.value == ()
    with pytest.raises(ProbeEnded):
        await probe.tick(ProbeRequest(), gpus=False, filesystems=False)
    after = await probe.tick(ProbeRequest(), gpus=False, filesystems=False)
    assert not after.gpus.known
    assert after.gpus.reason == "not probed yet"
    await probe.close()

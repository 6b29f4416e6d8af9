"""Fetching trees: what must arrive arrives, whatever the link, the box and the disk do."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.box.boxes import Desk
from tests.box.transfer_box import HASTY, ONCE, brittle, content, here, noise, over_ssh, tree, wanted
from tests.rig import Sshd
from tests.rig.proxy import Faults, proxy
from tests.rig.tmpfs import fill, remount, tmpfs
from tui.box.local import LocalTransport
from tui.box.transfer.meter import Progress
from tui.box.transfer.part import PartFile
from tui.box.transfer.pull import pull
from tui.box.transfer.wanted import Pulled, Wanted
from tui.box.transport import Channel, Completed, Script
from tui.model.failure import Failure

KIB = 1024
CHUNK = 256 * KIB
SMALL = 64 * KIB

ODD = {
    "plain.pt": noise(3 * CHUNK + 17, 1),
    "exact.pt": noise(2 * CHUNK, 2),
    "exact.pt.part": noise(2 * CHUNK, 3),  # a name that looks like one of ours
    "empty": b"",
    "two\nlines.txt": b"a",
    "back\\slash": b"b",
    "back\\nslash.big": noise(SMALL, 4),
    "-rf": b"c",
    "数据/é.bin": noise(SMALL + 1, 5),
    "odd\udcff.bin": b"d",
    "odd\udcfe.big": noise(SMALL, 6),
    "n" * 255: b"e",
    "deep/" * 20 + "x": b"f",
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


class Place:
    """A source, and the folders of a transfer."""

    def __init__(self, tmp: Path) -> None:
        self.source, self.into, self.parts = tmp / "source", tmp / "into", tmp / "parts"

    async def pull(self, dial: object, files: list[Wanted], **more: object) -> Pulled:
        options: dict[str, object] = {"patience": HASTY, "chunk": CHUNK, "small": SMALL, **more}
        return await pull(dial, str(self.source), files, self.into, self.parts, **options)  # type: ignore[arg-type]

    def leftovers(self) -> list[str]:
        return [p.name for p in self.parts.iterdir()] if self.parts.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.real
async def test_every_name_and_size_over_ssh(sshd: Sshd, desk: Desk, place: Place) -> None:
    files = tree(place.source, ODD)
    os.link(place.source / "-rf", place.source / "second name")
    (place.source / "link").symlink_to("plain.pt")
    files += [wanted("second name", b"c"), wanted("link", ODD["plain.pt"])]
    got = await place.pull(over_ssh(desk, sshd), files)
    assert got.problems == ()
    assert content(place.into) == {**ODD, "second name": b"c", "link": ODD["plain.pt"]}
    assert not (place.into / "link").is_symlink()
    assert (got.kept, got.fetched, got.links) == (0, sum(w.size for w in files), 1)
    assert place.leftovers() == []
    again = await place.pull(over_ssh(desk, sshd), files)
    assert (again.fetched, again.kept) == (0, got.fetched)


@pytest.mark.parametrize("shell_tools", ["gnu", "busybox"])
async def test_names_and_sizes_with_other_tools(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell_tools: str
) -> None:
    if shell_tools == "busybox":
        from tests.real import need

        tools = tmp_path / "tools"
        tools.mkdir()
        for name in ("tar", "xargs", "head", "dd", "cat", "tail"):
            (tools / name).symlink_to(need("busybox")["busybox"])
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    files = tree(place.source, {**ODD, **{f"many/{n:04}": noise(n, n) for n in range(700)}})
    os.link(place.source / "-rf", place.source / "second name")
    files.append(wanted("second name", b"c"))  # BusyBox's tar sends a link for it: then it comes alone
    got = await place.pull(here, files)
    assert got.problems == ()
    assert len(content(place.into)) == len(files)
    assert {w.local for w in got.arrived} == {w.local for w in files}


async def test_a_box_without_tar(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "tar").write_text("#!/bin/sh\nexit 127\n")
    (tools / "tar").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    files = tree(place.source, {f"f{n}": noise(n, n) for n in range(20)})
    got = await place.pull(here, files)
    assert got.problems == ()
    assert len(content(place.into)) == 20


# --- the source -------------------------------------------------------------------------------------------


async def test_a_source_that_is_not_what_was_hashed(place: Place) -> None:
    big, small = noise(SMALL + 100, 1), b"small"
    kinds = ("grown", "shrunk", "flipped", "gone", "fine")
    sizes = (("big", big), ("small", small))
    names = {f"{kind}-{size}": data for kind in kinds for size, data in sizes}
    files = tree(place.source, names)
    for size, data in sizes:
        (place.source / f"grown-{size}").write_bytes(data + b"more")
        (place.source / f"shrunk-{size}").write_bytes(data[:-1])
        (place.source / f"flipped-{size}").write_bytes(data[:-1] + b"?")
        (place.source / f"gone-{size}").unlink()
    got = await place.pull(here, files)
    found = {problem.path: problem.code for problem in got.problems}
    codes = {
        "grown": "source-changed",
        "shrunk": "source-changed",
        "flipped": "hash-differs",
        "gone": "source-gone",
    }
    assert found == {f"{kind}-{size}": code for kind, code in codes.items() for size in ("big", "small")}
    assert content(place.into) == {"fine-big": big, "fine-small": small}
    assert place.leftovers() == []


async def test_a_file_that_never_ends(place: Place) -> None:
    """A log that is written faster than it is read: the stream is left as soon as it is too long."""
    place.source.mkdir()
    (place.source / "log").symlink_to("/dev/zero")
    got = await asyncio.wait_for(place.pull(here, [wanted("log", bytes(SMALL))]), 20)
    assert [problem.code for problem in got.problems] == ["source-changed"]


class Liar:
    """A box that answers every tar with this stream, and has no file."""

    name = "liar"

    def __init__(self, stream: bytes) -> None:
        self._stream = stream

    async def open(self, script: Script, *, timeout: float = 15.0) -> Channel:
        if "tar" not in script.text:
            return await LocalTransport().open(script)
        path = Path(str(script.args[0])) / "stream"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(self._stream)
        return await LocalTransport().open(Script('exec cat "$1"', (str(path),)))

    async def run(self, script: Script, **more: float) -> Completed:
        return await LocalTransport().run(script)

    async def close(self) -> None: ...


@pytest.mark.parametrize("name", ["../../evil", "/tmp/rgt-evil", "not-asked", "b"])
async def test_a_hostile_tar_writes_nothing(place: Place, name: str, tmp_path: Path) -> None:
    from tests.box.test_transfer_tar import members

    evil = members(name, name, data=b"evil")

    async def dial() -> Liar:
        return Liar(evil)

    got = await place.pull(dial, [wanted("a", b"right"), wanted("b", b"also")])
    assert {problem.code for problem in got.problems} == {"source-gone"}
    assert content(place.into) == {}
    assert {p.name for p in tmp_path.iterdir()} == {"source", "into", "parts"}
    assert not Path("/tmp/rgt-evil").exists()


async def test_names_that_leave_are_refused_before_anything(place: Place) -> None:
    for bad in ("../x", "/x", "a//b", "a/./b", "", "a\0b"):
        with pytest.raises(ValueError, match="leads out"):
            await place.pull(here, [replace(wanted("good", b""), path=bad or "/")])
    with pytest.raises(ValueError, match="same name"):
        await place.pull(here, [wanted("x", b"1"), replace(wanted("y", b"2"), name="x")])


# --- the link ---------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_net_cut_two_hundred_times_with_damage_in_between(place: Place) -> None:
    """NET-CUT: each attempt dies somewhere, and the kept bytes are harmed before the next: no wrong file."""
    dice = random.Random(20)
    cuts = harmed = rounds = 0
    while cuts < 200:
        rounds += 1
        place = Place(place.source.parent / f"round{rounds}")
        sources = {f"big{n}": noise(dice.randrange(SMALL, 6 * CHUNK), rounds * 10 + n) for n in range(2)}
        sources.update({f"small/{n}": noise(dice.randrange(SMALL), n) for n in range(12)})
        files = tree(place.source, sources)
        for _ in range(200):
            try:
                budget = dice.randrange(1, 3 * CHUNK)
                got = await place.pull(brittle(lambda b=budget: b), files, patience=ONCE)  # type: ignore[misc]
                break
            except Failure as failure:
                assert failure.code == "link-lost"
                cuts += 1
                harmed += _harm(dice, place)
        assert got.problems == ()
        assert content(place.into) == sources
        assert place.leftovers() == []
    assert harmed > 50


def _harm(dice: random.Random, place: Place) -> int:
    """Do something bad to what was kept."""
    kept = [
        p
        for folder in (place.parts, place.into)
        for p in folder.rglob("*")
        if p.is_file() and p.stat().st_size
    ]
    if not kept or dice.random() < 0.3:
        return 0
    path = dice.choice(kept)
    data = bytearray(path.read_bytes())
    what = dice.randrange(4)
    if what == 0:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif what == 1:
        del data[dice.randrange(len(data)) :]
    elif what == 2:
        data += noise(dice.randrange(1, 5000))
    else:
        at = dice.randrange(len(data))
        data[at : at + 4096] = bytes(len(data[at : at + 4096]))
    path.write_bytes(data)
    return 1


async def test_net_cut_is_survived_within_one_transfer(place: Place) -> None:
    dice = random.Random(3)
    sources = {f"big{n}": noise(4 * CHUNK + n, n) for n in range(2)} | {
        f"s{n}": noise(9000, n) for n in range(50)
    }
    files = tree(place.source, sources)
    got = await place.pull(brittle(lambda: dice.randrange(100 * KIB, 700 * KIB)), files)
    assert content(place.into) == sources
    assert got.links > 3
    assert got.fetched == sum(w.size for w in files)  # to the byte: nothing was fetched twice


@pytest.mark.real
async def test_net_rst_over_ssh(sshd: Sshd, desk: Desk, place: Place) -> None:
    """NET-RST: the connection is reset again and again in the middle of the data."""
    sources = {"big": noise(9 << 20, 1), **{f"s{n}": noise(5000, n) for n in range(200)}}
    files = tree(place.source, sources)
    dice = random.Random(5)
    faults = Faults(cut_after=lambda: dice.randrange(500_000, 3_000_000))
    async with proxy(sshd.host, sshd.port, faults) as link:
        got = await place.pull(over_ssh(desk, sshd, link.port), files)
    assert content(place.into) == sources
    assert got.links > 2


@pytest.mark.real
async def test_net_flip_ends_the_connection_and_never_a_file(sshd: Sshd, desk: Desk, place: Place) -> None:
    """NET-FLIP: SSH notices the changed bit; the transfer goes on over a new connection."""
    sources = {"big": noise(4 << 20, 1)}
    files = tree(place.source, sources)
    faults = Faults(flip_at=1_500_000)
    async with proxy(sshd.host, sshd.port, faults) as link:

        def mended(progress: Progress) -> None:
            if progress.links > 1 or link.connections > 1:
                faults.flip_at = None

        got = await place.pull(over_ssh(desk, sshd, link.port), files, on_progress=mended)
    assert content(place.into) == sources
    assert got.links >= 2


@pytest.mark.real
async def test_net_half_open_is_noticed(sshd: Sshd, desk: Desk, place: Place) -> None:
    """NET-HALF: nothing passes any more and nobody says so; keep-alive ends it, and a new link goes on."""
    sources = {"big": noise(6 << 20, 1)}
    files = tree(place.source, sources)
    faults = Faults(silent_after=2_000_000)
    async with proxy(sshd.host, sshd.port, faults) as link:

        def healed(progress: Progress) -> None:
            if progress.silent_s > 0.5:
                faults.silent_after = None

        began = time.monotonic()
        got = await place.pull(over_ssh(desk, sshd, link.port), files, on_progress=healed)
    assert content(place.into) == sources
    assert got.links == 2
    assert time.monotonic() - began < 30


@pytest.mark.real
async def test_net_slow_to_a_drip_counts_as_stalled(sshd: Sshd, desk: Desk, place: Place) -> None:
    """NET-SLOW: the link answers keep-alives, but no data worth the name comes."""
    sources = {"big": noise(3 << 20, 1)}
    files = tree(place.source, sources)
    box = over_ssh(desk, sshd)
    calls = 0

    async def dial() -> object:
        nonlocal calls
        calls += 1
        transport = await box()
        if calls == 1:
            opened = transport.open

            async def drip(script: Script, *, timeout: float = 15.0) -> Channel:
                if "dd" in script.text:
                    script = Script("while :; do printf x; sleep 0.05; done", why="drip")
                return await opened(script, timeout=timeout)

            transport.open = drip  # type: ignore[method-assign]
        return transport

    began = time.monotonic()
    got = await place.pull(dial, files, patience=replace(HASTY, stall_s=0.7))
    assert time.monotonic() - began < 30
    assert got.problems == () or got.problems[0].code == "hash-differs"
    assert calls >= 2
    assert content(place.into) == sources


async def test_a_link_that_never_holds_is_given_up(place: Place) -> None:
    files = tree(place.source, {"big": noise(CHUNK, 1)})
    with pytest.raises(Failure) as caught:
        await place.pull(brittle(lambda: 1), files)
    assert caught.value.code == "link-lost"
    assert caught.value.exit == 3
    assert "goes on where it stopped" in caught.value.line


async def test_the_bandwidth_cap_holds(place: Place) -> None:
    files = tree(place.source, {"big": noise(600 * KIB, 1), **{f"s{n}": noise(1000) for n in range(100)}})
    began = time.monotonic()
    await place.pull(here, files, cap=1 << 20)
    took = time.monotonic() - began
    assert 0.5 < took < 30, took


async def test_progress_is_told_and_adds_up(place: Place) -> None:
    files = tree(place.source, {"big": noise(600 * KIB, 1)})
    told: list[tuple[float, Progress]] = []
    got = await place.pull(
        here, files, cap=700 * KIB, on_progress=lambda p: told.append((time.monotonic(), p))
    )
    span = told[-1][0] - told[0][0]
    assert 2 <= (len(told) - 1) / span <= 12
    assert all(a.done <= b.done for (_, a), (_, b) in itertools.pairwise(told))
    last = told[-1][1]
    assert (last.done, last.total, last.files, last.eta_s) == (got.fetched, files[0].size, 1, 0.0)
    middle = next(p for _, p in told if p.done > last.total // 2)
    assert middle.rate is not None
    assert 150 * KIB < middle.rate < 1200 * KIB
    assert middle.path == "big"


async def test_cancelling_leaves_what_can_be_taken_up(place: Place) -> None:
    data = noise(8 * CHUNK, 1)
    files = tree(place.source, {"big": data})
    work = asyncio.ensure_future(place.pull(here, files, cap=4 * CHUNK))
    while sum(p.stat().st_size for p in place.parts.glob("*.part")) < 2 * CHUNK:
        await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pull")]
    got = await place.pull(here, files)
    assert got.kept >= 2 * CHUNK
    assert got.kept + got.fetched == len(data)
    assert content(place.into) == {"big": data}


# --- the disk ---------------------------------------------------------------------------------------------


async def test_disk_bytes_are_asked_for_first(tmp_path: Path) -> None:
    """DISK-BYTES: what can't fit is refused before the first byte, with both figures."""
    with tmpfs(tmp_path / "disk", size=1 << 20) as disk:
        place = Place(disk)
        place.source = tmp_path / "source"
        files = tree(place.source, {"big": noise(2 << 20, 1)})
        with pytest.raises(Failure, match="are needed") as caught:
            await place.pull(here, files)
        assert caught.value.code == "disk-full"
        assert content(place.into) == {}


async def test_disk_bytes_run_out_on_the_way(tmp_path: Path) -> None:
    """DISK-BYTES: somebody else fills the disk; nothing wrong gets a name; it goes on once there is room."""
    data = noise(4 << 20, 1)
    with tmpfs(tmp_path / "disk", size=6 << 20) as disk:
        place = Place(disk)
        place.source = tmp_path / "source"
        files = tree(place.source, {"big": data})
        ballast: list[Path] = []

        def hog(progress: Progress) -> None:
            if progress.done and not ballast:
                ballast.append(fill(disk, leave=300 * KIB))

        with pytest.raises(Failure, match="full") as caught:
            await place.pull(here, files, cap=4 << 20, on_progress=hog)
        assert caught.value.code == "disk-full"
        assert content(place.into) == {}
        ballast[0].unlink()
        got = await place.pull(here, files)
        assert got.kept > 0
        assert content(place.into) == {"big": data}


async def test_disk_inodes(tmp_path: Path) -> None:
    """DISK-INODES: bytes are free, names are not."""
    with tmpfs(tmp_path / "disk", size=8 << 20, inodes=40) as disk:
        place = Place(disk)
        place.source = tmp_path / "source"
        files = tree(place.source, {f"f{n}": b"x" for n in range(100)})
        with pytest.raises(Failure, match="inodes free") as caught:
            await place.pull(here, files)
        assert caught.value.code == "inodes-full"
        for n in range(30):
            (disk / f"other{n}").write_bytes(b"")
        with pytest.raises(Failure, match="inode") as caught:
            await place.pull(here, files[:4])
        assert caught.value.code == "inodes-full"


async def test_disk_read_only(tmp_path: Path) -> None:
    """DISK-RO."""
    with tmpfs(tmp_path / "disk", size=8 << 20) as disk:
        place = Place(disk)
        place.source = tmp_path / "source"
        files = tree(place.source, {"big": noise(CHUNK * 2, 1)})
        remount(disk, "ro")
        with pytest.raises(Failure, match="read-only") as caught:
            await place.pull(here, files)
        assert caught.value.code == "disk-read-only"
        remount(disk, "rw")
        await place.pull(here, files)
        assert len(content(place.into)) == 1


async def test_disk_fsync_failure_keeps_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """DISK-FSYNC: the kernel counts lost pages as written from then on, so re-reading them proves nothing."""
    data = noise(4 * CHUNK, 1)
    files = tree(place.source, {"big": data})
    real, calls = os.fsync, 0

    def failing(fd: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise OSError(errno.EIO, "Input/output error")
        real(fd)

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", failing)
        with pytest.raises(Failure, match="disk reports an error") as caught:
            await place.pull(here, files)
    assert caught.value.code == "disk-error"
    assert place.leftovers() == []
    got = await place.pull(here, files)
    assert (got.kept, content(place.into)) == (0, {"big": data})


async def test_a_wrong_file_under_construction_is_replaced(place: Place) -> None:
    files = tree(place.source, {"a": b"right", "b/c": b"right too"})
    tree(place.into, {"a": b"wrong", "b/c": b"right too"})
    os.utime(place.into / "a", ns=(0, (place.source / "a").stat().st_mtime_ns))
    got = await place.pull(here, files)
    assert content(place.into) == {"a": b"right", "b/c": b"right too"}
    assert got.kept == len(b"right too")


def test_a_journal_of_another_file_is_not_believed(tmp_path: Path) -> None:
    stop = threading.Event()
    old, new = noise(3 * CHUNK, 1), noise(3 * CHUNK, 2)
    parts = tmp_path / "parts"

    def part(data: bytes) -> PartFile:
        made = wanted("x", data)
        return PartFile(tmp_path / "x", parts, made.size, made.sha256, stop, CHUNK)

    first = part(old)
    assert first.resume(lambda n: None) == 0
    first.write([old[: 2 * CHUNK + 5]])
    first.close()
    again = part(old)
    assert again.resume(lambda n: None) == 2 * CHUNK
    again.close()
    other = part(new)
    assert other.resume(lambda n: None) == 0
    other.close()


@pytest.mark.parametrize("beside", [False, True])
def test_a_disk_that_takes_a_little_at_a_time_gets_every_byte_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    data = noise(2 * CHUNK + 4321, 9)
    made, dice, whole = wanted("x", data), random.Random(3), os.writev

    def a_little(fd: int, pieces: list[memoryview]) -> int:
        few = pieces[: dice.randint(1, 3)]
        few[-1] = few[-1][: dice.randint(1, len(few[-1]))]
        return whole(fd, few)

    monkeypatch.setattr(os, "writev", a_little)
    with ThreadPoolExecutor(1) as writer:
        part = PartFile(
            tmp_path / "x",
            tmp_path / "parts",
            made.size,
            made.sha256,
            threading.Event(),
            CHUNK,
            writer if beside else None,
        )
        part.resume(lambda n: None)
        at = 0
        while at < len(data):
            blocks = [data[at : at + 3000], b"", data[at + 3000 : at + 50_000]]
            part.write(blocks)
            at += sum(map(len, blocks))
            assert part.offset == at
        part.commit()
    assert (tmp_path / "x").read_bytes() == data


@pytest.mark.parametrize("beside", [False, True])
def test_a_write_that_fails_is_told_and_counts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    made = wanted("x", noise(CHUNK, 9))

    def full(fd: int, pieces: list[memoryview]) -> int:
        raise OSError(errno.ENOSPC, "full")

    with ThreadPoolExecutor(1) as writer:
        part = PartFile(
            tmp_path / "x",
            tmp_path / "parts",
            made.size,
            made.sha256,
            threading.Event(),
            CHUNK,
            writer if beside else None,
        )
        part.resume(lambda n: None)
        monkeypatch.setattr(os, "writev", full)
        with pytest.raises(OSError, match="full"):
            part.write([b"x" * 1000])
        assert part.offset == 0
        part.close()


async def test_the_loop_stays_free(place: Place) -> None:
    files = tree(place.source, {"big": noise(24 << 20, 1), **{f"s{n}": noise(9000, n) for n in range(500)}})
    lags: list[float] = []

    async def ticker() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            lags.append(time.monotonic() - before - 0.01)

    ticking = asyncio.ensure_future(ticker())
    await place.pull(here, files, chunk=8 << 20, small=1 << 20)
    ticking.cancel()
    lags.sort()
    assert lags[len(lags) // 2] < 0.1, lags[-5:]


def test_windows_fit_the_way() -> None:
    from tui.box.transfer.line import streams_for, window_for

    assert window_for(0.0005) == 4 << 20
    assert window_for(0.02) == 8 << 20
    assert window_for(0.15) == 32 << 20
    assert window_for(0.15, cap=1 << 20) < 1 << 20
    assert window_for(0.15, cap=1) == 128 << 10
    assert (streams_for(0.001), streams_for(0.1)) == (1, 3)

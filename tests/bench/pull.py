"""Fetching with proof, beside the programs people use: on open connections, in memory, interleaved.

Box and this computer are one machine, so the CPU that both sides spend on hashing and encryption is what
shows; over a link below some hundred MB/s the link hides it. Of each side the best round counts: what others
do on the machine can only add, and it adds most to the side that computes most.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from tests.bench.measure import percentile, rss_bytes
from tests.bench.place import Bench, ssh_config
from tests.bench.report import Row, beside, limited
from tests.real import need
from tests.rig import Sshd
from tui.box.connect import Connector
from tui.box.session import SshTransport
from tui.box.transfer import part as part_of_transfer
from tui.box.transfer.line import BulkTransport, Patience
from tui.box.transfer.part import CHUNK, PartFile
from tui.box.transfer.pull import pull
from tui.box.transfer.wanted import Wanted
from tui.box.trust import TrustStore
from tui.custody.hashing import Hashed, Job, hash_files, race
from tui.model.instance import Endpoint, Instance

MIB = 1 << 20
Timed = Callable[[], Awaitable[float]]


def rows(bench: Bench) -> Iterator[Row]:
    need("scp", "rsync", "sha256sum")
    rounds = 3 if bench.quick else 5
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() else bench.folder
    before = rss_bytes(os.getpid())
    with tempfile.TemporaryDirectory(dir=parent, prefix="rgt-bench-") as folder, bench.sshd() as server:
        place = Place(server, Path(folder))
        big = place.big("big.pt", 256 if bench.quick else 1024)
        yield from _large(place, big, rounds)
        yield from _small(place, rounds)
        yield _resumed(place, big, rounds)
        for rtt in (0.0, 0.05, 0.15):
            yield _far(place, rtt, rounds)
        yield from _felt(place, big, rounds, before)


@dataclass
class Place:
    """Source and target folders, and both ways to reach the server."""

    server: Sshd
    folder: Path

    def __post_init__(self) -> None:
        self.source, self.into, self.parts = (self.folder / name for name in ("source", "into", "parts"))
        self.source.mkdir()
        self.connector = Connector(TrustStore(self.folder / "keys", self.folder / "receipts"))

    def big(self, name: str, mib: int) -> Wanted:
        """A file without repetition, hashed."""
        digest, block = hashlib.sha256(), os.urandom(MIB)
        with (self.source / name).open("wb") as file:
            for number in range(mib):
                data = number.to_bytes(8, "big") + block[8:]
                digest.update(data)
                file.write(data)
        return Wanted(name, mib * MIB, f"sha256:{digest.hexdigest()}")

    async def connect(self, port: int | None = None) -> SshTransport:
        server = self.server
        endpoint = Endpoint(server.host, port or server.port, server.user, str(server.client_key))
        return await self.connector.connect(
            Instance("box", "ssh", endpoint, host_key=server.host_key_fingerprint)
        )

    async def pull(self, transport: SshTransport, files: Sequence[Wanted], root: Path) -> float:
        """Seconds of a whole transfer over a connection that stands already."""

        async def dial() -> BulkTransport:
            return _Kept(transport)

        began = time.perf_counter()
        got = await pull(dial, str(root), files, self.into, self.parts, patience=Patience(attempts=2))
        took = time.perf_counter() - began
        assert len(got.arrived) == len(files), got.problems[:3]
        return took

    def clear(self) -> None:
        for path in (self.into, self.parts, self.folder / "theirs"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    @contextmanager
    def master(self, port: int | None = None) -> Iterator[list[str]]:
        """Options for the ssh programs to use one open connection."""
        text = ssh_config(self.server).read_text()
        if port is not None:
            text = text.replace(f"Port {self.server.port}", f"Port {port}")
        config = self.folder / "mux_config"
        control = tempfile.mktemp(prefix="rgt-mux-", dir="/tmp")
        config.write_text(f"{text}\n  ControlMaster auto\n  ControlPath {control}\n  ControlPersist 60\n")
        subprocess.run(["ssh", "-F", str(config), "box", "true"], check=True, timeout=60)
        try:
            yield ["-F", str(config)]
        finally:
            subprocess.run(["ssh", "-F", str(config), "-O", "exit", "box"], capture_output=True, timeout=20)


class _Blind:
    """A hash that looks at nothing and says what is hoped for."""

    def __init__(self, digest: str) -> None:
        self._digest = digest

    @classmethod
    def of(cls, wanted: Wanted) -> Callable[..., object]:
        return lambda *data: hashlib.sha256(*data) if data else cls(wanted.sha256.removeprefix("sha256:"))

    def update(self, data: object) -> None:
        """Not this one."""

    def copy(self) -> _Blind:
        return self

    def hexdigest(self) -> str:
        return self._digest


class _Kept:
    """A transport that outlives the transfer."""

    def __init__(self, transport: SshTransport) -> None:
        self._transport = transport
        self.name, self.run, self.open = transport.name, transport.run, transport.open

    @property
    def rtt(self) -> float | None:
        return self._transport.rtt

    @property
    def window(self) -> int:
        return self._transport.window

    @window.setter
    def window(self, size: int) -> None:
        self._transport.window = size

    async def close(self) -> None:
        """The next transfer goes over the same connection."""


async def _program(*command: str) -> float:
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
    assert await process.wait() == 0, command[0]
    return time.perf_counter() - began


async def _interleaved(place: Place, sides: Mapping[str, Timed], rounds: int) -> dict[str, float]:
    """The best of each side, which takes its turn once a round."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            place.clear()
            taken[name].append(await side())
    place.clear()
    return {name: min(times) for name, times in taken.items()}


def _large(place: Place, big: Wanted, rounds: int) -> Iterator[Row]:
    with place.master() as mux:
        taken = asyncio.run(_large_taken(place, big, rounds, mux))
    size = big.size // MIB
    yield beside(
        f"{size} MiB, hashed on the box and here (peer: scp, then sha256sum on both)",
        taken["hash"] + taken["pull"], taken["scp"] + taken["sums"], "s", most=1 / 1.5, digits=2,
        note="ours: the box hashes it first with the fastest tool it has, then it is fetched",
    )  # fmt: skip
    yield beside(
        f"{size} MiB, every byte hashed here against the box's digest (peer: scp alone)",
        taken["pull"], taken["scp"], "s", most=1 / 0.75, digits=2,
    )  # fmt: skip
    best = min(("scp", "sftp", "rsync"), key=lambda name: taken[name])
    yield beside(
        f"{size} MiB unverified (peer: the best of scp, sftp, rsync)",
        taken["blind"], taken[best], "s", most=1.0, digits=2,
        note=f"the same transfer with a hash that does nothing; the best was {best}",
    )  # fmt: skip


async def _large_taken(place: Place, big: Wanted, rounds: int, mux: list[str]) -> dict[str, float]:
    transport = await place.connect()
    source, theirs = f"box:{place.source / big.path}", place.folder / "theirs"
    hasher = await race(transport)

    async def hashed() -> float:
        began = time.perf_counter()
        async for events in hash_files(transport, str(place.source), [Job(big.path, big.size)], hasher):
            assert all(event.sha256 == big.sha256[7:] for event in events if isinstance(event, Hashed))
        return time.perf_counter() - began

    async def sums() -> float:
        theirs.write_bytes(b"") if not theirs.exists() else None
        shutil.copyfile(place.source / big.path, theirs)
        both = [_program("sha256sum", str(path)) for path in (place.source / big.path, theirs)]
        return max(await asyncio.gather(*both))

    async def blind() -> float:
        with mock.patch.object(part_of_transfer, "hashlib", SimpleNamespace(sha256=_Blind.of(big))):
            return await place.pull(transport, [big], place.source)

    batch = place.folder / "batch"
    batch.write_text(f"get {place.source / big.path} {theirs}\n")
    sides: dict[str, Timed] = {
        "pull": lambda: place.pull(transport, [big], place.source),
        "scp": lambda: _program("scp", "-q", *mux, source, str(theirs)),
        "hash": hashed,
        "sums": sums,
        "blind": blind,
        "sftp": lambda: _program("sftp", "-q", *mux, "-b", str(batch), "box"),
        "rsync": lambda: _program("rsync", "-W", "-e", f"ssh {' '.join(mux)}", source, str(theirs)),
    }
    try:
        return await _interleaved(place, sides, rounds)
    finally:
        await transport.close()


def _small(place: Place, rounds: int) -> Iterator[Row]:
    root = place.source / "small"
    files: list[Wanted] = []
    for number in range(5000):
        data = os.urandom(1000 + number * 7919 % 32_000)
        path = root / f"d{number % 50}" / f"f{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        name = str(path.relative_to(root))
        files.append(Wanted(name, len(data), f"sha256:{hashlib.sha256(data).hexdigest()}"))
    with place.master() as mux:
        taken = asyncio.run(_small_taken(place, root, files, rounds, mux))
    shutil.rmtree(root)
    yield beside("5,000 small files, verified (peer: rsync -a)", taken["pull"], taken["rsync"], "s",
                 most=1 / 0.9, digits=2)  # fmt: skip
    yield beside("5,000 small files, verified (peer: scp -r)", taken["pull"], taken["scp"], "s",
                 most=1 / 6, digits=2)  # fmt: skip


async def _small_taken(
    place: Place, root: Path, files: Sequence[Wanted], rounds: int, mux: list[str]
) -> dict[str, float]:
    transport = await place.connect()
    theirs = str(place.folder / "theirs")
    sides: dict[str, Timed] = {
        "pull": lambda: place.pull(transport, files, root),
        "rsync": lambda: _program("rsync", "-a", "-e", f"ssh {' '.join(mux)}", f"box:{root}/", theirs),
        "scp": lambda: _program("scp", "-q", "-r", *mux, f"box:{root}", theirs),
    }
    try:
        return await _interleaved(place, sides, rounds)
    finally:
        await transport.close()


def _resumed(place: Place, big: Wanted, rounds: int) -> Row:
    with place.master() as mux:
        taken = asyncio.run(_resumed_taken(place, big, rounds, mux))
    return beside(
        f"the rest of {big.size // MIB} MiB after a cut at 58 % (peer: rsync --append-verify)",
        taken["pull"], taken["rsync"], "s", most=1.6, digits=2,
    )  # fmt: skip


async def _resumed_taken(place: Place, big: Wanted, rounds: int, mux: list[str]) -> dict[str, float]:
    transport = await place.connect()
    theirs = place.folder / "theirs"
    kept = int(big.size * 0.586) // CHUNK * CHUNK

    async def ours() -> float:
        await asyncio.to_thread(_begun, place, big, kept)
        return await place.pull(transport, [big], place.source)

    async def rsync() -> float:
        with (place.source / big.path).open("rb") as file:
            theirs.write_bytes(file.read(kept))
        return await _program(
            "rsync",
            "--append-verify",
            "-e",
            f"ssh {' '.join(mux)}",
            f"box:{place.source / big.path}",
            str(theirs),
        )

    try:
        return await _interleaved(place, {"pull": ours, "rsync": rsync}, rounds)
    finally:
        await transport.close()


def _begun(place: Place, big: Wanted, kept: int) -> None:
    """A part as a lost link leaves it."""
    import threading

    place.into.mkdir(parents=True)
    part = PartFile(place.into / big.path, place.parts, big.size, big.sha256, threading.Event())
    part.resume(lambda count: None)
    with (place.source / big.path).open("rb") as file:
        while part.offset < kept:
            part.write([file.read(4 * MIB)])
    part.close()


def _far(place: Place, rtt: float, rounds: int) -> Row:
    big = place.big("far.pt", 64)
    command = [sys.executable, "-m", "tests.bench.delay", str(place.server.port), str(rtt)]
    proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert proxy.stdout is not None
        port = int(proxy.stdout.readline())
        with place.master(port) as mux:
            taken = asyncio.run(_far_taken(place, big, port, rounds, mux))
    finally:
        with contextlib.suppress(OSError):
            proxy.communicate(timeout=5)
        proxy.kill()
        proxy.wait()
    return beside(
        f"64 MiB over {rtt * 1000:.0f} ms of round trip, verified (peer: scp)",
        taken["pull"], taken["scp"], "s", most=1 / 5 if rtt else 1 / 0.9, digits=2,
        note="through a delay of ours that limits no bandwidth" if rtt else "through the same proxy",
    )  # fmt: skip


async def _far_taken(place: Place, big: Wanted, port: int, rounds: int, mux: list[str]) -> dict[str, float]:
    transport = await place.connect(port)
    sides: dict[str, Timed] = {
        "pull": lambda: place.pull(transport, [big], place.source),
        "scp": lambda: _program(
            "scp", "-q", *mux, f"box:{place.source / big.path}", str(place.folder / "theirs")
        ),
    }
    try:
        return await _interleaved(place, sides, rounds)
    finally:
        await transport.close()


def _felt(place: Place, big: Wanted, rounds: int, before: int) -> Iterator[Row]:
    lags, most = asyncio.run(_felt_taken(place, big, rounds))
    size = big.size // MIB
    yield limited(
        f"loop lag p99 while {size} MiB come at full speed, verified", min(lags), "ms", most=20,
        note=f"a 10 ms timer on the same loop; of {rounds} transfers the best, the worst {max(lags):.1f} ms",
    )  # fmt: skip
    yield limited(
        f"memory that transfers of {size} MiB add", (most - before) / MIB, "MiB", most=64,
        note="to this process before its first connection, all that came before included",
    )  # fmt: skip


async def _felt_taken(place: Place, big: Wanted, rounds: int) -> tuple[list[float], int]:
    transport = await place.connect()
    lags: list[float] = []
    most = 0
    late: list[float] = []

    async def tick() -> None:
        nonlocal most
        while True:
            due = time.perf_counter() + 0.01
            await asyncio.sleep(0.01)
            late.append(max(0.0, time.perf_counter() - due))
            most = max(most, rss_bytes(os.getpid()))

    try:
        for _ in range(rounds):
            place.clear()
            late.clear()
            ticking = asyncio.ensure_future(tick())
            await place.pull(transport, [big], place.source)
            ticking.cancel()
            lags.append(1000 * percentile(late, 0.99))
    finally:
        place.clear()
        await transport.close()
    return lags, most

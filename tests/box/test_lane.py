"""The shorter way for bulk data gives the same bytes as asyncssh's own, and leaves everything else to it."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from tests.box.boxes import Desk, instance
from tests.real import need
from tests.rig import Sshd
from tests.rig.proxy import Faults, proxy
from tui.box import lane
from tui.box.lane import Lane
from tui.box.session import SshTransport
from tui.box.transport import LinkLost, Script
from tui.model.instance import Endpoint, Instance

pytestmark = pytest.mark.real

SIZE = 6 << 20


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(random.Random(7).randbytes(SIZE))
    return path


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sshd]:
    need("sshd")
    started = Sshd.start(tmp_path / "own-sshd", extra_config=[request.param])
    try:
        yield started
    finally:
        started.stop()


def lane_of(box: SshTransport) -> Lane | None:
    found = box._conn._transport.get_protocol()  # type: ignore[union-attr]
    return found if isinstance(found, Lane) else None


async def fetched(box: SshTransport, path: Path, pause_s: float = 0.0) -> str:
    """The digest of what a stream of the file gives."""
    digest = hashlib.sha256()
    channel = await box.open(Script('exec cat "$1"', (str(path),)))
    while block := await channel.read(100_000):
        digest.update(block)
        if pause_s:
            await asyncio.sleep(pause_s)
    assert channel.exit == 0
    await channel.close()
    return digest.hexdigest()


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_the_installed_asyncssh_is_known_and_data_goes_the_shorter_way(
    sshd: Sshd, desk: Desk, data: Path
) -> None:
    assert asyncssh.__version__ in lane.KNOWN
    box = await desk.connector().connect(instance(sshd))
    assert await fetched(box, data) == digest_of(data)
    way = lane_of(box)
    assert way is not None
    assert way.carried > 0.95 * SIZE
    await box.close()


async def test_an_unknown_asyncssh_is_left_alone(
    sshd: Sshd, desk: Desk, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "KNOWN", frozenset({"0.0"}))
    box = await desk.connector().connect(instance(sshd))
    assert lane_of(box) is None
    assert await fetched(box, data) == digest_of(data)
    await box.close()


async def test_any_cut_of_the_stream_gives_the_same_bytes(
    sshd: Sshd, desk: Desk, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(11)

    def some(self: Lane, sizehint: int) -> memoryview:
        return self._view[self._end :][: dice.choice((1, 3, 17, 5000, 40_000, 120_000))]

    monkeypatch.setattr(Lane, "get_buffer", some)
    box = await desk.connector().connect(instance(sshd))
    assert await fetched(box, data) == digest_of(data)
    await box.close()


@pytest.mark.parametrize("server", ["RekeyLimit 1M"], indirect=True)
async def test_new_keys_in_the_middle_of_a_stream(server: Sshd, desk: Desk, data: Path) -> None:
    box = await desk.connector().connect(instance(server))
    way = lane_of(box)
    assert way is not None
    first = way._key
    assert await fetched(box, data) == digest_of(data)
    assert way._key != first
    assert way.carried > 0.5 * SIZE
    await box.close()


@pytest.mark.parametrize(
    "server", ["Ciphers chacha20-poly1305@openssh.com", "Ciphers aes256-ctr"], indirect=True
)
async def test_other_ciphers_go_the_long_way(server: Sshd, desk: Desk, data: Path) -> None:
    box = await desk.connector().connect(instance(server))
    assert await fetched(box, data) == digest_of(data)
    way = lane_of(box)
    assert way is not None
    assert way.carried == 0
    await box.close()


async def test_streams_side_by_side_and_a_slow_reader_keep_their_bytes(
    sshd: Sshd, desk: Desk, data: Path
) -> None:
    box = await desk.connector().connect(instance(sshd))
    found = await asyncio.gather(fetched(box, data), fetched(box, data, pause_s=0.002), fetched(box, data))
    assert set(found) == {digest_of(data)}
    await box.close()


async def test_a_flipped_bit_on_the_way_ends_the_link(sshd: Sshd, desk: Desk, data: Path) -> None:
    async with proxy(sshd.host, sshd.port, Faults(flip_at=2 << 20)) as link:
        endpoint = Endpoint(sshd.host, link.port, sshd.user, key=str(sshd.client_key))
        box = await desk.connector().connect(Instance("box", "ssh", endpoint))
        with pytest.raises(LinkLost):
            await fetched(box, data)
        await box.close()


async def test_the_round_trip_is_known_after_the_login(sshd: Sshd, desk: Desk) -> None:
    async with proxy(sshd.host, sshd.port, Faults(rtt=0.08)) as link:
        endpoint = Endpoint(sshd.host, link.port, sshd.user, key=str(sshd.client_key))
        box = await desk.connector().connect(Instance("box", "ssh", endpoint))
        assert box.rtt is not None
        assert 0.08 <= box.rtt < 1.0
        await box.run(Script(":"))
        assert 0.08 <= box.rtt < 0.5
        await box.close()


async def test_a_reader_that_gathers_gets_large_pieces_and_a_short_stream_at_once(
    sshd: Sshd, desk: Desk, data: Path
) -> None:
    box = await desk.connector().connect(instance(sshd))
    channel = await box.open(Script('exec cat "$1"', (str(data),)))
    channel.gather = 256 << 10
    sizes = []
    while block := await channel.read(1 << 20):
        sizes.append(len(block))
    assert sum(sizes) == SIZE
    assert channel.exit == 0
    await channel.close()
    channel = await box.open(Script("printf abc; sleep 60"))
    channel.gather = 256 << 10
    async with asyncio.timeout(5):
        assert await channel.read(1 << 20) == b"abc"
    await channel.close()
    await box.close()


@pytest.mark.parametrize("size", [1 << 19, 5 << 17])
async def test_a_stream_that_ends_while_nobody_reads_is_whole(sshd: Sshd, desk: Desk, size: int) -> None:
    """Also where its last bytes make a reader pause that had gone on."""
    box = await desk.connector().connect(instance(sshd))
    channel = await box.open(Script('exec head -c "$1" /dev/zero', (str(size),)))
    await asyncio.sleep(0.5)  # all of it is here, reading is paused, and the box has closed the channel
    came = b""
    while block := await channel.read(32_000):
        came += block
        await asyncio.sleep(0)
    assert came == bytes(size)
    assert channel.exit == 0
    await channel.close()
    await box.close()

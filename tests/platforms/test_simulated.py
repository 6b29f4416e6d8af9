"""The simulated provider and its client: real HTTP on loopback, and every way an answer can go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tui.demo.provider import Provider, Rental
from tui.fleet.paths import Paths
from tui.model.custody import Victim
from tui.model.instance import Instance
from tui.platforms import simulated
from tui.platforms.control import (
    ControlError,
    NoAnswer,
    NoControlPlane,
    NoSuchMachine,
    NotAllowed,
    VerbRefused,
)
from tui.platforms.find import Wanted, plane_for
from tui.platforms.simulated import CREDENTIAL, Access, Simulated

OURS = Victim(name="done", platform="simulated", instance_id="sim-1")
BY_HAND = NoControlPlane(platform="simulated", why="nobody can be asked", console="Look.")


class Machine:
    """A rental that writes down what is done to it."""

    def __init__(self, id_: str = "sim-1") -> None:
        self.done: list[str] = []
        self.rental = Rental(
            id_, "done", "2026-11-30T10:00:00Z", 0.75, "USD",
            self._deed("halt"), self._deed("boot"), self._deed("erase"),
        )  # fmt: skip

    def _deed(self, word: str):  # type: ignore[no-untyped-def]
        async def deed() -> None:
            self.done.append(word)

        return deed


@asynccontextmanager
async def provider(folder: Path, *machines: Machine) -> AsyncIterator[tuple[Provider, Simulated]]:
    where = Paths(config=folder, state=folder)
    api = Provider([one.rental for one in machines], lag_s=0.05)
    await api.start(folder / CREDENTIAL)
    try:
        plane = simulated.plane(where)
        assert isinstance(plane, Simulated)
        yield api, plane
    finally:
        await api.close()


async def test_a_destroy_lags_and_ends_in_404_and_absence(tmp_path: Path) -> None:
    machine, other = Machine(), Machine("sim-2")
    async with provider(tmp_path, machine, other) as (api, plane):
        seen = await plane.describe(OURS)
        assert (seen.state, seen.created_at) == ("running", "2026-11-30T10:00:00Z")
        assert "destroying" in await plane.destroy(OURS)
        assert (await plane.describe(OURS)).state == "destroying"
        await until_gone(plane)
        listing = await plane.list_all()
        assert ([m.id for m in listing.machines], listing.complete) == (["sim-2"], True)
        assert listing.account == api.account
    assert machine.done == ["erase"]
    assert other.done == []


async def until_gone(plane: Simulated) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                await plane.describe(OURS)
            except NoSuchMachine:
                return
            await asyncio.sleep(0.02)


async def test_a_stop_is_refused_twice_and_a_destroy_overtakes_it(tmp_path: Path) -> None:
    machine = Machine()
    async with provider(tmp_path, machine) as (_, plane):
        assert "stopping" in await plane.stop(OURS)
        async with asyncio.timeout(10):
            while (await plane.describe(OURS)).state != "stopped":
                await asyncio.sleep(0.02)
        with pytest.raises(VerbRefused, match=r"409.*is stopped"):
            await plane.stop(OURS)
        await plane.destroy(OURS)
        await until_gone(plane)
    assert machine.done == ["halt", "erase"]


def test_the_price_of_a_stopped_machine_is_that_of_its_disk() -> None:
    machine = Machine()
    api = Provider([machine.rental])
    bearer = f"Bearer {api._token}"
    running = api.answer("GET", "/machines/sim-1/price", bearer)
    machine.rental.state = "stopped"
    assert running == (200, {"per_hour": 0.75, "currency": "USD"})
    assert api.answer("GET", "/machines/sim-1/price", bearer)[1]["per_hour"] == 0.01
    assert api.answer("DELETE", "/machines/sim-1", bearer)[0] == 405
    assert api.answer("GET", "/nothing", bearer)[0] == 404


async def test_the_token_is_its_owners_alone_and_nobody_gets_in_without_it(tmp_path: Path) -> None:
    machine = Machine()
    async with provider(tmp_path, machine) as (_, plane):
        path = tmp_path / CREDENTIAL
        assert path.stat().st_mode & 0o777 == 0o600
        token = json.loads(path.read_text())["token"]
        assert token not in repr(plane)
        stranger = Simulated(Access(plane.access.url, "guess"))
        for question in (stranger.describe(OURS), stranger.list_all(), stranger.destroy(OURS)):
            with pytest.raises(NotAllowed) as refused:
                await question
            assert "guess" not in str(refused.value)
        path.chmod(0o644)
        assert "can be read by others" in str(simulated.plane(Paths(config=tmp_path, state=tmp_path)))
    assert machine.done == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}", NoAnswer),
        (b"HTTP/1.1 429 Slow\r\nContent-Length: 2\r\n\r\n{}", NoAnswer),
        (b"HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", NoAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<html></>", NoAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", NoAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{}", NoAnswer),
        (b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}", NotAllowed),
        (b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}", NoSuchMachine),
        (b"", NoAnswer),
        (None, NoAnswer),
    ],
    ids=["500", "429", "redirect", "a page", "nothing in it", "cut short", "401", "404", "hung up", "silent"],
)
async def test_an_answer_that_is_none_is_no_answer(answer: bytes | None, error: type[ControlError]) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            await asyncio.sleep(30)
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    plane = Simulated(Access(f"http://127.0.0.1:{port}", "t"), call_s=0.5)
    try:
        for question in (plane.describe(OURS), plane.list_all()):
            with pytest.raises(ControlError) as failed:
                await question
            assert type(failed.value) is error
    finally:
        server.close()


async def test_a_provider_that_is_not_there_gives_no_answer() -> None:
    with pytest.raises(NoAnswer, match="can't be reached"):
        await Simulated(Access("http://127.0.0.1:1", "t")).list_all()


def test_what_a_demo_simulates_is_never_asked_about_at_a_vendor(tmp_path: Path) -> None:
    asked = []

    def vendor(wanted: Wanted) -> str:
        asked.append(wanted)
        return "was asked about"

    where = Paths(config=tmp_path, state=tmp_path)
    real = Instance("pod", "runpod", None, instance_id="x1")
    shown = Instance("pod", "runpod", None, instance_id="x1", simulated=("GPU",))
    planes = {"runpod": vendor}
    told = plane_for(Wanted(shown, None, where), BY_HAND, planes)
    assert isinstance(told, NoControlPlane)
    assert "belongs to rgt demo" in told.why
    assert asked == []
    told = plane_for(Wanted(real, None, where), BY_HAND, planes)
    assert isinstance(told, NoControlPlane)
    assert told.why == "pod was asked about"
    assert plane_for(Wanted(real, None, where), BY_HAND, {}) is BY_HAND


def test_a_box_of_a_demo_that_has_ended_has_no_provider(tmp_path: Path) -> None:
    box = Instance("done", simulated.PLATFORM, None, instance_id="sim-1", simulated=("GPU",))
    told = plane_for(Wanted(box, None, Paths(config=tmp_path, state=tmp_path)), BY_HAND)
    assert isinstance(told, NoControlPlane)
    assert told.why == "done belongs to a demo that has ended"

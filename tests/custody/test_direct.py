"""From box to box: a key that can do one thing, once, and is gone afterwards; and what if it doesn't work."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.box.boxes import Desk
from tests.box.transfer_box import content, noise, over_ssh
from tests.custody.copy_rig import ODD, Rig, independent_readers
from tests.real import need
from tests.rig import Sshd
from tests.rig.proxy import Faults, proxy
from tui.box.transfer.line import BulkTransport
from tui.box.transport import Script
from tui.custody.direct import DirectRoute
from tui.custody.stores.box import BoxStore
from tui.custody.ways import Source
from tui.model.custody import CopyReport

pytestmark = pytest.mark.real

FILES = {"big.pt": noise(7 << 20, 1), "other.pt": noise((2 << 20) + 5, 2), "small": b"x", **ODD}
Done: TypeAlias = "subprocess.CompletedProcess[bytes]"
KEPT = 'command="true" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB operator@laptop'  # without a line feed


class Pair:
    """A source and a target, both real; the target's sessions have a home of their own."""

    def __init__(self, tmp: Path, start: Callable[..., Sshd]) -> None:
        need("ssh", "ssh-keygen")
        self.tmp = tmp
        self.made = tmp / "made"  # where both boxes make what is temporary
        self.made.mkdir()
        here = (f"SetEnv TMPDIR={self.made}",)
        self.source, self.target = start(extra_config=here), start(extra_config=here)
        (self.target.home / ".ssh").mkdir(mode=0o700)
        self.allowed = self.target.home / ".ssh" / "authorized_keys"
        real = self.target.tmp / "authorized_keys"  # the file that sshd of the rig looks at
        real.write_text(real.read_text() + KEPT)
        self.before = real.read_text()
        self.allowed.symlink_to(real)
        for name in ("one", "two"):
            (tmp / name).mkdir()
        self.to_source = over_ssh(Desk(tmp / "one"), self.source)
        self.to_target = over_ssh(Desk(tmp / "two"), self.target)
        self.rig = Rig(tmp, FILES, self.to_source)
        self.route = DirectRoute(
            "box", "other", self.target.host, self.target.port, self.target.user, self.target.host_key_pub
        )
        self.far = tmp / "far"

    def store(self) -> BoxStore:
        return BoxStore("other", self.to_target, str(self.far), self.rig.name)

    async def copy(self, route: DirectRoute | None = None) -> CopyReport:
        self.rig.source = Source("box", self.rig.source.dial, route or self.route)
        return await self.rig.copy(self.store())

    def tidy(self) -> None:
        """Nothing of the transfer is left on either box."""
        assert self.allowed.read_text() in (self.before, self.before + "\n")
        assert [*self.made.glob("rgt-once.*"), *self.target.home.glob(".ssh/rgt-*")] == []


@pytest.fixture
def pair(tmp_path: Path, sshd_factory: Callable[..., Sshd]) -> Pair:
    return Pair(tmp_path, sshd_factory)


async def test_direct_with_a_key_for_once(pair: Pair) -> None:
    seen: list[str] = []

    async def watching() -> None:
        while True:
            seen.append(pair.allowed.read_text())
            await asyncio.sleep(0.02)

    watch = asyncio.ensure_future(watching())
    report = await pair.copy()
    watch.cancel()
    assert report.refusals == ()
    assert report.gaps == ()
    assert report.route == "direct"
    bag = pair.far / pair.rig.name
    independent_readers(bag)
    assert content(bag / "data")["big.pt"] == FILES["big.pt"]
    admitted = [line for text in seen for line in text.splitlines() if "rgt-once" in line]
    assert admitted
    assert re.match(
        r'restrict,expiry-time="\d{8}",command="exec /bin/sh /[^ "]+/receive" '
        r"ssh-ed25519 \S+ rgt-once-[0-9a-f]{24}$",
        admitted[0],
    )
    assert len(report.admissions) == 1
    record = report.admissions[0]
    assert record.fingerprint.startswith("SHA256:")
    assert (record.source, record.target) == ("box", "other")
    assert record.removed_at is not None
    pair.tidy()


async def test_what_the_key_cannot_do(pair: Pair, tmp_path: Path) -> None:
    """Whoever steals the key while it is admitted can only hand over bytes of the numbered files."""
    stolen: list[list[str]] = []

    async def thief() -> None:
        while not stolen:
            for folder in pair.made.glob("rgt-once.*"):
                key = folder / "key"
                if key.exists() and "rgt-once" in pair.allowed.read_text():
                    copy = tmp_path / "stolen"
                    try:
                        copy.write_bytes(key.read_bytes())
                    except FileNotFoundError:
                        continue
                    copy.chmod(0o600)
                    stolen.append([str(copy)])
                    return
            await asyncio.sleep(0.01)

    slow = pair.rig.source.dial

    async def dial() -> BulkTransport:
        transport = await slow()
        opened = transport.open

        async def wait_first(script: Script, *, timeout: float = 15.0) -> object:
            if "rgt-target" in script.text and stolen:
                await asyncio.to_thread(_try_it, pair, stolen[0][0], said)
            return await opened(script, timeout=timeout)

        transport.open = wait_first  # type: ignore[method-assign, assignment]
        return transport

    said: dict[str, Done] = {}
    pair.rig.source = replace(pair.rig.source, dial=dial)
    steal = asyncio.ensure_future(thief())
    report = await pair.copy()
    await steal
    assert report.refusals == ()
    assert said["shell"].returncode == 77
    assert said["shell"].stdout == b""
    assert said["number"].returncode == 77
    assert said["past the end"].returncode == 77
    assert said["forward"].returncode != 0
    assert not (pair.target.home / "evil").exists()
    independent_readers(pair.far / pair.rig.name)
    late = _ssh(pair, stolen[0][0], "check")
    assert late.returncode == 255  # the key is out
    pair.tidy()


def _ssh(pair: Pair, key: str, *command: str, stdin: bytes = b"", more: tuple[str, ...] = ()) -> Done:
    return subprocess.run(
        [
            "ssh", "-F", "none", "-i", key, "-p", str(pair.target.port), "-o", "BatchMode=yes",
            "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=no",
            "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", *more,
            f"{pair.target.user}@{pair.target.host}", *command,
        ],
        input=stdin, capture_output=True, timeout=20, check=False,
    )  # fmt: skip


def _try_it(pair: Pair, key: str, said: dict[str, Done]) -> None:
    if said:
        return
    said["shell"] = _ssh(pair, key, "touch evil; id")
    said["number"] = _ssh(pair, key, "999 0", stdin=b"x")
    said["past the end"] = _ssh(pair, key, "1 999999", stdin=b"x")
    said["forward"] = _ssh(
        pair,
        key,
        "-N",
        more=("-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1", "-o", "ConnectTimeout=3"),
    )
    said["bytes"] = _ssh(pair, key, "1 0", stdin=b"forged bytes of the first file")


async def test_no_way_between_the_boxes(pair: Pair) -> None:
    """Then through this computer, and it is said; the key is taken out all the same."""
    report = await pair.copy(replace(pair.route, port=1))
    assert report.refusals == ()
    assert report.route == "through this computer"
    assert [one.code for one in report.gaps] == ["direct-route-failed"]
    assert "does not get through" in report.gaps[0].detail
    assert report.admissions[0].removed_at is not None
    independent_readers(pair.far / pair.rig.name)
    pair.tidy()


async def test_another_machine_at_that_address(pair: Pair) -> None:
    """The source meets a host key that this computer has not seen: nothing is sent to it."""
    stranger = replace(pair.route, public_key=pair.source.host_key_pub)
    report = await pair.copy(stranger)
    assert [one.code for one in report.gaps] == ["direct-route-failed"]
    assert report.route == "through this computer"
    pair.tidy()


async def test_a_source_that_sends_other_bytes(pair: Pair) -> None:
    """What arrived directly is hashed over our own connection; wrong bytes count for nothing."""
    path = Path(pair.rig.roster.root) / "big.pt"
    path.write_bytes(b"?" + FILES["big.pt"][1:])
    report = await pair.copy()
    assert [(one.code, one.path) for one in report.refusals] == [("hash-differs", "big.pt")]
    assert not (pair.far / pair.rig.name).exists()
    pair.tidy()


async def test_cancelled_in_the_middle_takes_the_key_out(pair: Pair) -> None:
    work = asyncio.ensure_future(pair.copy())
    while "rgt-once" not in pair.allowed.read_text():
        await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    pair.tidy()
    report = await pair.copy()
    assert report.refusals == ()


async def test_the_link_between_them_breaks(pair: Pair) -> None:
    async with proxy(pair.target.host, pair.target.port, Faults()) as link:

        async def cutting() -> None:
            for _ in range(2):
                await asyncio.sleep(0.6)
                link.cut()

        cut = asyncio.ensure_future(cutting())
        report = await pair.copy(replace(pair.route, port=link.port))
        cut.cancel()
    assert report.refusals == ()
    independent_readers(pair.far / pair.rig.name)
    pair.tidy()

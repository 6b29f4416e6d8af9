"""Faults of the catalogue that touch the chain and have no better place: links, disks, a short store."""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.box.boxes import Desk, instance
from tests.box.transfer_box import content, noise, over_ssh
from tests.custody.copy_rig import FILES, Rig, codes, here, independent_readers
from tests.custody.endings import Scene
from tests.custody.endings import codes as refused
from tests.rig import Sshd
from tests.rig.proxy import proxy
from tests.rig.tmpfs import remount, tmpfs
from tui.box.transfer.meter import Progress
from tui.custody.consumers import HereConsumer
from tui.custody.preflight import unreached
from tui.custody.stores.base import Store
from tui.custody.stores.path import PathStore
from tui.model.failure import Failure


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


# --- links ------------------------------------------------------------------------------------------------


@pytest.mark.real
async def test_net_loss_costs_time_and_neither_the_link_nor_a_byte(sshd: Sshd, tmp_path: Path) -> None:
    """NET-LOSS: one block in ten comes late, as after a lost segment."""
    dice = random.Random(4)
    rig = Rig(tmp_path, {**FILES, "big": noise(3 << 20, 1)}, here)
    async with proxy(sshd.host, sshd.port) as link:
        link.faults.stall = lambda: 0.2 if dice.random() < 0.1 else 0.0
        source = replace(rig.source, dial=over_ssh(Desk(tmp_path), sshd, link.port))
        report = await rig.copy(rig.path_store(), source=source)
        assert link.connections <= 2
    assert report.refusals == ()
    independent_readers(tmp_path / "vault" / rig.name)


@pytest.mark.real
async def test_net_sleep_a_copy_goes_on_after_this_computer_slept(sshd: Sshd, tmp_path: Path) -> None:
    """NET-SLEEP: nothing of ours runs for a while, and on waking the link is dead."""
    rig = Rig(tmp_path, {"big": noise(6 << 20, 1)}, here)
    async with proxy(sshd.host, sshd.port) as link:
        slept = False

        def sleep_once(progress: Progress) -> None:
            nonlocal slept
            if not slept and progress.done > 1 << 20:
                slept = True
                time.sleep(1.5)  # the whole process stands still: timers are late when it goes on
                link.cut()

        source = replace(rig.source, dial=over_ssh(Desk(tmp_path), sshd, link.port))
        report = await rig.copy(rig.path_store(), source=source, on_progress=sleep_once)
    assert slept
    assert report.refusals == ()
    assert content(tmp_path / "vault" / rig.name / "data") == rig.files


def test_net_sleep_before_the_verb_voids_the_approval(scene: Scene) -> None:
    order = scene.order()
    scene.now += 8 * 3600
    assert set(refused(scene.carry_out(order))) >= {"approval-expired", "proof-expired"}
    assert scene.plane.sent == []


def test_net_sleep_after_the_verb_is_no_reason_to_send_it_twice(scene: Scene) -> None:
    def falls_asleep(verb: str) -> None:
        scene.now += 8 * 3600

    scene.plane.on_verb = falls_asleep
    outcome = scene.carry_out(scene.order())
    assert outcome.kind == "proven"
    assert scene.plane.sent == ["destroy"]
    assert len({one.at for one in outcome.witnesses}) == 3  # the rounds still lie apart


@pytest.mark.real
async def test_net_jump_dead_a_copy_stops_whole_and_goes_on_when_it_is_back(
    sshd: Sshd, tmp_path: Path
) -> None:
    """NET-JUMP-DEAD: the host in between dies in the middle and stays away for longer than we wait."""
    rig = Rig(tmp_path, {"first": noise(1 << 20, 2), "second": noise(6 << 20, 1)}, here)
    async with proxy(sshd.host, sshd.port) as link:
        hop = instance(sshd)
        assert hop.endpoint is not None
        config = sshd.ssh_config("hop")
        config.write_text(config.read_text().replace(f"Port {sshd.port}", f"Port {link.port}"))
        via = replace(hop, endpoint=replace(hop.endpoint, jump=("hop",)))
        connector = Desk(tmp_path).connector(config)
        source = replace(rig.source, dial=lambda: connector.connect(via))

        def dies(progress: Progress) -> None:
            if progress.done > 2 << 20 and link.faults.refuse == 0:
                link.faults.refuse = 1_000
                link.cut()

        with pytest.raises(Failure, match="jump host"):
            await rig.copy(rig.path_store(), source=source, on_progress=dies, cap=8 << 20)
        assert not (tmp_path / "vault" / rig.name).exists()  # nothing that looks like a copy
        link.faults.refuse = 0
        report = await rig.copy(rig.path_store(), source=source)
    assert report.refusals == ()
    assert report.resumed > 0
    assert content(tmp_path / "vault" / rig.name / "data") == rig.files


def test_net_jump_dead_before_the_verb_sends_nothing(scene: Scene) -> None:
    order = scene.order()
    scene.before = unreached(Failure("The jump host of box-1 does not answer."))
    outcome = scene.carry_out(order)
    assert refused(outcome) == ["box-unknown"]
    assert "jump host" in outcome.refusals[0].detail
    assert scene.plane.sent == []


# --- disks ------------------------------------------------------------------------------------------------


@pytest.mark.real
async def test_disk_ro_a_store_that_turns_read_only_keeps_no_half_copy(tmp_path: Path) -> None:
    """DISK-RO: before the copy, and in the middle of it; afterwards it goes on where it stopped."""
    files = {"first": noise(1 << 20, 2), "second": noise(4 << 20, 1)}
    with tmpfs(tmp_path / "disk", size=32 << 20) as disk:
        rig = Rig(tmp_path, files, here)
        remount(disk, "ro")
        with pytest.raises(Failure, match=r"[Rr]ead-only"):
            await rig.copy(PathStore(disk, rig.name))
        assert list(disk.iterdir()) == []
        remount(disk, "rw")
        report = await rig.copy(PathStore(disk, rig.name))
        assert report.refusals == ()
        remount(disk, "ro")  # a finished copy on a disk that went read-only is still a copy
        read = await rig.read(report, PathStore(disk, rig.name))
        assert codes(read) == []


# --- stores -----------------------------------------------------------------------------------------------


async def test_store_short_a_store_that_lists_all_and_gives_less_is_refused(tmp_path: Path) -> None:
    """STORE-SHORT: names and sizes are right in the listing; fewer bytes come."""
    rig = Rig(tmp_path, FILES, here)
    copied = await rig.copy(rig.path_store())

    class Short(HereConsumer):
        async def listed(self, store: Store) -> object:  # type: ignore[override]
            found = await super().listed(store)
            assert isinstance(store, PathStore)
            os.truncate(store.final / "data" / "last.pt", 1_000_000)
            return found

    report = await rig.read(copied, rig.path_store(), consumer=Short(tmp_path / "readers"))
    assert set(codes(report)) <= {"readback-inexact", "readback-unreadable"}
    assert report.different == ("last.pt",)

"""The probe through a real OpenSSH server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.box.boxes import Desk, instance
from tests.rig import Sshd
from tui.box.probe.loop import Probe, ProbeRequest
from tui.box.transport import LinkLost
from tui.model.run import RunSpec


async def test_a_noisy_login_that_grants_two_sessions(
    sshd_factory: Callable[..., Sshd], tmp_path: Path
) -> None:
    server = sshd_factory(max_sessions=2, rc_text="echo '@rgt welcome'; printf '\\033[31mhello'")
    (server.home / "train.log").write_text("123")
    transport = await Desk(tmp_path).connector().connect(instance(server))
    runs = (RunSpec("r", "box", log="train.log", pid=os.getpid()),)
    try:
        for _ in range(4):  # a shell that outlived its channel would take a session for good
            probe = Probe(transport)
            full = await probe.tick(ProbeRequest(runs), candidates=True, xid=True)
            quiet = await probe.tick(ProbeRequest(runs), gpus=False, filesystems=False)
            await probe.close()
            assert full.runs[0].log.value is not None
            assert full.runs[0].log.value.size_bytes == 3
            assert quiet.runs[0].alive
            assert full.host.value is not None
            assert full.host.value.home == str(server.home)
    finally:
        await transport.close()


async def test_a_cut_link_is_told_and_the_next_connection_probes_on(sshd: Sshd, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    transport = await desk.connector().connect(instance(sshd))
    probe = Probe(transport)
    await probe.tick(ProbeRequest(), gpus=False)
    sshd.kill_sessions()
    with pytest.raises(LinkLost):
        await probe.tick(ProbeRequest(), gpus=False)
    await probe.close()
    await transport.close()
    again = await desk.connector().connect(instance(sshd))
    fresh = Probe(again)
    telemetry = await fresh.tick(ProbeRequest(), gpus=False)
    assert telemetry.filesystems.value
    await fresh.close()
    await again.close()

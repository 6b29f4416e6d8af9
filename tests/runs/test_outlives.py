"""Whether a start outlives its connection: a real sshd with a real tmux, and one that ends everything."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real import need
from tests.rig import Sshd
from tests.runs.test_launch import box, dialled
from tui.box.session import SshTransport
from tui.box.transport import Transport
from tui.runs.detach import How
from tui.runs.outlives import outlives

__all__ = ["box"]


@pytest.mark.parametrize("how", ["tmux", "nohup"])
async def test_it_is_tried_over_a_second_connection_and_leaves_nothing(
    box: Sshd, tmp_path: Path, how: How
) -> None:
    need("tmux")
    async with dialled(box, tmp_path) as dial:
        first = await dial()

        async def again() -> Transport:
            assert isinstance(first, SshTransport)
            await first.close()
            return await dial()

        check = await outlives(first, how, again)
    assert (check.verdict, how in check.said) == ("ok", True)
    assert not [one for one in box.processes() if one.name() == "sleep"]


async def test_a_box_that_ends_everything_with_the_connection_stops_a_launch(
    box: Sshd, tmp_path: Path
) -> None:
    """As logind does where KillUserProcesses is on."""
    async with dialled(box, tmp_path) as dial:

        async def again() -> Transport:
            for process in box.processes():
                process.kill()
            return await dial()

        check = await outlives(await dial(), "nohup", again)
    assert (check.verdict, "would die" in check.said) == ("stop", True)


async def test_a_tmux_that_cannot_start_stops_a_launch(
    sshd_factory: Callable[..., Sshd], tmp_path: Path
) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "tmux").write_text("#!/bin/sh\necho no server >&2\nexit 1\n")
    (broken / "tmux").chmod(0o755)
    server = sshd_factory(extra_config=(f"SetEnv PATH={broken}:{os.environ['PATH']}",))
    async with dialled(server, tmp_path) as dial:
        check = await outlives(await dial(), "tmux", dial)
    assert (check.verdict, "no server" in check.said) == ("stop", True)

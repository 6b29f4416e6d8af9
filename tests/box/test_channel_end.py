"""When a stream is whole: a status says that the process ended, not that its last bytes came."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import asyncssh
import pytest

from tui.box.channel import RemoteProcess
from tui.box.transport import LinkLost

MARKER = b"MARK\n"


def process(state: str) -> RemoteProcess:
    """A process whose status and first bytes came; `state`: how far asyncssh has got with the channel."""
    made = RemoteProcess("cat", MARKER, None)
    channel = SimpleNamespace(_recv_state=state, _recv_buf=[])
    made.connection_made(cast("asyncssh.SSHClientChannel[bytes]", channel))
    made.data_received(MARKER + b"half", None)
    made.exit_status_received(0)
    return made


async def test_a_link_that_is_cut_after_the_status_and_before_the_end_is_lost() -> None:
    cut = process("open")
    cut.connection_lost(ConnectionResetError())
    assert await cut.read(100) == b"half"
    with pytest.raises(LinkLost):
        await cut.read(100)


@pytest.mark.parametrize("eof", [True, False])
async def test_an_end_or_a_close_that_the_box_sent_is_one(eof: bool) -> None:
    whole = process("eof" if eof else "closed")
    if eof:
        whole.eof_received()
    whole.connection_lost(ConnectionResetError() if eof else None)
    assert await whole.read(100) == b"half"
    assert await whole.read(100) == b""
    assert whole.exit == 0

"""A shorter way for bulk data between the socket and asyncssh, for the versions of it that were read.

asyncssh copies every byte some fourteen times on its way in and calls some thirty functions per packet of
32 KiB, which is most of what a fast transfer costs here. `Lane` stands between the socket and the connection.
It takes packets that carry data of our own channels out of the stream itself: one decryption, no copy. All
else (logins, key exchanges, requests, packets whose tag is wrong, other ciphers) is handed to asyncssh as it
came, and so is everything where asyncssh is another version than those this was written against.

Only state between two packets is touched: a packet that asyncssh has begun is left to it.

Imports asyncssh, so it is imported late (with the first connection).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import asyncssh
from asyncssh.encryption import GCMEncryption
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tui.box.channel import RemoteProcess

KNOWN = frozenset({"2.24.0", "2.24.1"})
"""Versions of asyncssh whose inside is what this module takes it for."""

_BUFFER = 256 << 10
_TAG = 16
_CHANNEL_DATA = 94  # RFC 4254, 5.2
_DATA_AT = 10  # padding length, message, channel, length of the data: 1 + 1 + 4 + 4 bytes


class Way:
    """Leads asyncssh to a connected socket, through a `Lane`; for the `tunnel` argument of its `connect`."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    async def create_connection(
        self, factory: Callable[[], Any], host: str, port: int
    ) -> tuple[asyncio.BaseTransport, Any]:
        """Called by asyncssh instead of the loop's."""
        loop = asyncio.get_running_loop()
        if asyncssh.__version__ not in KNOWN:
            return await loop.create_connection(factory, sock=self._sock)
        conn = factory()
        transport, _ = await loop.create_connection(lambda: Lane(conn), sock=self._sock)
        return transport, conn


class Lane(asyncio.BufferedProtocol):
    """Receives for one connection.

    Attributes:
        carried: bytes of data that went the shorter way.
    """

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self._view = memoryview(bytearray(_BUFFER))
        self._end = 0  # bytes of an unfinished packet, or none
        self._key = b""
        self._aead: AESGCM | None = None
        self.carried = 0

    # --- called by asyncio --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._conn.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._conn.connection_lost(exc)

    def eof_received(self) -> bool | None:
        self._hand_over(0, self._end)
        self._end = 0
        self._conn.eof_received()
        return None

    def pause_writing(self) -> None:
        self._conn.pause_writing()

    def resume_writing(self) -> None:
        self._conn.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        end = self._end + nbytes
        at = self._packets(end)
        if at and at < end:  # never more than one packet; it may overlap with where it goes
            self._view[: end - at] = bytes(self._view[at:end])
        self._end = end - at

    # --- inside -------------------------------------------------------------------------------------------

    def _packets(self, end: int) -> int:
        """Pass on the packets up to `end`; returns where the first unfinished one starts."""
        conn, view, at = self._conn, self._view, 0
        ready = self._between_packets()
        if ready:
            conn._reset_keepalive_timer()
        while at < end:
            if not ready:
                self._hand_over(at, end)
                return end
            if end - at < 4:
                return at
            length = int.from_bytes(view[at : at + 4], "big")
            over = at + 4 + length + _TAG
            if length > conn._max_recv_pktlen or over - at > _BUFFER:
                self._hand_over(at, end)
                return end
            if over > end:
                return at
            if not self._data(view[at : at + 4], view[at + 4 : over]):
                self._hand_over(at, over)
                ready = self._between_packets()
            at = over
        return at

    def _between_packets(self) -> bool:
        """Whether asyncssh waits for the start of a packet whose length stands there in the clear."""
        conn = self._conn
        return (
            not conn._inpbuf
            and type(conn._recv_encryption) is GCMEncryption
            and conn._recv_handler == conn._recv_pkthdr
            and conn._auth_complete
            and conn._decompressor is None
        )

    def _data(self, head: memoryview, sealed: memoryview) -> bool:
        """Deliver a packet of channel data; False: it is another, and nothing has happened yet."""
        conn = self._conn
        cipher = conn._recv_encryption._cipher
        if self._aead is None or self._key != cipher._key:
            self._key, self._aead = cipher._key, AESGCM(cipher._key)
        try:
            packet = self._aead.decrypt(cipher._iv, sealed, head)
        except InvalidTag:
            return False  # asyncssh finds the same, and ends the connection
        if len(packet) < _DATA_AT or packet[1] != _CHANNEL_DATA:
            return False
        channel = conn._channels.get(int.from_bytes(packet[2:6], "big"))
        size = int.from_bytes(packet[6:_DATA_AT], "big")
        if (
            channel is None
            or type(channel._session) is not RemoteProcess
            or channel._recv_state != "open"
            or channel._send_state != "open"
            or not 0 < size <= channel._recv_window
            or len(packet) != _DATA_AT + size + packet[0]
        ):
            return False
        cipher._update_iv()
        conn._recv_seq = (conn._recv_seq + 1) & 0xFFFFFFFF
        self.carried += size
        data = memoryview(packet)[_DATA_AT : _DATA_AT + size]
        if channel._recv_paused or 2 * (channel._recv_window - size) < channel._init_recv_window:
            channel._accept_data(data)  # which holds the data back, or opens the window again
        else:
            channel._recv_window -= size
            channel._session.data_received(data, None)
        return True

    def _hand_over(self, start: int, end: int) -> None:
        if end > start:
            self._conn.data_received(bytes(self._view[start:end]))

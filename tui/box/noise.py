"""Cuts off what a login shell printed before our own output began."""

from __future__ import annotations

import secrets

_NOISE_KEPT = 2048


def new_marker() -> bytes:
    """Text that nothing on the box can know beforehand."""
    return b"<rgt:" + secrets.token_hex(8).encode() + b">"


class NoiseCut:
    """Lets bytes through once the marker has passed.

    Attributes:
        noise: the beginning of what came before, at most 2 KiB; for saying why a command did not start.
        open: whether the marker was seen.
    """

    def __init__(self, marker: bytes) -> None:
        self._marker = marker
        self._tail = b""
        self.noise = b""
        self.open = not marker

    def feed(self, data: bytes | memoryview) -> bytes | memoryview:
        """The part of `data` that is ours. However much noise comes, only the marker's length is held."""
        if self.open:
            return data
        held = self._tail + bytes(data)
        at = held.find(self._marker)
        if at >= 0:
            self.open = True
            self._keep(held[:at])
            self._tail = b""
            return held[at + len(self._marker) :]
        keep = len(self._marker) - 1
        self._keep(held[:-keep])
        self._tail = held[-keep:]
        return b""

    def all_noise(self) -> bytes:
        """What came when the marker never did."""
        return self.noise + self._tail

    def _keep(self, noise: bytes) -> None:
        self.noise = (self.noise + noise)[:_NOISE_KEPT]

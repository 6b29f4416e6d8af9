"""The decision about a server's host key. Pure: it is asked by the key exchange and must answer at once."""

from __future__ import annotations

from collections.abc import Sequence

from tui.box.errors import ConnectFailure, identity_changed
from tui.box.known_hosts import KnownKeys
from tui.box.trust import FIRST_USE, FLEET_FILE, KNOWN_HOSTS, OPERATOR, Pin, fingerprint_of
from tui.model.instance import LinkState

FAMILIES: dict[str, tuple[str, ...]] = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa": ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}
"""Host key algorithms by key type. Certificates are left out: they are no identity one can compare."""


def family_of(key_type: str) -> str:
    return "ecdsa" if key_type.startswith("ecdsa") else key_type


def algorithms(preferred: Sequence[str] = ()) -> list[str]:
    """All algorithms, those of the preferred key types first.

    All, because a server without the pinned type would otherwise just hang up, which looks like a network
    fault; the pinned type first, because a server with several would otherwise show one we cannot compare.
    """
    order = [family_of(key_type) for key_type in preferred if family_of(key_type) in FAMILIES]
    return [name for family in dict.fromkeys([*order, *FAMILIES]) for name in FAMILIES[family]]


class HostKeyCheck:
    """Judges the key one connection is offered.

    Args:
        name: the box (or jump host) whose identity it must prove.
        pin: the recorded identity, if any.
        wanted: the fingerprint in ``fleet.toml``, if any. It wins over the record, unless the operator
            accepted the recorded key after comparing it.
        known: what the user's known_hosts say; at the first meeting only.

    Attributes:
        offered: the key that was shown, as an OpenSSH line.
        how: why it is trusted, when it has yet to be recorded.
        note: what the receipt should say besides.
        failure: why it is not trusted.
    """

    def __init__(
        self, name: str, where: str, *, pin: Pin | None, wanted: str | None, known: KnownKeys
    ) -> None:
        self._name, self._where, self._known = name, where, known
        compared = pin is not None and pin.how == OPERATOR
        self._wanted = wanted.strip().rstrip("=") if wanted and not compared else None
        self._pin = pin
        self.offered: str | None = None
        self.how: str | None = None
        self.note = ""
        self.failure: ConnectFailure | None = None

    @property
    def pinned_key(self) -> str | None:
        """The one key to accept without asking back."""
        return self._pin.public_key if self._pin and self._wanted in (None, self._pin.fingerprint) else None

    @property
    def by_fingerprint(self) -> bool:
        """Whether only a fingerprint is known, so that the key's type is not."""
        return self._wanted is not None and self.pinned_key is None

    @property
    def preferred(self) -> tuple[str, ...]:
        """Key types to ask the server for first."""
        return (self._pin.key_type,) if self._pin else self._known.types

    def accepts(self, public_key: str) -> bool:
        """Whether to go on with a server that proved to have `public_key`."""
        self.offered, self.how, self.failure = public_key, None, None
        fingerprint = fingerprint_of(public_key)
        if fingerprint in self._known.revoked:
            self.failure = _revoked(self._name, self._where, fingerprint)
        elif self._wanted is not None:
            if fingerprint == self._wanted:
                self.how = FLEET_FILE
            else:
                self.failure = self._changed(fingerprint, self._wanted, "fleet.toml")
        elif self._pin is not None:
            if self._pin.public_key != public_key:
                self.failure = self._changed(
                    fingerprint, self._pin.fingerprint, f"its record ({self._pin.how})"
                )
        else:
            self._first_use(fingerprint)
        return self.failure is None

    def _first_use(self, fingerprint: str) -> None:
        if fingerprint in self._known.fingerprints:
            self.how = KNOWN_HOSTS
            return
        self.how = FIRST_USE
        if self._known.fingerprints:
            others = ", ".join(sorted(self._known.fingerprints))
            self.note = f"known_hosts held another key for this address: {others}"

    def _changed(self, offered: str, pinned: str, source: str) -> ConnectFailure:
        return identity_changed(self._name, self._where, offered=offered, pinned=pinned, source=source)


def _revoked(name: str, where: str, fingerprint: str) -> ConnectFailure:
    return ConnectFailure(
        f"{name} at {where} showed the key {fingerprint}, which known_hosts marks as revoked.",
        state=LinkState.IDENTITY,
        retry=False,
        means="Nothing was sent.",
        do="Ask whoever revoked it; remove the @revoked line only if it was a mistake.",
        code="host-key-revoked",
        offered=fingerprint,
    )

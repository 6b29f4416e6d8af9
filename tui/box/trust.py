"""By which host key each box is known, and how it came to be trusted.

Trust is bound to the instance's *name*. Rented boxes share host names and reuse ports, so an address says
little about which machine answers.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from tui.durable import read_regular, write_whole
from tui.model.failure import Failure

FIRST_USE = "first use"
OPERATOR = "operator"
KNOWN_HOSTS = "known_hosts"
FLEET_FILE = "pinned in fleet.toml"

_LARGEST = 1 << 20

JUMP_HOST = "jump host "
"""Jump hosts are no instances; they are known by this and ``host:port``. No instance name holds a blank."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The recorded identity of one box.

    Attributes:
        public_key: ``ssh-ed25519 AAAA…``.
        fingerprint: ``SHA256:…``.
        how: one of FIRST_USE, OPERATOR, KNOWN_HOSTS, FLEET_FILE.
        endpoint: ``user@host:port`` where the key was seen.
        recorded_at: seconds since the epoch.
    """

    name: str
    public_key: str
    fingerprint: str
    how: str
    endpoint: str
    recorded_at: float

    @property
    def key_type(self) -> str:
        return self.public_key.split()[0]


def fingerprint_of(public_key: str) -> str:
    """``SHA256:…`` of an OpenSSH public key line, as ssh-keygen prints it. Raises ValueError."""
    words = public_key.split()
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (IndexError, binascii.Error) as exc:
        raise ValueError("not an OpenSSH public key") from exc
    named = blob[4 : 4 + int.from_bytes(blob[:4], "big")]
    if named != words[0].encode():
        raise ValueError("the key's type and its content differ")
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


class TrustStore:
    """The pins of all boxes: one small file each, replaced as a whole.

    Args:
        directory: for the pins.
        receipts: for the receipts; one file for every key that was ever accepted, never changed afterwards.
    """

    def __init__(self, directory: Path, receipts: Path) -> None:
        self.directory = directory
        self._receipts = receipts
        self._offered: dict[str, tuple[str, str]] = {}

    def pinned(self, name: str) -> Pin | None:
        """The key `name` is known by; None when it was never met.

        Raises:
            Failure: the record is damaged. That is never the same as "not met yet".
        """
        path = self._file(name)
        try:
            raw = read_regular(path, _LARGEST)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise _unreadable(name, path, exc.strerror or str(exc)) from None
        try:
            pin = Pin(**json.loads(raw))
            if pin.name == name and pin.fingerprint == fingerprint_of(pin.public_key):
                return pin
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise _unreadable(name, path, "it is damaged")

    def record(
        self, name: str, public_key: str, how: str, now: float, *, endpoint: str = "", note: str = ""
    ) -> Pin:
        """Trust `public_key` as the identity of `name`, and write a receipt. Both are on disk on return.

        Raises:
            Failure: they could not be written. ValueError: this is no public key.
        """
        public_key = " ".join(public_key.split()[:2])
        pin = Pin(name, public_key, fingerprint_of(public_key), how, endpoint, now)
        receipt = {
            "kind": "host key accepted",
            "name": name,
            "fingerprint": pin.fingerprint,
            "key_type": pin.key_type,
            "endpoint": endpoint,
            "when": now,
            "how": how,
            "note": note,
        }
        stamp = f"{quote(name, safe='')}-{int(now)}-{hashlib.sha256(repr(receipt).encode()).hexdigest()[:8]}"
        try:
            _write(self._receipts / f"host-key-{stamp}.json", receipt)
            _write(self._file(name), asdict(pin))
        except OSError as exc:
            raise self._unwritten(name, exc, "It is not trusted.") from None
        self._offered.pop(name, None)
        return pin

    def offer(self, name: str, public_key: str, endpoint: str) -> None:
        """Remember a key that was refused, so that the operator can `accept` it. Kept in memory only."""
        self._offered[name] = (public_key, endpoint)

    def accept(self, name: str, fingerprint: str, now: float) -> Pin:
        """The operator compared `fingerprint` and trusts it as the identity of `name`, or of its jump host.

        Raises:
            Failure: no such key was offered by the box since this program started.
        """
        for known_as in (name, *(other for other in self._offered if other.startswith(JUMP_HOST))):
            public_key, endpoint = self._offered.get(known_as, ("", ""))
            if public_key and fingerprint_of(public_key) == fingerprint:
                return self.record(known_as, public_key, OPERATOR, now, endpoint=endpoint)
        raise Failure(
            f"{name} has not shown a key with the fingerprint {fingerprint}.",
            means="Nothing was changed.",
            do="Connect again and compare the fingerprint that is shown then.",
            code="key-not-offered",
        )

    def forget(self, name: str) -> bool:
        """Drop the pin of `name`; receipts stay. Returns whether there was one. Raises Failure."""
        self._offered.pop(name, None)
        try:
            self._file(name).unlink()
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise self._unwritten(name, exc, "Its record stays.") from None
        return True

    def rename(self, old: str, new: str) -> None:
        """The instance goes by another name now; its identity is the same. Raises Failure."""
        if old == new:
            return
        pin = self.pinned(old)
        if pin is None:
            return
        if self.pinned(new) is not None:
            raise Failure(f"{new} already has a recorded identity.", do="Remove it first.")
        try:
            _write(self._file(new), {**asdict(pin), "name": new})
        except OSError as exc:
            raise self._unwritten(new, exc, f"{old} keeps its own.") from None
        self.forget(old)

    def _unwritten(self, name: str, exc: OSError, means: str) -> Failure:
        return Failure(
            f"The identity of {name} could not be recorded: {exc.strerror or exc}.",
            means=means,
            do=f"Make room or rights in {self.directory}.",
            code="trust-not-written",
        )

    def _file(self, name: str) -> Path:
        return self.directory / f"{quote(name, safe='')}.json"


def _unreadable(name: str, path: Path, why: str) -> Failure:
    return Failure(
        f"The recorded identity of {name} cannot be read ({path}): {why}.",
        means="The box cannot be told from an impostor, so it is not connected.",
        do="Restore the file, or remove it and compare the fingerprint anew.",
        code="trust-damaged",
    )


def _write(path: Path, content: dict[str, object]) -> None:
    """Replace a file as a whole: after a crash it is the old one or the new one."""
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1))

"""What the user's own known_hosts files say about one address. Read only: rgt never writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tui.box.trust import fingerprint_of

_READ_MAX = 8 << 20


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Fingerprints on file for one address; `types` are the key types, in the files' order."""

    fingerprints: frozenset[str] = frozenset()
    revoked: frozenset[str] = frozenset()
    types: tuple[str, ...] = ()


def known_keys(files: Iterable[Path], host: str, port: int) -> KnownKeys:
    """Look `host` up, hashed and wildcard entries included. Like ssh, skips lines that cannot be read."""
    import asyncssh

    keys: list[str] = []
    revoked: list[str] = []
    for path in files:
        try:
            with path.open("rb") as stream:
                text = stream.read(_READ_MAX).decode("utf-8", "replace")
        except OSError:
            continue
        for line in text.splitlines():
            try:
                matches = asyncssh.import_known_hosts(line).match(host, "", port if port != 22 else None)
            except ValueError:
                continue
            keys += [key.export_public_key().decode() for key in matches[0]]
            revoked += [key.export_public_key().decode() for key in matches[2]]
    return KnownKeys(
        frozenset(map(fingerprint_of, keys)),
        frozenset(map(fingerprint_of, revoked)),
        tuple(dict.fromkeys(key.split()[0] for key in keys)),
    )

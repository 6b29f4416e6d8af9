"""Credentials, found where the vendor's own tools keep them, else in the keyring. Never written in clear.

The order is that of the vendors' tools: the environment wins over their files; the keyring is where rgt
itself puts what it was told. Nothing of a credential is in what is said about it, but where it came from.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui.model.failure import Failure
from tui.model.text import safe
from tui.platforms.secret import Secret
from tui.platforms.vault import SILENT, Vault

_MOST = 64 * 1024
_KEY = re.compile(r"[\x21-\x7e]{8,4096}")


@dataclass(frozen=True, slots=True)
class Credential:
    """A key and where it was found. `warnings` are about the place, not about the key."""

    platform: str
    secret: Secret
    source: str
    warnings: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """No key. `why` goes on from the platform's name: where was looked, and what was wrong there.

    Attributes:
        silent: the keyring did not answer; there may be a key in it.
    """

    platform: str
    why: str
    warnings: tuple[Failure, ...] = ()
    silent: bool = False


Read = Callable[[str, Path], str | None]
"""The key in a file's text; the path tells its dialect."""


def _plain(text: str, path: Path) -> str | None:
    return text.strip() or None


def _key_value(*names: str) -> Read:
    """``name = value`` or ``name: value`` on a line of its own, with or without quotes."""

    def read(text: str, path: Path) -> str | None:
        pattern = rf"(?im)^\s*(?:{'|'.join(names)})\s*[:=]\s*[\"']?([^\s\"'#]+)"
        found = re.search(pattern, text)
        return found.group(1) if found else None

    return read


def _table(*names: str) -> Read:
    """The first of these keys, upper or lower case, at the top of a TOML or JSON file or in a table of it."""

    def read(text: str, path: Path) -> str | None:
        return next(_strings(_parsed(text, path), names), None)

    return read


def _parsed(text: str, path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _strings(data: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    tables = [data, *(value for value in data.values() if isinstance(value, dict))]
    for table in tables:
        for key, value in table.items():
            if key.lower() in names and isinstance(value, str) and value:
                yield value


def _paperspace(text: str, path: Path) -> str | None:
    """The key of the current team, which stands in another file; else the only key there is."""
    keys = _parsed(text, path).get("keys")
    if not isinstance(keys, dict):
        return None
    try:
        current = _parsed(path.with_name("config.toml").read_text()[:_MOST], path).get("team")
    except (OSError, UnicodeDecodeError):
        current = None
    if isinstance(current, str) and isinstance(keys.get(current), str):
        return str(keys[current])
    return str(next(iter(keys.values()))) if len(keys) == 1 else None


@dataclass(frozen=True, slots=True)
class Places:
    """Where one platform's key may be: variables, then files below the home folder (or XDG_CONFIG_HOME)."""

    variables: tuple[str, ...]
    files: tuple[tuple[str, Read], ...]
    odd: Callable[[str], str] = lambda key: ""


def _web_login(token: str) -> str:
    """What is wrong with an AutoDL token that is a browser's login: some tools keep that under one name."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return ""
    audience = claims.get("aud") if isinstance(claims, dict) else None
    if audience and "develop_api" not in str(audience):
        return "it is a browser's login, not a developer token"
    return ""


PLACES: Mapping[str, Places] = {
    "autodl": Places(
        ("AUTODL_TOKEN", "AUTODL_PRO_TOKEN"),
        (
            ("~/.config/autodl-cli/config.json", _table("token", "api_token", "autodl_token")),
            ("~/.autodl-cli/config.toml", _table("token", "api_token", "autodl_token")),
        ),
        _web_login,
    ),
    "runpod": Places(
        ("RUNPOD_API_KEY",),
        (
            ("~/.runpod/config.toml", _table("apikey", "api_key")),
            ("~/.runpod.yaml", _key_value("apikey", "api_key")),
        ),
    ),
    "vastai": Places(
        ("VAST_API_KEY",),
        (("$XDG/vastai/vast_api_key", _plain), ("~/.vast_api_key", _plain)),
    ),
    "lambda": Places(
        ("LAMBDA_API_KEY", "LAMBDA_CLOUD_API_TOKEN"),
        (("~/.lambda_cloud/lambda_keys", _key_value("api_key")),),
    ),
    "paperspace": Places(
        ("PAPERSPACE_API_KEY",),
        (
            ("~/.paperspace/credentials.toml", _paperspace),
            ("~/.paperspace/config.json", _table("apikey", "api_key")),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Finder:
    """Looks for keys on this computer.

    Args:
        vault: the keyring; None: it is not looked at.
    """

    environ: Mapping[str, str]
    home: Path
    vault: Vault | None = None

    def find(
        self, platform: str, *, name: str | None = None, variable: str | None = None
    ) -> Credential | Missing:
        """The key of a platform.

        Args:
            name: of the account, as it is kept in the keyring; the platform's by default.
            variable: the one environment variable that holds it; nothing else is looked at then.
        """
        places = PLACES.get(platform)
        if places is None:
            return Missing(platform, "has no API that rgt knows")
        if variable is not None:
            return self._of_variables(platform, (variable,), places) or Missing(
                platform, f"has no key: {safe(variable, 80)} is not set, or holds none"
            )
        found = self._of_variables(platform, places.variables, places)
        if found is not None:
            return found
        warnings: list[Failure] = []
        for spelled, read in places.files:
            credential = self._of_file(platform, spelled, read, places, warnings)
            if credential is not None:
                return credential
        try:
            kept = self._of_vault(platform, name or platform)
        except Failure as failure:
            why = f"has no key that can be had: {failure.line.rstrip('.')}: {places.variables[0]}"
            return Missing(platform, why, tuple(warnings), silent=True)
        looked = ", ".join((*places.variables, *(spelled for spelled, _ in places.files)))
        return kept or Missing(platform, f"has no key; looked at {looked}", tuple(warnings))

    def _of_variables(self, platform: str, names: tuple[str, ...], places: Places) -> Credential | None:
        for name in names:
            value = self.environ.get(name, "").strip()
            if _KEY.fullmatch(value) and not places.odd(value):
                return Credential(platform, Secret(value), f"the environment's {safe(name, 80)}")
        return None

    def _of_file(
        self, platform: str, spelled: str, read: Read, places: Places, warnings: list[Failure]
    ) -> Credential | None:
        path = self._path(spelled)
        text, warning = _contents(path)
        if text is None:
            return None
        key = (read(text, path) or "").strip()
        if not _KEY.fullmatch(key) or (odd := places.odd(key)):
            what = odd if _KEY.fullmatch(key) else "there is no key in it"
            warnings.append(Failure(f"{spelled} is passed over: {what}.", code="credential-passed-over"))
            return None
        return Credential(platform, Secret(key), spelled, (warning,) if warning else ())

    def _path(self, spelled: str) -> Path:
        head, _, rest = spelled.partition("/")
        if head == "$XDG":
            configured = self.environ.get("XDG_CONFIG_HOME", "")
            return (Path(configured) if configured else self.home / ".config") / rest
        return self.home / rest

    def _of_vault(self, platform: str, name: str) -> Credential | None:
        """Raises Failure: it does not answer, so that nothing is known of the key."""
        if self.vault is None:
            return None
        try:
            value = (self.vault.read(name) or "").strip()
        except Failure as failure:
            if failure.code == SILENT:
                raise
            return None
        return Credential(platform, Secret(value), "the keyring") if _KEY.fullmatch(value) else None


def _contents(path: Path) -> tuple[str | None, Failure | None]:
    """A file's text, and what is wrong with who may read it. Only a regular file is read."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return None, None
            raw = file.read(_MOST)
    except OSError:
        return None, None
    warning = None
    if stat.S_IMODE(found.st_mode) & 0o077:
        warning = Failure(
            f"Others on this computer may read the key in {path}.",
            means="Whoever reads it can rent, and destroy, in your name.",
            do=f"chmod 600 {path}",
            code="credential-readable",
        )
    return raw.decode("utf-8", "replace"), warning


def _without_waiting(name: str, flags: int) -> int:
    """A pipe in place of the file must not hold the watch up."""
    return os.open(name, flags | os.O_NONBLOCK)


# --- asking and keeping -------------------------------------------------------------------------------------


def keep(platform: str, typed: str, vault: Vault, *, name: str | None = None) -> Credential:
    """Put a key that the operator typed into the keyring. Raises Failure; nothing is kept anywhere else.

    Args:
        name: of the account, where there are several of one platform.
    """
    places = PLACES.get(platform)
    key = typed.strip()
    wrong = "it is no key" if not _KEY.fullmatch(key) else places.odd(key) if places else "no API is known"
    if wrong:
        raise Failure(
            f"This is no key of {safe(platform, 40)}: {wrong}.",
            means="Nothing was kept.",
            do="Copy the whole key from the provider's page, without blanks.",
            code="no-key",
        )
    vault.write(name or platform, key)
    return Credential(platform, Secret(key), "the keyring")

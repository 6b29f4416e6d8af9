"""What a value of ``fleet.toml`` may be. Each rule returns the value or raises ValueError with the reason.

Reasons never repeat text from the file: it may be a secret in the wrong place. The values reach ``ssh`` and a
shell's command line, so what could be read as an option, as shell syntax or as terminal codes is refused.
"""

from __future__ import annotations

import re
from datetime import datetime

from tui.model.via import parse_via

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9_])?\Z")
_IPV6 = re.compile(r"(?=.*:.*:)[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9._-]{1,32})?\Z")
_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@+=-]{0,127}\Z")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?\Z")
_PLATFORM = re.compile(r"[a-z0-9][a-z0-9-]{0,31}\Z")
_BOOT_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_SHELL = set(";|&$`<>\"'\\!*?(){}[]#")
_SECRET_KEY = re.compile(
    r"(?:.*_)?(?:password|passwd|passphrase|pass|pwd|secret|token|api_?key|access_?key|private_?key)\Z"
)
_DESTINATION = re.compile(
    r"(?:(?P<user>[^@\s]*)@)?(?:\[(?P<six>[^\]\s]+)\]|(?P<host>[^:\s]+))(?::(?P<port>\d{1,5}))?\Z"
)


def is_secret_key(key: str) -> bool:
    """Whether a key of this name asks for a secret itself, not for a reference to one."""
    return _SECRET_KEY.match(key.lower().replace("-", "_")) is not None


def name(value: str) -> str:
    """The name of a box or run: it becomes a file name and a word on the command line."""
    if not NAME.match(value):
        raise ValueError("must be 1–63 of A–Z, a–z, 0–9, '.', '_' and '-', and start with a letter or digit")
    return value


def transport(value: str) -> str:
    """The way to a machine that does not answer SSH itself."""
    parse_via(value)
    return value


def host(value: str) -> str:
    """A host name, an address, or an alias of the ssh configuration."""
    if value.startswith("-"):
        raise ValueError("must not start with '-': ssh would take it for an option")
    if not (_HOST.match(value) or _IPV6.match(value)):
        raise ValueError("is not a host name, address or ssh alias")
    return value


def port(value: int) -> int:
    if not 1 <= value <= 65535:
        raise ValueError("must be a port, 1–65535")
    return value


def user(value: str) -> str:
    if ":" in value:
        raise ValueError("must not hold a password: set password_env to the name of a variable")
    if not _USER.match(value):
        raise ValueError("is not a user name")
    return value


def destination(value: str) -> tuple[str | None, str, int | None]:
    """Take ``[user@]host[:port]`` apart; an IPv6 address with a port stands in brackets."""
    if _IPV6.match(value):
        return None, value, None
    found = _DESTINATION.match(value)
    if found is None:
        raise ValueError("must be an ssh alias or [user@]host[:port], without options")
    who = user(found["user"]) if found["user"] is not None else None
    number = port(int(found["port"])) if found["port"] else None
    return who, host(found["six"] or found["host"]), number


def hop(value: str) -> str:
    """One ProxyJump hop, ``[user@]host[:port]``."""
    destination(value)
    return value


def _printable(value: str, most: int) -> str:
    if not value or len(value) > most:
        raise ValueError(f"must be 1–{most} characters long")
    if not value.isprintable():
        raise ValueError("must not hold control or invisible characters")
    if value.startswith("-"):
        raise ValueError("must not start with '-'")
    return value


def key_file(value: str) -> str:
    """Path of a private key; never the key itself."""
    if "PRIVATE KEY" in value:
        raise ValueError("must be the path of a key file, not the key itself")
    _printable(value, 1024)
    if _SHELL & set(value):
        raise ValueError("must be a plain path without shell characters")
    return value


def proxy_command(value: str) -> str:
    """A ProxyCommand. ssh hands it to a shell, so only one plain command with %h, %p and %r is taken."""
    _printable(value, 1024)
    if set(";|&$`<>") & set(value):
        raise ValueError("must be one plain command; put anything with shell syntax into ~/.ssh/config")
    return value


def label(value: str) -> str:
    """An id that the platform gave, an account's name, a session's name."""
    return _printable(value, 256)


def platform(value: str) -> str:
    if not _PLATFORM.match(value):
        raise ValueError("must be the name of a profile, in small letters (see rgt profiles)")
    return value


def variable(value: str) -> str:
    """The name of an environment variable."""
    if not _ENV.match(value):
        raise ValueError("must be the NAME of an environment variable, not the password itself")
    return value


def fingerprint(value: str) -> str:
    if not _FINGERPRINT.match(value):
        raise ValueError("must be a fingerprint as ssh-keygen -lf shows it (SHA256:…)")
    return value.rstrip("=")


def mount(value: str) -> str:
    _printable(value, 4096)
    if not value.startswith("/"):
        raise ValueError("must be an absolute path on the box")
    return value


def remote_path(value: str) -> str:
    """A path or glob on the box; it travels as a quoted parameter, never as part of a script."""
    return _printable(value, 4096)


def currency(value: str) -> str:
    if not re.match(r"[A-Z]{3}\Z", value):
        raise ValueError("must be a three-letter code such as USD or CNY")
    return value


def moment(value: datetime) -> datetime:
    """A date with a time. Without an offset it is taken as the operator's local time."""
    if not 2010 <= value.year <= 2100:
        raise ValueError(f"the year {value.year} cannot be right")
    return value


def boot_id(value: str) -> str:
    if not _BOOT_ID.match(value):
        raise ValueError("must be the text of /proc/sys/kernel/random/boot_id")
    return value


def progress_regex(value: str) -> str:
    """A pattern for log lines with a group ``done``; ``total`` and ``loss`` may stand beside it."""
    if len(value) > 500:
        raise ValueError("must be at most 500 characters long")
    try:
        groups = re.compile(value).groupindex
    except (re.error, RecursionError, OverflowError):
        raise ValueError("is not a regular expression") from None
    if "done" not in groups:
        raise ValueError("needs a group named done, such as 'step (?P<done>\\d+)/(?P<total>\\d+)'")
    return value

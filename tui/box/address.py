"""Where a box is, read out of whatever the operator pasted from a provider's console.

The paste is data, never a command: it is parsed, checked against strict patterns, and refused with a reason
where it could mean something else to a shell or to ssh. A password in it is recognised and dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui.box.parsers import login_labels, login_lines
from tui.box.parsers.login_fields import SHELL_ONLY, Fields
from tui.box.parsers.login_text import Secret, plain, refuse
from tui.model.instance import Endpoint

SSH_PORT = 22

# Host names the platforms give to their boxes, by suffix; everything else is plain SSH.
_PLATFORMS = (
    ("autodl", ("autodl.com", "autodl.cn", "seetacloud.com")),
    ("runpod", ("runpod.io", "runpod.net")),
    ("vastai", ("vast.ai",)),
    ("lambda", ("lambda.ai", "lambdalabs.com")),
    ("paperspace", ("paperspace.com", "paperspacegradient.com")),
    ("gpushare", ("gpushare.com",)),
    ("matpool", ("matpool.com", "matgo.cn")),
    ("featurize", ("featurize.cn",)),
    ("lanrui", ("lanrui-ai.com", "lanrui.co")),
)


@dataclass(frozen=True, slots=True)
class Address:
    """A checked login.

    Attributes:
        port: None when the paste gave none.
        jump: ``user@host:port`` of each hop, in order.
        platform: guessed from the host name, ``ssh`` where nothing says otherwise.
        proxied: the host is a gateway without scp, sftp or exec.
        ignored: options of the paste that were understood and not taken over.
        password_seen: a password stood in the paste; it is not kept.
    """

    host: str
    port: int | None = None
    user: str | None = None
    key: str | None = None
    jump: tuple[str, ...] = ()
    platform: str = "ssh"
    proxied: bool = False
    ignored: tuple[str, ...] = ()
    password_seen: bool = False

    def as_json(self) -> dict[str, object]:
        """What ``rgt add --dry-run --json`` prints; the port is ssh's own where none was given."""
        return {
            "host": self.host,
            "port": self.port or SSH_PORT,
            "user": self.user,
            "key": self.key,
            "jump": ",".join(self.jump) or None,
            "platform": self.platform,
            "proxied": self.proxied,
        }

    def endpoint(self) -> Endpoint:
        """The address as the connector takes it; an unnamed port stays open for ``~/.ssh/config``."""
        return Endpoint(
            host=self.host, port=self.port, user=self.user, key=self.key, jump=self.jump, proxied=self.proxied
        )


def parse_address(text: str) -> Address:
    """Read a pasted login: a command, a URL, ``user@host:port``, labelled lines, JSON, a ``Host`` block.

    Args:
        text: one login, on one or several lines, a trailing password included.

    Raises:
        Failure: what is wrong, in our own words and with exit code 2; the text itself is never repeated.
    """
    return read_paste(text)[0]


def read_paste(text: str) -> tuple[Address, Secret | None]:
    """Like `parse_address`, and the password apart, for one login that follows at once. Raises Failure."""
    text = plain(text).strip()
    if not text:
        raise refuse("There is no text.")
    if login_labels.is_json(text):
        found, secret = login_labels.read_json(text)
    elif login_labels.is_config(text):
        found, secret = login_labels.read_config(text), None
    else:
        found, secret = login_lines.read(text)
    if found.host is None:
        raise refuse("This is no SSH login.")
    return _address(found, secret is not None), secret


def platform_of(host: str, user: str | None = None) -> str:
    """The platform a host name belongs to, else ``ssh``."""
    name = host.lower().rstrip(".")
    for platform, suffixes in _PLATFORMS:
        if any(name == suffix or name.endswith("." + suffix) for suffix in suffixes):
            return platform
    return user if user in {"paperspace", "featurize"} else "ssh"


def _address(found: Fields, password_seen: bool) -> Address:
    host = found.host or ""
    return Address(
        host=host,
        port=found.port,
        user=found.user,
        key=found.key,
        jump=found.jump,
        platform=platform_of(host, found.user),
        proxied=host.lower() in SHELL_ONLY,
        ignored=found.ignored,
        password_seen=password_seen,
    )

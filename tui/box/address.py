"""Where a box is, read out of whatever the operator pasted from a provider's console.

The paste is data, never a command: it is parsed, checked against strict patterns, and refused with a reason
where it could mean something else to a shell or to ssh. A password in it is recognised and dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.box.parsers import login_command, login_labels
from tui.box.parsers import login_fields as check
from tui.box.parsers.login_fields import Fields, union
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
# Gateways that give an interactive shell and nothing else: no exec, scp, sftp or forwards.
_SHELL_ONLY = frozenset({"ssh.runpod.io"})


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
        found, secret = _lines(text)
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
        proxied=host.lower() in _SHELL_ONLY,
        ignored=found.ignored,
        password_seen=password_seen,
    )


def _lines(text: str) -> tuple[Fields, Secret | None]:
    """The union of all lines. A line that is neither login, label nor password is refused."""
    found, secret = Fields(), None
    awaited: str | None = None  # the meaning of a label whose value stands on the next line
    lines = [line.strip() for line in re.sub(r"\\\n\s*", " ", text).split("\n") if line.strip()]
    for line in lines:
        if awaited == "password":
            secret, awaited = Secret(line), None
            continue
        rest, cut = login_labels.cut_password(line)
        secret = cut or secret
        if awaited:
            found, awaited = union(found, login_labels.field(awaited, _tidy(rest))), None
            continue
        awaited = login_labels.meaning(rest) if len(lines) > 1 and not _is_login(rest) else None
        if awaited or not rest:
            continue
        more, more_secret = _line(rest, found.host is not None or len(lines) > 1)
        secret = more_secret or secret
        found = union(found, more) if more else found
    return found, secret


def _is_login(line: str) -> bool:
    return login_command.find(line) is not None or "@" in line


def _line(line: str, among_others: bool) -> tuple[Fields | None, Secret | None]:
    start = login_command.find(line)
    if start is not None and not _quoted_value(line, start):
        return login_command.read(_tidy(_unwrapped(line, start)))
    line = _tidy(line)
    if not line:
        return None, None
    link = re.search(r"(?:^|(?<=[\s:]))(?:ssh|sftp)://\S+", line, re.IGNORECASE)
    if link:
        found, password = check.url(check.no_shell(link.group()))
        return found, Secret(password) if password else None
    labelled = login_labels.labelled(line) if "://" not in line else None
    if labelled:
        return labelled, None
    if login_labels.ANY_LABEL.match(line) and among_others and "@" not in line.partition(":")[0]:
        return None, None  # "Region: …", "Jupyter: …"
    if line.startswith("#") or line.endswith(":"):
        return None, None  # a comment, or prose that announces the next line
    return _bare(line, among_others)


def _quoted_value(line: str, start: int) -> bool:
    """Whether what looks like a command is the value of an option, as in ``rsync -e "ssh -p 22"``."""
    return start > 0 and login_command.find(line[:start]) is not None


def _unwrapped(line: str, start: int) -> str:
    """The command from its beginning, without the quotes or backticks that enclosed it."""
    before, command = line[:start].rstrip(), line[start:]
    mark = before[-1:]
    if mark and mark in "`\"'" and command.count(mark) % 2 == 1:
        command = command[: command.rindex(mark)]
    return command


def _tidy(line: str) -> str:
    """Without prompt, enclosing quotes and the punctuation of the sentence around it."""
    line = re.sub(r"^[$#>%]\s+", "", line.strip())
    while len(line) > 1 and line[0] == line[-1] and line[0] in "`\"'":
        line = line[1:-1].strip()
    ending = re.search(r"[.,;:!?)>]+$", line)
    return line if ending is None or line.endswith("::") else line[: ending.start()].rstrip()


def _bare(line: str, among_others: bool) -> tuple[Fields | None, Secret | None]:
    """``[user@]host[:port] [-p port]`` without a program before it, or an unlabelled password line."""
    words = line.split()
    if re.search(r"(?:^|[\s:])[a-z][a-z0-9+.-]*://", line, re.IGNORECASE):
        raise refuse("This is a web link, not an SSH login.")
    if len(words) == 1 and among_others and "@" not in line:
        if re.search(r"[$`;|&<>]", line) and re.search(r"\$\(|`|;|\||&&", line):
            raise refuse("The text holds shell characters on a line of its own.")
        return None, Secret(line)
    if line.lower() in {"ssh", "scp", "sftp", "rsync", "login", "password"}:
        raise refuse("This is no SSH login.")
    if len(words) == 1:
        found, password = check.url(_without_path(line))
        return found, Secret(password) if password else None
    if len(words) == 2 and re.fullmatch(r"[0-9]{1,5}", words[1]):
        return union(check.address(words[0]), Fields(port=check.port(words[1]))), None
    if "@" in words[0] or words[0].startswith("-"):
        return login_command.read(f"ssh {line}")
    raise refuse("A line of the text is no part of an SSH login.")


def _without_path(word: str) -> str:
    """``user@host:/path`` as scp writes it, without the path."""
    return re.sub(r"(?<=[A-Za-z0-9\]]):[~/].*$", "", word)

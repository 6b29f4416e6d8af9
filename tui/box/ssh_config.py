"""The way to a box as the user's own ssh would take it: asked of ``ssh -G``, never parsed by ourselves.

The configuration language has includes, matches, canonical names and defaults that differ between versions;
``ssh -G`` answers in 4 ms and is right by definition. Where there is no ssh, plain defaults are used.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui.box.errors import ConnectFailure, unreachable
from tui.model.failure import Exit, Failure
from tui.model.instance import Endpoint
from tui.model.text import safe

CONFIG_ENV = "RGT_SSH_CONFIG"
"""Environment variable that names another ssh configuration file than ``~/.ssh/config``."""

_SSH_G_S = 10.0
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")

# A host or user that starts with "-" would be an option to ssh; the rest could mean something to a shell in a
# ProxyCommand, or break a line.
_NAME = re.compile(r"[^\s\x00-\x1f\x7f\"'`$\\;&|<>(){}*?!#@-][^\s\x00-\x1f\x7f\"'`$\\;&|<>(){}*?!#@]*\Z")
_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?P<host>\[[^\]]+\]|[^\[\]:@]+)(?::(?P<port>\d{1,5}))?/?\Z"
)


@dataclass(frozen=True, slots=True)
class Route:
    """Everything needed for one connection, resolved.

    Attributes:
        alias: the name that was asked for (``%n``).
        keys: private key files in the order to try them; they may not exist.
        key_named: the box's own entry names the key: only that one is tried.
        agent: path of the agent's socket; None: no agent is to be asked.
        jumps: ``user@host:port`` of each hop in order; empty when `proxy_command` is set.
        known_hosts: the user's and the system's files; they may not exist.
    """

    alias: str
    host: str
    port: int = 22
    user: str = ""
    keys: tuple[Path, ...] = ()
    key_named: bool = False
    identities_only: bool = False
    agent: str | None = None
    jumps: tuple[str, ...] = ()
    proxy_command: str | None = None
    host_key_alias: str | None = None
    known_hosts: tuple[Path, ...] = ()
    connect_timeout: float | None = None

    @property
    def where(self) -> str:
        """``user@host:port`` for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{host}:{self.port}"


def check_endpoint(endpoint: Endpoint) -> None:
    """Refuse names that ssh or a shell could take for something else.

    Raises:
        Failure: with exit code 2.
    """
    named = [("host", endpoint.host.strip("[]")), ("user", endpoint.user)]
    for what, value in named:
        if value is not None and not _NAME.match(value):
            raise Failure(f"“{safe(value, 80)}” is no {what} name.", do="Correct it.", exit=Exit.USAGE)
    if endpoint.port is not None and not 0 < endpoint.port < 65536:
        raise Failure(f"{endpoint.port} is no port.", do="Ports are 1 to 65535.", exit=Exit.USAGE)
    for hop in endpoint.jump:
        parse_jump(hop)


def parse_jump(hop: str) -> Endpoint:
    """``[user@]host[:port]`` of a jump host. Raises Failure with exit code 2."""
    found = _JUMP.match(hop)
    if found is None:
        raise Failure(
            f"“{safe(hop, 80)}” is no jump host.", do="Write it as user@host:port.", exit=Exit.USAGE
        )
    port = found["port"]
    endpoint = Endpoint(
        host=found["host"].strip("[]"), user=found["user"], port=None if port is None else int(port)
    )
    check_endpoint(endpoint)
    return endpoint


async def resolve(endpoint: Endpoint, *, ssh: str | None = None, config: str | None = None) -> Route:
    """Resolve an endpoint through the user's ssh configuration; the endpoint's own fields win.

    Args:
        ssh: the ssh program; looked up on PATH when None. Where there is none, plain defaults apply.
        config: a configuration file to use instead of the user's; RGT_SSH_CONFIG when None.

    Raises:
        ConnectFailure: ssh finds a mistake in its configuration, or does not answer.
        Failure: the endpoint holds something dangerous.
    """
    check_endpoint(endpoint)
    program = ssh or shutil.which("ssh")
    answer = await _ask(program, endpoint, config or os.environ.get(CONFIG_ENV)) if program else None
    return plain_route(endpoint) if answer is None else route_from(answer, endpoint)


def plain_route(endpoint: Endpoint, home: Path | None = None) -> Route:
    """The route where no ssh program can be asked."""
    home = home or Path.home()
    keys = tuple(home / ".ssh" / name for name in _DEFAULT_KEYS)
    return Route(
        alias=endpoint.host,
        host=endpoint.host.strip("[]"),
        port=endpoint.port or 22,
        user=endpoint.user or getpass.getuser(),
        keys=(_path(endpoint.key, home),) if endpoint.key else keys,
        key_named=endpoint.key is not None,
        identities_only=endpoint.key is not None,
        agent=os.environ.get("SSH_AUTH_SOCK") or None,
        jumps=() if endpoint.proxy_command else endpoint.jump,
        proxy_command=endpoint.proxy_command,
        known_hosts=(home / ".ssh" / "known_hosts",),
    )


def route_from(
    answer: str, endpoint: Endpoint, environ: Mapping[str, str] | None = None, home: Path | None = None
) -> Route:
    """Read the output of ``ssh -G`` (lower-case keyword, space, value on each line)."""
    environ = os.environ if environ is None else environ
    home = home or Path.home()
    said: dict[str, list[str]] = {}
    for line in answer.splitlines():
        keyword, _, value = line.strip().partition(" ")
        if value:
            said.setdefault(keyword.lower(), []).append(value)

    def first(keyword: str) -> str | None:
        value = said.get(keyword, [""])[0]
        return None if value in ("", "none") else value

    host = first("hostname") or endpoint.host.strip("[]")
    port = int(first("port") or 22)
    user = first("user") or endpoint.user or getpass.getuser()
    tokens = {"h": host, "p": str(port), "r": user, "n": endpoint.host, "d": str(home), "%": "%"}
    tokens |= {"u": getpass.getuser(), "k": first("hostkeyalias") or endpoint.host}
    jump, command = endpoint.jump, endpoint.proxy_command
    if not jump and command is None:
        jump = tuple(hop.strip() for hop in (first("proxyjump") or "").split(",") if hop.strip())
        command = None if jump else first("proxycommand")
    named = [endpoint.key] if endpoint.key else [k for k in said.get("identityfile", []) if k != "none"]
    files = [*said.get("userknownhostsfile", []), *said.get("globalknownhostsfile", [])]
    return Route(
        alias=endpoint.host,
        host=host,
        port=port,
        user=user,
        keys=tuple(_path(expand(_unquoted(key), tokens, environ), home) for key in named),
        key_named=endpoint.key is not None,
        identities_only=endpoint.key is not None or first("identitiesonly") == "yes",
        agent=_agent(said.get("identityagent", [""])[0], tokens, environ, home),
        jumps=() if command else jump,
        proxy_command=None if command is None else expand(command, tokens, {}),
        host_key_alias=first("hostkeyalias"),
        known_hosts=tuple(_path(name, home) for line in files for name in _paths(line)),
        connect_timeout=_seconds(first("connecttimeout")),
    )


def expand(text: str, tokens: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Replace ``%h`` and the like, and ``${NAME}``; what is not known stays as it is."""
    text = re.sub(r"%(.)", lambda found: tokens.get(found[1], found[0]), text)
    return re.sub(r"\$\{(\w+)\}", lambda found: environ.get(found[1], found[0]), text)


async def _ask(program: str, endpoint: Endpoint, config: str | None) -> str | None:
    """The answer of ``ssh -G``; None when this ssh is too old to know ``-G``."""
    argv = [program, "-G"]
    argv += ["-F", config] if config else []
    argv += ["-p", str(endpoint.port)] if endpoint.port else []
    argv += ["-l", endpoint.user] if endpoint.user else []
    argv += ["--", endpoint.host.strip("[]")]
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,  # a `Match exec` of the user's configuration may run programs
    )
    try:
        async with asyncio.timeout(_SSH_G_S):
            out, err = await process.communicate()
    except TimeoutError:
        raise unreachable(
            f"ssh did not tell its configuration for {endpoint.host} within {_SSH_G_S:.0f} s.",
            do="Look for a slow “Match exec” in ~/.ssh/config.",
            code="ssh-config",
        ) from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode == 0:
        return out.decode("utf-8", "replace")
    if b"option -- G" in err:
        return None
    raise _bad_config(endpoint.host, err)


def _bad_config(host: str, err: bytes) -> ConnectFailure:
    said = [line for line in err.decode("utf-8", "replace").splitlines() if "Pseudo-terminal" not in line]
    return unreachable(
        f"ssh cannot read its configuration for {host}: {safe(' '.join(said) or 'no reason given', 300)}.",
        do="Correct that line; `ssh -G HOST` shows the same message.",
        retry=False,
        code="ssh-config",
    )


def _agent(said: str, tokens: Mapping[str, str], environ: Mapping[str, str], home: Path) -> str | None:
    if said == "none":
        return None
    if said in ("", "SSH_AUTH_SOCK"):
        return environ.get("SSH_AUTH_SOCK") or None
    if said.startswith("$") and not said.startswith("${"):
        return environ.get(said[1:]) or None
    return str(_path(expand(_unquoted(said), tokens, environ), home))


def _paths(line: str) -> list[str]:
    """Split a list of paths. ``ssh -G`` does not quote blanks; a new path starts with ``/`` or ``~``."""
    return [name for name in re.split(r"\s+(?=[/~])", line.strip()) if name not in ("", "none", "/dev/null")]


def _path(name: str, home: Path) -> Path:
    return home / name[2:] if name.startswith("~/") else Path(name).expanduser()


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdigit() and int(text) > 0 else None

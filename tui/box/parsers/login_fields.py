"""The parts of a login, each checked by a strict pattern, and their union over several lines."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, fields

from tui.box.parsers.login_text import refuse

# Gateways that give an interactive shell and nothing else: no exec, scp, sftp or forwards.
SHELL_ONLY = frozenset({"ssh.runpod.io"})

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?\Z")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@#-]{0,126}\Z")  # gateways chain user@account@machine
_PORT = re.compile(r"[0-9]{1,5}\Z")
_KEY = re.compile(r"[~A-Za-z0-9_./\\][\w ./\\:+@=,~()-]{0,1022}\Z")
_META = re.compile(r"[;&|<>$`(){}!\n\\]")


@dataclass(frozen=True, slots=True)
class Fields:
    """What one line or block says; None and () where it says nothing.

    Attributes:
        jump: ``user@host:port`` of each hop, in order.
        ignored: options that were understood and not taken over.
    """

    host: str | None = None
    port: int | None = None
    user: str | None = None
    key: str | None = None
    jump: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


_NAMES = {"host": "hosts", "port": "ports", "user": "users", "key": "keys", "jump": "jump hosts"}


def union(one: Fields, other: Fields) -> Fields:
    """Both together. Raises Failure where they name two different machines, ports or users."""
    merged: dict[str, object] = {"ignored": one.ignored + other.ignored}
    for field in fields(Fields):
        if field.name == "ignored":
            continue
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if mine and theirs and mine != theirs:
            raise refuse(f"The text names two different {_NAMES[field.name]}.", "Paste one login at a time.")
        merged[field.name] = mine or theirs
    return Fields(**merged)  # type: ignore[arg-type]


def no_shell(text: str) -> str:
    """`text`, free of anything a shell would act on. Raises Failure."""
    if _META.search(text):
        raise refuse("The text holds shell characters (one of ; & | < > $ ` ( ) { } ! \\).")
    return text


def host(text: str) -> str:
    """A host name, an alias, or an address without its brackets. Raises Failure."""
    text = text.strip()
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if bare.startswith("-"):
        raise refuse("The host begins with a dash, which ssh would read as an option.")
    if not bare.isascii():
        raise refuse(
            "The host name holds letters outside ASCII, which can pass for others.",
            "Type the name by hand, or use its xn-- form.",
        )
    if ":" in bare:
        return _ipv6(bare)
    no_shell(bare)
    if not _NAME.match(bare) or ".." in bare or any(len(label) > 63 for label in bare.split(".")):
        raise refuse("This is no host name.")
    if re.fullmatch(r"[0-9.]+", bare) and not _is_ipv4(bare):
        raise refuse("This is no IPv4 address.")
    return bare


def _ipv6(text: str) -> str:
    zone = re.fullmatch(r"([0-9A-Fa-f:.]{2,45})(%[A-Za-z0-9._-]{1,15})?", text)
    if zone is None or not _is_ipv6(zone.group(1)):
        raise refuse("This is no host name and no IPv6 address.")
    return text


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def user(text: str) -> str:
    """A login name. Raises Failure."""
    text = text.strip()
    if text.startswith("-"):
        raise refuse("The user begins with a dash, which ssh would read as an option.")
    no_shell(text)
    if not _USER.match(text):
        raise refuse("This is no user name.")
    return text


def port(text: str) -> int:
    """A TCP port. Raises Failure."""
    text = text.strip()
    if not _PORT.match(text) or not 1 <= int(text) <= 65535:
        raise refuse("The port is not a number between 1 and 65535.")
    return int(text)


def key(text: str) -> str:
    """Path of a private key on this computer. Raises Failure."""
    text = re.sub(r"^(?:\$HOME|\$\{HOME\}|%d|\$env:USERPROFILE|%USERPROFILE%)(?=[/\\])", "~", text.strip())
    if not _KEY.match(text):
        raise refuse("The key is no plain path.")
    return text


def address(text: str) -> Fields:
    """``[user@]host[:port]`` with bracketed and bare IPv6. Raises Failure."""
    login, at, place = text.rpartition("@")
    if at and not login:
        raise refuse("There is no user before the @.")
    bracketed = re.fullmatch(r"(\[[^\]]*\])(?::(.*))?", place)
    if bracketed:
        name, number = bracketed.group(1), bracketed.group(2)
    elif place.count(":") == 1:
        name, _, number = place.partition(":")
    else:
        name, number = place, None
    return Fields(
        host=host(name), port=port(number) if number is not None else None, user=user(login) if at else None
    )


def url(text: str) -> tuple[Fields, str | None]:
    """``ssh://user:password@host:port/path``, and the password apart. Raises Failure."""
    rest = re.sub(r"^(?:ssh|sftp|scp)://", "", text, flags=re.IGNORECASE)
    place = re.split(r"[/?]", rest, maxsplit=1)[0]
    login, at, where = place.rpartition("@")
    login, colon, password = login.partition(":")
    found = address(f"{login}@{where}" if at else where)
    return found, password if colon and password else None


def jumps(text: str) -> tuple[str, ...]:
    """The value of ``-J``: hops parted by commas. Raises Failure."""
    if text.strip().lower() in {"none", ""}:
        return ()
    hops = [part.strip() for part in text.split(",")]
    if len(hops) > 8:
        raise refuse("There are more than eight jump hosts.")
    return tuple(spelled(url(hop)[0] if "://" in hop else address(hop)) for hop in hops)


def spelled(hop: Fields) -> str:
    """``user@host:port`` of one hop, with brackets only where a port follows an IPv6 address."""
    name = hop.host or ""
    if hop.port is not None:
        name = f"[{name}]:{hop.port}" if ":" in name else f"{name}:{hop.port}"
    return f"{hop.user}@{name}" if hop.user else name

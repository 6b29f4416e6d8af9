"""Routes, out of what ``ssh -G`` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real import need
from tui.box.ssh_config import check_endpoint, expand, parse_jump, plain_route, resolve, route_from
from tui.model.failure import Exit, Failure
from tui.model.instance import Endpoint

HOME = Path("/home/me")
SAID = """\
user root
hostname 10.0.0.5
port 2222
identitiesonly no
identityfile ~/my key
identityfile ~/.ssh/%h_%r
identityfile ${KEYS}/id
globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2
userknownhostsfile /tmp/with space/kh ~/.ssh/kh2
connecttimeout none
proxyjump a@[::1]:33,b
"""


def test_what_ssh_says_is_taken_over() -> None:
    route = route_from(SAID, Endpoint("box"), {"KEYS": "/k", "SSH_AUTH_SOCK": "/agent"}, HOME)
    assert (route.alias, route.host, route.port, route.user) == ("box", "10.0.0.5", 2222, "root")
    assert route.keys == (HOME / "my key", HOME / ".ssh/10.0.0.5_root", Path("/k/id"))
    assert route.known_hosts == (
        Path("/tmp/with space/kh"),
        HOME / ".ssh/kh2",
        Path("/etc/ssh/ssh_known_hosts"),
        Path("/etc/ssh/ssh_known_hosts2"),
    )
    assert (route.jumps, route.proxy_command, route.connect_timeout) == (("a@[::1]:33", "b"), None, None)
    assert (route.agent, route.identities_only, route.key_named) == ("/agent", False, False)
    assert route.where == "root@10.0.0.5:2222"


@pytest.mark.parametrize(
    ("said", "agent"),
    [
        ("identityagent none", None),
        ("identityagent SSH_AUTH_SOCK", "/agent"),
        ("identityagent $OTHER", "/other"),
        ("identityagent ${OTHER}.x", "/other.x"),
        ('identityagent "~/My Agent/s"', "/home/me/My Agent/s"),
    ],
)
def test_the_agent(said: str, agent: str | None) -> None:
    environ = {"SSH_AUTH_SOCK": "/agent", "OTHER": "/other"}
    assert route_from(said, Endpoint("box"), environ, HOME).agent == agent


def test_the_endpoints_own_fields_win() -> None:
    endpoint = Endpoint("box", key="~/k", jump=("j",))
    route = route_from(SAID.replace("proxyjump", "#"), endpoint, {}, HOME)
    assert (route.keys, route.key_named, route.identities_only, route.jumps) == (
        (HOME / "k",),
        True,
        True,
        ("j",),
    )
    proxied = route_from(SAID, Endpoint("box", proxy_command="nc %h %p"), {}, HOME)
    assert (proxied.proxy_command, proxied.jumps) == ("nc 10.0.0.5 2222", ())


def test_a_proxy_command_keeps_its_quotes_and_variables() -> None:
    said = 'hostname h\nport 5\nproxycommand x "%h:%p" ${HOME} %n 100%% %Z | cat'
    assert route_from(said, Endpoint("a"), {"HOME": "/h"}, HOME).proxy_command == (
        'x "h:5" ${HOME} a 100% %Z | cat'
    )
    assert expand("%%h", {"%": "%", "h": "x"}, {}) == "%h"


def test_without_ssh_there_are_plain_defaults() -> None:
    route = plain_route(Endpoint("h", user="u"), HOME)
    assert (route.host, route.port, route.user) == ("h", 22, "u")
    assert HOME / ".ssh/id_ed25519" in route.keys
    assert plain_route(Endpoint("h", key="~/k"), HOME).keys == (HOME / "k",)


@pytest.mark.parametrize(
    ("hop", "expected"),
    [
        ("h", Endpoint("h")),
        ("u@h:22", Endpoint("h", 22, "u")),
        ("ssh://u@h:22", Endpoint("h", 22, "u")),
        ("u@[fe80::1]:7", Endpoint("fe80::1", 7, "u")),
        ("[::1]", Endpoint("::1")),
    ],
)
def test_jump_hosts(hop: str, expected: Endpoint) -> None:
    assert parse_jump(hop) == expected


@pytest.mark.parametrize(
    "hop", ("", "-J x", "a b", "u@-h", "h:x", "h:70000", "h:0", "$(id)@h", "::1", "a@b@c")
)
def test_what_is_no_jump_host_is_refused(hop: str) -> None:
    with pytest.raises(Failure) as caught:
        parse_jump(hop)
    assert caught.value.exit is Exit.USAGE


@pytest.mark.parametrize("user", ("-l", "a b", "a'b", "x;y", ""))
def test_dangerous_users_are_refused(user: str) -> None:
    with pytest.raises(Failure):
        check_endpoint(Endpoint("h", user=user))


@pytest.mark.real
async def test_ssh_itself_is_asked(tmp_path: Path) -> None:
    need("ssh")
    config = tmp_path / "config"
    config.write_text('Host box*\n  HostName h.example\n  Port 99\n  IdentityFile "~/my key"\n  User other\n')
    route = await resolve(Endpoint("box1", user="me"), config=str(config))
    assert (route.host, route.port, route.user) == ("h.example", 99, "me")
    assert route.keys == (Path.home() / "my key",)
    assert (await resolve(Endpoint("box1", 7), config=str(config))).port == 7
    old = tmp_path / "old_ssh"
    old.write_text("#!/bin/sh\necho 'ssh: illegal option -- G' >&2\nexit 255\n")
    old.chmod(0o755)
    assert (await resolve(Endpoint("box1"), ssh=str(old), config=str(config))).host == "box1"

"""Logging in to a real sshd: identities, keys, routes, and what is said when it cannot be done."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from tests.box.boxes import QUICK, Desk, Typist, instance
from tests.real import need
from tests.rig import Sshd
from tui.box.backoff import Backoff
from tui.box.errors import ConnectFailure
from tui.box.session import SshTransport
from tui.box.system_ssh import ssh_argv
from tui.box.transport import Script
from tui.box.trust import FIRST_USE, FLEET_FILE, KNOWN_HOSTS, OPERATOR
from tui.model.failure import Failure
from tui.model.instance import Endpoint, Instance, LinkState

pytestmark = pytest.mark.real


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def works(box: SshTransport) -> bool:
    try:
        return (await box.run(Script("echo yes"))).stdout == b"yes\n"
    finally:
        await box.close()


async def failing(desk: Desk, box: Instance, config: Path | None = None) -> ConnectFailure:
    with pytest.raises(ConnectFailure) as caught:
        await desk.connector(config).connect(box)
    return caught.value


# --- identity ---------------------------------------------------------------------------------------------


async def test_the_first_key_is_recorded_and_then_demanded(sshd: Sshd, desk: Desk) -> None:
    box = await desk.connector().connect(instance(sshd))
    assert box.host_key == sshd.host_key_fingerprint
    assert await works(box)
    pin = desk.trust.pinned("box")
    assert pin is not None
    assert (pin.public_key, pin.how) == (sshd.host_key_pub, FIRST_USE)
    assert pin.endpoint == f"{sshd.user}@{sshd.host}:{sshd.port}"
    (receipt,) = (desk.tmp / "receipts").iterdir()
    assert json.loads(receipt.read_text())["fingerprint"] == sshd.host_key_fingerprint
    assert await works(await desk.connector().connect(instance(sshd)))
    assert len(list((desk.tmp / "receipts").iterdir())) == 1


@pytest.mark.parametrize("key_type", ("ed25519", "ecdsa", "rsa"))
async def test_a_changed_key_stops_the_box(key_type: str, sshd: Sshd, desk: Desk) -> None:
    assert await works(await desk.connector().connect(instance(sshd)))
    before = sshd.host_key_fingerprint
    sshd.new_host_key(key_type)
    failure = await failing(desk, instance(sshd))
    assert (failure.state, failure.retry, failure.code) == (LinkState.IDENTITY, False, "host-key-changed")
    assert (failure.pinned, failure.offered) == (before, sshd.host_key_fingerprint)
    assert Backoff().failed(failure) is None
    # the way forward
    desk.trust.accept("box", sshd.host_key_fingerprint, 5.0)
    assert await works(await desk.connector().connect(instance(sshd)))
    pin = desk.trust.pinned("box")
    assert pin is not None
    assert pin.how == OPERATOR


async def test_trust_belongs_to_the_name_not_to_the_address(sshd: Sshd, desk: Desk) -> None:
    assert await works(await desk.connector().connect(instance(sshd, "one")))
    sshd.new_host_key()  # the port was given to another machine
    assert await works(await desk.connector().connect(instance(sshd, "two")))
    assert (await failing(desk, instance(sshd, "one"))).state is LinkState.IDENTITY


async def test_a_pinned_rsa_key_against_a_server_with_another_type(
    sshd_factory: Callable[..., Sshd], desk: Desk
) -> None:
    """asyncssh alone would narrow the algorithms to RSA, and the server would hang up: "network fault"."""
    server = sshd_factory(host_key_type="rsa")
    assert await works(await desk.connector().connect(instance(server)))
    server.new_host_key("ed25519")
    failure = await failing(desk, instance(server))
    assert (failure.state, failure.offered) == (LinkState.IDENTITY, server.host_key_fingerprint)


async def test_a_server_with_several_keys_is_asked_for_the_one_we_know(
    sshd_factory: Callable[..., Sshd], desk: Desk
) -> None:
    server = sshd_factory(host_key_type="rsa")
    assert await works(await desk.connector().connect(instance(server)))
    extra = server.new_client_key("second_host_key")
    server.stop_listening()
    server._options += f"\nHostKey {extra}"
    server.restart()
    assert await works(await desk.connector().connect(instance(server)))
    # fleet.toml gives a fingerprint only: it may be that of any of the server's keys
    wanted = instance(server, "by-fingerprint", host_key=server.host_key_fingerprint)
    assert await works(await desk.connector().connect(wanted))
    pin = desk.trust.pinned("by-fingerprint")
    assert pin is not None
    assert (pin.how, pin.key_type) == (FLEET_FILE, "ssh-rsa")


async def test_the_fleet_files_fingerprint_must_match(sshd: Sshd, desk: Desk) -> None:
    failure = await failing(desk, instance(sshd, host_key="SHA256:" + "A" * 43))
    assert (failure.state, failure.retry) == (LinkState.IDENTITY, False)
    assert "fleet.toml" in failure.line
    assert desk.trust.pinned("box") is None


async def test_known_hosts_vouch_for_a_first_meeting(sshd: Sshd, desk: Desk) -> None:
    config = sshd.ssh_config("alias", "StrictHostKeyChecking no")
    (sshd.tmp / "known_hosts").write_text(f"[{sshd.host}]:{sshd.port} {sshd.host_key_pub}\n")
    box = Instance("box", "ssh", Endpoint("alias"))
    assert await works(await desk.connector(config).connect(box))
    pin = desk.trust.pinned("box")
    assert pin is not None
    assert pin.how == KNOWN_HOSTS
    sshd.new_host_key()
    assert (await failing(desk, box, config)).state is LinkState.IDENTITY  # T10: "no" weakens nothing


async def test_a_refused_login_records_no_identity(sshd: Sshd, desk: Desk) -> None:
    sshd.revoke_key()
    await failing(desk, instance(sshd))
    assert desk.trust.pinned("box") is None


# --- keys -------------------------------------------------------------------------------------------------


async def test_a_revoked_key_is_refused_for_good_while_an_old_channel_lives_on(
    sshd: Sshd, desk: Desk
) -> None:
    box = await desk.connector().connect(instance(sshd))
    channel = await box.open(Script('while read -r l; do echo "<$l>"; done'))
    sshd.revoke_key()
    failure = await failing(desk, instance(sshd))
    assert (failure.state, failure.retry) == (LinkState.REFUSED, False)
    assert "not tried again" in failure.line
    assert Backoff().failed(failure) is None
    await channel.write(b"old\n")
    assert await channel.read() == b"<old>\n"
    await box.close()
    sshd.restore_key()
    assert await works(await desk.connector().connect(instance(sshd)))


async def test_an_encrypted_key_asks_for_its_passphrase_once(sshd: Sshd, desk: Desk) -> None:
    key = sshd.new_client_key("locked", passphrase="correct horse")
    sshd.authorize(Path(f"{key}.pub").read_text())
    box = Instance("box", "ssh", Endpoint(sshd.host, sshd.port, sshd.user, key=str(key)))
    desk.typist = Typist(["wrong", "correct horse"])
    connector = desk.connector()
    assert await works(await connector.connect(box))
    assert len(desk.typist.asked) == 2
    assert str(key) in desk.typist.asked[0][1]
    assert await works(await connector.connect(box))  # kept in memory
    assert len(desk.typist.asked) == 2
    assert "correct horse" not in repr(connector.vault)
    assert not any("horse" in path.read_text() for path in desk.tmp.rglob("*.json"))


@pytest.mark.parametrize(
    ("answers", "state"), [([], LinkState.NEEDS_SECRET), (["bad", "bad", "bad"], LinkState.REFUSED)]
)
async def test_no_or_wrong_passphrase(
    answers: list[str | None], state: LinkState, sshd: Sshd, desk: Desk
) -> None:
    key = sshd.new_client_key("locked", passphrase="right")
    sshd.authorize(Path(f"{key}.pub").read_text())
    desk.typist = Typist(answers)
    box = Instance("box", "ssh", Endpoint(sshd.host, sshd.port, sshd.user, key=str(key)))
    failure = await failing(desk, box)
    assert (failure.state, failure.retry) == (state, False)
    assert "passphrase" in failure.line
    assert "bad" not in failure.line.split()


async def test_no_passphrase_is_asked_when_the_server_does_not_want_the_key(sshd: Sshd, desk: Desk) -> None:
    key = sshd.new_client_key("locked", passphrase="right")
    box = Instance("box", "ssh", Endpoint(sshd.host, sshd.port, sshd.user, key=str(key)))
    assert (await failing(desk, box)).state is LinkState.REFUSED
    assert desk.typist.asked == []


async def test_a_key_that_is_not_there_or_no_key(sshd: Sshd, desk: Desk) -> None:
    for key in (desk.tmp / "missing", desk.empty_config):
        box = Instance("box", "ssh", Endpoint(sshd.host, sshd.port, sshd.user, key=str(key)))
        failure = await failing(desk, box)
        assert (failure.state, failure.retry) == (LinkState.REFUSED, False)
        assert key.name in failure.line


@contextmanager
def agent_with(tmp: Path, keys: list[Path]) -> Iterator[str]:
    tools = need("ssh-agent", "ssh-add")
    path = str(tmp / "agent.sock")
    process = subprocess.Popen([tools["ssh-agent"], "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        while not Path(path).exists():
            time.sleep(0.01)
        for key in keys:
            subprocess.run(
                [tools["ssh-add"], "-q", str(key)], env={**os.environ, "SSH_AUTH_SOCK": path}, check=True
            )
        yield path
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=5)


async def test_a_full_agent_does_not_keep_the_named_key_out(sshd: Sshd, desk: Desk) -> None:
    """sshd hangs up after six failures; eight keys of the agent before the right one would be too many."""
    others = [sshd.new_client_key(f"other{n}") for n in range(8)]
    config = desk.tmp / "with_agent"
    with agent_with(desk.tmp, others) as path:
        config.write_text(
            f'Host box\n  HostName {sshd.host}\n  Port {sshd.port}\n  IdentityFile "{sshd.client_key}"\n'
            f"Host *\n  IdentityAgent {path}\n  UserKnownHostsFile /dev/null\n"
        )
        assert await works(await desk.connector(config).connect(instance(sshd)))
        assert await works(await desk.connector(config).connect(Instance("b", "ssh", Endpoint("box"))))


async def test_the_agent_signs_for_an_encrypted_key(sshd: Sshd, desk: Desk) -> None:
    key = sshd.new_client_key("locked")
    sshd.authorize(Path(f"{key}.pub").read_text())
    config = desk.tmp / "with_agent"
    with agent_with(desk.tmp, [key]) as path:
        keygen = need("ssh-keygen")["ssh-keygen"]
        subprocess.run([keygen, "-q", "-p", "-P", "", "-N", "secret", "-f", str(key)], check=True, stdout=-3)
        config.write_text(f"Host *\n  IdentityAgent {path}\n  UserKnownHostsFile /dev/null\n")
        box = Instance("box", "ssh", Endpoint(sshd.host, sshd.port, sshd.user, key=str(key)))
        assert await works(await desk.connector(config).connect(box))
    assert desk.typist.asked == []


# --- routes -----------------------------------------------------------------------------------------------


async def test_the_users_configuration_as_ssh_reads_it(sshd: Sshd, desk: Desk) -> None:
    """T9: asyncssh's own parser refuses the comment, the unit and the quoted key that does not exist."""
    config = sshd.ssh_config(
        "alias", "ServerAliveInterval 1m # comment", 'IdentityFile "~/my missing key"', "HostKeyAlias other"
    )
    assert await works(await desk.connector(config).connect(Instance("box", "ssh", Endpoint("alias"))))


async def test_a_jump_host_has_its_own_identity_and_key(
    sshd_factory: Callable[..., Sshd], desk: Desk
) -> None:
    jump, target = sshd_factory(), sshd_factory()
    config = jump.ssh_config("hop")
    box = instance(target)
    assert box.endpoint is not None
    endpoint = Endpoint(target.host, target.port, target.user, key=str(target.client_key), jump=("hop",))
    via = Instance("box", "ssh", endpoint)
    assert await works(await desk.connector(config).connect(via))
    hop_name = f"jump host {jump.host}:{jump.port}"
    hop, end = desk.trust.pinned(hop_name), desk.trust.pinned("box")
    assert hop is not None
    assert end is not None
    assert (hop.public_key, end.public_key) == (jump.host_key_pub, target.host_key_pub)

    from_config = target.ssh_config("far", "ProxyJump hop")
    from_config.write_text(from_config.read_text() + config.read_text())
    assert await works(await desk.connector(from_config).connect(Instance("far", "ssh", Endpoint("far"))))

    target.stop_listening()
    failure = await failing(desk, via, config)
    assert (failure.state, failure.retry) == (LinkState.UNREACHABLE, True)
    assert "jump host" in failure.line
    target.restart()
    jump.new_host_key()
    failure = await failing(desk, via, config)
    assert failure.state is LinkState.IDENTITY
    assert hop_name in failure.line
    assert desk.trust.accept("box", jump.host_key_fingerprint, 5.0).name == hop_name
    assert await works(await desk.connector(config).connect(via))


async def test_the_link_is_lost_with_its_jump_host(sshd_factory: Callable[..., Sshd], desk: Desk) -> None:
    jump, target = sshd_factory(), sshd_factory()
    endpoint = Endpoint(target.host, target.port, target.user, key=str(target.client_key), jump=("hop",))
    box = await desk.connector(jump.ssh_config("hop")).connect(Instance("box", "ssh", endpoint))
    jump.kill_sessions()
    assert await asyncio.wait_for(box.wait_closed(), 20) is not None
    await box.close()


async def test_jump_hosts_that_lead_in_a_circle(sshd: Sshd, desk: Desk) -> None:
    config = desk.tmp / "circle"
    config.write_text("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n")
    failure = await failing(desk, Instance("box", "ssh", Endpoint("a")), config)
    assert (failure.code, failure.retry) == ("jump-loop", False)


def relay(tmp: Path) -> str:
    """A ProxyCommand that needs no tool but Python."""
    program = tmp / "relay.py"
    program.write_text(
        "import os, socket, sys, threading\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while data := os.read(0, 65536): s.sendall(data)\n"
        "    os._exit(0)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while data := s.recv(65536): os.write(1, data)\n"
    )
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(program))} %h %p"


async def test_a_proxy_command(sshd: Sshd, desk: Desk) -> None:
    config = sshd.ssh_config("proxied", f"ProxyCommand {relay(desk.tmp)}")
    box = await desk.connector(config).connect(Instance("box", "ssh", Endpoint("proxied")))
    assert await works(box)
    assert _children() == []


async def test_a_proxy_command_that_fails_says_why(sshd: Sshd, desk: Desk) -> None:
    config = sshd.ssh_config("proxied", "ProxyCommand printf 'no \\033[31mroute' >&2; exit 1")
    failure = await failing(desk, Instance("box", "ssh", Endpoint("proxied")), config)
    assert (failure.state, failure.code) == (LinkState.UNREACHABLE, "proxy-failed")
    assert "route" in failure.line
    assert "\x1b" not in failure.line
    assert _children() == []


def _children() -> list[str]:
    import psutil

    running = (p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE)
    return [p.name() for p in running if not p.name().startswith("sshd")]


# --- servers that do not behave ---------------------------------------------------------------------------


@asynccontextmanager
async def tcp_server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object],
) -> AsyncIterator[Instance]:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handle(reader, writer)
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    server = await asyncio.start_server(session, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Instance("box", "ssh", Endpoint("127.0.0.1", port, "root"))
    finally:
        server.close()
        await asyncio.sleep(0.05)


@pytest.fixture
def keyed(desk: Desk, sshd: Sshd) -> Callable[[Instance], Instance]:
    """The same instance with a key that exists."""

    def named(box: Instance) -> Instance:
        assert box.endpoint is not None
        end = box.endpoint
        return Instance(box.name, "ssh", Endpoint(end.host, end.port, end.user, key=str(sshd.client_key)))

    return named


async def test_accept_then_close_is_a_machine_that_boots(
    desk: Desk, keyed: Callable[[Instance], Instance]
) -> None:
    for abort in (True, False):
        handle = (lambda r, w: w.transport.abort()) if abort else (lambda r, w: w.close())
        async with tcp_server(handle) as box:
            failure = await failing(desk, keyed(box))
        assert (failure.state, failure.retry, failure.code) == (LinkState.UNREACHABLE, True, "hung-up")


async def test_a_server_that_never_speaks(desk: Desk, keyed: Callable[[Instance], Instance]) -> None:
    desk.timing = type(QUICK)(connect=1.0, login=0.5)
    began = time.monotonic()
    async with tcp_server(lambda r, w: None) as box:
        failure = await failing(desk, keyed(box))
    assert time.monotonic() - began < 10
    assert (failure.state, failure.retry, failure.code) == (LinkState.UNREACHABLE, True, "login-timeout")


async def test_something_else_than_ssh(desk: Desk, keyed: Callable[[Instance], Instance]) -> None:
    async with tcp_server(lambda r, w: w.write(b"HTTP/1.1 400 Bad\r\n" * 2000)) as box:
        failure = await failing(desk, keyed(box))
    assert failure.state is LinkState.UNREACHABLE
    assert failure.code == "not-ssh"


async def test_a_frozen_server(sshd: Sshd, desk: Desk) -> None:
    desk.timing = type(QUICK)(connect=0.5, login=0.5)
    sshd.freeze(listener=True)
    failure = await failing(desk, instance(sshd))
    assert (failure.state, failure.retry) == (LinkState.UNREACHABLE, True)


async def test_nobody_listens_and_no_such_name(sshd: Sshd, desk: Desk) -> None:
    sshd.stop_listening()
    failure = await failing(desk, instance(sshd))
    assert (failure.code, failure.retry) == ("refused", True)
    assert "billed" in failure.line  # we do not claim that the machine is off
    key = str(sshd.client_key)
    failure = await failing(
        desk, Instance("box", "ssh", Endpoint("no-such-host.invalid", 22, "root", key=key))
    )
    assert (failure.state, failure.retry) == (LinkState.UNREACHABLE, True)


async def test_a_broken_ssh_configuration_is_told_with_its_line(sshd: Sshd, desk: Desk) -> None:
    config = desk.tmp / "broken"
    config.write_text("Host *\n  NoSuchOption yes\n")
    failure = await failing(desk, instance(sshd), config)
    assert (failure.code, failure.retry) == ("ssh-config", False)
    assert "line 2" in failure.line


async def test_a_host_that_is_an_option(desk: Desk) -> None:
    for host in ("-oProxyCommand=touch /tmp/x", "a b", "$(id)", "a;b", "`id`", "x\ny", ""):
        with pytest.raises(Failure) as caught:
            await desk.connector().connect(Instance("box", "ssh", Endpoint(host)))
        assert caught.value.exit == 2


async def test_many_at_once_stay_under_max_startups(sshd_factory: Callable[..., Sshd], desk: Desk) -> None:
    server = sshd_factory(max_startups="12:100:12")  # eight at once, and some the listener has not let go yet
    connector = desk.connector()
    boxes = await asyncio.gather(*(connector.connect(instance(server, f"b{n}")) for n in range(24)))
    assert all([await works(box) for box in boxes])


async def test_cancelling_leaves_no_connection(sshd: Sshd, desk: Desk) -> None:
    for delay in (0.0, 0.005, 0.02, 0.05):
        connecting = asyncio.ensure_future(desk.connector().connect(instance(sshd)))
        await asyncio.sleep(delay)
        connecting.cancel()
        with suppress(asyncio.CancelledError):
            await (await connecting).close()  # the last one may have been quicker
    await asyncio.sleep(0.2)
    assert sshd.kill_sessions() == 0


# --- the system's ssh -------------------------------------------------------------------------------------


async def test_the_system_ssh_uses_the_recorded_identity(
    sshd: Sshd, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RGT_SSH_CONFIG", str(desk.empty_config))
    box = instance(sshd, "my box/1%")
    with pytest.raises(Failure, match="not recorded"):
        ssh_argv(box, desk.trust)
    assert await works(await desk.connector().connect(box))
    argv = ssh_argv(box, desk.trust, ["echo", "$((1+1))"])
    assert argv[-3] == box.endpoint.host if box.endpoint else False
    done = subprocess.run(argv, capture_output=True, timeout=10, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, b"2\n"), done.stderr
    sshd.new_host_key()
    done = subprocess.run(argv, capture_output=True, timeout=10, stdin=subprocess.DEVNULL)
    assert done.returncode == 255
    assert b"IDENTIFICATION HAS CHANGED" in done.stderr

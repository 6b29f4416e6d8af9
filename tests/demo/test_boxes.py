"""One box of the embedded fleet at a time: what it lets in, how it fails, what it keeps."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncssh
import psutil
import pytest

from tui.demo.boxes import ENDINGS, PLANS, PROVIDER, Box, Plan
from tui.demo.fleet import DemoBox
from tui.demo.host import MARKER, Host, end_marked
from tui.demo.selftest import refuses_strangers
from tui.demo.server import MAX_SESSIONS, BoxServer
from tui.fleet.paths import Paths
from tui.model.custody import Victim
from tui.platforms.simulated import CREDENTIAL
from tui.platforms.simulated import plane as simulated_plane

INODES = next(plan for plan in PLANS if plan.inode_cap)
FLAKY = next(plan for plan in PLANS if plan.cut_every_s)
DONE = next(plan for plan in PLANS if plan.finished)


@pytest.fixture
def client_key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519")


@asynccontextmanager
async def serving(home: Path, key: asyncssh.SSHKey) -> AsyncIterator[BoxServer]:
    home.mkdir(exist_ok=True)
    server = BoxServer("box", home, home / "tmux", key, {MARKER: str(home)})
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
        end_marked(home)


async def login(server: BoxServer, key: asyncssh.SSHKey) -> asyncssh.SSHClientConnection:
    return await asyncssh.connect(
        "127.0.0.1",
        server.port,
        username="demo",
        client_keys=[key],
        known_hosts=([server.host_key.convert_to_public()], [], []),
        agent_path=None,
        config=[],
        connect_timeout=10,
    )


async def wait_until(holds: Callable[[], bool], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.05)


# -- the server ------------------------------------------------------------------------------------------


async def test_only_the_one_key_is_let_in(tmp_path: Path, client_key: asyncssh.SSHKey) -> None:
    async with serving(tmp_path, client_key) as server:
        assert await refuses_strangers(DemoBox("box", server.port, "", ""))
        async with await login(server, client_key) as connection:
            done = await connection.run("pwd; echo $HOME; echo $SSH_AUTH_SOCK", check=True)
        assert done.stdout == f"{tmp_path}\n{tmp_path}\n\n"


async def test_the_check_for_strangers_finds_an_open_door() -> None:
    class Open(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return False

    key = asyncssh.generate_private_key("ssh-ed25519")
    acceptor = await asyncssh.listen("127.0.0.1", 0, server_factory=Open, server_host_keys=[key])
    try:
        assert not await refuses_strangers(DemoBox("box", acceptor.get_port(), "", ""))
    finally:
        acceptor.close()


async def test_commands_keep_their_bytes_exit_codes_and_streams(
    tmp_path: Path, client_key: asyncssh.SSHKey
) -> None:
    async with serving(tmp_path, client_key) as server, await login(server, client_key) as connection:
        done = await connection.run("cat; echo no >&2; exit 7", input=bytes(range(256)), encoding=None)
        assert (done.stdout, done.stderr, done.exit_status) == (bytes(range(256)), b"no\n", 7)
        killed = await connection.run("kill -TERM $$")
        assert killed.exit_signal is not None
        assert killed.exit_signal[0] == "TERM"


async def test_sessions_are_capped_as_on_real_boxes(tmp_path: Path, client_key: asyncssh.SSHKey) -> None:
    async with serving(tmp_path, client_key) as server, await login(server, client_key) as connection:
        held = [await connection.create_process("cat") for _ in range(MAX_SESSIONS)]
        assert (await connection.run("true")).exit_status == 254
        held[0].stdin.write_eof()
        await held[0].wait()
        assert (await connection.run("true")).exit_status == 0


async def test_a_cut_ends_what_ran_and_a_deaf_box_lets_nobody_in(
    tmp_path: Path, client_key: asyncssh.SSHKey
) -> None:
    async with serving(tmp_path, client_key) as server:
        connection = await login(server, client_key)
        process = await connection.create_process("echo $$; exec sleep 60")
        pid = int(await process.stdout.readline())
        server.deaf = True
        server.cut()
        await asyncio.wait_for(connection.wait_closed(), 10)
        await wait_until(lambda: not psutil.pid_exists(pid), "the session's process is ended")
        with pytest.raises((OSError, asyncssh.Error)):
            await login(server, client_key)
        server.deaf = False
        async with await login(server, client_key) as again:
            assert (await again.run("echo back")).stdout == "back\n"


# -- the boxes -------------------------------------------------------------------------------------------


@pytest.fixture
def furnished(tmp_path: Path) -> Callable[[Plan], tuple[Box, dict[str, str]]]:
    """A box with its stand-ins, and the environment of its processes."""

    def make(plan: Plan) -> tuple[Box, dict[str, str]]:
        box = Box(plan, tmp_path, seed=1, speed=100)
        box.furnish()
        path = f"{box.home / 'bin'}:/usr/bin:/bin"
        return box, {"HOME": str(box.home), "PATH": path, "LANG": "C.UTF-8", MARKER: str(tmp_path)}

    return make


def df_percent(box: Box, environment: dict[str, str], flag: str) -> int:
    """How full the box's data disk is, as its own df says."""
    words = ["df", flag, "--", str(box.data)]
    printed = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=10, check=True
    ).stdout
    return int(printed.splitlines()[-1].split()[4].rstrip("%"))


async def test_inodes_run_out_while_bytes_are_free(
    furnished: Callable[[Plan], tuple[Box, dict[str, str]]],
) -> None:
    box, environment = furnished(replace(INODES, inode_cap=400, figures=20))
    assert "inode limit" in box.plan.simulated
    assert 80 <= df_percent(box, environment, "-Pi") < 90
    box.start_job(environment)
    try:
        await wait_until(lambda: box.collect() is not None, "the job ends at the cap", 60)
    finally:
        box.stop_job()
    assert box.collect() == 1
    assert "OSError: [Errno 28] No space left on device" in (box.out / "train.log").read_text()
    assert df_percent(box, environment, "-Pi") == 100
    assert df_percent(box, environment, "-Pk") < 50


async def test_other_disks_are_answered_by_the_real_df(
    furnished: Callable[[Plan], tuple[Box, dict[str, str]]],
) -> None:
    _, environment = furnished(INODES)
    words = ["df", "-P", "-i", "/"]
    own = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert "/dev/simulated" not in own
    assert own.splitlines()[-1].split()[-1] == "/"


async def test_a_finished_run_is_sealed_with_all_it_made(
    furnished: Callable[[Plan], tuple[Box, dict[str, str]]],
) -> None:
    box, environment = furnished(replace(DONE, epochs=3))
    box.start_job(environment)
    try:
        await wait_until(box.seal, "the run is sealed", 60)
    finally:
        box.stop_job()
    assert not box.out.exists()
    held = {path.name.split(".")[0] for path in box.export.iterdir()}
    assert held == {
        "train",
        "config",
        "ckpt-0002",
        "ckpt-0003",
        "predictions",
        "metrics",
        "best",
    }
    assert (box.export / "train.log").read_text().endswith("Training finished.\n")
    assert not box.seal()  # once


async def test_a_run_that_failed_is_not_sealed(
    furnished: Callable[[Plan], tuple[Box, dict[str, str]]],
) -> None:
    box, environment = furnished(DONE)
    box.start_job(environment)
    box.stop_job()
    assert box.collect() != 0
    assert not box.seal()
    assert box.out.exists()


def test_the_simulated_card_idles_when_the_job_is_gone(
    furnished: Callable[[Plan], tuple[Box, dict[str, str]]],
) -> None:
    _, environment = furnished(PLANS[0])
    words = [
        "nvidia-smi",
        "--query-gpu=name,utilization.gpu,memory.total,no.such",
        "--format=csv,noheader,nounits",
    ]
    smi = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert smi == "NVIDIA A100-SXM4-80GB, 0, 81920, [N/A]\n"


# -- the host --------------------------------------------------------------------------------------------


async def test_the_flaky_box_is_cut_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = asyncio.Event()
    monkeypatch.setattr("tui.demo.host._stdin_closed", closed.wait)
    plan = replace(FLAKY, first_cut_s=2.0, deaf_s=0.5, cut_every_s=1.0, pause_s=1.0)
    root = tmp_path / "demo"
    root.mkdir()
    host = Host(root, plans=(plan,))
    running = asyncio.create_task(host.run())
    try:
        await wait_until(lambda: (root / "key").exists() and bool(host._servers), "the host is up")
        server = host._servers[plan.name]
        await wait_until(lambda: server.port > 0, "the box listens")
        key = asyncssh.read_private_key(str(root / "key"))
        assert (root / "key").stat().st_mode & 0o077 == 0
        for _ in range(2):
            connection = await patient_login(server, key)
            began = time.monotonic()
            await asyncio.wait_for(connection.wait_closed(), 10)
            assert time.monotonic() - began < 3  # cut by the box, not by a time-out
    finally:
        closed.set()
        await asyncio.wait_for(running, 10)
        await host.close()
    assert f'"name": "{plan.name}"' in capsys.readouterr().out
    assert not root.exists()


async def test_destroy_ends_what_runs_on_that_box_alone_and_deletes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = asyncio.Event()
    monkeypatch.setattr("tui.demo.host._stdin_closed", closed.wait)
    root = tmp_path / "demo"
    root.mkdir()
    plans = tuple(plan for plan in PLANS if plan.platform == PROVIDER)
    assert len(plans) == 2
    host = Host(root, plans=plans)
    running = asyncio.create_task(host.run())
    try:
        state = root / "home" / "state"
        await wait_until(lambda: (state / CREDENTIAL).exists(), "the provider listens")
        key = asyncssh.read_private_key(str(root / "key"))
        pids = []
        for plan in plans:
            async with await login(host._servers[plan.name], key) as connection:
                done = await connection.run(
                    "setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $!", check=True
                )
                pids.append(int(str(done.stdout)))
        plane = simulated_plane(Paths(config=root / "home" / "config", state=state))
        assert not isinstance(plane, str)
        first, second = sorted((await plane.list_all()).machines, key=lambda one: one.name)
        assert (first.name, second.name) == (plans[0].name, plans[1].name)
        await plane.destroy(Victim(name=first.name, platform=PROVIDER, instance_id=first.id))
        await wait_until(lambda: not psutil.pid_exists(pids[0]), "its processes have ended")
        homes = [root / "boxes" / plan.name for plan in plans]
        await wait_until(lambda: not homes[0].exists(), "its folder is deleted")
        assert psutil.pid_exists(pids[1])
        assert homes[1].is_dir()
        with pytest.raises((OSError, asyncssh.Error)):
            await login(host._servers[plans[0].name], key)
    finally:
        closed.set()
        await asyncio.wait_for(running, 10)
        await host.close()


async def patient_login(server: BoxServer, key: asyncssh.SSHKey) -> asyncssh.SSHClientConnection:
    """Log in as soon as the box lets anybody in again."""
    for _ in range(600):
        try:
            return await login(server, key)
        except (OSError, asyncssh.Error):
            await asyncio.sleep(0.05)
    raise AssertionError("the box did not come back")


def test_plans_cut_only_links_that_have_proven_healthy() -> None:
    from tui.box.backoff import Backoff

    healthy_after: float = Backoff()._healthy_after
    assert all(plan.cut_every_s * 0.75 > healthy_after for plan in PLANS if plan.cut_every_s)


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> object:
    yield
    end_marked(tmp_path)
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_no_box_can_end_the_computer_it_runs_on(
    furnished: Callable[[Plan], tuple[Box, dict[str, str]]], plan: Plan
) -> None:
    box, environment = furnished(plan)
    for name in ENDINGS:
        found = subprocess.run(
            ["/bin/sh", "-c", f"command -v {name}"],
            env=environment, capture_output=True, text=True, timeout=10, check=True,
        ).stdout.strip()  # fmt: skip
        assert found == str(box.home / "bin" / name)
        ran = subprocess.run([found, "now"], env=environment, capture_output=True, text=True, timeout=10)
        assert ran.returncode == 1
        assert "nothing was stopped" in ran.stderr

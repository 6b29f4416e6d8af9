"""The probe in the shells that boxes have, on this very computer."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.box.fuse_rig import mounted
from tests.box.probe_rig import SHELLS, ShellTransport, probing, shell_argv, stand_in, with_path
from tests.real import absent, need
from tui.box.probe.loop import Probe, ProbeEnded
from tui.box.probe.plan import ProbeRequest
from tui.box.probe.script import source
from tui.model.run import RunSpec
from tui.model.telemetry import RunTruth, Telemetry

ODD = "odd 'a' \"b\" $(id) `id`\n-new\\line\t*\udcff\udc81我"


def start_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()[19])


def truth(telemetry: Telemetry, name: str) -> RunTruth:
    return next(run for run in telemetry.runs if run.run == name)


@pytest.mark.parametrize("shell", SHELLS)
async def test_says_what_this_computer_is(shell: str) -> None:
    async with probing(ShellTransport(shell)) as probe:
        first = await probe.tick(ProbeRequest(), candidates=True, xid=True)
        quiet = await probe.tick(ProbeRequest(), gpus=False, filesystems=False)
    host = first.host.value
    assert host is not None
    assert host.system == "Linux"
    assert host.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert host.clock_offset_s is not None
    assert abs(host.clock_offset_s) < 1
    root = next(one for one in first.filesystems.value or () if one.mount == "/")
    real = os.statvfs("/")
    assert root.size_bytes == real.f_blocks * real.f_frsize
    assert root.inodes == (real.f_files or None)
    assert first.memory.value is not None
    assert first.memory.value.host_total_bytes == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert first.cpu.value is not None
    assert first.cpu.value.cores_visible == len(os.sched_getaffinity(0))
    assert first.processes.value
    assert (first.tick, quiet.tick) == (
        1,
        2,
    ) or quiet.tick == 3  # a second request asks for candidates' folders
    assert quiet.filesystems is first.filesystems
    assert quiet.memory is not first.memory


@pytest.mark.parametrize("shell", SHELLS)
async def test_paths_may_be_any_bytes(shell: str, tmp_path: Path) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    log = folder / "-train log\n.txt"
    log.write_bytes(b"hello")
    for number in range(3):
        (folder / f"-c {number}\n'.pt").write_bytes(b"x" * (number + 1))
        os.utime(folder / f"-c {number}\n'.pt", (1_700_000_000 + number,) * 2)
    runs = (
        RunSpec("odd", "b", log=str(log), checkpoints=f"{glob_quoted(folder)}/-c*.pt"),
        RunSpec("none", "b", log=str(folder / "absent"), checkpoints=f"{folder}/nothing*.pt"),
    )
    async with probing(ShellTransport(shell)) as probe:
        telemetry = await probe.tick(ProbeRequest(runs), gpus=False)
    odd, none = truth(telemetry, "odd"), truth(telemetry, "none")
    assert odd.log.value is not None
    assert (odd.log.value.inode, odd.log.value.size_bytes) == (log.stat().st_ino, 5)
    assert odd.checkpoint_count == 3
    assert [one.size_bytes for one in odd.checkpoints.value or ()] == [3, 2, 1]
    assert none.log.value is None
    assert "No such file" in none.log.reason
    assert (none.checkpoints.value, none.checkpoint_count) == ((), 0)


def glob_quoted(folder: Path) -> str:
    return str(folder).replace("\\", "\\\\").replace("*", "\\*").replace("[", "\\[").replace("?", "\\?")


@pytest.mark.parametrize("shell", ["dash", "busybox ash"])
async def test_checkpoints_of_every_form(shell: str, tmp_path: Path) -> None:
    for step in range(30):
        (tmp_path / f"ckpt-{step}.pt").write_bytes(b"x" * step)
        os.utime(tmp_path / f"ckpt-{step}.pt", (1_700_000_000 + step,) * 2)
    deep = tmp_path / "out" / "run 1" / "checkpoint-500"
    deep.mkdir(parents=True)
    (deep / "model.safetensors").write_bytes(b"y" * 50_000)
    runs = (
        RunSpec("many", "b", checkpoints=f"{tmp_path}/ckpt-*.pt"),
        RunSpec("deep", "b", checkpoints=f"{tmp_path}/**/*.safetensors"),
        RunSpec("folder", "b", checkpoints=f"{tmp_path}/out/*/checkpoint-*"),
    )
    async with probing(ShellTransport(shell)) as probe:
        telemetry = await probe.tick(ProbeRequest(runs), gpus=False)
    many, deeper, folder = (truth(telemetry, name) for name in ("many", "deep", "folder"))
    assert many.checkpoint_count == 30
    assert [one.size_bytes for one in many.checkpoints.value or ()] == list(range(29, 9, -1))
    assert [(one.path, one.size_bytes) for one in deeper.checkpoints.value or ()] == [
        (str(deep / "model.safetensors"), 50_000)
    ]
    assert folder.checkpoint_count == 1
    assert (folder.checkpoints.value or ())[
        0
    ].size_bytes >= 50_000  # what is in it, not the folder's own entry


@pytest.mark.parametrize("shell", ["dash", "busybox ash", "bash"])
async def test_changes_nothing(shell: str, tmp_path: Path) -> None:
    """Every file this test can see is the same before and after: names, sizes, modes and times of change."""
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    for folder in (home, temporary):
        folder.mkdir()
        (folder / "file").write_text("x")
    (home / "model.pt").write_text("y")
    env = {"HOME": str(home), "TMPDIR": str(temporary)}
    request = ProbeRequest(
        (RunSpec("r", "b", log="file", checkpoints="*.pt", pid=os.getpid()),), (str(home),)
    )
    before = tree(tmp_path)
    async with probing(ShellTransport(shell, env)) as probe:
        for _ in range(2):
            await probe.tick(request, candidates=True, xid=True)
            await probe.tick(request, gpus=False, filesystems=False)
    assert tree(tmp_path) == before


def tree(folder: Path) -> str:
    find = need("find")["find"]
    form = r"%P|%y|%s|%m|%U|%T@|%C@|%i\n"
    found = subprocess.run([find, str(folder), "-printf", form], capture_output=True, text=True, check=True)
    return "\n".join(sorted(found.stdout.splitlines()))


@pytest.mark.parametrize("shell", ["dash", "busybox ash", "bash"])
async def test_writes_nothing_anywhere(shell: str, tmp_path: Path) -> None:
    """Neither the shell nor what it starts makes, removes or opens a file for writing, but for /dev/null.

    A tmux server is open: its client asks for the folder of its socket to be made, which is there.
    """
    changing = "creat,mkdir,mkdirat,unlink,unlinkat,rename,renameat,renameat2,truncate,chmod,symlink,mknod"

    async def look(probe: Probe) -> None:
        runs = (RunSpec("r", "b", log="/etc/hosts", checkpoints="/etc/*.conf"),)
        await probe.tick(ProbeRequest(runs), candidates=True, xid=True)

    with tmux_open(tmp_path) as env:
        lines = await traced(shell, f"open,openat,{changing}", tmp_path / "trace", look, env)
    lines = [line for line in lines if " = -1 " not in line or "/proc/loadavg" in line]  # refused: no change
    opened = [line for line in lines if "open(" in line or "openat(" in line]
    assert any('"/proc/loadavg"' in line for line in opened)  # the trace did see the probe
    writing = [line for line in opened if "O_WRONLY" in line or "O_RDWR" in line or "O_CREAT" in line]
    # bash looks for a terminal when it starts.
    assert [line for line in writing if '"/dev/null"' not in line and '"/dev/tty"' not in line] == []
    assert [line for line in lines if any(f" {call}(" in line for call in changing.split(","))] == []


@contextmanager
def tmux_open(folder: Path) -> Iterator[dict[str, str]]:
    """A tmux server of our own; the environment that leads to it, and to no other one of this computer."""
    tmux, env = need("tmux")["tmux"], {"TMUX_TMPDIR": str(folder)}
    words = [tmux, "-f", "/dev/null", "new-session", "-d", "-s", "open", "sleep", "300"]
    subprocess.run(words, env={**os.environ, **env}, check=True, timeout=20)
    try:
        yield env
    finally:
        subprocess.run([tmux, "kill-server"], env={**os.environ, **env}, check=False, timeout=20)


async def traced(
    shell: str,
    calls: str,
    trace: Path,
    work: Callable[[Probe], Awaitable[None]],
    env: dict[str, str] | None = None,
) -> list[str]:
    """What strace saw of the shell and of all it started while `work` was done with it."""
    transport = ShellTransport(shell, env)
    strace = need("strace")["strace"]
    transport.argv = [strace, "-f", "-q", "-e", f"trace={calls}", "-o", str(trace), *transport.argv]
    try:
        async with probing(transport, deadline_s=30) as probe:
            await work(probe)
    except ProbeEnded:
        absent("strace may not trace here")
    return _whole(trace.read_text(errors="replace").splitlines())


def _whole(lines: list[str]) -> list[str]:
    """Calls that another process interrupted are told in two lines: here they are one."""
    begun: dict[str, str] = {}
    whole = []
    for line in lines:
        pid = line.split(" ", 1)[0]
        if line.endswith(" <unfinished ...>"):
            begun[pid] = line.removesuffix(" <unfinished ...>")
        elif " resumed>" in line:
            whole.append(begun.pop(pid, pid) + line.split(" resumed>", 1)[1])
        else:
            whole.append(line)
    return whole + list(begun.values())


CGROUPS = {
    # name: (mount table, /proc/self/cgroup, files below the root, what is read of memory and CPU)
    "version 2, the tightest above": (
        "cgroup2 {root} cgroup2 rw 0 0",
        "0::/user.slice/user-0.slice/session.scope",
        {
            "user.slice/memory.max": "max", "user.slice/cpu.max": "200000 100000",
            "user.slice/user-0.slice/memory.max": "5000", "user.slice/user-0.slice/memory.current": "700",
            "user.slice/user-0.slice/memory.stat": "anon 1\ninactive_file 50\nfile 3",
            "user.slice/user-0.slice/memory.events": "low 0\noom 9\noom_kill 4\noom_group_kill 0",
            "user.slice/user-0.slice/session.scope/memory.max": "9000",
            "user.slice/user-0.slice/session.scope/cpu.max": "max 100000",
        },
        ("version 2", "{root}/user.slice/user-0.slice", "memory.max 5000", "inactive_file 50", "oom_kill 4",
         "cpu.max 200000 100000"),
    ),
    "version 2, a container's root": (
        "cgroup {root} cgroup2 ro 0 0",
        "0::/",
        {"memory.max": "8589934592", "memory.current": "1024", "cpu.max": "50000 100000"},
        ("version 2", "at {root}\n", "memory.max 8589934592", "memory.current 1024", "cpu.max 50000 100000"),
    ),
    "version 2, a path of the host's": (
        "cgroup {root} cgroup2 ro 0 0",
        "0::/../../docker/abc",
        {"memory.max": "77", "memory.current": "7"},
        ("version 2", "at {root}\n", "memory.max 77"),
    ),
    "version 2, no limit anywhere": (
        "cgroup2 {root} cgroup2 rw 0 0",
        "0::/system.slice/ssh.service",
        {"system.slice/memory.max": "max", "system.slice/memory.current": "99",
         "system.slice/ssh.service/memory.max": "max"},
        ("version 2", "at {root}/system.slice\n", "memory.max max", "memory.current 99"),
    ),
    "version 1, nested": (
        "cgroup {root}/memory cgroup rw,memory 0 0\ncgroup {root}/cpu cgroup rw,cpu,cpuacct 0 0",
        "11:memory:/slurm/uid_0/job_5\n4:cpu,cpuacct:/\n1:name=systemd:/",
        {
            "memory/memory.limit_in_bytes": "9223372036854771712", "memory/memory.usage_in_bytes": "1",
            "memory/slurm/memory.limit_in_bytes": "9223372036854771712",
            "memory/slurm/uid_0/job_5/memory.limit_in_bytes": "640",
            "memory/slurm/uid_0/job_5/memory.usage_in_bytes": "320",
            "memory/slurm/uid_0/job_5/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2",
            "cpu/cpu.cfs_quota_us": "350000", "cpu/cpu.cfs_period_us": "100000",
            "cpu/cpu.stat": "nr_periods 5\nnr_throttled 3",
        },
        ("version 1", "at {root}/memory/slurm/uid_0/job_5\n", "memory.limit_in_bytes 640", "oom_kill 2",
         "cpu.cfs_quota_us 350000", "nr_throttled 3"),
    ),
    "none": ("proc /proc proc rw 0 0", "", {}, ("version 0",)),
}  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("case", CGROUPS)
def test_the_control_group_that_binds_us(shell: str, case: str, tmp_path: Path) -> None:
    table, own, contents, wanted = CGROUPS[case]
    root = tmp_path / "cgroup"
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    functions = source().partition("trap reap EXIT")[0]  # all that comes before the program starts to act
    steps = "out=; mounts=$2; cgroups=$3; find_cgroup; memory; cpu; printf '%s' \"$out\""
    argv = [*shell_argv(shell), "-c", functions + steps, "rgt", "n", table.format(root=root), own]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    for line in wanted:
        assert line.format(root=root) in said


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_process_is_named_by_pid_start_and_boot(shell: str) -> None:
    child = subprocess.Popen([need("sleep")["sleep"], "60"])
    zombie = subprocess.Popen([need("true")["true"]])
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        start = start_of(child.pid)
        while Path(f"/proc/{zombie.pid}/stat").read_bytes().rpartition(b") ")[2][:1] != b"Z":
            await asyncio.sleep(0.01)
        runs = (
            RunSpec("alive", "b", pid=child.pid, pid_start=start, boot_id=boot),
            RunSpec("reused", "b", pid=child.pid, pid_start=start - 1),
            RunSpec(
                "rebooted", "b", pid=child.pid, pid_start=start, boot_id=boot.replace(boot[0], "g")[::-1]
            ),
            RunSpec("zombie", "b", pid=zombie.pid),
            RunSpec("absent", "b", pid=2**22 - 3),
            RunSpec("unnamed", "b"),
        )
        async with probing(ShellTransport(shell)) as probe:
            telemetry = await probe.tick(ProbeRequest(runs), gpus=False, filesystems=False)
            child.terminate()
            child.wait(5)
            later = await probe.tick(ProbeRequest(runs), gpus=False, filesystems=False)
    finally:
        child.kill()
        child.wait(5)
        zombie.wait(5)
    told = {run.run: (run.alive, run.gone_reason) for run in telemetry.runs}
    assert told["alive"] == (True, "")
    assert truth(telemetry, "alive").process is not None
    assert told["reused"][0] is False
    assert "another process" in told["reused"][1]
    assert told["rebooted"][0] is False
    assert told["zombie"][0] is False
    assert "zombie" in told["zombie"][1]
    assert told["absent"][0] is False
    assert told["unnamed"][0] is None
    assert truth(later, "alive").alive is False


@pytest.mark.parametrize("shell", SHELLS)
async def test_the_recorded_end_comes_with_the_look_that_finds_the_process_gone(
    shell: str, tmp_path: Path
) -> None:
    """Else a run that is done would be called dead until the run's files are looked at again."""
    attempts = tmp_path / ODD / ".rgt" / "attempts"
    for number in ("1", "2"):
        (attempts / number).mkdir(parents=True)
    (attempts / "1" / "end").write_text("reason failed\nstatus 1\nsignal \n")
    (tmp_path / ODD / "logs").mkdir()
    child = subprocess.Popen([need("sleep")["sleep"], "60"])
    runs = (
        RunSpec("launched", "b", log=str(tmp_path / ODD / "logs" / "train.log"), pid=child.pid),
        RunSpec("adopted", "b", log=str(tmp_path / "other" / "train.log"), pid=child.pid),
        RunSpec("at-home", "b", log="train.log", pid=child.pid),
    )
    try:
        async with probing(ShellTransport(shell)) as probe:
            begun = await probe.tick(ProbeRequest(runs), gpus=False)
            (attempts / "2" / "end").write_text("reason finished\nstatus 0\nsignal \n")
            child.terminate()
            child.wait(5)
            over = await probe.tick(ProbeRequest(runs), gpus=False, filesystems=False)
            still = await probe.tick(ProbeRequest(runs), gpus=False, filesystems=False)
    finally:
        child.kill()
        child.wait(5)
    assert [(run.alive, run.end) for run in begun.runs] == [(True, None)] * 3
    assert [(run.alive, run.end) for run in over.runs] == [(False, "finished"), (False, None), (False, None)]
    assert truth(over, "launched").finished
    assert (over.tick, still.tick) == (3, 4)  # asked once more, and then no more


@pytest.mark.parametrize("shell", ["dash", "busybox ash", "bash"])
async def test_finds_a_run_that_nobody_told_of(shell: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys, time\nprint('loss 1.0', flush=True)\nopen('step-10.pt', 'wb').write(b'x' * 1000)\n"
        "keep = open('metrics.jsonl', 'a')\ntime.sleep(60)\n"
    )
    with (tmp_path / "train log.txt").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-u", "train.py", "--api-key", "hunter2"],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            start_new_session=True,  # what this process starts in its own group is its own, and no run
        )
    try:
        while not (tmp_path / "metrics.jsonl").exists():
            await asyncio.sleep(0.02)
        async with probing(ShellTransport(shell)) as probe:
            telemetry = await probe.tick(ProbeRequest(), gpus=False, filesystems=False, candidates=True)
    finally:
        child.kill()
        child.wait(5)
    assert child.pid in [one.pid for one in telemetry.candidates.value or ()]
    found = next(one for one in telemetry.candidates.value or () if one.pid == child.pid)
    assert found.cwd == str(tmp_path)
    assert found.logs[0] == str(tmp_path / "train log.txt")
    assert str(tmp_path / "metrics.jsonl") in found.logs
    assert [(one.path, one.size_bytes) for one in found.checkpoints] == [(str(tmp_path / "step-10.pt"), 1000)]
    assert "train.py" in found.command
    assert "hunter2" not in found.command


async def test_finds_the_file_behind_tee_and_the_tmux_session(tmp_path: Path) -> None:
    tmux = need("tmux")["tmux"]
    (tmp_path / "train.py").write_text(
        "import time\nprint('x', flush=True)\nopen('up', 'w')\ntime.sleep(60)\n"
    )
    env = {"TMUX_TMPDIR": str(tmp_path)}
    command = f"{sys.executable} train.py 2>&1 | tee run.log"
    subprocess.run(
        [tmux, "-f", "/dev/null", "new-session", "-d", "-s", "exp.1", "-c", str(tmp_path), command],
        env={**os.environ, **env}, check=True,
    )  # fmt: skip
    try:
        while not (tmp_path / "up").exists():
            await asyncio.sleep(0.02)
        runs = (RunSpec("here", "b", session="exp.1"), RunSpec("gone", "b", session="other"))
        async with probing(ShellTransport("dash", env)) as probe:
            telemetry = await probe.tick(ProbeRequest(runs), gpus=False, candidates=True)
    finally:
        subprocess.run([tmux, "kill-server"], env={**os.environ, **env}, check=False)
    found = next(one for one in telemetry.candidates.value or () if one.cwd == str(tmp_path))
    assert found.session == "exp_1"
    assert found.logs[0] == str(tmp_path / "run.log")
    assert [one.name for one in telemetry.sessions.value or () if one.kind == "tmux"] == ["exp_1"]
    assert (truth(telemetry, "here").session_alive, truth(telemetry, "gone").session_alive) == (True, False)


@pytest.fixture
def alpine(tmp_path: Path) -> dict[str, str]:
    """An environment whose tools are all BusyBox's, as far as BusyBox has them."""
    busybox, folder = need("busybox")["busybox"], tmp_path / "alpine"
    folder.mkdir()
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in listed:
        (folder / applet).symlink_to(busybox)
    return with_path(folder)


async def test_where_all_tools_are_busybox(alpine: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "hung"
    work = tmp_path / "work 我"
    work.mkdir()
    (work / "t.py").write_text("import time\nopen('a b.pt', 'wb').write(b'x' * 7)\ntime.sleep(60)\n")
    with (work / "log one").open("wb") as log:
        child = subprocess.Popen([sys.executable, "t.py"], cwd=work, stdout=log, start_new_session=True)
    run = RunSpec("r", "b", log=str(work / "log one"), checkpoints=f"{tmp_path}/**/*.pt", pid=child.pid)
    request = ProbeRequest((run,), (str(place),))
    try:
        while not (work / "a b.pt").exists():
            await asyncio.sleep(0.02)
        with mounted(place) as folder:
            async with probing(ShellTransport("busybox ash", alpine)) as probe:
                telemetry = await probe.tick(request, candidates=True, xid=True)
                folder.answering.clear()
                hung = await probe.tick(request)
    finally:
        child.kill()
        child.wait(5)
    disks = {str(one.mount): one for one in telemetry.filesystems.value or ()}
    real = os.statvfs("/")
    assert disks["/"].size_bytes == real.f_blocks * real.f_frsize
    assert (disks[str(place)].inodes, disks[str(place)].use_pct) == (500, 80)
    assert {str(one.mount): one.error for one in hung.filesystems.value or ()} | {
        str(place): ""
    } == dict.fromkeys(disks, "")
    assert next(one for one in hung.filesystems.value or () if one.mount == str(place)).error
    assert telemetry.processes.value
    assert truth(telemetry, "r").alive
    assert [one.size_bytes for one in truth(telemetry, "r").checkpoints.value or ()] == [7]
    found = {one.pid: one for one in telemetry.candidates.value or ()}
    assert found[child.pid].cwd == str(work)
    assert found[child.pid].logs == (str(work / "log one"),)
    assert [one.path for one in found[child.pid].checkpoints] == [str(work / "a b.pt")]
    assert telemetry.xid.known


SMI = r"""
case $* in
  *query-compute-apps*) echo '4242, python, 1000, GPU-1111' ;;
  *clocks_event_reasons*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2 ;;
  *clocks_throttle_reasons*)
    printf '%s' '0, NVIDIA A100, 55, 1024, 40960, 45, 250.5, GPU-1111, 00000000:01:00.0, '
    echo '400.00, 1410, Disabled, 0, 0x0000000000000004' ;;
  *) exit 9 ;;
esac"""


@pytest.mark.parametrize("shell", SHELLS)
async def test_cards_of_an_older_driver(shell: str, tmp_path: Path) -> None:
    stand_in(tmp_path, "nvidia-smi", f"echo x >>{tmp_path}/calls\n{SMI}")
    async with probing(ShellTransport(shell, with_path(tmp_path))) as probe:
        first = await probe.tick(ProbeRequest(), filesystems=False)
        await probe.tick(ProbeRequest(), filesystems=False)
    assert first.gpus.value is not None
    gpu = first.gpus.value[0]
    assert (gpu.name, gpu.util_pct, gpu.mem_used_mib, gpu.power_limit_w) == ("NVIDIA A100", 55, 1024, 400)
    assert gpu.throttle == ("sw_power_cap",)
    assert first.gpu_processes.value is not None
    assert first.gpu_processes.value[0].pid == 4242
    # Two queries until the fields are known, and one list of processes; then one of each.
    assert (tmp_path / "calls").read_text().count("x") == 3 + 2


@pytest.mark.parametrize(
    ("text", "gpus", "why"),
    [
        ("echo 'No devices were found'; exit 6", (), ""),
        ('echo "It couldn\'t communicate with the NVIDIA driver."; exit 9', None, "NVIDIA driver"),
        ("echo boom; exit 3", None, "boom"),
    ],
)
async def test_a_tool_that_refuses(text: str, gpus: tuple[()] | None, why: str, tmp_path: Path) -> None:
    stand_in(tmp_path, "nvidia-smi", text)
    async with probing(ShellTransport("dash", with_path(tmp_path))) as probe:
        telemetry = await probe.tick(ProbeRequest(), filesystems=False)
    assert telemetry.gpus.value == gpus
    assert why in telemetry.gpus.reason
    assert (telemetry.gpu_processes.value is None) == (gpus is None)


@pytest.mark.parametrize("shell", SHELLS)
async def test_plain_looks_start_no_process(shell: str, tmp_path: Path) -> None:
    async def started(times: int) -> int:
        async def look(probe: Probe) -> None:
            for _ in range(times):
                await probe.tick(ProbeRequest((RunSpec("r", "b", pid=1),)), gpus=False, filesystems=False)

        lines = await traced(shell, "clone,clone3,fork,vfork", tmp_path / f"trace{times}", look)
        return sum("resumed>" not in line and "+++" not in line and "---" not in line for line in lines)

    one, eleven = await started(1), await started(11)
    assert one == eleven
    assert one > 5  # those of the start were seen

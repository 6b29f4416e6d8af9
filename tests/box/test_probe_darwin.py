"""The Darwin branch on outputs in the forms that macOS documents: stand-ins print them. No Mac was tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.box.probe_rig import ShellTransport, probing, stand_in, with_path
from tests.real import need
from tui.box.probe.darwin import read_ps
from tui.box.probe.plan import ProbeRequest
from tui.model.run import RunSpec

FIXTURES = Path(__file__).parent.parent / "fixtures" / "darwin"


@pytest.fixture
def mac(tmp_path: Path) -> Path:
    """A PATH on which the tools are a Mac's. It has no timeout(1), and stat(1) speaks BSD's language."""
    folder, real = tmp_path / "mac", need("stat")["stat"]
    stand_in(folder, "uname", "echo Darwin")
    stand_in(folder, "timeout", "exit 127")
    asked = f'vm.loadavg) cat "{FIXTURES}/loadavg.txt" ;; *) cat "{FIXTURES}/sysctl.txt" ;;'
    stand_in(folder, "sysctl", f"case $1 in {asked} esac")
    stand_in(folder, "vm_stat", f'cat "{FIXTURES}/vm_stat.txt"')
    stand_in(folder, "mount", f'cat "{FIXTURES}/mount.txt"')
    stand_in(
        folder, "df",
        'case $2 in "/Volumes/My Data") ;; *) echo "df: $2: No such file or directory" >&2; exit 1 ;; esac\n'
        f'case $1 in -Pk) cat "{FIXTURES}/df_bytes.txt" ;; -ik) cat "{FIXTURES}/df_inodes.txt" ;; esac',
    )  # fmt: skip
    # BSD ps reads `-o pid=,ppid=` as one column titled ",ppid=": such a call prints nothing useful here.
    stand_in(
        folder, "ps",
        'for x; do case $x in *=,*) exit 1 ;; esac; done\n'
        'case $1 in -A) case $* in *command=*) cat "' + str(FIXTURES) + '/ps_all.txt" ;; esac ;;\n'
        '-p) grep -E "^ *$2 " "' + str(FIXTURES) + '/ps_all.txt" ;; esac',
    )  # fmt: skip
    stand_in(
        folder, "stat",
        'case $3 in\n'
        f"'%i %z %m') shift 4; exec {real} -L -c '%i %s %Y' -- \"$@\" ;;\n"
        f"'%m %z %i %HT/%N') shift 4; exec {real} -L -c '%Y %s %i Regular File/%n' -- \"$@\" ;;\n"
        "esac; echo 'stat: illegal option' >&2; exit 1",
    )  # fmt: skip
    return folder


async def test_a_mac(mac: Path, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"12345")
    (tmp_path / "a.pt").write_bytes(b"x" * 10)
    runs = (
        RunSpec("run", "b", log=str(log), checkpoints=f"{tmp_path}/*.pt", pid=4242, pid_start=1762862390),
        RunSpec("other", "b", pid=4242, pid_start=5),
        RunSpec("zombie", "b", pid=4300),
        RunSpec("gone", "b", pid=99999),
        RunSpec("restarted", "b", pid=4242, boot_id="00000000-1b7a-4d0e-9a41-5f0d2c7b9e11"),
    )
    request = ProbeRequest(runs, ("/Volumes/My Data",))
    async with probing(ShellTransport("bash", with_path(mac))) as probe:
        telemetry = await probe.tick(request, candidates=True, xid=True)
    host, memory, cpu = telemetry.host.value, telemetry.memory.value, telemetry.cpu.value
    assert host is not None
    assert (host.system, host.hostname, host.kernel) == ("Darwin", "studio.local", "23.6.0")
    assert host.boot_id == "8c6e3f52-1b7a-4d0e-9a41-5f0d2c7b9e11"
    assert host.booted_at == 1761900000
    assert memory is not None
    assert memory.limit_bytes is None
    assert memory.used_bytes is None
    assert memory.host_total_bytes == 64 << 30
    assert memory.host_available_bytes == (262144 + 1048576 + 65536 + 32768) * 16384
    assert cpu is not None
    assert (cpu.cores_visible, cpu.load1, cpu.quota_cores) == (12, 2.41, None)
    disks = {str(one.mount): one for one in telemetry.filesystems.value or ()}
    data = disks["/Volumes/My Data"]
    assert (data.size_bytes, data.use_pct, data.read_only) == (976562500 * 1024, 70, False)
    assert (data.inodes, data.inodes_used) == (512345 + 2929687500, 512345)
    assert disks["/"].error
    assert disks["/"].read_only is True
    assert telemetry.gpus.value is None
    assert "macOS" in telemetry.gpus.reason
    assert telemetry.xid.value is None
    assert telemetry.candidates.value is None
    assert [one.pid for one in telemetry.processes.value or ()][:2] == [4242, 812]
    assert "hunter2" not in (telemetry.processes.value or ())[0].command
    told = {run.run: run for run in telemetry.runs}
    assert [told[name].alive for name in ("run", "other", "zombie", "gone", "restarted")] == [
        True, False, False, False, False,
    ]  # fmt: skip
    assert told["run"].log.value is not None
    assert told["run"].log.value.size_bytes == 5
    assert [one.size_bytes for one in told["run"].checkpoints.value or ()] == [10]


def test_a_line_of_ps() -> None:
    lines = (FIXTURES / "ps_all.txt").read_text().splitlines()
    info = read_ps(lines[2])
    assert info is not None
    assert (info.pid, info.ppid, info.state, info.rss_bytes) == (4242, 4100, "R", 8 << 30)
    assert info.cpu_s == pytest.approx(125 * 60 + 7.33)
    assert info.elapsed_s == 1 * 3600 + 59 * 60 + 3
    assert info.start_ticks == 1762862390
    first = read_ps(lines[0])
    assert first is not None
    assert first.elapsed_s == 11 * 86400 + 4 * 3600 + 18 * 60 + 51
    assert read_ps("ps: illegal option") is None

"""A real Slurm on this machine: munged, slurmctld and slurmd with two GPUs that are none.

Everything lies in one folder of its own, on ports of its own; nothing of an installed Slurm is touched. It
runs as the current user, who has to be root: slurmd starts jobs, and a GPU needs a device file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from tests.real import absent, need

_START_S = 20.0
_TOOLS = (
    "munged",
    "slurmctld",
    "slurmd",
    "sbatch",
    "squeue",
    "scancel",
    "scontrol",
    "srun",
    "sinfo",
    "mknod",
)
_CONF = """\
ClusterName=rig
SlurmctldHost=localhost
SlurmctldPort={ctld_port}
SlurmdPort={d_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
JobCompType=jobcomp/none
MailProg=/bin/true
MinJobAge=2
MessageTimeout=4
KillWait=5
MpiDefault=none
GresTypes=gpu
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
NodeName=localhost NodeHostName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=2000 Gres=gpu:h100:2
PartitionName=main Nodes=localhost Default=YES PriorityTier=1 MaxTime=60
PartitionName=urgent Nodes=localhost PriorityTier=10 MaxTime=60
"""


class Slurm:
    """One cluster of one node. Make it with `Slurm.start`; end it with `stop`.

    Attributes:
        conf: what ``SLURM_CONF`` has to name.
        folder: where everything lies.
    """

    def __init__(self, folder: Path, tools: dict[str, str]) -> None:
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self._tools = tools

    @classmethod
    def start(cls) -> Slurm:
        """Start a cluster; skips where something is missing for it."""
        tools = need(*_TOOLS)
        if os.geteuid() != 0:
            absent("a Slurm of its own needs root")
        # A socket's path must be short, and every user must be able to walk to it.
        folder = Path(tempfile.mkdtemp(prefix="rgt-slurm-", dir="/tmp"))
        folder.chmod(0o755)
        rig = cls(folder, tools)
        try:
            rig._prepare()
            rig._begin()
        except BaseException:
            rig.stop()
            raise
        return rig

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.conf)}

    def run(self, *words: str, check: bool = True) -> str:
        """What a Slurm tool answers, stdout and stderr together."""
        done = subprocess.run(
            words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20
        )
        text = done.stdout.decode().strip()
        assert not check or done.returncode == 0, text
        return text

    def submit(self, script: str, *options: str) -> str:
        """Submit a shell script; its job's id."""
        file = self.folder / f"job-{time.monotonic_ns()}.sh"
        file.write_text(f"#!/bin/sh\n{script}\n")
        out = f"--output={self.folder}/%j.out"
        return self.run("sbatch", "--parsable", "--chdir=/tmp", out, *options, str(file)).partition(";")[0]

    def state(self, job: str) -> tuple[str, str]:
        """State and reason; two empty words where the controller knows no such job."""
        told = self.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T|%r", check=False)
        state, _, reason = told.partition("|")
        return ("", "") if "error" in told else (state, reason)

    def until(self, job: str, *states: str, timeout: float = 20.0) -> str:
        """Wait until the job is in one of the states; ``""`` stands for a forgotten one."""
        deadline = time.monotonic() + timeout
        while (now := self.state(job))[0] not in states:
            assert time.monotonic() < deadline, (job, now, self.log()[-2000:])
            time.sleep(0.1)
        return now[0]

    def clear(self) -> None:
        """Cancel everything and wait until the node is free."""
        self.run("scancel", "--user=root", check=False)
        deadline = time.monotonic() + 15
        while self.run("squeue", "-h", check=False):
            assert time.monotonic() < deadline, self.run("squeue", check=False)
            time.sleep(0.1)

    def stop_controller(self) -> None:
        """It saves its state first; after a kill it would have forgotten what is new."""
        self._kill("slurmctld", signal.SIGTERM)

    def start_controller(self) -> None:
        self._once("slurmctld")
        self._until_idle()

    def log(self) -> str:
        return "".join(
            (self.folder / name).read_text(errors="replace")[-4000:]
            for name in ("slurmctld.log", "slurmd.log")
            if (self.folder / name).exists()
        )

    def stop(self) -> None:
        """End every daemon and whatever job is left, by process id, and remove the folder."""
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.run("scancel", "--user=root", "--signal=KILL", check=False)
        for name in ("slurmctld", "slurmd", "munged"):
            self._kill(name, signal.SIGKILL)
        for process in psutil.process_iter(["environ"]):
            if (process.info["environ"] or {}).get("SLURM_CONF") == str(self.conf):
                with contextlib.suppress(psutil.Error):
                    process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- inside -------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        for name in ("state", "spool", "munge"):
            (self.folder / name).mkdir(mode=0o755)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        gres = []
        for number in range(2):
            device = self.folder / f"gpu{number}"
            made = subprocess.run(
                [self._tools["mknod"], str(device), "c", "1", "3"], capture_output=True, timeout=5
            )
            if made.returncode != 0:
                absent(f"no device file can be made: {made.stderr.decode().strip()}")
            gres.append(f"NodeName=localhost Name=gpu Type=h100 File={device}\n")
        (self.folder / "gres.conf").write_text("".join(gres))
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        text = _CONF.format(
            folder=self.folder, ctld_port=_free_port(), d_port=_free_port(), host=os.uname().nodename
        )
        self.conf.write_text(text)

    def _begin(self) -> None:
        folder = self.folder / "munge"
        self._once(
            "munged",
            "--force",
            f"--socket={folder}/socket",
            f"--key-file={folder}/key",
            f"--pid-file={self.folder}/munged.pid",
            f"--log-file={folder}/log",
            f"--seed-file={folder}/seed",
        )
        self._once("slurmctld")
        self._once("slurmd", "-N", "localhost")
        self._until_idle()

    def _once(self, name: str, *words: str) -> None:
        done = subprocess.run(
            [self._tools[name], *words],
            env=self.environment,
            capture_output=True,
            timeout=20,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            absent(f"{name} does not start here: {done.stderr.decode(errors='replace').strip()[-300:]}")

    def _until_idle(self) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            told = self.run("sinfo", "-h", "-o", "%T", check=False)
            if any(state in told for state in ("idle", "mixed", "allocated")):
                return
            assert time.monotonic() < deadline, f"{told}\n{self.log()}"
            time.sleep(0.1)

    def _kill(self, name: str, how: signal.Signals) -> None:
        try:
            process = psutil.Process(int((self.folder / f"{name}.pid").read_text()))
        except (OSError, ValueError, psutil.Error):
            return
        with contextlib.suppress(psutil.Error):
            if process.name() == name:  # a number of an old file may be somebody else's by now
                process.send_signal(how)
                deadline = time.monotonic() + 5
                while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
                    time.sleep(0.05)  # who adopted it need not take note of its end


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""The five boxes of the embedded fleet: what each holds, runs and simulates."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

ROOM = Path(__file__).resolve().parent
ENDINGS = ("shutdown", "poweroff", "halt", "reboot", "init", "telinit", "systemctl", "sudo")
"""Programs that could end the operator's computer from a shell on a box; each has a stand-in there."""

PROVIDER = "simulated"
"""Platform of the boxes that can be stopped and destroyed. The others only look like those of a vendor."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One box and its job.

    Attributes:
        pause_s: seconds between training steps at speed 1.
        figures: small files the job writes at each step.
        inode_cap: files the box's data disk admits; 0 for no simulated cap.
        cut_every_s: how often its link breaks; 0 for never. Longer than a link must live to count as healthy,
            or the back-off would grow with every cut.
        first_cut_s: when it breaks first; `deaf_s` is how long it stays so. All three vary by a quarter.
        finished: the job ends at once and is sealed into ``export/``.
        filled: share of `inode_cap` that earlier runs left used.
        habits: further words for the training program, such as a learning rate that grows.
        ram_mib: memory at which the box's kernel ends the job; 0 for no simulated limit.
        stopped_after_s: how long it works until somebody stops it with a signal and forgets it; 0 for never.
    """

    name: str
    platform: str
    run: str
    gpu: str
    mib: int
    price: float
    currency: str = "USD"
    rented_hours: float = 5.0
    pause_s: float = 0.25
    epochs: int = 400
    figures: int = 0
    inode_cap: int = 0
    cut_every_s: float = 0.0
    first_cut_s: float = 20.0
    deaf_s: float = 4.5
    finished: bool = False
    filled: float = 0.8
    habits: tuple[str, ...] = ()
    ram_mib: int = 0
    stopped_after_s: float = 0.0

    @property
    def simulated(self) -> tuple[str, ...]:
        more = {
            "inode limit": self.inode_cap,
            "memory limit": self.ram_mib,
            "kernel log": self.ram_mib,
            "provider": self.platform == PROVIDER,
        }
        return ("GPU", *(word for word, holds in more.items() if holds))


PLANS = (
    Plan("steady-a100", "autodl", "spiral-base", "NVIDIA A100-SXM4-80GB", 81920, 6.98, "CNY", 11.0),
    Plan("inodes-4090", "autodl", "spiral-vis", "NVIDIA GeForce RTX 4090", 24564, 1.98, "CNY", 7.5,
         figures=3, inode_cap=4000),
    Plan("flaky-h100", "runpod", "spiral-wide", "NVIDIA H100 80GB HBM3", 81559, 2.39, rented_hours=29.0,
         cut_every_s=90.0),
    Plan("done-a10", PROVIDER, "spiral-done", "NVIDIA A10", 23028, 0.75, rented_hours=3.0,
         epochs=25, pause_s=0.0, finished=True),
    Plan("done-l4", PROVIDER, "spiral-second", "NVIDIA L4", 23034, 0.52, rented_hours=2.0,
         epochs=12, pause_s=0.0, finished=True),
)  # fmt: skip


INCIDENTS = {
    "inodes_full": Plan(
        "full-4090", "ssh", "spiral-full", "NVIDIA GeForce RTX 4090", 24564, 0.44, pause_s=0.1,
        figures=3, inode_cap=1500, filled=0.94,
    ),
    "host_oom_kill": Plan(
        "greedy-a6000", "ssh", "spiral-greedy", "NVIDIA RTX A6000", 49140, 0.79, pause_s=0.1,
        habits=("--hoard", "16"), ram_mib=700,
    ),
    "loss_nan": Plan(
        "nan-l40s", "ssh", "spiral-hot", "NVIDIA L40S", 46068, 1.03, pause_s=0.05, habits=("--grow", "3"),
    ),
    "proc_stuck": Plan(
        "stuck-v100", "ssh", "spiral-still", "Tesla V100-SXM2-32GB", 32768, 0.55, pause_s=0.1,
        stopped_after_s=2.0,
    ),
}  # fmt: skip
"""By the class that triage is to find: a box on which exactly that really happens."""


FEW_LINES = 400


class Box:
    """A box's directory and its job.

    Args:
        root: directory of the whole demo; the box lives in ``root/boxes/NAME``.
        environment: of its processes; set once its server knows it.
    """

    def __init__(self, plan: Plan, root: Path, *, seed: int, speed: float) -> None:
        self.plan = plan
        self.home = root / "boxes" / plan.name
        self._seed = seed
        self._speed = speed
        self._job: subprocess.Popen[bytes] | None = None
        self._erased = False

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def out(self) -> Path:
        return self.data / "active" / self.plan.run

    @property
    def export(self) -> Path:
        return self.data / "export" / self.plan.run

    def furnish(self) -> None:
        """Make the directory, the stand-in programs and the job's source."""
        plan, sim = self.plan, self.home / ".sim"
        for folder in (self.out, sim, self.home / "bin"):
            folder.mkdir(parents=True)
        (sim / "name").write_text(plan.gpu)
        (sim / "uuid").write_text(f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, plan.name)}")
        (sim / "mib").write_text(str(plan.mib))
        shutil.copy(ROOM / "trainer.py", self.home / "train.py")
        shutil.copy(ROOM / "standins" / "nvidia-smi", self.home / "bin" / "nvidia-smi")
        for name in ENDINGS:
            shutil.copy(ROOM / "standins" / "ending", self.home / "bin" / name)
        if plan.inode_cap:
            (sim / "inode_cap").write_text(str(plan.inode_cap))
            shutil.copy(ROOM / "standins" / "df", self.home / "bin" / "df")
            self._fill()
        if plan.ram_mib:
            shutil.copy(ROOM / "standins" / "dmesg", self.home / "bin" / "dmesg")
        for tool in (self.home / "bin").iterdir():
            tool.chmod(0o755)

    def _fill(self) -> None:
        """Earlier runs left small files behind: that is why the cap is near at the start."""
        count, long_ago = int(self.plan.inode_cap * self.plan.filled), time.time() - 9 * 3600
        for folder, share in (("cache/thumbs", 0.7), (".cache/pip/http", 0.3)):
            left = self.data / folder
            left.mkdir(parents=True)
            for number in range(int(count * share)):
                (left / f"{number:05d}.txt").write_text("")
            for path in (*left.iterdir(), left, left.parent):
                os.utime(path, (long_ago, long_ago))

    def start_job(self, environment: dict[str, str]) -> None:
        """Start the training the way people do it by hand: python with its output in a log file."""
        plan = self.plan
        command = [
            sys.executable, "-u", str(self.home / "train.py"),
            "--out", str(self.out), "--seed", str(self._seed), "--epochs", str(plan.epochs),
            "--pause", str(plan.pause_s / self._speed), "--figures", str(plan.figures), *plan.habits,
        ]  # fmt: skip
        if plan.inode_cap:
            command += ["--cap-tree", str(self.data), "--file-cap", str(plan.inode_cap)]
        with (self.out / "train.log").open("ab") as log:
            self._job = subprocess.Popen(
                command,
                cwd=self.home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: os.nice(10) and None,
            )
        (self.home / ".sim" / "pid").write_text(str(self._job.pid))

    @property
    def pid(self) -> int | None:
        """The job's process, while it was not collected."""
        return None if self._job is None else self._job.pid

    def collect(self) -> int | None:
        """Reap the job if it ended; its exit code, or None while it runs.

        The card is idle from then on: the number of the process may be given to another one.
        """
        ended = None if self._job is None else self._job.poll()
        if ended is not None and not self._erased:
            (self.home / ".sim" / "pid").unlink(missing_ok=True)
        return ended

    @property
    def at_work(self) -> bool:
        """Whether the job has written a few lines already."""
        try:
            return (self.out / "train.log").stat().st_size > FEW_LINES
        except OSError:
            return False

    def freeze(self) -> None:
        """Stop the job where it stands, as ctrl+z or a forgotten debugger does."""
        if self._job is not None and self._job.poll() is None:
            os.kill(self._job.pid, signal.SIGSTOP)

    def out_of_memory(self) -> bool:
        """End the job as a kernel does once it holds more than its box admits, with the kernel's words."""
        if self._job is None or self._job.poll() is not None:
            return False
        try:
            pages = int((Path("/proc") / str(self._job.pid) / "statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return False
        kib = pages * (os.sysconf("SC_PAGE_SIZE") // 1024)
        if kib < self.plan.ram_mib * 1024:
            return False
        pid, limit = self._job.pid, self.plan.ram_mib * 1024
        self._job.kill()
        now = float(Path("/proc/uptime").read_text().split()[0])  # as the kernel of this box counts
        (self.home / ".sim" / "dmesg").write_text(
            f"[{now:12.6f}] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n"
            f"[{now:12.6f}] memory: usage {limit}kB, limit {limit}kB, failcnt 211\n"
            f"[{now:12.6f}] Memory cgroup out of memory: Killed process {pid} (python) "
            f"total-vm:{kib * 3}kB, anon-rss:{kib}kB, file-rss:0kB, shmem-rss:0kB, UID:0 oom_score_adj:0\n"
        )
        return True

    def seal(self) -> bool:
        """Close a finished run out: one rename from ``active/`` to ``export/``, log and all."""
        if self._erased or not self.plan.finished or self.export.exists() or self.collect() != 0:
            return False
        self.export.parent.mkdir(parents=True, exist_ok=True)
        self.out.rename(self.export)
        return True

    def stop_job(self) -> None:
        """End the job and everything it started."""
        if self._job is not None and self._job.poll() is None:
            try:
                os.killpg(self._job.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._job.wait(timeout=10)

    def erase(self) -> None:
        """Delete the disk. Its processes have ended."""
        self._erased = True
        shutil.rmtree(self.home)

"""What one probe of one box said, parsed. Every part carries its source; None always means *not known*."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.reading import Reading
from tui.model.text import SafeText


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card. Memory in MiB, power in W, temperatures in °C, clocks in MHz, utilisation in percent.

    `health` is ``""`` (nothing wrong seen), ``"unreadable"`` (a reading failed), ``"requires_reset"`` or
    ``"lost"``. With MIG on (`mig`) the whole card has no utilisation; that is not idleness.
    """

    index: int
    name: SafeText
    vendor: str = "nvidia"
    uuid: SafeText | None = None
    util_pct: float | None = None
    mem_used_mib: float | None = None
    mem_total_mib: float | None = None
    temp_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    throttle: tuple[SafeText, ...] | None = None  # active reasons; () means none
    ecc_uncorrected: int | None = None  # volatile count, since the driver was loaded
    missing: tuple[tuple[str, SafeText], ...] = ()  # (field, what the tool said instead of a number)
    health: str = ""
    bus_id: SafeText | None = None
    mem_free_mib: float | None = None
    mem_used_pct: float | None = None  # where a tool tells only this
    fan_pct: float | None = None
    pstate: SafeText | None = None
    power_default_limit_w: float | None = None
    mig: bool | None = None
    ecc_enabled: bool | None = None
    ecc_uncorrected_ever: int | None = None  # aggregate count, over the card's life
    remap_pending: bool | None = None  # a bad memory row waits for a reset to be replaced
    remap_failed: bool | None = None
    throttle_asked: tuple[SafeText, ...] = ()  # reasons that were read, active or not


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory on a card, as the driver lists it (host pids in some containers)."""

    pid: int
    gpu_uuid: SafeText | None
    mem_used_mib: float | None
    command: SafeText  # empty when the driver knows no name, as for a process that is gone
    gpu_index: int | None = None
    kind: SafeText = SafeText("")  # "C" compute, "G" graphics, "C+G"


@dataclass(frozen=True, slots=True)
class Filesystem:
    """One mount in bytes and inodes. A file system without an inode count has None there, not 0."""

    mount: SafeText
    source: SafeText
    fstype: SafeText | None = None
    size_bytes: int | None = None
    used_bytes: int | None = None
    avail_bytes: int | None = None
    use_pct: float | None = None
    inodes: int | None = None
    inodes_used: int | None = None
    inode_use_pct: float | None = None
    read_only: bool | None = None
    error: SafeText = SafeText("")  # why nothing is known, such as "mount does not answer"
    inodes_free: int | None = None
    rounded: bool = False  # bytes were worked out from figures such as "1.1G"
    capacity_meaningless: bool = False  # an object store that names a size it does not have
    inode_cap: int | None = None  # the platform's own limit of files, where it is what `inodes` shows


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory as the job's cgroup sees it, in bytes.

    Attributes:
        limit_bytes: None when the cgroup sets no limit.
        used_bytes: usage less inactive file cache, what an OOM decision rests on.
        oom_kills: kills counted by this cgroup since it was made; None when it keeps no count.
        version: 1 or 2, the cgroup version; 0 where there is none.
        host_total_bytes: the machine's memory; belongs to the host, is not ours to use up.
    """

    limit_bytes: int | None = None
    used_bytes: int | None = None
    oom_kills: int | None = None
    version: int = 0
    host_total_bytes: int | None = None
    host_available_bytes: int | None = None
    shm_size_bytes: int | None = None
    shm_used_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU as the job's cgroup sees it. `quota_cores` is None when there is no quota."""

    quota_cores: float | None = None
    cores_visible: int | None = None
    throttled_periods: int | None = None
    load1: float | None = None  # of the whole host: neighbours included


@dataclass(frozen=True, slots=True)
class Host:
    """Identity of the running system. `clock_offset_s` is box time minus the operator's, ± round trip."""

    system: SafeText  # "Linux" or "Darwin"
    hostname: SafeText | None = None
    kernel: SafeText | None = None
    boot_id: SafeText | None = None
    booted_at: float | None = None  # seconds since the epoch, box clock
    container_started_at: float | None = None
    clock_offset_s: float | None = None
    user: SafeText | None = None
    home: SafeText | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A tmux session or a Slurm job found on the box."""

    kind: str  # "tmux" | "screen" | "slurm"
    name: SafeText
    created_at: float | None = None
    attached: bool | None = None
    windows: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process on the box; `start_ticks` with `pid` and the boot id names it without doubt."""

    pid: int
    start_ticks: int | None
    state: str  # the letter of /proc/PID/stat: R S D Z T
    command: SafeText
    ppid: int | None = None
    cwd: SafeText | None = None
    rss_bytes: int | None = None
    cpu_s: float | None = None
    elapsed_s: float | None = None


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A checkpoint-like file. Its age is judged by the box's clock."""

    path: SafeText
    size_bytes: int
    modified_at: float  # box clock


@dataclass(frozen=True, slots=True)
class LogFile:
    """The run's log file as it stands on the box."""

    path: SafeText
    inode: int | None
    size_bytes: int
    modified_at: float  # box clock


FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class RunTruth:
    """What the box says about one watched run.

    Attributes:
        alive: True when the exact process (pid, start time, boot) is there and not a zombie, False when it
            is proven gone, None when the run names no process or /proc could not be read.
        gone_reason: why `alive` is False, such as "pid 412 now belongs to another process".
        end: what the wrapper of a launched run wrote down at the end of its newest attempt: ``finished`` once
            every stage's artifact is there, else such as ``failed, status 1``; None where nothing is written.
    """

    run: str
    alive: bool | None
    gone_reason: SafeText = SafeText("")
    process: ProcessInfo | None = None
    session_alive: bool | None = None
    log: Reading[LogFile] = Reading()
    checkpoints: Reading[tuple[CheckpointFile, ...]] = Reading()  # newest first, at most 20
    checkpoint_count: int | None = None
    end: SafeText | None = None

    @property
    def finished(self) -> bool:
        """Whether its wrapper recorded that all of it is done."""
        return self.end == FINISHED


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that looks like a training run and is not watched yet."""

    command: SafeText
    pid: int | None = None
    start_ticks: int | None = None
    cwd: SafeText | None = None
    logs: tuple[SafeText, ...] = ()  # regular files open for writing, stdout first
    session: SafeText | None = None
    checkpoints: tuple[CheckpointFile, ...] = ()
    gpu_mem_mib: float | None = None


@dataclass(frozen=True, slots=True)
class Cadence:
    """Seconds between two looks at the dearer parts, as the box is asked now; None where nobody says.

    Attributes:
        slow_s: mounts, the runs' files, sessions.
        seldom_s: runs to adopt, the kernel's lines.
    """

    gpus_s: float | None = None
    slow_s: float | None = None
    processes_s: float | None = None
    seldom_s: float | None = None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """One probe of one box.

    Attributes:
        taken_at: seconds since the epoch, by the operator's clock.
        took_s: round trip of the tick.
        tick: counts up within one probe channel.
    """

    taken_at: float
    took_s: float = 0.0
    tick: int = 0
    host: Reading[Host] = Reading()
    gpus: Reading[tuple[Gpu, ...]] = Reading()
    gpu_processes: Reading[tuple[GpuProcess, ...]] = Reading()
    filesystems: Reading[tuple[Filesystem, ...]] = Reading()
    memory: Reading[Memory] = Reading()
    cpu: Reading[Cpu] = Reading()
    sessions: Reading[tuple[Session, ...]] = Reading()
    processes: Reading[tuple[ProcessInfo, ...]] = Reading()  # the heaviest of ours, at most 30
    xid: Reading[tuple[SafeText, ...]] = Reading()  # kernel lines, newest last
    candidates: Reading[tuple[Candidate, ...]] = Reading()
    runs: tuple[RunTruth, ...] = ()
    cadence: Cadence = Cadence()


def unowned_vram_mib(gpu: Gpu, processes: tuple[GpuProcess, ...]) -> float | None:
    """VRAM of `gpu` that no listed process accounts for; None when it cannot be told."""
    if gpu.mem_used_mib is None or gpu.uuid is None:
        return None
    mine = [p for p in processes if p.gpu_uuid == gpu.uuid]
    if any(p.mem_used_mib is None for p in mine):
        return None
    return max(0.0, gpu.mem_used_mib - sum(p.mem_used_mib or 0.0 for p in mine))

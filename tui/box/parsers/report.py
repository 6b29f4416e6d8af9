"""What the parsers give. Rules of all of them:

* None means *could not be told*; an empty tuple means the tool ended by itself and listed nothing;
* strings for people have passed `safe()`; a path that must be found again is kept exactly, beside it;
* `error` is a stable word, `reason` the sentence of the tool. Both may stand beside usable rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.reading import Reading, Source, known, unknown
from tui.model.telemetry import Filesystem, Gpu, GpuProcess
from tui.model.text import SafeText

NOTHING = SafeText("")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a tool gave no answer, or only a part of one.

    Attributes:
        error: a stable word, such as ``timeout`` or ``driver_mismatch``.
        reason: the tool's own sentence.
        subject: what it is about: a field, a bus id, a path.
        answered: the tool ended by itself and said so; False when its answer never came.
    """

    error: str
    reason: SafeText
    subject: SafeText = NOTHING
    answered: bool = True


@dataclass(frozen=True, slots=True)
class MigSlice:
    """One MIG device: a part of card `gpu` (its index). Memory in MiB."""

    gpu: int
    device: int
    gpu_instance: int | None = None
    compute_instance: int | None = None
    profile: SafeText | None = None
    uuid: SafeText | None = None
    mem_used_mib: float | None = None
    mem_total_mib: float | None = None
    ecc_uncorrected: int | None = None


@dataclass(frozen=True, slots=True)
class GpuReport:
    """Answer of a GPU tool. `driver` and `cuda` are versions."""

    gpus: tuple[Gpu, ...] | None = None
    processes: tuple[GpuProcess, ...] | None = None
    slices: tuple[MigSlice, ...] | None = None
    driver: SafeText | None = None
    cuda: SafeText | None = None
    refusal: Refusal | None = None

    def reading(self, source: Source | None = None) -> Reading[tuple[Gpu, ...]]:
        """The cards as the model carries them: an empty list that comes with a refusal is *not known*."""
        if self.gpus is None or (not self.gpus and self.refusal):
            return unknown(self.refusal.reason if self.refusal else SafeText("no answer"), source)
        return known(self.gpus, source)


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """A kernel message about a GPU.

    Attributes:
        family: ``xid`` (NVIDIA), ``sxid`` (NVSwitch), ``lost`` (off the bus, without a number), ``amdgpu``.
        code: its number, where it has one.
        bus: PCI address without function, such as ``0000:52:00``.
        pid: the process the driver names; it is often a victim.
        gpu: card number where the text tells it.
        text: what follows the number.
        line: 1-based line of the input.
    """

    family: str
    code: int | None
    bus: SafeText | None
    text: SafeText
    line: int
    pid: int | None = None
    process: SafeText | None = None
    gpu: int | None = None
    link: int | None = None
    fatal: bool | None = None
    remap: str = ""  # "pending", "failed"


@dataclass(frozen=True, slots=True)
class KernelReport:
    """GPU lines of a kernel log. `events` None: the log could not be read, which is not *clean*."""

    events: tuple[GpuEvent, ...] | None = None
    driver: SafeText | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount: what is shown (`shown`), and what is needed to name it again.

    Attributes:
        path, device: exact, undecodable bytes as lone surrogates. Never drawn.
        figures: size, used and available as a ``-h`` form printed them, with a decimal point.
    """

    shown: Filesystem
    path: str
    device: str
    figures: tuple[SafeText, SafeText, SafeText] | None = None


@dataclass(frozen=True, slots=True)
class MountProblem:
    """A mount that answered with an error. `errno` is the symbol, such as ``ESTALE``; None if unknown."""

    path: str
    errno: str | None
    reason: SafeText


@dataclass(frozen=True, slots=True)
class FsReport:
    """Mounts of a machine.

    Attributes:
        hidden_binds: mounts of single files from a disk of the host, left out of `mounts`.
        overmounted: mounts that lie hidden under another one, left out.
        ignored: paths of placeholders without space of their own (autofs, proc), left out.
    """

    mounts: tuple[Mount, ...] | None = None
    problems: tuple[MountProblem, ...] = ()
    hidden_binds: int = 0
    overmounted: int = 0
    ignored: tuple[str, ...] = ()
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Quota:
    """One line of a quota report; a limit of None is *no limit*.

    Attributes:
        figures: used, soft and hard as printed, where they carry a unit.
        over: over the soft limit or at the hard one, in bytes or files.
    """

    name: SafeText
    used_bytes: int | None
    soft_bytes: int | None
    hard_bytes: int | None
    files: int | None
    files_soft: int | None
    files_hard: int | None
    over: bool
    grace: SafeText | None = None
    files_grace: SafeText | None = None
    fs: SafeText | None = None
    figures: tuple[SafeText, SafeText | None, SafeText | None] | None = None


@dataclass(frozen=True, slots=True)
class QuotaReport:
    """`quotas` () means that none is set for this user."""

    quotas: tuple[Quota, ...] | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class DirUse:
    """What one directory takes up. One of `size_bytes` and `inodes` is given; `path` is exact."""

    path: str
    size_bytes: int | None = None
    inodes: int | None = None
    figure: SafeText | None = None


@dataclass(frozen=True, slots=True)
class DirReport:
    """`incomplete`: some directories could not be read, so sums are too small."""

    dirs: tuple[DirUse, ...] | None = None
    incomplete: bool = False
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A deleted file that still takes up space because `pid` holds it open. `path` is exact."""

    pid: int
    size_bytes: int | None
    path: str
    command: SafeText = NOTHING


@dataclass(frozen=True, slots=True)
class DeletedReport:
    files: tuple[DeletedFile, ...] | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """Everything one command line's output said; a part is None where no such program ran."""

    gpu: GpuReport | None = None
    kernel: KernelReport | None = None
    fs: FsReport | None = None
    quota: QuotaReport | None = None
    dirs: DirReport | None = None
    deleted: DeletedReport | None = None
    tools: tuple[str, ...] = ()

    @property
    def refusal(self) -> Refusal | None:
        """The first refusal of any part."""
        parts = (self.gpu, self.kernel, self.fs, self.quota, self.dirs, self.deleted)
        return next((part.refusal for part in parts if part and part.refusal), None)


@dataclass(frozen=True, slots=True)
class Output:
    """What a command left behind, as text. `exit` None: not known."""

    stdout: str
    stderr: str = ""
    exit: int | None = None

    @property
    def both(self) -> str:
        return f"{self.stdout}\n{self.stderr}"

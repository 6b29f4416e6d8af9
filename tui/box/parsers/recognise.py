"""The one way from a command and what it printed to typed values: `parse_output`.

Programs are recognised by what they are. Each reads the whole output for itself and skips what is not its
own; so several programs of one round trip may share it, with banners and separators between.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tui.box.parsers.command import CommandLine, Invocation, read_command
from tui.box.parsers.df import read_df
from tui.box.parsers.disk_use import read_deleted, read_du
from tui.box.parsers.gpu_answers import amd_report, nvidia_report
from tui.box.parsers.lines import decode
from tui.box.parsers.mounts import read_mounts
from tui.box.parsers.quota import read_quota
from tui.box.parsers.refusal import bad_option, kernel_log_refusal, no_answer, path_refusal
from tui.box.parsers.report import (
    DeletedReport,
    DirReport,
    FsReport,
    GpuReport,
    KernelReport,
    Output,
    Parsed,
    QuotaReport,
    Refusal,
)
from tui.box.parsers.xid import gpu_events, loaded_driver
from tui.model.text import SafeText

_READERS = ("cat", "tail", "head", "grep", "egrep", "zgrep", "zcat", "less", "awk", "sed", "rg")
_KERNEL_FILES = re.compile(
    r"/dev/kmsg|/proc/kmsg|/var/log/(?:kern|syslog|messages|dmesg)|/proc/driver/nvidia/version"
)
_MOUNT_FILES = re.compile(r"/proc/(?:\w+/)?(?:mounts|mountinfo)\Z|/etc/mtab\Z")
_QUOTA_TOOLS = ("quota", "repquota", "beegfs-ctl", "beegfs", "mmlsquota", "xfs_quota")
_FILTERS = frozenset({"grep", "egrep", "zgrep", "rg", "awk", "sed", "tail", "head"})


@dataclass(frozen=True, slots=True)
class _Job:
    """One output and everything that is known about how it came about."""

    output: Output
    command: CommandLine

    def reads(self, files: re.Pattern[str]) -> bool:
        """Whether a program that shows files was given one of `files`."""
        return any(files.search(arg) for call in self.command.of(*_READERS) for arg in call.args)

    def silence(self, tool: str) -> Refusal | None:
        return no_answer(self.output, tool, self.command.limited)


def parse_output(command: str, stdout: bytes, stderr: bytes = b"", exit: int | None = None) -> Parsed:
    """Everything that can be told from one finished command.

    Args:
        command: the command line as a shell ran it, with whatever wrappers and pipes.
        stdout, stderr: what it printed. Never trusted; at most 16 MiB of each is read.
        exit: its status, None where it is not known.

    Returns:
        One part for each kind of program that ran; a part is None where none did. Never raises.
    """
    job = _Job(Output(decode(stdout), decode(stderr), exit), read_command(command))
    parts = {name: reader(job) for name, reader in _PARTS.items()}
    tools = tuple(dict.fromkeys(call.tool for call in job.command.invocations))
    parsed = Parsed(**parts, tools=tools)  # type: ignore[arg-type]
    return parsed if any(part is not None for part in parts.values()) else _unannounced(job, parsed)


def _gpu(job: _Job) -> GpuReport | None:
    nvidia = job.command.of("nvidia-smi")
    if nvidia:
        return nvidia_report(job.output, nvidia, job.command.limited)
    amd = job.command.of("rocm-smi", "amd-smi", "rocm-smi.py")
    return amd_report(job.output, amd[0].tool, job.command.limited) if amd else None


def _kernel(job: _Job) -> KernelReport | None:
    sources = job.command.of("dmesg", "journalctl")
    if not sources and not job.reads(_KERNEL_FILES):
        return None
    tool = sources[0].tool if sources else "cat"
    events = gpu_events(job.output.stdout)
    refusal = job.silence(tool)
    if refusal is None and not events:
        refusal = kernel_log_refusal(job.output.both)
    filtered = job.command.piped or bool(job.command.of(*_FILTERS))
    if refusal is None and not job.output.stdout.strip() and not filtered:
        refusal = Refusal("no_kernel_log", SafeText("the kernel log is empty here"), answered=False)
    return KernelReport(
        events=None if refusal and not events else events,
        driver=loaded_driver(job.output.stdout),
        refusal=refusal,
    )


def _fs(job: _Job) -> FsReport | None:
    lustre = tuple(
        Invocation("df", call.args[1:]) for call in job.command.of("lfs") if call.args[:1] == ("df",)
    )
    calls = job.command.of("df") + lustre
    lists = bool(job.command.of("mount", "findmnt")) or job.reads(_MOUNT_FILES)
    if not calls and not lists:
        return None
    if not calls:
        asked = next((call.value("-o", "--output") for call in job.command.of("findmnt")), None)
        report = read_mounts(job.output.stdout, asked.upper().split(",") if asked else ())
    else:
        report = read_df(job.output.stdout, job.output.stderr, calls)
        if lists:
            report = _with_options(report, read_mounts(job.output.stdout))
    refusal = job.silence(calls[0].tool if calls else "mount")
    if refusal is None and not report.mounts:
        refusal = bad_option(job.output.both) or path_refusal(job.output.both)
    return replace(report, refusal=refusal)


def _with_options(figures: FsReport, options: FsReport) -> FsReport:
    """Types and the read-only mark from a list of mounts, put to the figures of ``df``."""
    known = {mount.path: mount.shown for mount in options.mounts or ()}
    mounts = tuple(
        replace(
            mount,
            shown=replace(
                mount.shown,
                fstype=mount.shown.fstype or known[mount.path].fstype,
                read_only=known[mount.path].read_only,
            ),
        )
        if mount.path in known
        else mount
        for mount in figures.mounts or ()
    )
    return replace(figures, mounts=mounts or figures.mounts)


def _quota(job: _Job) -> QuotaReport | None:
    lustre = any("quota" in call.args for call in job.command.of("lfs"))
    calls = job.command.of(*_QUOTA_TOOLS)
    if not calls and not lustre:
        return None
    report = read_quota(job.output.stdout)
    refusal = job.silence(calls[0].tool if calls else "lfs")
    if refusal is None and report.quotas is None:
        refusal = bad_option(job.output.both) or path_refusal(job.output.both)
    return replace(report, refusal=refusal)


def _dirs(job: _Job) -> DirReport | None:
    calls = job.command.of("du")
    if not calls:
        return None
    report = read_du(job.output.stdout, job.output.stderr, calls[0], job.output.exit)
    refusal = job.silence("du")
    if refusal is None and report.dirs is None:
        refusal = bad_option(job.output.both) or path_refusal(job.output.both)
    return replace(report, refusal=refusal)


def _deleted(job: _Job) -> DeletedReport | None:
    descriptors = any("/fd" in arg for call in job.command.of("ls", "find") for arg in call.args)
    if not job.command.of("lsof") and not descriptors:
        return None
    report = read_deleted(job.output.stdout)
    refusal = job.silence("lsof")
    silent = not job.output.stdout.strip() and job.output.exit in {0, 1, None}
    if refusal is None and report.files is None and silent:
        report = replace(report, files=())  # lsof ends with 1 and prints nothing where nothing fits
    return replace(report, refusal=refusal)


_PARTS: dict[str, Callable[[_Job], object]] = {
    "gpu": _gpu,
    "kernel": _kernel,
    "fs": _fs,
    "quota": _quota,
    "dirs": _dirs,
    "deleted": _deleted,
}
"""Part of `Parsed` -> what reads it. The table that every output goes through."""


def _unannounced(job: _Job, parsed: Parsed) -> Parsed:
    """The output of a script: what shows itself beyond doubt, by its header or its marks."""
    text = job.output.stdout
    gpu = nvidia_report(Output(text), (), limited=False)
    kernel = gpu_events(text)
    fs = read_df(text, job.output.stderr, ())
    return replace(
        parsed,
        gpu=gpu if gpu.gpus or gpu.processes else None,
        kernel=KernelReport(kernel) if kernel else None,
        fs=fs if fs.mounts else None,
    )

"""Kinds A and B: the product's values under the names the cases use. Nothing is decided here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tests.corpus import evidence
from tests.corpus.runner import Case
from tui.box.parsers.mount_kinds import shared_pools, short_of_space
from tui.box.parsers.mounts import read_only_paths
from tui.box.parsers.notes import detail, notes
from tui.box.parsers.quota import most_pressing
from tui.box.parsers.recognise import parse_output
from tui.box.parsers.report import (
    DeletedReport,
    DirReport,
    FsReport,
    GpuReport,
    KernelReport,
    MigSlice,
    Mount,
    Parsed,
    Quota,
)
from tui.box.parsers.xid import first_cause
from tui.model.telemetry import Gpu, GpuProcess

Fields = dict[str, Any]

_NOISE = frozenset({"EACCES", "EPERM", "ENOENT", None})  # complaints of df about mounts of others


def map_case(case: Case) -> dict[str, object]:
    """The product's answer to one case."""
    parsed = parse_output(case.cmd or "", case.stdout, case.stderr, case.rc)
    refusal = parsed.refusal
    fields: Fields = {"error": refusal.error if refusal else None}
    if refusal and refusal.subject:
        fields["field"] = refusal.subject
    for found in (
        _gpu_fields(parsed.gpu) if parsed.gpu else {},
        _kernel_fields(parsed.kernel) if parsed.kernel else {},
        _fs_fields(parsed.fs) if parsed.fs else {},
        _dir_fields(parsed.dirs) if parsed.dirs else {},
        _deleted_fields(parsed.deleted) if parsed.deleted else {},
    ):
        fields |= {name: value for name, value in found.items() if value is not None or name not in fields}
    if parsed.quota:
        fields["quota"] = _quota(most_pressing(parsed.quota))
    if parsed.gpu or parsed.kernel:
        fields |= {"note": "; ".join(notes(parsed)), "detail": detail(parsed, _without_gpu(case))}
    return (
        dict.fromkeys(fields.keys() & _TOLD_BY_BOTH)
        | _diagnosed(case, parsed)
        | {name: value for name, value in fields.items() if value is not None}
        | {name: None for name, value in fields.items() if value is None and name not in _TOLD_BY_BOTH}
    )


_TOLD_BY_BOTH = frozenset({"errno", "mount", "detail", "pid", "bus", "gpu", "link"})


def _diagnosed(case: Case, parsed: Parsed) -> Fields:
    """What triage makes of it, with the parsed values as the probe would bring them."""
    mounts = parsed.fs.mounts if parsed.fs else None
    return evidence.of_output(
        case,
        evidence.telemetry(
            gpus=parsed.gpu.gpus if parsed.gpu else None,
            filesystems=None if mounts is None else tuple(mount.shown for mount in mounts),
        ),
    )


def _without_gpu(case: Case) -> bool:
    """What the program knows from the platform, told by the case in words."""
    return "started without GPU" in str(case.ctx.get("note", ""))


def _gpu_fields(report: GpuReport) -> Fields:
    return {
        "gpus": _listed(report.gpus, _card),
        "apps": _listed(report.processes, _process),
        "mig": _listed(report.slices, _slice),
        "driver": report.driver,
        "cuda": report.cuda,
    }


def _listed(values: Iterable[Any] | None, name: Any) -> list[Fields] | None:
    return None if values is None else [name(value) for value in values]


def _card(gpu: Gpu) -> Fields:
    throttle = {_reason(name): name in (gpu.throttle or ()) for name in gpu.throttle_asked}
    return throttle | {
        "index": gpu.index,
        "name": gpu.name or None,
        "uuid": gpu.uuid,
        "bus": gpu.bus_id,
        "util": gpu.util_pct,
        "mem_used": gpu.mem_used_mib,
        "mem_total": gpu.mem_total_mib,
        "mem_free": gpu.mem_free_mib,
        "mem_percent": gpu.mem_used_pct,
        "temp": gpu.temp_c,
        "power": gpu.power_w,
        "power_limit": gpu.power_limit_w,
        "power_default_limit": gpu.power_default_limit_w,
        "fan": gpu.fan_pct,
        "sm_clock": gpu.sm_clock_mhz,
        "pstate": gpu.pstate,
        "mig": gpu.mig,
        "ecc_enabled": gpu.ecc_enabled,
        "ecc_unc_volatile": gpu.ecc_uncorrected,
        "ecc_unc_aggregate": gpu.ecc_uncorrected_ever,
        "remap_pending": gpu.remap_pending,
        "remap_failed": gpu.remap_failed,
        "health": gpu.health or None,
    }


def _reason(name: str) -> str:
    return re.sub(r"(thermal|brake)_slowdown$", r"\1", name)


def _process(process: GpuProcess) -> Fields:
    return {
        "pid": process.pid,
        "name": process.command or None,
        "mem": process.mem_used_mib,
        "gpu": process.gpu_index,
        "uuid": process.gpu_uuid,
        "type": process.kind or None,
    }


def _slice(part: MigSlice) -> Fields:
    return {
        "gpu": part.gpu,
        "dev": part.device,
        "gi": part.gpu_instance,
        "ci": part.compute_instance,
        "profile": part.profile,
        "uuid": part.uuid,
        "mem_used": part.mem_used_mib,
        "mem_total": part.mem_total_mib,
        "ecc_unc": part.ecc_uncorrected,
    }


def _kernel_fields(report: KernelReport) -> Fields:
    fields: Fields = {"driver": report.driver}
    events = report.events or ()
    cause = first_cause(events)
    if cause is None:
        return fields
    codes = {
        family: list(dict.fromkeys(event.code for event in events if event.family == family))
        for family in ("xid", "sxid")
    }
    for family, found in codes.items():
        if found:
            first = cause.code if cause.family == family else found[0]
            fields |= {family: first, f"{family}s": found}
    return fields | {
        "bus": cause.bus,
        "link": cause.link,
        "gpu": cause.gpu,
        "pid": next((event.pid for event in (cause, *events) if event.pid is not None), None),
        "process": cause.process,
    }


def _fs_fields(report: FsReport) -> Fields:
    mounts = report.mounts or ()
    worst = next((problem for problem in report.problems if problem.errno not in _NOISE), None)
    return {
        "mounts": _listed(report.mounts, _mount),
        "errno": worst.errno if worst else None,
        "mount": worst.path if worst else None,
        "hidden_bind_mounts": report.hidden_binds,
        "overmounted": report.overmounted,
        "ignored": list(report.ignored),
        "warn": list(short_of_space(mounts)),
        "shared_pool": [path for pool in shared_pools(mounts) for path in pool],
        "ro_mounts": list(read_only_paths(report)),
    }


def _mount(mount: Mount) -> Fields:
    shown = mount.shown
    size, used, avail = mount.figures or (None, None, None)
    return {
        "fs": mount.device,
        "mount": mount.path,
        "type": shown.fstype,
        "total_kb": _kib(shown.size_bytes),
        "used_kb": _kib(shown.used_bytes),
        "avail_kb": _kib(shown.avail_bytes),
        "size": size or None,
        "used": used or None,
        "avail": avail or None,
        "use_percent": shown.use_pct,
        "inodes": shown.inodes,
        "iused": shown.inodes_used,
        "ifree": shown.inodes_free,
        "iuse_percent": shown.inode_use_pct,
        "ro": shown.read_only,
        "capacity_meaningless": shown.capacity_meaningless,
    }


def _kib(size: int | None) -> int | None:
    return None if size is None else size // 1024


def _quota(quota: Quota | None) -> Fields | None:
    if quota is None:
        return None
    used, soft, hard = quota.figures or (None, None, None)
    return {
        "fs": quota.fs,
        "user": quota.name or None,
        "used_kb": _kib(quota.used_bytes),
        "soft_kb": _kib(quota.soft_bytes),
        "limit_kb": _kib(quota.hard_bytes),
        "used": used,
        "soft": soft,
        "limit": hard,
        "over": quota.over,
        "grace": quota.grace,
        "files": quota.files,
        "files_soft": quota.files_soft,
        "files_limit": quota.files_hard,
        "files_grace": quota.files_grace,
    }


def _dir_fields(report: DirReport) -> Fields:
    dirs = _listed(
        report.dirs,
        lambda use: {"path": use.path, "kb": _kib(use.size_bytes), "size": use.figure, "inodes": use.inodes},
    )
    return {"dirs": dirs, "incomplete": report.incomplete}


def _deleted_fields(report: DeletedReport) -> Fields:
    return {
        "deleted_open": _listed(
            report.files, lambda file: {"pid": file.pid, "bytes": file.size_bytes, "path": file.path}
        )
    }

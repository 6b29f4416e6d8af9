"""Telemetry for ``rgt probe``: as JSON with null for what is not known, and as plain lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from tui.model.reading import Reading
from tui.model.telemetry import Candidate, Filesystem, Gpu, RunTruth, Telemetry, unowned_vram_mib


def telemetry_json(t: Telemetry) -> dict[str, object]:
    """One probe as plain JSON values. Of each part the reason stands beside it where it is not known."""
    memory, cpu, host = t.memory.value, t.cpu.value, t.host.value
    return {
        "taken_at": t.taken_at,
        "took_s": round(t.took_s, 4),
        "host": _record(host) if host else None,
        "host_error": _error(t.host),
        "gpus": None if t.gpus.value is None else [_gpu(gpu, t) for gpu in t.gpus.value],
        "gpu_error": _error(t.gpus),
        "gpu_processes": _list(t.gpu_processes),
        "gpu_processes_error": _error(t.gpu_processes),
        "filesystems": _list(t.filesystems),
        "filesystems_error": _error(t.filesystems),
        "memory": _record(memory) if memory else None,
        "memory_error": _error(t.memory),
        "cpu": _record(cpu) if cpu else None,
        "cpu_error": _error(t.cpu),
        "sessions": _list(t.sessions),
        "sessions_error": _error(t.sessions),
        "processes": _list(t.processes),
        "processes_error": _error(t.processes),
        "xid": None if t.xid.value is None else [str(line) for line in t.xid.value],
        "xid_error": _error(t.xid),
        "candidates": _list(t.candidates),
        "candidates_error": _error(t.candidates),
        "runs": [_run(run) for run in t.runs],
    }


def telemetry_plain(t: Telemetry) -> str:
    """One probe as lines for a pipe or a plain terminal."""
    lines = [_host_line(t), *_gpu_lines(t), *_disk_lines(t), _memory_line(t), _cpu_line(t)]
    lines += _named_lines("session", t.sessions, lambda one: f"{one.kind} {one.name}")
    if t.xid.value:
        lines += [f"xid {line}" for line in t.xid.value]
    elif t.xid.source is not None:
        lines.append("xid none" if t.xid.known else f"xid n/a ({t.xid.reason})")
    lines += [_run_line(run) for run in t.runs]
    lines += [_candidate_line(one) for one in t.candidates.value or ()]
    return "\n".join(line for line in lines if line)


def _gpu(gpu: Gpu, t: Telemetry) -> dict[str, object]:
    record = _record(gpu)
    owners = t.gpu_processes.value
    record["mem_unowned_mib"] = None if owners is None else unowned_vram_mib(gpu, owners)
    return record


def _run(run: RunTruth) -> dict[str, object]:
    record = _record(run)
    record["log"] = _record(run.log.value) if run.log.value else None
    record["log_error"] = _error(run.log)
    record["checkpoints"] = _list(run.checkpoints)
    record["checkpoints_error"] = _error(run.checkpoints)
    return record


def _error(reading: Reading[Any]) -> str | None:
    return None if reading.known else str(reading.reason)


def _list(reading: Reading[Any]) -> list[object] | None:
    return None if reading.value is None else [_value(one) for one in reading.value]


def _record(one: object) -> dict[str, object]:
    return {field.name: _value(getattr(one, field.name)) for field in fields(one)}  # type: ignore[arg-type]


def _value(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Reading):
        return _value(value.value)
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    return _record(value)


def _na(value: object, unit: str = "") -> str:
    return "n/a" if value is None else f"{value:g}{unit}" if isinstance(value, float) else f"{value}{unit}"


def _size(count: int | None) -> str:
    if count is None:
        return "n/a"
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _host_line(t: Telemetry) -> str:
    host = t.host.value
    if host is None:
        return f"host n/a ({t.host.reason})"
    offset = "n/a" if host.clock_offset_s is None else f"{host.clock_offset_s:+.1f} s"
    name, kernel, user = host.hostname or "n/a", host.kernel or "", host.user or "n/a"
    return f"host {name} {host.system} {kernel} user {user} clock {offset}"


def _gpu_lines(t: Telemetry) -> list[str]:
    if t.gpus.value is None:
        return [f"gpu n/a ({t.gpus.reason})"]
    lines = [
        f"gpu {gpu.index} {gpu.name} util {_na(gpu.util_pct, '%')} mem {_na(gpu.mem_used_mib)}/"
        f"{_na(gpu.mem_total_mib, ' MiB')} temp {_na(gpu.temp_c, ' °C')} power {_na(gpu.power_w, ' W')}"
        + (f" {gpu.health}" if gpu.health else "")
        for gpu in t.gpus.value
    ]
    return lines or ["gpu none"]


def _disk_lines(t: Telemetry) -> list[str]:
    if t.filesystems.value is None:
        return [f"disk n/a ({t.filesystems.reason})"]
    return [_disk_line(one) for one in t.filesystems.value]


def _disk_line(one: Filesystem) -> str:
    if one.error:
        return f"disk {one.mount} n/a ({one.error})"
    inodes = (
        "inodes n/a"
        if one.inodes is None
        else f"inodes {_na(one.inodes_used)}/{one.inodes} {_na(one.inode_use_pct, '%')}"
    )
    used = f"{_size(one.used_bytes)}/{_size(one.size_bytes)} {_na(one.use_pct, '%')}"
    return f"disk {one.mount} {used} {inodes}" + (" read-only" if one.read_only else "")


def _memory_line(t: Telemetry) -> str:
    memory = t.memory.value
    if memory is None:
        return f"memory n/a ({t.memory.reason})"
    limit = _size(memory.limit_bytes) if memory.limit_bytes is not None else "no limit"
    return (
        f"memory {_size(memory.used_bytes)} of {limit} oom kills {_na(memory.oom_kills)} "
        f"(host {_size(memory.host_total_bytes)})"
    )


def _cpu_line(t: Telemetry) -> str:
    cpu = t.cpu.value
    if cpu is None:
        return f"cpu n/a ({t.cpu.reason})"
    quota = "no quota" if cpu.quota_cores is None else f"quota {cpu.quota_cores:g} cores"
    return f"cpu {_na(cpu.cores_visible)} cores {quota} host load {_na(cpu.load1)}"


def _named_lines(word: str, reading: Reading[Any], line: Any) -> list[str]:
    if reading.value is None:
        return [f"{word} n/a ({reading.reason})"]
    return [f"{word} {line(one)}" for one in reading.value]


def _run_line(run: RunTruth) -> str:
    state = {True: "alive", False: "gone", None: "not known"}[run.alive]
    why = f" ({run.gone_reason})" if run.gone_reason else ""
    log = run.log.value
    size = f" log {_size(log.size_bytes)}" if log else ""
    return f"run {run.run} {state}{why}{size} checkpoints {_na(run.checkpoint_count)}"


def _candidate_line(one: Candidate) -> str:
    logs: Sequence[str] = one.logs
    where = f" log {logs[0]}" if logs else ""
    return f"candidate pid {_na(one.pid)} {one.command}{where}" + (
        f" tmux {one.session}" if one.session else ""
    )

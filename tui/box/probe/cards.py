"""GPUs, their processes and the kernel's lines about them."""

from __future__ import annotations

from dataclasses import dataclass

from tui.box.parsers.command import Invocation
from tui.box.parsers.gpu_answers import amd_report, nvidia_report
from tui.box.parsers.lines import decode, lines
from tui.box.parsers.refusal import kernel_log_refusal
from tui.box.parsers.report import GpuReport, Output
from tui.box.parsers.xid import gpu_events
from tui.box.probe.frame import Batch, Message
from tui.box.probe.origin import reason, source
from tui.model.reading import Reading, Source, known, unknown
from tui.model.telemetry import Gpu, GpuProcess
from tui.model.text import SafeText, safe

_FORM = "--format=csv,noheader,nounits"
_APPS = "--query-compute-apps=pid,process_name,used_gpu_memory,gpu_uuid"
_SHORT = 7  # columns that every driver knows; the probe asks for them first
_SILENT = SafeText("nvidia-smi does not answer")
_XID_KEPT = 40


@dataclass(frozen=True, slots=True)
class Cards:
    gpus: Reading[tuple[Gpu, ...]]
    processes: Reading[tuple[GpuProcess, ...]]


def read_cards(batch: Batch, taken_at: float) -> Cards:
    """The cards of all vendors; unknown, with a reason, where a driver does not answer or no tool can ask."""
    nvidia = _nvidia(batch, taken_at)
    amd = _amd(batch, taken_at)
    if amd is None or (nvidia.gpus.value and not amd.gpus.value):
        return nvidia
    if not nvidia.gpus.value:
        # No card of NVIDIA's, or none that can be told: AMD's word counts, unless it has none either.
        return amd if amd.gpus.value or nvidia.gpus.known else nvidia
    both = (*nvidia.gpus.value, *(amd.gpus.value or ()))
    return Cards(known(both, nvidia.gpus.source), nvidia.processes)


def _nvidia(batch: Batch, taken_at: float) -> Cards:
    message = batch.messages.get("gpu.cards")
    if message is None:
        return _without_tool(batch, taken_at)
    query, _, text = decode(message.text).partition("\n")
    origin = source(f"nvidia-smi --query-gpu={query} {_FORM}", taken_at, text)
    gpus = _reading(_asked(query, text, message), origin)
    apps = batch.messages.get("gpu.apps")
    if apps is not None:
        return Cards(gpus, read_apps(apps, taken_at))
    if gpus.value == ():
        return Cards(gpus, known((), origin))
    return Cards(gpus, unknown(gpus.reason or _SILENT, origin))


def _asked(query: str, text: str, message: Message) -> GpuReport:
    """Some stand-ins print the usual columns whatever was asked; they are read as such."""
    output = _output(text, message)
    report = nvidia_report(output, [_call(f"--query-gpu={query}")], limited=True)
    if report.gpus:
        return report
    usual = ",".join(query.split(",")[:_SHORT])
    shorter = nvidia_report(output, [_call(f"--query-gpu={usual}")], limited=True)
    return shorter if shorter.gpus else report


def _call(option: str) -> Invocation:
    return Invocation("nvidia-smi", (option, _FORM))


def _output(text: str, message: Message) -> Output:
    return Output(text, "", int(message.status) if message.status.isdigit() else None)


def _reading(report: GpuReport, origin: Source) -> Reading[tuple[Gpu, ...]]:
    if not report.gpus and report.refusal is not None and report.refusal.error == "no_devices":
        return known((), origin)
    return report.reading(origin)


def _without_tool(batch: Batch, taken_at: float) -> Cards:
    """No card where there is neither tool nor device; unknown where a device is there and no tool to ask."""
    devices = batch.messages.get("gpu.none")
    if "gpu.mac" in batch.messages:
        return _unknown("macOS has no tool that tells a user about GPUs", source("uname -s", taken_at))
    if devices is None:
        return _unknown(_SILENT, source("nvidia-smi", taken_at))
    found = decode(devices.text).strip().split("\n")
    origin = source("command -v nvidia-smi; ls /dev/nvidia* /proc/driver/nvidia", taken_at, devices.text)
    if found != [""]:
        return _unknown(f"nvidia-smi is not installed, although the box has {found[0]}", origin)
    return Cards(known((), origin), known((), origin))


def _unknown(why: str, origin: Source) -> Cards:
    return Cards(unknown(reason(why), origin), unknown(reason(why), origin))


def read_apps(message: Message, taken_at: float) -> Reading[tuple[GpuProcess, ...]]:
    """The processes of ``nvidia-smi --query-compute-apps``."""
    text = decode(message.text)
    origin = source(f"nvidia-smi {_APPS} {_FORM}", taken_at, text)
    report = nvidia_report(_output(text, message), [_call(_APPS)], limited=True)
    if report.processes is None or (not report.processes and report.refusal is not None):
        return unknown(report.refusal.reason if report.refusal else _SILENT, origin)
    return known(report.processes, origin)


def _amd(batch: Batch, taken_at: float) -> Cards | None:
    """AMD's cards; None where nothing speaks of any."""
    for name, tool in (("gpu.rocm", "rocm-smi"), ("gpu.amd", "amd-smi")):
        message = batch.messages.get(name)
        if message is None:
            continue
        text = decode(message.text)
        origin = source(f"{tool} --json", taken_at, text)
        report = amd_report(_output(text, message), tool, limited=True)
        gpus = _reading(report, origin)
        if report.processes is not None:
            return Cards(gpus, known(report.processes, origin))
        if gpus.value == ():
            return Cards(gpus, known((), origin))
        return Cards(gpus, unknown(reason(f"{tool} was not asked for processes"), origin))
    if "gpu.kfd" in batch.messages:
        why = "the box has /dev/kfd, and neither rocm-smi nor amd-smi is installed"
        return _unknown(why, source("command -v rocm-smi amd-smi", taken_at, "/dev/kfd"))
    return None


def read_xid(batch: Batch, taken_at: float) -> Reading[tuple[SafeText, ...]]:
    """The kernel's lines about GPUs, newest last."""
    if "xid.mac" in batch.messages:
        return unknown(reason("macOS has no driver of NVIDIA's that could write Xid lines"))
    message = batch.messages.get("xid")
    if message is None:
        return unknown(reason("the kernel log does not answer"), source("dmesg", taken_at))
    command, _, text = decode(message.text).partition("\n")
    origin = source(command, taken_at, text)
    if message.status != "0":
        refusal = kernel_log_refusal(text)
        return unknown(refusal.reason if refusal else reason(text.strip() or "dmesg failed"), origin)
    rows = lines(text)
    told = sorted({event.line for event in gpu_events(text)})
    return known(tuple(safe(rows[at - 1]) for at in told)[-_XID_KEPT:], origin)

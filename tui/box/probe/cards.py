"""GPUs, their processes and the kernel's lines about them."""

from __future__ import annotations

from dataclasses import dataclass

from tui.box.parsers.amd import amd_gpus
from tui.box.parsers.lines import decode, lines
from tui.box.parsers.nvidia_csv import Query, Table, gpus_of, processes_of, read_tables
from tui.box.parsers.refusal import amd_refusal, kernel_log_refusal, no_answer, nvidia_refusal
from tui.box.parsers.report import Output
from tui.box.parsers.xid import gpu_events
from tui.box.probe.frame import Batch, Message
from tui.box.probe.origin import reason, source
from tui.model.reading import Reading, Source, known, unknown
from tui.model.telemetry import Gpu, GpuProcess
from tui.model.text import SafeText, safe

_APP_COLUMNS = ("pid", "process_name", "used_gpu_memory", "gpu_uuid")
_SHORT = 7  # columns that every driver and every stand-in knows; asked first
_SILENT = SafeText("nvidia-smi does not answer")
_XID_KEPT = 40


@dataclass(frozen=True, slots=True)
class Cards:
    gpus: Reading[tuple[Gpu, ...]]
    processes: Reading[tuple[GpuProcess, ...]]


def read_cards(batch: Batch, taken_at: float, system: str = "Linux") -> Cards:
    """The cards of all vendors; unknown, with a reason, where a driver does not answer or no tool can ask."""
    nvidia = _nvidia(batch, taken_at, system)
    amd = _amd(batch, taken_at)
    cards = nvidia.gpus
    if amd is not None and (amd.value or (amd.value is None and not cards.value and cards.known)):
        cards = known((*(cards.value or ()), *amd.value), amd.source) if amd.value else amd
    processes = nvidia.processes
    if amd is not None and amd.value and not nvidia.gpus.value:
        processes = unknown(reason("AMD's tool is not asked for processes"), amd.source)
    return Cards(cards, processes)


def _nvidia(batch: Batch, taken_at: float, system: str) -> Cards:
    message = batch.messages.get("gpu.cards")
    if message is None:
        return _without_tool(batch, taken_at, system)
    query, _, text = decode(message.text).partition("\n")
    origin = source(f"nvidia-smi --query-gpu={query} --format=csv,noheader,nounits", taken_at, text)
    cards = _card_reading(query, text, message.status, origin)
    apps = batch.messages.get("gpu.apps")
    if apps is not None:
        return Cards(cards, read_apps(apps, taken_at))
    if cards.value == ():
        return Cards(cards, known((), origin))
    return Cards(cards, unknown(cards.reason or _SILENT, origin))


def _without_tool(batch: Batch, taken_at: float, system: str) -> Cards:
    devices = batch.messages.get("gpu.none")
    if "gpu.mac" in batch.messages:
        origin = source("uname -s", taken_at, system)
        why = reason("macOS has no tool that tells GPU load to a user")
        return Cards(unknown(why, origin), unknown(why, origin))
    if devices is None:
        origin = source("nvidia-smi", taken_at)
        return Cards(unknown(_SILENT, origin), unknown(_SILENT, origin))
    found = lines(decode(devices.text).strip())
    origin = source("command -v nvidia-smi; ls /dev/nvidia* /proc/driver/nvidia", taken_at, devices.text)
    if found != [""]:
        why = reason(f"nvidia-smi is not installed, although the box has {found[0]}")
        return Cards(unknown(why, origin), unknown(why, origin))
    return Cards(known((), origin), known((), origin))


def _card_reading(query: str, text: str, status: str, origin: Source) -> Reading[tuple[Gpu, ...]]:
    columns = tuple(query.split(","))
    cards: tuple[Gpu, ...] = ()
    for asked in (columns, columns[:_SHORT]):
        cards = cards or gpus_of(_table(text, Query("gpus", asked)))
    if cards:
        return known(cards, origin)
    refusal = no_answer(_output(text, status), "nvidia-smi", limited=True) or nvidia_refusal(text)
    if refusal is not None and refusal.error == "no_devices":
        return known((), origin)
    if refusal is not None:
        return unknown(refusal.reason, origin)
    if status == "0" and not text.strip():
        return known((), origin)
    return unknown(reason(f"nvidia-smi ended with {status}: {text.strip() or 'no output'}"), origin)


def _table(text: str, query: Query) -> Table:
    return read_tables(text, [query])[0]


def _output(text: str, status: str) -> Output:
    return Output(text, "", int(status) if status.isdigit() else None)


def read_apps(message: Message, taken_at: float) -> Reading[tuple[GpuProcess, ...]]:
    """The processes of ``nvidia-smi --query-compute-apps``."""
    text = decode(message.text)
    command = f"nvidia-smi --query-compute-apps={','.join(_APP_COLUMNS)} --format=csv,noheader,nounits"
    origin = source(command, taken_at, text)
    processes = processes_of(_table(text, Query("processes", _APP_COLUMNS)))
    if processes or (message.status == "0" and "no running" in text.lower()) or not text.strip():
        return known(processes, origin) if message.status == "0" else unknown(reason(text), origin)
    refusal = nvidia_refusal(text)
    return unknown(refusal.reason if refusal else reason(text.strip()), origin)


def _amd(batch: Batch, taken_at: float) -> Reading[tuple[Gpu, ...]] | None:
    """AMD's cards; None where nothing speaks of any."""
    for name, tool in (("gpu.rocm", "rocm-smi"), ("gpu.amd", "amd-smi")):
        message = batch.messages.get(name)
        if message is None:
            continue
        text = decode(message.text)
        origin = source(f"{tool} --json", taken_at, text)
        cards = amd_gpus(text)
        if cards:
            return known(cards, origin)
        refusal = no_answer(_output(text, message.status), tool, limited=True) or amd_refusal(text)
        if refusal is not None and refusal.error == "no_devices":
            return known((), origin)
        return unknown(refusal.reason if refusal else reason(f"{tool}: {text.strip()}"), origin)
    if "gpu.kfd" in batch.messages:
        why = reason("the box has /dev/kfd, and neither rocm-smi nor amd-smi is installed")
        return unknown(why, source("command -v rocm-smi amd-smi", taken_at, "/dev/kfd"))
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
        return unknown(refusal.reason if refusal else reason(text or "dmesg failed"), origin)
    rows = lines(text)
    told = sorted({event.line for event in gpu_events(text)})
    return known(tuple(safe(rows[at - 1]) for at in told)[-_XID_KEPT:], origin)

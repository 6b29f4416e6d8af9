"""Other causes that would look alike, and the observation that speaks against each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tui.model.incident import Fact, RuledOut
from tui.model.telemetry import Filesystem, Telemetry
from tui.model.text import safe
from tui.triage.inputs import Known
from tui.triage.readers.tables import holding

_STORAGE = ("disk_full", "inodes_full", "fs_readonly")
_ROOM_PCT = 90.0
_VANISHED = frozenset({"sigkill_unexplained", "proc_terminated", "proc_segfault", "session_lost"})
_WAITING = frozenset({"nccl_timeout", "nccl_error", "proc_stuck", "rendezvous_failed"})


def excluded(
    cls: str, facts: Mapping[str, Fact], telemetry: Telemetry | None, known: Known
) -> tuple[RuledOut, ...]:
    """What else it could have been, and why it is not.

    Args:
        cls: the class that was found, and `facts` of it.
    """
    found = list(_memory_of_card(cls, facts))
    if telemetry is not None:
        if cls in _STORAGE:
            found += _storage(cls, facts, telemetry.filesystems.value or ())
        if cls in _VANISHED:
            found += _vanished(telemetry, known)
        if cls in _WAITING:
            found += _cards(telemetry)
    return tuple(found)


def _memory_of_card(cls: str, facts: Mapping[str, Fact]) -> Iterator[RuledOut]:
    own, total = facts.get("own_mib"), facts.get("total_gib")
    if not isinstance(own, int | float) or not isinstance(total, int | float) or not total:
        return
    share = f"this process held {own / 1024:.1f} of {total:.1f} GiB"
    if cls == "cuda_oom":
        yield RuledOut("gpu_mem_held", safe(share))
    elif cls == "gpu_mem_held":
        yield RuledOut("cuda_oom", safe(f"{share}; a smaller batch would not help"))


def _storage(cls: str, facts: Mapping[str, Fact], systems: tuple[Filesystem, ...]) -> Iterator[RuledOut]:
    path = facts.get("path") or facts.get("mount")
    mount = holding(str(path), [str(fs.mount) for fs in systems]) if path else None
    fs = next((fs for fs in systems if fs.mount == mount), None) if path else None
    if path is None and len(systems) == 1:
        fs = systems[0]
    if fs is None:
        return
    if cls != "disk_full" and fs.use_pct is not None and fs.use_pct < _ROOM_PCT:
        yield RuledOut("disk_full", safe(f"{fs.use_pct:.0f} % of the bytes of {fs.mount} are used"))
    if cls != "inodes_full" and fs.inode_use_pct is not None and fs.inode_use_pct < _ROOM_PCT:
        yield RuledOut("inodes_full", safe(f"{fs.inode_use_pct:.0f} % of the inodes of {fs.mount} are used"))
    if cls != "fs_readonly" and fs.read_only is False:
        yield RuledOut("fs_readonly", safe(f"{fs.mount} is mounted for writing"))


def _vanished(telemetry: Telemetry, known: Known) -> Iterator[RuledOut]:
    memory, host = telemetry.memory.value, telemetry.host.value
    if memory is not None and memory.oom_kills is not None and memory.oom_kills == known.oom_kills:
        why = f"the container counts {memory.oom_kills} kills for memory, as before the run"
        yield RuledOut("host_oom_kill", safe(why))
    if host is not None and host.boot_id is not None and host.boot_id == known.boot_id:
        yield RuledOut("host_rebooted", safe("the boot id is the one the run began with"))


def _cards(telemetry: Telemetry) -> Iterator[RuledOut]:
    gpus = telemetry.gpus.value
    if gpus and all(gpu.health == "" for gpu in gpus):
        yield RuledOut("gpu_lost", safe(f"all {len(gpus)} cards answer"))

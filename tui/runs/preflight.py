"""What is looked at before a run is started, each check in one line.

*stop* is kept for what would make a number wrong, lose data or surely fail; missing paperwork only warns, and
what could not be told is said as that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tui.box.transport import Script, Transport
from tui.model.job import Gpu, Job
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, amount, safe

Verdict = Literal["ok", "warn", "stop", "unknown"]

MARGIN = 1.1
"""What must be free beyond what a job says it needs."""

SKEW_S = 30.0
"""Clocks further apart make ages and time limits wrong."""

_TORCH_S = 90.0

# $1 the run's folder, then the paths of inputs. A topic and its values a line; the last of a line is a path.
_LOOK = r"""
LC_ALL=C; export LC_ALL
home() { case $1 in '~/'*) printf '%s/%s\n' "$HOME" "${1#??}" ;; *) printf '%s\n' "$1" ;; esac; }
run=$(home "$1")
echo "run $run"
if [ -e "$run/.rgt/plan/id" ]; then echo 'taken plan'
elif [ -d "$run" ] && [ -z "$(ls -A "$run" | grep -v '^\.in[0-9]*$')" ]; then : # cut off on the way
elif [ -e "$run" ]; then echo 'taken other'; fi
d=$run
while [ ! -d "$d" ]; do case $d in */*) d=${d%/*} ;; *) d= ;; esac; d=${d:-/}; done
[ -w "$d" ] && echo 'writable yes' || echo "writable no"
df -Pk "$d" 2>/dev/null | awk 'NR == 2 { print "kib", $4 }'
df -Pi "$d" 2>/dev/null | awk 'NR == 2 { print "inodes", $4 }'
for t in tmux setsid nohup tar sha256sum; do command -v $t >/dev/null 2>&1 && echo "tool $t"; done
shift
for p; do
  q=$(home "$p")
  if [ -d "$q" ]; then echo "input folder $p"
  elif [ -e "$q" ]; then echo "input $(wc -c <"$q" 2>/dev/null | tr -d ' ') $p"
  else echo "input none $p"; fi
done
"""

# $1 interpreter. What torch sees, in lines.
_TORCH = r"""
exec "$1" -c '
import sys
print("python", sys.version.split()[0], sys.executable)
import torch
print("torch", torch.__version__, torch.version.cuda)
n = torch.cuda.device_count() if torch.cuda.is_available() else 0
print("cuda", n)
for i in range(n):
    p = torch.cuda.get_device_properties(i)
    print("device", p.total_memory, p.name)
'
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    said: SafeText


@dataclass(frozen=True, slots=True)
class BoxFacts:
    """What the box said about the place where a run shall lie.

    Attributes:
        run: its folder with ``~`` resolved.
        taken: ``plan`` for an earlier run of rgt, ``other`` for anything else; None: it is free.
        kib, inodes: free there; None: not told.
        inputs: by path as asked: bytes, ``folder``, or None where it is not there.
    """

    run: str
    taken: str | None = None
    writable: bool = True
    kib: int | None = None
    inodes: int | None = None
    tools: frozenset[str] = frozenset()
    inputs: Mapping[str, int | Literal["folder"] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TorchFacts:
    """What the job's interpreter sees; `error` is its last word where it failed."""

    python: str | None = None
    torch: str | None = None
    devices: tuple[tuple[str, int], ...] | None = None
    error: SafeText | None = None


async def ask_box(transport: Transport, run: str, inputs: Sequence[str]) -> BoxFacts:
    """Look at the place of a run and at its inputs. Raises LinkLost, SessionsExhausted, TimeoutError."""
    done = await transport.run(Script(_LOOK, (run, *inputs), why="preflight"), timeout=60, limit=1 << 20)
    return read_box(done.stdout.decode("utf-8", "surrogateescape"), run)


def read_box(text: str, run: str) -> BoxFacts:
    """Read what `ask_box` was told; lines nobody knows are left out."""
    said: dict[str, str] = {}
    tools, inputs = set[str](), dict[str, int | Literal["folder"] | None]()
    for line in text.split("\n"):
        topic, _, rest = line.partition(" ")
        if topic == "tool":
            tools.add(rest)
        elif topic == "input":
            size, _, path = rest.partition(" ")
            inputs[path] = "folder" if size == "folder" else int(size) if size.isdecimal() else None
        else:
            said.setdefault(topic, rest)
    return BoxFacts(
        run=said.get("run", run),
        taken=said.get("taken"),
        writable=said.get("writable") != "no",
        kib=_whole(said.get("kib")),
        inodes=_whole(said.get("inodes")),
        tools=frozenset(tools),
        inputs=inputs,
    )


async def ask_torch(transport: Transport, python: str) -> TorchFacts:
    """What the interpreter of the job sees of torch and its cards. Raises LinkLost, SessionsExhausted."""
    try:
        script = Script(_TORCH, (python,), why="does torch see the GPU?")
        done = await transport.run(script, timeout=_TORCH_S)
    except TimeoutError:
        return TorchFacts(error=safe(f"it did not answer within {_TORCH_S:.0f} s"))
    return read_torch(done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def read_torch(out: str, err: str) -> TorchFacts:
    """Read what `ask_torch` was told."""
    found = {topic: rest for topic, _, rest in (line.partition(" ") for line in out.split("\n"))}
    devices = []
    for line in out.split("\n"):
        topic, _, rest = line.partition(" ")
        size, _, name = rest.partition(" ")
        if topic == "device" and size.isdecimal():
            devices.append((safe(name, 80), int(size)))
    last = err.strip().split("\n")[-1]
    return TorchFacts(
        python=found.get("python"),
        torch=found.get("torch"),
        devices=tuple(devices) if "cuda" in found else None,
        error=None if "cuda" in found else safe(last, 200) or safe("it said nothing"),
    )


def checks(job: Job, box: BoxFacts, telemetry: Telemetry | None, torch: TorchFacts | None) -> list[Check]:
    """Everything that can be said of starting this job there, stops first."""
    found = [
        _place(box),
        *_room(job, box),
        *(_input(path, size, job) for path, size in box.inputs.items()),
        _detach(box),
    ]
    if telemetry is not None:
        found += [_clock(telemetry), *_cards(job.resources.gpu, telemetry), *_host(job, telemetry)]
    if torch is not None:
        found.append(_torch(job.resources.gpu, torch))
    return in_order(found)


def in_order(found: Iterable[Check]) -> list[Check]:
    """Stops first, then what is not known."""
    order = {"stop": 0, "unknown": 1, "warn": 2, "ok": 3}
    return sorted(found, key=lambda one: order[one.verdict])


def _place(box: BoxFacts) -> Check:
    if box.taken == "other":
        return _check("place", "stop", f"{box.run} is there already and is no run of rgt's.")
    if box.taken == "plan":
        return _check("place", "ok", f"{box.run} holds this run; it goes on where it stopped.")
    if not box.writable:
        return _check("place", "stop", f"{box.run} cannot be made: no right to write there.")
    return _check("place", "ok", f"{box.run} is free.")


def _room(job: Job, box: BoxFacts) -> list[Check]:
    need = max([job.resources.disk, *(stage.disk for stage in job.chain())])
    files = max([job.resources.inodes, *(stage.inodes for stage in job.chain())])
    return [
        _enough("inodes", box.inodes, files, str),
        _enough("bytes", None if box.kib is None else box.kib * 1024, need, amount),
    ]


def _enough(name: str, free: int | None, need: int, told: Callable[[int], str]) -> Check:
    if free is None:
        verdict: Verdict = "unknown" if need else "ok"
        return _check(name, verdict, f"The box does not tell how many {name} are free.")
    if free < need * MARGIN:
        short = told(int(need * MARGIN) - free)
        return _check(name, "stop", f"{told(free)} free, {told(need)} needed: {short} too little.")
    if not need:
        return _check(name, "warn", f"{told(free)} free; the job does not say how many it needs.")
    return _check(name, "ok", f"{told(free)} free, {told(need)} needed.")


def _input(path: str, size: int | Literal["folder"] | None, job: Job) -> Check:
    wanted = next((one for one in job.inputs if one.path == path), None)
    if size is None:
        away = (
            ""
            if wanted is None or wanted.mirror is None
            else f"; it can be fetched from {wanted.mirror.partition('?')[0]}: rgt stage"
        )
        return _check("input", "stop", f"{path} is not on the box{away}.")
    if wanted is not None and wanted.bytes is not None and size != wanted.bytes:
        return _check("input", "stop", f"{path} has {size} bytes and must have {wanted.bytes}.")
    return _check("input", "ok", f"{path} is there.")


def _detach(box: BoxFacts) -> Check:
    if "tmux" in box.tools:
        return _check("detach", "ok", "tmux is there.")
    if {"nohup", "setsid"} <= box.tools:
        return _check("detach", "warn", "No tmux: it is started by nohup and setsid.")
    return _check("detach", "stop", "Neither tmux nor nohup with setsid is there to outlive a connection.")


def _clock(telemetry: Telemetry) -> Check:
    host = telemetry.host.value
    offset = host.clock_offset_s if host else None
    if offset is None:
        return _check("clock", "unknown", "The box's clock could not be compared.")
    if abs(offset) > SKEW_S:
        return _check("clock", "warn", f"The box's clock is {offset:+.0f} s off; ages count by its own.")
    return _check("clock", "ok", f"The clocks agree within {abs(offset):.0f} s.")


def _cards(wanted: Gpu, telemetry: Telemetry) -> list[Check]:
    """Enough cards of the kind, and nobody else on them: two writers on one card make both slow or dead."""
    if not wanted.count:
        return []
    cards = telemetry.gpus.value
    if cards is None:
        return [_check("gpu", "unknown", f"No card could be seen: {telemetry.gpus.reason or 'no tool'}.")]
    fit = [
        card
        for card in cards
        if (not wanted.model or wanted.model.lower() in card.name.lower())
        and (card.mem_total_mib is None or card.mem_total_mib * 1024 * 1024 >= wanted.memory)
    ]
    if len(fit) < wanted.count:
        have = ", ".join(card.name for card in cards) or "none"
        return [_check("gpu", "stop", f"{wanted.count} fitting cards are needed and {len(fit)} fit: {have}.")]
    found = [_check("gpu", "ok", f"{len(fit)} fitting: {fit[0].name}.")]
    used = telemetry.gpu_processes.value
    if used is None:
        found.append(_check("one writer", "unknown", "Who uses the cards is not told."))
    elif used:
        who = ", ".join(f"{one.command or 'unnamed'} ({one.pid})" for one in used[:3])
        found.append(_check("one writer", "stop", f"The cards are in use: {who}."))
    else:
        held = [card for card in fit if (card.mem_used_mib or 0) > 1024]
        if held:
            found.append(
                _check("one writer", "stop", f"Card {held[0].index} holds memory that no process owns.")
            )
        else:
            found.append(_check("one writer", "ok", "Nobody uses the cards."))
    return found


def _host(job: Job, telemetry: Telemetry) -> list[Check]:
    found = []
    memory, cpu = telemetry.memory.value, telemetry.cpu.value
    if job.resources.memory:
        limit = (memory.limit_bytes or memory.host_total_bytes) if memory else None
        if limit is None:
            found.append(_check("memory", "unknown", "The memory limit is not told."))
        elif limit < job.resources.memory:
            text = f"{amount(limit)} at most, {amount(job.resources.memory)} needed."
            found.append(_check("memory", "stop", text))
        else:
            found.append(_check("memory", "ok", f"{amount(limit)} at most."))
    if job.resources.cores and cpu is not None:
        cores = cpu.quota_cores or cpu.cores_visible
        if cores is not None and cores < job.resources.cores:
            text = f"{cores:g} cores, {job.resources.cores} asked for; it will be slower."
            found.append(_check("cores", "warn", text))
    return found


def _torch(wanted: Gpu, torch: TorchFacts) -> Check:
    if torch.python is None:
        return _check("python", "stop", f"The interpreter does not start: {torch.error}.")
    if torch.torch is None:
        return _check("torch", "warn", f"Python {torch.python} has no torch: {torch.error}.")
    if torch.devices is None:
        return _check("torch", "unknown", f"torch {torch.torch} did not tell its cards: {torch.error}.")
    if len(torch.devices) < wanted.count:
        seen = len(torch.devices)
        return _check("torch", "stop", f"torch {torch.torch} sees {seen} cards, {wanted.count} are needed.")
    return _check("torch", "ok", f"torch {torch.torch} sees {len(torch.devices)} cards.")


def _check(name: str, verdict: Verdict, said: str) -> Check:
    return Check(name, verdict, safe(said, 400))


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 20 else None

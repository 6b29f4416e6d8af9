"""Phase 0: what a new box really has, measured and not believed.

Pure readers and judges around three scripts: what is there, how fast the disk takes a checkpoint, how
fast the network brings one on the routes to be used. All it writes is one file to measure, removed again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tui.box.transport import Script, Transport
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, amount, safe

Verdict = Literal["ok", "mind", "bad", "unknown"]

WRITE_MIB = 256
_WRITE_S = 120.0
_NET_S = 90.0
_NET_BYTES = 8 << 20

# $1 interpreter, then folders. Topic and values a line; a folder comes last.
_LOOK = r"""
LC_ALL=C; export LC_ALL
py=$1; shift
echo "home $HOME"
for t in tmux screen rsync rclone git curl wget python3 nvidia-smi conda; do
  command -v $t >/dev/null 2>&1 && echo "tool $t"
done
tmux -V 2>/dev/null | sed 's/^tmux /tmux /'
for d; do
  if [ ! -d "$d" ]; then echo "tier none $d"; continue; fi
  k=$(df -Pk "$d" 2>/dev/null | awk 'NR == 2 { print $2, $4 }')
  i=$(df -Pi "$d" 2>/dev/null | awk 'NR == 2 { print $2, $4 }')
  m=$(df -P "$d" 2>/dev/null | awk 'NR == 2 { print $6 }')
  w=no; [ -w "$d" ] && w=yes
  echo "tier ${k:-? ?} ${i:-? ?} $w ${m:-?} $d"
done
nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | sed 's/^/driver /'
nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/cuda_driver \1/p' | head -n 1
df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print "shm", $2 }'
exec 3>&1
err=$("$py" -c '
import sys
print("python", sys.version.split()[0], sys.prefix, flush=True)
import torch
print("torch", torch.__version__, torch.version.cuda, flush=True)
ok = torch.cuda.is_available()
print("sees", torch.cuda.device_count() if ok else 0)
if ok:
    arch = "sm_%d%d" % torch.cuda.get_device_capability(0)
    print("arch", "yes" if arch in torch.cuda.get_arch_list() else "no")
' 2>&1 >&3) || printf '%s\n' "$err" | sed -n '$s/^/torch_error /p'
exit 0
"""

# $1 folder, $2 MiB. Writes a file, reads it back, removes it; milliseconds where the box has them.
_WRITE = r"""
f=$1/.rgt-measure.$$
trap 'rm -f -- "$f"' EXIT
now() {
  n=$(date +%s%N 2>/dev/null)
  case $n in *N | '') echo "$(date +%s)000" ;; *) echo "${n%??????}" ;; esac
}
a=$(now)
dd if=/dev/zero of="$f" bs=1048576 count="$2" conv=fsync 2>/dev/null || { echo full; exit 0; }
b=$(now)
echo "wrote $((b - a))"
a=$(now); n=0
mkdir "$f.d" || exit 0
while [ $n -lt 200 ]; do : >"$f.d/$n"; n=$((n + 1)); done
rm -rf "$f.d"
b=$(now)
echo "files $((b - a))"
"""

# $1 bytes at most, then URLs. What came, in bytes and seconds, or why nothing did.
_NET = r"""
max=$1; shift
for u; do
  if command -v curl >/dev/null 2>&1; then
    r=$(curl -sS -L -o /dev/null --max-time 20 -r "0-$((max - 1))" \
      -w '%{http_code} %{size_download} %{time_total}' "$u" 2>&1)
    echo "net $u $(printf %s "$r" | tr '\n' ' ')"
  else echo "net $u no-curl"; fi
done
"""


@dataclass(frozen=True, slots=True)
class TierFacts:
    """A storage tier as it is on this box. Kibibytes and inodes, total and free; None: not told."""

    folder: str
    mount: str | None = None
    kib: int | None = None
    free_kib: int | None = None
    inodes: int | None = None
    free_inodes: int | None = None
    writable: bool | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One download route. `rate` is bytes a second; None where nothing came, for the `why`."""

    url: str
    rate: float | None
    why: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything that was measured. Strings are as the box told them."""

    home: str = ""
    tools: frozenset[str] = frozenset()
    said: Mapping[str, str] = field(default_factory=dict)
    tiers: tuple[TierFacts, ...] = ()
    write_s: float | None = None
    files_s: float | None = None
    routes: tuple[Route, ...] = ()

    @property
    def write_rate(self) -> float | None:
        """Bytes a second at which the disk takes a checkpoint, synced."""
        return WRITE_MIB * 1048576 / self.write_s if self.write_s else None


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the audit."""

    name: str
    verdict: Verdict
    said: SafeText


async def look(transport: Transport, python: str, folders: Sequence[str]) -> Audit:
    """What is there. Raises LinkLost, SessionsExhausted, TimeoutError."""
    script = Script(_LOOK, (python, *folders), why="what does this box have?")
    done = await transport.run(script, timeout=120, limit=1 << 18)
    return read(done.stdout.decode("utf-8", "replace"))


async def measure_disk(transport: Transport, folder: str) -> tuple[float | None, float | None]:
    """Seconds to write and sync `WRITE_MIB` MiB, and to make 200 files; None where it was not possible."""
    script = Script(_WRITE, (folder, str(WRITE_MIB)), why="how fast does the disk take a checkpoint?")
    try:
        done = await transport.run(script, timeout=_WRITE_S)
    except TimeoutError:
        return None, None
    said = {
        k: v
        for k, _, v in (line.partition(" ") for line in done.stdout.decode("ascii", "replace").split("\n"))
    }
    return _seconds(said.get("wrote")), _seconds(said.get("files"))


async def measure_routes(transport: Transport, urls: Sequence[str]) -> tuple[Route, ...]:
    """How fast each route brings data now. Raises LinkLost, SessionsExhausted."""
    script = Script(_NET, (str(_NET_BYTES), *urls), why="how fast is the network on the routes to be used?")
    try:
        done = await transport.run(script, timeout=_NET_S)
    except TimeoutError:
        return tuple(Route(url, None, safe(f"no answer within {_NET_S:.0f} s")) for url in urls)
    return read_routes(done.stdout.decode("utf-8", "replace"), urls)


def read(text: str) -> Audit:
    """Read what `look` was told."""
    said: dict[str, str] = {}
    tools, tiers = set[str](), []
    for line in text.split("\n"):
        topic, _, rest = line.partition(" ")
        if topic == "tool":
            tools.add(rest)
        elif topic == "tier":
            tiers.append(_tier(rest))
        elif topic:
            said.setdefault(topic, rest)
    return Audit(said.get("home", ""), frozenset(tools), said, tuple(tiers))


def _tier(rest: str) -> TierFacts:
    if rest.startswith("none "):
        return TierFacts(rest[5:])
    words = rest.split(" ", 6)
    if len(words) < 7:
        return TierFacts(rest)
    kib, free, inodes, free_inodes = (int(word) if word.isdecimal() else None for word in words[:4])
    if inodes == 0:
        inodes = free_inodes = None  # a file system that has no such limit prints 0
    return TierFacts(words[6], words[5], kib, free, inodes, free_inodes, words[4] == "yes")


def read_routes(text: str, urls: Sequence[str]) -> tuple[Route, ...]:
    """Read what `measure_routes` was told, one route for each URL asked."""
    told = {}
    for line in text.split("\n"):
        words = line.split(" ", 2)
        if len(words) == 3 and words[0] == "net":
            told[words[1]] = words[2]
    return tuple(_route(url, told.get(url)) for url in urls)


def _route(url: str, told: str | None) -> Route:
    if told is None:
        return Route(url, None, safe("the box said nothing of it"))
    if told == "no-curl":
        return Route(url, None, safe("there is no curl on the box"))
    found = re.search(r"(.*?)\s*(\d{3}) (\d+) ([\d.]+)\s*\Z", told)
    if found is None:
        return Route(url, None, safe(told, 200))
    if not found[2].startswith("2") or not int(found[3]):
        return Route(url, None, safe(found[1] or f"HTTP {found[2]}", 200))
    return Route(url, int(found[3]) / max(float(found[4]), 0.001))


def _seconds(ms: str | None) -> float | None:
    return max(int(ms), 1) / 1000 if ms and ms.isdecimal() else None


def findings(audit: Audit, telemetry: Telemetry, *, own: bool = False) -> list[Finding]:
    """What the figures mean, worst first.

    Args:
        own: the machine is the operator's own; there a training in conda's base breaks other things.
    """
    found = [
        *_hardware(telemetry),
        *_triangle(audit),
        *(_storage(tier) for tier in audit.tiers),
        *_limits(audit, telemetry),
        *_speed(audit),
        *_programs(audit, own=own),
    ]
    order = {"bad": 0, "mind": 1, "unknown": 2, "ok": 3}
    return sorted(found, key=lambda one: order[one.verdict])


def _hardware(telemetry: Telemetry) -> list[Finding]:
    cards = telemetry.gpus.value
    if cards is None:
        return [_finding("gpu", "unknown", f"No card could be read: {telemetry.gpus.reason}.")]
    if not cards:
        return [_finding("gpu", "mind", "No GPU: fine for copying and smoke tests, started without a card?")]
    sizes = {f"{card.mem_total_mib / 1024:.0f} GiB" for card in cards if card.mem_total_mib}
    return [_finding("gpu", "ok", f"{len(cards)} × {cards[0].name} {' '.join(sorted(sizes))}")]


def _triangle(audit: Audit) -> list[Finding]:
    """Driver, CUDA and torch must fit each other, and the card's architecture must be in the wheel."""
    said = audit.said
    driver, newest = said.get("driver"), said.get("cuda_driver")
    if "torch" not in said:
        why = said.get("torch_error", "no answer")
        verdict: Verdict = "mind" if "python" in said else "bad"
        return [_finding("torch", verdict, f"torch cannot be imported: {why}")]
    version, _, built = said["torch"].partition(" ")
    line = f"driver {driver or '?'} (CUDA {newest or '?'}), torch {version} built for CUDA {built}"
    if driver is None:
        return [_finding("torch", "ok" if built == "None" else "mind", f"{line}; no driver was seen")]
    if built == "None":
        return [_finding("torch", "bad", f"{line}: this is a CPU build, it will not use the card.")]
    if newest and _version(built) > _version(newest):
        return [_finding("torch", "mind", f"{line}: newer than the driver; it may refuse.")]
    if said.get("sees") == "0":
        return [_finding("torch", "bad", f"{line}: torch sees no card.")]
    if said.get("arch") == "no":
        return [_finding("torch", "bad", f"{line}: it has no code for this card.")]
    return [_finding("torch", "ok", f"{line}; cards seen: {said.get('sees', '?')}")]


def _storage(tier: TierFacts) -> Finding:
    if tier.mount is None:
        return _finding("disk", "mind", f"{tier.folder} is not there.")
    free = "?" if tier.free_kib is None else amount(tier.free_kib * 1024)
    files = "no limit of inodes told" if tier.free_inodes is None else f"{tier.free_inodes:,} inodes free"
    line = f"{tier.folder}: {free} free, {files}, on {tier.mount}"
    if tier.writable is False:
        return _finding("disk", "bad", f"{line}; not writable.")
    if tier.free_inodes is not None and tier.free_inodes < 20_000:
        return _finding("disk", "mind", f"{line}; few inodes: pack small files.")
    if tier.free_kib is not None and tier.free_kib < 10 << 20:
        return _finding("disk", "mind", f"{line}; little room.")
    return _finding("disk", "ok", line)


def _limits(audit: Audit, telemetry: Telemetry) -> list[Finding]:
    found = []
    memory, cpu, host = telemetry.memory.value, telemetry.cpu.value, telemetry.host.value
    limit = memory.limit_bytes if memory else None
    if limit:
        found.append(_finding("memory", "ok", f"{amount(limit)} for this container"))
    elif memory and memory.host_total_bytes:
        found.append(_finding("memory", "ok", f"{amount(memory.host_total_bytes)}, no limit below it"))
    else:
        found.append(_finding("memory", "unknown", "The memory limit is not told."))
    cores = cpu.quota_cores or cpu.cores_visible if cpu else None
    if cpu and cpu.quota_cores and cpu.cores_visible and cpu.cores_visible > cpu.quota_cores * 2:
        text = f"{cpu.quota_cores:g} cores of the {cpu.cores_visible} that programs see: cap their threads."
        found.append(_finding("cores", "mind", text))
    elif cores:
        found.append(_finding("cores", "ok", f"{cores:g} cores"))
    shm = audit.said.get("shm", "")
    if shm.isdecimal():
        small = int(shm) < 1 << 20
        text = f"shared memory holds {amount(int(shm) * 1024)}"
        more = ": DataLoader workers need more; use fewer, or a larger one." if small else ""
        found.append(_finding("shm", "mind" if small else "ok", text + more))
    offset = host.clock_offset_s if host else None
    if offset is not None:
        verdict: Verdict = "mind" if abs(offset) > 30 else "ok"
        found.append(_finding("clock", verdict, f"{offset:+.0f} s against this computer"))
    return found


def _speed(audit: Audit) -> list[Finding]:
    found = []
    if audit.write_rate is not None:
        slow = audit.write_rate < 50e6
        text = f"takes {amount(int(audit.write_rate))}/s, synced"
        found.append(_finding("write", "mind" if slow else "ok", text))
    if audit.files_s is not None:
        each = audit.files_s / 200 * 1000
        found.append(_finding("small files", "mind" if each > 5 else "ok", f"{each:.1f} ms to make one"))
    for route in audit.routes:
        if route.rate is None:
            found.append(_finding("route", "mind", f"{route.url}: nothing came ({route.why})"))
        else:
            slow = route.rate < 1e6
            found.append(
                _finding("route", "mind" if slow else "ok", f"{route.url}: {amount(int(route.rate))}/s")
            )
    return found


def _programs(audit: Audit, *, own: bool) -> list[Finding]:
    found = []
    if "tmux" in audit.tools:
        found.append(_finding("tmux", "ok", "there"))
    else:
        found.append(_finding("tmux", "mind", "not there: runs are detached by nohup and setsid."))
    prefix = audit.said.get("python", "").partition(" ")[2]
    if own and re.search(r"/(?:mini|ana)conda3?/?\Z|/miniforge3/?\Z|/mambaforge/?\Z", prefix):
        text = f"{prefix} is conda's base: make an environment of its own for the job."
        found.append(_finding("python", "mind", text))
    return found


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def _finding(name: str, verdict: Verdict, said: str) -> Finding:
    return Finding(name, verdict, safe(said, 300))

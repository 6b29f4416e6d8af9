"""How long a run's saves take and how far apart they are, by its log and files; and what loses the least."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tui.box.transport import Script, Transport
from tui.model.cadence import daly
from tui.model.failure import Failure
from tui.model.text import SafeText, amount, safe
from tui.runs.book import Page

DAY_S = 86400.0
"""Time between two failures that is reckoned with where nobody knows better."""

PROBE_BYTES = 256 << 20
"""Most that is written to learn how fast the disk is."""

_SAVED = re.compile(rb"checkpoint saved: step (\d+), (\d+) bytes in (\d+(?:\.\d+)?) s")

# $1 the run's folder, $2 its log, $3 glob of its checkpoints or nothing. Files: ``mtime bytes``, newest
# first.
_LOOK = r"""
cd -- "$1" || exit 3
grep -a 'checkpoint saved: step ' -- "$2" 2>/dev/null | tail -n 50 | cut -c 1-200
echo files
[ -n "$3" ] || exit 0
IFS=''
for f in $3; do
  [ -f "$f" ] && { stat -c '%Y %s' -- "$f" 2>/dev/null || stat -f '%m %z' -- "$f"; }
done | sort -rn | head -n 50
"""

# $1 the run's folder, $2 MiB. Writes that much through to the disk, and takes it away again.
_WRITE = r"""
umask 077
cd -- "$1" || exit 3
f=.rgt/speed.$$
trap 'rm -f -- "$f"' EXIT
trap 'exit 143' HUP TERM INT
LC_ALL=C dd if=/dev/zero of="$f" bs=1048576 count="$2" conv=fsync 2>/dev/null || exit 4
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a run's saves.

    Attributes:
        saves: seconds each took, as the log tells.
        sizes: bytes, newest first.
        gaps: seconds between two files that are kept.
    """

    saves: tuple[float, ...] = ()
    sizes: tuple[int, ...] = ()
    gaps: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """What can be said of it. `how` tells where `save_s` comes from; None: it is not known."""

    save_s: float | None
    how: SafeText
    every_s: float | None
    now_s: float | None
    size: int | None
    overhead: float | None


@dataclass(frozen=True, slots=True)
class Pace:
    """What a launch says of saving. `every_s` is None where the time of a save is not known."""

    said: SafeText
    every_s: float | None = None


async def see(box: Transport, page: Page) -> Seen:
    """Ask the box. Raises Failure: there is no such run. LinkLost, TimeoutError."""
    words = (page.folder, page.job.log, page.job.checkpoints or "")
    done = await box.run(Script(_LOOK, words, why="how long do saves take?"), timeout=60)
    if done.exit != 0:
        raise Failure(f"{safe(page.folder, 200)} is not on the box.", code="no-run")
    return read(done.stdout)


def read(told: bytes) -> Seen:
    """Read what `see` was told."""
    log, _, files = told.partition(b"files\n")
    saves = [(int(match[2]), float(match[3])) for match in _SAVED.finditer(log)]
    kept = [
        (int(when), int(size))
        for when, _, size in (line.partition(b" ") for line in files.split(b"\n"))
        if when.isdigit() and size.isdigit()
    ]
    gaps = tuple(float(a[0] - b[0]) for a, b in pairwise(kept) if a[0] > b[0])
    sizes = tuple(size for _, size in kept) or tuple(size for size, _ in reversed(saves))
    return Seen(tuple(took for _, took in saves), sizes, gaps)


async def disk_rate(box: Transport, page: Page, size: int) -> float:
    """Bytes a second that the run's disk takes, measured with a file that goes at once. Raises Failure."""
    count = max(1, min(size, PROBE_BYTES) >> 20)
    script = Script(_WRITE, (page.folder, str(count)), why="how fast is the disk?")
    done = await box.run(script, timeout=300)
    if done.exit != 0 or done.took_s <= 0:
        raise Failure("The disk took no test file.", means="How fast it is is not known.", code="no-rate")
    return (count << 20) / done.took_s


def advise(seen: Seen, failures_s: float, rate: float | None = None) -> Advice:
    """What loses the least, by Daly's formula.

    Args:
        failures_s: mean seconds between two failures.
        rate: bytes a second of the disk, where it was measured.
    """
    size = max(seen.sizes, default=None)
    save, how = _save(seen.saves, size, rate)
    now = statistics.median(seen.gaps) if seen.gaps else None
    every = daly(save, failures_s) if save else None
    beside = save / (save + every) if save and every else None
    return Advice(save, safe(how), every, now, size, beside)


def lines(advice: Advice, failures_s: float) -> Sequence[SafeText]:
    """The same for people."""
    found = [f"save    {_seconds(advice.save_s)}: {advice.how}"]
    if advice.size is not None:
        found.append(f"size    {amount(advice.size)}")
    if advice.now_s is not None:
        found.append(f"now     one every {_seconds(advice.now_s)}, by the files that are kept")
    if advice.every_s is not None and advice.overhead is not None:
        cost = f"{advice.overhead:.1%} of the time goes into saving"
        found.append(
            f"best    one every {_seconds(advice.every_s)} at a failure every {failures_s / 3600:g} h; {cost}"
        )
        found.append(f'set     [env] RGT_CHECKPOINT_EVERY_S = "{advice.every_s:.0f}"')
    return [safe(line, 300) for line in found]


def pace(own: Seen, before: Seen, named: str, rate: float | None, set_s: str | None) -> Pace | None:
    """What can be said of a run that begins; None where nothing is known.

    Args:
        own: of the run itself: of an earlier attempt, or of checkpoints that were carried there.
        before: of an earlier run of the same job on the same box, `named` so.
        rate: bytes a second of the box's disk, where it was measured.
        set_s: what the job itself sets.
    """
    seen = Seen(own.saves or before.saves, own.sizes or before.sizes)
    advice = advise(seen, DAY_S, rate)
    borrowed = seen.saves != own.saves or (not seen.saves and seen.sizes != own.sizes)
    by = f"by {named}: " if borrowed else ""
    if advice.every_s is None:
        if advice.size is None:
            return None
        return Pace(safe(f"{by}one is {amount(advice.size)}; how long a save takes is not known.", 300))
    best = f"one every {_seconds(advice.every_s)} loses the least at a failure a day"
    sets = "" if set_s is None else f"; the job sets {set_s}"
    text = f"a save takes {_seconds(advice.save_s)} ({by}{advice.how}); {best}"
    return Pace(safe(f'{text}: RGT_CHECKPOINT_EVERY_S = "{advice.every_s:.0f}"{sets}.', 400), advice.every_s)


def _save(saves: Sequence[float], size: int | None, rate: float | None) -> tuple[float | None, str]:
    if saves:
        return statistics.median(saves) or 0.01, f"the middle of {len(saves)} that the log tells"
    if size is not None and rate:
        megabytes = rate / 1e6
        return size / rate, f"its size by the disk's {megabytes:.0f} MB/s; making it comes on top"
    if size is None:
        return None, "no checkpoint was seen yet"
    return None, "the log does not tell it; --measure writes a test file to learn how fast the disk is"


def _seconds(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:.{1 if value >= 1 else 2}f} s" if value < 120 else f"{value / 60:.0f} min"

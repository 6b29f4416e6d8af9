"""What some seconds of looking at cards show that one look does not: clocks, power, brakes, errors, leaks.

Everything here only tells. A process that holds memory is named, never ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui.model.telemetry import Gpu, GpuProcess, Memory, Telemetry, unowned_vram_mib
from tui.model.text import SafeText, amount, safe

LEAK_MIB = 500.0
"""Memory that nobody owns below this is the driver's own: contexts, and rounding."""

_BAD_BRAKES = ("thermal", "hw_slowdown", "hw_power_brake")
"""Reasons to look at the machine. ``sw_power_cap`` is the card at its limit, which work does to it."""

Span = tuple[float, float] | None
"""Least and most of what was read; None: it was never told."""


@dataclass(frozen=True, slots=True)
class CardHealth:
    """One card over some looks.

    Attributes:
        brakes: reasons that held the clock back, with the share of looks that showed each.
        unowned_mib: least memory that no listed process owned; None: it cannot be told.
        holders: processes that hold memory, the largest first.
        problems: what is wrong, a sentence each; empty: nothing was seen.
        unknown: what could not be told, a sentence each.
    """

    index: int
    name: SafeText
    looks: int
    util_pct: Span
    clock_mhz: Span
    power_w: Span
    limit_w: float | None
    temp_c: Span
    mem_mib: Span
    brakes: tuple[tuple[SafeText, float], ...]
    unowned_mib: float | None
    holders: tuple[GpuProcess, ...]
    problems: tuple[SafeText, ...]
    unknown: tuple[SafeText, ...]


def health(looks: Sequence[Telemetry]) -> tuple[CardHealth, ...]:
    """Every card that any look showed, in order of its index."""
    seen: dict[int, list[tuple[Gpu, Telemetry]]] = {}
    for look in looks:
        for gpu in look.gpus.value or ():
            seen.setdefault(gpu.index, []).append((gpu, look))
    return tuple(_card(seen[index], len(looks)) for index in sorted(seen))


def memory_line(memory: Memory | None, reason: SafeText) -> SafeText:
    """The cgroup's memory in one line: what an out-of-memory kill is decided by."""
    if memory is None:
        return safe(f"memory n/a ({reason})")
    limit = memory.limit_bytes or memory.host_total_bytes
    of = "the cgroup's limit" if memory.limit_bytes else "the whole host's; no limit of our own"
    kills = (
        "kills are not counted" if memory.oom_kills is None else f"{memory.oom_kills} killed for want of it"
    )
    used = "?" if memory.used_bytes is None else amount(memory.used_bytes)
    return safe(f"memory {used} of {'?' if limit is None else amount(limit)} ({of}); {kills}")


def _card(pairs: Sequence[tuple[Gpu, Telemetry]], looks: int) -> CardHealth:
    cards = [gpu for gpu, _ in pairs]
    last, newest = pairs[-1]
    listed = newest.gpu_processes.value
    mine = [one for one in listed or () if one.gpu_uuid == last.uuid or one.gpu_index == last.index]
    unowned = _least(
        None if look.gpu_processes.value is None else unowned_vram_mib(gpu, look.gpu_processes.value)
        for gpu, look in pairs
    )
    brakes = _brakes(cards)
    return CardHealth(
        index=last.index,
        name=last.name,
        looks=len(pairs),
        util_pct=_span(one.util_pct for one in cards),
        clock_mhz=_span(one.sm_clock_mhz for one in cards),
        power_w=_span(one.power_w for one in cards),
        limit_w=last.power_limit_w,
        temp_c=_span(one.temp_c for one in cards),
        mem_mib=_span(one.mem_used_mib for one in cards),
        brakes=brakes,
        unowned_mib=unowned,
        holders=tuple(sorted(mine, key=lambda one: -(one.mem_used_mib or 0.0))),
        problems=tuple(_problems(last, brakes, unowned, len(pairs), looks)),
        unknown=tuple(_unknown(last, cards, listed is None)),
    )


def _problems(
    card: Gpu, brakes: Sequence[tuple[SafeText, float]], unowned: float | None, seen: int, looks: int
) -> Iterable[SafeText]:
    if seen < looks:
        yield safe(f"It was there in {seen} of {looks} looks only.")
    if card.health:
        yield safe(f"The tool says of it: {card.health.replace('_', ' ')}.")
    for reason, share in brakes:
        if any(word in reason for word in _BAD_BRAKES):
            yield safe(f"Its clock was held back in {share:.0%} of the looks: {reason}.")
    if card.ecc_uncorrected:
        yield safe(
            f"{card.ecc_uncorrected} memory errors that were not corrected since the driver was loaded."
        )
    if card.remap_pending:
        yield safe("A bad memory row waits for a reset of the card to be replaced.")
    if card.remap_failed:
        yield safe("A bad memory row could not be replaced: the card should be changed.")
    if (
        card.power_limit_w is not None
        and card.power_default_limit_w is not None
        and card.power_limit_w < card.power_default_limit_w * 0.95
    ):
        yield safe(f"Its power is capped at {card.power_limit_w:.0f} of {card.power_default_limit_w:.0f} W.")
    if unowned is not None and unowned > LEAK_MIB:
        yield safe(f"{unowned:.0f} MiB are held and no process that is listed owns them.")


def _unknown(card: Gpu, cards: Sequence[Gpu], unlisted: bool) -> Iterable[SafeText]:
    if all(one.throttle is None for one in cards):
        yield safe("Why its clock is held back is not told.")
    if card.ecc_uncorrected is None:
        yield safe("Its count of memory errors is not told.")
    if unlisted:
        yield safe("Who holds its memory is not told.")


def _brakes(cards: Sequence[Gpu]) -> tuple[tuple[SafeText, float], ...]:
    """Every reason that was active, with its share of the looks that told any."""
    told = [one.throttle for one in cards if one.throttle is not None]
    found = dict.fromkeys(reason for reasons in told for reason in reasons if reason != "gpu_idle")
    return tuple((reason, sum(reason in reasons for reasons in told) / len(told)) for reason in found)


def _span(values: Iterable[float | None]) -> Span:
    told = [value for value in values if value is not None]
    return (min(told), max(told)) if told else None


def _least(values: Iterable[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return min(told) if told else None

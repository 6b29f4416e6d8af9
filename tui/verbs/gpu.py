"""`rgt gpu` and `rgt mirrors`: a box's cards over some seconds, and the mirrors that are near it. Level 0."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import SafeText, safe

if TYPE_CHECKING:
    from tui.box.transport import Transport
    from tui.fleet.gpu_health import CardHealth, Span
    from tui.model.telemetry import Telemetry

SECONDS = 5.0
EVERY_S = 1.0
_MOST_S = 120.0

# Addresses come in, one a line; ``code seconds address`` goes out. Nothing is downloaded.
_NEAR = r"""
while IFS= read -r u; do
  printf '%s\n' "url = \"$u\"" |
    curl -sS -o /dev/null -I -L -m 6 -w '%{http_code} %{time_total}' -K - 2>/dev/null
  echo " $u"
done
"""


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both verbs to the command line."""
    gpu = sub.add_parser(
        "gpu", help="cards over some seconds: clocks, power, brakes, errors, who holds memory"
    )
    gpu.add_argument("name", metavar="BOX", help="a box of the fleet, or `local`")
    gpu.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help="how long to look (5)")
    gpu.add_argument("--json", action="store_true", help="print JSON; null is what is not known")
    gpu.set_defaults(run=lambda args: asyncio.run(_gpu(args)))
    mirrors = sub.add_parser(
        "mirrors", help="the platform's mirrors: what to set, and whether they answer there"
    )
    mirrors.add_argument("name", metavar="BOX", help="a box of the fleet")
    mirrors.add_argument("--json", action="store_true", help="print JSON")
    mirrors.set_defaults(run=lambda args: asyncio.run(_mirrors(args)))


async def _gpu(args: argparse.Namespace) -> int:
    from tui.fleet.gpu_health import health, memory_line
    from tui.fleet.paths import paths
    from tui.model.instance import Instance
    from tui.verbs.ending import instance_named
    from tui.verbs.line import line_to

    if not 0 < args.seconds <= _MOST_S:
        raise Failure(f"--seconds is between 0 and {_MOST_S:.0f}.", exit=Exit.USAGE)
    where = paths()
    box = Instance("local", "local", None) if args.name == "local" else instance_named(args.name, where)
    async with line_to(box, where) as line:
        looks = await _looks(await line(), args.seconds)
    cards, newest = health(looks), looks[-1]
    if args.json:
        told = [asdict(card) for card in cards] if newest.gpus.value is not None else None
        memory = newest.memory.value
        print(
            json.dumps(
                {"looks": len(looks), "cards": told, "memory": asdict(memory) if memory else None}, indent=1
            )
        )
    else:
        for card in cards:
            print("\n".join(card_lines(card)))
        if not cards:
            print(safe(f"no card: {newest.gpus.reason if newest.gpus.value is None else 'the box has none'}"))
        print(memory_line(newest.memory.value, newest.memory.reason))
    if newest.gpus.value is None:
        return Exit.UNKNOWN
    return Exit.ATTENTION if any(card.problems for card in cards) else Exit.FINE


async def _looks(box: Transport, seconds: float) -> list[Telemetry]:
    """One look a second: a clock, a power or a brake at one moment says little."""
    from tui.box.probe.loop import Probe
    from tui.box.probe.plan import ProbeRequest

    probe = Probe(box, clock=time.time)
    try:
        looks: list[Telemetry] = []
        ends = time.monotonic() + seconds
        while True:
            began = time.monotonic()
            looks.append(await probe.tick(ProbeRequest(), filesystems=not looks))
            if looks[-1].gpus.value is None or time.monotonic() + EVERY_S > ends:
                return looks
            await asyncio.sleep(max(0.0, began + EVERY_S - time.monotonic()))
    finally:
        await probe.close()


def card_lines(card: CardHealth) -> Iterable[SafeText]:
    """One card for people."""
    limit = "" if card.limit_w is None else f" of {card.limit_w:.0f}"
    yield safe(f"gpu {card.index} {card.name}, {card.looks} looks")
    parts = (
        f"util {_told(card.util_pct, '%')}",
        f"clock {_told(card.clock_mhz, 'MHz')}",
        f"power {_told(card.power_w, 'W')}{limit}",
        _told(card.temp_c, "°C"),
        f"memory {_told(card.mem_mib, 'MiB')}",
    )
    yield safe(f"  {'  '.join(parts)}", 200)
    if card.brakes:
        yield safe("  held back: " + ", ".join(f"{reason} {share:.0%}" for reason, share in card.brakes), 300)
    for one in card.holders[:8]:
        held = "?" if one.mem_used_mib is None else f"{one.mem_used_mib:.0f} MiB"
        yield safe(
            f"  holds {held}: {one.pid} {one.command or '(a process that is gone, or not ours to see)'}", 200
        )
    yield from (safe(f"  ! {line}", 300) for line in card.problems)
    yield from (safe(f"  ? {line}", 300) for line in card.unknown)


def _told(span: Span, unit: str) -> str:
    if span is None:
        return f"? {unit}"
    least, most = span
    return f"{least:.0f} {unit}" if round(least) == round(most) else f"{least:.0f}–{most:.0f} {unit}"


async def _mirrors(args: argparse.Namespace) -> int:
    from tui.fleet import profiles
    from tui.fleet.paths import paths, shipped
    from tui.verbs.ending import instance_named

    where = paths()
    box = instance_named(args.name, where)
    profile = profiles.load(shipped("profiles"), where.profiles).by_id.get(box.platform)
    found = profile.facts.network.mirrors if profile else []
    if not found:
        print(safe(f"No mirror is known for {box.platform}."))
        return Exit.UNKNOWN
    values = {name: value for mirror in found for name, value in mirror.set.items()}
    answers = await _near(
        args.name, [value for value in values.values() if value.startswith(("http://", "https://"))]
    )
    if args.json:
        print(json.dumps({"env": values, "answers": answers}, indent=1))
        return Exit.FINE
    for mirror in found:
        print(safe(f"# {mirror.what}{f': {mirror.note}' if mirror.note else ''}", 400))
        for name, value in mirror.set.items():
            print(safe(f"{name} = {json.dumps(value, ensure_ascii=False)}{_answer(answers, value)}", 400))
    print("# for [env] of a job file; HF_ENDPOINT of the platform's profile reaches launched runs by itself")
    return Exit.FINE if all(answers.values()) else Exit.ATTENTION


def _answer(answers: dict[str, str | None], value: str) -> str:
    if value not in answers:
        return ""
    return f"  # answers there: {answers[value]}" if answers[value] else "  # does not answer there"


async def _near(name: str, addresses: Sequence[str]) -> dict[str, str | None]:
    """What each address answers when the box asks; None: nothing within 6 s."""
    from tui.box.transport import Script
    from tui.fleet.paths import paths
    from tui.verbs.ending import instance_named
    from tui.verbs.line import line_to

    where = paths()
    body = "".join(f"{one}\n" for one in addresses).encode()
    script = Script(_NEAR, why="do the mirrors answer?")
    async with line_to(instance_named(name, where), where) as line:
        done = await (await line()).run(script, stdin=body, timeout=10 + 7 * len(addresses))
    found: dict[str, str | None] = dict.fromkeys(addresses)
    for told in done.stdout.decode("utf-8", "replace").split("\n"):
        code, seconds, address = (*told.split(" "), "", "", "")[:3]
        if address in found and code.isdecimal() and code != "000":
            found[address] = f"HTTP {code} in {seconds} s"
    return found

"""Steps on the box: measure it, plan its disk, give it mirrors, and say what there is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tui.box.probe.loop import Probe
from tui.box.probe.plan import ProbeRequest
from tui.box.transport import Script
from tui.fleet.profile_schema import Facts
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.setup import Asked, Option
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, amount, safe
from tui.setup import audit as phase0
from tui.setup.beginning import profile_of
from tui.setup.budget import budget
from tui.setup.proofs import HUB
from tui.setup.reaching import box_of, connected
from tui.setup.shared_disk import seen_elsewhere
from tui.setup.state import Closable, Did, Shown, State, Tell, Tools, lines

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt])?i?b?\Z", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")

# stdin: lines NAME=value. $1 the text of the file that reads them, $2 pip's index, empty: none.
_MIRRORS = r"""
umask 022
mkdir -p -- "$HOME/.rgt" && cat >"$HOME/.rgt/mirrors.part" &&
  mv -f -- "$HOME/.rgt/mirrors.part" "$HOME/.rgt/mirrors" &&
  printf '%s' "$1" >"$HOME/.rgt/mirrors.sh" || exit 3
line='[ -r "$HOME/.rgt/mirrors.sh" ] && . "$HOME/.rgt/mirrors.sh"'
grep -qxF -- "$line" "$HOME/.bashrc" 2>/dev/null || printf '%s\n' "$line" >>"$HOME/.bashrc"
if [ -n "$2" ] && [ ! -e "$HOME/.config/pip/pip.conf" ] && [ ! -e "$HOME/.pip/pip.conf" ]; then
  mkdir -p -- "$HOME/.config/pip" && printf '[global]\nindex-url = %s\n' "$2" >"$HOME/.config/pip/pip.conf"
  echo pip
fi
sh -c '. "$HOME/.rgt/mirrors.sh"; env' | grep -E '^(HF_|PIP_|UV_)' | sort
"""

_READ_MIRRORS = r"""# Nearer sources, set by rgt setup. Take a line out of ~/.rgt/mirrors to be rid of it.
while IFS= read -r rgt_line; do
  case $rgt_line in [A-Z_]*=*) export "$rgt_line" ;; esac
done <"$HOME/.rgt/mirrors"
unset rgt_line
"""


class Audit:
    """Phase 0: what the box really has."""

    async def ask(self, state: State, tools: Tools) -> Shown:
        asked = Asked("read", SafeText(f"Enter measures; it writes {phase0.WRITE_MIB} MiB and removes them."))
        return Shown(
            SafeText("nvidia-smi, df, df -i, cgroup, torch, dd, curl"),
            SafeText("GPU, driver and torch fit; room in bytes and inodes; a route that is fast enough"),
            asked,
        )

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did:
        facts, instance = profile_of(state, tools).facts, box_of(state, tools)
        folders = [path for tier in facts.tiers for path in tier.paths] or ["/"]
        async with connected(instance, tools) as box:
            tell(SafeText("looking at what is there"))
            found = await phase0.look(box, facts.script.PY or "python3", folders)
            telemetry = await _telemetry(box, instance, tools)
            place = data_dir(facts, found.home)
            tell(safe(f"writing to {place}"))
            write, files = await phase0.measure_disk(box, place)
            tell(SafeText("measuring the routes"))
            routes = await phase0.measure_routes(box, urls(facts))
            shared = await seen_elsewhere(box, instance, facts, tools)
        found = replace(found, write_s=write, files_s=files, routes=routes)
        told = phase0.findings(found, telemetry, own=facts.kind in ("ssh", "local")) + shared
        bad = sum(one.verdict == "bad" for one in told)
        mind = sum(one.verdict == "mind" for one in told)
        data = {"home": found.home, "place": place}
        if found.write_rate:
            data["rate"] = f"{found.write_rate:.0f}"
        room = next((tier for tier in found.tiers if tier.folder == place), None)
        if room and room.free_kib is not None:
            data["free"] = str(room.free_kib * 1024)
        if room and room.free_inodes is not None:
            data["inodes"] = str(room.free_inodes)
        return Did(
            brief=f"{bad} in the way, {mind} to mind" if bad or mind else "nothing in the way",
            observed=tuple(f"{one.verdict}: {one.name}: {one.said}" for one in told),
            data=data,
        )


async def _telemetry(box: Closable, instance: Instance, tools: Tools) -> Telemetry:
    probe = Probe(box, clock=tools.clock)
    try:
        return await probe.tick(ProbeRequest(runs=(), mounts=instance.mounts), gpus=True, filesystems=True)
    finally:
        await probe.close()


def urls(facts: Facts) -> list[str]:
    """The routes that will be used: each mirror, and what it stands in for."""
    named = [
        value for mirror in facts.network.mirrors for value in mirror.set.values() if value.startswith("http")
    ]
    usual = [HUB, "https://pypi.org/simple/"]
    return list(dict.fromkeys([*named, *usual]))[:6]


def data_dir(facts: Facts, home: str) -> str:
    """Where runs will lie."""
    return facts.script.DATA_DIR or home or "/tmp"  # noqa: S108 - named only where a box tells no home


class Budget:
    """Disk for checkpoints, and how often to save."""

    async def ask(self, state: State, tools: Tools) -> Shown:
        asked = Asked(
            "text",
            SafeText("Checkpoint size, how many are kept, everything else"),
            SafeText("such as: 12 GB, 3, 40 GB"),
        )
        return Shown(
            SafeText("size × (N + 1) + scratch; Young/Daly"), SafeText("it fits, in bytes and inodes"), asked
        )

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did:
        parts = [part.strip() for part in answer.split(",")]
        sizes = [size_of(part) for part in parts[:1] + parts[2:3]]
        if len(parts) < 2 or not parts[1].isdecimal() or None in sizes:
            raise Failure("Write it like 12 GB, 3, 40 GB.", exit=Exit.USAGE)
        rate = float(state.told("audit", "rate") or 0) or None
        plan = budget(sizes[0] or 0, int(parts[1]), (sizes[1] or 0) if len(sizes) > 1 else 0, rate=rate)
        free, inodes = state.told("audit", "free"), state.told("audit", "inodes")
        told = [f"{amount(plan.need)} at the fullest moment, {plan.inodes} files"]
        short = free is not None and int(free) < plan.need
        if free is not None:
            told.append(f"{amount(int(free))} are free: {'too little' if short else 'it fits'}")
        if inodes is not None and int(inodes) < plan.inodes * 10:
            told.append(f"{int(inodes):,} inodes are free: few")
        if plan.every_s and plan.save_s and plan.overhead:
            told.append(f"a save takes {plan.save_s:.0f} s: save every {plan.every_s / 60:.0f} min")
            told.append(f"that costs {plan.overhead:.1%} of the time, with a failure a day")
        else:
            told.append("the disk's speed is not known: measure it, or save every 15 min")
        brief = f"{amount(plan.need)} needed" + (", too little room" if short else "")
        return Did(brief=brief, observed=tuple(told))


def size_of(text: str) -> int | None:
    """``12 GB`` in bytes; None for what is no size."""
    found = _SIZE.match(text.strip())
    if found is None:
        return None
    factor: int = 1000 ** ("kmgt".index(found[2].lower()) + 1) if found[2] else 1
    return round(float(found[1]) * factor)


class Mirrors:
    """Nearer sources, where the usual ones are slow or not to be had."""

    async def ask(self, state: State, tools: Tools) -> Shown:
        facts = profile_of(state, tools).facts
        found = variables(facts)
        if not found:
            asked = Asked("read", SafeText("Nothing is needed here. Enter goes on."))
            return Shown(SafeText("nothing"), SafeText("downloads come from the usual places"), asked)
        options = (
            Option(
                "set",
                SafeText("set them"),
                SafeText("~/.rgt/mirrors.sh, read by ~/.bashrc; pip's if it has none"),
            ),
            Option(
                "leave", SafeText("leave all as it is"), SafeText("jobs that rgt launches get them anyway")
            ),
        )
        asked = Asked("choose", SafeText("Set these for your logins on the box?"), options=options)
        about = [f"{name}={value}" for name, value in found.items()]
        about += [mirror.note for mirror in facts.network.mirrors if mirror.note]
        return Shown(
            SafeText("write ~/.rgt/mirrors.sh"), SafeText("new shells have them"), asked, about=lines(about)
        )

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did:
        found = variables(profile_of(state, tools).facts)
        if answer != "set" or not found:
            return Did(brief="left as it is" if found else "none needed")
        body = "".join(f"{name}={value}\n" for name, value in found.items()).encode()
        index = found.get("PIP_INDEX_URL", "")
        async with connected(box_of(state, tools), tools) as box:
            done = await box.run(Script(_MIRRORS, (_READ_MIRRORS, index), why="set the mirrors"), stdin=body)
        told = done.stdout.decode("utf-8", "replace").strip().split("\n")
        missing = [name for name, value in found.items() if f"{name}={value}" not in told]
        if done.exit != 0 or missing:
            raise Failure("The mirrors were not set.", do="Look at ~/.rgt on the box.")
        return Did(brief=f"{len(found)} set", observed=tuple(told))


def variables(facts: Facts) -> Mapping[str, str]:
    """What the platform's mirrors set. Only plain values: they come from a file that operators may edit."""
    return {
        name: value
        for mirror in facts.network.mirrors
        for name, value in mirror.set.items()
        if _NAME.match(name) and value.isprintable()
    }


class Summary:
    """What there is now, and what to do next."""

    async def ask(self, state: State, tools: Tools) -> Shown:
        about = [
            f"{step}: {f'skipped, {did.skipped}' if did.skipped else did.brief}"
            for step, did in state.done.items()
        ]
        box = state.box or "the box"
        about.append(f"Next: rgt shows {box}; rgt launch job.toml --on {box}; rgt profiles {state.platform}")
        asked = Asked("read", SafeText("Enter ends the setup."))
        return Shown(SafeText("nothing"), SafeText("a watched box"), asked, about=lines(about))

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did:
        return Did(brief="done")

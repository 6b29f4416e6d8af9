"""Platform profiles: YAML facts and eight sections of prose, checked; the operator's files come on top."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tui.fleet import toml_map
from tui.fleet.platform_facts import ClockFact, PlatformFacts
from tui.fleet.problems import WARNING, problem, read_user_file
from tui.fleet.profile_schema import Clock, Facts, Source
from tui.model.failure import Failure
from tui.model.front_matter import complaint, parts
from tui.model.text import safe
from tui.model.yaml_map import load_yaml

SECTIONS = (
    "LAUNCH",
    "STORAGE",
    "NETWORK",
    "SPOT + RESUME",
    "TEARDOWN + BILLING",
    "DAEMON",
    "TOP GOTCHAS",
    "SCRIPT OVERRIDES",
)
SURFACE = "Surface to the operator"
STALE_MONTHS = 6
_HEADINGS = (SURFACE, *(f"{number}. {name}" for number, name in enumerate(SECTIONS, start=1)))
_GOTCHA = re.compile(r"### ([A-Z]{2,8}[0-9]{1,3}) · (\S.*)\Z")
_CAP_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Gotcha:
    """A trap of this platform. Its id is never given to another one."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Profile:
    """One platform.

    Attributes:
        sections: text by heading, in the order of `SECTIONS`, after the *Surface* block.
        file: name for problems; `lines` has the line of each key of the front matter.
        own: whether it is the operator's file in place of the shipped one.
    """

    facts: Facts
    sections: Mapping[str, str]
    gotchas: tuple[Gotcha, ...]
    file: str
    lines: Mapping[toml_map.Path, int]
    own: bool = False

    def sources(self) -> tuple[Source, ...]:
        return tuple(self.facts.sources.values())

    def oldest(self) -> Source:
        """The source that was looked at longest ago."""
        return min(self.sources(), key=lambda source: source.verified)


@dataclass(frozen=True, slots=True)
class Profiles:
    """All profiles that could be read, by id, and what was wrong with the others."""

    by_id: dict[str, Profile]
    problems: tuple[Failure, ...] = ()

    def plain(self) -> dict[str, PlatformFacts]:
        """What the screen and the probe need, by platform."""
        return {name: plain_facts(profile.facts) for name, profile in self.by_id.items()}


def load(shipped: Path, own: Path | None = None) -> Profiles:
    """Read the shipped profiles and then the operator's, which replace them. Never raises.

    A bad file of the operator's is reported, and the shipped one holds.
    """
    found: dict[str, Profile] = {}
    problems: list[Failure] = []
    for folder, is_own in ((shipped, False), (own, True)):
        for path in _files(folder):
            try:
                text = read_user_file(path, cap=_CAP_BYTES, means=_LEFT_OUT)
                if text is not None:
                    profile = read(text, f"{folder.name if folder else ''}/{path.name}", own=is_own)
                    found[profile.facts.id] = profile
            except Failure as failure:
                problems.append(failure)
    return Profiles(found, tuple(problems))


@functools.lru_cache(maxsize=64)
def read(text: str, file: str, *, own: bool = False) -> Profile:
    """Check one profile. Raises Failure with the first thing that is wrong and its line.

    What was read once is not checked again: the fleet file's every change asks for all profiles.
    """
    front, body, body_line = parts(text, file, "a profile", means=_LEFT_OUT)
    data, lines = load_yaml(front, file, first_line=2)
    try:
        facts = Facts.model_validate(data)
    except ValidationError as error:
        raise complaint(error, file, lines, means=_LEFT_OUT) from None
    if facts.id != Path(file).stem:
        raise problem(file, lines.get(("id",)), f"id is {facts.id}, the file's name says otherwise.")
    sections, gotchas = _body(body, body_line, file, facts)
    return Profile(facts, sections, gotchas, file, lines, own)


def stale(profile: Profile, today: date, months: int = STALE_MONTHS) -> Iterator[Failure]:
    """One warning for each source that was last looked at more than `months` months ago."""
    for name, source in profile.facts.sources.items():
        year, month = map(int, source.verified.split("-"))
        age = (today.year - year) * 12 + today.month - month
        line = profile.lines.get(("sources", name, "verified"))
        if age > months:
            what = f"{name} was verified in {source.verified}, {age} months ago."
            yield problem(profile.file, line, what, do="Look at the source again.", code=WARNING)
        elif age < 0:
            yield problem(profile.file, line, f"{name} was verified in the future.", code=WARNING)


def plain_facts(facts: Facts) -> PlatformFacts:
    """The facts without pydantic, for rooms that must start fast."""
    names = {tier.id: tier.name for tier in facts.tiers}
    patterns = {product.id: product.instance_id for product in facts.products}
    return PlatformFacts(
        platform=facts.id,
        watch_mounts=tuple(dict.fromkeys(path for t in facts.tiers if t.watch for path in t.paths)),
        inode_caps=tuple((path, t.inode_cap) for t in facts.tiers if t.inode_cap for path in t.paths),
        clocks=tuple(
            ClockFact(
                text=safe(clock.text),
                trigger=clock.trigger,
                after_s=_after_s(clock, patterns),
                destroys=safe(", ".join(names[tier] for tier in clock.destroys)),
                products=tuple(p for name in clock.products if (p := patterns[name])),
            )
            for clock in facts.clocks
        ),
    )


def _after_s(clock: Clock, patterns: Mapping[str, str | None]) -> float | None:
    """Seconds; None also where no instance id can show that the clock's product line is meant."""
    untold = clock.products and not any(patterns[name] for name in clock.products)
    return None if clock.after_h is None or untold else clock.after_h * 3600


def as_json(profile: Profile) -> dict[str, Any]:
    """All facts of a profile with their sources written out."""
    data = profile.facts.model_dump(by_alias=True)
    sources = data["sources"]
    data = _with_sources({key: value for key, value in data.items() if key != "sources"}, sources)
    gotchas = [{"id": g.id, "title": g.title, "text": g.text} for g in profile.gotchas]
    return {**data, "sources": sources, "gotchas": gotchas, "own": profile.own}


def _with_sources(value: Any, sources: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {
            key: [{"id": name, **sources[name]} for name in inner]
            if key == "evidence"
            else _with_sources(inner, sources)
            for key, inner in value.items()
        }
    return [_with_sources(inner, sources) for inner in value] if isinstance(value, list) else value


_LEFT_OUT = "This profile is left out."


def _files(folder: Path | None) -> list[Path]:
    try:
        return sorted(p for p in folder.glob("*.md") if not p.name.startswith("_"))[:100] if folder else []
    except OSError:
        return []


def _body(text: str, first_line: int, file: str, facts: Facts) -> tuple[dict[str, str], tuple[Gotcha, ...]]:
    lines = text.splitlines()
    headings = [(i, line[3:].strip()) for i, line in enumerate(lines) if line.startswith("## ")]
    wanted = list(_HEADINGS)
    for place, (index, heading) in enumerate(headings):
        if place >= len(wanted) or heading != wanted[place]:
            next_one = f"## {wanted[place]}" if place < len(wanted) else "no further section"
            raise problem(file, first_line + index, f"expected {next_one} here.", means=_LEFT_OUT)
    if len(headings) < len(wanted):
        raise problem(file, None, f"lacks the section ## {wanted[len(headings)]}.", means=_LEFT_OUT)
    ends = [index for index, _ in headings[1:]] + [len(lines)]
    sections = {}
    for (start, heading), end in zip(headings, ends, strict=True):
        content = "\n".join(lines[start + 1 : end]).strip()
        if not content:
            raise problem(file, first_line + start, f"## {heading} is empty.", means=_LEFT_OUT)
        sections[heading.partition(". ")[2] or heading] = content
    start = headings[_HEADINGS.index("7. TOP GOTCHAS")][0]
    gotchas = _gotchas(lines[start + 1 : ends[7]], first_line + start + 1, file, facts)
    _named(lines, first_line, file, facts, {gotcha.id for gotcha in gotchas})
    return sections, gotchas


def _named(lines: Sequence[str], first_line: int, file: str, facts: Facts, known: Collection[str]) -> None:
    """Gotchas that the text names are there."""
    name = re.compile(rf"\b{facts.gotcha_prefix}[0-9]{{1,3}}\b")
    for index, line in enumerate(lines):
        missing = [one for one in name.findall(line) if one not in known]
        if missing and not line.startswith("### "):
            what = f"names {missing[0]}, which is no gotcha here."
            raise problem(file, first_line + index, what, means=_LEFT_OUT)


def _gotchas(lines: Sequence[str], first_line: int, file: str, facts: Facts) -> tuple[Gotcha, ...]:
    found: list[Gotcha] = []
    taken = set(facts.retired_gotchas)
    for index, line in enumerate(lines):
        if not line.startswith("### "):
            continue
        match = _GOTCHA.match(line)
        if match is None or not re.fullmatch(facts.gotcha_prefix + r"\d+", match[1]):
            what = f"a gotcha is headed ### {facts.gotcha_prefix}1 · What happens."
            raise problem(file, first_line + index, what, means=_LEFT_OUT)
        if match[1] in taken:
            what = f"{match[1]} is already taken or retired; ids are never used again."
            raise problem(file, first_line + index, what, means=_LEFT_OUT)
        taken.add(match[1])
        rest = lines[index + 1 :]
        end = next((i for i, after in enumerate(rest) if after.startswith("### ")), len(rest))
        found.append(Gotcha(match[1], match[2], "\n".join(rest[:end]).strip()))
    if not found:
        raise problem(file, first_line, "no gotcha is headed ### ID · title.", means=_LEFT_OUT)
    return tuple(found)

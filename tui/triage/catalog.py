"""The catalog of faults: the shipped files and then the operator's own, each checked on its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tui.model.failure import Failure
from tui.model.front_matter import complaint, parts
from tui.model.problems import problem, read_user_file
from tui.model.yaml_map import Path as KeyPath
from tui.model.yaml_map import load_yaml
from tui.triage.needles import SHORTEST, required
from tui.triage.readers import READERS
from tui.triage.schema import Front

SHIPPED = Path(__file__).parent / "catalog"
SECTIONS = ("Symptom", "Root cause", "Fix", "Confirm")
OWN_PREFIX = "x_"

_LEFT_OUT = "This entry is left out."
_CAP_BYTES = 128 << 10
_CAP_FILES = 500


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the catalog.

    Attributes:
        sections: plain words by heading, in the order of `SECTIONS`.
        file: its name as problems give it; `lines` has the line of each key of the front matter.
        own: whether it is the operator's.
    """

    front: Front
    sections: Mapping[str, str]
    file: str
    lines: Mapping[KeyPath, int]
    own: bool = False

    @property
    def id(self) -> str:
        return self.front.id

    @property
    def diagnoses(self) -> bool:
        """Whether any rule can find it; otherwise it is knowledge only."""
        return bool(self.front.rules)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All entries that could be read, by id, and what was wrong with the others."""

    entries: Mapping[str, Entry]
    problems: tuple[Failure, ...] = ()

    def without_rule(self, cls: str, name: str) -> Catalog:
        """The same catalog less one rule, to see what that rule is there for."""
        entry = self.entries[cls]
        rules = tuple(rule for rule in entry.front.rules if rule.name != name)
        front = entry.front.model_copy(update={"rules": rules})
        changed = Entry(front, entry.sections, entry.file, entry.lines, entry.own)
        return Catalog({**self.entries, cls: changed}, self.problems)


def load(own: Path | None = None, shipped: Path = SHIPPED) -> Catalog:
    """Read every ``*.md`` of the shipped catalog and of the operator's folder. Never raises.

    An operator's entry may add a class ``x_…`` or replace a shipped entry of the same id; a bad file is
    left out with its file and line, and the shipped one holds.
    """
    entries: dict[str, Entry] = {}
    problems: list[Failure] = []
    for folder, is_own in ((shipped, False), (own, True)):
        for path in _files(folder):
            try:
                text = read_user_file(path, cap=_CAP_BYTES, means=_LEFT_OUT)
                if text is None:
                    continue
                entry = read(text, f"{path.parent.name}/{path.name}", own=is_own)
                if is_own and entry.id not in entries and not entry.id.startswith(OWN_PREFIX):
                    what = f"a class of your own begins with {OWN_PREFIX}."
                    raise problem(entry.file, entry.lines.get(("id",)), what, means=_LEFT_OUT)
                entries[entry.id] = entry
            except Failure as failure:
                problems.append(failure)
    return Catalog(entries, tuple(problems))


def read(text: str, file: str, *, own: bool = False) -> Entry:
    """Check one entry. Raises Failure with the first thing that is wrong and its line."""
    front, body, body_line = parts(text, file, "a catalog entry", means=_LEFT_OUT)
    data, lines = load_yaml(front, file, first_line=2)
    try:
        checked = Front.model_validate(data)
    except ValidationError as error:
        raise complaint(error, file, lines, means=_LEFT_OUT) from None
    if checked.id != Path(file).stem:
        what = f"id is {checked.id}, the file's name says otherwise."
        raise problem(file, lines.get(("id",)), what, means=_LEFT_OUT)
    _check_rules(checked, file, lines)
    return Entry(checked, _body(body, body_line, file), file, lines, own)


def _check_rules(front: Front, file: str, lines: Mapping[KeyPath, int]) -> None:
    """What the schema alone cannot know: which readers there are, and that whole logs can be searched."""
    for at, rule in enumerate(front.rules):
        if rule.reader is not None and rule.reader not in READERS:
            path: KeyPath = ("rules", at, "reader")
            raise problem(
                file, lines.get(path), f"rules.{at}.reader: there is no {rule.reader}.", means=_LEFT_OUT
            )
        for place, pattern in enumerate(rule.match):
            if "log" in rule.reads and required(pattern) is None:
                path = ("rules", at, "match", place)
                what = f"rules.{at}.match.{place}: needs a fixed word of {SHORTEST} letters."
                raise problem(file, lines.get(path), what, means=_LEFT_OUT)


def _body(text: str, first_line: int, file: str) -> dict[str, str]:
    """The sections by heading; each must be there, in order, and say something."""
    pieces = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    found: dict[str, str] = {}
    line = first_line + pieces[0].count("\n")
    for place, (heading, content) in enumerate(zip(pieces[1::2], pieces[2::2], strict=True)):
        wanted = SECTIONS[place] if place < len(SECTIONS) else None
        if heading.strip() != wanted:
            expected = f"## {wanted}" if wanted else "no further section"
            raise problem(file, line, f"expected {expected} here.", means=_LEFT_OUT)
        if not content.strip():
            raise problem(file, line, f"## {wanted} is empty.", means=_LEFT_OUT)
        found[heading.strip()] = content.strip()
        line += content.count("\n")
    if len(found) < len(SECTIONS):
        raise problem(file, None, f"lacks the section ## {SECTIONS[len(found)]}.", means=_LEFT_OUT)
    return found


def _files(folder: Path | None) -> list[Path]:
    try:
        found = sorted(p for p in folder.glob("*.md") if not p.name.startswith("_")) if folder else []
    except OSError:
        return []
    return found[:_CAP_FILES]

"""Everything that `rgt gotchas` can find, gathered from catalog and profiles and kept ready between calls.

Reading 300 files through YAML and their schemas takes longer than a person likes to wait for an answer; what
came of it is kept in the state directory as JSON, for as long as no file has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tui
from tui.fleet.paths import Paths, shipped
from tui.model.text import safe
from tui.triage import glossary, knowledge, words
from tui.triage.knowledge import Document, Index

if TYPE_CHECKING:
    from tui.fleet.profiles import Profiles
    from tui.triage.catalog import Catalog, Entry

KEPT = "gotchas.json"
_CATALOG = Path(knowledge.__file__).with_name("catalog")
_CODE = (
    glossary.FILE,
    *(Path(str(module.__file__)) for module in (words, glossary, knowledge)),
    Path(__file__),
)
_CAP_BYTES = 32 << 20
_ANSWER = 220
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that is known, as it is searched and as it is read.

    Attributes:
        answer: what to do, in a sentence or two.
        page: the whole of it, as lines of Markdown.
    """

    document: Document
    answer: str
    page: tuple[str, ...]

    @property
    def id(self) -> str:
        return self.document.id


@dataclass(frozen=True, slots=True)
class Known:
    """All pieces by their id in small letters, ready to be searched.

    Attributes:
        platforms: ids of the profiles.
        problems: one line for each file that was left out.
    """

    pieces: Mapping[str, Piece]
    index: Index
    platforms: tuple[str, ...]
    problems: tuple[str, ...]


def known(where: Paths) -> Known:
    """What is known, from the kept copy where no file changed since. Never raises for a bad file."""
    mark = _mark((_CATALOG, where.gotchas, shipped("profiles"), where.profiles))
    kept = where.state / KEPT
    found = _read(kept, mark)
    if found is None:
        found = _gathered(where)
        _keep(kept, mark, found)
    return found


def _gathered(where: Paths) -> Known:
    from tui.fleet import profiles
    from tui.triage import catalog

    entries, platforms = catalog.load(where.gotchas), profiles.load(shipped("profiles"), where.profiles)
    found = pieces(entries, platforms)
    problems = tuple(problem.line for problem in (*entries.problems, *platforms.problems))
    return Known(found, Index(one.document for one in found.values()), tuple(platforms.by_id), problems)


# -- pieces ------------------------------------------------------------------------------------------------


def pieces(catalog: Catalog, profiles: Profiles) -> dict[str, Piece]:
    """Everything that can be found, by its id in small letters."""
    found = [_of_entry(entry) for entry in catalog.entries.values()]
    for profile in profiles.by_id.values():
        about = f"{profile.facts.id} {profile.facts.title}"
        for one in profile.gotchas:
            document = Document(
                one.id, one.title, profile.file, about, "", one.text, platform=profile.facts.id
            )
            page = (f"Platform: {profile.facts.title}", "", *one.text.splitlines())
            found.append(Piece(document, _first_sentences(one.text), page))
    return {piece.id.casefold(): piece for piece in found}


def _of_entry(entry: Entry) -> Piece:
    front, said = entry.front, entry.sections
    body = "\n\n".join(said[name] for name in ("Root cause", "Fix", "Confirm"))
    steps = "\n".join(f"{step.text} {step.command or ''}" for step in front.remedy)
    document = Document(
        id=front.id,
        title=front.title,
        source=entry.file,
        words=" , ".join(front.words),
        symptom=said["Symptom"],
        body=f"{front.group} {body}\n{steps}",
        known_by_log=entry.diagnoses,
    )
    return Piece(document, _first_sentences(said["Fix"]), tuple(_page(entry)))


def _page(entry: Entry) -> Iterator[str]:
    for heading, content in entry.sections.items():
        yield f"## {heading}"
        yield from content.splitlines()
        yield ""
    yield "## Steps"
    for step in entry.front.remedy:
        yield f"- L{step.level} {step.text}"
        if step.command:
            yield f"    $ {step.command}"
    yield ""
    yield f"Same configuration again: {entry.front.retry}"
    for source in entry.front.sources:
        yield f"Source: {source.from_} ({source.verified})"


def _first_sentences(text: str) -> str:
    """As many whole sentences of the first paragraph as fit; at least one."""
    sentences = _SENTENCE_END.split(" ".join(text.split("\n\n")[0].split()))
    said = sentences[0]
    for more in sentences[1:]:
        if len(said) + 1 + len(more) > _ANSWER:
            break
        said = f"{said} {more}"
    return said


# -- the kept copy -----------------------------------------------------------------------------------------


def _mark(folders: Iterable[Path]) -> str:
    """Changes with every file that is read, and with the program that reads them."""
    digest = hashlib.sha256(tui.__version__.encode())
    for path in (*_CODE, *(path for folder in folders for path in _listed(folder))):
        try:
            status = path.stat()
        except OSError:
            continue
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.md"))
    except OSError:
        return []


def _read(kept: Path, mark: str) -> Known | None:
    """The kept copy; None where there is none, it is of other files, or is damaged."""
    try:
        with kept.open("rb") as file:
            data = json.loads(file.read(_CAP_BYTES))
        return _from_plain(data) if data["mark"] == mark else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _from_plain(data: Mapping[str, Any]) -> Known:
    found = [Piece(Document(*row), answer, tuple(page)) for row, answer, page in data["pieces"]]
    index = Index.from_plain((one.document for one in found), data["postings"])
    by_id = {one.id.casefold(): one for one in found}
    return Known(by_id, index, tuple(data["platforms"]), tuple(safe(line) for line in data["problems"]))


def _keep(kept: Path, mark: str, found: Known) -> None:
    """Write the copy beside and rename it; without it the next call is only slower."""
    rows: Sequence[object] = [(astuple(p.document), p.answer, p.page) for p in found.pieces.values()]
    data = {
        "mark": mark,
        "pieces": rows,
        "postings": found.index.plain(),
        "platforms": found.platforms,
        "problems": found.problems,
    }
    beside = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            beside.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
            beside.replace(kept)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, ValueError):
        return

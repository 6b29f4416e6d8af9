"""The compact index of a run: what is usable and how surely, first; then what is residual. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from tui.checkpoints.codes import CODES
from tui.custody.statement import consumer_of, provider_of, public_uri
from tui.model.custody import (
    CheckpointFinding,
    CopyReport,
    DigestReport,
    HashedFile,
    LoadReport,
    MetricFinding,
    MetricReport,
    ReadbackReport,
    Role,
    Roster,
    Sha256,
)

Status = Literal["listed", "hashed", "copied", "read back", "loaded", "refused"]
RANK: tuple[Status, ...] = ("loaded", "read back", "copied", "hashed", "listed", "refused")
"""Surest first. ``loaded`` is said of checkpoints only; anything else is at best read back."""


@dataclass(frozen=True, slots=True)
class Links:
    """The newest record of each step, None where there is none."""

    roster: Roster
    digests: DigestReport | None = None
    copied: CopyReport | None = None
    readback: ReadbackReport | None = None
    load: LoadReport | None = None
    metrics: MetricReport | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One artifact: what is known of its bytes, and where they are."""

    path: str
    role: Role
    size: int
    sha256: Sha256 | None
    status: Status
    uri: str | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Index:
    """A run's evidence.

    Attributes:
        copy: the durable copy, as ``(name, value)``; empty where there is none.
        residual: what is left to decide, to do or to know, one sentence each.
    """

    run: str
    items: tuple[Item, ...]
    metrics: tuple[MetricFinding, ...]
    copy: tuple[tuple[str, str], ...]
    residual: tuple[str, ...]


def index(links: Links) -> Index:
    """The index of what the links say. A link that does not belong to the one before it says nothing."""
    good, broken = _belonging(links)
    items = sorted(_items(good), key=lambda one: (RANK.index(one.status), one.role, one.path))
    return Index(
        run=links.roster.run,
        items=tuple(items),
        metrics=good.metrics.metrics if good.metrics else (),
        copy=tuple(_copy(good)),
        residual=(*broken, *_residual(links, good)),
    )


def _belonging(links: Links) -> tuple[Links, list[str]]:
    """The links up to the first one that is missing or was made from another one."""
    names = ("digests", "copied", "readback", "load", "metrics")
    said = (
        links.digests and links.digests.roster,
        links.copied and links.copied.digests,
        links.readback and links.readback.copy_report,
        links.load and links.load.readback,
        links.metrics and links.metrics.load,
    )
    kept: dict[str, object] = {}
    before = links.roster.digest
    for name, named in zip(names, said, strict=True):
        link = getattr(links, name)
        if link is None:
            return Links(links.roster, **kept), [f"step missing: {name}"]  # type: ignore[arg-type]
        if named != before:
            return Links(links.roster, **kept), [  # type: ignore[arg-type]
                f"step out of date: {name} was made before the step it stands on; make it again"
            ]
        kept[name], before = link, link.digest
    return Links(links.roster, **kept), []  # type: ignore[arg-type]


def _items(links: Links) -> Iterator[Item]:
    hashed = {one.path: one for one in links.digests.files} if links.digests else {}
    copied = _same(hashed, links.copied)
    read = _same(hashed, links.readback)
    wrong = set(links.readback.missing + links.readback.different) if links.readback else set()
    findings = {one.path: one for one in links.load.checkpoints} if links.load else {}
    for one in links.roster.artifacts:
        status: Status = "listed"
        detail = ""
        if one.path in hashed:
            status = "hashed"
        if one.path in copied:
            status = "copied"
        if one.path in read and one.path in copied:
            status = "read back"
        if one.path in wrong:
            status, detail = "refused", "the copy is not what was hashed"
        finding = _finding(one.path, findings)
        if finding is not None and status == "read back":
            status, detail = _loaded(finding)
        yield Item(
            path=one.path,
            role=one.role,
            size=one.size,
            sha256=hashed[one.path].sha256 if one.path in hashed else None,
            status=status,
            uri=public_uri(links.copied.destination) if links.copied and one.path in copied else None,
            detail=detail,
        )


def _same(hashed: Mapping[str, HashedFile], report: CopyReport | ReadbackReport | None) -> set[str]:
    """Paths whose bytes in a report are the ones that were hashed on the box."""
    if report is None:
        return set()
    return {
        one.path
        for one in report.files
        if (was := hashed.get(one.path)) is not None and (was.size, was.sha256) == (one.size, one.sha256)
    }


def _finding(path: str, findings: Mapping[str, CheckpointFinding]) -> CheckpointFinding | None:
    """What is said of a file: by itself, as part of a folder judged as one, or by the index beside it."""
    here = PurePosixPath(path)
    for name in (path, *map(str, here.parents)):
        if name in findings:
            return findings[name]
    beside = (
        f for n, f in findings.items() if n.endswith(".index.json") and PurePosixPath(n).parent == here.parent
    )
    return next(beside, None) if here.suffix in (".safetensors", ".bin") else None


def _loaded(finding: CheckpointFinding) -> tuple[Status, str]:
    told = f"{finding.verdict} ({finding.code})" if finding.code else finding.verdict
    if finding.verdict == "ok":
        return "loaded", f"{finding.tensors} tensors" if finding.tensors is not None else ""
    code = CODES.get(finding.code)
    if finding.verdict == "ignore" or (code is not None and code.effect == "gap"):
        return "read back", told
    return "refused", told


def _copy(links: Links) -> Iterator[tuple[str, str]]:
    if links.copied is None or links.digests is None:
        return
    yield "uri", public_uri(links.copied.destination)
    yield "provider", provider_of(links.copied.destination)
    yield "manifest", links.digests.manifest
    yield "bytes", str(links.copied.size)
    yield "copied", links.copied.finished_at
    if links.readback is not None:
        yield "read back", links.readback.finished_at
        yield "consumer", consumer_of(links.readback)


def _residual(links: Links, good: Links) -> Iterator[str]:
    for group in links.roster.leftovers:
        word = {"scrap": "scrapped", "keep": "kept", None: "undecided"}[group.decision]
        why = f": {group.reason}" if group.reason else ""
        yield f"{word}: {group.title}, {group.count} files, {group.size} bytes{why}"
    for writer in links.roster.writers:
        yield f"still written: {writer.path} ({writer.evidence})"
    reports = (good.roster, good.digests, good.copied, good.readback, good.load, good.metrics)
    for report in reports:
        for refused in report.refusals if report else ():
            where = f" {refused.path}" if refused.path else ""
            yield f"refused: {refused.code}{where}: {refused.detail} {refused.clears}"
        for one in getattr(report, "gaps", ()):
            why = f" ({one.reason})" if one.reason else ""
            yield f"gap: {one.code}: {one.detail}{why}"

"""One receipt: what it says, and the in-toto Statement (v1) it is written as.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md: subjects are matched by digest alone.
The form is fixed for ever: what version 1 wrote must be readable by every later rgt.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from tui.model.custody import (
    CopyReport,
    DigestReport,
    Gap,
    Moment,
    Place,
    ReadbackReport,
    Record,
    Refusal,
    Sha256,
    Victim,
    canonical,
)

STATEMENT = "https://in-toto.io/Statement/v1"
RECEIPT_V1 = "urn:remote-gpu-trainer:receipt:v1"

CAP_BYTES = 64 * 1024
"""A receipt is a thin record. Rosters, logs and reports are pointed at, never copied into it."""

_SIZES = ((40, 400), (10, 200), (3, 80))
"""Items told one by one, and characters of each sentence; the first pair that is thin enough holds."""

Mutability = Literal["immutable", "mutable", "unknown"]
Result = Literal[
    "passed", "refused", "recorded", "proven", "unproven", "attested", "already-gone", "already-stopped"
]


class Evidence(Record):
    """A pointer to bytes that matter, and who saw them last.

    Attributes:
        uri: where they lie; never with a password or token in it.
        provider: who keeps them: ``this computer``, a box's name, an rclone remote.
        verified_at: when they were last read and agreed; None: never.
        consumer: who read them back, and how independent and cold that was.
    """

    uri: str
    sha256: Sha256 | None
    size: int | None
    provider: str
    mutability: Mutability
    verified_at: Moment | None = None
    consumer: str = ""


class Subject(Record):
    """What a receipt is about, by digest: a record of the chain, or the machine itself."""

    name: str
    sha256: Sha256


class Receipt(Record):
    """One act or observation: decision, target, result, hashes and pointers.

    Attributes:
        act: ``roster``, ``copy-report``, ``hold``, ``stop``, ``destroy`` …
        detail: one sentence.
    """

    act: str
    result: Result
    at: Moment
    subjects: tuple[Subject, ...]
    victim: Victim | None = None
    run: str | None = None
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """A receipt as it lies in the ledger. `digest` is of the file's bytes."""

    number: int
    prev: Sha256 | None
    digest: Sha256
    receipt: Receipt


def write(receipt: Receipt, number: int, prev: Sha256 | None) -> bytes:
    """The bytes of a receipt in canonical JSON.

    Args:
        prev: digest of the bytes of the receipt before it; None for the first.

    Raises:
        ValueError: it is longer than a receipt may be.
    """
    for most, text in _SIZES:
        raw = _statement(_thin(receipt, most, text), number, prev)
        if len(raw) <= CAP_BYTES:
            return raw
    raise ValueError(f"a receipt of {len(raw)} bytes; {CAP_BYTES} is the most")


def _statement(receipt: Receipt, number: int, prev: Sha256 | None) -> bytes:
    body = receipt.model_dump(mode="python")
    subjects = [
        {"name": s["name"], "digest": {"sha256": s["sha256"].removeprefix("sha256:")}}
        for s in body.pop("subjects")
    ]
    predicate = {"number": number, "prev": prev, **body}
    return canonical(
        {"_type": STATEMENT, "subject": subjects, "predicateType": RECEIPT_V1, "predicate": predicate}
    )


def read(raw: bytes) -> Read:
    """The receipt whose bytes these are.

    Raises:
        ValueError: they are none, with the reason.
    """
    if len(raw) > CAP_BYTES:
        raise ValueError("is longer than a receipt may be")
    try:
        value = json.loads(raw)
        same = canonical(value) == raw
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not same:
        raise ValueError("is not in canonical form")
    if not isinstance(value, dict) or value.get("_type") != STATEMENT:
        raise ValueError("is no in-toto Statement")
    if value.get("predicateType") != RECEIPT_V1:
        raise ValueError("is of a kind that this rgt does not know")
    return _version_1(value, "sha256:" + hashlib.sha256(raw).hexdigest())


def _version_1(value: dict[str, Any], digest: Sha256) -> Read:
    try:
        body = dict(value["predicate"])
        number, prev = body.pop("number"), body.pop("prev")
        body["subjects"] = [
            {"name": s["name"], "sha256": "sha256:" + s["digest"]["sha256"]} for s in value["subject"]
        ]
        receipt = Receipt.model_validate(_frozen(body))  # fields that came later have defaults
    except (KeyError, TypeError, AttributeError, ValueError):
        raise ValueError("lacks what a receipt holds") from None
    if type(number) is not int or number < 1 or not (prev is None or _is_digest(prev)):
        raise ValueError("lacks its place in the chain")
    return Read(number, prev, digest, receipt)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", value) is not None


def _frozen(value: Any) -> Any:
    """JSON knows no tuples, and records know no lists."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return {key: _frozen(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _thin(receipt: Receipt, most: int, text: int) -> Receipt:
    """The receipt with long lists counted instead of told, and sentences cut."""
    return receipt.model_copy(
        update={
            "subjects": receipt.subjects[:most],
            "detail": _short(receipt.detail, 4 * text),
            "evidence": receipt.evidence[:most],
            "refusals": tuple(_cut(one, text) for one in _counted(receipt.refusals, most)),
            "gaps": tuple(_cut(one, text) for one in _counted(receipt.gaps, most)),
        }
    )


Told = TypeVar("Told", Refusal, Gap)


def _counted(items: tuple[Told, ...], most: int) -> tuple[Told, ...]:
    if len(items) <= most:
        return items
    more = f"and {len(items) - most + 1} more, of this kind and others"
    return items[: most - 1] + (items[most - 1].model_copy(update={"detail": more}),)  # noqa: RUF005 - typing


def _cut(one: Told, text: int) -> Told:
    """A record with every sentence in it cut; its code stays whole."""
    cut = {
        key: _short(value, text)
        for key, value in one.model_dump().items()
        if isinstance(value, str) and key != "code"
    }
    return one.model_copy(update=cut)


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


_CONNECTION = re.compile(r"""^(:?[^,:/]+),(?:[^:"']|"[^"]*"|'[^']*')*:""")
_URL_LOGIN = re.compile(r"(://)[^/@\s]*@")


def public_uri(place: Place) -> str:
    """Where a copy lies, without what an rclone connection string or a URL may hold in secrets."""
    path = _URL_LOGIN.sub(r"\1…@", place.path)
    if place.kind == "rclone":
        path = _CONNECTION.sub(r"\1,…:", path)
    return place.model_copy(update={"path": path}).uri


def provider_of(place: Place) -> str:
    """Who keeps the bytes of a place."""
    if place.kind == "path":
        return "this computer"
    if place.kind == "box":
        return place.box or "a box"
    return "rclone remote " + re.split("[,:]", place.path.removeprefix(":"), maxsplit=1)[0]


def copy_evidence(
    digests: DigestReport, copied: CopyReport, readback: ReadbackReport | None = None
) -> Evidence:
    """The durable copy as a pointer: its manifest stands for all of its files."""
    return Evidence(
        uri=public_uri(copied.destination),
        sha256=digests.manifest,
        size=copied.size,
        provider=provider_of(copied.destination),
        mutability="mutable",
        verified_at=readback.finished_at if readback and not readback.refusals else copied.finished_at,
        consumer="" if readback is None else consumer_of(readback),
    )


def consumer_of(readback: ReadbackReport) -> str:
    """Who read the copy back and how much that says, with the digest of the report."""
    cold = "cold" if readback.cold else "cache not proven cold"
    place = public_uri(readback.consumer)
    return f"{place} ({readback.independence}, {cold}, {len(readback.files)} files, {readback.digest})"


def about(record: Record, name: str) -> Subject:
    """A record of the chain as the subject of a receipt."""
    return Subject(name=name, sha256=record.digest)

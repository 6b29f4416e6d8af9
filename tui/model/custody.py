"""The chain of custody: each report is made from the one before and carries its digest.

`Roster → DigestReport → CopyReport → ReadbackReport → LoadReport → MetricReport → Approval → Outcome`.
Paths are text with surrogate escapes, so that every byte of a name survives; JSON is ASCII for that reason.
Not imported by anything the first frame needs: this module brings pydantic.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import BaseModel, ConfigDict, StringConstraints

Sha256 = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""A typed digest. Nothing else counts as one: no etag, no md5, no bare hex."""

Moment = Annotated[
    str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")
]
"""UTC, to the second."""

Verb = Literal["stop", "destroy"]
Role = Literal["checkpoint", "metrics", "predictions", "log", "config", "environment", "other"]


class Record(BaseModel):
    """One link of the chain: frozen, and nothing in it that the model does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    @property
    def digest(self) -> Sha256:
        """SHA-256 over the canonical JSON of everything in this record."""
        return "sha256:" + hashlib.sha256(self.canonical).hexdigest()

    @property
    def canonical(self) -> bytes:
        """This record in the one form that is stored and hashed."""
        return canonical(self.model_dump(mode="python"))

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """The record whose canonical form `raw` is.

        pydantic's own JSON reader refuses lone surrogates, which stand for bytes that are no text.

        Raises:
            ValueError: it is no such record, or not in canonical form (pydantic's ValidationError is one).
        """
        try:
            record = cls.model_validate(_tuples(json.loads(raw, parse_float=_no_float)))
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if record.canonical != raw:
            raise ValueError("not in canonical form")
        return record


def canonical(value: Any) -> bytes:
    """The one JSON form that digests are taken of: sorted keys, no blanks, ASCII, no floats but integers."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def _tuples(value: Any) -> Any:
    """JSON knows no tuples, and frozen records know no lists."""
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    return {key: _tuples(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _no_float(text: str) -> NoReturn:
    raise ValueError("a record holds no floating-point numbers")


class Refusal(Record):
    """Why a step does not pass. `code` is stable; `clears` says what would clear it."""

    code: str
    detail: str
    path: str | None = None
    clears: str = ""


class Gap(Record):
    """Missing paperwork: it warns and is recorded, and does not stop the operator.

    Attributes:
        reason: why the operator went on, in his words.
    """

    code: str
    detail: str
    reason: str = ""


class Victim(Record):
    """The one machine an act is about, by the provider's own id."""

    name: str
    platform: str
    instance_id: str | None = None
    account: str | None = None
    endpoint: str = ""
    host_key: str | None = None
    boot_id: str | None = None


class Artifact(Record):
    """One file of a run that must survive. `path` is relative to the roster's root."""

    path: str
    size: int
    role: Role
    modified_ns: int | None = None
    generation: str | None = None


class Leftover(Record):
    """Files on a tier the verb destroys that are not on the roster, as one group.

    Attributes:
        decision: made by the operator; None blocks.
    """

    group: str
    title: str
    count: int
    size: int
    examples: tuple[str, ...]
    checkpoint_like: bool = False
    decision: Literal["keep", "scrap"] | None = None
    reason: str = ""


class Tier(Record):
    """One storage tier of the box. `survives` is None where nobody can say."""

    path: str
    survives: bool | None
    told_by: str
    bills_on: bool | None = None


class Writer(Record):
    """Evidence that somebody still writes to an artifact."""

    path: str
    evidence: str
    pid: int | None = None


class Roster(Record):
    """The exact artifacts of a run, and everything else that the verb would destroy."""

    run: str
    victim: Victim
    verb: Verb
    root: str
    artifacts: tuple[Artifact, ...]
    leftovers: tuple[Leftover, ...]
    tiers: tuple[Tier, ...]
    writers: tuple[Writer, ...]
    declared: tuple[tuple[Role, int], ...] = ()  # how many of each role the run says it has
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()
    taken_at: Moment


class HashedFile(Record):
    """A file whose bytes were read and hashed. `tool` names what did it."""

    path: str
    size: int
    sha256: Sha256
    modified_ns: int | None = None
    tool: str = ""


class DigestReport(Record):
    """Every artifact hashed on the box. `manifest` is the digest of the manifest file's own bytes."""

    roster: Sha256
    files: tuple[HashedFile, ...]
    manifest: Sha256
    refusals: tuple[Refusal, ...] = ()
    taken_at: Moment


class Place(Record):
    """Where bytes lie. `device` identifies the disk, to tell two places on one device apart from two."""

    kind: Literal["path", "box", "rclone"]
    path: str
    box: str | None = None
    device: str | None = None

    @property
    def uri(self) -> str:
        """As it is typed on the command line."""
        if self.kind == "path":
            return self.path
        return f"{self.box}:{self.path}" if self.kind == "box" else f"rclone:{self.path}"


class KeyAdmission(Record):
    """A key made for one transfer between two boxes, and let in for that alone.

    Attributes:
        fingerprint: ``SHA256:…`` of the public key; the private one never left `source`.
        removed_at: None: it could not be seen that it was removed.
    """

    fingerprint: str
    source: str
    target: str
    admitted_at: Moment
    removed_at: Moment | None = None


class CopyReport(Record):
    """A durable copy whose every file was hashed while it was written and agrees with the box.

    Attributes:
        files: as the roster names them.
        bag: everything that lies at the destination, by its path there; files with names that a portable
            folder can't carry are in a tar of it. Empty when the copy was not finished.
        resumed: bytes that were there from an earlier attempt and were hashed again.
    """

    digests: Sha256
    destination: Place
    route: Literal["through this computer", "direct", "rclone on the box"]
    files: tuple[HashedFile, ...]
    size: int
    resumed: int = 0
    bag: tuple[HashedFile, ...] = ()
    admissions: tuple[KeyAdmission, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()
    finished_at: Moment


class ReadbackReport(Record):
    """The durable copy read back, cold, by a consumer that is not the producer."""

    copy_report: Sha256
    consumer: Place
    independence: Literal["independent", "same-device"]
    cold: bool  # False is recorded as the gap `cache-not-proven-cold`
    files: tuple[HashedFile, ...]
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()
    finished_at: Moment


class CheckpointFinding(Record):
    """What one checkpoint of the readback is. `verdict` is a word of the checkpoints room."""

    path: str
    verdict: str
    code: str = ""
    detail: str = ""
    tensors: int | None = None
    elements: int | None = None
    nonfinite: int | None = None


class LoadReport(Record):
    """Every checkpoint loaded safely, or named for what it is."""

    readback: Sha256
    checkpoints: tuple[CheckpointFinding, ...]
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()
    finished_at: Moment


class MetricFinding(Record):
    """One reported figure beside its recomputation; figures are decimal text, never rounded twice."""

    name: str
    reported: str | None
    recomputed: str | None
    direction: Literal["up", "down"] | None
    verdict: str
    population: int | None = None


class MetricReport(Record):
    """Every reported metric recomputed over the exact population."""

    load: Sha256
    metrics: tuple[MetricFinding, ...]
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()
    finished_at: Moment


class Proof(Record):
    """The whole chain for one victim and one verb. Its digest is what an approval is bound to.

    Attributes:
        copied_at: when the last byte was pulled.
    """

    run: str
    victim: Victim
    verb: Verb
    roster: Sha256
    digests: Sha256
    copied: Sha256
    readback: Sha256
    load: Sha256
    metrics: Sha256
    destroys: tuple[str, ...]
    survives: tuple[str, ...]
    bills_afterwards: str  # "0.00 USD/h", "? USD/h"; unknown is never 0
    spent: str
    copied_at: Moment
    gaps: tuple[Gap, ...] = ()
    made_at: Moment
    expires_at: Moment


class Approval(Record):
    """The operator typed the phrase of exactly this proof. Used once, and only before it expires."""

    proof: Sha256
    phrase: str
    given_at: Moment
    expires_at: Moment
    nonce: str


class Witness(Record):
    """One independent look after the act: who was asked, when, and what it said."""

    who: str
    said: Literal["gone", "stopped", "there", "unknown"]
    detail: str
    at: Moment


class Outcome(Record):
    """What became of it.

    ``proven``: two witnesses agree, repeatedly. ``unproven``: asked for, not seen. ``attested``: by the
    operator's word, where no control plane can be asked. ``already-gone``, ``already-stopped``: it was so
    before the verb, which was not sent. ``refused``: not sent, or the platform said no.
    """

    approval: Sha256 | None
    victim: Victim
    verb: Verb
    kind: Literal["proven", "unproven", "attested", "already-gone", "already-stopped", "refused"]
    witnesses: tuple[Witness, ...]
    detail: str
    check_by_hand: str = ""
    refusals: tuple[Refusal, ...] = ()
    gaps: tuple[Gap, ...] = ()
    finished_at: Moment

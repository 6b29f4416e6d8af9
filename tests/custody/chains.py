"""A whole good chain for tests, link by link; each link can be changed, and those after it then follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tui.custody.moments import moment
from tui.custody.proof import Chain, Money, make_proof
from tui.model.custody import (
    Artifact,
    CheckpointFinding,
    CopyReport,
    DigestReport,
    HashedFile,
    Leftover,
    LoadReport,
    MetricFinding,
    MetricReport,
    Place,
    Proof,
    ReadbackReport,
    Roster,
    Tier,
    Verb,
    Victim,
)

NOW = 1_796_000_000.0
VICTIM = Victim(
    name="done-01",
    platform="vast",
    instance_id="inst-77",
    account="acct-1",
    endpoint="root@10.0.0.7:22",
    host_key="SHA256:" + "A" * 43,
)
MONEY = Money(spent="12.40 USD", bills_afterwards="0.00 USD/h")
FILES = {"ckpt/best.safetensors": (b"weights", "checkpoint"), "test/results.csv": (b"a,b", "predictions")}


def sha(data: bytes) -> str:
    import hashlib

    return "sha256:" + hashlib.sha256(data).hexdigest()


Change = Callable[[Any], Any]


def changed(**values: Any) -> Change:
    """A change of some fields of a link."""
    return lambda record: record.model_copy(update=values)


@dataclass
class Maker:
    """Makes a chain. `changes` has functions that alter a link before the next one is made from it."""

    changes: dict[str, Change] = field(default_factory=dict)
    verb: Verb = "destroy"
    victim: Victim = VICTIM
    at: float = NOW
    files: dict[str, tuple[bytes, str]] = field(default_factory=lambda: dict(FILES))

    def chain(self) -> Chain:
        hashed = tuple(
            HashedFile(path=path, size=len(data), sha256=sha(data)) for path, (data, _) in self.files.items()
        )
        at = moment(self.at - 60)
        roster: Roster = self._link("roster", self._roster(at))
        digests: DigestReport = self._link(
            "digests",
            DigestReport(roster=roster.digest, files=hashed, manifest=sha(b"manifest"), taken_at=at),
        )
        copied: CopyReport = self._link(
            "copied",
            CopyReport(
                digests=digests.digest,
                destination=Place(kind="path", path="/vault/r1"),
                route="through this computer",
                files=hashed,
                size=sum(one.size for one in hashed),
                finished_at=at,
            ),
        )
        readback: ReadbackReport = self._link(
            "readback",
            ReadbackReport(
                copy_report=copied.digest,
                consumer=Place(kind="box", path="/tmp/x", box="other"),
                independence="independent",
                cold=True,
                files=hashed,
                finished_at=at,
            ),
        )
        load: LoadReport = self._link(
            "load",
            LoadReport(
                readback=readback.digest,
                checkpoints=tuple(
                    CheckpointFinding(path=path, verdict="ok")
                    for path, (_, role) in self.files.items()
                    if role == "checkpoint"
                ),
                finished_at=at,
            ),
        )
        metrics: MetricReport = self._link(
            "metrics",
            MetricReport(
                load=load.digest,
                metrics=(
                    MetricFinding(
                        name="f1", reported="0.91", recomputed="0.91", direction="up", verdict="recomputed"
                    ),
                ),
                finished_at=at,
            ),
        )
        return Chain(roster, digests, copied, readback, load, metrics)

    def _roster(self, at: str) -> Roster:
        return Roster(
            run="r1",
            victim=self.victim,
            verb=self.verb,
            root="/data/r1",
            artifacts=tuple(
                Artifact.model_validate({"path": path, "size": len(data), "role": role})
                for path, (data, role) in self.files.items()
            ),
            leftovers=(
                Leftover(group="cache", title="caches", count=3, size=9, examples=("x",), decision="scrap"),
            ),
            tiers=(
                Tier(path="/", survives=False, told_by="profile"),
                Tier(path="/nas", survives=True, told_by="profile"),
            ),
            writers=(),
            taken_at=at,
        )

    def _link(self, name: str, record: Any) -> Any:
        return self.changes[name](record) if name in self.changes else record


def proof_of(chain: Chain, victim: Victim = VICTIM, now: float = NOW) -> Any:
    """What `make_proof` says of a chain."""
    return make_proof(
        chain.roster,
        chain.digests,
        chain.copied,
        chain.readback,
        chain.load,
        chain.metrics,
        victim,
        MONEY,
        now,
    )


def good_proof(chain: Chain | None = None, now: float = NOW, victim: Victim = VICTIM) -> Proof:
    """A proof that stands."""
    proof = proof_of(chain or Maker(victim=victim).chain(), victim, now)
    assert isinstance(proof, Proof), proof
    return proof

"""The chain as its records lie on this computer: whole or not, and whether a proof still stands."""

from __future__ import annotations

from tui.custody.codes import refusal
from tui.custody.proof import Chain
from tui.custody.records import Records, kind_of
from tui.model.custody import (
    CopyReport,
    DigestReport,
    LoadReport,
    MetricReport,
    Proof,
    ReadbackReport,
    Record,
    Refusal,
    Roster,
)

STEPS: tuple[tuple[str, type[Record]], ...] = (
    ("roster", Roster),
    ("digests", DigestReport),
    ("copied", CopyReport),
    ("readback", ReadbackReport),
    ("load", LoadReport),
    ("metrics", MetricReport),
)
"""Names of the links, as `Chain` and `Proof` have them, in order."""


def missing(records: Records) -> tuple[str, ...]:
    """Names of the steps that have no record yet, in order. Raises Failure: a record is damaged."""
    return tuple(name for name, cls in STEPS if records.newest(cls) is None)


def stored_chain(records: Records) -> Chain | None:
    """The newest record of every step, None where one is missing; whether they belong together is not asked.

    Raises:
        Failure: a record is damaged.
    """
    roster, digests = records.newest(Roster), records.newest(DigestReport)
    copied, readback = records.newest(CopyReport), records.newest(ReadbackReport)
    load, metrics = records.newest(LoadReport), records.newest(MetricReport)
    if None in (roster, digests, copied, readback, load, metrics):
        return None
    assert roster and digests and copied and readback and load and metrics
    return Chain(roster, digests, copied, readback, load, metrics)


def superseded(records: Records, proof: Proof) -> tuple[Refusal, ...]:
    """What stands against a proof because a step was made again since: an approval is void at any change.

    Raises:
        Failure: a record is damaged.
    """
    found: list[Refusal] = []
    for name, cls in STEPS:
        newest = records.newest(cls)
        if newest is None or newest.digest != getattr(proof, name):
            found.append(refusal("proof-other", f"The {kind_of(cls)} was made again since."))
    return tuple(found)

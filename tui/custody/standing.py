"""How far the stored chain reaches: every record that stands on the one before, up to the first that fails.

What is on disk is the place where a teardown goes on after kill -9 or a reboot. A record is used again only
while the bytes that it is about are provably unchanged; looking whether they are is not done here.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui.custody.identity import surely_same
from tui.custody.moments import seconds
from tui.custody.preflight import changes
from tui.custody.proof import Chain, checkpoint_passes, metric_passes
from tui.custody.records import Records
from tui.custody.stores.devices import clock_is_ours
from tui.model.custody import (
    CopyReport,
    DigestReport,
    HashedFile,
    LoadReport,
    MetricReport,
    ReadbackReport,
    Roster,
    Verb,
    Victim,
)

_HASHED_BYTES = 1 << 30
"""More than this is not hashed again to see whether a copy is untouched; it is read back anew instead."""


@dataclass(frozen=True, slots=True)
class Stands:
    """The records that hold, in order; None from the first that is missing, refused or of something else."""

    roster: Roster | None = None
    digests: DigestReport | None = None
    copied: CopyReport | None = None
    readback: ReadbackReport | None = None
    load: LoadReport | None = None
    metrics: MetricReport | None = None

    @property
    def chain(self) -> Chain | None:
        """The whole of it."""
        if not (
            self.roster and self.digests and self.copied and self.readback and self.load and self.metrics
        ):
            return None
        return Chain(self.roster, self.digests, self.copied, self.readback, self.load, self.metrics)


def stands(records: Records, victim: Victim, verb: Verb) -> Stands:
    """What of a run's chain stands for this verb on this machine. Raises Failure: a record is damaged."""
    roster = records.newest(Roster)
    if roster is None or roster.verb != verb or roster.refusals or not surely_same(roster.victim, victim):
        return Stands()
    digests = records.newest(DigestReport)
    if digests is None or digests.roster != roster.digest or digests.refusals:
        return Stands(roster)
    copied = records.newest(CopyReport)
    if copied is None or copied.digests != digests.digest or copied.refusals or not copied.bag:
        return Stands(roster, digests)
    readback = records.newest(ReadbackReport)
    if readback is None or readback.copy_report != copied.digest or readback.refusals:
        return Stands(roster, digests, copied)
    load = records.newest(LoadReport)
    if load is None or load.readback != readback.digest or load.refusals:
        return Stands(roster, digests, copied, readback)
    metrics = records.newest(MetricReport)
    if metrics is None or metrics.load != load.digest or metrics.refusals:
        return Stands(roster, digests, copied, readback, load)
    return Stands(roster, digests, copied, readback, load, metrics)


def judged_well(load: LoadReport, metrics: MetricReport) -> bool:
    """Whether nothing in these two stands against a proof."""
    return (
        not (load.refusals or metrics.refusals)
        and all(checkpoint_passes(one) for one in load.checkpoints)
        and all(metric_passes(one) for one in metrics.metrics)
    )


def same_roster(stored: Roster, now: Roster) -> bool:
    """Whether a roster made now says nothing else than the stored one, so that the stored one still holds."""
    was = {one.group: (one.decision, one.reason) for one in stored.leftovers}
    return (
        not now.refusals
        and stored.root == now.root
        and stored.tiers == now.tiers
        and stored.declared == now.declared
        and not any(changes(stored, now))
        and all(was.get(one.group) == (one.decision, one.reason) for one in now.leftovers)
    )


def same_digests(stored: DigestReport, now: DigestReport) -> bool:
    """Whether every file has the digest that it had."""
    was = {(one.path, one.size, one.sha256) for one in stored.files}
    return not now.refusals and was == {(one.path, one.size, one.sha256) for one in now.files}


def untouched(copied: CopyReport, most: int | None = _HASHED_BYTES) -> bool:
    """Whether nobody can have written to a copy on a disk of this computer since it was finished.

    Any write to a file dates its inode, which no programme can set back; the few files dated later than the
    report's second are hashed again. Where another machine dates the files that proves nothing. It blocks.

    Args:
        most: bytes that are hashed again at most, beyond which the answer is no; None: however many.
    """
    place = copied.destination
    if not clock_is_ours(place):
        return False
    try:
        bag = {one.path: one for one in copied.bag}
        return _as_sealed(Path(place.path), bag, seconds(copied.finished_at), most)
    except OSError:
        return False


def _as_sealed(folder: Path, bag: Mapping[str, HashedFile], since: float, most: int | None) -> bool:
    """Exactly these files, each dated before `since` or hashed again."""
    left, hashed, base = dict(bag), 0, os.fsencode(folder)
    for top, _, names in os.walk(base, onerror=_raise):
        for name in names:
            path = os.path.join(top, name)  # noqa: PTH118 - names may be any bytes
            told, one = os.lstat(path), left.pop(os.fsdecode(os.path.relpath(path, base)), None)
            if one is None or not stat.S_ISREG(told.st_mode) or told.st_size != one.size:
                return False
            if told.st_ctime >= since:
                hashed += one.size
                if (most is not None and hashed > most) or _sha256(path) != one.sha256:
                    return False
    return not left


def _sha256(path: bytes) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def _raise(error: OSError) -> None:
    raise error

"""How much disk the checkpoints of a run need, and how often one should be saved."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.cadence import daly

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run will write.

    Attributes:
        need: bytes at the fullest moment; one more checkpoint than is kept, for the new one is whole before
            the oldest goes.
        inodes: files at the fullest moment.
        save_s: how long a save takes, None where the disk's speed is not known.
        every_s: seconds between two saves that lose the least, None where `save_s` is not known.
        overhead: share of the time that saving costs at that cadence.
    """

    need: int
    inodes: int
    save_s: float | None
    every_s: float | None
    overhead: float | None


def budget(
    checkpoint: int,
    keep: int,
    scratch: int = 0,
    *,
    files: int = 1,
    rate: float | None = None,
    failures_s: float = DAY_S,
) -> Budget:
    """Work out disk and cadence.

    Args:
        checkpoint: bytes of one, with optimizer state.
        keep: how many are kept.
        scratch: bytes of everything else the run writes there.
        files: files of one checkpoint.
        rate: bytes a second at which the disk takes them, measured.
        failures_s: seconds between two failures that are to be expected; a day where nobody knows better.
    """
    save = checkpoint / rate if rate else None
    every = daly(save, failures_s) if save else None
    return Budget(
        need=checkpoint * (keep + 1) + scratch,
        inodes=files * (keep + 1),
        save_s=save,
        every_s=every,
        overhead=save / (every + save) if save and every else None,
    )

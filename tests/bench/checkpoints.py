"""What the verdict on one checkpoint costs, beside what loading it costs."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.measure import median
from tests.bench.place import Bench, child
from tests.bench.report import Row, beside, limited
from tests.checkpoints.made import need_torch

TENSOR = 16 << 20
COUNT = 64


def rows(bench: Bench) -> Iterator[Row]:
    need_torch()
    count = COUNT // 4 if bench.quick else COUNT
    folder = str(bench.new_folder())
    child("checkpoints_child", "make", folder, str(count), timeout=300)
    taken: dict[str, list[dict[str, float]]] = {"load": [], "structure": [], "crc": [], "whole": []}
    for _ in range(3 if bench.quick else 5):
        for what, found in taken.items():  # by turns, so that what else runs here meets all of them
            found.append(child("checkpoints_child", what, folder, timeout=300))
    seconds = {what: median(one["seconds"] for one in found) for what, found in taken.items()}
    size = f"{count * TENSOR / 2**30:.2g} GiB in {count} tensors, in the page cache"
    load = 1000 * seconds["load"]
    yield beside(
        "checkpoint: structure alone, beside torch.load", 1000 * seconds["structure"], load, "ms",
        most=1 / 50,
        note=f"{size}; torch.load(weights_only=True), its import not counted",
    )  # fmt: skip
    yield beside(
        "checkpoint: structure and every checksum", 1000 * seconds["crc"], load, "ms", most=0.5,
        note="torch.load checks none of them",
    )  # fmt: skip
    yield beside(
        "checkpoint: all of it, jailed load, numbers and SHA-256", 1000 * seconds["whole"], load, "ms"
    )
    memory = max(one["anonymous_mib"] for what in ("structure", "crc", "whole") for one in taken[what])
    yield limited("checkpoint: anonymous memory of the parent", memory, "MiB", most=50)

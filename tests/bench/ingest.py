"""How fast a log comes in, and what its lines take."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.measure import median
from tests.bench.place import Bench, child
from tests.bench.report import Row, limited

LINES = 400_000


def rows(bench: Bench) -> Iterator[Row]:
    lines = LINES // 4 if bench.quick else LINES
    taken = [
        child("ingest_child", str(bench.new_folder()), str(lines), timeout=120)
        for _ in range(1 if bench.quick else 3)
    ]
    middle = {key: median(one[key] for one in taken) for key in taken[0]}
    yield limited(
        "log ingest, from the channel to the buffer", middle["lines_s"], "lines/s", least=100_000, digits=0,
        note=f"{lines:,} lines of {middle['characters']:.0f} bytes; reader, gate, spool on disk and store "
        f"included; {middle['lines_cpu_s']:,.0f} lines for a second of CPU",
    )  # fmt: skip
    yield limited("memory of a line in the buffer", middle["bytes_a_line"], "B", most=250, digits=0)

"""How long until something useful is on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.measure import median
from tests.bench.pane import PYTHON, RGT, pane
from tests.bench.place import Bench, closed_ports, environment, silent_port, write_fleet
from tests.bench.report import Row, beside, limited


def rows(bench: Bench) -> Iterator[Row]:
    rounds = 3 if bench.quick else 9
    home = bench.new_folder()
    write_fleet(home, _unreachable(closed_ports(4)))
    bare = (PYTHON, "-m", "tests.bench.bare_app", "4")
    ours_s: list[float] = []
    roster_s: list[float] = []
    bare_s: list[float] = []
    for turn in range(rounds + 1):
        names, roster = _rgt(home, b"bench-03")
        plain = _plain(home, bare)
        if turn:  # the first one of each writes byte code and warms the disk's cache
            ours_s.append(names)
            roster_s.append(roster)
            bare_s.append(plain)
    yield beside(
        "first frame in tmux, 4 boxes (peer: bare Textual app)",
        1000 * median(ours_s), 1000 * median(bare_s), "ms", most=1.25, digits=0,
    )  # fmt: skip
    yield beside(
        "  until the roster itself stands", 1000 * median(roster_s), 1000 * median(bare_s), "ms", digits=0
    )
    with silent_port() as silent:
        write_fleet(home, _unreachable([*closed_ports(25), *([silent] * 25)]))
        taken = [_rgt(home, b"bench-20") for _ in range(rounds)]
    names, roster = (median(one[i] for one in taken) for i in range(2))
    what = "first frame, 50 boxes: 25 closed ports, 25 that never speak"
    yield limited(what, names, "s", most=1, digits=2)
    yield limited("  until the roster itself stands", roster, "s", most=1, digits=2)


def _unreachable(ports: Sequence[int]) -> dict[str, dict[str, Any]]:
    return {
        f"bench-{n:02d}": {"host": "127.0.0.1", "port": port, "user": "nobody"}
        for n, port in enumerate(ports)
    }


def _rgt(home: Path, name: bytes) -> tuple[float, float]:
    """Seconds until the names are there, and until the fleet view has taken their place."""
    with pane(home, RGT, environment(RGT_HOME=str(home), TERM="screen-256color")) as program:
        program.go()
        return program.seconds_until(name), program.seconds_until(b"help")


def _plain(home: Path, command: Sequence[str]) -> float:
    with pane(home, command, environment(TERM="screen-256color")) as program:
        program.go()
        return program.seconds_until(b"bench-03")

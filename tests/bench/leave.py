"""Leaving while a box hangs: its server is stopped, so that nothing is answered and nothing is closed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator

from tests.bench.measure import median
from tests.bench.pane import DEADLINE_S, RGT, Pane, pane
from tests.bench.place import Bench, environment, on_server, write_fleet
from tests.bench.report import Row, limited
from tests.rig import Sshd

HUNG_S = 2.5
"""How long the box has been silent when the operator leaves: longer than a tick of the probe."""


def rows(bench: Bench) -> Iterator[Row]:
    gone, usable = [], []
    for _ in range(1 if bench.quick else 4):
        with bench.sshd() as server:
            home = bench.new_folder()
            log = server.home / "train.log"
            log.write_text("step 1\n")
            write_fleet(home, {"hung": on_server(server)}, {"run": {"box": "hung", "log": str(log)}})
            with pane(home, RGT, environment(RGT_HOME=str(home), TERM="screen-256color")) as program:
                took = _leave(program, server)
        gone.append(took[0])
        usable.append(took[1])
    yield limited("ctrl+q with a hung box, until the process is gone", median(gone), "s", most=1, digits=2)
    yield limited("  until the terminal is as it was", median(usable), "s", most=1, digits=2)


def _leave(program: Pane, server: Sshd) -> tuple[float, float]:
    program.go()
    process = program.program()
    program.seconds_until(b"help")
    _wait_until(lambda: "1 live" in program.screen(), program)
    server.freeze(listener=True)
    time.sleep(HUNG_S)
    began = time.perf_counter()
    program.keys("C-q")
    while process.is_running() and process.status() != "zombie":
        time.sleep(0.002)
    gone = time.perf_counter() - began
    _wait_until(lambda: "EXIT=0" in program.screen() and _in_order(program), program)
    usable = time.perf_counter() - began
    server.thaw()
    return gone, usable


def _in_order(program: Pane) -> bool:
    """No alternate screen, a visible cursor, no mouse, and a terminal that echoes lines again."""
    flags = [program.flag(name) for name in ("alternate_on", "cursor_flag", "mouse_any_flag")]
    fd = os.open(program.flag("pane_tty"), os.O_RDONLY | os.O_NOCTTY)
    try:
        modes = subprocess.run(("stty", "-a"), stdin=fd, capture_output=True, text=True, check=True).stdout
    finally:
        os.close(fd)
    return flags == ["0", "1", "0"] and {"icanon", "echo"} <= set(modes.replace(";", " ").split())


def _wait_until(true: Callable[[], bool], program: Pane) -> None:
    end = time.monotonic() + DEADLINE_S
    while not true():
        if time.monotonic() > end:
            raise RuntimeError(f"it never came to this; the screen was:\n{program.screen()}")
        time.sleep(0.02)

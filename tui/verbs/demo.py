"""`rgt demo`: the embedded fleet, on screen or as a self test without one."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import sys

from tui.demo.boxes import INCIDENTS
from tui.demo.fleet import DemoFleet, embedded_fleet
from tui.model.failure import Exit, Failure


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = sub.add_parser("demo", help="watch the embedded fleet")
    parser.add_argument("--seed", type=int, default=0, help="of the jobs' data and models")
    parser.add_argument("--speed", type=float, default=1.0, help="2 trains and fails twice as fast")
    parser.add_argument(
        "--incident",
        action="append",
        default=[],
        choices=sorted(INCIDENTS),
        metavar="KIND",
        help=f"add a box on which this really happens; may be given again: {', '.join(sorted(INCIDENTS))}",
    )
    parser.add_argument("--selftest", action="store_true", help="no screen: print what was seen, then exit")
    parser.add_argument(
        "--read-only",
        action="store_true",
        default=argparse.SUPPRESS,
        help="remove every action that changes something",
    )
    for option, shown, words in (
        ("--theme", None, "a theme of `themes/` or of your own"),
        ("--glyphs", ("auto", "unicode", "ascii"), "which symbols to draw with"),
        ("--color", ("auto", "truecolor", "256", "16", "none"), "colours the terminal is given"),
    ):  # not given here, what stands before the verb counts
        parser.add_argument(
            option, choices=shown, metavar=None if shown else "NAME", help=words, default=argparse.SUPPRESS
        )
    parser.set_defaults(run=demo)


def demo(args: argparse.Namespace) -> int:
    """Run the embedded fleet for as long as the operator looks at it."""
    if not 0.1 <= args.speed <= 100:
        raise Failure("--speed must lie between 0.1 and 100.", exit=Exit.USAGE)
    with_torch = _can_train()
    if args.selftest:
        if not with_torch:
            print("torch is not installed: the jobs train in NumPy")
        with embedded_fleet(seed=args.seed, speed=args.speed) as fleet:
            _enter(fleet)
            return int(asyncio.run(_selftest(fleet)))
    from tui.verbs.screen import check_terminal, open_screen

    check_terminal()
    with embedded_fleet(seed=args.seed, speed=args.speed, incidents=args.incident) as fleet:
        _enter(fleet)
        return open_screen(args)


def _can_train() -> bool:
    """Whether the jobs train in torch; in NumPy otherwise. Raises Failure where they can't do either."""
    if importlib.util.find_spec("torch") is not None:
        return True
    if any(importlib.util.find_spec(name) is None for name in ("numpy", "safetensors")):
        raise Failure(
            "The demo's jobs really train, and neither torch nor NumPy with safetensors is installed here.",
            do=f"Add what they need: {sys.executable} -m pip install numpy safetensors",
            code="demo-needs-numpy",
        )
    return False


def _enter(fleet: DemoFleet) -> None:
    """From here on this process knows the demo's fleet and no other."""
    os.environ.update(fleet.environment)


async def _selftest(fleet: DemoFleet) -> Exit:
    from tui.demo.selftest import selftest
    from tui.fleet.paths import paths
    from tui.fleet.store import Store
    from tui.verbs.wiring import supervisor

    store = Store()
    return await selftest(fleet, store, supervisor(store, paths()), print)

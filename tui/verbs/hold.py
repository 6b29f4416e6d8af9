"""`rgt hold` and `rgt unhold`: the operator's word that a machine must not be destroyed."""

from __future__ import annotations

import argparse
import json
import time

from tui.model.failure import Exit
from tui.model.text import safe


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both verbs to the command line."""
    hold = sub.add_parser("hold", help="block everything irreversible for a box, until unhold")
    hold.add_argument("name", metavar="NAME", help="a box, or a run on it")
    hold.add_argument("--reason", required=True, metavar="TEXT", help="why; it stands in the receipt")
    hold.add_argument("--json", action="store_true", help="print JSON")
    hold.set_defaults(run=lambda args: _decide(args, held=True))
    unhold = sub.add_parser("unhold", help="let a held box go again; that is no permission to destroy it")
    unhold.add_argument("name", metavar="NAME", help="a box, or a run on it")
    unhold.add_argument("--reason", default="", metavar="TEXT", help="why; it stands in the receipt")
    unhold.add_argument("--json", action="store_true", help="print JSON")
    unhold.set_defaults(run=lambda args: _decide(args, held=False))


def _decide(args: argparse.Namespace, *, held: bool) -> int:
    from tui.custody import hold
    from tui.custody.machine import known_victim
    from tui.custody.receipts import Ledger
    from tui.verbs.ending import changing, instance_named

    where = changing(args)
    victim = known_victim(instance_named(args.name, where), where)
    act = hold.hold if held else hold.unhold
    receipt = act(Ledger(where.receipts), victim, args.reason, time.time())
    if args.json:
        record = {"name": victim.name, "held": held, "reason": args.reason, "receipt": receipt.number}
        print(json.dumps(record, ensure_ascii=True))
    elif held:
        print(f"{victim.name} is held: nothing irreversible happens to it. {safe(args.reason, 200)}")
        print("It goes on billing, and the platform's own clocks go on.")
    else:
        print(f"{victim.name} is no longer held.")
    return Exit.FINE

"""`rgt fetch`: a download on the box that goes on where it was cut off. Level 2: it writes one new file."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys

from tui.model.failure import Exit, Failure
from tui.model.text import SafeText, amount, safe

_SUM = re.compile(r"[0-9a-f]{64}\Z")


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    fetch = sub.add_parser(
        "fetch", help="download a file on a box; resumable, bounded, checked by its SHA-256"
    )
    fetch.add_argument("box", metavar="BOX", help="a box of the fleet")
    fetch.add_argument(
        "url", metavar="URL", help="http or https; - reads it from stdin, where it holds a key"
    )
    fetch.add_argument("dest", metavar="DEST", help="a new file on the box: absolute, or ~/…")
    fetch.add_argument("--sha256", metavar="HEX", help="what it must be; without it, nobody vouches for it")
    fetch.add_argument("--most", metavar="SIZE", help="such as 40 GB; by default what the disk has free")
    fetch.add_argument("--hours", type=float, default=6.0, metavar="N", help="how long at most (6)")
    fetch.add_argument("--json", action="store_true", help="print JSON")
    fetch.set_defaults(run=lambda args: asyncio.run(_fetch(args)))


async def _fetch(args: argparse.Namespace) -> int:
    from tui.runs.fetch import fetch
    from tui.verbs.ending import changing, instance_named
    from tui.verbs.line import line_to

    where = changing(args)
    box = instance_named(args.box, where)
    if args.sha256 and not _SUM.match(args.sha256.lower()):
        raise Failure("--sha256 takes 64 hexadecimal digits.", exit=Exit.USAGE)
    address = sys.stdin.readline(8192).strip() if args.url == "-" else args.url

    def told(line: SafeText) -> None:
        print(f"  {line}", file=sys.stderr, flush=True)

    async with line_to(box, where) as line:
        done = await fetch(
            line, address, args.dest,
            sha256=args.sha256.lower() if args.sha256 else None,
            most=_size(args.most), limit_s=args.hours * 3600, told=told,
        )  # fmt: skip
    if args.json:
        told_as = {"path": done.path, "bytes": done.bytes, "sha256": done.sha256, "vouched": done.vouched}
        print(json.dumps(told_as, indent=1))
    else:
        was = "was there already" if done.was_there else "is there"
        vouched = "as asked" if done.vouched else "nobody vouches for it: keep it in the job's inputs"
        print(safe(f"{done.path} {was}: {amount(done.bytes)}, sha256 {done.sha256} ({vouched})", 500))
    return Exit.FINE


def _size(text: str | None) -> int | None:
    from pydantic import TypeAdapter, ValidationError

    from tui.model.job import Bytes

    if text is None:
        return None
    try:
        return int(TypeAdapter(Bytes).validate_python(text))
    except ValidationError:
        raise Failure("--most takes a size such as 40 GB or 512 MiB.", exit=Exit.USAGE) from None

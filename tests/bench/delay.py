"""A delay in front of a server, in a process of its own: prints the port, ends with its stdin.

python -m tests.bench.delay PORT SECONDS
"""

from __future__ import annotations

import asyncio
import sys

from tests.rig.proxy import Faults, proxy


async def main() -> None:
    """Serve until nobody wants it any more."""
    async with proxy("127.0.0.1", int(sys.argv[1]), Faults(rtt=float(sys.argv[2]))) as link:
        print(link.port, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())

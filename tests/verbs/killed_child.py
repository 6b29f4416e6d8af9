"""`rgt` that kills itself with SIGKILL where a test wants it: ``python -m tests.verbs.killed_child WHERE …``.

WHERE is ``after:WHY`` or ``sent:WHY`` for a script with that purpose (answered, or on its way to the box), or
``call:MODULE:NAME`` for a function of rgt's own that has just done its work.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
from typing import Any

from tui.box.session import SshTransport
from tui.box.transport import Completed, Script
from tui.cli import main


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm_script(when: str, why: str) -> None:
    real = SshTransport.run

    async def run(self: SshTransport, script: Script, **options: Any) -> Completed:
        if not script.why.startswith(why):
            return await real(self, script, **options)
        if when == "sent":
            asyncio.get_running_loop().call_later(0.02, die)
        done = await real(self, script, **options)
        die()
        return done

    SshTransport.run = run  # type: ignore[method-assign]


def arm_call(where: str) -> None:
    module, _, name = where.partition(":")
    owner: Any = importlib.import_module(module)
    *path, leaf = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    real = getattr(owner, leaf)

    def call(*args: Any, **options: Any) -> Any:
        done = real(*args, **options)
        die()
        return done

    setattr(owner, leaf, call)


if __name__ == "__main__":
    kind, _, what = sys.argv[1].partition(":")
    if kind == "call":
        arm_call(what)
    else:
        arm_script(kind, what)
    sys.exit(main(sys.argv[2:]))

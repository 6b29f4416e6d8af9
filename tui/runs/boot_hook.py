"""Lets a run go on by itself when its box comes back, where the platform runs a file again at every start.

The platform's file gets one constant line. Which runs go on stands in ``~/.rgt/boot.d``, one folder a file; a
run that is alive or finished is left alone by its own wrapper.
"""

from __future__ import annotations

import re

from tui.box.transport import Script, Transport
from tui.model.failure import Failure
from tui.model.text import safe

_FILE = re.compile(r"(/[A-Za-z0-9._/-]+\.sh)\b")

_GO_ON = r"""#!/bin/sh
# Written by rgt: goes on with the runs whose folders stand in ~/.rgt/boot.d. A finished one takes itself out.
for entry in "$HOME"/.rgt/boot.d/*; do
  [ -r "$entry" ] || continue
  IFS= read -r run <"$entry" || [ -n "$run" ] || continue
  if grep -qx 'reason finished' "$run"/.rgt/attempts/*/end 2>/dev/null; then rm -f -- "$entry"; continue; fi
  wrapper=$(cat "$run/.rgt/plan/wrapper" 2>/dev/null) || continue
  nohup setsid sh "$run/$wrapper" "$run" </dev/null >>"$run/.rgt/wrapper.out" 2>&1 &
done
"""

# $1 the platform's file, $2 the program that goes on, $3 name of the run, $4 its folder.
_INSTALL = r"""
umask 077
own=$HOME/.rgt
mkdir -p -- "$own/boot.d" || exit 3
printf '%s' "$2" >"$own/boot.sh.part$$" && mv -f -- "$own/boot.sh.part$$" "$own/boot.sh" || exit 3
printf '%s\n' "$4" >"$own/.boot.part$$" && mv -f -- "$own/.boot.part$$" "$own/boot.d/$3" || exit 3
line='[ ! -r "$HOME/.rgt/boot.sh" ] || sh "$HOME/.rgt/boot.sh" # rgt'
[ -e "$1" ] || { printf '#!/bin/bash\n' >"$1" && chmod 755 -- "$1"; } || exit 4
grep -qxF -- "$line" "$1" || printf '%s\n' "$line" >>"$1" || exit 4
"""


def hook_file(told: str | None) -> str | None:
    """The file that a profile's boot hook names; None where it names none."""
    found = _FILE.match(told or "")
    return found[1] if found else None


async def install(transport: Transport, file: str, run_id: str, run: str) -> None:
    """Have the platform's file go on with this run. Once more changes nothing.

    Args:
        file: what the platform runs at every start.
        run: the run's folder, absolute.

    Raises:
        Failure: it could not be written; the run itself is not touched by that.
    """
    script = Script(_INSTALL, (file, _GO_ON, run_id, run), why="let the run go on when the box comes back")
    done = await transport.run(script, timeout=30)
    if done.exit != 0:
        raise Failure(
            f"{safe(file, 120)} could not be written.",
            means="The run goes on now, and not by itself after a restart of its box.",
            do=f"rgt resume {run_id} goes on by hand.",
            code="no-boot-hook",
        )

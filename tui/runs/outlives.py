"""Whether what is started detached outlives its connection: tried before anything that costs."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from tui.box.transport import LinkLost, Script, Transport
from tui.model.text import safe
from tui.runs.detach import How
from tui.runs.preflight import Check, Verdict

NAP_S = 120
"""How long the marker naps if nobody ends it."""

# $1 tmux or nohup, $2 session, $3 seconds. Starts a nap as a run is started; tells its pid and start time.
_START = r"""
cd / || exit 3
how=$1
if [ "$how" = tmux ] && ! command -v tmux >/dev/null 2>&1; then how=nohup; fi
told=$(mktemp) || exit 4
nap='echo $$ >"$1"; exec sleep "$2"'
if [ "$how" = tmux ]; then tmux new-session -d -s "$2" sh -c "$nap" rgt-nap "$told" "$3" || exit 5
elif command -v setsid >/dev/null 2>&1; then
  nohup setsid sh -c "$nap" rgt-nap "$told" "$3" </dev/null >/dev/null 2>&1 &
else nohup sh -c "$nap" rgt-nap "$told" "$3" </dev/null >/dev/null 2>&1 & fi
n=0
while [ ! -s "$told" ] && [ "$n" -lt 50 ]; do sleep 0.1 2>/dev/null || sleep 1; n=$((n + 1)); done
pid=$(cat "$told"); rm -f "$told"
[ -n "$pid" ] || exit 6
s=$(cat "/proc/$pid/stat" 2>/dev/null) && { set -- ${s##*) }; t=${20}; }
echo "$how $pid ${t:-?}"
"""

# $1 pid, $2 its start time or ``?``. Says whether it lives, and ends exactly it.
_LOOK = r"""
t='?'
if s=$(cat "/proc/$1/stat" 2>/dev/null); then
  p=$1 w=$2
  set -- ${s##*) }
  [ "$1" = Z ] && { echo gone; exit 0; }
  t=${20}
  set -- "$p" "$w"
fi
[ "$t" = "$2" ] && kill -0 "$1" 2>/dev/null || { echo gone; exit 0; }
kill "$1" && echo alive
"""


async def outlives(box: Transport, how: How, again: Callable[[], Awaitable[Transport]]) -> Check:
    """Start a nap as a run is started, come back over a new connection, see whether it is there, and end it.

    Args:
        again: closes the connection and opens another.

    Raises:
        LinkLost, SessionsExhausted, TimeoutError: the first connection broke by itself.
    """
    name = f"rgt-nap-{secrets.token_hex(4)}"
    started = await box.run(Script(_START, (how, name, str(NAP_S)), why="does it outlive a connection?"))
    words = started.stdout.decode("ascii", "replace").split()
    if started.exit != 0 or len(words) != 3:
        last = started.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        return _check("stop", f"Nothing can be started detached by {how}: {last or started.exit}.")
    used, pid, ticks = words
    try:
        box = await again()
        seen = await box.run(Script(_LOOK, (pid, ticks), why="does it outlive a connection?"))
    except (LinkLost, TimeoutError) as lost:
        return _check("unknown", f"Whether {used} outlives a connection was not seen: {lost}.")
    if seen.stdout.strip() != b"alive":
        return _check("stop", f"What {used} starts ends with the connection: a run would die with it.")
    return _check("ok", f"What {used} starts outlives its connection: tried.")


def _check(verdict: Verdict, said: str) -> Check:
    return Check("detach", verdict, safe(said, 400))

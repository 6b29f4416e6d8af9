"""A leash: the box stops itself at a date if nobody renews it. It can stop, and never destroy.

Only where the platform's profile knows a stop that is done inside the box, without a key of the account, and
that keeps every disk. Elsewhere it is not possible, and the reason is told.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from tui.box.local import LocalTransport, on_this_computer
from tui.box.transport import Script, Transport
from tui.fleet.profile_schema import Facts
from tui.model.failure import Failure
from tui.model.text import SafeText, safe

COMMANDS = frozenset(("shutdown",))
"""What the timer on the box can run. A profile that names anything else gets no leash."""

SHORTEST_S, LONGEST_S = 300, 30 * 86400

FOLDER = ".rgt/leash"
TEST = ".rgt/leash-test"
"""Folders below the login's home; a test leaves an armed leash alone."""

State = Literal["none", "armed", "gone", "fired"]
"""``gone``: it was armed, and its timer is not alive any more: nothing will stop the box."""

# The timer comes in. $1 folder below home, $2 name of the timer. Answers with the folder's own path.
_PLACE = r"""
umask 077
cd && mkdir -p -- "$1" && cd -- "$1" && cat >"$2.part$$" && mv -f "$2.part$$" "$2" && pwd
"""

# $1 folder, $2 timer, $3 token, $4 seconds, $5 dry or real, $6 the operator's boot id
_START = r"""
cd -- "$1" || exit 3
rm -f fired
if command -v setsid >/dev/null 2>&1; then
  nohup setsid sh "$2" "$1" "$3" "$4" "$5" "$6" </dev/null >/dev/null 2>&1 &
else
  nohup sh "$2" "$1" "$3" "$4" "$5" "$6" </dev/null >/dev/null 2>&1 &
fi
"""

# $1 folder below home
_LOOK = r"""
cd && cd -- "$1" 2>/dev/null || { echo none; exit 0; }
echo "boot $(cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo '?')"
echo "token $(cat token 2>/dev/null)"
[ -r holder ] && echo "holder $(cat holder)"
[ -r left ] && echo "left $(cat left)"
[ -r fired ] && echo "fired $(cat fired)"
echo "now $(date +%s)"
p=$(cut -d ' ' -f 1 holder 2>/dev/null)
s=$(cat "/proc/${p:-0}/stat" 2>/dev/null) && { set -- ${s##*) }; echo "proc ${20} $1"; }
exit 0
"""

_OFF = 'cd && cd -- "$1" 2>/dev/null && rm -f token; exit 0'


@dataclass(frozen=True, slots=True)
class Leash:
    """What the box says of it. `left_s` is how long it waits still, as counted there."""

    state: State
    left_s: float | None = None
    said: SafeText = SafeText("")
    token: str = ""


def refused(facts: Facts | None, platform: str) -> SafeText | None:
    """Why a leash is not possible on a platform; None: it is."""
    if facts is None or facts.leash is None:
        return safe(
            f"not possible here, because nothing is known of {platform} that could stop a box from inside"
        )
    command = facts.leash.in_box
    if command is None:
        return safe(
            f"not possible here, because no command inside the box is known to stop it. {facts.leash.text}",
            500,
        )
    stops = [
        action
        for action in facts.actions
        if any(way.kind == "in-box" and way.call == command for way in action.ways)
    ]
    if any(stop.destroys or stop.level > 2 for stop in stops):
        why = f"the command inside the box ({command}) destroys what is on it"
        return safe(f"not possible here, because {why}", 500)
    if command not in COMMANDS or not stops:
        why = f"its timer runs {' or '.join(COMMANDS)} alone, and this box would need: {command}."
        return safe(f"not possible here, because {why} {facts.leash.text}", 500)
    return None


async def arm(box: Transport, seconds: int) -> Leash:
    """Set the leash, or set it anew; the timer before this one ends by itself.

    Raises:
        Failure: the box is on this computer, or did not take it. LinkLost, TimeoutError: look again.
    """
    await _elsewhere(box)
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise Failure("A leash is between 5 minutes and 30 days long.", means="Nothing was armed.")
    return await _until(box, FOLDER, await _begin(box, FOLDER, seconds, "real"), "armed", 15.0)


async def test(box: Transport) -> SafeText:
    """Let a timer run out that only tells what it would do. An armed leash is not touched.

    Raises:
        Failure: the box is on this computer, or the timer did not come to its end.
    """
    await _elsewhere(box)
    told = await _until(box, TEST, await _begin(box, TEST, 1, "dry"), "fired", 30.0)
    if not told.said.startswith("would: "):
        raise Failure(f"A leash would not stop this box: {told.said}.", code="leash-useless")
    return told.said


async def look(box: Transport, folder: str = FOLDER) -> Leash:
    """What is true of it now. Raises LinkLost, SessionsExhausted, TimeoutError."""
    done = await box.run(Script(_LOOK, (folder,), why="is a leash armed?"))
    return judged(done.stdout.decode("utf-8", "replace"))


async def off(box: Transport) -> Leash:
    """Take the leash off: its timer ends with its nap, and does nothing.

    Raises:
        Failure: it is still armed. LinkLost, TimeoutError: whether it is is unknown.
    """
    await box.run(Script(_OFF, (FOLDER,), why="take the leash off"))
    told = await look(box)
    if told.state == "armed":
        raise Failure(
            "The leash could not be taken off.",
            means="It is armed as before: the box will stop itself.",
            do=f"Remove ~/{FOLDER}/token on the box, or renew the leash until you can.",
            code="leash-stays",
        )
    return told


def judged(text: str) -> Leash:
    """Read what `look` was told."""
    said: dict[str, list[str]] = {}
    for line in text.split("\n"):
        topic, _, rest = line.partition(" ")
        said.setdefault(topic, rest.split(" "))
    token = " ".join(said.get("token", []))
    if "fired" in said:
        return Leash("fired", None, safe(" ".join(said["fired"]), 200), token)
    if not token:
        return Leash("none")
    holder, proc = said.get("holder", []), said.get("proc", [])
    lives = (
        len(holder) >= 3
        and holder[2] == said.get("boot", ["?"])[0]
        and proc[:1] == holder[1:2]
        and proc[1:] != ["Z"]
    )
    if not lives:
        return Leash(
            "gone", None, safe("its timer is not alive: the box was started again, or it was killed"), token
        )
    left, now = said.get("left", []), said.get("now", [""])[0]
    if len(left) != 2 or not all(word.isdecimal() for word in (*left, now)):
        return Leash("armed", None, token=token)
    return Leash("armed", max(0.0, float(left[0]) - max(0.0, float(now) - float(left[1]))), token=token)


async def _begin(box: Transport, place: str, seconds: int, how: Literal["real", "dry"]) -> str:
    timer = resources.files("tui.runs").joinpath("leash.sh").read_bytes().replace(b"\r\n", b"\n")
    name = f"timer-{secrets.token_hex(4)}.sh"  # one that runs is never written over
    placed = await box.run(Script(_PLACE, (place, name), why="bring the leash's timer"), stdin=timer)
    folder = placed.stdout.decode("utf-8", "surrogateescape").strip()
    if placed.exit != 0 or not folder.startswith("/"):
        raise Failure("The leash's timer could not be brought to the box.", means="Nothing was armed.")
    ours = await LocalTransport().run(Script("cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo '?'"))
    boot = ours.stdout.decode("ascii", "replace").strip() or "?"
    token = secrets.token_hex(8)
    words = (folder, name, token, str(seconds), how, boot)
    await box.run(Script(_START, words, why="start the leash's timer"))
    return token


async def _until(box: Transport, folder: str, token: str, state: State, within_s: float) -> Leash:
    ends = time.monotonic() + within_s
    while True:
        told = await look(box, folder)
        if told.state == state and told.token == token:
            return told
        if time.monotonic() > ends:
            raise Failure(
                f"The leash's timer did not get as far as {state}: {told.state} {told.said}.",
                means="Whether it will stop the box is not known; one that was armed before may still.",
                do="Look again: rgt leash BOX.",
                code="leash-not-armed",
            )
        await asyncio.sleep(0.3)


async def _elsewhere(box: Transport) -> None:
    if await on_this_computer(box):
        raise Failure(
            "This box runs on this very computer.",
            means="A leash would switch the computer off; nothing was armed.",
            code="own-computer",
        )

"""Removes one path of the allow-list on the box, and only while it is still what was consented to.

Every condition is looked at again there, right before: the exact folder it lies in, that it is no link, its
identity, nothing mounted below it, nobody has it open, nothing in it is new. What does not hold is a skip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, get_args

from tui.box.transport import Completed, Script, Transport
from tui.model.reclaim import FRESH_S, Removal, State
from tui.model.text import SafeText, safe
from tui.triage.ladder import ALONE, SAME, TAKE, mounted_as

DEADLINE_S = 600.0
"""Half a million small files on a network disk take minutes."""
OUTPUT = 16 << 10

# $1 the path, $2 its identity, $3 how the kernel spells it in the table of mounts, $4 minutes that are new.
# Out go three fields, each ended by NUL: what became of it, why, and whether some processes kept what they
# have open to themselves.
REMOVE = f"""
p=$1 id=$2 m=$3 new=$4 at=$1 unread=
unset CDPATH
LC_ALL=C; export LC_ALL
tell() {{ printf '%s\\0' "$1" "$2" "$unread"; exit 0; }}
skip() {{ tell skipped "$1"; }}
case $p in */.. | */../* | */. | */./* | *//* | */) p= ;; esac
case $p in /*) ;; *) skip 'its path is not exact' ;; esac
folder=${{p%/*}}; folder=${{folder:-/}}; name=./${{p##*/}}
cd -P -- "$folder" 2>/dev/null || skip 'the folder it lies in is not there any more, or may not be entered'
[ "$(pwd -P)" = "$folder" ] || skip 'there is a link in the way to it'
p=$name
[ ! -L "$p" ] || skip 'it is a link now'
[ -e "$p" ] || skip 'it is not there any more'
{SAME} || skip 'it is not what the survey saw: it was replaced, or written to since'
{ALONE} || skip 'something is mounted below it, or the table of mounts cannot be read'
below=$at; [ ! -d "$p" ] || below=$at/

open_now() {{
  ls -l /proc/[0-9]*/fd /proc/self/fd 2>&1
  ls -ld /proc/[0-9]*/cwd /proc/[0-9]*/exe /proc/[0-9]*/root 2>&1
}}
holder=$(open_now | at=$at awk '
  BEGIN {{ at = ENVIRON["at"]; full = " -> " at; part = full "/" }}
  /^\\/proc\\/[0-9a-z]*\\/fd:$/ {{ pid = $0; sub(/^\\/proc\\//, "", pid); sub(/\\/fd:$/, "", pid); next }}
  /Permission denied$/ {{ unread = 1; next }}
  index($0, part) || (length($0) >= length(full) && substr($0, length($0) - length(full) + 1) == full) {{
    who = pid
    if (match($0, / \\/proc\\/[0-9]+\\//)) who = substr($0, RSTART + 7, RLENGTH - 8)
    if (found == "") found = who
  }}
  END {{ print (unread ? "some" : "all") " " found }}')
case $holder in some*) unread=1 ;; esac
holder=${{holder#* }}
[ -n "$holder" ] || holder=$(grep -lF -- " $below" /proc/[0-9]*/maps 2>/dev/null | head -n 1 | tr -dc 0-9)
if [ -n "$holder" ]; then
  what=$(tr '\\0' ' ' <"/proc/$holder/cmdline" 2>/dev/null | cut -c 1-120)
  skip "pid $holder has it open${{what:+ ($what)}}"
fi

if [ -d "$p" ]; then
  # From inside, the place is bound to what was entered: nobody can put another in its stead. Whatever reads
  # what the removal says must read all of it: a broken pipe would end it halfway.
  cd -P -- "$p" 2>/dev/null || skip 'it may not be entered'
  p=.
  {SAME} || skip 'it is not what the survey saw: it was replaced just now'
  [ -z "$(find . -xdev ! -type d -mmin "-$new" -print 2>/dev/null | head -n 1)" ] ||
    skip "written to within the last $new minutes"
  if find . -maxdepth 0 ! -name '*' -delete 2>/dev/null; then
    said=$({TAKE} 2>&1 | sed -n 1p)
  else  # a busybox without -delete
    said=$({{
      find . -xdev ! -type d -exec rm -f {{}} + &&
        find . -xdev -depth -type d ! -path . -exec rmdir {{}} +
    }} 2>&1 | sed -n 1p)
  fi
  cd -P -- "$folder" 2>/dev/null || tell failed "its folder went away meanwhile${{said:+; $said}}"
  # An empty folder and nothing else can go by this, whoever has put it there.
  end=$(rmdir "$name" 2>&1) || said=${{said:-$end}}
else
  [ -z "$(find "$p" -prune -mmin "-$new" -print 2>/dev/null)" ] ||
    skip "written to within the last $new minutes"
  said=$(rm -f -- "$p" 2>&1 | sed -n 1p)
fi
if [ -e "$name" ] || [ -L "$name" ]; then tell failed "part of it may be gone${{said:+; $said}}"; fi
tell removed ''
""".lstrip()

# Each argument: is something of this name there? Links count.
_THERE = r"""
for p do
  if [ -e "$p" ] || [ -L "$p" ]; then echo there; else echo gone; fi
done
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the box told of one path. `unread`: some processes do not show what they have open."""

    removal: Removal
    unread: bool = False


async def remove(transport: Transport, path: SafeText, identity: str) -> Answer:
    """Remove a path if everything still holds.

    Args:
        path: exact; the survey's gate lets no other through.
        identity: ``device:inode:mtime`` by the survey.

    Raises:
        LinkLost, TimeoutError: what became of it is not known.
        SessionsExhausted: nothing was begun.
    """
    args = (path, identity, mounted_as(path), str(round(FRESH_S / 60)))
    script = Script(REMOVE, args, f"reclaim, by your consent: {path}")
    done = await transport.run(script, timeout=DEADLINE_S, limit=OUTPUT)
    return _read(path, done)


def _read(path: SafeText, done: Completed) -> Answer:
    word, why, unread, *_ = (*done.stdout.split(b"\0"), b"", b"", b"")[:4]
    state = word.decode("ascii", "replace")
    if done.exit == 0 and state in ("removed", "skipped", "failed") and state in get_args(State):
        return Answer(Removal(path, cast("State", state), safe(why, 300)), unread == b"1")
    complaint = safe(done.stderr.strip().split(b"\n")[0], 200) or f"exit status {done.exit}"
    return Answer(Removal(path, "unknown", safe(f"the box gave no answer that can be read: {complaint}")))


async def still_there(transport: Transport, paths: tuple[str, ...]) -> dict[str, bool]:
    """Whether each path is there; one is missing where the box did not tell.

    Raises:
        LinkLost, SessionsExhausted, TimeoutError.
    """
    done = await transport.run(Script(_THERE, paths, "look again what is there"))
    words = done.stdout.split()
    known = {b"there": True, b"gone": False}
    return {path: known[word] for path, word in zip(paths, words, strict=False) if word in known}

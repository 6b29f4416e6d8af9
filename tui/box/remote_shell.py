"""What a box is really asked to run: a script inside a frame that ends with its channel.

The frame does three things on the box, with nothing but POSIX sh, ``cat`` and ``head``:

* It prints a marker on both streams first, so that what start-up files print before can be cut off.
* It watches the channel's stdin. Its end means that nobody listens any more (channel closed, link cut,
  client killed), and then the script's whole process group is ended. sshd does not do this by itself without
  a pty, and ignores signals for root (measured against OpenSSH 9.2).
* It leaves the script's exit status alone.

The command line that carries the frame is spelled so that every login shell (sh, bash, zsh, fish, csh)
passes it on unchanged: quotes, backslashes, newlines, ``!`` and non-ASCII bytes are octal escapes.
"""

from __future__ import annotations

import re
import shlex

from tui.box.transport import Script

# $1 marker, $2 bytes of stdin ("-": all that comes), $3 script, then the script's own parameters.
# The feeder runs in the background of a pipeline member that ends at once, so that the pipeline (and with it
# the exit status) waits for the script alone. `kill -0 $$` keeps a feeder that outlives a finished script
# from ending what the script left running on purpose. Signal before KILL: a second for what must tidy up.
_FRAME = """\
printf %s "$1"
printf %s "$1" >&2
rgt_n=$2 rgt_s=$3
shift 3
exec 3<&0
{
  {
    case $rgt_n in -) cat ;; 0) ;; *) head -c "$rgt_n" ;; esac
    exec >/dev/null
    cat
    if kill -0 "$$"; then
      trap '' TERM
      kill -TERM "-$$" || kill -TERM "$$"
      sleep 1
      kill -KILL "-$$"
    fi
  } <&3 3<&- 2>/dev/null &
} | {
  exec 3<&-
  eval "$rgt_s"
}
"""

_UNPACK = 'eval "$(printf %b "$1")"'

# Some servers and login wrappers do not make the command a process group leader; then `kill -PGID` would
# miss, or hit the server's own group. `$0` changes so that this happens once at most.
_OWN_GROUP = f"""\
case $0 in rgt) kill -0 "-$$" 2>/dev/null || ! command -v setsid >/dev/null 2>&1 ||
exec setsid /bin/sh -c '{_UNPACK}' rgt-group "$1" ;; esac
"""

_NOT_PLAIN = re.compile(rb"[^A-Za-z0-9 _./:=@%+,;<>()\[\]{}|&*?$\"#~^`-]")


def framed(script: Script, marker: bytes, stdin_bytes: int | None) -> list[bytes]:
    """The argument vector that runs `script` inside the frame, as the leader of its own process group.

    Args:
        marker: printed on stdout and stderr before anything of the script; may be empty.
        stdin_bytes: how many bytes the script may read before its stdin ends; None: all that is sent.
            A script given more than 64 KiB has to read it: until then a cut link goes unnoticed on the box.
    """
    shell, option, _, name, *_ = script.argv()
    return [shell, option, _FRAME.encode(), name, *_parameters(script, marker, stdin_bytes)]


def command_line(script: Script, marker: bytes, stdin_bytes: int | None) -> str:
    """`framed` as one line of ASCII for the login shell of a box, whichever it is."""
    words = b" ".join(_quoted(word) for word in _parameters(script, marker, stdin_bytes))
    program = _OWN_GROUP.encode() + b"set -- " + words + b"\n" + _FRAME.encode()
    return f"exec /bin/sh -c '{_UNPACK}' rgt '{_octal(program)}'"


def copyable(script: Script, limit: int = 1500) -> str:
    """The script as a person can paste it into a shell, on one line; a long one is only named."""
    _, _, text, name, *arguments = script.argv()
    source = text.decode("utf-8", "replace").strip()
    if len(source) > limit:
        return f"/bin/sh -c … ({len(source.splitlines())} lines: {script.why or 'script'})"
    escaped = source.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    body = f"$'{escaped}'" if "\n" in source or "\t" in source else shlex.quote(source)
    words = [shlex.quote(word.decode("utf-8", "replace")) for word in (name, *arguments)] if arguments else []
    return " ".join(["/bin/sh -c", body, *words])


def _parameters(script: Script, marker: bytes, stdin_bytes: int | None) -> list[bytes]:
    _, _, text, _, *arguments = script.argv()
    return [marker, b"-" if stdin_bytes is None else str(stdin_bytes).encode(), text, *arguments]


def _quoted(word: bytes) -> bytes:
    return shlex.quote(word.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _octal(data: bytes) -> str:
    return _NOT_PLAIN.sub(lambda found: b"\\0%03o" % found.group()[0], data).decode("ascii")

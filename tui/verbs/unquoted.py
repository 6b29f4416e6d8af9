"""``rgt add ssh -p 34567 root@host``: a pasted command without quotes around it.

Its options are ssh's. Only what stands before it, and what ends the line and is spelled as an option of rgt,
is rgt's own: ssh has no long options, so a ``--dry-run`` behind the command is never meant for it. A long
option that rgt doesn't know is rgt's all the same, and refused: a mistyped ``--dryrun`` must not write.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_PROGRAM = re.compile(
    r"(?:\S*[/\\])?(?:ssh|autossh|scp|sftp|rsync|sshpass|mosh|ssh-copy-id)(?:\.exe)?\Z", re.IGNORECASE
)


# Options of `rgt add`, and of rgt before the verb, that take the next word as their value.
_VALUED = (
    "--name", "--platform", "--instance-id", "--password-env", "--price", "--currency", "--theme", "--glyphs",
    "--color",
)  # fmt: skip


def arranged(words: Sequence[str]) -> list[str]:
    """The words of a command line, with a command that stands in it unquoted moved behind ``--``.

    Args:
        words: what the shell handed over, the verb included.
    """
    start = _start(words)
    if start is None:
        return list(words)
    command, own = list(words[start:]), list[str]()
    while len(command) > 2:
        if _is_long(command[0], command[-1]):
            own[:0] = [command.pop()]
        elif command[-2] in _VALUED:
            own[:0] = [command.pop(-2), command.pop()]
        else:
            break
    return [*words[:start], *own, "--", *command]


def _is_long(program: str, word: str) -> bool:
    own = word.partition("=")[0] in (*_VALUED, "--dry-run", "--json", "--plain", "--help")
    return own or (word.startswith("--") and len(word) > 2 and "rsync" not in program)


def _start(words: Sequence[str]) -> int | None:
    """Where the command begins: at the name of a program that is no value of an option before it."""
    for index, word in enumerate(words):
        if word == "--":
            return None
        if _PROGRAM.match(word) and (index == 0 or words[index - 1] not in _VALUED):
            return index if index + 1 < len(words) else None
    return None


def as_text(words: Sequence[str]) -> str:
    """The words as one paste. A command keeps the quotes that the shell took from its words."""
    command = len(words) > 1 and _PROGRAM.match(words[0])
    return shlex.join(words) if command else " ".join(words)

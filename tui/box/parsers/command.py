"""Which programs a shell command line runs, whatever wrappers, folders and pipes are around them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

_MAX_LINE = 8192
_MAX_DEPTH = 4
_SEPARATORS = frozenset({";", "&", "&&", "||", "|", "|&", "(", ")", "\n", ";;", "{", "}", "!"})
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "fish"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_REDIRECT = re.compile(r"\d*(?:[<>]|>>|>&|&>|<<|<<<|<>|&>>)\Z")

# Wrappers, and those of their options that take a value of their own.
_WRAPPERS: dict[str, frozenset[str]] = {
    "sudo": frozenset({"-u", "-g", "-U", "-h", "-p", "-C", "-D", "-T", "-r", "-t"}),
    "doas": frozenset({"-u", "-C"}),
    "env": frozenset({"-u", "-C", "--chdir", "--unset"}),
    "timeout": frozenset({"-k", "-s", "--kill-after", "--signal"}),
    "gtimeout": frozenset({"-k", "-s"}),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n", "-p"}),
    "chrt": frozenset(),
    "taskset": frozenset(),
    "stdbuf": frozenset({"-o", "-e", "-i"}),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": frozenset({"-a"}),
    "time": frozenset({"-f", "-o"}),
    "busybox": frozenset(),
    "toybox": frozenset(),
    "watch": frozenset({"-n", "--interval"}),
    "xargs": frozenset({"-n", "-I", "-P", "-d"}),
    "unbuffer": frozenset(),
    "if": frozenset(),
    "while": frozenset(),
    "do": frozenset(),
    "then": frozenset(),
    "else": frozenset(),
}
_OPERANDS = {"timeout": 1, "gtimeout": 1, "taskset": 1, "chrt": 1}


@dataclass(frozen=True, slots=True)
class Invocation:
    """One program of a command line: its name without folder, and its arguments."""

    tool: str
    args: tuple[str, ...] = ()

    def flag(self, *names: str) -> bool:
        """Whether any is given: ``-k`` also inside a bundle (``-Pk``), ``--long`` also with ``=``."""
        return any(self._has(name) for name in names)

    def _has(self, name: str) -> bool:
        if name.startswith("--"):
            return any(arg == name or arg.startswith(name + "=") for arg in self.args)
        return any(re.match(r"-[A-Za-z]+\Z", arg) and name[1:] in arg[1:] for arg in self.args)

    def value(self, *names: str) -> str | None:
        """The value of an option: ``--name=value``, ``--name value``, ``-n value``, ``-nvalue``."""
        for place, arg in enumerate(self.args):
            following = self.args[place + 1] if place + 1 < len(self.args) else None
            for name in names:
                found = _value(arg, name, following)
                if found is not None:
                    return found
        return None


def _value(arg: str, name: str, following: str | None) -> str | None:
    """The value that `arg`, perhaps with the argument after it, gives to the option `name`."""
    if arg == name:
        return following
    if arg.startswith(name + "="):
        return arg[len(name) + 1 :]
    if name.startswith("--") or arg.startswith("--"):
        return None
    if arg.startswith(name):
        return arg[len(name) :]
    return following if re.match(rf"-[A-Za-z]+{name[1:]}\Z", arg) else None


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What a command line runs, in its order.

    Attributes:
        piped: some output went through another program (grep, tail, awk) and may be a part only.
        limited: it ran under `timeout`.
    """

    invocations: tuple[Invocation, ...] = ()
    piped: bool = False
    limited: bool = False

    def of(self, *tools: str) -> tuple[Invocation, ...]:
        """The invocations of these programs."""
        return tuple(one for one in self.invocations if one.tool in tools)


def read_command(line: str, depth: int = 0) -> CommandLine:
    """Take a shell command line apart. Never raises: what no shell would accept is split at blanks."""
    tokens = _tokens(line[:_MAX_LINE])
    found: list[Invocation] = []
    limited = False
    for words in _simple_commands(tokens):
        inner, under_limit = _unwrap(words)
        limited = limited or under_limit
        nested = _nested(inner) if depth < _MAX_DEPTH else None
        if nested is not None:
            below = read_command(nested, depth + 1)
            found += below.invocations
            limited = limited or below.limited
        elif inner:
            found.append(Invocation(_base(inner[0]), tuple(inner[1:])))
    return CommandLine(tuple(found), any(token in {"|", "|&"} for token in tokens), limited)


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def _simple_commands(tokens: list[str]) -> list[list[str]]:
    commands: list[list[str]] = [[]]
    skip_target = False
    for token in tokens:
        if skip_target:
            skip_target = False
        elif token in _SEPARATORS:
            commands.append([])
        elif _REDIRECT.match(token) or token in {">&", "&>"}:
            skip_target = True
            if commands[-1] and commands[-1][-1].isdigit():
                commands[-1].pop()  # the descriptor of ``2>&1`` is a token of its own
        else:
            commands[-1].append(token)
    return [command for command in commands if command]


def _unwrap(words: list[str]) -> tuple[list[str], bool]:
    """The words of the program itself, and whether a time limit was around it."""
    limited = False
    while words:
        if _ASSIGNMENT.match(words[0]):
            words = words[1:]
            continue
        wrapper = _base(words[0])
        if wrapper not in _WRAPPERS:
            break
        limited = limited or wrapper in {"timeout", "gtimeout"}
        words = _without_options(words[1:], _WRAPPERS[wrapper])[_OPERANDS.get(wrapper, 0) :]
    return words, limited


def _without_options(words: list[str], with_value: frozenset[str]) -> list[str]:
    place = 0
    while place < len(words) and (words[place].startswith("-") or _ASSIGNMENT.match(words[place])):
        place += 2 if words[place] in with_value else 1
    return words[place:]


def _nested(words: list[str]) -> str | None:
    """The command line that a shell, ``ssh`` or ``docker exec`` is given to run, if `words` are such."""
    tool = _base(words[0]) if words else ""
    if tool in _SHELLS:
        for place, word in enumerate(words[1:], 1):
            if re.match(r"-\w*c\Z", word) and place + 1 < len(words):
                return words[place + 1]
        return None
    if tool == "ssh":
        rest = _without_options(words[1:], frozenset({"-p", "-i", "-l", "-o", "-J", "-F", "-L", "-R", "-D"}))
        return " ".join(rest[1:]) or None
    if tool in {"docker", "podman", "nerdctl"} and "exec" in words:
        rest = _without_options(words[words.index("exec") + 1 :], frozenset({"-e", "-u", "-w"}))
        return shlex.join(rest[1:]) if rest[1:] else None
    if tool == "kubectl" and "--" in words:
        return shlex.join(words[words.index("--") + 1 :]) or None
    if tool == "srun":
        rest = _without_options(words[1:], frozenset({"-w", "-N", "-n", "-p", "-J"}))
        return shlex.join(rest) or None
    return None


def _base(word: str) -> str:
    name = word.rstrip("/").rpartition("/")[2].rpartition("\\")[2]
    return name.removesuffix(".exe")

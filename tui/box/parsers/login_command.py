"""One pasted ``ssh`` (scp, sftp, rsync, …) command, read as its option parser would and never run.

Option letters are those of the OpenSSH manual pages ssh(1), scp(1), sftp(1); values that name the way to the
machine are taken over, forwards and flags are dropped and listed, options that run commands are refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tui.box.parsers import login_fields as check
from tui.box.parsers.login_fields import Fields, union
from tui.box.parsers.login_text import Secret, refuse

_PROGRAM = re.compile(
    r"(?:^|(?<=[\s:=>$#`\"'(\[,]))(?P<path>(?:[\w~.-]*[/\\])*)"
    r"(?P<name>ssh|autossh|scp|sftp|rsync|ssh-copy-id|sshpass|mosh)(?:\.exe)?(?=\s+\S)",
    re.IGNORECASE,
)
_WITH_VALUE = {
    "ssh": "bBcDEeFIiJLlmOoPpQRSWw",
    "autossh": "bBcDEeFIiJLlMmOoPpQRSWw",
    "scp": "cDFiJloPSX",
    "sftp": "BbcDFiJloPRSsX",
    "ssh-copy-id": "ipot",
    "rsync": "eBMfT",
    "mosh": "pn",
}
_COPIES = frozenset({"scp", "rsync"})
_SHELLS = frozenset({"ssh", "autossh"})
_WITH_CONFIG = _SHELLS | {"scp", "sftp"}
# ssh_config(5) keywords that make ssh start a program or load code on the operator's computer.
_RUNS = frozenset(
    {
        "localcommand",
        "permitlocalcommand",
        "knownhostscommand",
        "pkcs11provider",
        "securitykeyprovider",
        "xauthlocation",
        "include",
        "match",
    }
)


_LEADS_TO_MACHINE = re.compile(r"\s+[\"']?(?:-|\S*@|\S+://|[\w-]+\.\S|\[)")
_IS_ADDRESS = re.compile(r"(?:ssh|sftp)://\S+\Z|[\w.+#-]+@[\w-]+\.[\w.-]+(?::\d+)?[.,;:]?\Z")
_HOST_AND_PORT = re.compile(r"[\w-]+(?:\.[\w-]+)+:\d{2,5}[.,;]?\Z")
# "ssh root@host 22001", "… on 22001", "… # port 22001": no command begins with a number.
_PORT_AFTER = re.compile(
    r"(?:#\s*)?(?:(?:on|at|the)\s+)*(?:(?P<said>port|端口)\s*[:=]?\s*)?\(?(?P<port>\d{1,5})\)?(?=[\s,;.]|\Z)",
    re.IGNORECASE,
)
_LEAST_UNSAID = 1024  # a smaller number without the word may count cards
_IS_LABEL = re.compile(r"\s+[^@]*?:(?:\s|$)")


# What may stand before a command that names an alias only: a prompt, a label, an assignment, a program that
# starts it. After any other word "ssh" is prose, or part of another tool's command.
_BEFORE_ALIAS = re.compile(
    r"(?:.*[:$#>%=\])，❯➜])?\s*(?:(?:sudo|exec|wsl(?:\.exe)?|run|\w+=\S*)\s+)*[`\"']?\Z",
    re.IGNORECASE,
)


# "SSH access - h.example.com": what a page calls the thing, with more behind it.
_HEADING = re.compile(
    r"\s+(?:access|terminal|login|connection|commands?|shell|session|details|info|address|host|port|user|into|to|via"
    r"|over|with|using|for|from|direct|and|or|keys?|config)\b\s+\S",
    re.IGNORECASE,
)


def find(line: str) -> int | None:
    """Where a login command begins in `line`, past labels, prose and prompts; None when there is none."""
    sure = find_sure(line)
    if sure is not None:
        return sure
    starts = [
        match.start()
        for match in _commands(line)
        if _BEFORE_ALIAS.match(line[: match.start()]) and not _HEADING.match(line, match.end())
    ]
    return starts[0] if starts else None


def find_sure(line: str) -> int | None:
    """Like `find`, for a command that goes on with an option, an address or a name with a dot."""
    starts = [match.start() for match in _commands(line) if _LEADS_TO_MACHINE.match(line, match.end())]
    return starts[0] if starts else None


def _commands(line: str) -> list[re.Match[str]]:
    return [match for match in _PROGRAM.finditer(line) if not _IS_LABEL.match(line, match.end())]


@dataclass(slots=True)
class _Reading:
    """What has been read of one command so far."""

    program: str
    fields: Fields = Fields()
    positional: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    password: Secret | None = None

    def add(self, more: Fields) -> None:
        self.fields = union(self.fields, more)


def read(line: str) -> tuple[Fields, Secret | None]:
    """A command that `find` found the beginning of.

    Raises:
        Failure: shell characters, options that run commands, two machines, or no machine at all.
    """
    words = _words(line)
    words, password = _without_sshpass(words)
    if not words:
        raise refuse("The command names no machine.")
    program = re.split(r"[/\\]", words[0].lower())[-1].removesuffix(".exe")
    reading = _Reading(program, password=password)
    if reading.program not in _WITH_VALUE:
        raise refuse("This is no ssh command.")
    _options(reading, words[1:])
    _machine(reading)
    if reading.fields.host is None:
        raise refuse("The command names no machine.")
    return replace(reading.fields, ignored=tuple(reading.ignored)), reading.password


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        words = list(lexer)
    except ValueError:
        words = []
    if not words:
        raise refuse("A quote in the command is not closed.")
    return words


def _without_sshpass(words: list[str]) -> tuple[list[str], Secret | None]:
    if re.split(r"[/\\]", words[0].lower())[-1] != "sshpass":
        return words, None
    secret, index = None, 1
    while index < len(words) and words[index].startswith("-"):
        word = words[index]
        if word[:2] in {"-p", "-f", "-d", "-P"} and len(word) == 2:
            index += 1
            value = words[index] if index < len(words) else ""
        else:
            value = word[2:]
        if word[:2] == "-p":
            secret = Secret(value)
        index += 1
    return words[index:], secret


def _options(reading: _Reading, words: list[str]) -> None:
    queue = iter(words)
    for word in queue:
        if word == "--":
            reading.positional.extend(queue)
        elif word.startswith("--"):
            _long_option(reading, word)
        elif word.startswith("-") and len(word) > 1:
            _cluster(reading, word, queue)
        else:
            reading.positional.append(word)
            if reading.program in _SHELLS and len(reading.positional) > 1:
                reading.positional.extend(queue)  # a remote command keeps its own options


def _long_option(reading: _Reading, word: str) -> None:
    name, _, value = word.partition("=")
    if reading.program in _SHELLS:
        raise refuse("ssh has no options of several letters, such as --port.")
    if name in {"--ssh", "--rsh"} and value:
        _remote_shell(reading, value)
    else:
        reading.ignored.append(check.no_shell(word))


def _cluster(reading: _Reading, word: str, queue: Iterator[str]) -> None:
    """One word of short options: flags, and at most one option whose value is the rest or the next word."""
    flags = ""
    for position, letter in enumerate(word[1:], start=1):
        if letter not in _WITH_VALUE[reading.program]:
            flags += letter
            continue
        value = word[position + 1 :] or next(queue, None)
        if flags:
            reading.ignored.append(check.no_shell(f"-{flags}"))
        if value is None:
            raise refuse("The last option of the command has no value.")
        _option(reading, letter, value)
        return
    reading.ignored.append(check.no_shell(f"-{flags}"))


def _option(reading: _Reading, letter: str, value: str) -> None:
    port_letter = "P" if reading.program in {"scp", "sftp"} else "p"
    if letter == "o":
        option(value, reading.add, reading.ignored.append)
    elif letter == port_letter:
        reading.add(Fields(port=check.port(value.removeprefix("="))))
    elif letter == "P" and reading.program in _SHELLS and value.isdecimal():
        raise refuse("The option -P names no port in ssh.", "If it is the port, paste it as -p.")
    elif letter == "i":
        reading.add(Fields(key=check.key(value)))
    elif letter == "J":
        reading.add(Fields(jump=check.jumps(value)))
    elif letter == "l" and reading.program in _SHELLS:
        reading.add(Fields(user=check.user(value)))
    elif letter == "e" and reading.program == "rsync":
        _remote_shell(reading, value)
    elif letter == "I" and reading.program in _SHELLS:
        option(f"PKCS11Provider={value}", reading.add, reading.ignored.append)
    elif letter == "F" and reading.program in _WITH_CONFIG and value not in {"none", "/dev/null"}:
        raise refuse(
            "The command takes its settings from a file of its own (-F), which may run commands.",
            "Put the host into ~/.ssh/config if you trust it, and paste `ssh` with its name.",
        )
    elif letter in "OQ" and reading.program == "ssh":
        raise refuse("The command asks a running ssh or ssh itself, and leads to no machine.")
    else:
        reading.ignored.append(check.no_shell(f"-{letter} {value}"))


def _remote_shell(reading: _Reading, value: str) -> None:
    """``rsync -e "ssh -p 22"`` and ``mosh --ssh=…``: options of ssh without a machine."""
    words = _words(value)
    if words[0] != "ssh":
        raise refuse("The command would start another program than ssh.")
    inner = _Reading("ssh")
    _options(inner, words[1:])
    if inner.positional:
        raise refuse("The inner ssh command names a machine of its own.")
    reading.add(inner.fields)
    reading.ignored.extend(inner.ignored)


def option(value: str, add: Callable[[Fields], None], ignore: Callable[[str], None]) -> None:
    """One ``-o`` option or one line of an ssh configuration block. Raises Failure where it runs a command."""
    match = re.match(r"\s*([A-Za-z0-9]+)\s*(?:=|\s)\s*(.*)\Z", value, re.DOTALL)
    if match is None:
        raise refuse("An ssh option has no value.")
    name, setting = match.group(1).lower(), match.group(2).strip().strip("\"'")
    if name in _RUNS and setting.lower() not in {"no", "none"}:
        raise refuse(
            f"The option {match.group(1)} runs a command or loads code on this computer.",
            "If you trust it, put it into ~/.ssh/config yourself and add the alias.",
        )
    if name == "proxycommand":
        add(Fields(jump=_proxy_command(setting)))
    elif name == "hostname":
        add(Fields(host=check.host(setting)))
    elif name == "port":
        add(Fields(port=check.port(setting)))
    elif name == "user":
        add(Fields(user=check.user(setting)))
    elif name == "identityfile":
        add(Fields(key=check.key(setting)))
    elif name == "proxyjump":
        add(Fields(jump=check.jumps(setting)))
    elif re.fullmatch(r"(?:ssh)?pass(?:word|wd|phrase)?", name):
        ignore(f"-o {match.group(1)}")
    else:
        ignore(check.no_shell(f"-o {match.group(1)}={setting}"))


def _proxy_command(setting: str) -> tuple[str, ...]:
    """``ssh -W %h:%p jump`` says what ``-J jump`` says; any other command is refused."""
    if setting.lower() in {"none", ""}:
        return ()
    refusal = refuse(
        "The option ProxyCommand runs a command on this computer.",
        "If you trust it, put it into ~/.ssh/config yourself and add the alias.",
    )
    words = _words(setting)
    forward = [index for index, word in enumerate(words) if word == "-W"]
    if words[0] not in {"ssh", "ssh.exe"} or len(forward) != 1:
        raise refusal
    at = forward[0]
    if words[at + 1 : at + 2] not in (["%h:%p"], ["[%h]:%p"]):
        raise refusal
    hop = _Reading("ssh")
    _options(hop, words[1:at] + words[at + 2 :])
    _machine(hop)
    if hop.fields.host is None or hop.fields.jump or len(hop.positional) != 1:
        raise refusal
    return (check.spelled(hop.fields),)


def _machine(reading: _Reading) -> None:
    """Take the machine from the positional words; what follows it would run there and is dropped."""
    if reading.program in _COPIES:
        if reading.program == "scp" and reading.fields.port is None and _looks_like_port(reading.positional):
            raise refuse("scp's port is -P; its -p keeps the times of files.", "Paste it with -P.")
        for word in reading.positional:
            _copied(reading, word)
        return
    rest = reading.positional
    if not rest:
        return
    target, remote = rest[0], rest[1:]
    if "://" in target:
        found, password = check.url(check.no_shell(target))
        reading.password = Secret(password) if password else reading.password
    elif reading.program == "sftp" and not target.startswith("["):
        found = check.address(target.partition(":")[0] if target.count(":") == 1 else target)
    else:
        found = check.address(target)
    if reading.fields.host is not None:  # -o HostName says where the name really leads
        found = replace(found, host=None)
    reading.add(found)
    _remote_words(reading, remote)


def _name_an_address(words: list[str]) -> bool:
    """Whether an address follows the first word: then that was a heading, as in "SSH access - root@host"."""
    return any(map(_IS_ADDRESS.match, words)) or any(map(_HOST_AND_PORT.match, words[:2]))


def _looks_like_port(words: list[str]) -> bool:
    return bool(words) and words[0].isdecimal() and _LEAST_UNSAID <= int(words[0][:6]) <= 65535


def _remote_words(reading: _Reading, words: list[str]) -> None:
    """A remote command is dropped without being kept: the words may as well be a password."""
    if not words:
        return
    plain_word = reading.fields.user is None and "." not in (reading.fields.host or "")
    if find(" ".join(words)) == 0 or (plain_word and _name_an_address(words)):
        raise refuse("The text names two machines.", "Paste one login at a time.")
    after = _PORT_AFTER.match(" ".join(words))
    if after and reading.fields.port is None and (after["said"] or int(after["port"]) >= _LEAST_UNSAID):
        reading.add(Fields(port=check.port(after["port"])))
        words = " ".join(words)[after.end() :].split()
    if words:
        check.no_shell(" ".join(words))
        reading.ignored.append("remote command")


def _copied(reading: _Reading, word: str) -> None:
    check.no_shell(word)
    remote = re.match(r"(?:scp://)?((?:[^/@:\s]+@)?(?:\[[^\]]+\]|[^/:\s]+)):", word)
    if remote and not re.match(r"[A-Za-z]:[\\/]", word):
        reading.add(check.address(remote.group(1)))

"""A login spread over the lines of a console's page: commands, labels with values, headings, a password.

One line is a login for sure when it names a machine as only a login does. Where such a line stands, the words
around it that are plain prose are headings and buttons of the page; without one nothing is passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tui.box.parsers import login_command, login_elsewhere, login_labels
from tui.box.parsers import login_fields as check
from tui.box.parsers.login_fields import Fields, union
from tui.box.parsers.login_text import Secret, refuse

_FENCE = re.compile(r"\s*(?:```+|~~~+)\s*[\w+-]*\s*\Z")
_LIST_MARK = re.compile(r"\A(?:[-*•·]|\d{1,2}[.)])\s+(?=\S)")
_LINK = re.compile(r"(?:^|(?<=[\s:]))(?:ssh|sftp)://\S+", re.IGNORECASE)
# "root@host port 22", "root@host (port 22)": said in words, where a command would say -p.
_PORT_IN_WORDS = re.compile(
    r"(\S+@[^\s,;(]+)[,;]?\s*\(?\s*(?:on )?(?:the )?(?:port|端口)\s*[:=]?\s*(\d{1,5})\)?(?=\s|[,;.]|\Z)",
    re.IGNORECASE,
)
# "登录:root@host", "ssh into root@host": words that neither name a machine nor say anything about it.
_WORDS_AROUND = re.compile(
    r"^\s*[一-鿿]{1,12}\s*:\s*(?=[\w.+#-]+@)|(?<=\bssh )(?:in)?to (?=\S+@)", re.IGNORECASE
)
_USUAL_USERS = frozenset({"root", "ubuntu", "admin", "debian", "ec2-user", "user"})
_WEB_LINK = re.compile(r"https?://[^\s@]+", re.IGNORECASE)
_PROSE_WORD = re.compile(r"[(\"']*(?:&|[\w一-鿿][\w一-鿿.,:'’+/-]*[)\"']*[.,:]*)\Z")
_NOT_PROSE = re.compile(r"@|//|&&|(?:^|\s)[-/~.]|[$`;|<>{}\\]")
# What a page's buttons and tabs say, copied along with the login.
_BUTTONS = (
    "copy copied show hide reveal terminal shell bash console connect ssh linux windows macos powershell "
    "instance details access 复制 拷贝 已复制 显示 隐藏 查看 终端 连接 实例"
)
_HOUSEKEEPING = re.compile(r"(?:sudo\s+)?(?:chmod|ssh-add|ssh-keygen)\s", re.IGNORECASE)
_DOTTED = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}\Z")


@dataclass(slots=True)
class _Page:
    """What has been read so far.

    Attributes:
        sure: some line of the paste is a login for sure.
        awaited: the meaning of a label whose value stands on the next line.
        words: single words that may be a password, or the host where nothing else names one.
    """

    many: bool
    sure: bool
    found: Fields = Fields()
    secret: Secret | None = None
    awaited: str | None = None
    words: list[str] = field(default_factory=list)

    def add(self, more: Fields | None) -> None:
        if more is None:
            return
        if more.host and self.found.host and more.host != self.found.host:
            self.found, more = _past_the_gateway(self.found, more)
        self.found = union(self.found, more)


def read(text: str) -> tuple[Fields, Secret | None]:
    """The union of all lines. A line that is no part of a login page is refused. Raises Failure."""
    lines = _split(text)
    page = _Page(many=len(lines) > 1, sure=any(_is_sure(line) for line in lines))
    for line in lines:
        _line(page, line)
    _lone_words(page)
    return page.found, page.secret


def _past_the_gateway(one: Fields, other: Fields) -> tuple[Fields, Fields]:
    """Two ways to one machine, as a page shows them: the one past a gateway that runs no commands is left."""
    gateways = [way for way in (one, other) if (way.host or "").lower() in check.SHELL_ONLY]
    if len(gateways) != 1:
        return one, other
    direct = other if gateways[0] is one else one
    spelled = check.spelled(gateways[0])
    return Fields(key=gateways[0].key, ignored=(*gateways[0].ignored, spelled)), direct


def _split(text: str) -> list[str]:
    """The lines that say something, without Markdown's fences, table borders and list marks."""
    lines: list[str] = []
    for raw in re.sub(r"\\\n\s*", " ", text).split("\n"):
        line = raw.strip()
        if _FENCE.match(line) or not line.strip("|-=_*# :`"):
            continue
        row = re.fullmatch(r"\|(.*)\|", line)
        cells = row.group(1).split("|") if row else [line]
        lines += [_LIST_MARK.sub("", cell.strip(), count=1) for cell in cells if cell.strip()]
    return [line.replace("**", "").strip() for line in lines]


def _is_sure(line: str) -> bool:
    if login_elsewhere.find(line) is not None:
        return False
    labelled = login_labels.names_host(line)
    return login_command.find_sure(line) is not None or labelled or bool(_LINK.search(line)) or _is_bare(line)


def _is_bare(line: str) -> bool:
    """``user@host``, with nothing or options behind it."""
    return re.match(r"[\w.+#@-]+@[\w.\[\]:%-]+(?:\s+-|\s*\Z)", tidy(line)) is not None


def _line(page: _Page, line: str) -> None:
    if page.awaited == "password" and not _is_sure(line):
        page.secret, page.awaited = Secret(line), None
        return
    line, cut = login_labels.cut_password(line)
    page.secret = cut or page.secret
    kind = login_labels.meaning(line) if page.many and line and not _is_sure(line) else None
    if kind or not line:
        page.awaited = kind or page.awaited
        return
    awaited, page.awaited = page.awaited, None
    if awaited and not _stands_for_itself(line):
        page.add(login_labels.field(awaited, tidy(line)))
        return
    _whole(page, line)


def _stands_for_itself(line: str) -> bool:
    command = login_command.find(line) is not None or login_elsewhere.find(line) is not None
    return command or login_labels.labelled(line) is not None


def _whole(page: _Page, line: str) -> None:
    """One line that stands for itself."""
    line = _PORT_IN_WORDS.sub(r"\1 -p \2", _WORDS_AROUND.sub("", line))
    start = _command(page, line)
    elsewhere = login_elsewhere.find(line)
    if elsewhere is not None and (start is None or elsewhere.start < start):
        raise elsewhere.refusal()
    if start is not None:
        found, secret = login_command.read(tidy(_unwrapped(line, start)))
        page.add(found)
        page.secret = secret or page.secret
        return
    announces = line.rstrip().endswith(":") and page.many
    line = tidy(line)
    if not line or line.startswith("#") or announces or (page.many and _HOUSEKEEPING.match(line)):
        return
    link = _LINK.search(line)
    if link:
        found, password = check.url(check.no_shell(link.group()))
        page.add(found)
        page.secret = Secret(password) if password else page.secret
        return
    labelled = login_labels.labelled(line) if "://" not in line else None
    spaced = login_labels.spaced(line) if page.many and labelled is None else None
    if labelled or isinstance(spaced, Fields):
        page.add(labelled or (spaced if isinstance(spaced, Fields) else None))
    elif isinstance(spaced, Secret):
        page.secret = spaced
    elif _passes_over(page, line):
        return
    else:
        _bare(page, line)


def _command(page: _Page, line: str) -> int | None:
    """Where the line's own command begins. Beside a sure login, "SSH login" is a heading and no alias."""
    start = login_command.find_sure(line)
    if start is None and not (page.sure and page.many):
        start = login_command.find(line)
        named = line[start:].partition(" ")[2] if start is not None else ""
        if login_labels.meaning(named) in {"command", "password"}:
            return None  # "SSH login" names no machine
    return None if start is None or _is_quoted_value(line, start) else start


def _is_quoted_value(line: str, start: int) -> bool:
    """Whether what looks like a command is the value of an option, as in ``rsync -e "ssh -p 22"``."""
    return " -" in line[:start] and login_command.find(line[:start]) is not None


def _passes_over(page: _Page, line: str) -> bool:
    """Whether the line belongs to the page around the login: a heading, a button, "Region: …"."""
    if not page.many and page.found.host is None:
        return False
    if page.sure and _WEB_LINK.fullmatch(line):
        return True
    if login_labels.ANY_LABEL.match(line) and "@" not in line.partition(":")[0]:
        return True
    words = line.split()
    if len(words) == 1:
        return line.lower() in _BUTTONS.split() or (page.sure and not line.isascii() and line.isalpha())
    return page.sure and not _NOT_PROSE.search(line) and all(_PROSE_WORD.match(word) for word in words)


def _unwrapped(line: str, start: int) -> str:
    """The command from its beginning, without the quotes or backticks that enclosed it."""
    before, command = line[:start].rstrip(), line[start:]
    mark = before[-1:]
    if mark and mark in "`\"'" and command.count(mark) % 2 == 1:
        command = command[: command.rindex(mark)]
    return command


def tidy(line: str) -> str:
    """Without prompt, enclosing quotes and the punctuation of the sentence around it."""
    line = re.sub(r"^[$#>%]\s+", "", line.strip())
    while len(line) > 1 and line[0] == line[-1] and line[0] in "`\"'":
        line = line[1:-1].strip()
    ending = re.search(r"[.,;:!?)>]+$", line)
    return line if ending is None or line.endswith("::") else line[: ending.start()].rstrip()


def _bare(page: _Page, line: str) -> None:
    """``[user@]host[:port] [-p port]`` without a program before it, or an unlabelled password line."""
    words = line.split()
    if re.search(r"(?:^|[\s:])[a-z][a-z0-9+.-]*://|^(?:mailto|tel|sip|xmpp):", line, re.IGNORECASE):
        raise refuse("This is a web link, not an SSH login.")
    if len(words) == 1 and (page.many or page.found.host) and "@" not in line:
        if re.search(r"\$\(|`|;|\||&&", line):
            raise refuse("The text holds shell characters on a line of its own.")
        page.words.append(line)
    elif line.lower() in {"ssh", "scp", "sftp", "rsync", "login", "password"}:
        raise refuse("This is no SSH login.")
    elif len(words) == 1:
        found, password = check.url(_without_path(line))
        page.add(found)
        page.secret = Secret(password) if password else page.secret
    elif len(words) == 2 and re.fullmatch(r"[0-9]{1,5}", words[1]):
        page.add(union(check.address(words[0]), Fields(port=check.port(words[1]))))
    elif "@" in words[0] or words[0].startswith("-"):
        found, secret = login_command.read(f"ssh {line}")
        page.add(found)
        page.secret = secret or page.secret
    else:
        raise refuse("A line of the text is no part of an SSH login.")


def _lone_words(page: _Page) -> None:
    """Words without a label: the host where nothing else names one, else the password that no label told."""
    labelled = page.secret is not None
    lone_host = page.found.host is None
    for word in page.words:
        name, _, number = word.partition(":")
        if page.found.host is None and looks_like_host(name) and (not number or number.isdecimal()):
            page.add(check.address(word))
        elif page.found.port is None and word.isdecimal() and 1024 <= int(word[:6]) <= 65535:
            if not lone_host:
                raise refuse(
                    "A number on a line of its own may be the port or the password.",
                    "Paste the port as -p PORT, or write password: in front of it.",
                )
            page.add(Fields(port=check.port(word)))
        elif lone_host and page.found.user is None and word in _USUAL_USERS:
            page.add(Fields(user=word))
        elif not labelled:
            page.secret = Secret(word)


def looks_like_host(word: str) -> bool:
    """Whether a word without a label is a host name with dots, or an IPv4 address."""
    return bool(_DOTTED.match(word) or re.fullmatch(r"(?:\d{1,3}\.){3}\d{1,3}", word))


def _without_path(word: str) -> str:
    """``user@host:/path`` as scp writes it, without the path."""
    return re.sub(r"(?<=[A-Za-z0-9\]]):[~/].*$", "", word)

"""Logins that are no command: labelled lines (English and Chinese), JSON, and ssh configuration blocks."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from tui.box.parsers import login_command
from tui.box.parsers import login_fields as check
from tui.box.parsers.login_fields import Fields, union
from tui.box.parsers.login_text import Secret, refuse

_WORDS = {
    "command": "登录指令 登录命令 登陆指令 登陆命令 连接命令 连接指令 "
    "ssh登录 ssh登录指令 ssh登录命令 ssh指令 ssh命令 ssh连接 "
    "command ssh ssh_command sshcommand login ssh_login sshlogin connect ssh_connect connection "
    "url ssh_url sshurl",
    "host": "主机 主机名 主机地址 地址 服务器 服务器地址 公网ip 外网ip ip地址 ssh主机 ssh地址 "
    "host hostname host_name ssh_host sshhost remote_host server domain address addr "
    "ip ip_address ipaddress ip_addr public_ip publicip public_ipaddr external_ip",
    "port": "端口 端口号 ssh端口 外部端口 公网端口 "
    "port ssh_port sshport port_number external_port public_port",
    "user": "用户 用户名 账号 帐号 账户 登录名 user username user_name ssh_user sshuser login_user account",
    "password": "密码 口令 密碼 登录密码 ssh密码 root密码 "
    "password passwd passphrase pwd pass pw ssh_password sshpassword root_password rootpassword ssh_pwd",
    "key": "密钥 私钥 key ssh_key identity identity_file identityfile key_file keyfile key_path private_key",
    "jump": "跳板机 jump proxyjump proxy_jump jump_host jumphost bastion",
}
_MEANING = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
_SPACED = sorted(_MEANING, key=len, reverse=True)
_LABEL = re.compile(
    r"(?<![\w@./%-])(?:ssh |root |your |the |登录|登陆)?(?P<label>"
    + "|".join(re.escape(word).replace("_", "[ _]") for word in _SPACED)
    + r")\s*(?:[:=]|\bis\b|是|为)(?!//)\s*",
    re.IGNORECASE,
)
_PASSWORD = re.compile(
    r"(?<![\w.-])(?:ssh[ _]|(?<![:=])(?<![:=]\s)root[ _]|ssh|root|登录|登陆)?(?:password|passwd|passphrase"
    r"|pwd|pass|pw|密码|口令|密碼)"
    r"\s*(?:[:=]|\bis\b|是|为|(?<=[码令碼])\s)\s*(?P<value>\S.*?)?\s*$",
    re.IGNORECASE,
)
ANY_LABEL = re.compile(r"\s*[\w一-鿿][\w一-鿿 ./()-]{0,39}?\s*:(?=\s|$|[一-鿿\w])")


def meaning(word: str) -> str | None:
    """What a label stands for: command, host, port, user, password, key, jump; None for others."""
    key = re.sub(r"[ -]", "_", word.strip().strip(":").strip().lower())
    return _MEANING.get(key) or _MEANING.get(key.replace("_", "")) or _MEANING.get(key.removeprefix("ssh_"))


def cut_password(line: str) -> tuple[str, Secret | None]:
    """`line` up to a password label, and what followed it."""
    match = _PASSWORD.search(line)
    if match is None or match.group("value") is None:
        return line, None
    value = match.group("value")
    following = _LABEL.search(value)
    if following and following.start() > 0:
        line = line[: match.start()] + " " + value[following.start() :]
        value = value[: following.start()].rstrip(" ,;")
    else:
        line = line[: match.start()]
        if line.rstrip().endswith("("):
            value = value.removesuffix(")")
    return line.rstrip(" ,;|/("), Secret(value.strip("\"'"))


def labelled(line: str) -> Fields | None:
    """One line of ``label: value`` pairs; None when it holds no label that matters. Raises Failure."""
    marks = list(_LABEL.finditer(line))
    if not marks:
        return None
    found = Fields()
    ends = [mark.start() for mark in marks[1:]] + [len(line)]
    for mark, end in zip(marks, ends, strict=True):
        value = line[mark.end() : end].strip(" ,;|").strip("\"'")
        kind = meaning(mark.group("label"))
        if mark.group("label").lower() == "login" and re.fullmatch(r"[A-Za-z_][\w-]*", value):
            kind = "user"  # "Login: root"; a machine has a dot, or a command before it
        if value and kind is not None:
            found = union(found, field(kind, value))
    return found


def names_host(line: str) -> bool:
    """Whether the line is a label that means a host, with its value."""
    return any(meaning(mark.group("label")) == "host" for mark in _LABEL.finditer(line) if line[mark.end() :])


_SPACED_SHAPES = {
    "port": r"\d{1,5}",
    "host": r"\[?(?=\S*[.:])[\w.:%-]+\]?",
    "user": r"[a-z_][a-z0-9_.-]*",
    "key": r"\S*[/\\.]\S*",
    "password": r"\S+",
}


def spaced(line: str) -> Fields | Secret | None:
    """``Port 22``: a label and one word in the shape of its value, with only a space between them.

    Returns:
        None where the line is neither: "User guide" is left to who asks, "Username Password" heads a table.
    """
    label, _, value = line.rpartition(" ")
    kind = meaning(label) if label else None
    shape = _SPACED_SHAPES.get(kind or "")
    if kind is None or shape is None or meaning(value) is not None or not re.fullmatch(shape, value):
        return None
    if kind == "user" and value in {"guide", "name", "account", "manual", "login", "access"}:
        return None
    return Secret(value) if kind == "password" else field(kind, value)


def field(kind: str, value: str) -> Fields:
    """One labelled value. Raises Failure."""
    if kind in {"command", "host", "user"} and re.match(r"-\S*\s|\S+@\S+(?:\s+-|\Z)", value):
        return login_command.read(f"ssh {value}")[0]  # "SSH: root@h -p 22"
    if kind == "port":
        return Fields(port=check.port(value))
    if kind == "user":
        return Fields(user=check.user(value))
    if kind == "key":
        return Fields(key=check.key(value))
    if kind == "jump":
        return Fields(jump=check.jumps(value))
    if "://" in value and not re.match(r"(?:ssh|sftp)://", value, re.IGNORECASE):
        raise refuse("This is a web link, not an SSH login.")
    if "://" in value:
        return check.url(check.no_shell(value))[0]
    start = login_command.find(value)
    if start is not None:
        return login_command.read(value[start:])[0]
    return check.address(value)


def is_json(text: str) -> bool:
    """Whether the paste is a JSON object or list."""
    return text[:1] in "{[" and text[-1:] in "}]" and ('"' in text)


def read_json(text: str) -> tuple[Fields, Secret | None]:
    """A JSON object with the usual names, also nested, as control APIs answer. Raises Failure."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict | list):
        raise refuse("The text looks like JSON and cannot be read.")
    found, secret = _walk(tree, 0)
    if found.host is None:
        raise refuse("The JSON names no host.")
    return found, secret


def _walk(node: object, depth: int) -> tuple[Fields, Secret | None]:
    found, secret = Fields(), None
    if depth > 6:
        return found, secret
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for name, value in children:
        more: Fields | None = None
        if isinstance(value, dict | list):
            if name == "portMappings" and isinstance(value, dict) and "22" in value:
                more = Fields(port=check.port(str(value["22"])))
            else:
                more, deeper = _walk(value, depth + 1)
                secret = secret or deeper
        elif isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            kind = meaning(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)))
            if kind == "password":
                secret = Secret(str(value))
            elif kind is not None:
                more = field(kind, str(value))
        found = union(found, more) if more else found
    return found, secret


# A block whose lines ran together when it was copied: "Host gpu HostName h User root".
_FLATTENED = re.compile(r"(?<=[^\s#])[ \t]+(?=(?:HostName|User|Port|IdentityFile|ProxyJump)[ \t]+\S)")


def is_config(text: str) -> bool:
    """Whether the paste is a block of an ssh configuration file."""
    begins = re.match(r"\s*(?:#.*\n\s*)*(?:Host|Match)\s+[^\s:=]", text, re.IGNORECASE)
    return bool(begins) and ("\n" in text or bool(_FLATTENED.search(text)))


def read_config(text: str) -> Fields:
    """One ``Host`` block; its alias is the host where no HostName stands. Raises Failure."""
    alias: Fields | None = None
    found, ignored = Fields(), list[str]()

    def add(more: Fields) -> None:
        nonlocal found
        found = union(found, more)

    for line in _FLATTENED.sub("\n", text).splitlines():
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        name, _, value = re.sub(r"\s*=\s*|\s+", " ", word, count=1).partition(" ")
        if name.lower() != "host":
            login_command.option(word, add, ignored.append)
        elif alias is not None:
            raise refuse("The text names two different hosts.", "Paste one Host block at a time.")
        else:
            alias = Fields(host=check.host(value.split()[0].strip('"') if value.split() else ""))
    if found.host is None and alias is not None:
        found = union(found, alias)
    return replace(found, ignored=tuple(ignored))

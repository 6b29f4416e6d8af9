"""Sessions of tmux, and what its client says when there are none to list.

Wordings follow client.c and tmux.c of versions 1.8 to 3.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.box.parsers.lines import lines
from tui.box.parsers.report import NOTHING
from tui.model.telemetry import Session
from tui.model.text import SafeText, safe

_LISTED = re.compile(
    r"^(?P<name>.*?): (?P<windows>\d{1,6}) windows? \(created (?P<created>[^)]*)\)(?P<rest>.*)$"
)
_GROUP = re.compile(r"\(group (?P<group>.*?)\)")
_SIZE = re.compile(r"\[(?P<width>\d{1,5})x(?P<height>\d{1,5})\]")
_SHORT = {"S": "session_name", "I": "window_index", "W": "window_name", "H": "host", "D": "pane_id"}
_COUNTED = re.compile(r"session_(?:windows|attached|created|activity|width|height|group_size)\Z|pane_pid\Z")
_ALIVE = re.compile(r"\btmux(?::? server)?\b")
RECREATE_SOCKET = SafeText("server may be alive: send SIGUSR1 to recreate the socket")

_SAYS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(form), word)
    for form, word in (
        (r"no server running on |no sessions|no current session|failed to connect to server", "none"),
        (r"error connecting to \S.* \(No such file or directory\)", "socket_gone"),
        (r"error connecting to \S.* \(Connection refused\)", "none"),
        (r"error connecting to \S.* \((?:Permission denied|Operation not permitted)\)", "permission"),
        (
            r"couldn't create directory .*\(Permission denied\)|has unsafe permissions|Permission denied",
            "permission",
        ),
        (r"can't find session|session not found|no such session", "no_such_session"),
        (r"lost server|server exited unexpectedly", "lost"),
        (r"protocol version mismatch|server version is too old", "protocol_mismatch"),
        (r"need UTF-8 locale|invalid LC_ALL, LC_CTYPE or LANG", "locale"),
        (r"open terminal failed|missing or unsuitable terminal|not a terminal", "no_terminal"),
        (r"sessions should be nested with care", "nested"),
        (r"duplicate session", "duplicate_session"),
        (r"create (?:session|window|pane) failed|fork failed|error creating", "create_failed"),
        (r"error connecting to ", "unreachable"),
    )
)


@dataclass(frozen=True, slots=True)
class TmuxSession:
    """One session.

    Attributes:
        name: None where the C locale replaced its letters by ``_``: then it can't be used as a key.
        mangled: what was printed instead of the name.
        created: box-local time as printed; it names no zone.
        created_at: seconds since the epoch, only from a format with ``session_created``.
    """

    name: SafeText | None
    windows: int | None = None
    attached: bool | None = None
    created: SafeText | None = None
    created_at: float | None = None
    group: SafeText | None = None
    mangled: SafeText | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class TmuxReport:
    """`sessions` None: could not be told, see `error`. `lost`: the server died or is out of reach.

    Attributes:
        exists: what ``has-session`` answered about the session it was asked for.
    """

    sessions: tuple[TmuxSession, ...] | None = None
    error: str = ""
    hint: SafeText = NOTHING
    lost: bool = False
    exists: bool | None = None


def parse_list(text: str, layout: str | None = None, utf8: bool = False) -> tuple[TmuxSession, ...]:
    """Sessions of ``tmux ls``.

    Args:
        layout: the ``-F`` format it was called with; None for the built-in one.
        utf8: it was called with ``-u``, so that names cannot be mangled.
    """
    pattern = _compiled(layout) if layout else _LISTED
    found = []
    for line in lines(text):
        match = pattern.match(line)
        if match and line.strip():
            found.append(_formatted(match) if layout else _built_in(match, utf8))
    return tuple(found)


def _built_in(match: re.Match[str], utf8: bool) -> TmuxSession:
    rest = match.group("rest")
    group, size = _GROUP.search(rest), _SIZE.search(rest)
    name = match.group("name")
    mangled = not utf8 and is_mangled(name)
    return TmuxSession(
        name=None if mangled else safe(name, 256),
        windows=int(match.group("windows")),
        attached="(attached)" in rest,
        created=safe(match.group("created"), 64),
        group=safe(group.group("group"), 256) if group else None,
        mangled=safe(name, 256) if mangled else None,
        width=int(size.group("width")) if size else None,
        height=int(size.group("height")) if size else None,
    )


def is_mangled(name: str) -> bool:
    """Whether a name lost its letters to the C locale, which prints ``_`` for each non-ASCII column."""
    return "_" in name and (not any(c.isalnum() for c in name) or re.search(r"_{4,}", name) is not None)


def _compiled(layout: str) -> re.Pattern[str]:
    """A ``-F`` format as a pattern with one group per variable; the last one takes the rest of the line."""
    parts: list[str] = []
    seen: set[str] = set()
    for literal, braced, short in re.findall(r"([^#]+)|#\{([^}]*)\}|#(\w)", layout.replace("##", "\0")):
        if literal:
            parts.append(re.escape(literal.replace("\0", "#").replace("\\t", "\t")))
            continue
        name = braced or _SHORT.get(short, "")
        known = re.fullmatch(r"[a-z_]+", name) and name not in seen
        form = r"\d*" if _COUNTED.match(name) else ".*?"
        parts.append(f"(?P<{name}>{form})" if known else form)
        seen.add(name)
    return re.compile("^" + "".join(parts) + "$")


def _formatted(match: re.Match[str]) -> TmuxSession:
    values = match.groupdict()
    number = {key: int(value) for key, value in values.items() if value and re.fullmatch(r"\d{1,12}", value)}
    name, attached = values.get("session_name"), number.get("session_attached")
    return TmuxSession(
        name=safe(name, 256) if name is not None else None,
        windows=number.get("session_windows"),
        attached=attached > 0 if attached is not None else None,
        created_at=float(number["session_created"]) if "session_created" in number else None,
        group=safe(values["session_group"] or "", 256) if values.get("session_group") else None,
    )


def read_client(
    stdout: str,
    stderr: str,
    status: int | None,
    *,
    processes: str = "",
    layout: str | None = None,
    utf8: bool = False,
) -> TmuxReport:
    """Everything a tmux client said.

    Args:
        processes: what is known of running tmux processes (``pgrep -af tmux``): with one alive, a missing
            socket means a server out of reach, not one that ended.
    """
    sessions = parse_list(stdout, layout, utf8)
    if sessions:
        return TmuxReport(sessions)
    says = next((word for form, word in _SAYS if form.search(stderr) or form.search(stdout)), "")
    if says == "socket_gone" and _ALIVE.search(processes):
        return TmuxReport(None, "socket_gone", RECREATE_SOCKET, lost=True)
    if says in {"none", "socket_gone"}:
        return TmuxReport(())
    if says == "lost":
        return TmuxReport((), "server_lost", lost=True)
    if says:
        return TmuxReport(None, says)
    return TmuxReport(() if status == 0 and not stdout.strip() else None)


_SCREEN = re.compile(
    r"^[ \t]+\d{1,10}\.(\S{1,256})[ \t].{0,200}\((Attached|Detached|Multi, [ad]\w+|Dead \?*)\)", re.MULTILINE
)


def read_screen(text: str) -> TmuxReport:
    """``screen -ls``: its rows are ``PID.NAME (date) (Attached|Detached)``."""
    found = tuple(
        TmuxSession(safe(name, 256), attached="ttached" in how) for name, how in _SCREEN.findall(text)
    )
    return TmuxReport(found if found or "No Sockets found" in text else None)


def shown_name(asked: str) -> str:
    """The name tmux gives a session asked for as `asked`: ``.`` and ``:`` become ``_``."""
    return re.sub(r"[.:]", "_", asked)


def as_sessions(found: tuple[TmuxSession, ...]) -> tuple[Session, ...]:
    """The model's sessions; one without a usable name is left out."""
    return tuple(
        Session("tmux", one.name, one.created_at, one.attached, one.windows) for one in found if one.name
    )

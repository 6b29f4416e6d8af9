"""Processes and sessions as the probe lists them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from tui.box.parsers.lines import decode
from tui.box.parsers.tmux import as_sessions, read_client
from tui.box.probe.frame import Batch
from tui.box.probe.origin import reason, source
from tui.box.probe.system import Identity
from tui.model.reading import Reading, known, unknown
from tui.model.telemetry import ProcessInfo, Session
from tui.model.text import SafeText, safe

T = TypeVar("T")

MOST = 30
_REMEMBERED = 2000
_ROW = re.compile(r"(\d+) (\d+) (-?\d+) (-?\d+) ([A-Za-z]) (\d+) (\d+) (-?\d+) ([\d,]+|-) (.*)\Z")
_LINKS = {
    "linksb": re.compile(r"(l[rwx-]{9})\S* .* /proc/(\d+)/(cwd|fd/\d+) -> (.*)\Z"),  # ls -ldb
    "links": re.compile(r"(l[rwx-]{9}):'/proc/(\d+)/(cwd|fd/\d+)' -> '(.*)'\Z"),  # stat -c %A:%N
}
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a"}
_SESSIONS = "#{session_created} #{session_attached} #{session_windows} #{session_name}"

_SECRET_NAME = re.compile(
    r"passw(?:or)?d|passphrase|secret|token|api[-_]?key|access[-_]?key|credential", re.IGNORECASE
)
# Possessive, and bound to the beginning of a word: a box chooses these texts; their cost must stay linear.
_FLAG = re.compile(r"--?[\w.-]++\Z")
_NAMED = re.compile(r"(?<![\w.-])[\w.-]++=(?=.)", re.DOTALL)
_SECRET_WORD = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|glpat-|xox[bp]-|AKIA)[\w-]{8,}|(?<=://)[^/@\s:]*+:[^/@\s]++(?=@)"
)
_COUNTED = re.compile(r"--?(?:num|max|min|n|pad|eos|bos|unk|new)[-_]|tokeniz", re.IGNORECASE)
HIDDEN = "…"


@dataclass(frozen=True, slots=True)
class OpenFile:
    """One descriptor: its number, whether it may be written, and where it leads (exact)."""

    number: int
    writes: bool
    target: str


@dataclass(frozen=True, slots=True)
class Task:
    """One process with all that the probe read of it. `args` and paths are exact and never drawn."""

    pid: int
    ppid: int
    group: int
    terminal: str | None  # "/dev/pts/3"
    state: str
    cpu_ticks: int
    start_ticks: int
    pages: int
    ancestors: tuple[int, ...]
    comm: str
    args: tuple[str, ...] = ()
    cwd: str | None = None
    files: tuple[OpenFile, ...] = ()

    @property
    def command(self) -> SafeText:
        return by_args(shown_command, self.args) if self.args else safe(self.comm, 64)


def by_args(judge: Callable[[tuple[str, ...]], T], args: tuple[str, ...]) -> T:
    """What `judge`, which is pure, says of a command line; the same processes are listed again and again.

    Long ones are judged anew each time: a box chooses them, and must not choose how much is remembered.
    """
    return _judged(judge, args) if sum(map(len, args)) <= _REMEMBERED else judge(args)  # type: ignore[return-value]


@lru_cache(2048)
def _judged(judge: Callable[[tuple[str, ...]], object], args: tuple[str, ...]) -> object:
    return judge(args)


def shown_command(args: Sequence[str]) -> SafeText:
    """A command line fit to be shown and stored: what its own flags call a secret is left out."""
    shown: list[str] = []
    hide_next = False
    for arg in args:
        if hide_next and not arg.startswith("-"):
            shown.append(HIDDEN)
            hide_next = False
            continue
        counted = _COUNTED.match(arg)
        hide_next = not counted and bool(_FLAG.match(arg) and _SECRET_NAME.search(arg))
        shown.append(_SECRET_WORD.sub(HIDDEN, arg if counted else _without_value(arg)))
    return safe(" ".join(shown), 600)


def _without_value(arg: str) -> str:
    """``NAME=VALUE`` without the value when the name is a secret's, wherever in the argument it stands."""
    if "=" not in arg:
        return arg
    named = (pair for pair in _NAMED.finditer(arg) if _SECRET_NAME.search(pair[0]))
    pair = next(named, None)
    return arg if pair is None else arg[: pair.end()] + HIDDEN


def read_tasks(batch: Batch, identity: Identity) -> tuple[Task, ...] | None:
    """Every process that was listed; None where none could be."""
    listed = batch.messages.get("procs")
    if listed is None or listed.status not in ("0", "cut"):
        return None
    rows = [match for line in decode(listed.text).split("\n") if (match := _ROW.match(line))]
    commands = _commands(batch, [row[1] for row in rows], identity)
    folders, files = _links(batch)
    return tuple(_task(row, commands, folders, files) for row in rows)


def _task(
    row: re.Match[str],
    commands: Mapping[str, tuple[str, ...]],
    folders: Mapping[int, str],
    files: Mapping[int, list[OpenFile]],
) -> Task:
    pid = int(row[1])
    return Task(
        pid=pid,
        ppid=int(row[2]),
        group=int(row[3]),
        terminal=terminal(int(row[4])),
        state=row[5],
        cpu_ticks=int(row[6]),
        start_ticks=int(row[7]),
        pages=int(row[8]),
        ancestors=tuple(int(part) for part in row[9].split(",") if part.isdigit()),
        comm=row[10],
        args=commands.get(row[1], ()),
        cwd=folders.get(pid),
        files=tuple(files.get(pid, ())),
    )


def terminal(number: int) -> str | None:
    """The pseudo-terminal of a ``tty_nr`` (proc(5)): majors 136 to 143 hold 256 each."""
    major, minor = (number >> 8) & 0xFFF, (number & 0xFF) | ((number >> 12) & 0xFFF00)
    return f"/dev/pts/{(major - 136) * 256 + minor}" if 136 <= major <= 143 else None


def _commands(batch: Batch, pids: Sequence[str], identity: Identity) -> dict[str, tuple[str, ...]]:
    """Command lines, which come one after the other, each behind the boot id as a mark that none contains."""
    message = batch.messages.get("cmdlines")
    if message is None or identity.boot_id is None:
        return {}
    parts = decode(message.text).split(f"{identity.boot_id}\x1e")[1:]
    return {
        pid: tuple(part.replace("\x1e", "\n").rstrip("\x1f").split("\x1f"))
        for pid, part in zip(pids, parts, strict=False)
        if part
    }


def _links(batch: Batch) -> tuple[dict[int, str], dict[int, list[OpenFile]]]:
    """Working folders and open files, out of a listing of the links in /proc."""
    folders: dict[int, str] = {}
    files: dict[int, list[OpenFile]] = {}
    for name, form in _LINKS.items():
        message = batch.messages.get(name)
        for line in decode(message.text).split("\n") if message else ():
            match = form.match(line)
            if match is None:
                continue
            target = unescape(match[4]) if name == "linksb" else match[4]
            if match[3] == "cwd":
                folders[int(match[2])] = target
            else:
                number = int(match[3].removeprefix("fd/"))
                files.setdefault(int(match[2]), []).append(OpenFile(number, match[1][2] == "w", target))
    return folders, files


def unescape(text: str) -> str:
    r"""A name as ``ls -b`` writes it: ``\040`` or ``\n``, any other character after a backslash is itself."""
    if "\\" not in text:
        return text
    raw = _ESCAPE.sub(lambda match: _escaped(match[1]), text)
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def _escaped(code: str) -> str:
    if len(code) == 3:
        byte = int(code, 8) & 0xFF
        return chr(byte) if byte < 0x80 else chr(0xDC00 + byte)
    return _LETTERS.get(code, code)


def read_processes(
    tasks: Sequence[Task] | None, batch: Batch, identity: Identity, now: float | None, taken_at: float
) -> Reading[tuple[ProcessInfo, ...]]:
    """The heaviest processes of ours, by memory."""
    listed = batch.messages.get("procs")
    origin = source(
        "/proc/[0-9]*/stat, cmdline, cwd of our processes", taken_at, listed.text if listed else b""
    )
    if tasks is None:
        missing = listed is not None and listed.status == "127"
        why = "the box has no awk to list processes with" if missing else "the process list does not answer"
        return unknown(reason(why), origin)
    heavy = sorted(tasks, key=lambda task: task.pages, reverse=True)[:MOST]
    return known(tuple(as_process(task, identity, now) for task in heavy), origin)


def as_process(task: Task, identity: Identity, now: float | None) -> ProcessInfo:
    """The model's process. `now`: the box's clock, to tell its age."""
    started = identity.booted_at + task.start_ticks / identity.hertz if identity.booted_at else None
    return ProcessInfo(
        pid=task.pid,
        start_ticks=task.start_ticks,
        state=task.state,
        command=task.command,
        ppid=task.ppid,
        cwd=safe(task.cwd) if task.cwd else None,
        rss_bytes=task.pages * identity.page_bytes if task.pages >= 0 else None,
        cpu_s=task.cpu_ticks / identity.hertz,
        elapsed_s=max(0.0, now - started) if now is not None and started is not None else None,
    )


def read_sessions(
    batch: Batch, screens: str, identity: Identity, slurm: Iterable[Session], taken_at: float
) -> Reading[tuple[Session, ...]]:
    """tmux and screen sessions and Slurm jobs of ours."""
    message = batch.messages.get("tmux")
    if message is None:
        return unknown(reason("tmux does not answer"), source("tmux list-sessions", taken_at))
    text = decode(message.text)
    origin = source("tmux list-sessions; ls /run/screen; squeue", taken_at, text)
    found: list[Session] = []
    if message.status != "127":
        good = message.status in ("0", "cut")
        report = read_client(
            text if good else "", "" if good else text, 0 if good else 1, layout=_SESSIONS, utf8=True
        )
        if report.sessions is None:
            return unknown(reason(text.strip() or "tmux gave no answer"), origin)
        found += as_sessions(report.sessions)
    found += [Session("screen", safe(name.partition(".")[2], 256)) for name in _screen_names(screens)]
    found += slurm
    if identity.job and not any(one.name == identity.job[0] for one in found if one.kind == "slurm"):
        found.append(Session("slurm", identity.job[0]))
    return known(tuple(found), origin)


def _screen_names(text: str) -> list[str]:
    return sorted({line for line in text.split("\n") if re.match(r"\d+\.", line)})


def read_slurm(batch: Batch) -> tuple[Session, ...] | None:
    """Our Slurm jobs; None where Slurm was not asked or did not answer."""
    message = batch.messages.get("slurm")
    if message is None or message.status != "0":
        return None
    rows = [line.split("|", 2) for line in decode(message.text).split("\n")]
    return tuple(Session("slurm", safe(row[0], 64)) for row in rows if len(row) == 3)

"""What the box says about the watched runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tui.box.parsers.boot import same_boot
from tui.box.parsers.lines import decode
from tui.box.parsers.process import ProcStat, parse_proc_stat, process_info
from tui.box.parsers.tmux import shown_name
from tui.box.probe.frame import Batch, Message
from tui.box.probe.origin import reason, source
from tui.box.probe.system import Identity
from tui.model.reading import Reading, known, unknown
from tui.model.run import RunSpec
from tui.model.telemetry import FINISHED, CheckpointFile, LogFile, ProcessInfo, RunTruth, Session
from tui.model.text import SafeText, safe

MOST = 20
_STAT = re.compile(r"(\d+) (\d+) (\d+)(?:\.\d+)?\s*\Z")
_FILE = re.compile(r"(\d+)(?:\.\d+)? (\d+) (\d+) ([^/]*)/(.*)\Z", re.DOTALL)
_SILENT = SafeText("the file's mount does not answer")


@dataclass(frozen=True, slots=True)
class Life:
    """Whether a process lives: `alive` None where nothing is proven."""

    alive: bool | None
    why: SafeText = SafeText("")
    process: ProcessInfo | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """A run's log and checkpoints, and its recorded end, as the box last told."""

    log: Reading[LogFile] = Reading()
    checkpoints: Reading[tuple[CheckpointFile, ...]] = Reading()
    count: int | None = None
    end: SafeText | None = None


def pid_lines(text: str) -> dict[int, str]:
    """``PID`` and its ``/proc/PID/stat`` line, or ``-`` where there was none."""
    found: dict[int, str] = {}
    for line in text.split("\n"):
        pid, _, rest = line.partition(" ")
        if pid.isdigit():
            found[int(pid)] = rest
    return found


def life_of(
    spec: RunSpec,
    stats: Mapping[int, str],
    identity: Identity,
    commands: Mapping[tuple[int, int], ProcessInfo],
    uptime: float | None,
) -> Life:
    """Whether the run's own process lives, proven by pid, start time and boot.

    Args:
        stats: of `pid_lines`.
        commands: processes listed before, by pid and start time; they know the whole command line.
        uptime: seconds since boot.
    """
    if spec.pid is None:
        return Life(None)
    if same_boot(spec.boot_id, identity.boot_id) is False:
        return Life(False, reason("the box has been rebooted since; no process of then is left"))
    line = stats.get(spec.pid)
    if line is None:
        return Life(None, reason("the process was not asked for yet"))
    if line == "-":
        if identity.hides:
            return Life(None, reason(f"this box hides other users' processes; pid {spec.pid} may be one"))
        return Life(False, reason(f"there is no process {spec.pid} on the box"))
    stat = parse_proc_stat(line)
    if stat is None:
        return Life(None, reason(f"/proc/{spec.pid}/stat could not be read"))
    if spec.pid_start is not None and stat.start_ticks != spec.pid_start:
        return Life(False, reason(f"pid {spec.pid} now belongs to another process ({stat.comm})"))
    process = _process(stat, identity, commands.get((stat.pid, stat.start_ticks)), uptime)
    if stat.state in "ZX":
        return Life(
            False, reason(f"process {spec.pid} has ended; only its exit status remains (zombie)"), process
        )
    return Life(True, SafeText(""), process)


def _process(
    stat: ProcStat, identity: Identity, listed: ProcessInfo | None, uptime: float | None
) -> ProcessInfo:
    # A container may be told an uptime of its own, while start times count from the host's boot.
    sane = uptime if uptime is not None and uptime >= stat.start_ticks / identity.hertz else None
    return process_info(
        stat,
        command=listed.command if listed else None,
        cwd=listed.cwd if listed else None,
        hertz=identity.hertz,
        page_bytes=identity.page_bytes,
        uptime_s=sane,
    )


def session_alive(spec: RunSpec, sessions: Reading[tuple[Session, ...]]) -> bool | None:
    """Whether the run's tmux session or Slurm job is among those found; None where they are not known."""
    if spec.session is None or sessions.value is None:
        return None
    if spec.session.startswith("slurm:"):
        job = safe(spec.session.removeprefix("slurm:"))
        jobs = [one.name for one in sessions.value if one.kind == "slurm"]
        return True if job in jobs else (False if jobs else None)
    if spec.session.startswith("job:"):
        return None  # the cluster knows it; no session of this box does
    names = {safe(spec.session), safe(shown_name(spec.session))}
    return any(one.name in names for one in sessions.value if one.kind != "slurm")


def files_of(spec: RunSpec, key: str, batch: Batch, taken_at: float, earlier: Files) -> Files:
    """The run's files from this tick; what was not asked stays as it was."""
    if key in batch.denied or key in batch.stuck:
        return _unanswered(spec, earlier, taken_at)
    log, found = batch.messages.get(f"{key}.l"), batch.messages.get(f"{key}.c")
    late = key in batch.late
    files = earlier
    if (told := batch.messages.get(f"{key}.e")) is not None:
        files = replace(files, end=read_end(told))
    elif log is not None:
        files = replace(files, end=None)
    if log is not None:
        files = replace(files, log=read_log(spec.log or "", log, taken_at))
    elif late and spec.log:
        files = replace(files, log=unknown(_SILENT, source("stat LOG", taken_at)))
    if found is not None:
        shown, count = read_checkpoints(spec.checkpoints or "", found, taken_at)
        files = replace(files, checkpoints=shown, count=count)
    elif late and spec.checkpoints:
        silent: Reading[tuple[CheckpointFile, ...]] = unknown(_SILENT, source("stat FILES", taken_at))
        files = replace(files, checkpoints=silent, count=None)
    return files


def _unanswered(spec: RunSpec, earlier: Files, taken_at: float) -> Files:
    files = earlier
    if spec.log:
        files = replace(files, log=unknown(_SILENT, source("stat LOG", taken_at)))
    if spec.checkpoints:
        files = replace(files, checkpoints=unknown(_SILENT, source("stat FILES", taken_at)), count=None)
    return files


def read_log(path: str, message: Message, taken_at: float) -> Reading[LogFile]:
    """The log file from ``stat``'s inode, size and time."""
    text = decode(message.text)
    origin = source(f"stat {path!r}", taken_at, text)
    match = _STAT.match(text)
    if match is None:
        said = text.strip().rpartition(": ")[2]
        return unknown(reason(f"{said or 'stat gave no answer'}: {path}"), origin)
    return known(LogFile(safe(path), int(match[1]), int(match[2]), float(match[3])), origin)


def read_end(message: Message) -> SafeText | None:
    """The wrapper's record of the end, in a few words; None where it wrote none."""
    told = dict(line.partition(" ")[::2] for line in decode(message.text).split("\n"))
    words = told.get("reason", "").strip()
    if words == FINISHED or not words:
        return safe(words) or None
    if told.get("status", "").strip():
        words += f", status {told['status'].strip()}"
    if signal := told.get("signal", "").strip():
        words += f", SIG{signal.removeprefix('SIG')}"
    return safe(words, 120)


def read_checkpoints(
    pattern: str, message: Message, taken_at: float
) -> tuple[Reading[tuple[CheckpointFile, ...]], int | None]:
    """(the newest files, newest first; how many there are). The last line is that number."""
    text = decode(message.text)
    count: int | None = None
    found: list[CheckpointFile] = []
    for line in text.split("\n"):
        match = _FILE.match(line)
        if match is None:
            count = int(line) if line.isdigit() else count
        elif pattern == "" or matches(pattern, match[5]):
            found.append(CheckpointFile(safe(match[5]), int(match[2]), float(match[1])))
    found.sort(key=_age_and_name, reverse=True)
    if count is None and not found:
        count = 0
    return known(tuple(found[:MOST]), source(f"stat {pattern}", taken_at, text)), count


def _age_and_name(one: CheckpointFile) -> tuple[float, list[tuple[int, str]]]:
    """By age; within one second, which is all that stat tells everywhere, by the numbers in the name."""
    parts = re.findall(r"\d{1,18}|\D+", one.path)
    return one.modified_at, [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def matches(pattern: str, path: str) -> bool:
    """Whether `path` is one that a pattern with ``**`` means; find(1) lets ``*`` cross slashes.

    Other patterns the shell expanded itself, by its own rules.
    """
    if "**" not in pattern:
        return True
    try:
        wanted = re.compile(_regex(pattern.removeprefix("./")), re.DOTALL)
    except re.error:  # a class such as [z-a]; find took it for what it is
        return True
    return wanted.fullmatch(path.removeprefix("./")) is not None


def _regex(pattern: str) -> str:
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            pieces.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            pieces.append(".*")
            at += 2
        elif pattern[at] in "*?":
            pieces.append("[^/]*" if pattern[at] == "*" else "[^/]")
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inner = pattern[at + 1 : end].replace("\\", "\\\\")
            pieces.append("[" + ("^" + inner[1:] if inner[0] in "!^" else inner) + "]")
            at = end + 1
        else:
            pieces.append(re.escape(pattern[at]))
            at += 1
    return "".join(pieces)


def find_arguments(pattern: str) -> tuple[str, str]:
    """(folder without wildcards, pattern for ``find -path``) of a pattern with ``**``."""
    parts = pattern.split("/")
    plain = next((at for at, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts))
    base = "/".join(parts[:plain]) or ("/" if pattern.startswith("/") else ".")
    if not base.startswith(("/", ".")):
        base, pattern = f"./{base}", f"./{pattern}"
    elif base == ".":
        pattern = f"./{pattern.removeprefix('./')}"
    loose = pattern.replace("**/", "*").replace("**", "*")
    return base, loose


def truth_of(spec: RunSpec, life: Life, alive: bool | None, files: Files) -> RunTruth:
    """All of it together."""
    return RunTruth(
        run=spec.name,
        alive=life.alive,
        gone_reason=life.why,
        process=life.process,
        session_alive=alive,
        log=files.log,
        checkpoints=files.checkpoints,
        checkpoint_count=files.count,
        end=files.end,
    )

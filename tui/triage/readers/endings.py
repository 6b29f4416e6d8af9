"""How processes ended, as launchers, shells and tools say it, and which of them ended first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tui.model.incident import Fact
from tui.triage.finding import Hit
from tui.triage.view import View

WORDS = (
    "killed", "terminated", "segmentation", "core dumped", "exitcode", "exit code", "return code",
    "exit status", "by signal", "on signal", "got signal", "death signal", "hangup", "aborted",
    "bus error", "signals.sig", "signal sig", "root cause", "keyboardinterrupt", "已杀死", "已殺死", "段错误",
    "已终止", "強制終了",
    "已放弃", "总线错误", "processraised", "illegal instruction", "floating point exception",
    "command terminated", "received signal", "local_rank:", "exited with", "getötet", "processus arrêté",
    "sigkill", "double free", "free():", "malloc", "corrupted", "assertion",
    "terminated with code", "main process exited",
)  # fmt: skip

KILLED, TERMINATED, HUNG_UP, CRASHED, INTERRUPTED, FAILED = (
    "killed", "terminated", "hangup", "crash", "interrupt", "error",
)  # fmt: skip
_BY_SIGNAL = {9: KILLED, 15: TERMINATED, 1: HUNG_UP, 2: INTERRUPTED,
              4: CRASHED, 6: CRASHED, 7: CRASHED, 8: CRASHED, 11: CRASHED}  # fmt: skip
_NAMES = {"KILL": 9, "TERM": 15, "HUP": 1, "INT": 2, "ILL": 4, "ABRT": 6, "BUS": 7, "FPE": 8, "SEGV": 11}
_SAID = {
    "killed": 9, "terminated": 15, "hangup": 1, "segmentation fault": 11, "aborted": 6, "bus error": 7,
    "illegal instruction": 4, "floating point exception": 8, "interrupt": 2, "已杀死": 9, "段错误": 11,
    "段错误 (核心已转储)": 11, "已终止": 15, "已放弃": 6, "总线错误": 7, "getötet": 9, "processus arrêté": 9,
    "speicherzugriffsfehler": 11, "erreur de segmentation": 11, "中止": 6, "強制終了": 9, "挂起": 1,
    "已殺死": 9,
}  # fmt: skip
_WORD = "(?P<said>" + "|".join(sorted(map(re.escape, _SAID), key=len, reverse=True)) + ")"

_SHELL = re.compile(
    rf"(?i)^\S+: (?:(?:line|Zeile|ligne|línea|linea|linha|строка) \d+|第? ?\d+ ?[行列]|行 ?\d+)"
    rf" ?[:：] *(?P<pid>\d+) +{_WORD}(?!\w)"
)
_JOB = re.compile(
    rf"(?i)^\[\d+\][+-]? +(?:(?P<pid>\d+) )? *(?:exit (?P<code>[1-9]\d{{0,2}})(?: {{2,}}\S| *$)"
    rf"|{_WORD}(?: \(core dumped\))? {{2,}}\S)"
)
_ALONE = re.compile(rf"^(?i:{_WORD})(?: ?\((?:core dumped|核心已转储|吐核)\))?[.!]?$")
_BEHIND_BAR = re.compile(
    r"(?:it/s|s/it|it|\?)[^\[\]]{0,200}\](?P<said>Killed|Terminated|Segmentation fault|Aborted|Bus error)"
    r"(?: \(core dumped\))?$"
)
_ZSH = re.compile(rf"(?i)^(?:zsh|sh|bash|dash): (?:(?P<pid>\d+) )?{_WORD}(?: \(core dumped\))? {{2,}}\S")
_BY = re.compile(
    r"(?i)(?:killed by|terminated (?:by|with)|exited on|exited due to|died (?:with|of|from)"
    r"|interrupted by|got|caught)"
    r"(?: the)?:? (?:<?Signals\.)?(?:fatal )?signal:? *#?(?P<number>\d{1,2})?[ :(]*(?:SIG(?P<name>[A-Z"
    r"]{2,4})|(?P<said>killed|terminated|segmentation fault|aborted|bus error|hangup))?"
)
_SIGNALS = re.compile(
    r"(?:died with|by|with) <?Signals\.SIG(?P<name>[A-Z]+)(?:: (?P<number>\d+))?>?|\{SIG(?P<name2>KILL"
    r"|SEGV|ABRT|BUS)\(-\d+\)"
)
_DEATH = re.compile(r"Received (?:Signals\.)?(?:SIG)?(?P<what>[A-Z]+|\d+) death signal")
_EXIT = re.compile(
    r"(?i)(?:exits? with return code ?=|exitcode ?[:=]|exit(?:ed)? (?:with )?(?:exit )?(?:code"
    r"|status)(?: is)?[:= ]|terminated with code|returned non-zero exit status"
    r"|process finished with exit code|exit status:?|failed with (?:exit )?(?:code|status)"
    r"|status failed cmd \[.{1,1000}\] code|exit_code[:=]) *\(?(?P<code>-?\d{1,3})\b"
)
_SRUN = re.compile(
    rf"(?i)^srun: error: (?P<node>[\w.-]+): tasks? (?P<tasks>[\d,-]+): (?:Exited with exit code (?P<code>"
    rf"\d+)|{_WORD}(?: \(core dumped\))?)"
)
_MAKE = re.compile(rf"(?i)^(?:make|ninja)(?:\[\d+\])?: \*\*\* .*(?:Error (?P<code>\d+)|{_WORD})\s*$")
_ELASTIC = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\)")
_ROOT = re.compile(r"Root Cause \(first observed failure\)")
_FIELD = re.compile(r"^\s*(?P<name>rank|exitcode|traceback|host)\s*:\s*(?P<value>.+)$")
_FATAL = re.compile(
    r"Fatal Python error: (?:Segmentation fault|Aborted|Bus error|Illegal instruction"
    r"|Floating point exception|Floating-point exception)"
    r"|\*\*\* SIG(?:SEGV|ABRT|BUS|ILL|FPE) received at|^(?:\[[^\]]+\] )?Signal: (?:Segmentation fault"
    r"|Aborted|Bus error) \(\d+\)"
    r"|Caught signal (?:11|6|7|4) \(|^!{7} Segfault encountered !{7}"
    r"|^(?:free\(\)|malloc\(\)|realloc\(\)|munmap_chunk\(\)): (?:memory |invalid|corrupted|unaligned|unsorted"
    r"|mismatching|smallbin)|^double free or corruption|^corrupted (?:size vs|double-linked)"
    r"|^\*\*\* stack smashing detected"
    r"|^\*\*\* Error in .{1,200}: (?:double free|free\(|malloc|munmap|corrupted)"
    r"|^(?:\S+: )?\S+\.(?:c|cc|cpp|h|hpp):\d+: .{1,200}: Assertion .{2,300} failed\.?$"
    r"|^(?:python3?|\S*train\S*)\[\d+\]: segfault at|\]: segfault at [0-9a-f]+ ip "
)
_ABOUT_WORKERS = re.compile(
    r"(?i)Sending process \d+ closing signal|Killing subprocess|closing signal SIG|killing process group"
)
_SYSTEMD = re.compile(r"Main process exited, code=(?:killed|dumped), status=(?P<status>\d+)\b")
_CANNOT_RUN = re.compile(
    r"(?i)command not found|: not found$|permission denied|no such file or directory|exec format error"
    r"|cannot execute|bad interpreter|: syntax error near|: unexpected EOF while|语法错误"
    r"|未找到命令|权限不够|没有那个文件或目录"
)
_MPI = re.compile(r"mpirun noticed that process rank (?P<rank>\d+) .*exited on signal (?P<number>\d+)")
_TAKEN_DOWN = re.compile(
    r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT|Job step aborted|_step_signal: Terminating"
    r"|srun: Terminating"
)
_UNIT_CODE = re.compile(r"Main process exited, code=exited, status=(?P<code>\d+)/")
_CODED = (_SRUN, _ELASTIC, _MAKE, _UNIT_CODE, _JOB, _EXIT)
_SUCCESS = frozenset({0})


@dataclass(frozen=True, slots=True)
class Ended:
    """One process that ended.

    Attributes:
        at: index of the row that tells it.
        root: its launcher says that it was the first.
        follows: it was ended after another one, or after its launcher began to end all of them.
    """

    at: int
    how: str
    signal: int | None = None
    code: int | None = None
    pid: int | None = None
    rank: int | None = None
    root: bool = False
    node: str | None = None
    follows: bool = False


def by_code(code: int) -> tuple[str, int | None] | None:
    """How a process ended by its exit code: negative as Python tells it, over 128 as shells do."""
    if code in _SUCCESS:
        return None
    signal = -code if code < 0 else code - 128 if code > 128 else None
    if signal is not None and signal in _BY_SIGNAL:
        return _BY_SIGNAL[signal], signal
    return FAILED, None


def endings(view: View) -> list[Ended]:
    """All that is told, the first cause first where a launcher names it."""
    if "endings" not in view.cache:
        view.cache["endings"] = _endings(view)
    found: list[Ended] = view.cache["endings"]
    return found


def root_cause(view: View) -> Ended | None:
    """What the elastic launcher names as the first failure."""
    return next((one for one in endings(view) if one.root), None)


def _endings(view: View) -> list[Ended]:
    table = list(_tables(view))
    found: list[Ended] = []
    taken_down = False
    for index in range(len(view.rows)):
        one = _at(view, index)
        if one is not None and not (table and _ELASTIC.search(view.rows[index].text)):
            others = any(earlier.how in (FAILED, CRASHED) for earlier in found)
            found.append(replace(one, follows=others or taken_down))
        taken_down = taken_down or bool(_TAKEN_DOWN.search(view.rows[index].text))
    return table + found


def _tables(view: View) -> Iterator[Ended]:
    """The blocks *Root Cause* of the elastic launcher."""
    for index, one in enumerate(view.rows):
        if not _ROOT.search(one.text):
            continue
        told: dict[str, tuple[int, str]] = {}
        for place in range(index + 1, min(index + 14, len(view.rows))):
            field = _FIELD.match(view.rows[place].head)
            if field and field["name"] not in told:
                told[field["name"]] = (place, field["value"])
        code = re.match(r"-?\d+", told["exitcode"][1]) if "exitcode" in told else None
        if code is None:
            continue
        how = by_code(int(code[0]))
        rank = re.match(r"\d+", told["rank"][1]) if "rank" in told else None
        trace = told.get("traceback")
        at = trace[0] if trace and how and how[1] else told["exitcode"][0]
        pid = re.search(r"pid: (\d+)", told["exitcode"][1])
        if how:
            yield Ended(at, how[0], how[1], int(code[0]), int(pid[1]) if pid else None,
                        int(rank[0]) if rank else None, root=True)  # fmt: skip


def _at(view: View, index: int) -> Ended | None:
    one = view.rows[index]
    head = one.head.strip()
    if not head or len(head) > 3000:
        return None
    signalled = _signal(head)
    if signalled is not None and not view.quoted(index, 0):
        number, pid, rank = signalled
        how = _BY_SIGNAL.get(number)
        step = _SRUN.search(head)
        node = step["node"] if step else None
        rank = rank if rank is not None else one.rank
        return Ended(index, how, number, None, pid, rank, node=node) if how else None
    coded = next((m for form in _CODED if (m := form.search(head)) and m.groupdict().get("code")), None)
    if coded is None:
        return None
    told = coded.groupdict()
    ended = by_code(int(told["code"]))
    if ended is None or view.quoted(index, 0):
        return None
    how, signal = ended
    plain = re.search(r"(?i)return code|error|fail|exited|terminated with", head)
    certain = coded.re is not _EXIT or signal is not None or plain
    if not certain:
        return None
    rank = int(told["rank"]) if told.get("rank") else one.rank
    pid = int(told["pid"]) if told.get("pid") else None
    return Ended(index, how, signal, int(told["code"]), pid, rank, node=told.get("node"))


def _signal(head: str) -> tuple[int, int | None, int | None] | None:
    """(signal, pid, rank) as shells and launchers tell them in words."""
    if _ABOUT_WORKERS.search(head) and not _ELASTIC.search(head):
        return None
    for form in (_SHELL, _ALONE, _BEHIND_BAR, _JOB, _ZSH, _SRUN, _MAKE):
        match = form.search(head)
        if match:
            told = match.groupdict()
            word, pid = told.get("said"), told.get("pid")
            if word:
                return _SAID[word.lower()], int(pid) if pid else None, None
    unit = _SYSTEMD.search(head)
    if unit:
        return int(unit["status"]), None, None
    mpi = _MPI.search(head)
    if mpi:
        return int(mpi["number"]), None, int(mpi["rank"])
    if _FATAL.search(head):
        return (6 if re.search(r"(?i)abort|free|malloc|corrupt|smash|assertion", head) else 11), None, None
    death = _DEATH.search(head)
    if death:
        what = death["what"]
        return (int(what) if what.isdigit() else _NAMES.get(what.removeprefix("SIG"), 15)), None, None
    match = _SIGNALS.search(head) or _BY.search(head)
    if match:
        told = match.groupdict()
        name = told.get("name") or told.get("name2")
        if told.get("number"):
            return int(told["number"]), None, None
        if name in _NAMES:
            return _NAMES[name], None, None
        if told.get("said"):
            return _SAID[told["said"].lower()], None, None
    return None


def _rank(one: Ended, others: set[str]) -> int | None:
    """How much an ending says: SIGABRT is how C++ reports an error, and launchers end the rest by SIGTERM."""
    if one.how == FAILED:
        return 24 if one.root else 22
    if one.follows:
        return 15
    if one.signal == 6:
        return 24
    if one.how == TERMINATED and others != {TERMINATED}:
        return 15
    return 60 if one.root else None


def _hits(view: View, how: str) -> Iterator[Hit]:
    others = {one.how for one in endings(view)}
    for one in endings(view):
        if one.how != how:
            continue
        facts: dict[str, Fact] = {
            "signal": one.signal, "exit_code": one.code, "pid": one.pid, "rank": one.rank, "node": one.node,
        }  # fmt: skip
        facts = {name: value for name, value in facts.items() if value is not None}
        yield Hit(one.at, facts=facts, rank=_rank(one, others))
    status = _status(view)
    if status and status[0] == how and not any(one.how == how for one in endings(view)):
        code: dict[str, Fact] = {"exit_code": view.rc}
        if status[1] is not None:
            code["signal"] = status[1]
        plain = how == FAILED
        if plain and view.rc in (124, 126, 127) and not view.known.ended_far_side and not view.rows:
            return
        told = _cannot_run(view) if plain and view.rc in (2, 126, 127) else None
        words = "" if told is not None else f"exit status {view.rc}"
        yield Hit(told, words, code, rank=21 if plain else None, source="" if told is not None else "rc")


def _status(view: View) -> tuple[str, int | None] | None:
    """What the exit status says: that of a command, or of the run whose log did not come to a regular end."""
    if view.rc is None or view.kind not in ("log", "shell"):
        return None
    return None if view.kind == "log" and view.finished_at is not None else by_code(view.rc)


def _cannot_run(view: View) -> int | None:
    """The row in which a shell says that it could not run the program; its status says no more."""
    return next((index for index, one in enumerate(view.rows) if _CANNOT_RUN.search(one.text)), None)


def killed(view: View, cls: str) -> Iterator[Hit]:
    """SIGKILL."""
    yield from _hits(view, KILLED)


def terminated(view: View, cls: str) -> Iterator[Hit]:
    """SIGTERM."""
    yield from _hits(view, TERMINATED)


def hung_up(view: View, cls: str) -> Iterator[Hit]:
    """SIGHUP."""
    yield from _hits(view, HUNG_UP)


def crashed(view: View, cls: str) -> Iterator[Hit]:
    """SIGSEGV, SIGABRT, SIGBUS and the like."""
    yield from _hits(view, CRASHED)


def interrupted(view: View, cls: str) -> Iterator[Hit]:
    """SIGINT."""
    yield from _hits(view, INTERRUPTED)


def failed(view: View, cls: str) -> Iterator[Hit]:
    """An exit code of its own."""
    yield from _hits(view, FAILED)

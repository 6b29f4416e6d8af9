"""How a program ended: exit statuses, signal names, and the sentences in which others report them.

Spellings covered: POSIX shells (also translated), Python's subprocess and multiprocessing, PyTorch's elastic
launcher, systemd, Slurm's srun, Open MPI, GNU time, docker and supervisors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBERS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "IOT": 6, "BUS": 7, "FPE": 8, "KILL": 9,
    "USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16, "CHLD": 17,
    "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24, "XFSZ": 25,
    "VTALRM": 26, "PROF": 27, "WINCH": 28, "IO": 29, "PWR": 30, "SYS": 31,
}  # fmt: skip

# strsignal(3) of the GNU and BSD C libraries, and of translated shells.
_SENTENCES = {
    "hangup": 1, "挂断": 1, "挂起": 1,
    "interrupt": 2, "interrupted": 2, "中断": 2,
    "quit": 3, "退出": 3,
    "illegal instruction": 4, "非法指令": 4,
    "trace/breakpoint trap": 5, "trace trap": 5,
    "aborted": 6, "abort": 6, "abort trap": 6, "已放弃": 6, "已中止": 6, "中止": 6, "abgebrochen": 6,
    "abandon": 6,
    "bus error": 7, "总线错误": 7, "bus-zugriffsfehler": 7, "erreur du bus": 7,
    "floating point exception": 8, "浮点数例外": 8, "浮点异常": 8,
    "killed": 9, "kill": 9, "已杀死": 9, "已殺死": 9, "getötet": 9, "tué": 9, "processus arrêté": 9,
    "強制終了": 9,
    "segmentation fault": 11, "segfault": 11, "段错误": 11, "speicherzugriffsfehler": 11,
    "erreur de segmentation": 11, "セグメンテーション違反": 11, "段錯誤": 11,
    "broken pipe": 13, "alarm clock": 14,
    "terminated": 15, "已终止": 15, "終了": 15, "beendet": 15, "complété": 15,
    "cpu time limit exceeded": 24, "cputime limit exceeded": 24, "file size limit exceeded": 25,
    "filesize limit exceeded": 25, "bad system call": 31,
}  # fmt: skip
_WORDS = "|".join(sorted((re.escape(word) for word in _SENTENCES), key=len, reverse=True))
_SIG = r"(?:Signals\.)?(?:SIG)?(?P<name>" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + r")\b"
_END = r"(?=\s|$|[(（:,.])"

_SIGNAL_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"[:：]\s*(?P<pid>\d{{1,10}})\s+(?P<word>{_WORDS}){_END}",  # bash script: line 7: PID Killed
        rf"^\[\d+\]\s*[+-]?\s*(?:(?P<pid>\d{{1,10}})\s+)?(?P<word>{_WORDS}){_END}",  # interactive shells
        rf"^\s*(?:\S*sh: )?(?P<word>{_WORDS})(?::\s*\d{{1,2}})?\s*(?:[(（][^)）]*[)）])?\s*$",
        # the word alone
        rf"^Fatal Python error: (?P<word>{_WORDS}){_END}",
        rf"^\S+: error: \S+: tasks? [\d,-]+: (?P<word>{_WORDS}){_END}",  # srun
        rf"worker \(pid(?:\(s\))? (?P<pid>\d{{1,10}})[^)]*\) is killed by signal: (?P<word>{_WORDS}){_END}",
        rf"(?:terminated|killed) by (?:signal )?{_SIG}",
        rf"died with <?{_SIG}",
        rf"\bSignal (?P<number>\d{{1,2}}) \({_SIG}\) received by PID (?P<pid>\d{{1,10}})",
        r"\bexitcode\s*[:=]\s*-(?P<number>\d{1,2})\b(?:\s*\(pid: (?P<pid>\d{1,10})\))?",
        r"\breturn(?:ed)?\s*(?:non-zero exit status|code)\s*[:=]?\s*-(?P<number>\d{1,2})\b",
        r"\bexited on signal (?P<number>\d{1,2})\b",
        r"\bterminated by signal (?P<number>\d{1,2})\b",
        r"\binterrupted by signal (?P<number>\d{1,2})\b",
        r"\bSignal: .{1,40}\((?P<number>\d{1,2})\)",
        r"\bReceived (?:Signals\.)?(?P<number>\d{1,2}) death signal",
        rf"\bReceived {_SIG} death signal",
        r"code=(?:killed|dumped),? status=(?P<number>\d{1,2})(?:/|\b)",
        rf"code=(?:killed|dumped),? signal={_SIG}",
    )
)
_STATUS_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"code=exited,? status=(?P<code>\d{1,3})\b",
        r"\bExited \((?P<code>\d{1,3})\)",
        r"\bexit(?:ed)?[ _]?(?:with )?(?:exit )?(?:code|status)\s*[:=]?\s*(?P<code>\d{1,3})\b",
        r"\breturned non-zero exit status (?P<code>\d{1,3})\b",
        r"\bExecMainStatus=(?P<code>\d{1,3})\b",
        r"\bfailed with error code (?P<code>\d{1,3})\b",
    )
)
_KEYBOARD = re.compile(r"^[ \t]*KeyboardInterrupt\b|^\^C[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ending:
    """How one program ended, as far as it is known.

    Attributes:
        code: its exit status; None where a signal ended it and no shell turned that into a number.
        signal: the signal that ended it.
        pid: of the process the sentence names.
        line: 1-based line of the input; None when only the status told it.
    """

    code: int | None = None
    signal: int | None = None
    pid: int | None = None
    line: int | None = None


def signal_number(word: str) -> int | None:
    """The number of ``SIGKILL``, ``KILL``, ``9``, ``Killed`` or ``已杀死``; None for anything else."""
    bare = word.strip()
    if re.fullmatch(r"\d{1,2}", bare):
        return int(bare) if 0 < int(bare) <= 64 else None
    name = bare.upper().removeprefix("SIGNALS.").removeprefix("SIG")
    return _NUMBERS.get(name) or _SENTENCES.get(bare.lower())


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; ``signal 50`` for one without a name."""
    return next((f"SIG{name}" for name, value in _NUMBERS.items() if value == number), f"signal {number}")


def from_status(status: int) -> Ending:
    """What an exit status says. Python gives minus the signal, shells 128 plus it; 255 is no signal."""
    if status < 0:
        return Ending(code=None, signal=-status if status >= -64 else None)
    if 128 < status <= 128 + 64:
        return Ending(code=status, signal=status - 128)
    return Ending(code=status)


def from_pair(text: str) -> Ending | None:
    """Slurm's ``code:signal``, as in ``0:9``; None for anything else."""
    match = re.fullmatch(r"\s*(\d{1,3}):(\d{1,3})\s*", text)
    if match is None:
        return None
    code, signal = int(match.group(1)), int(match.group(2))
    return Ending(code=code, signal=signal if 0 < signal <= 64 else None)


def find_ending(text: str) -> Ending | None:
    """The first sentence in `text` that says a program was ended by a signal, else that it failed."""
    status: Ending | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        last = line.rpartition("\r")[2] if "\r" in line.rstrip("\r") else line
        for form in _SIGNAL_FORMS:
            match = form.search(last[:2000])
            signal = _signal_of(match) if match else None
            if match and signal:
                pid = match.groupdict().get("pid")
                return Ending(signal=signal, pid=int(pid) if pid else None, line=number)
        if status is None:
            status = _status_of(last[:2000], number)
    interrupt = _KEYBOARD.search(text)
    if interrupt:
        return Ending(signal=2, line=text.count("\n", 0, interrupt.start()) + 1)
    return status


def _signal_of(match: re.Match[str]) -> int | None:
    found = match.groupdict()
    word = found.get("number") or found.get("name") or found.get("word") or ""
    return signal_number(word)


def _status_of(line: str, number: int) -> Ending | None:
    for form in _STATUS_FORMS:
        match = form.search(line)
        if match:
            told = from_status(int(match.group("code")))
            return Ending(told.code, told.signal, line=number)
    return None

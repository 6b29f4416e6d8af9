"""``ps`` of procps, busybox, BSD and macOS in any set of columns, and ``pgrep``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tui.box.parsers.lines import lines
from tui.model.text import SafeText, safe

# Column titles and -o keywords, by what they mean to us; None for those we only step over.
_MEANING: dict[str, str] = {
    "PID": "pid", "TGID": "pid", "PPID": "ppid", "PGID": "pgid", "PGRP": "pgid", "SID": "sid", "SESS": "sid",
    "USER": "user", "UID": "user", "RUSER": "user", "EUSER": "user", "EUID": "user", "UNAME": "user",
    "STAT": "stat", "S": "stat", "STATE": "stat", "%CPU": "cpu", "PCPU": "cpu", "C": "cpu", "CP": "cpu",
    "%MEM": "mem", "PMEM": "mem", "VSZ": "vsz", "VSIZE": "vsz", "VIRT": "vsz", "SZ": "skip", "RSS": "rss",
    "RSZ": "rss", "RSSIZE": "rss", "RES": "rss", "TTY": "tty", "TT": "tty", "TNAME": "tty", "TTNAME": "tty",
    "START": "start", "STARTED": "start", "STIME": "start", "START_TIME": "start", "BSDSTART": "start",
    "LSTART": "lstart", "TIME": "time", "CPUTIME": "time", "BSDTIME": "time", "TIME+": "time",
    "ELAPSED": "etime", "ETIME": "etime", "ETIMES": "etimes", "NLWP": "threads", "THCNT": "threads",
    "COMMAND": "args", "CMD": "args", "ARGS": "args", "COMM": "comm", "UCMD": "comm", "UCOMM": "comm",
    "NI": "skip", "NICE": "skip", "PRI": "skip", "F": "skip", "ADDR": "skip", "WCHAN": "wchan", "CLS": "skip",
    "PSR": "skip", "CPUID": "skip", "LWP": "skip", "SPID": "skip", "TID": "skip", "GROUP": "skip",
    "GID": "skip",
    "RGROUP": "skip", "OOMADJ": "skip", "OOM": "skip", "JOBC": "skip", "FLAGS": "skip", "MAJFL": "skip",
    "MINFL": "skip",
    "TRS": "skip", "LIM": "skip", "LABEL": "skip", "CGROUP": "skip",
}  # fmt: skip
_LAYOUTS = {
    "aux": "user pid cpu mem vsz rss tty stat start time args",
    "ef": "user pid ppid cpu start tty time args",
    "l": "skip stat user pid ppid cpu skip skip skip skip wchan tty time args",
    "x": "pid tty stat time args",
    "default": "pid tty time args",
}
_START = r"(?:[A-Z][a-z]{2}[ ]?\d{1,2}(?:[ ]\d{4})?|\d{1,2}[A-Z][a-z]{2}\d{2}|\d{1,2}月\d{1,2}|[\w:.]+)"
_FORMS = {
    "pid": r"\d{1,10}", "ppid": r"\d{1,10}", "lstart": r"\S+ +\S+ +\S+ +[\d:]+ +\d{4}", "start": _START,
    "cpu": r"[\d.,]+", "mem": r"[\d.,]+", "stat": r"[A-Za-z?][\w<+?]*",
}  # fmt: skip
_FREE = frozenset({"args", "comm"})
_DEFUNCT = re.compile(r"\s*<defunct>\s*$")
_FOREST = re.compile(r"^[\s|]*\\_ +")


@dataclass(frozen=True, slots=True)
class Proc:
    """One process as a listing shows it; None for columns it lacks.

    Attributes:
        stat: state letter and marks as printed, such as ``Ssl``.
        name: program without folder, brackets, colon and ``<defunct>``.
        rss_kb, vsz_kb: KiB.
    """

    pid: int
    args: SafeText
    name: SafeText
    ppid: int | None = None
    user: SafeText | None = None
    stat: SafeText | None = None
    cpu_pct: float | None = None
    mem_pct: float | None = None
    rss_kb: int | None = None
    vsz_kb: int | None = None
    tty: SafeText | None = None
    start: SafeText | None = None
    elapsed_s: int | None = None
    cpu_s: int | None = None
    threads: int | None = None

    @property
    def zombie(self) -> bool:
        """Ended, not yet reaped."""
        return bool(self.stat and self.stat[0] in "ZX") or (self.stat is None and "<defunct>" in self.args)


def columns_of(args: Sequence[str]) -> tuple[str, ...]:
    """The columns that options of ``ps`` ask for, else those of its default layout."""
    titles: list[str] = []
    for place, arg in enumerate(args):
        match = re.match(
            r"(?:-[A-Za-z]*|--format=?)(?:(?<=o)|(?<=O)|(?<=format)|(?<=format=))(?P<list>.*)$", arg
        )
        bundled = re.match(r"[A-Za-z]*o$", arg) if place == 0 else None
        if match is None and bundled is None:
            continue
        given = match.group("list") if match else ""
        titles += _split_titles(given or (args[place + 1] if place + 1 < len(args) else ""))
    if titles:
        return tuple(_MEANING.get(title.upper(), "skip") for title in titles)
    letters = "".join(arg for arg in args if re.fullmatch(r"-?[A-Za-z]+", arg)).replace("-", "")
    dashed = any(arg.startswith("-") for arg in args)
    if "u" in letters and not (dashed and "aux" not in letters and "f" in letters):
        return tuple(_LAYOUTS["aux"].split())
    if dashed and "f" in letters:
        return tuple(_LAYOUTS["ef"].split())
    if "l" in letters:
        return tuple(_LAYOUTS["l"].split())
    return tuple(_LAYOUTS["x" if "x" in letters and not dashed else "default"].split())


def _split_titles(given: str) -> list[str]:
    plain = re.sub(r"=[^,\s]*", "", given)
    return [re.sub(r":\d+$", "", part) for part in re.split(r"[,\s]+", plain) if part]


def parse_ps(text: str, asked: Sequence[str] | None = None) -> tuple[Proc, ...] | None:
    """Rows of a listing; None when nothing in it looks like one and some text is there.

    Args:
        asked: columns the command asked for, used where no header is printed.
    """
    columns: tuple[str, ...] | None = tuple(asked) if asked else None
    pattern = _pattern(columns) if columns else None
    found: list[Proc] = []
    header_seen, rows = False, 0
    for line in lines(text):
        if not line.strip():
            continue
        titles = _header(line)
        if titles:
            columns, header_seen = _sharper(titles, asked), True
            pattern = _pattern(columns)
            continue
        rows += 1
        proc = _row(line, pattern) or (None if header_seen else _row(line, _guess(line)))
        if proc:
            found.append(proc)
    return tuple(found) if found or header_seen or not rows else None


def _sharper(titles: tuple[str, ...], asked: Sequence[str] | None) -> tuple[str, ...]:
    """Header titles, with what was asked for where several columns share a title (STARTED, ELAPSED)."""
    if asked is None or len(asked) != len(titles):
        return titles
    pairs = zip(titles, asked, strict=True)
    return tuple(ours if ours in {"lstart", "etimes"} else shown for shown, ours in pairs)


def _header(line: str) -> tuple[str, ...] | None:
    words = line.split()
    if not words or not all(word.upper() == word or word == "Command" for word in words):
        return None
    known = [_MEANING.get(word.upper()) for word in words]
    if None in known or not ({"pid", "args", "comm"} & set(known)):
        return None
    return tuple(meaning or "skip" for meaning in known)


def _pattern(columns: Sequence[str]) -> re.Pattern[str]:
    """One group per column we use; a command line takes what the other columns leave."""
    parts: list[str] = []
    seen: set[str] = set()
    for place, column in enumerate(columns):
        last = place == len(columns) - 1
        form = (r".*" if last else r".*?") if column in _FREE else _FORMS.get(column, r"\S+")
        if column == "skip" or column in seen:
            parts.append(form)
        else:
            parts.append(f"(?P<{column}>{form})")
        seen.add(column)
    return re.compile(r"^\s*" + r"\s+".join(parts) + r"\s*$")


def _guess(line: str) -> re.Pattern[str] | None:
    """The layout of a row that came without a header and did not fit what was asked for."""
    for name in ("aux", "ef", "x", "default"):
        pattern = _pattern(_LAYOUTS[name].split())
        if pattern.match(line):
            return pattern
    return _pattern(("pid", "args")) if re.match(r"\s*\d{1,10}\s+\S", line) else None


def _row(line: str, pattern: re.Pattern[str] | None) -> Proc | None:
    match = pattern.match(line) if pattern else None
    values = match.groupdict() if match else {}
    if not values.get("pid"):
        return None
    args = _FOREST.sub("", values.get("args") or values.get("comm") or "").strip()
    return Proc(
        pid=int(values["pid"]),
        args=safe(args, 2000),
        name=program_name(values.get("comm") or args),
        ppid=_int(values.get("ppid")),
        user=_text(values.get("user")),
        stat=_text(values.get("stat")),
        cpu_pct=_float(values.get("cpu")),
        mem_pct=_float(values.get("mem")),
        rss_kb=_size_kb(values.get("rss")),
        vsz_kb=_size_kb(values.get("vsz")),
        tty=_text(values.get("tty")),
        start=_text(values.get("start") or values.get("lstart")),
        elapsed_s=_elapsed(values.get("etimes") or values.get("etime")),
        cpu_s=clock_seconds(values.get("time")),
        threads=_int(values.get("threads")),
    )


def program_name(args: str) -> SafeText:
    """The program a command line names, without folder, kernel brackets, title colon and ``<defunct>``."""
    bare = _DEFUNCT.sub("", args.strip())
    bracketed = re.fullmatch(r"[\[(](.+)[\])]", bare)
    if bracketed:
        return safe(bracketed.group(1), 256)
    first = bare.split(None, 1)[0] if bare.split() else ""
    if re.fullmatch(r"[\w.+~-]*(?:/[\w.+@~-]+)+/?", first):
        first = first.rstrip("/").rpartition("/")[2]
    return safe(first.removesuffix(":").removeprefix("-") or first, 256)


def clock_seconds(text: str | None) -> int | None:
    """Seconds of ``[[dd-]hh:]mm:ss[.cc]``; None for anything else."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(?:(\d{1,5}):)?(\d{1,6}):(\d{1,2})(?:[.,]\d+)?", text or "")
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _elapsed(text: str | None) -> int | None:
    """``etimes`` are seconds, ``etime`` a clock; both stand under ELAPSED."""
    plain = _int(text)
    return plain if plain is not None else clock_seconds(text)


def _int(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,18}", text) else None


def _float(text: str | None) -> float | None:
    return float(text.replace(",", ".")) if text and re.fullmatch(r"\d{1,9}(?:[.,]\d{1,6})?", text) else None


def _text(text: str | None) -> SafeText | None:
    return safe(text, 128) if text else None


def _size_kb(text: str | None) -> int | None:
    """KiB of a plain number, or of busybox's and top's ``12m`` and ``1.5g``."""
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)([kmgt]?)", (text or "").lower())
    if match is None:
        return None
    return int(float(match.group(1)) * {"": 1, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}[match.group(2)])


def parse_pgrep(text: str) -> tuple[Proc, ...]:
    """``pgrep -a``, ``-l`` and plain, and ``pidof``: a pid per line or word, then a name or command line."""
    found = []
    for line in lines(text):
        match = re.match(r"\s*(\d{1,10})\s+(?!\d+(?:\s+\d+)*\s*$)(\S.*)$", line)
        if match:
            args = match.group(2).strip()
            found.append(Proc(int(match.group(1)), safe(args, 2000), program_name(args)))
        elif re.fullmatch(r"\s*\d{1,10}(?:\s+\d{1,10})*\s*", line):
            found += [Proc(int(pid), safe(""), safe("")) for pid in line.split()]
    return tuple(found)

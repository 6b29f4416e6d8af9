"""Rows of squeue and sacct: any columns, any separator, fixed widths, and fields that hold line breaks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from tui.box.parsers.command import Invocation
from tui.box.parsers.lines import lines
from tui.box.parsers.report import Refusal
from tui.box.parsers.slurm import STATES, Job, SlurmReport, job_of, split_steps
from tui.model.text import SafeText

# squeue -o letters, squeue -O and sacct -o names, and headers, by our names.
_LETTERS = {
    "i": "id", "A": "id", "F": "id", "t": "state", "T": "state", "r": "reason", "R": "place", "N": "nodes",
    "j": "name", "u": "user", "P": "partition", "M": "time", "l": "limit", "k": "comment", "Z": "workdir",
}  # fmt: skip
_TITLES = {
    "JOBID": "id", "JOBARRAYID": "id", "JOBIDRAW": "id", "STATE": "state", "ST": "state",
    "STATECOMPACT": "state",
    "REASON": "reason", "NODELIST(REASON)": "place", "REASONLIST": "place", "NODELIST": "nodes",
    "NAME": "name", "JOBNAME": "name", "USER": "user", "USERNAME": "user", "PARTITION": "partition",
    "TIME": "time", "TIMEUSED": "time", "ELAPSED": "time", "TIMELIMIT": "limit", "TIME_LIMIT": "limit",
    "TIME_LIMI": "limit",
    "EXITCODE": "exit", "COMMENT": "comment", "WORKDIR": "workdir", "WORK_DIR": "workdir",
    "RESTARTCNT": "restarts", "RESTARTS": "restarts", "STDOUT": "stdout",
}  # fmt: skip
_FORMS = {
    "id": r"\d+[\w.+%,\[\]-]*", "state": r"[A-Z_]+\+?(?: by \d+)?", "user": r"\S+", "partition": r"\S+",
    "time": r"[\d:.-]+|INVALID|N/A", "limit": r"[\d:.-]+|UNLIMITED|NOT_SET|Partition_Limit|N/A|INVALID",
    "exit": r"\d+:\d+", "restarts": r"\d+", "number": r"\d+",
}  # fmt: skip
_FREE = frozenset({"name", "reason", "place", "comment", "nodes", "workdir", "stdout"})
_LONGEST_FIELD = 100  # lines; a comment or an administrator's note
_LONG_WIDTH = 20  # of a field of ``squeue -O`` that was asked for without one
_MOST_ABOVE = 20  # lines above a header: the date of ``squeue -l``, the notice of a wrapper
_UNREADABLE = SlurmReport(
    refusal=Refusal("unreadable", SafeText("the rows are in no known form"), answered=False)
)
_ROW_START = re.compile(r"\s*\d+(?:_(?:\d+|\[[^\]]*\]))?(?:\+\d+)?(?:\.[\w+]+)?\s*\Z")
_SQUEUE = ("id", "partition", "name", "user", "state", "time", "number", "place")
_SACCT = ("id", "name", "partition", "skip", "number", "state", "exit")


def read_squeue(text: str, call: Invocation | None) -> SlurmReport:
    """Jobs of ``squeue`` in the format it was called with, its header, or its default one."""
    layout = call.value("-o", "--format") if call else None
    long_names = call.value("-O", "--Format") if call else None
    if long_names:
        fields = re.findall(r"([A-Za-z]+)(?::\.?(\d*))?", long_names)
        columns = _named([name for name, _ in fields])
        found = _by_widths(text, columns, [int(width or _LONG_WIDTH) for _, width in fields])
        return found if found.jobs else _by_pattern(text, columns or _SQUEUE)
    specs = re.findall(r"%[-.]?\d*([A-Za-z])", layout or "")
    if layout and specs:
        columns = tuple(_LETTERS.get(letter, "skip") for letter in specs)
        between = re.findall(r"%[-.]?\d*[A-Za-z]([^%]*)", layout)
        separator = next((part for part in between if part.strip()), "")
        if separator:
            return _by_separator(text, columns, separator)
        return _by_pattern(text, columns)
    header = _header(text)
    if header is None and layout:
        return _loose(text)
    return _by_pattern(text, header or _SQUEUE)


def read_sacct(text: str, call: Invocation | None) -> SlurmReport:
    """Jobs of ``sacct``, parsable or in fixed widths."""
    asked = call.value("-o", "--format") if call else None
    columns = _named(asked.split(",")) if asked else _SACCT
    separator = (call.value("--delimiter") if call else None) or "|"
    first = text.split("\n", 1)[0]
    parsable = call is not None and call.flag("-P", "-p", "--parsable", "--parsable2")
    if parsable or (separator in first and "--" not in first):
        return _by_separator(text, _header(text, separator) or columns, separator)
    ruler = re.search(r"^-{2,}(?: -{2,})* *$", text, re.MULTILINE)
    if ruler:
        return _by_ruler(text, ruler)
    return _by_pattern(text, _header(text) or columns)


def _named(titles: Sequence[str]) -> tuple[str, ...]:
    plain = [re.sub(r"%-?\d+$", "", title.strip()).upper() for title in titles if title.strip()]
    return tuple(_TITLES.get(title, "skip") for title in plain)


def _header(text: str, separator: str | None = None) -> tuple[str, ...] | None:
    for line in lines(text)[:_MOST_ABOVE]:
        titles = [title.strip().upper() for title in (line.split(separator) if separator else line.split())]
        if {"JOBID", "JOBIDRAW", "JOBARRAYID", "ARRAY_JOB_ID", "STATE", "ST"} & set(titles):
            columns = tuple(
                "number" if title in {"NODES", "CPUS"} else _TITLES.get(title, "skip") for title in titles
            )
            return columns[:-1] if separator and titles[-1] == "" else columns
    return None


def _by_separator(text: str, columns: Sequence[str], separator: str) -> SlurmReport:
    """Rows of separated fields. The last field, and a comment, may run over several lines."""
    rows: list[Job] = []
    record, start = list[str](), 0
    for number, line in enumerate(lines(text.rstrip("\n")), start=1):
        if _starts_row(line, columns, separator):
            _take(record, columns, separator, start, rows)
            record, start = [line], number
        elif 0 < len(record) < _LONGEST_FIELD:
            record.append(line)
    _take(record, columns, separator, start, rows)
    return split_steps(rows) if rows or not _holds_rows(text, separator) else _UNREADABLE


def _starts_row(line: str, columns: Sequence[str], separator: str) -> bool:
    fields = line.split(separator)
    if len(fields) < 2 and len(columns) > 1:
        return False
    place = columns.index("id") if "id" in columns else 0
    return place < len(fields) and bool(_ROW_START.match(fields[place]))


def _take(rows_of_it: list[str], columns: Sequence[str], separator: str, line: int, rows: list[Job]) -> None:
    record = "\n".join(rows_of_it)
    if not record:
        return
    fields = (
        record.removesuffix(separator).split(separator) if record.count(separator) >= len(columns) else None
    )
    fields = fields or record.split(separator, max(0, len(columns) - 1))
    if len(fields) > len(columns):  # a free field holds the separator: the rest belongs to the last column
        fields = [*fields[: len(columns) - 1], separator.join(fields[len(columns) - 1 :])]
    values = {column: field for column, field in zip(columns, fields, strict=False) if column != "skip"}
    job = job_of(values, line)
    if job:
        rows.append(job)


def _by_ruler(text: str, ruler: re.Match[str]) -> SlurmReport:
    spans = [match.span() for match in re.finditer(r"-+", ruler.group())]
    above = text[: ruler.start()].rstrip("\n").rpartition("\n")[2]
    columns = _named([above[start:end] or "skip" for start, end in spans])
    first = text.count("\n", 0, ruler.end()) + 2
    return _by_spans(lines(text[ruler.end() :])[1:], first, columns, spans)


def _by_widths(text: str, columns: Sequence[str], widths: Sequence[int]) -> SlurmReport:
    """Fields cut and filled to fixed widths, with nothing between them; a name may hold blanks."""
    ends = list(accumulate(widths))
    return _by_spans(lines(text), 1, columns, list(zip([0, *ends[:-1]], ends, strict=True)))


def _by_spans(
    told: Sequence[str], first: int, columns: Sequence[str], spans: Sequence[tuple[int, int]]
) -> SlurmReport:
    rows = []
    for number, line in enumerate(told, start=first):
        values = {
            column: line[a:b] for column, (a, b) in zip(columns, spans, strict=False) if column != "skip"
        }
        job = job_of(values, number) if re.match(r"\s*\d", values.get("id", "")) else None
        if job:
            rows.append(job)
    return split_steps(rows)


def _by_pattern(text: str, columns: Sequence[str]) -> SlurmReport:
    """Rows in columns of blanks: typed columns are told by their form, free ones take what is left."""
    parts, seen = [], set[str]()
    for place, column in enumerate(columns):
        last = place == len(columns) - 1
        form = (r".*" if last else r".*?") if column in _FREE else _FORMS.get(column, r"\S+")
        parts.append(
            f"(?P<{column}>{form})" if column in _TITLES.values() and column not in seen else f"(?:{form})"
        )
        seen.add(column)
    pattern = re.compile(r"^\s*" + r"\s+".join(parts) + r"\s*$")
    rows = []
    for number, line in enumerate(lines(text), start=1):
        match = pattern.match(line)
        job = job_of(match.groupdict(), number) if match else None
        if job:
            rows.append(job)
    return split_steps(rows) if rows or not _holds_rows(text) else _loose(text)


def _holds_rows(text: str, separator: str | None = None) -> bool:
    """Whether some line may be a job: one that begins with a number, or any where no header tells of rows."""
    told = [line for line in lines(text) if line.strip()]
    header = _header(text, separator) or _header(text)
    return bool(told) and (header is None or any(re.match(r"\s*\d+(?:_\S+)?\s", line) for line in told))


def _loose(text: str) -> SlurmReport:
    """Rows of an unknown format: an id first, a state word somewhere, the reason or nodes at the end."""
    words = "|".join(sorted(STATES, key=len, reverse=True))
    form = re.compile(
        rf"^\s*(?P<id>\d+(?:_(?:\d+|\[[^\]]*\]))?)\b.*?\b(?P<state>{words})\b.*?(?P<place>\([^()]*\)|\S+)\s*$"
    )
    rows = []
    for number, line in enumerate(lines(text), start=1):
        match = form.match(line)
        job = job_of(match.groupdict(), number) if match else None
        if job:
            rows.append(job)
    return split_steps(rows) if rows or not _holds_rows(text) else _UNREADABLE

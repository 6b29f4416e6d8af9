"""Slurm's records: ``scontrol show`` in ``Key=Value`` form, and the JSON of every tool."""

from __future__ import annotations

import re
from itertools import pairwise

from tui.box.parsers.lines import first_json, lines
from tui.box.parsers.slurm import Job, Node, SlurmReport, job_of, split_steps
from tui.model.text import safe

# Keys after which the value runs to the end of the line, for it may hold blanks and "=".
_TO_LINE_END = frozenset(
    {"JobName", "Reason", "Comment", "Command", "WorkDir", "StdErr", "StdIn", "StdOut", "AdminComment",
     "SystemComment", "OS", "Extra", "SubmitLine"}
)  # fmt: skip
_KEY = re.compile(r"(?:^|(?<=\s))([A-Z][A-Za-z0-9_/:]*)=")
_NEXT_IN_ONE_LINE = {"JobName": "UserId", "Reason": "Dependency", "WorkDir": "StdErr", "Command": "WorkDir"}
_JOB_FIELDS = {
    "JobId": "id", "JobState": "state", "Reason": "reason", "NodeList": "nodes", "JobName": "name",
    "Partition": "partition", "RunTime": "time", "TimeLimit": "limit", "ExitCode": "exit",
    "Comment": "comment",
    "Restarts": "restarts", "WorkDir": "workdir", "StdOut": "stdout",
}  # fmt: skip


def pairs(record: str) -> tuple[dict[str, str], dict[str, int]]:
    """Keys with their values, and with the line of the record (from 0) each stands on."""
    values: dict[str, str] = {}
    places: dict[str, int] = {}
    for number, line in enumerate(lines(record)):
        place = 0
        while match := _KEY.search(line, place):
            key, start = match.group(1), match.end()
            end = _value_end(line, key, start, single="\n" not in record.strip())
            values.setdefault(key, line[start:end].strip())
            places.setdefault(key, number)
            place = max(end, start)
    return values, places


def _value_end(line: str, key: str, start: int, single: bool) -> int:
    if key in _TO_LINE_END:
        following = _NEXT_IN_ONE_LINE.get(key)
        mark = line.find(f" {following}=", start) if following and (single or key == "Reason") else -1
        if mark >= 0:
            return mark
        if not single:
            return len(line)
    match = _KEY.search(line, start)
    return match.start() if match else len(line)


def read_show(text: str) -> SlurmReport:
    """``scontrol show job`` and ``show node``, one or several records, also one per line (``-o``)."""
    jobs, nodes = [], []
    starts = [match.start() for match in re.finditer(r"^(?:JobId|NodeName)=", text, re.MULTILINE)]
    for start, end in pairwise([*starts, len(text)]):
        record = text[start:end].rstrip("\n")
        values, places = pairs(record)
        first = text.count("\n", 0, start) + 1
        if "JobId" in values:
            job = _job(values, first + places.get("JobState", 0))
            jobs += [job] if job else []
        else:
            nodes.append(_node(values, first + places.get("State", 0)))
    if nodes:
        return SlurmReport(jobs=None, nodes=tuple(nodes))
    return (
        SlurmReport(jobs=tuple(jobs))
        if jobs
        else SlurmReport(jobs=() if "No jobs in the system" in text else None)
    )


def _job(values: dict[str, str], line: int) -> Job | None:
    named = {ours: values[theirs] for theirs, ours in _JOB_FIELDS.items() if theirs in values}
    named["user"] = values.get("UserId", "").partition("(")[0]
    return job_of(named, line)


def _node(values: dict[str, str], line: int) -> Node:
    state = values.get("State", "").split()[0] if values.get("State", "").split() else ""
    reason = re.sub(r"\s*\[[^\]\s]*@[^\]]*\]\s*$", "", values.get("Reason", "")).strip()
    return Node(
        name=safe(values.get("NodeName", ""), 128),
        states=tuple(part for part in re.split(r"\+", re.sub(r"[*~#!%$@^-]+(?=\+|$)", "", state)) if part),
        responding="*" not in state,
        reason=safe(reason, 512) if reason and reason not in {"none", "(null)"} else None,
        line=line,
    )


def read_json(text: str) -> SlurmReport | None:
    """The JSON of squeue, sacct and scontrol from 21.08 on; None when it is none."""
    tree = first_json(text)
    rows = tree.get("jobs") if isinstance(tree, dict) else None
    if not isinstance(rows, list):
        return None
    jobs = [job for row in rows if isinstance(row, dict) and (job := _json_job(row))]
    return split_steps(jobs)


def _json_job(row: dict[str, object]) -> Job | None:
    state, reason = row.get("job_state"), row.get("state_reason")
    if isinstance(row.get("state"), dict):
        inner = row["state"]
        assert isinstance(inner, dict)
        state, reason = inner.get("current"), inner.get("reason")
    if isinstance(state, list):  # base state and flags; a flag hides the base in the text form
        state = state[0] if state else ""
    code, signal = _exit(row.get("exit_code"))
    values = {
        "id": _array_id(row),
        "state": str(state or ""),
        "reason": str(reason or ""),
        "nodes": str(row.get("nodes") or ""),
        "name": str(row.get("name") or ""),
        "user": str(row.get("user_name") or row.get("user") or ""),
        "partition": str(row.get("partition") or ""),
        "exit": f"{code}:{signal or 0}" if code is not None else "",
        "time": _elapsed(row.get("time")),
    }
    return job_of(values)


def _elapsed(value: object) -> str:
    """The elapsed seconds of sacct's ``time`` as `seconds` reads them; squeue's JSON has none."""
    told = _plain_number(value.get("elapsed")) if isinstance(value, dict) else None
    return "" if told is None else f"{told // 3600}:{told // 60 % 60:02}:{told % 60:02}"


def _array_id(row: dict[str, object]) -> str:
    array, task = _plain_number(row.get("array_job_id")), _plain_number(row.get("array_task_id"))
    if array and task is not None:
        return f"{array}_{task}"
    number = _plain_number(row.get("job_id"))
    return "" if number is None else str(number)


def _plain_number(value: object) -> int | None:
    """An integer, or ``{"set": true, "number": n}``; None where it is not set."""
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _exit(value: object) -> tuple[int | None, int | None]:
    if not isinstance(value, dict):
        return _plain_number(value), None
    signal = value.get("signal")
    inner = signal.get("id", signal.get("signal_id")) if isinstance(signal, dict) else None
    return _plain_number(value.get("return_code")), _plain_number(inner)

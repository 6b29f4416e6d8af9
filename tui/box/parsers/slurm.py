"""Slurm's jobs and nodes: squeue, sacct and scontrol in text and JSON, of versions 17 to 26.

Column letters and field names follow squeue(1), sacct(1) and scontrol(1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tui.box.parsers.exits import from_pair
from tui.box.parsers.lines import lines
from tui.box.parsers.report import Output, Refusal
from tui.model.telemetry import Session
from tui.model.text import SafeText, safe

_STATES = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING", "CG": "COMPLETING",
    "DL": "DEADLINE", "F": "FAILED", "LF": "LAUNCH_FAILED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING", "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD", "RQ": "REQUEUED", "RS": "RESIZING", "RV": "REVOKED", "SI": "SIGNALING",
    "SE": "SPECIAL_EXIT", "SO": "STAGE_OUT", "ST": "STOPPED", "S": "SUSPENDED", "TO": "TIMEOUT",
    "PF": "POWER_UP_NODE", "EX": "EXPEDITING", "RC": "RECONFIG_FAIL", "UD": "UPDATE_DB",
}  # fmt: skip
STATES = frozenset(_STATES.values())
WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT", "REQUEUE_FED"})
_NONE = frozenset(
    {"", "(null)", "N/A", "None", "none", "Unknown", "UNKNOWN", "n/a", "(None)", "None assigned"}
)

_ERRORS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(form, re.IGNORECASE), word)
    for form, word in (
        (
            r"Unable to contact slurm controller|Socket timed out|Zero Bytes were transmitted"
            r"|Connection refused"
            r"|Unable to establish controller|Transport endpoint is not connected|controller .*not responding"
            r"|slurm_load_jobs error: (?:Connection|Communication)|Insane message length",
            "controller_unreachable",
        ),
        (r"Invalid job id|Invalid job/step|no job matching|job .* not found", "invalid_job_id"),
        (
            r"Problem talking to the database|slurmdbd|persistent connection|Unable to connect to .*6819",
            "accounting_unreachable",
        ),
        (r"accounting storage is disabled|Slurm accounting storage is disabled", "accounting_disabled"),
        (r"Invalid node name", "invalid_node"),
        (r"Access/permission denied|Invalid user", "permission"),
        (r"unrecognized option|invalid option|Invalid field requested|unknown option", "unsupported_option"),
        (r"Protocol authentication error|Munge|Invalid authentication credential", "authentication"),
        (r"Incompatible versions|Protocol version", "version_mismatch"),
    )
)


@dataclass(frozen=True, slots=True)
class Job:
    """One job, array task or pending array. Times in seconds.

    Attributes:
        id: as printed, such as ``42271120_[7-8%1]``.
        state: the long name, without ``by UID`` and without the ``+`` of a cut column.
        reason: why it waits; ``ReqNodeNotAvail`` without its list, which is `unavailable`.
        cancelled_by: the uid of ``CANCELLED by UID``.
        line: 1-based line of the input.
    """

    id: SafeText
    state: str | None = None
    reason: SafeText | None = None
    unavailable: SafeText | None = None
    nodes: SafeText | None = None
    name: SafeText | None = None
    user: SafeText | None = None
    partition: SafeText | None = None
    elapsed_s: int | None = None
    limit_s: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    comment: SafeText | None = None
    comment_text: str | None = None  # with its line breaks; never drawn
    cancelled_by: SafeText | None = None
    restarts: int | None = None
    work_dir: SafeText | None = None
    stdout_path: SafeText | None = None
    line: int = 0

    @property
    def waiting(self) -> bool:
        """Has no nodes and wants some."""
        return self.state in WAITING


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `responding` is False for a state with ``*``; `reason` is what the administrator wrote."""

    name: SafeText
    states: tuple[str, ...]
    responding: bool = True
    reason: SafeText | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class SlurmReport:
    """`jobs` None: could not be told. (): the tool listed none, which says nothing about finished ones.

    Attributes:
        steps: rows of steps (``.batch``, ``.0``), which only repeat or blur what the job's own row says.
    """

    jobs: tuple[Job, ...] | None = None
    steps: tuple[Job, ...] = ()
    nodes: tuple[Node, ...] | None = None
    submitted: SafeText | None = None
    refusal: Refusal | None = None


def long_state(text: str) -> tuple[str | None, SafeText | None]:
    """The long state name of ``PD``, ``OUT_OF_ME+``, ``CANCELLED by 1000`` and the uid; None if unknown."""
    match = re.match(r"\s*([A-Z_]+)(\+?)(?:\s+by\s+(\w+))?", text)
    if match is None:
        return None, None
    word, cut, uid = match.groups()
    by = safe(uid, 64) if uid else None
    if word in STATES:
        return word, by
    if cut:
        longer = sorted(state for state in STATES if state.startswith(word))
        return (longer[0], by) if longer else (None, by)
    return _STATES.get(word), by


def seconds(text: str) -> int | None:
    """Seconds of ``[days-]hours:minutes:seconds``, ``minutes:seconds`` or ``days-hours``; None otherwise."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,7})(?::(\d{1,2}))?(?::(\d{1,2}))?(?:\.\d+)?", text.strip())
    if match is None or (match.group(1) is None and match.group(3) is None):
        return None
    days = int(match.group(1) or 0)
    numbers = [int(part) for part in match.groups()[1:] if part is not None]
    if match.group(1) is None and len(numbers) == 2:
        numbers = [0, *numbers]
    numbers += [0] * (3 - len(numbers))
    return ((days * 24 + numbers[0]) * 60 + numbers[1]) * 60 + numbers[2]


def refusal_of(output: Output) -> Refusal | None:
    """Why a Slurm tool gave no answer; None when it did."""
    for line in lines(output.stderr) if output.stderr.strip() else lines(output.stdout)[:3]:
        for form, word in _ERRORS:
            if form.search(line) and (output.stderr or "error" in line.lower()):
                return Refusal(word, safe(line.strip(), 300))
    return None


def job_of(values: Mapping[str, str], line: int = 0) -> Job | None:
    """One job from named values; None where there is no id.

    Args:
        values: by our names: id, state, reason, nodes, place (``NODELIST(REASON)``), name, user,
            partition, time, limit, exit, comment, restarts, workdir, stdout.
    """
    job_id = values.get("id", "").strip()
    if not job_id:
        return None
    state, uid = long_state(values.get("state", ""))
    reason, nodes = values.get("reason", "").strip(), values.get("nodes", "").strip()
    place = values.get("place", "").strip()
    if place and (state in WAITING or re.fullmatch(r"\(.*\)", place, re.DOTALL)):
        reason = reason or place
    else:
        nodes = nodes or place
    reason, unavailable = _split_reason(reason)
    exits = from_pair(values.get("exit", ""))
    return Job(
        id=safe(job_id, 128),
        state=state,
        reason=_told(reason),
        unavailable=safe(unavailable, 512) if unavailable is not None else None,
        nodes=_told(nodes),
        name=_told(values.get("name", "")),
        user=_told(values.get("user", "")),
        partition=_told(values.get("partition", "")),
        elapsed_s=seconds(values.get("time", "")),
        limit_s=seconds(values.get("limit", "")),
        exit_code=exits.code if exits else None,
        signal=exits.signal if exits else None,
        comment=safe(values["comment"], 512) if "comment" in values else None,
        comment_text=values.get("comment"),
        cancelled_by=uid,
        restarts=_count(values.get("restarts", "")),
        work_dir=_told(values.get("workdir", "")),
        stdout_path=_told(values.get("stdout", "")),
        line=line,
    )


def _split_reason(reason: str) -> tuple[str, str | None]:
    """``ReqNodeNotAvail, UnavailableNodes:a[1-2]`` in its two parts; brackets around a reason go."""
    bare = reason[1:-1] if reason.startswith("(") and reason.endswith(")") else reason
    match = re.match(r"(\w+)\s*,\s*(?:UnavailableNodes|May be reserved[^:]*)\s*:?\s*(.*)$", bare, re.DOTALL)
    return (match.group(1), match.group(2)) if match else (bare, None)


def _told(text: str) -> SafeText | None:
    return None if text.strip() in _NONE else safe(text.strip(), 512)


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\s*\d{1,9}\s*", text) else None


def split_steps(rows: list[Job]) -> SlurmReport:
    """Jobs apart from their steps; of a requeued job, which has several rows, the last one is current."""
    jobs: dict[str, Job] = {}
    steps = []
    for row in rows:
        if re.search(r"\.(?:\w+|\w*\+)$", row.id) or row.id.endswith(".bat+"):
            steps.append(row)
        else:
            jobs.pop(row.id, None)
            jobs[row.id] = row
    return SlurmReport(jobs=tuple(jobs.values()), steps=tuple(steps))


def parse_submit(output: Output) -> SafeText | None:
    """The job id that ``sbatch`` or ``salloc`` answered with, also ``--parsable``."""
    match = re.search(r"(?:Submitted batch job|Granted job allocation) (\d{1,12})", output.both)
    match = match or re.match(r"\s*(\d{1,12})(?:;\S+)?\s*$", output.stdout)
    return safe(match.group(1)) if match else None


def as_sessions(jobs: tuple[Job, ...]) -> tuple[Session, ...]:
    """The model's sessions: jobs that hold or want nodes."""
    ended = {
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "TIMEOUT",
        "OUT_OF_MEMORY",
        "NODE_FAIL",
        "DEADLINE",
        "BOOT_FAIL",
    }
    return tuple(Session("slurm", job.id) for job in jobs if job.state not in ended)

"""Kubernetes pods and jobs, and docker containers: JSON, tables and ``describe``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from tui.box.parsers.lines import first_json, lines
from tui.box.parsers.report import Output, Refusal
from tui.model.text import SafeText, safe

_STARTING = frozenset({"ContainerCreating", "PodInitializing", "Pulling", "PodScheduled"})
_LAUNCH_FAILED = frozenset(
    {
        *("ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "ContainerCannotRun"),
        *("StartError", "UnexpectedAdmissionError", "NodeAffinity"),
    }
)
_ERRORS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(form), word)
    for form, word in (
        (r"\(NotFound\)|not found$", "not_found"),
        (r"No resources found", "none"),
        (r"\(Forbidden\)|is forbidden", "permission"),
        (r"\(Unauthorized\)|must be logged in|Unauthorized|credentials", "unauthorized"),
        (
            r"Unable to connect to the server|connection to the server .* was refused"
            r"|context deadline exceeded"
            r"|i/o timeout|TLS handshake timeout|no route to host|EOF|connection refused",
            "api_unreachable",
        ),
        (r"command not found|executable file not found", "tool_missing"),
        (r"No such (?:object|container)", "not_found"),
        (r"Cannot connect to the Docker daemon", "daemon_unreachable"),
        (r"permission denied while trying to connect", "permission"),
    )
)


_MOST_ABOVE = 60  # lines above a table: what a login prints


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod, Job object or container.

    Attributes:
        state: starting, pending, running, crash_looping, launch_failed, completed, failed, terminating,
        evicted,
            node_lost, paused, stopped or unknown: what it comes to, where ``phase`` alone misleads.
        reason: the word of the cluster: of the last end in a crash loop, else of the present state.
        exit_code: of the last end, None while none is known.
        ready: containers that are, of all, as in ``1/2``.
        oom_killed: the runtime says the kernel killed in it for memory.
        scope: ``k8s`` or ``docker``.
    """

    name: SafeText | None
    state: str
    phase: SafeText | None = None
    reason: SafeText | None = None
    message: SafeText | None = None
    restarts: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    ready: SafeText | None = None
    node: SafeText | None = None
    scope: str = "k8s"


@dataclass(frozen=True, slots=True)
class PodReport:
    """`pods` None: could not be told. `deleted`: the asked one is gone, with its result."""

    pods: tuple[Pod, ...] | None = None
    deleted: bool = False
    refusal: Refusal | None = None


def refusal_of(output: Output) -> PodReport | None:
    """The report of a tool that answered with an error; None when it did not."""
    for line in lines(output.stderr):
        word = next((word for form, word in _ERRORS if form.search(line.strip())), None)
        if word == "not_found":
            return PodReport((), deleted=True, refusal=Refusal("not_found", safe(line.strip(), 300)))
        if word == "none":
            return PodReport(())
        if word:
            return PodReport(None, refusal=Refusal(word, safe(line.strip(), 300)))
    return PodReport(()) if output.stdout.startswith("No resources found") else None


def read_json(text: str) -> PodReport | None:
    """``kubectl get -o json`` of a pod, a Job or a list, and ``docker inspect``; None when it is none."""
    tree = first_json(text)
    if tree is None:
        return None
    items: list[Any] = tree if isinstance(tree, list) else [tree]
    if isinstance(tree, dict) and isinstance(tree.get("items"), list):
        items = tree["items"]
    pods = [pod for item in items if isinstance(item, dict) and (pod := _item(item))]
    return PodReport(tuple(pods)) if pods or not items else None


def _item(item: dict[str, Any]) -> Pod | None:
    if isinstance(item.get("State"), dict):
        return _docker(item)
    status = item.get("status")
    if not isinstance(status, dict):
        return None
    name = _dict(item.get("metadata")).get("name")
    if "phase" not in status and ("conditions" in status or "failed" in status or "succeeded" in status):
        return _kube_job(name, status)
    return _kube_pod(name, status, _dict(item.get("metadata")), _dict(item.get("spec")))


def _kube_pod(name: object, status: dict[str, Any], metadata: dict[str, Any], spec: dict[str, Any]) -> Pod:
    containers = [one for one in _list(status.get("containerStatuses")) if isinstance(one, dict)]
    begun = [one for one in _list(status.get("initContainerStatuses")) if isinstance(one, dict)]
    bad = next((one for one in (*begun, *containers) if _end_of(one) or _waiting(one)), None)
    chosen = bad or (containers[0] if containers else {})
    end = _end_of(chosen)
    waiting = _waiting(chosen)
    pending = _unscheduled(status)
    reason = end.get("reason") or waiting.get("reason") or status.get("reason") or pending.get("reason")
    message = status.get("message") or waiting.get("message") or pending.get("message")
    phase = str(status.get("phase") or "")
    return Pod(
        name=_text(name),
        state=_pod_state(phase, status, waiting, end, bool(metadata.get("deletionTimestamp")), bool(pending)),
        phase=_text(phase or None),
        reason=_text(reason),
        message=_text(message),
        restarts=_number(chosen.get("restartCount")) if chosen else None,
        exit_code=_number(end.get("exitCode")),
        signal=_number(end.get("signal")) or None,
        oom_killed=any(_end_of(one).get("reason") == "OOMKilled" for one in containers),
        ready=_ready(containers),
        node=_text(spec.get("nodeName")),
    )


def _ready(containers: list[dict[str, Any]]) -> SafeText | None:
    """``1/2`` as kubectl's table says it; None where no container says whether it is ready."""
    told = [one["ready"] for one in containers if isinstance(one.get("ready"), bool)]
    return safe(f"{sum(told)}/{len(containers)}") if told else None


def _end_of(container: dict[str, Any]) -> dict[str, Any]:
    """How the container last ended: now, or before its present restart."""
    for key in ("state", "lastState"):
        ended = _dict(_dict(container.get(key)).get("terminated"))
        if ended:
            return ended
    return {}


def _waiting(container: dict[str, Any]) -> dict[str, Any]:
    return _dict(_dict(container.get("state")).get("waiting"))


def _unscheduled(status: dict[str, Any]) -> dict[str, Any]:
    conditions = [one for one in _list(status.get("conditions")) if isinstance(one, dict)]
    return next(
        (one for one in conditions if one.get("type") == "PodScheduled" and one.get("status") == "False"), {}
    )


def _pod_state(
    phase: str,
    status: dict[str, Any],
    waiting: dict[str, Any],
    end: dict[str, Any],
    deleted: bool,
    pending: bool,
) -> str:
    reason = str(status.get("reason") or "")
    if reason in {"NodeLost", "NodeShutdown", "Shutdown", "Terminated"}:
        return "node_lost"
    if reason == "Evicted":
        return "evicted"
    word = str(waiting.get("reason") or reason)
    if deleted and phase not in {"Succeeded", "Failed"}:
        return "terminating"
    return _state_of_word(word) or {
        "Succeeded": "completed",
        "Failed": "failed",
        "Pending": "pending" if pending else "starting",
        "Running": "failed"
        if end.get("exitCode") and not waiting and "running" not in str(status)
        else "running",
    }.get(phase, "unknown")


def _state_of_word(word: str) -> str | None:
    """The state that one display word of kubectl stands for; None for words that leave it open."""
    if word == "CrashLoopBackOff":
        return "crash_looping"
    if word in _LAUNCH_FAILED or word.startswith("OutOf"):
        return "launch_failed"
    if word in _STARTING or re.match(r"Init:\d+/\d+|Pending\Z", word):
        return "starting"
    return None


def _kube_job(name: object, status: dict[str, Any]) -> Pod:
    conditions = [one for one in _list(status.get("conditions")) if isinstance(one, dict)]
    true = {str(one.get("type")): one for one in conditions if one.get("status") == "True"}
    failed, done = true.get("Failed"), true.get("Complete") or true.get("SuccessCriteriaMet")
    told = failed or done or true.get("Suspended") or {}
    state = "failed" if failed else "completed" if done else "paused" if "Suspended" in true else "running"
    if not conditions and not _number(status.get("active")):
        state = "unknown"
    return Pod(_text(name), state, reason=_text(told.get("reason")), message=_text(told.get("message")))


def _docker(item: dict[str, Any]) -> Pod:
    state = _dict(item.get("State"))
    running = bool(state.get("Running"))
    code = _number(state.get("ExitCode"))
    word = "running" if running else "completed" if code == 0 else "failed"
    if state.get("Status") in {"created", "restarting", "paused"}:
        word = {"created": "starting", "restarting": "crash_looping", "paused": "paused"}[
            str(state["Status"])
        ]
    return Pod(
        name=_text(str(item.get("Name") or "").lstrip("/") or None),
        state=word,
        phase=_text(state.get("Status")),
        reason=_text(state.get("Error") or None),
        restarts=_number(item.get("RestartCount")),
        exit_code=None if running else code,
        oom_killed=state.get("OOMKilled") is True,
        scope="docker",
    )


def read_table(text: str) -> PodReport | None:
    """``kubectl get pods`` and ``docker ps -a``, with their header; None when it is neither."""
    told = [line for line in lines(text) if line.strip()]
    header = r"(?:NAMESPACE\s+)?NAME\s+READY\s+STATUS|CONTAINER ID\s"
    start = next((at for at, line in enumerate(told[:_MOST_ABOVE]) if re.match(header, line)), None)
    if start is None:
        return None
    rows = told[start:]
    starts = [match.start() for match in re.finditer(r"\S+(?: \S+)*", rows[0])]
    titles = [rows[0][a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
    pods = []
    for line in rows[1:]:
        cells = [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
        row = dict(zip(titles, cells, strict=True))
        pods.append(_docker_row(row) if "CONTAINER ID" in row else _pod_row(row))
    return PodReport(tuple(pods))


def read_bare_rows(text: str) -> PodReport | None:
    """``kubectl get pods --no-headers``."""
    rows = re.findall(
        r"^(\S{1,253})[ \t]+(\d{1,4}/\d{1,4})[ \t]+(\S{1,64})[ \t]+(\d{1,9})(?: \([^)\n]*\))?[ \t]+\S",
        text,
        re.MULTILINE,
    )
    names = ("NAME", "READY", "STATUS", "RESTARTS")
    return PodReport(tuple(_pod_row(dict(zip(names, row, strict=True))) for row in rows)) if rows else None


def _pod_row(row: dict[str, str]) -> Pod:
    word = row.get("STATUS", "")
    state = _state_of_word(word) or {
        "Running": "running", "Completed": "completed", "Succeeded": "completed", "Error": "failed",
        "OOMKilled": "failed", "Terminating": "terminating", "Evicted": "evicted", "NodeLost": "node_lost",
        "Failed": "failed", "DeadlineExceeded": "failed",
    }.get(word, "unknown")  # fmt: skip
    restarts = re.match(r"\d{1,9}", row.get("RESTARTS", ""))
    code = re.fullmatch(r"(?:Init:)?ExitCode:(\d{1,3})", word)
    return Pod(
        name=_text(row.get("NAME")),
        state="failed" if code else state,
        reason=_text(word),
        restarts=int(restarts.group()) if restarts else None,
        exit_code=int(code.group(1)) if code else None,
        oom_killed=word in {"OOMKilled", "Init:OOMKilled"},
        ready=_text(row.get("READY")),
        node=_text(row.get("NODE") if row.get("NODE") != "<none>" else None),
    )


def _docker_row(row: dict[str, str]) -> Pod:
    word = row.get("STATUS", "")
    code = re.match(r"(?:Exited|Restarting) \((\d{1,3})\)", word)
    names = (
        ("Up", "running"),
        ("Created", "starting"),
        ("Restarting", "crash_looping"),
        ("Paused", "paused"),
    )
    state = next((name for start, name in names if word.startswith(start)), "unknown")
    if word.startswith("Exited"):
        state = "completed" if code and code.group(1) == "0" else "failed"
    return Pod(
        name=_text(row.get("NAMES")),
        state=state,
        phase=_text(word),
        exit_code=int(code.group(1)) if code else None,
        scope="docker",
    )


def read_describe(text: str) -> PodReport | None:
    """``kubectl describe pod``, one or several; None when it is none."""
    records = re.split(r"^(?=Name:\s)", text, flags=re.MULTILINE)
    pods = [_described(record) for record in records if re.match(r"Name:\s", record) and "Status:" in record]
    if not pods and _block(text, "State").get("Reason"):  # a part of it, such as ``grep -A 5 State:``
        pods = [_described(text)]
    return PodReport(tuple(pods)) if pods else None


def _described(record: str) -> Pod:
    head, _, events = record.partition("\nEvents:")
    top = dict(re.findall(r"^(\w[\w ]*):[ \t]+(\S.*?)[ \t]*$", head, re.MULTILINE))
    state = _block(head, "State")
    last = _block(head, "Last State")
    ended = (
        state
        if state.get("State") == "Terminated"
        else last
        if last.get("Last State") == "Terminated"
        else {}
    )
    restarts = re.search(r"^[ \t]+Restart Count:[ \t]+(\d{1,9})", head, re.MULTILINE)
    phase = top.get("Status", "").split()[0] if top.get("Status") else ""
    waiting = state.get("Reason", "") if state.get("State") == "Waiting" else ""
    stuck = re.search(r"FailedScheduling\s+.*?\s{2,}(\S+\s+)?(?P<text>\d+/\d+ nodes are available.*)", events)
    status = {"phase": phase, "reason": top.get("Reason")}
    found = Pod(
        name=_text(top.get("Name")),
        state=_pod_state(
            phase,
            status,
            {"reason": waiting},
            {},
            top.get("Status", "").startswith("Terminating"),
            bool(stuck),
        ),
        phase=_text(phase or None),
        reason=_text(
            ended.get("Reason") or waiting or top.get("Reason") or ("Unschedulable" if stuck else None)
        ),
        message=_text(top.get("Message") or (stuck.group("text") if stuck else None)),
        restarts=int(restarts.group(1)) if restarts else None,
        exit_code=int(ended["Exit Code"]) if re.fullmatch(r"\d{1,3}", ended.get("Exit Code", "")) else None,
        oom_killed=ended.get("Reason") == "OOMKilled",
        node=_text(top.get("Node", "").partition("/")[0] or None),
    )
    return replace(found, node=None) if found.node in {"<none>", None} else found


def _block(text: str, title: str) -> dict[str, str]:
    """The indented lines that belong to ``State:`` or ``Last State:`` of the first container."""
    match = re.search(
        rf"^(?P<indent>[ \t]+){title}:[ \t]+(?P<value>\S+)[ \t]*\n(?P<rest>(?:(?P=indent)[ \t]+.*\n?)*)",
        text,
        re.MULTILINE,
    )
    if match is None:
        return {}
    inner = dict(re.findall(r"^[ \t]+(\w[\w ]*):[ \t]+(\S.*?)[ \t]*$", match.group("rest"), re.MULTILINE))
    return {title: match.group("value"), **inner}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> SafeText | None:
    return safe(value, 512) if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

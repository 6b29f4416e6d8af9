"""Whose words count: not the kernel's about other processes; our own about a link are put as ssh's. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tui.model.incident import Diagnosis, Evidence, Incident, RuledOut
from tui.model.instance import LinkState
from tui.model.look import LookAnswer
from tui.model.snapshot import BoxView, RunView
from tui.model.text import SafeText, safe

OOM_BEFORE_END_S = 180.0
"""A kill further back than this from the log's last growth did not end the run that wrote it."""
OWN_BOOT_S = 60.0
"""A first process that is this much younger than the kernel is that of a container."""

_STAMP = re.compile(r"^\[\s*(?P<at>\d{1,10}\.\d{1,9})\]")
_KILLED = re.compile(
    r"(?:Killed process|Out of memory: Kill process|oom_reaper: reaped process) "
    r"(?P<pid>\d{1,10}) \((?P<name>[^)]{0,64})\)"
)
_OOM = re.compile(r"(?i)oom-kill|out of memory|killed process|oom_reaper")


@dataclass(frozen=True, slots=True)
class Kernel:
    """The kernel's words less what is about others, and what was left out."""

    answer: LookAnswer
    others: tuple[RuledOut, ...] = ()


def about_this_run(answer: LookAnswer, box: BoxView, run: RunView | None) -> Kernel:
    """Leave out kills for memory that cannot have ended this run: long before its last line, or another pid.

    A kernel log reaches back to the boot and, in a container, tells of every container of the machine.
    """
    if answer.look != "dmesg" or run is None or not any(_OOM.search(line) for line in answer.lines):
        return Kernel(answer)
    kept: list[SafeText] = []
    others: dict[str, RuledOut] = {}
    why = ""
    for line in reversed(answer.lines):  # what leads up to a kill stands above the line that names the victim
        killed = _KILLED.search(line)
        if killed is not None:
            why = _not_this_run(line, killed, box, run)
            if why:
                others.setdefault(why, RuledOut("host_oom_kill", safe(why)))
        if not (why and _OOM.search(line)):
            kept.append(line)
    return Kernel(replace(answer, lines=tuple(reversed(kept))), tuple(others.values())[:5])


def _not_this_run(line: str, killed: re.Match[str], box: BoxView, run: RunView) -> str:
    """Why a kill is not that of this run; empty where it may be."""
    early = _seconds_before_end(line, box, run)
    name = f"the kernel killed pid {killed['pid']} ({killed['name']}){_when(line)}"
    if early is not None and early > OOM_BEFORE_END_S:
        return f"{name}, {early / 60:.0f} min before this run's last line"
    pids = _pids(run)
    if pids and int(killed["pid"]) not in pids and _sees_real_pids(box):
        return f"{name}, which is not this run's process"
    return ""


def _when(line: str) -> str:
    """When the kernel did it by its own clock, as its line says; empty where it does not."""
    stamp = _STAMP.match(line)
    return f" at kernel time {stamp['at']} s" if stamp is not None else ""


def _seconds_before_end(line: str, box: BoxView, run: RunView) -> float | None:
    """How long before the log grew last; None where a time is missing."""
    host = box.telemetry.host.value if box.telemetry is not None else None
    log = run.truth.log.value if run.truth is not None else None
    stamp = _STAMP.match(line)
    if stamp is None or host is None or host.booted_at is None or log is None:
        return None
    return log.modified_at - (host.booted_at + float(stamp["at"]))


def _pids(run: RunView) -> frozenset[int]:
    process = run.truth.process if run.truth is not None else None
    found = {run.spec.pid, process.pid if process is not None else None}
    return frozenset(pid for pid in found if pid is not None)


def _sees_real_pids(box: BoxView) -> bool:
    """Whether pids here are the kernel's own: in a container they are others."""
    host = box.telemetry.host.value if box.telemetry is not None else None
    if host is None or host.container_started_at is None or host.booted_at is None:
        return False
    return abs(host.container_started_at - host.booted_at) < OWN_BOOT_S


# -- the link ----------------------------------------------------------------------------------------------

_REFUSED_PORT = "ssh: connect to host box port 22: Connection refused"
_SPOKEN: tuple[tuple[LinkState, str, str], ...] = (
    (LinkState.IDENTITY, "", "REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed."),
    (LinkState.REFUSED, "does not run commands", "exec request failed on channel 0"),
    (LinkState.REFUSED, "", "Permission denied (publickey)."),
    (LinkState.NEEDS_SECRET, "", "Permission denied (password)."),
    (LinkState.UNREACHABLE, "could not be resolved", "ssh: Could not resolve hostname box"),
    (LinkState.UNREACHABLE, "nothing listens", _REFUSED_PORT),
    (
        LinkState.UNREACHABLE,
        "before the login",
        "kex_exchange_identification: Connection closed by remote host",
    ),
    (LinkState.UNREACHABLE, "", "ssh: connect to host box port 22: Connection timed out"),
    (LinkState.LOST, "", "client_loop: send disconnect: Broken pipe"),
)
"""State of a link, words of our own sentence, and how OpenSSH says the same: the catalog knows that one."""


def as_ssh_says(state: LinkState, detail: str) -> str:
    """The link's trouble in OpenSSH's words; empty where there is none."""
    return next((said for s, word, said in _SPOKEN if s is state and word in detail), "")


def in_our_words(told: Diagnosis, detail: SafeText, at: float | None) -> Diagnosis:
    """Evidence of the link as it was really said, once for each incident."""

    def own(one: Incident) -> Incident:
        pieces: Iterable[Evidence] = (
            Evidence(e.source, detail, None, at) if e.source == "ssh" else e for e in one.evidence
        )
        return replace(one, evidence=tuple(dict.fromkeys(pieces)))

    return replace(told, incidents=tuple(own(one) for one in told.incidents))

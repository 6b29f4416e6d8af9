"""Kinds C and E: memory, processes, sessions, schedulers, ssh and pasted logins, in the corpus' own names.

Only names are changed here: everything that is told apart is told apart by the product.
"""

from __future__ import annotations

from typing import Any

from tests.corpus import evidence
from tests.corpus.runner import Answer, Case
from tui.box.address import read_paste
from tui.box.parsers import boot
from tui.box.parsers.cgroup import Cgroup
from tui.box.parsers.containers import Pod, PodReport
from tui.box.parsers.job_tail import JobEnd
from tui.box.parsers.kernel_oom import Kill, Stuck
from tui.box.parsers.memory import MemoryTable
from tui.box.parsers.process import Listing
from tui.box.parsers.ps_table import Proc
from tui.box.parsers.recognise_system import BootReport, SystemReport, read_system
from tui.box.parsers.report import Output
from tui.box.parsers.slurm import Job, SlurmReport
from tui.box.parsers.ssh_errors import SshTrouble
from tui.box.parsers.tmux import TmuxReport, TmuxSession
from tui.model.failure import Failure


def map_case(case: Case) -> Answer:
    """What the product makes of one case, under the names the corpus uses."""
    text = case.stdout.decode("utf-8", "surrogateescape")
    if case.cmd is None:
        return {"login": _login(text)}
    output = Output(text, case.stderr.decode("utf-8", "surrogateescape"), case.rc)
    processes = str(case.ctx.get("processes") or "")
    report = read_system(case.cmd, output, processes=processes, far_side_ended="marker" in case.ctx)
    return {**evidence.of_output(case), **_named(report, case)}


def _login(text: str) -> dict[str, object] | None:
    try:
        address, password = read_paste(text)
    except Failure:
        return None
    found = {**address.as_json(), "ignored": list(address.ignored), "proxy_no_exec": address.proxied}
    return {**found, "password": password.reveal()} if password else found


def _named(report: SystemReport, case: Case) -> dict[str, object]:
    answer: dict[str, object] = {}
    if report.refusal:
        answer["error"] = report.refusal.error
    if report.link:
        answer |= _link(report.link)
    if report.job:
        answer |= _job_end(report.job)
    if report.group:
        answer |= _group(report.group)
    if report.memory:
        answer |= _memory(report.memory)
    if report.kills:
        answer |= _kills(report.kills)
    if report.stuck:
        answer |= _stuck(report.stuck)
    if report.holders is not None:
        answer["holders"] = [{"pid": h.pid, "cmd": h.cmd, "user": h.user} for h in report.holders]
    if report.listing:
        answer |= _listing(report.listing)
    if report.tmux:
        answer |= _tmux(report.tmux)
    if report.tmux_asked:
        answer["asked"] = report.tmux_asked
    if report.boot:
        answer |= _boot(report.boot, case.ctx)
    if report.slurm:
        answer |= _slurm(report.slurm)
    if report.pods:
        answer |= _pods(report.pods)
    return answer


def _link(link: SshTrouble) -> dict[str, object]:
    return {
        "detail": link.detail,
        "methods": list(link.methods) if link.methods is not None else None,
        "known_hosts_line": link.known_hosts_line,
    }


def _job_end(end: JobEnd) -> dict[str, object]:
    return {
        "exit_code": end.ending.code,
        "signal": end.ending.signal,
        "pid": end.ending.pid,
        "finished": end.finished,
        "note": end.note,
        "limit": end.limit,
        "resource": end.resource,
        "scope": end.scope,
        "node": end.node,
        "detail": end.script_fault,
    }


def _group(group: Cgroup) -> dict[str, object]:
    names = {
        "limit_bytes": "mem_limit", "high_bytes": "mem_high", "used_bytes": "mem_used",
        "peak_bytes": "mem_peak",
        "swap_limit_bytes": "swap_limit", "swap_used_bytes": "swap_used", "fail_count": "failcnt",
        "oom_kills": "oom_kill", "under_oom": "under_oom", "cpus": "cpus",
    }  # fmt: skip
    answer: dict[str, object] = {
        ours: getattr(group, name) for name, ours in names.items() if name in group.asked
    }
    if "cpuset" in group.asked:
        answer.setdefault("cpus", group.cpuset)
    for counters in (group.events, group.cpu_stat, group.stat):
        answer = {**(counters or {}), **answer}
    if group.available_bytes is not None:
        answer["effective_available"] = group.available_bytes
    if "pressure" in group.asked:
        answer["psi"] = None
    for resource, pressure in (group.pressure or {}).items():
        full = pressure.full
        answer["psi"] = {"some10": pressure.some[0], "full10": full[0] if full else None}
        if pressure.thrashing:
            answer["warn"] = f"{resource}_pressure"
    if group.pids:
        pids = group.pids
        answer["pids"] = {"max": pids.limit, "current": pids.current, "hits": pids.hits}
        answer["limit"] = "pids" if pids.exhausted else None
    return answer


def _memory(table: MemoryTable) -> dict[str, object]:
    end = f"_{table.unit}" if table.unit else ""
    answer: dict[str, object] = {"mem": {f"{name}{end}": value for name, value in table.memory.items()}}
    if table.swap is not None:
        answer["swap"] = {f"{name}{end}": value for name, value in table.swap.items()}
    return answer


def _kills(kills: tuple[Kill, ...]) -> dict[str, object]:
    victims = [{"pid": k.pid, "name": k.name, "anon_rss_kb": k.anon_rss_kb} for k in kills]
    return {"scope": kills[0].scope, "victim": victims[0], "victims": victims}


def _stuck(stuck: tuple[Stuck, ...]) -> dict[str, object]:
    return {"pid": stuck[0].pid, "name": stuck[0].name, "state": stuck[0].state, "where": stuck[0].module}


def _proc(proc: Proc) -> dict[str, object]:
    return {
        "pid": proc.pid, "ppid": proc.ppid, "user": proc.user, "stat": proc.stat, "name": proc.name,
        "args": proc.args, "cmd": proc.args, "cpu": proc.cpu_pct, "mem": proc.mem_pct, "rss_kb": proc.rss_kb,
        "elapsed_s": proc.elapsed_s, "state": proc.stat[0] if proc.stat else None, "threads": proc.threads,
    }  # fmt: skip


def _listing(listing: Listing) -> dict[str, object]:
    answer: dict[str, object] = {"running": listing.running}
    answer["procs"] = [_proc(proc) for proc in listing.procs] if listing.procs is not None else None
    if listing.zombies_of_init:
        answer["note"] = "zombies_of_pid1"
    if listing.others_hidden:
        answer["note"] = "others_hidden"
    if listing.notable and listing.notable.stat:
        answer |= {"pid": listing.notable.pid, "state": listing.notable.stat[0]}
    return answer


def _session(session: TmuxSession) -> dict[str, object]:
    return {
        "name": session.name, "windows": session.windows, "attached": session.attached,
        "group": session.group,
        "mangled": session.mangled, "created": session.created_at or session.created,
    }  # fmt: skip


def _tmux(report: TmuxReport) -> dict[str, object]:
    sessions = [_session(one) for one in report.sessions] if report.sessions is not None else None
    answer: dict[str, object] = {"sessions": sessions, "hint": report.hint, "exists": report.exists}
    if report.error:
        answer["error"] = report.error
    return answer


def _boot(report: BootReport, ctx: dict[str, Any]) -> dict[str, object]:
    answer: dict[str, object] = {
        "uptime_s": report.uptime_s, "boot_id": report.boot_id, "boot_epoch": report.boot_epoch,
        "booted": report.booted, "pid1_start": report.init_started,
    }  # fmt: skip
    if report.load:
        answer |= {"load": list(report.load), "load1": report.load[0]}
    if report.clock is not None and "local_now" in ctx:
        answer["skew_s"] = boot.clock_offset(report.clock, ctx["local_now"])
    now = report.clock if report.clock is not None else ctx.get("now")
    if boot.container_restarted(report.init_started, report.uptime_s, now):
        answer["detail"] = "container_restart"
    return answer


def _job(job: Job) -> dict[str, object]:
    answer: dict[str, object] = {
        "id": job.id, "state": job.state, "name": job.name, "user": job.user, "partition": job.partition,
        "elapsed_s": job.elapsed_s, "exit_code": job.exit_code, "signal": job.signal, "nodes": job.nodes,
        "reason": job.reason, "unavailable": job.unavailable, "by": job.cancelled_by,
    }  # fmt: skip
    if job.comment_text is not None:
        answer["comment"] = job.comment_text
    return answer


def _slurm(report: SlurmReport) -> dict[str, object]:
    answer: dict[str, object] = {
        "jobs": [_job(job) for job in report.jobs] if report.jobs is not None else None
    }
    if report.jobs:
        answer |= _job(report.jobs[0])
        answer["scope"] = "slurm"
    if report.nodes:
        node = report.nodes[0]
        answer |= {"node": node.name, "state": "+".join(node.states), "reason": node.reason}
    if report.submitted:
        answer["id"] = report.submitted
    if report.refusal:
        answer["error"] = report.refusal.error
    return answer


def _pod(pod: Pod) -> dict[str, object]:
    return {
        "name": pod.name, "state": pod.state, "phase": pod.phase, "reason": pod.reason,
        "restarts": pod.restarts,
        "exit_code": pod.exit_code, "node": pod.node, "ready": pod.ready, "message": pod.message,
    }  # fmt: skip


def _pods(report: PodReport) -> dict[str, object]:
    answer: dict[str, object] = {
        "pods": [_pod(pod) for pod in report.pods] if report.pods is not None else None
    }
    if report.pods:
        answer |= _pod(next((pod for pod in report.pods if pod.oom_killed), report.pods[0]))
        answer["scope"] = report.pods[0].scope
    if report.deleted:
        answer["note"] = "deleted"
    if report.refusal:
        answer["error"] = report.refusal.error
    return answer

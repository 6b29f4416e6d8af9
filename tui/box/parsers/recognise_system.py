"""From a command line and what it printed to what that means: the parser of each program is chosen here.

Pipes, sudo, full paths,
time limits and the order of flags do not matter; `command` and `sections` see to that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tui.box.parsers import (
    boot,
    cgroup,
    containers,
    process,
    ps_table,
    slurm,
    slurm_records,
    slurm_tables,
    tmux,
)
from tui.box.parsers.cgroup import Cgroup
from tui.box.parsers.command import CommandLine, Invocation, read_command
from tui.box.parsers.complaints import complaint
from tui.box.parsers.containers import PodReport
from tui.box.parsers.job_tail import JobEnd, read_end
from tui.box.parsers.kernel_oom import Kill, Stuck, parse_kills, parse_stuck, stack_module
from tui.box.parsers.lines import lines, uncoloured
from tui.box.parsers.memory import MemoryTable, free_unit, parse_free, parse_meminfo
from tui.box.parsers.process import Holder, Listing
from tui.box.parsers.report import Output, Refusal
from tui.box.parsers.sections import Section, split_output
from tui.box.parsers.slurm import SlurmReport
from tui.box.parsers.ssh_errors import SshTrouble, classify
from tui.box.parsers.tmux import TmuxReport
from tui.model.text import SafeText, safe

_KERNEL_LOGS = frozenset({"dmesg", "journalctl", "kmsg"})
_KERNEL_FILES = re.compile(r"/(?:kern\.log|messages|syslog|kmsg|dmesg)\b")
_LISTERS = frozenset({"ps", "pgrep", "pidof"})
_FILTERS = frozenset(
    {"grep", "egrep", "fgrep", "rg", "awk", "sed", "head", "tail", "sort", "uniq", "wc", "cut", "tr"}
)
_READERS = frozenset(
    {"cat", "head", "tail", "grep", "egrep", "awk", "sed", "cut", "less", "more", "zcat", "od", "read"}
)
_REPORTERS = frozenset({"systemctl", "journalctl", "supervisorctl", "service"})  # their status is their own
_LOOKERS = (
    _READERS
    | _FILTERS
    | {
        "echo",
        "printf",
        "cd",
        "date",
        "stat",
        "kill",
        "test",
        "[",
        "[[",
        "true",
        "uptime",
        "who",
        "last",
        "w",
    }
    | {"for", "done", "fi", "ls", "mkdir", "export", "nproc", "hostname", "uname", "id", "whoami"}
)
_SSH = frozenset({"ssh", "scp", "sftp", "rsync", "sshpass", "autossh", "mosh"})


@dataclass(frozen=True, slots=True)
class BootReport:
    """What was said about starts and clocks; seconds, by the box's clock."""

    uptime: boot.Uptime | None = None
    uptime_s: float | None = None
    load: tuple[float, float, float] | None = None
    boot_id: SafeText | None = None
    boot_epoch: int | None = None
    init_started: float | None = None
    clock: float | None = None
    booted: SafeText | None = None


@dataclass(frozen=True, slots=True)
class SystemReport:
    """Everything one command line's output said; a part is None where no such program ran."""

    group: Cgroup | None = None
    memory: MemoryTable | None = None
    listing: Listing | None = None
    holders: tuple[Holder, ...] | None = None
    tmux: TmuxReport | None = None
    tmux_asked: SafeText | None = None
    boot: BootReport | None = None
    slurm: SlurmReport | None = None
    pods: PodReport | None = None
    kills: tuple[Kill, ...] | None = None
    stuck: tuple[Stuck, ...] | None = None
    link: SshTrouble | None = None
    job: JobEnd | None = None
    refusal: Refusal | None = None


def read_system(
    line: str, output: Output, *, processes: str = "", far_side_ended: bool = False
) -> SystemReport:
    """What a command's output says about memory, processes, sessions, schedulers and the way to the box.

    Args:
        line: the command line, as it was run on the box or here (``ssh box CMD``).
        processes: tmux processes known from elsewhere.
        far_side_ended: a marker of our wrapper proves that the exit status is the remote program's own.
    """
    output = replace(output, stdout=uncoloured(output.stdout).replace("\r\n", "\n"))
    link = None if far_side_ended else _link(line, output)
    if link is not None:
        return SystemReport(link=link)
    whole = read_command(line)
    report = SystemReport()
    files: dict[str, str] = {}
    for section in split_output(line, output.stdout):
        part = Output(section.text, output.stderr, output.exit)
        report = _merged(report, _read_section(section, part, files, processes))
    if re.search(r"cgroup|\b(?:memory|cpu|pids)\.\w", line):
        files.update(cgroup.named_blocks(output.stdout))
    if files:
        report = replace(report, group=cgroup.read_files(files))
    if report.tmux or report.slurm or report.pods:  # they name their refusals themselves
        return report
    return replace(report, refusal=complaint(output, whole.limited))


def _link(line: str, output: Output) -> SshTrouble | None:
    """ssh's own complaint, also where the command line does not show that ssh ran it."""
    first = re.match(r"\s*(?:\S*/)?(\w+)", line)
    if first is not None and first.group(1) in _SSH:
        return classify(output.stderr, output.exit)
    if output.exit != 255:
        return None
    own = re.compile(r"ssh: |kex_exchange_identification|[^\s@]{1,64}@\S{1,255}: Permission denied \(")
    complained = any(own.match(line) for line in lines(output.stderr)[:100])
    return classify(output.stderr, output.exit) if complained else None


def _merged(one: SystemReport, other: SystemReport) -> SystemReport:
    """Parts of both; of two boot reports the fields that are known."""
    changes = {
        name: getattr(other, name)
        for name in SystemReport.__slots__
        if getattr(other, name) is not None and (getattr(one, name) is None or name in {"listing", "tmux"})
    }
    if one.boot and other.boot:
        known = {name: getattr(other.boot, name) for name in BootReport.__slots__}
        changes["boot"] = replace(
            one.boot, **{name: value for name, value in known.items() if value is not None}
        )
    return replace(one, **changes)


def _read_section(section: Section, output: Output, files: dict[str, str], processes: str) -> SystemReport:
    command = read_command(section.command)
    report = SystemReport()
    tools = {call.tool for call in command.invocations}
    for call in command.invocations:
        report = _merged(report, _read_call(call, command, output, processes))
    paths = [
        arg
        for call in command.invocations
        if call.tool in _READERS
        for arg in call.args
        if "/" in arg or "." in arg
    ]
    report = _merged(report, _read_paths(paths, output, files))
    if "stat" in tools and re.search(r"/proc/1\b", section.command):
        report = _merged(report, SystemReport(boot=BootReport(init_started=boot.parse_epoch(output.stdout))))
    if report == SystemReport() and not files and _is_job(command):
        status = output.exit if tools.isdisjoint(_REPORTERS) else None
        end = read_end(command, output.both, status)
        report = SystemReport(job=end, kills=parse_kills(output.both) or None)
    return report


def _is_job(command: CommandLine) -> bool:
    """Whether nothing in the line is a tool that only looks."""
    return any(call.tool not in _LOOKERS for call in command.invocations)


def _read_call(call: Invocation, command: CommandLine, output: Output, processes: str) -> SystemReport:
    if call.tool == "free":
        return SystemReport(memory=parse_free(output.stdout, free_unit(call.args)))
    if call.tool in _LISTERS:
        return SystemReport(listing=_listing(call, command, output))
    if call.tool == "kill":
        return SystemReport(listing=_asked_alive(call, output))
    if call.tool in {"fuser", "lsof"}:
        read = process.parse_fuser if call.tool == "fuser" else process.parse_lsof
        holders = read(output.stdout)
        return SystemReport(holders=holders if holders or _names_no_holder(output.stdout) else None)
    if call.tool == "screen":
        return SystemReport(tmux=tmux.read_screen(output.both))
    if call.tool == "tmux":
        return _tmux(call, output, processes)
    if call.tool in {"squeue", "sacct", "scontrol", "sbatch", "salloc"}:
        return SystemReport(slurm=_slurm(call, output))
    if call.tool in {"kubectl", "oc", "docker", "podman", "nerdctl"}:
        return SystemReport(pods=_pods(output))
    if call.tool in _KERNEL_LOGS:
        return SystemReport(kills=parse_kills(output.stdout), stuck=parse_stuck(output.stdout))
    return _boot_call(call, output.stdout)


def _names_no_holder(text: str) -> bool:
    """Whether nothing but a header and names of devices stands there."""
    return all(re.fullmatch(r"\s*(?:USER|COMMAND)\s+PID\s.*|(?:/\S+:)?\s*", line) for line in lines(text))


def _boot_call(call: Invocation, text: str) -> SystemReport:
    if call.tool == "uptime" and call.flag("-s", "--since"):
        return SystemReport(boot=BootReport(booted=boot.parse_since(text)))
    if call.tool in {"uptime", "w"}:
        up = boot.parse_uptime(text)
        return SystemReport(
            boot=BootReport(uptime=up, uptime_s=up.seconds if up else None, load=up.load if up else None)
        )
    if call.tool in {"who", "last"}:
        return SystemReport(boot=BootReport(booted=boot.parse_who_boot(text)))
    if call.tool == "sysctl":
        return SystemReport(boot=BootReport(boot_epoch=boot.parse_boot_epoch(text)))
    if call.tool == "date" and any("%s" in arg for arg in call.args):
        return SystemReport(boot=BootReport(clock=boot.parse_epoch(text)))
    return SystemReport()


def _listing(call: Invocation, command: CommandLine, output: Output) -> Listing | None:
    if complaint(output) or (output.exit not in {0, 1, None} and not output.stdout.strip()):
        return None
    if call.tool != "ps":
        found = ps_table.parse_pgrep(output.stdout)
        told = found if found or not output.stdout.strip() else None
        return process.read_listing(told, all_asked=False, searched=True)
    searched = any(one.tool in _FILTERS for one in command.invocations)
    asked_all = any(re.fullmatch(r"-?[A-Za-z]*[eAx][A-Za-z]*", arg) for arg in call.args[:1])
    columns, text = ps_table.columns_of(call.args), output.stdout
    asked_pid = call.value("-p", "--pid", "p")
    if "pid" not in columns and asked_pid and re.fullmatch(r"\d{1,10}", asked_pid):
        columns = ("pid", *columns)
        text = "\n".join(f"{asked_pid} {line}" for line in text.split("\n") if line.strip())
    procs = ps_table.parse_ps(text, columns)
    return process.read_listing(procs, all_asked=asked_all, searched=searched)


def _asked_alive(call: Invocation, output: Output) -> Listing | None:
    """``kill -0 PID``: being refused proves that the process is there."""
    if "-0" not in call.args or output.exit is None:
        return None
    refused = complaint(output)
    gone = refused is not None and refused.error == "no_such_process"
    alive = output.exit == 0 or (refused is not None and refused.error == "permission")
    return Listing(procs=() if gone else None, running=True if alive else False if gone else None)


def _tmux(call: Invocation, output: Output, processes: str) -> SystemReport:
    named = call.value("-s") if set(call.args) & {"new", "new-session"} else None
    asked = safe(named, 256) if named else None
    refusal = complaint(output)
    if refusal is not None and refusal.error in {"tool_missing", "unsupported_option"}:
        return SystemReport(tmux_asked=asked)
    report = tmux.read_client(
        output.stdout,
        output.stderr,
        output.exit,
        processes=processes or output.stdout,
        layout=call.value("-F"),
        utf8="-u" in call.args,
    )
    if set(call.args) & {"has", "has-session"} and output.exit is not None:
        report = replace(
            report,
            exists=True
            if output.exit == 0
            else None
            if report.error not in {"no_such_session", ""}
            else False,
        )
    return SystemReport(tmux=report, tmux_asked=asked)


def _slurm(call: Invocation, output: Output) -> SlurmReport:
    refusal = slurm.refusal_of(output)
    if call.tool in {"sbatch", "salloc"}:
        return SlurmReport(submitted=slurm.parse_submit(output), refusal=refusal)
    if refusal is not None and not output.stdout.strip():
        return SlurmReport(jobs=() if refusal.error == "invalid_job_id" else None, refusal=refusal)
    document = slurm_records.read_json(output.stdout)
    if document or output.stdout.lstrip().startswith("{"):
        return document or SlurmReport(refusal=refusal)
    if call.tool == "scontrol":
        return replace(slurm_records.read_show(output.stdout), refusal=refusal)
    read = slurm_tables.read_squeue if call.tool == "squeue" else slurm_tables.read_sacct
    found = read(output.stdout, call)
    return replace(found, refusal=refusal or found.refusal)


def _pods(output: Output) -> PodReport | None:
    readers = (
        containers.read_json,
        containers.read_table,
        containers.read_describe,
        containers.read_bare_rows,
    )
    found = next((report for read in readers if (report := read(output.stdout))), None)
    return found or containers.refusal_of(output)


def _read_paths(paths: list[str], output: Output, files: dict[str, str]) -> SystemReport:
    """What the files at `paths` say; contents of control group files are gathered in `files`."""
    names = [_known_name(path) for path in paths]
    single = [name for name in names if name in cgroup.SINGLE_VALUES]
    rows = [line for line in lines(output.stdout) if line.strip()]
    if len(single) == len(rows) and len(single) > 1:
        files.update(zip(single, rows, strict=True))
    else:
        files.update(
            {name: output.stdout for name in names if name in cgroup.SINGLE_VALUES or name in cgroup.TABLES}
        )
    report = SystemReport()
    for path in paths:
        report = _merged(report, _read_path(path, output.stdout))
    return report


def _known_name(path: str) -> str:
    parts = path.rstrip("/").split("/")
    return "/".join(parts[-2:]) if len(parts) > 1 and parts[-2] == "pressure" else parts[-1]


def _read_path(path: str, text: str) -> SystemReport:
    name = _known_name(path)
    if name == "meminfo":
        return SystemReport(memory=parse_meminfo(text))
    if name == "boot_id":
        return SystemReport(boot=BootReport(boot_id=boot.parse_boot_id(text)))
    if path == "/proc/stat":
        return SystemReport(boot=BootReport(boot_epoch=boot.parse_boot_epoch(text)))
    if path == "/proc/uptime":
        return SystemReport(boot=BootReport(uptime_s=boot.parse_proc_uptime(text)))
    if path == "/proc/loadavg":
        return SystemReport(boot=BootReport(load=boot.parse_loadavg(text)))
    if _KERNEL_FILES.search(path):
        return SystemReport(kills=parse_kills(text), stuck=parse_stuck(text))
    stack = re.fullmatch(r"/proc/(\d{1,10})/stack", path)
    if stack:
        return SystemReport(stuck=_stack(int(stack.group(1)), text))
    if re.match(r"/proc/(?:\d+|self|\$\w+)/", path):
        return SystemReport(listing=_proc_file(name, text))
    if name.endswith((".out", ".err", ".log")):
        return SystemReport(job=read_end(CommandLine(), text, None))
    return SystemReport()


def _stack(pid: int, text: str) -> tuple[Stuck, ...] | None:
    """The kernel stack of a process, where it stands in a driver."""
    module = stack_module(text)
    return (Stuck(pid, SafeText(""), 1, "", module=module),) if module else None


def _proc_file(name: str, text: str) -> Listing | None:
    """One process from its own folder in /proc."""
    proc = process.parse_proc_status(text) if name == "status" else None
    stat = process.parse_proc_stat(text) if name == "stat" else None
    if stat is not None:
        proc = ps_table.Proc(
            stat.pid, stat.comm, stat.comm, stat.ppid, stat=SafeText(stat.state), threads=stat.threads
        )
    return process.read_listing((proc,), all_asked=False, searched=False) if proc else None

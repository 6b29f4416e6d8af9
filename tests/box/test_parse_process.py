"""Processes, sessions, starts, schedulers, containers, ssh's words: the kept cases and their neighbours."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.kinds_ce import map_case
from tests.corpus.runner import Case, asked, misses, read_case
from tests.real import need
from tui.box.parsers import boot, process, ps_table, slurm, tmux
from tui.box.parsers.recognise_system import SystemReport, read_system
from tui.box.parsers.report import Output
from tui.box.parsers.ssh_errors import Trouble, classify

CASES = Path(__file__).parents[1] / "cases"
KEPT = [read_case(line) for line in (CASES / "E.jsonl").read_text("utf-8").splitlines()]


def report(command: str, stdout: str = "", exit: int = 0, stderr: str = "") -> SystemReport:
    return read_system(command, Output(stdout, stderr, exit))


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.id)
def test_kept_case(case: Case) -> None:
    assert misses(case, asked(case, "parse"), map_case(case)) == []


AUX = "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
PS = {
    "aux": (
        "ps aux",
        AUX + "root 28133  102  4.1 30000000 12000000 pts/0 Sl+ Jul22 99:01 python train.py --lr 1e-4\n",
    ),
    "ef": (
        "ps -ef",
        "UID PID PPID C STIME TTY TIME CMD\nroot 28133 1 99 Jul22 ? 01:39:01 python train.py --lr 1e-4\n",
    ),
    "ef piped": ("ps -ef | grep train", "root 28133 1 99 10:02 ? 01:39:01 python train.py --lr 1e-4\n"),
    "asked": ("ps -eo pid,stat,args", "  28133 Sl   python train.py --lr 1e-4\n"),
    "asked in two": ("ps ax -o pid= -o args=", "  28133 python train.py --lr 1e-4\n"),
    "widths": (
        "ps -eo pid:10,user:32,cmd",
        "       PID USER        CMD\n     28133 a           python train.py --lr 1e-4\n",
    ),
    "args first": ("ps -eo args,pid", "COMMAND                    PID\npython train.py --lr 1e-4  28133\n"),
    "started": (
        "ps -eo pid,lstart,cmd",
        "PID STARTED CMD\n28133 Sat Mar  1 10:02:11 2025 python train.py --lr 1e-4\n",
    ),
    "forest": (
        "ps auxf",
        AUX + "root 28133  1  4.1 3 1 pts/0 Sl+ 10:02 99:01  |   \\_ python train.py --lr 1e-4\n",
    ),
    "mac": (
        "ps aux",
        "USER  PID  %CPU %MEM      VSZ    RSS   TT  STAT STARTED      TIME COMMAND\n"
        "me  28133  99.0  2.0 34000000 500000   ??  R    10:02AM 12:34.56 python train.py --lr 1e-4\n",
    ),
    "busybox": ("ps", "PID   USER     TIME  COMMAND\n28133 root      1:02 python train.py --lr 1e-4\n"),
    "pgrep": ("pgrep -af train.py", "28133 python train.py --lr 1e-4\n"),
}


@pytest.mark.parametrize("form", PS)
def test_one_process_in_every_layout(form: str) -> None:
    command, text = PS[form]
    found = report(command, text).listing
    assert found is not None
    assert found.procs is not None
    (proc,) = found.procs
    assert (proc.pid, proc.name, proc.args) == (28133, "python", "python train.py --lr 1e-4")
    assert found.running is True


@pytest.mark.parametrize(
    ("command", "stdout", "exit", "running"),
    [
        ("ps -p 28133 -o pid,stat", "    PID STAT\n", 1, False),
        ("ps -p 28133 -o stat=", "", 1, False),
        ("ps -p 28133 -o stat=", "Sl\n", 0, True),
        ("ps -p 28133 -o stat=", "Z\n", 0, False),
        ("pgrep -f train.py", "", 1, False),
        ("pgrep -f train.py", "28133\n28140\n", 0, True),
        ("pgrep -af train.py", "9 bash -c pgrep -af train.py\n", 0, False),
        ("pidof python", "28133 28140\n", 0, True),
    ],
)
def test_is_it_running(command: str, stdout: str, exit: int, running: bool) -> None:
    found = report(command, stdout, exit).listing
    assert found is not None
    assert found.running is running


def test_a_refused_signal_proves_the_process() -> None:
    alive = report("kill -0 9", "", 1, "bash: kill: (9) - Operation not permitted\n").listing
    gone = report("kill -0 9", "", 1, "sh: 1: kill: No such process\n").listing
    assert alive is not None
    assert gone is not None
    assert (alive.running, gone.running) == (True, False)


def test_a_listing_that_failed_says_nothing_about_processes() -> None:
    found = report("ps aux", "", 127, "bash: line 1: ps: command not found\n")
    assert found.listing is None
    assert found.refusal is not None
    assert found.refusal.error == "tool_missing"


def test_a_process_called_grep_is_kept_where_nobody_searched() -> None:
    found = report("ps aux", AUX + "a 5 0 0 1 1 pts/0 R 10:02 0:00 grep -r x /data\n").listing
    assert found is not None
    assert found.procs is not None
    assert [proc.pid for proc in found.procs] == [5]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("01:02", 62), ("1:02:03", 3723), ("2-03:04:05", 183845), ("12:34.56", 754), ("x", None), ("", None)],
)
def test_ps_clock(text: str, seconds: int | None) -> None:
    assert ps_table.clock_seconds(text) == seconds


@pytest.mark.parametrize("comm", ["python", "pt main) thread", "a (b) S 1", "tab\there", "two\nlines", ""])
def test_proc_stat_with_odd_names(comm: str) -> None:
    numbers = "1 2 3 0 -1 4194560 1 0 0 0 100 50 0 0 20 0 12 0 5000 30000 123 18446744073709551615"
    text = f"28133 ({comm}) D {numbers}\n"
    found = process.parse_proc_stat(text.encode())
    assert found is not None
    assert (found.state, found.ppid, found.user_ticks, found.start_ticks) == ("D", 1, 100, 5000)
    assert (found.threads, found.rss_pages) == (12, 123)
    info = process.process_info(found, uptime_s=100.0)
    assert (info.elapsed_s, info.cpu_s, info.rss_bytes) == (50.0, 1.5, 123 * 4096)


def test_proc_stat_of_this_process() -> None:
    stat = Path("/proc/self/stat")
    if not stat.exists():
        pytest.skip("no /proc here")
    found = process.parse_proc_stat(stat.read_bytes())
    assert found is not None
    assert (found.pid, found.ppid) == (os.getpid(), os.getppid())
    assert process.parse_proc_stat(b"1 (a) S 1") is None


@pytest.mark.parametrize(
    ("args", "name"),
    [
        ("/usr/bin/python3 train.py", "python3"),
        (".venv/bin/python -m x", "python"),
        ("[kworker/0:1]", "kworker/0:1"),
        ("[python] <defunct>", "python"),
        ("sshd: root@pts/0", "sshd"),
        ("-bash", "bash"),
        ("ray::Worker.sample", "ray::Worker.sample"),
        ("wandb-service(2-28133-s-40001)", "wandb-service(2-28133-s-40001)"),
        ("", ""),
    ],
)
def test_program_names(args: str, name: str) -> None:
    assert ps_table.program_name(args) == name


def test_a_stack_that_stands_in_a_driver() -> None:
    found = report(
        "cat /proc/77/stack", "[<0>] uvm_ioctl+0x13e0/0x16f0 [nvidia_uvm]\n[<0>] do_syscall+0x5/0x9\n"
    ).stuck
    assert found is not None
    assert [(one.pid, one.module) for one in found] == [(77, "nvidia_uvm")]
    assert report("cat /proc/77/stack", "[<0>] do_syscall+0x5/0x9\n").stuck is None


@pytest.mark.real
def test_the_ps_of_this_machine_lists_this_process() -> None:
    import subprocess

    tool = need("ps")["ps"]
    for options in (["aux"], ["-ef"], ["-eo", "pid,ppid,stat,etimes,args"]):
        text = subprocess.run([tool, *options], capture_output=True, text=True, timeout=10, check=True).stdout
        found = report(f"ps {' '.join(options)}", text).listing
        assert found is not None
        assert found.procs is not None
        assert os.getpid() in {proc.pid for proc in found.procs}
        assert len(found.procs) == len(text.splitlines()) - 1


@pytest.mark.parametrize(
    ("text", "holders"),
    [
        (" 28140 28141m", [(28140, None), (28141, None)]),
        ("/dev/nvidia0:        28140m 28141m\n/dev/nvidiactl:      28140m\n", [(28140, None), (28141, None)]),
        (
            "                     USER        PID ACCESS COMMAND\n"
            "/dev/nvidia0:        root       1422 F.... nvidia-persiste\n"
            "                     root      28140 F...m python\n",
            [(1422, "nvidia-persiste"), (28140, "python")],
        ),
        ("", []),
    ],
)
def test_fuser(text: str, holders: list[tuple[int, str | None]]) -> None:
    assert [(one.pid, one.cmd) for one in process.parse_fuser(text)] == holders


def test_lsof_names_each_process_once() -> None:
    text = (
        "COMMAND   PID USER  FD   TYPE DEVICE SIZE/OFF NODE NAME\n"
        "python  28140 root mem    CHR  195,0           456 /dev/nvidia0\n"
        "python  28140 root   5u   CHR  195,0      0t0  456 /dev/nvidia0\n"
    )
    assert [(one.pid, one.cmd, one.user) for one in process.parse_lsof(text)] == [(28140, "python", "root")]


TMUX = {
    "3.x": "train: 2 windows (created Sun Nov 29 19:37:58 2026) (attached)\n",
    "1.8": "train: 2 windows (created Sun Nov 29 19:37:58 2026) [80x24] (attached)\n",
    "group": "train: 2 windows (created Sun Nov 29 19:37:58 2026) (group a b) (attached)\n",
}


@pytest.mark.parametrize("version", TMUX)
def test_tmux_list(version: str) -> None:
    (found,) = tmux.parse_list(TMUX[version])
    assert (found.name, found.windows, found.attached) == ("train", 2, True)


@pytest.mark.parametrize(
    ("layout", "line"),
    [
        ("#{session_name}|#{session_windows}|#{session_attached}|#{session_created}", "a|b|2|0|1740859200"),
        ("#{session_created} #{session_attached} #{session_windows} #{session_name}", "1740859200 0 2 a|b"),
    ],
)
def test_tmux_format(layout: str, line: str) -> None:
    (found,) = tmux.parse_list(line, layout)
    assert (found.name, found.windows, found.attached, found.created_at) == ("a|b", 2, False, 1740859200.0)


@pytest.mark.parametrize(
    ("name", "utf8", "mangled"),
    [
        ("____", False, True),
        ("____ __", False, True),
        ("exp____", False, True),
        ("train_run_1", False, False),
        ("a__b", False, False),
        ("____", True, False),
    ],
)
def test_names_the_c_locale_destroyed(name: str, utf8: bool, mangled: bool) -> None:
    (found,) = tmux.parse_list(f"{name}: 1 windows (created x)", utf8=utf8)
    assert (found.name is None) is mangled


@pytest.mark.parametrize(
    ("said", "sessions", "error"),
    [
        ("no server running on /tmp/tmux-0/default", (), ""),
        ("failed to connect to server: No such file or directory", (), ""),
        ("failed to connect to server: Connection refused", (), ""),
        ("error connecting to /tmp/tmux-0/default (Connection refused)", (), ""),
        ("no sessions", (), ""),
        ("error connecting to /tmp/tmux-0/default (Permission denied)", None, "permission"),
        ("protocol version mismatch (client 8, server 7)", None, "protocol_mismatch"),
        ("tmux: need UTF-8 locale (LC_CTYPE) but have ANSI_X3.4-1968", None, "locale"),
        ("something new", None, ""),
    ],
)
def test_tmux_without_a_list(said: str, sessions: tuple[()] | None, error: str) -> None:
    found = report("tmux ls", "", 1, said + "\n").tmux
    assert found is not None
    assert (found.sessions, found.error) == (sessions, error)


def test_tmux_has_session() -> None:
    assert (gone := report("tmux has-session -t a", "", 1, "can't find session: a\n").tmux) is not None
    assert (there := report("tmux has-session -t a", "", 0).tmux) is not None
    assert (
        unknown := report("tmux has-session -t a", "", 1, "error connecting to /x (Permission denied)").tmux
    )
    assert (gone.exists, there.exists, unknown.exists) == (False, True, None)


def test_screen() -> None:
    found = tmux.read_screen(
        "There is a screen on:\n\t1234.train\t(03/01/25 10:02:11)\t(Detached)\n1 Socket in /run.\n"
    )
    assert found.sessions is not None
    assert [(one.name, one.attached) for one in found.sessions] == [("train", False)]
    assert tmux.read_screen("No Sockets found in /run/screen/S-root.").sessions == ()
    assert tmux.read_screen("Cannot open your terminal").sessions is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (" 10:02:11 up 3 min,  0 users,  load average: 0.31, 0.10, 0.04", 180),
        (" 10:02:11 up 12 days,  2:03,  3 users,  load average: 64.31, 60.10, 58.04", 1044180),
        (" 10:02:11 up 1 day, 4 min,  1 user,  load average: 0,31, 0,10, 0,04", 86640),
        (" 10:02:11 up  2:03,  load average: 0.31, 0.10, 0.04", 7380),
        ("10:02  up 3 days, 22 mins, 2 users, load averages: 1.31 1.10 1.04", 260520),
        ("10:02  up 45 secs, 2 users, load averages: 1.31 1.10 1.04", 45),
        ("10:02AM  up 1 hr, 2 users, load averages: 1.31 1.10 1.04", 3600),
        ("up 2 weeks, 1 day, 2 hours, 3 minutes", 1303380),
        ("nobody is up to anything", None),
    ],
)
def test_uptime(text: str, seconds: int | None) -> None:
    found = boot.parse_uptime(text)
    assert (found.seconds if found else None) == seconds


def test_comparisons_with_what_was_known() -> None:
    assert boot.same_boot("AB-1\n", "ab-1") is True
    assert boot.same_boot("ab-1", "ab-2") is False
    assert boot.same_boot(None, "ab-2") is None
    assert boot.restarted_since(1000.0, 2000.0) is True
    assert boot.restarted_since(1000.0, 1010.0) is False
    assert boot.restarted_since(None, 1010.0) is None
    assert boot.container_restarted(1000.0, 8000.0, 1060.0) is True
    assert boot.container_restarted(1000.0, 8000.0, 9000.0) is False
    assert boot.container_restarted(None, 8000.0, 9000.0) is None


def test_starts_of_this_machine() -> None:
    uptime = Path("/proc/uptime")
    if not uptime.exists():
        pytest.skip("no /proc here")
    seconds = boot.parse_proc_uptime(uptime.read_text())
    started = boot.parse_boot_epoch(Path("/proc/stat").read_text())
    assert seconds is not None
    assert started is not None
    assert abs(started + seconds - time.time()) < 86400  # container runtimes may shift one of them
    assert boot.parse_boot_epoch("{ sec = 1740859200, usec = 0 } Sat Mar  1 20:00:00 2025") == 1740859200


SQUEUE = (
    "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    "              2691       gpu train my      u1  R 1-02:03:04      2 node[17-18]\n"
    "              2692       gpu    train       u1 PD       0:00      1 (Resources)\n"
    "        2693_[1-9]       gpu    train       u1 PD       0:00      1 (ReqNodeNotAvail, "
    "UnavailableNodes:d[1-2])\n"
)


def jobs(command: str, stdout: str) -> list[slurm.Job]:
    found = report(command, stdout).slurm
    assert found is not None
    assert found.jobs is not None
    return list(found.jobs)


def test_squeue_in_its_default_form() -> None:
    running, waiting, array = jobs("squeue", SQUEUE)
    assert (running.state, running.nodes, running.name, running.elapsed_s) == (
        "RUNNING",
        "node[17-18]",
        "train my",
        93784,
    )
    assert (waiting.state, waiting.reason, waiting.nodes) == ("PENDING", "Resources", None)
    assert (array.id, array.reason, array.unavailable) == ("2693_[1-9]", "ReqNodeNotAvail", "d[1-2]")


@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ('squeue -h -o "%i|%T|%r"', "2691|PENDING|Priority\n"),
        ("squeue --me -h -o '%i|%T|%r|%M|%j'", "2691|PENDING|Priority|0:00|a|b\n"),
        (
            'squeue -u u1 -o "%.18i %.2t %.10M %R"',
            "JOBID ST TIME NODELIST(REASON)\n 2691 PD 0:00 (Priority)\n",
        ),
        ("squeue --noheader --format='%i;%t;%R'", "2691;PD;(Priority)\n"),
        ("squeue -h -O jobid,state,reason", "2691                PENDING             Priority            \n"),
        (
            "ssh login squeue --json",
            '{"jobs": [{"job_id": 2691, "job_state": ["PENDING"], "state_reason": "Priority"}]}',
        ),
        ("squeue --json", '{"jobs": [{"job_id": 2691, "job_state": "PENDING", "state_reason": "Priority"}]}'),
        (
            "scontrol show job 2691",
            "JobId=2691 JobName=a=b c\n   JobState=PENDING Reason=Priority Dependency=(null)\n",
        ),
        (
            "scontrol -o show job 2691",
            "JobId=2691 JobName=a b UserId=u(1) JobState=PENDING Reason=Priority Dependency=(null)",
        ),
    ],
)
def test_a_waiting_job_in_every_form(command: str, stdout: str) -> None:
    (job,) = jobs(command, stdout)
    assert (job.id, job.state, job.reason, job.nodes) == ("2691", "PENDING", "Priority", None)


@pytest.mark.parametrize(
    ("command", "stdout", "known"),
    [
        ("squeue", SQUEUE.splitlines()[0] + "\n", True),
        ("squeue -h", "", True),
        ("squeue", SQUEUE.splitlines()[0] + "\n   2691   ?????\n", False),
        ("squeue", "A notice of the site, and no table\n", False),
        ("sacct -j 2691", "?? 2691 ??\n", False),
        ('squeue -h -o "%i|%T|%R"', "?;?;?\n1;2;3\n", False),
        ("sacct -nP -o JobID,State", "Something else\n", False),
        ("sacct -nP -o JobID,State", "", True),
        ("sacct -P -o JobID,State", "JobID|State\n", True),
    ],
)
def test_rows_in_no_known_form_are_not_told_as_no_jobs(command: str, stdout: str, known: bool) -> None:
    found = report(command, stdout).slurm
    assert found is not None
    assert found.jobs == (() if known else None)
    assert (found.refusal is None) is known


@pytest.mark.parametrize("command", ["fuser -v /dev/nvidia*", "lsof /dev/nvidia0"])
def test_holders_that_cannot_be_read_are_not_told_as_none(command: str) -> None:
    assert report(command, "", 1).holders == ()
    assert (
        report(command, "                     USER        PID ACCESS COMMAND\n/dev/nvidia0:\n").holders == ()
    )
    assert report(command, "what ever this may be\n").holders is None


def test_a_search_for_processes_that_cannot_be_read_finds_out_nothing() -> None:
    for text, procs in (("", ()), ("what ever this may be\n", None)):
        found = report("pgrep -af train.py", text, 0 if text else 1).listing
        assert found is not None
        assert found.procs == procs


def test_squeue_in_its_long_form_begins_with_a_date() -> None:
    text = (
        "Mon Nov 24 10:00:00 2025\n"
        "     JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)\n"
        "      9012       gpu    train       u1  RUNNING   1:02:03 2-00:00:00      1 gpu01\n"
    )
    (job,) = jobs("squeue -l", text)
    assert (job.state, job.elapsed_s, job.limit_s, job.nodes) == ("RUNNING", 3723, 172800, "gpu01")


@given(
    name=st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Zs")), max_size=20),
    task=st.integers(1, 10**9),
)
def test_fields_of_fixed_widths_may_hold_anything(name: str, task: int) -> None:
    row = f"{task:<12}{'PENDING':<12}{name:<20}{'(Priority)':<30}\n"
    (job,) = jobs("squeue -h -O JobID:12,State:12,Name:20,ReasonList:30", row)
    assert (job.id, job.state, job.reason) == (str(task), "PENDING", "Priority")
    assert (job.name or "") == ("" if name.strip() in {"N/A", "None", "none", "(null)"} else name.strip())


@pytest.mark.parametrize(
    ("text", "state", "uid"),
    [
        ("CANCELLED by 1000", "CANCELLED", "1000"),
        ("CANCELLED+", "CANCELLED", None),
        ("OUT_OF_ME+", "OUT_OF_MEMORY", None),
        ("PD", "PENDING", None),
        ("R", "RUNNING", None),
        ("NODE_FAIL", "NODE_FAIL", None),
        ("", None, None),
        ("SOMETHING_NEW", None, None),
    ],
)
def test_slurm_states(text: str, state: str | None, uid: str | None) -> None:
    assert slurm.long_state(text) == (state, uid)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-02:03:04", 93784),
        ("02:03:04", 7384),
        ("0:05", 5),
        ("5:00", 300),
        ("2-00", 172800),
        ("UNLIMITED", None),
        ("5", None),
    ],
)
def test_slurm_times(text: str, seconds: int | None) -> None:
    assert slurm.seconds(text) == seconds


def test_sacct_in_fixed_widths() -> None:
    text = (
        "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
        "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
        "812          train a b         gpu        lab         16     FAILED      1:0 \n"
        "812.batch         batch                   lab         16     FAILED      1:0 \n"
    )
    (job,) = jobs("sacct -j 812", text)
    assert (job.state, job.exit_code, job.signal, job.name) == ("FAILED", 1, None, "train a b")


@pytest.mark.parametrize(
    ("command", "said", "known", "error"),
    [
        ("squeue -j 1", "slurm_load_jobs error: Invalid job id specified", True, "invalid_job_id"),
        (
            "squeue",
            "slurm_load_jobs error: Socket timed out on send/recv operation",
            False,
            "controller_unreachable",
        ),
        ("sacct -j 1", "Slurm accounting storage is disabled", False, "accounting_disabled"),
        (
            "sacct -j 1",
            "sacct: error: Problem talking to the database: Connection refused",
            False,
            "controller_unreachable",
        ),
    ],
)
def test_slurm_that_does_not_answer(command: str, said: str, known: bool, error: str) -> None:
    found = report(command, "", 1, said + "\n").slurm
    assert found is not None
    assert found.refusal is not None
    assert (found.jobs is not None, found.refusal.error) == (known, error)


def pod(status: Mapping[str, object]) -> dict[str, object]:
    case = Case("x", "E", "kubectl get pod p -o json", 0, json.dumps({"status": status}).encode(), b"")
    return dict(map_case(case))


def test_pods_in_json() -> None:
    waiting = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    }
    assert pod(waiting)["state"] == "pending"
    assert pod(waiting)["reason"] == "Unschedulable"
    assert pod({"phase": "Failed", "reason": "Evicted"})["state"] == "evicted"
    assert pod({"phase": "Running", "reason": "NodeLost"})["state"] == "node_lost"
    fine = {"name": "a", "restartCount": 0, "state": {"running": {}}}
    assert pod({"phase": "Running", "containerStatuses": [fine]})["state"] == "running"
    pulled = {"name": "a", "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull"}}}
    assert pod({"phase": "Pending", "containerStatuses": [pulled]})["state"] == "launch_failed"


DESCRIBE = """Name:         p
Namespace:    default
Node:         gpu-7/10.0.0.7
Status:       Running
Containers:
  train:
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Restart Count:  4
Events:
"""


@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("kubectl describe pod p", DESCRIBE),
        (
            "kubectl get pods",
            "NAME   READY   STATUS      RESTARTS       AGE\np      0/1     OOMKilled   4 (2m ago)     10m\n",
        ),
        (
            "kubectl get pods -A",
            "NAMESPACE  NAME   READY   STATUS      RESTARTS   AGE\nd          p      0/1     "
            "OOMKilled   4          1m\n",
        ),
        ("kubectl get pods --no-headers", "p      0/1     OOMKilled   4          1m\n"),
    ],
)
def test_a_pod_killed_for_memory_in_text(command: str, stdout: str) -> None:
    found = report(command, stdout).pods
    assert found is not None
    assert found.pods is not None
    (one,) = found.pods
    assert (one.name, one.reason, one.restarts, one.oom_killed) == ("p", "OOMKilled", 4, True)


def test_a_part_of_a_description_is_read_without_a_name() -> None:
    part = "    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
    found = report("kubectl describe pod p | grep -A 2 State:", part).pods
    assert found is not None and found.pods is not None
    (one,) = found.pods
    assert (one.name, one.reason, one.exit_code, one.oom_killed) == (None, "OOMKilled", 137, True)


@pytest.mark.parametrize(
    ("said", "known", "deleted"),
    [
        ("No resources found in default namespace.", True, False),
        ('Error from server (NotFound): pods "p" not found', True, True),
        (
            "The connection to the server localhost:8080 was refused - did you specify the right "
            "host or port?",
            False,
            False,
        ),
        ("Unable to connect to the server: net/http: TLS handshake timeout", False, False),
        ('Error from server (Forbidden): pods is forbidden: User "u" cannot list', False, False),
    ],
)
def test_kubectl_without_pods(said: str, known: bool, deleted: bool) -> None:
    found = report("kubectl get pods", "", 1, said + "\n").pods
    assert found is not None
    assert (found.pods is not None, found.deleted) == (known, deleted)


@pytest.mark.parametrize(
    ("text", "kind", "detail"),
    [
        ("ssh: connect to host 10.0.0.9 port 22: Connection timed out", Trouble.UNREACHABLE, "timeout"),
        ("ssh: connect to host x port 22: Operation timed out", Trouble.UNREACHABLE, "timeout"),
        (
            "ssh: connect to host x port 22: Network is unreachable",
            Trouble.UNREACHABLE,
            "network_unreachable",
        ),
        (
            "ssh: Could not resolve hostname x: nodename nor servname provided, or not known",
            Trouble.UNREACHABLE,
            "dns",
        ),
        ("[Errno 111] Connect call failed ('127.0.0.1', 2)", Trouble.UNREACHABLE, "refused"),
        (
            "Received disconnect from 1.2.3.4 port 22:2: Too many authentication failures",
            Trouble.AUTH,
            "too_many_failures",
        ),
        ("PermissionDenied: Permission denied for user root on host x", Trouble.AUTH, ""),
        ("root@h: Permission denied (publickey).", Trouble.AUTH, ""),
        ("This account is currently not available.", Trouble.AUTH, "account"),
        ("HostKeyNotVerifiable: Host key is not trusted for host x", Trouble.HOST_KEY, "unknown"),
        ("channel 0: open failed: administratively prohibited: open failed", Trouble.CHANNEL, "prohibited"),
        ("channel 3: open failed: connect failed: Connection refused", Trouble.CHANNEL, "connect_failed"),
        ("PTY allocation request failed on channel 0", Trouble.CHANNEL, "no_pty"),
        ("Timeout, server 203.0.113.7 not responding.", Trouble.DROPPED, "timeout"),
        ("packet_write_wait: Connection to 1.2.3.4 port 22: Broken pipe", Trouble.DROPPED, "broken_pipe"),
        ("ssh_exchange_identification: read: Connection reset by peer", Trouble.DROPPED, "handshake"),
        ("ConnectionLost: Connection lost", Trouble.DROPPED, "closed"),
        ("/home/u/.ssh/config: line 3: Bad configuration option: foo", Trouble.LOCAL, "configuration"),
    ],
)
def test_ssh_words(text: str, kind: Trouble, detail: str) -> None:
    found = classify(f"Warning: Permanently added 'x' (ED25519) to the list of known hosts.\n{text}\n", 255)
    assert found is not None
    assert (found.kind, found.detail) == (kind, detail)


def test_what_a_program_over_there_says_is_not_ssh() -> None:
    said = (
        "curl: (7) Failed to connect: Connection refused\nssh: connect to host y port 22: No route to host\n"
    )
    assert classify(said, 7) is None
    assert classify("cat: /x: Permission denied\n", 1) is None
    assert report("ssh box cat /x", "", 1, "cat: /x: Permission denied\n").link is None
    assert classify("", 255) is not None
    assert classify("", 1) is None


@given(st.sampled_from(KEPT), st.binary(max_size=400), st.binary(max_size=200), st.integers(-70, 300))
@settings(max_examples=500, deadline=None)
def test_no_bytes_break_a_parser(case: Case, stdout: bytes, stderr: bytes, exit: int) -> None:
    map_case(Case(case.id, "E", case.cmd, exit, stdout, stderr, case.ctx))


@given(st.sampled_from(KEPT), st.data())
@settings(max_examples=500, deadline=None)
def test_no_damage_to_a_real_output_breaks_a_parser(case: Case, data: st.DataObject) -> None:
    text = case.stdout or case.stderr
    cut, again = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))
    damaged = text[:cut] + data.draw(st.binary(max_size=12)) + text[again:]
    map_case(Case(case.id, "E", case.cmd, case.rc, damaged, damaged, case.ctx))


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_command_line_is_read(line: str) -> None:
    read_system(line, Output("a 1\n", "b\n", 1))

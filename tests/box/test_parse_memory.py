"""Control groups, free, meminfo, kernel kills, exit statuses: the kept cases, and what lies next to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.kinds_ce import map_case
from tests.corpus.runner import Case, asked, misses, read_case
from tui.box.parsers import cgroup, exits, kernel_oom, memory
from tui.box.parsers.command import read_command
from tui.box.parsers.job_tail import limit_hit, out_of_space, read_end
from tui.box.parsers.recognise_system import SystemReport, read_system
from tui.box.parsers.report import Output
from tui.box.parsers.sections import split_output, statements

CASES = Path(__file__).parents[1] / "cases"
KEPT = [read_case(line) for line in (CASES / "C.jsonl").read_text("utf-8").splitlines()]


def report(command: str, stdout: str = "", exit: int = 0, stderr: str = "") -> SystemReport:
    return read_system(command, Output(stdout, stderr, exit))


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.id)
def test_kept_case(case: Case) -> None:
    assert misses(case, asked(case, "parse"), map_case(case)) == []


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("max\n", None),
        ("-1\n", None),
        ("18446744073709551615", None),
        ("9223372036854771712\n", None),
        ("9223372036854710272\n", None),
        ("9223372036854775807\n", None),
        ("1099511627776\n", 1 << 40),
        ("0\n", 0),
        ("", None),
        ("12 34", None),
        ("9" * 400, None),
    ],
)
def test_limit(text: str, limit: int | None) -> None:
    assert cgroup.parse_limit(text) == limit


def test_no_limit_and_not_known_are_told_apart() -> None:
    free, absent = cgroup.read_files({"memory.max": "max\n"}), cgroup.read_files({"memory.max": ""})
    assert free.limit_bytes is absent.limit_bytes is None
    assert "limit_bytes" in free.answered
    assert "limit_bytes" not in absent.answered
    assert "limit_bytes" in absent.asked


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"cpu.max": "1200000 100000\n"}, 12.0),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "50000 0\n"}, None),
        ({"cpu.cfs_quota_us": "350000\n", "cpu.cfs_period_us": "100000\n"}, 3.5),
        ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, None),
    ],
)
def test_cpu_quota(files: dict[str, str], cpus: float | None) -> None:
    assert cgroup.read_files(files).cpus == cpus


@pytest.mark.parametrize(
    ("text", "count"),
    [("0-11,96-107\n", 24), ("0", 1), ("0-7:2/4", 4), ("", None), ("3-1", None), ("0-3,x", None)],
)
def test_cpuset(text: str, count: int | None) -> None:
    assert cgroup.count_cpuset(text) == count


@pytest.mark.parametrize(
    ("before", "now", "risen"),
    [(0, 1, True), (2, 2, False), (5, 1, True), (5, 0, False), (None, 1, None), (1, None, None)],
)
def test_oom_kills_risen(before: int | None, now: int | None, risen: bool | None) -> None:
    assert cgroup.oom_kills_risen(before, now) is risen


def test_use_leaves_out_the_cache_that_goes_before_anybody_is_killed() -> None:
    files = {
        "memory.max": "1000\n",
        "memory.current": "900\n",
        "memory.stat": "anon 300\ninactive_file 500\nactive_file 100\n",
        "memory.events": "oom 1\noom_kill 2\n",
    }
    found = cgroup.memory_of(files, version=2, host_total_bytes=4000)
    assert (found.limit_bytes, found.used_bytes, found.oom_kills) == (1000, 400, 2)
    assert cgroup.read_files(files).available_bytes == 600
    assert cgroup.memory_of({"memory.max": "9000"}, version=2, host_total_bytes=4000).limit_bytes is None


def test_version_1_counts_the_whole_subtree_and_old_kernels_count_no_kills() -> None:
    files = {
        "memory.usage_in_bytes": "900",
        "memory.stat": "inactive_file 1\ntotal_inactive_file 500\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n",
    }
    found = cgroup.memory_of(files, version=1)
    assert (found.used_bytes, found.oom_kills) == (400, None)


def test_swap_limits_do_not_pass_for_memory_limits() -> None:
    files = {"memory.limit_in_bytes": "100", "memory.memsw.limit_in_bytes": "200"}
    assert cgroup.read_files(files).limit_bytes == 100
    assert cgroup.read_files(dict(reversed(files.items()))).limit_bytes == 100


@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.current", "100\n90\n"),
        ("sudo cat /sys/fs/cgroup/memory.max; cat /sys/fs/cgroup/memory.current", "100\n90\n"),
        (
            "cd /sys/fs/cgroup && head -1 memory.max memory.current",
            "==> memory.max <==\n100\n\n==> memory.current <==\n90\n",
        ),
        (
            "grep -H . /sys/fs/cgroup/memory.{max,current}",
            "/sys/fs/cgroup/memory.max:100\n/sys/fs/cgroup/memory.current:90\n",
        ),
        (
            'for f in memory.max memory.current; do echo "== $f"; cat /sys/fs/cgroup/$f; done',
            "== memory.max\n100\n== memory.current\n90\n",
        ),
        (
            'echo max $(cat /sys/fs/cgroup/memory.max); echo "now `cat /sys/fs/cgroup/memory.current`"',
            "max 100\nnow 90\n",
        ),
        ("docker exec c sh -c 'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.current'", "100\n90\n"),
    ],
)
def test_two_files_in_one_answer(command: str, stdout: str) -> None:
    found = report(command, stdout).group
    assert found is not None
    assert (found.limit_bytes, found.used_bytes, found.available_bytes) == (100, 90, 10)


def test_values_between_other_tools() -> None:
    text = "MemTotal: 100 kB\nMemAvailable: 40 kB\n64424509440\n63998762144\n"
    command = "cat /proc/meminfo; cat /sys/fs/cgroup/memory.max; cat /sys/fs/cgroup/memory.current"
    found = report(command, text)
    assert found.group is not None
    assert (found.group.limit_bytes, found.group.used_bytes) == (64424509440, 63998762144)
    assert found.memory is not None
    assert found.memory.memory["available"] == 40


def test_the_tightest_limit_of_version_1() -> None:
    found = report(
        "grep hierarchical_memory_limit /sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 7\n"
    )
    assert found.group is not None
    assert found.group.limit_bytes == 7


def test_pids() -> None:
    found = cgroup.read_files({"pids.max": "max\n", "pids.current": "12\n"}).pids
    assert found == cgroup.Pids(None, 12, None)
    assert not found.exhausted
    assert cgroup.Pids(100, 99).exhausted


FREE = {
    "de": (
        "               gesamt       benutzt     frei      gemns.  Puffer/Cache verfügbar\n"
        "Speicher:       23Gi       2,8Gi       18Gi       1,1Gi       3,7Gi        20Gi\n"
        "Swap:            0B          0B          0B\n",
        "20Gi",
        "2.8Gi",
        "0B",
    ),
    "wide": (
        "               total        used        free      shared     buffers       cache   available\n"
        "Mem:            1000         200         300           1          10         490         700\n"
        "Swap:             10           2           8\n",
        700,
        200,
        2,
    ),
    "total row": (
        "               total        used        free      shared  buff/cache   available\n"
        "Mem:            1000         200         300           1         490         700\n"
        "Swap:             10           2           8\nTotal:          1010         202         308\n",
        700,
        200,
        2,
    ),
    "busybox": (
        "             total       used       free     shared    buffers\n"
        "Mem:          7983       7000        983          0        100\n"
        "-/+ buffers:             6900       1083\nSwap:            5          1          4\n",
        1083,
        6900,
        1,
    ),
}


@pytest.mark.parametrize("form", FREE)
def test_free(form: str) -> None:
    text, available, used, swap_used = FREE[form]
    table = memory.parse_free(text)
    assert table is not None
    assert (table.memory["available"], table.memory["used"]) == (available, used)
    assert table.swap is not None
    assert table.swap["used"] == swap_used


@pytest.mark.parametrize(
    ("args", "unit"),
    [((), "kb"), (("-m",), "mb"), (("-lg",), "gb"), (("--human",), ""), (("-s", "1", "-b"), "b")],
)
def test_free_unit(args: tuple[str, ...], unit: str) -> None:
    assert memory.free_unit(args) == unit


def test_meminfo() -> None:
    table = memory.parse_meminfo("MemTotal: 100 kB\nMemAvailable: 40 kB\nSwapTotal: 9 kB\nSwapFree: 4 kB\n")
    assert table is not None
    assert table.memory["available"] == 40
    assert table.swap == {"total": 9, "free": 4, "used": 5}
    assert memory.parse_meminfo("nothing here") is None
    assert memory.parse_free("nothing here") is None


KERNEL = {
    "6.x group": (
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0-1,oom_memcg=/docker/a,"
        "task_memcg=/docker/a,task=python,pid=123,uid=0\n"
        "Memory cgroup out of memory: Killed process 123 (python) total-vm:9kB, anon-rss:7kB, file-rss:1kB\n",
        (123, "python", "cgroup", 1, 7),
    ),
    "3.10 group": (
        "Mar 1 00:11:22 box kernel: Task in /docker/a killed as a result of limit of /docker/a\n"
        "Mar 1 00:11:22 box kernel: Memory cgroup out of memory: Kill process 901 (a (b) c) score "
        "9 or sacrifice child\n"
        "Mar 1 00:11:22 box kernel: Killed process 901 (a (b) c), UID 0, total-vm:9kB, "
        "anon-rss:5kB, file-rss:2kB\n",
        (901, "a (b) c", "cgroup", 2, 5),
    ),
    "2.6.32": (
        "Out of memory: Kill process 7 (x) score 9 or sacrifice child\n"
        "Killed process 7, UID 500, (x) total-vm:9kB, anon-rss:6kB, file-rss:1kB\n",
        (7, "x", "host", 1, 6),
    ),
    "oomd": (
        "systemd-oomd[8]: Killed /user.slice/a.scope due to memory pressure for /user.slice being "
        "70% > 50%\n",
        (None, "/user.slice/a.scope", "oomd", 1, None),
    ),
    "earlyoom": (
        'earlyoom: sending SIGTERM to process 44 uid 0 "python": badness 900, VmRSS 10 MiB\n',
        (44, "python", "host", 1, None),
    ),
}


@pytest.mark.parametrize("form", KERNEL)
def test_kernel_kill(form: str) -> None:
    text, expected = KERNEL[form]
    (kill,) = kernel_oom.parse_kills(text)
    assert (kill.pid, kill.name, kill.scope, kill.line, kill.anon_rss_kb) == expected


@pytest.mark.parametrize(
    "line",
    [
        "Command line: BOOT_IMAGE=/vmlinuz oom=panic",
        "systemd[1]: systemd-oomd.service: Deactivated successfully.",
        "python invoked oom-killer: gfp_mask=0x100cca, order=0, oom_score_adj=0",
        "oom_reaper: reaped process 1 (a), now anon-rss:0kB",
        "Out of memory and no killable processes...",
    ],
)
def test_lines_that_kill_nobody(line: str) -> None:
    assert kernel_oom.parse_kills(line) == ()


def test_stuck_tasks_and_their_driver() -> None:
    text = (
        "task:bash state:S stack: 0 pid: 5 ppid: 1\n"
        "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:77]\n"
        "INFO: task kworker/0:1:88 blocked for more than 122 seconds.\n"
        " uvm_ioctl+0x13e0/0x16f0 [nvidia_uvm]\n"
    )
    found = kernel_oom.parse_stuck(text)
    assert [(one.pid, one.name, one.state, one.module) for one in found] == [
        (77, "python", "R", None),
        (88, "kworker/0:1", "D", "nvidia_uvm"),
    ]


@pytest.mark.parametrize(
    ("status", "code", "signal"),
    [
        (0, 0, None),
        (1, 1, None),
        (137, 137, 9),
        (139, 139, 11),
        (-9, None, 9),
        (255, 255, None),
        (124, 124, None),
    ],
)
def test_status(status: int, code: int | None, signal: int | None) -> None:
    assert exits.from_status(status) == exits.Ending(code, signal)


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("SIGKILL", 9),
        ("kill", 9),
        ("Signals.SIGTERM", 15),
        ("9", 9),
        ("已杀死", 9),
        ("0", None),
        ("SIGFOO", None),
    ],
)
def test_signal_words(word: str, number: int | None) -> None:
    assert exits.signal_number(word) == number


@pytest.mark.parametrize(
    ("text", "signal", "pid"),
    [
        ("run.sh: line 7: 28133 Bus error               (core dumped) python train.py", 7, 28133),
        ("run.sh: 行 7: 28133 已杀死               python train.py", 9, 28133),
        ("[1]+  Killed                  python train.py", 9, None),
        ("[1]  + 28133 killed     python train.py", 9, 28133),
        ("zsh: segmentation fault (core dumped)", 11, None),
        ("Killed: 9", 9, None),
        ("fish: Job 1, 'python train.py' terminated by signal SIGKILL (Forced quit)", 9, None),
        ("exitcode  : -9 (pid: 2286)", 9, 2286),
        ("traceback : Signal 9 (SIGKILL) received by PID 2286", 9, 2286),
        ("CalledProcessError: Command '['python']' died with <Signals.SIGSEGV: 11>.", 11, None),
        ("RuntimeError: DataLoader worker (pid 4411) is killed by signal: Bus error. It is", 7, 4411),
        ("Fatal Python error: Segmentation fault", 11, None),
        ("train.service: Main process exited, code=killed, status=9/KILL", 9, None),
        ("   Main PID: 123 (code=killed, signal=TERM)", 15, None),
        ("srun: error: gpu07: task 0: Killed", 9, None),
        ("mpirun noticed that process rank 0 with PID 0 on node a exited on signal 9 (Killed).", 9, None),
        ("Command terminated by signal 15", 15, None),
        ("Received 1 death signal, shutting down workers", 1, None),
        ("step 1\rstep 2\rKilled", 9, None),
    ],
)
def test_sentence_of_an_end(text: str, signal: int, pid: int | None) -> None:
    found = exits.find_ending(f"Epoch 1\n{text}\n")
    assert found is not None
    assert (found.signal, found.pid, found.line) == (signal, pid, 2)


@pytest.mark.parametrize(
    "text",
    ["2 jobs killed nobody", "Killed 3 zombies in the game", "the kill switch", "loss 9 Killer whale", ""],
)
def test_sentences_of_no_end(text: str) -> None:
    assert exits.find_ending(text) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Main process exited, code=exited, status=3/NOTIMPLEMENTED", 3),
        ("srun: error: a: task 0: Exited with exit code 2", 2),
        ("Exited (137) 5 minutes ago", 137),
    ],
)
def test_sentence_of_a_status(text: str, code: int) -> None:
    found = exits.find_ending(text)
    assert found is not None
    assert found.code == code


def test_the_status_of_a_pipe_is_not_the_jobs() -> None:
    piped = read_end(read_command("python train.py 2>&1 | tee log"), "Epoch 3\n", 0)
    alone = read_end(read_command("python train.py"), "Epoch 3\n", 0)
    assert (piped.finished, alone.finished) == (False, True)
    assert "tee" in piped.note


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("OSError: [Errno 24] Too many open files: 'x'", "nofile"),
        ("RuntimeError: received 0 items of ancdata", "nofile"),
        ("RuntimeError: can't start new thread", "pids"),
        ("bash: fork: retry: Resource temporarily unavailable", "pids"),
        ("OSError: [Errno 28] inotify: No space left on device", "inotify"),
        ("bash: fork: Cannot allocate memory", None),
        ("BlockingIOError: Resource temporarily unavailable", None),
    ],
)
def test_limits(text: str, limit: str | None) -> None:
    assert limit_hit(text) == limit


def test_enospc_of_shared_memory_is_no_disk() -> None:
    assert out_of_space("OSError: [Errno 28] No space left on device: 'a.pt'") == "unknown"
    assert out_of_space("sl = SemLock(\nOSError: [Errno 28] No space left on device") is None


def test_statements_keep_quotes_and_substitutions_whole() -> None:
    assert statements('a "b;c"; echo $(d; e) && f') == ['a "b;c"', "echo $(d; e)", "f"]


def test_a_separator_divides_the_output() -> None:
    sections = split_output("a; echo ---; b", "1\n2\n---\n3\n")
    assert [(one.command, one.text.strip(), one.first) for one in sections] == [
        ("a", "1\n2", 1),
        ("b", "3", 4),
    ]


@given(st.sampled_from(KEPT), st.binary(max_size=400), st.binary(max_size=200), st.integers(-70, 300))
@settings(max_examples=400, deadline=None)
def test_no_bytes_break_a_parser(case: Case, stdout: bytes, stderr: bytes, exit: int) -> None:
    map_case(Case(case.id, "C", case.cmd, exit, stdout, stderr, case.ctx))


@given(st.sampled_from(KEPT), st.data())
@settings(max_examples=400, deadline=None)
def test_no_damage_to_a_real_output_breaks_a_parser(case: Case, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(case.stdout)))
    again = data.draw(st.integers(0, len(case.stdout)))
    middle = data.draw(st.binary(max_size=12))
    map_case(
        Case(case.id, "C", case.cmd, case.rc, case.stdout[:cut] + middle + case.stdout[again:], b"", case.ctx)
    )

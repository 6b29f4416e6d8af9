"""Which processes the probe proposes as runs, and how it reads its lists of them."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.box.probe_messages import LINUX, said
from tui.box.probe.adopt import find_candidates, looks_like_run, without_us
from tui.box.probe.ours import Self, ours, this_process
from tui.box.probe.system import Identity
from tui.box.probe.tasks import OpenFile, Task, read_tasks, shown_command, terminal, unescape
from tui.model.telemetry import GpuProcess
from tui.model.text import SafeText


def task(
    pid: int, *args: str, ppid: int = 1, files: tuple[OpenFile, ...] = (), up: tuple[int, ...] = ()
) -> Task:
    comm = args[0].rpartition("/")[2][:15]
    return Task(pid, ppid, pid, None, "S", 10, 1000 + pid, 500, up or (ppid,), comm, args, "/w", files)


@pytest.mark.parametrize(
    ("args", "is_run"),
    [
        (("python", "train.py"), True),
        (("/opt/conda/bin/python3.11", "-u", "-X", "faulthandler", "main.py", "--lr", "1"), True),
        (("python", "-m", "torch.distributed.run", "train.py"), True),
        (("/opt/conda/bin/python", "/opt/conda/bin/torchrun", "--nproc", "8", "t.py"), True),
        (("torchrun", "t.py"), True),
        (("/usr/bin/python3", "/data/train.py"), True),
        (("/usr/bin/python3", "/usr/share/unattended-upgrades/x.py"), False),
        (("/usr/bin/python3", "/usr/share/some-daemon/x.py"), False),
        (("python", "-m", "pip", "install", "x.py"), False),
        (("deepspeed", "t.py"), True),
        (("python",), False),
        (("python", "-c", "print(1)"), False),
        (("python", "-m", "http.server"), False),
        (("python", "-m", "ipykernel_launcher", "-f", "x"), False),
        (("/usr/bin/python3", "/usr/bin/networkd-dispatcher"), False),
        (("/root/miniconda3/bin/python", "/root/miniconda3/bin/jupyter-lab"), False),
        (("python", "-c", "from multiprocessing.spawn import spawn_main"), False),
        (("sshd: root@pts/0",), False),
        (("bash", "run.sh"), False),
    ],
)
def test_what_looks_like_a_run(args: tuple[str, ...], is_run: bool) -> None:
    assert looks_like_run(task(5, *args)) is is_run


def test_rgt_itself_is_no_run_to_adopt_on_its_own_computer() -> None:
    me = Self("boot", 30, 1030)
    tasks = (
        task(10, "python", "-m", "some.launcher"),
        task(30, "python", "-m", "tui.cli", ppid=10, up=(10, 1)),
        replace(task(31, "python", "helper.py", ppid=30, up=(30, 10, 1)), group=30),
        task(32, "python", "train.py", ppid=30, up=(30, 10, 1)),  # a box's own group: somebody's job
        task(40, "python", "train.py"),
    )
    assert ours(tasks, "boot", me) == {1, 10, 30, 31}
    assert ours(tasks, "another computer", me) == frozenset()
    assert ours(tasks, "boot", replace(me, start_ticks=7)) == frozenset()  # the number is another process's
    assert ours(tasks, "boot", None) == ours(tasks, None, me) == frozenset()


def test_the_probe_leaves_its_own_shell_and_this_process_out() -> None:
    me = this_process()
    assert me is not None
    own = replace(task(me.pid, "python", "-m", "tui.cli"), start_ticks=me.start_ticks)
    shell = task(7, "sh", ppid=6, up=(6, 1))
    others = (task(6, "python", "-m", "sshd"), task(40, "python", "train.py"))
    here = Identity(SafeText("Linux"), boot_id=SafeText(me.boot_id), shell_pid=7)
    assert without_us((own, shell, *others), here) == (others[1],)
    elsewhere = replace(here, boot_id=SafeText("another"))
    assert without_us((own, shell, *others), elsewhere) == (own, others[1])


def test_ranks_and_workers_belong_to_their_run() -> None:
    log = OpenFile(1, True, "/w/run.log")
    tasks = (
        task(10, "python", "/x/torchrun", "t.py", files=(log,)),
        task(11, "python", "t.py", ppid=10, up=(10, 1), files=(log, OpenFile(7, True, "/dev/nvidia0"))),
        task(12, "python", "t.py", ppid=11, up=(11, 10, 1), files=(log,)),
        task(
            20,
            "python",
            "eval.py",
            files=(OpenFile(1, True, "/w/x (deleted)"), OpenFile(3, True, "/w/e.log")),
        ),
    )
    held = (
        GpuProcess(11, None, 900.0, SafeText("/opt/conda/bin/python")),
        GpuProcess(20, None, 5.0, SafeText("Xorg")),
    )
    found = [candidate for _, candidate in find_candidates(tasks, held, "", ())]
    assert [one.pid for one in found] == [10, 20]
    assert found[0].logs == ("/w/run.log",)
    assert found[0].gpu_mem_mib == 900
    assert found[1].gpu_mem_mib is None  # another program's pid, from outside this container
    assert found[1].logs == ("/w/e.log",)


def test_a_pipe_leads_to_the_file_behind_tee() -> None:
    tasks = (
        task(10, "python", "t.py", files=(OpenFile(1, True, "pipe:[7]"),)),
        task(11, "tee", "out.txt", files=(OpenFile(0, False, "pipe:[7]"), OpenFile(3, True, "/w/out.txt"))),
    )
    ((_, found),) = find_candidates(tasks, (), "10 /dev/pts/1 exp 1\n", ())
    assert found.logs == ("/w/out.txt",)
    assert found.session == "exp 1"


def test_secrets_on_a_command_line_are_not_kept() -> None:
    args = [
        "t.py",
        "--wandb-api-key",
        "abc",
        "--password=x y",
        "HF_TOKEN=q",
        "--num-tokens",
        "5",
        "https://u:p@h/x",
    ]
    shown = shown_command([*args, "hf_abcdefghijkl", "--max_token_count=9", "--token", "--lr", "3"])
    assert "abc" not in shown.replace("…", "")
    assert "x y" not in shown
    assert "u:p" not in shown
    assert shown.startswith("t.py --wandb-api-key … --password=… HF_TOKEN=… --num-tokens 5 https://…@h/x …")
    assert shown.endswith("--max_token_count=9 --token --lr 3")


def test_a_box_cannot_make_the_hiding_slow() -> None:
    words = (
        "a" * 60_000,
        "token" * 12_000,
        "--" + "token" * 12_000 + " ",
        "://" + "a:" * 30_000,
        "a=" * 30_000,
    )
    began = time.process_time()
    for word in words:
        shown_command(["python", "-c", word])
    assert time.process_time() - began < 2  # linear takes hundredths of a second, quadratic minutes
    assert shown_command(["redis://:pass@host/0"]) == "redis://…@host/0"


def test_names_of_ls_and_terminals() -> None:
    assert unescape(r"/a\ b\n\\x\346\210\221") == "/a b\n\\x我"
    assert unescape(r"\377") == "\udcff"
    assert terminal(0x8803) == "/dev/pts/3"
    assert terminal(0x0401) is None


def test_processes_are_listed_with_their_own_command_lines() -> None:
    boot = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
    told = said(
        procs="10 1 10 34819 S 100 5000 2000 1 python\n11 10 10 0 R 5 5001 10 10,1 odd ) name\n"
        "12 1 12 0 S 0 1 1 - x",
        cmdlines=f"{boot}\x1epython\x1ft.py\x1f--note\x1fa\x1eb\x1f{boot}\x1e{boot}\x1ex\x1f",
        linksb=r"lrwx------ 1 0 0 64 Jan  1 00:00 /proc/10/cwd -> /w\ x"
        "\nl-wx------ 1 0 0 64 Jan  1 00:00 /proc/10/fd/1 -> /w/log\nls: cannot access '/proc/9/cwd'",
    )
    tasks = read_tasks(told, replace(LINUX, boot_id=SafeText(boot)))
    assert tasks is not None
    one, two, three = tasks
    assert (one.args, one.cwd, one.terminal) == (("python", "t.py", "--note", "a\nb"), "/w x", "/dev/pts/3")
    assert one.files == (OpenFile(1, True, "/w/log"),)
    assert (two.args, two.comm, two.ancestors) == ((), "odd ) name", (10, 1))
    assert three.args == ("x",)

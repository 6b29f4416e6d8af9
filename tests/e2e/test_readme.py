"""README is true: every command in it runs as written, every key and file it names is there.

A command is what stands on a line of a fenced block, and what code in the text begins with ``rgt`` or
``make``. Nothing is changed in one but what names the reader's own things; `STANDS_FOR` lists all of that.
One is not run here: ``make test`` is what runs this very file, so it is only asked what it would do.
"""

from __future__ import annotations

import http.server
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.e2e.conftest import Home, Job
from tests.real import absent, need
from tests.rig import Sshd
from tests.rig.tmux import tmux
from tui.actions import ACTIONS
from tui.cli import VERBS, main
from tui.screens.keys import MOVES, shown

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SCREEN = ("rgt", "rgt --read-only")
MAKE = ("make demo", "make test")
ASIDE = ("pip install .",)
DEMO = ("rgt demo", "rgt demo --selftest")
VERB_ALONE = {f"rgt {verb}" for verb in VERBS}
"""``rgt add`` in a table names the verb; how it is called stands in the blocks and in the prose."""

STANDS_FOR = {
    "-p 34567 root@connect.west.example.com": "-p {port} -i {key} {user}@127.0.0.1",
    "/root/train.log": "{log}",
    "/root/ckpt/": "{folder}/ckpt/",
    "4121": "{pid}",
    "BOX_PASSWORD": "BOX_PASSWORD",  # a variable may have this name
    "BOX": "{box}",
    "TARGET": "{box}",
    "RUN": "{run}",
    "6006": "{served}",
}


def commands() -> list[str]:
    """Every command of README, in order, without its comment."""
    found = []
    for fence in re.findall(r"^```\n(.*?)^```", _without_example(), re.MULTILINE | re.DOTALL):
        found += [re.sub(r"\s+#.*", "", line).strip() for line in fence.splitlines() if line.strip()]
    prose = re.sub(r"^```.*?^```", "", _without_example(), flags=re.MULTILINE | re.DOTALL)
    found += [code for code in re.findall(r"`([^`\n]+)`", prose) if re.match(r"(rgt|make)\b", code)]
    return list(dict.fromkeys(found))


def _without_example() -> str:
    """README without the experiment that `test_readme_example` goes through word by word."""
    return re.sub(r"^```(?:python|toml|sh)\n.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)


def with_own_names(command: str, **own: object) -> str:
    """The command with this test's box, run and files in place of the reader's."""
    pattern = "|".join(re.escape(word) for word in sorted(STANDS_FOR, key=len, reverse=True))
    quoted = {key: shlex.quote(str(value)) if key == "log" else value for key, value in own.items()}
    return re.sub(pattern, lambda match: STANDS_FOR[match[0]].format(**quoted), command)


ADD = "rgt add ssh -p 34567 root@connect.west.example.com"
WATCH = "rgt watch BOX --log /root/train.log --checkpoints '/root/ckpt/*.pt' --pid 4121"
FOLLOW = "rgt logs RUN -f"
FORWARD = "rgt forward BOX 6006"
SHELL = "rgt ssh BOX"
LOOKS = {
    "rgt status": (0, 1),
    "rgt probe local": (0, 1, 4),
    "rgt probe TARGET": (0, 1, 4),
    "rgt profiles": (0,),
    "rgt doctor": (0, 1),
    "rgt edit BOX password_env=BOX_PASSWORD": (0,),
}
"""Commands that end by themselves, with the exit codes that are right for them here."""

ELSEWHERE = {
    "rgt VERB --help": "tests/verbs/test_command_line.py",
    "rgt add pod:ml/train-0@prod": "tests/kube/test_pods.py",
    "rgt add job:ml/train@prod": "tests/kube/test_pods.py",
    "rgt add slurm:4227@hpc": "tests/slurm/test_steps.py",
    "rgt launch job.toml --on hpc": "tests/slurm/test_launch.py",
    "rgt queue JOB --on A,B": "tests/verbs/test_queue_verbs.py",
    "rgt verify DIR": "tests/checkpoints/test_verify.py",
    "rgt up runpod --gpu 'A100:1, ≥40 GB' --set image=runpod/pytorch:2.4.0": "tests/verbs/test_up.py",
    "rgt relaunch RUN --rent --pulled": "tests/verbs/test_relaunch_rent.py",
    "rgt drill RUN": "tests/verbs/test_resume.py",
    "rgt resume RUN": "tests/verbs/test_resume.py",
    "rgt template checkpoint": "tests/runs/test_template.py",
    "rgt triage RUN": "tests/demo/test_incidents.py",
    "rgt triage --log FILE": "tests/verbs/test_triage_verb.py",
    "rgt gotchas WORDS": "tests/verbs/test_gotchas.py",
    "rgt gotchas 断点 恢复 epoch 从 0": "tests/verbs/test_gotchas.py",
    "rgt profiles NAME": "tests/verbs/test_fleet_verbs.py",
}
"""Commands with what they need beside them: the tests that run them."""


def test_every_command_is_run_by_some_test_of_this_file() -> None:
    known = {ADD, WATCH, FOLLOW, FORWARD, SHELL, *LOOKS, *SCREEN, *MAKE, *ASIDE, *DEMO, *ELSEWHERE}
    written = set(commands())
    assert written - VERB_ALONE <= known
    assert known - VERB_ALONE - {"rgt"} <= written  # a test of a command that README lost says nothing
    assert [file for file in ELSEWHERE.values() if not (ROOT / file).exists()] == []


def test_every_verb_is_told() -> None:
    table = README.partition("## Without the screen")[2].partition("\n## ")[0]
    assert {verb for verb in VERBS if f"`rgt {verb}" in README or f"`{verb}`" in table} == set(VERBS)


def test_the_verbs_that_print_json_are_told_right(capsys: pytest.CaptureFixture[str]) -> None:
    without = set()
    for verb in VERBS:
        with pytest.raises(SystemExit):
            main([verb, "--help"])
        if "--json" not in capsys.readouterr().out:
            without.add(verb)
    (told,) = re.findall(r"All but (.*) take `--json`", README)
    assert set(re.findall(r"`(\w+)`", told)) == without


@pytest.fixture
def box(home: Home, sshd: Sshd) -> Sshd:
    """The box as README adds it, under the name that `rgt` gives it."""
    added = home.rgt(*words_of(ADD, port=sshd.port, key=sshd.client_key, user=sshd.user))
    assert added.returncode == 0, added.stderr
    return sshd


def words_of(command: str, **own: object) -> list[str]:
    """The words of a command after ``rgt``, with this test's own names."""
    return shlex.split(with_own_names(command, **own))[1:]


def name_of(home: Home, kind: str) -> str:
    """The name of the one box or run in the fleet file."""
    (name,) = tomllib.loads(home.fleet.read_text())[kind]
    return str(name)


@pytest.fixture
def served() -> Iterator[int]:
    """A port of the "box" on which something answers, as TensorBoard would."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join(10)


@contextmanager
def running(home: Home, words: list[str]) -> Iterator[IO[str]]:
    """A command that goes on until ctrl+c: its output, then how it leaves."""
    command = [sys.executable, "-m", "tui.cli", *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=home.environment)
    watchdog = threading.Timer(90, child.kill)
    watchdog.start()
    try:
        assert child.stdout is not None
        yield child.stdout
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
    finally:
        watchdog.cancel()
        child.kill()
        child.wait(15)


@pytest.mark.real
def test_the_verbs_on_a_real_box(home: Home, box: Sshd, job: Job, served: int) -> None:
    own: dict[str, object] = {"box": name_of(home, "instances"), "served": served}
    watched = home.rgt(*words_of(WATCH, log=job.log, folder=job.folder, pid=job.pid, **own))
    assert watched.returncode == 0, watched.stderr
    own["run"] = name_of(home, "runs")
    for command, right in LOOKS.items():
        done = home.rgt(*words_of(command, **own))
        assert done.returncode in right, (command, done.stdout, done.stderr)
        assert done.stdout, command
    with running(home, words_of(FOLLOW, **own)) as output:
        assert all("loss" in output.readline() for _ in range(60))
    with running(home, words_of(FORWARD, **own)) as output:
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+", output.readline())
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert answer.status == 200
    there = home.rgt(*words_of(SHELL, **own), stdin="echo from-$((40+2))\n")
    assert "from-42" in there.stdout


@pytest.mark.real
@pytest.mark.parametrize("command", SCREEN)
def test_the_screen_opens_on_the_pasted_box(home: Home, box: Sshd, command: str) -> None:
    kept = {k: v for k, v in home.environment.items() if k.startswith("RGT_") or k == "LANG"}
    kept["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with tmux(100, 30) as pane:
        pane.start(shlex.split(command), kept)
        screen = pane.wait_for(rf"{re.escape(name_of(home, 'instances'))}.*live")
        head = screen.split("\n")[0]  # below it a mount may be read-only
        assert ("read-only" in head) is ("read-only" in command)
        pane.keys("C-q")
        pane.wait_for("EXIT=0")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clean checkout: what git tracks, as it is now, and nothing else."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / "clean" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "clean" / name)
    return tmp_path / "clean"


def clean_environment() -> dict[str, str]:
    """Nothing of this run's own environment that make or Python would take up."""
    return {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("MAKE", "MFLAGS", "PYTHON", "VIRTUAL", "RGT_"))
    }


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.timeout(500)
def test_make_demo_on_a_clean_checkout_shows_four_boxes(checkout: Path, tmp_path: Path) -> None:
    need("make")
    left = tmp_path / "tmp"
    left.mkdir()
    with tmux(120, 40) as pane:
        quick = {"PIP_NO_COMPILE": "1", "TMPDIR": str(left)}
        pane.start(["env", "-C", str(checkout), "make", "demo"], quick)
        screen = pane.wait_for(r"(?s)steady-a100.*running|EXIT=[1-9]|Error", 400)
        if "steady-a100" not in screen:
            absent(f"make demo could not install: {screen.strip()[-600:]}")
        for box in ("inodes-4090", "flaky-h100", "done-a10"):
            assert box in screen
        pane.wait_for("simulated")
        pane.keys("C-q")
        pane.wait_for("EXIT=0")
    assert not list(left.glob("rgt-*"))
    bin_ = checkout / ".venv" / "bin"
    environment = clean_environment() | {"PATH": f"{bin_}:{os.environ['PATH']}", "TMPDIR": str(left)}

    def typed(command: str) -> subprocess.CompletedProcess[str]:
        """A command as it is typed in the checkout after ``make demo``."""
        return subprocess.run(
            shlex.split(command),
            env=environment,
            cwd=checkout,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )

    assert not re.search(r"^(nvidia-|cuda-|triton)", typed("pip list").stdout, re.MULTILINE)
    installed = typed(ASIDE[0])
    assert installed.returncode == 0, installed.stderr
    assert typed("rgt --version").stdout.startswith("rgt ")
    assert typed(DEMO[0]).returncode == 2  # no terminal here; tmux had one
    tested = typed(DEMO[1])
    assert tested.returncode == 0, tested.stdout + tested.stderr
    for box in ("steady-a100", "inodes-4090", "flaky-h100", "done-a10"):
        for said in ("a login without the key is refused", "probe ", "log ", "newest checkpoint ckpt-"):
            assert f"{box}: {said}" in tested.stdout
    assert not list(left.glob("rgt-*"))


def test_make_test_runs_every_check(checkout: Path) -> None:
    need("make")
    asked = subprocess.run(
        ["make", "-n", "test"],
        cwd=checkout,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    for step in ("ruff check .", "ruff format --check .", "mypy", "lint-imports", "python -m pytest"):
        assert f".venv/bin/{step}" in asked.stdout, step
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_readme_opens_with_a_picture_and_the_two_commands() -> None:
    picture, fence = README.index("!["), README.index("```")
    assert picture < fence < 900
    assert [re.sub(r"\s+#.*", "", line) for line in README[fence:].splitlines()[1:3]] == list(MAKE)


def test_pictures_and_files_that_readme_names_are_there() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert pictures
    assert not [name for name in pictures if not (ROOT / name).is_file()]


def test_keys_of_the_table_are_the_app_s() -> None:
    table = README.partition("## Keys")[2].partition("\n## ")[0]
    cells = [
        cell for row in re.findall(r"^\| `.*\|$", table, re.MULTILINE) for cell in row.strip("|").split(" | ")
    ]
    moves = {shown(key) for names, _, _ in MOVES for key in names}
    for keys, does in zip(cells[::2], cells[1::2], strict=True):
        for key in re.findall(r"`([^`]+)`", keys):
            actions = [a for a in ACTIONS if key in {shown(k) for k in a.keys}]
            assert actions or key in moves, key
            known = " ".join(f"{a.label} {a.help}" for a in actions).lower() + " move leave"
            assert any(word in known for word in re.findall(r"[a-z]{3,}", does.lower())), (key, does)

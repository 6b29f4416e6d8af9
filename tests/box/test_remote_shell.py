"""The frame around every remote command, under each shell a box may have."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.real import find
from tui.box.remote_shell import command_line, copyable, framed
from tui.box.transport import Script

_SHELLS = ("dash", "bash", "busybox", "zsh", "fish", "tcsh")
ECHO = 'for a in "$@"; do printf "%s\\0" "$a"; done'


def _login(shell: str) -> list[str]:
    path = find(shell)
    if path is None:
        pytest.skip(f"not installed: {shell}")  # an optional shell: its absence breaks no promise
    return [path, "sh", "-c"] if shell == "busybox" else [path, "-c"]


def _run(argv: list[str] | list[bytes], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """As sshd does it: own session, and a stdin that stays open until the command has ended."""
    reads, writes = os.pipe()
    try:
        os.write(writes, stdin)
        return subprocess.run(argv, stdin=reads, capture_output=True, start_new_session=True, timeout=10)
    finally:
        os.close(reads)
        os.close(writes)


@pytest.mark.parametrize("shell", _SHELLS)
def test_every_login_shell_hands_the_script_on_unchanged(shell: str) -> None:
    args = (
        "it's",
        'a "b" $HOME `id`',
        "back\\slash \\n \\\\",
        "two\nlines",
        "!bang!",
        "中文",
        b"\xff\xfe",
        "-n",
        "",
    )
    done = _run([*_login(shell), command_line(Script(ECHO, args), b"<m>", 0)])
    head, _, rest = done.stdout.partition(b"<m>")
    assert head == b""
    expected = [a.encode() if isinstance(a, str) else a for a in args]
    assert rest.split(b"\0")[:-1] == expected, done.stderr


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\0", b"")), max_size=4))
def test_any_bytes_survive_as_parameters(args: list[bytes]) -> None:
    done = _run(["/bin/sh", "-c", command_line(Script(ECHO, tuple(args)), b"", 0)])
    assert done.stdout.split(b"\0")[:-1] == args


@pytest.mark.parametrize("sh", ("dash", "bash", "busybox"))
def test_status_stdin_and_streams_come_through(sh: str) -> None:
    script = Script('cat; echo "$1" >&2; exit 7', ("oops",))
    argv: list[bytes] = [*map(os.fsencode, _login(sh)), *framed(script, b"M", 5)[2:]]
    done = _run(argv, stdin=b"a\0b\nc")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"Ma\0b\nc", b"Moops\n")


def _group_members(leader: int) -> list[int]:
    """Living processes of a process group. Zombies have ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def _gone_within(leader: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not _group_members(leader):
            return True
        time.sleep(0.02)
    return False


_BODIES = (
    ("sleep 300", 0),
    ("sleep 300 | cat", None),
    ("trap '' TERM; sleep 300; sleep 300", 0),
    ("cat >/dev/null; sleep 300", None),
    ("head -c 3 >/dev/null; sleep 300 & wait", 3),
)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see what is left")
@pytest.mark.parametrize("sh", ("dash", "bash", "busybox"))
def test_the_end_of_stdin_ends_the_whole_group(sh: str) -> None:
    shell = [*map(os.fsencode, _login(sh))]
    running = [
        subprocess.Popen(
            [*shell, *framed(Script(body), b"M", stdin_bytes)[2:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for body, stdin_bytes in _BODIES
    ]
    try:
        for process in running:
            assert process.stdin and process.stdout
            assert process.stdout.read(1) == b"M"
            process.stdin.write(b"abc")
            process.stdin.flush()
        time.sleep(0.1)
        assert [process.poll() for process in running] == [None] * len(running)
        for process in running:
            assert process.stdin
            process.stdin.close()
        for process in running:
            process.wait(timeout=5)
            assert _gone_within(process.pid, 5), _group_members(process.pid)
    finally:
        for process in running:
            if _group_members(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
            if process.stdout:
                process.stdout.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see what is left")
def test_what_a_finished_script_left_on_purpose_lives_on() -> None:
    script = Script("sleep 300 >/dev/null 2>&1 </dev/null & echo $!")
    done = _run(framed(script, b"", 0))
    left = int(done.stdout)
    try:
        time.sleep(0.3)  # the feeder has seen the end of stdin by now
        assert Path(f"/proc/{left}").exists()
    finally:
        os.kill(left, signal.SIGKILL)


@pytest.mark.skipif(find("setsid") is None, reason="not installed: setsid")
def test_a_login_that_makes_no_process_group_gets_one() -> None:
    line = command_line(Script("ps -o pgid= -p $$; echo $$"), b"", 0)
    reads, writes = os.pipe()
    try:
        # The outer shell leads the group, the framed one is only its child.
        done = subprocess.run(
            ["/bin/sh", "-c", f"/bin/sh -c {_single(line)}; true"],
            stdin=reads,
            capture_output=True,
            start_new_session=True,
            timeout=10,
        )
    finally:
        os.close(reads)
        os.close(writes)
    group, pid = done.stdout.split()
    assert group == pid, done.stderr


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_the_copyable_form_runs_as_shown() -> None:
    bash = find("bash")
    if bash is None:
        pytest.skip("not installed: bash")
    script = Script("printf '%s|' \"$1\" 'it''s'\necho \\\\done", ("a b",))
    assert subprocess.run([bash, "-c", copyable(script)], capture_output=True).stdout == b"a b|its|\\done\n"
    assert "\n" not in copyable(script)
    assert len(copyable(Script("x\n" * 2000, why="probe"))) < 100

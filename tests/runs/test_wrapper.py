"""The wrapper under the shells of real boxes: what it runs, records, refuses and survives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import resources
from pathlib import Path
from threading import Thread

import psutil
import pytest

from tests.real import need
from tests.runs.begun import Begin, begin, laid_down
from tui.box.local import LocalTransport
from tui.runs.truth import look

__all__ = ["begin"]

SHELLS = ("dash", "busybox", "bash")


def test_shellcheck_has_nothing_to_say() -> None:
    tool = need("shellcheck")["shellcheck"]
    for name in ("wrapper.sh", "tell.sh", "leash.sh", "queue.sh", "batch.sh"):
        text = resources.files("tui.runs").joinpath(name).read_bytes()
        said = subprocess.run([tool, "-s", "sh", "-"], input=text, capture_output=True, timeout=60)
        assert said.stdout == b""


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_chain_ends_with_its_artifact_and_a_marker_for_each_stage(begin: Begin, shell: str) -> None:
    words = ["a b", "it's", '$(touch "$HOME")', "*", "", "-n", "ü\\n"]
    one = await begin(
        shell,
        stages=[
            {"name": "say", "run": ["printf", "<%s>\\n", *words]},
            {
                "name": "write",
                "run": ["sh", "-c", "echo x >out.json; env >env"],
                "artifact": "out.json",
            },
        ],
        env={"GREETING": "a 'b' $c"},
    )
    assert one.wait() == 0
    truth = await look(LocalTransport(), str(one.run))
    assert (truth.state, truth.done) == ("finished", ("01-say", "02-write"))
    assert (one.run / "train.log").read_text() == "".join(f"<{word}>\n" for word in words)
    told = (one.run / "env").read_text()
    assert "GREETING=a 'b' $c\n" in told
    assert "PYTHONUNBUFFERED=1\n" in told
    assert truth.start["plan"] == (one.run / ".rgt/plan/id").read_text().strip()
    assert truth.start["boot"]


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_set_up_file_that_ends_the_shell_is_told_and_one_that_fails_is_not_heeded(
    begin: Begin, tmp_path: Path, shell: str
) -> None:
    (tmp_path / "hook.sh").write_text("exit 3\n")
    run = await laid_down(tmp_path / "r-1", run=["sh", "-c", 'echo "$PROXY" >out'], finish="out")
    (run / ".rgt/plan/hook").write_text(f"{tmp_path}/hook.sh\n")
    assert (await begin(shell, place=run)).wait() == 76
    truth = await look(LocalTransport(), str(run))
    assert (truth.state, truth.end["reason"], truth.child) == ("failed", "hook", None)
    assert "hook.sh ended the shell" in truth.why
    (tmp_path / "hook.sh").write_text('export PROXY="$UNSET_NAME"on\nfalse\n')
    assert (await begin(shell, place=run)).wait() == 0
    assert (run / "out").read_text() == "on\n"


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_second_attempt_is_refused_while_the_first_lives_and_goes_on_after_it(
    begin: Begin, shell: str
) -> None:
    first = await begin(shell, run=["sh", "-c", "[ -e go ] && echo y >out || exec sleep 60"], finish="out")
    truth = await first.until(lambda truth: truth.child is not None)
    assert truth.alive
    second = await begin(shell)
    assert second.wait() == 73
    first.process.kill()
    first.wait()
    assert truth.child is not None
    os.kill(truth.child[0], signal.SIGKILL)
    assert (await look(LocalTransport(), str(first.run))).state == "lost"
    (first.run / "go").touch()
    third = await begin(shell)
    assert third.wait() == 0
    truth = await look(LocalTransport(), str(first.run))
    assert (truth.state, truth.attempt) == ("finished", 2)
    fourth = await begin(shell)
    assert fourth.wait() == 0
    assert (await look(LocalTransport(), str(first.run))).attempt == 2


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_job_that_outlives_its_wrapper_is_not_done_twice(begin: Begin, shell: str) -> None:
    first = await begin(shell, run=["sleep", "60"])
    truth = await first.until(lambda truth: truth.child is not None)
    first.process.kill()
    first.wait()
    assert truth.child is not None
    try:
        left = await look(LocalTransport(), str(first.run))
        assert (left.state, left.alive) == ("running", False)
        assert "still at work" in left.why
        second = await begin(shell)
        assert second.wait() == 73
    finally:
        os.kill(truth.child[0], signal.SIGKILL)
    assert (await look(LocalTransport(), str(first.run))).state == "lost"


async def test_another_machine_of_the_same_name_is_not_taken_for_an_earlier_boot(begin: Begin) -> None:
    one = await begin("dash", run=["true"])
    assert one.wait() == 0
    attempt, beat = one.run / ".rgt/attempts/1", one.run / ".rgt/heartbeat"
    (attempt / "end").unlink()
    (attempt / "holder").write_text(f"1 2 another-boot {os.uname().nodename}\n")
    beat.write_text(f"{time.time():.0f}\n")
    seen = await look(LocalTransport(), str(one.run))
    assert (seen.state, "another host of this name" in seen.why) == ("unknown", True)
    beat.write_text(f"{time.time() - 3600:.0f}\n")
    assert (await look(LocalTransport(), str(one.run))).state == "lost"
    assert (await begin("dash", place=one.run)).wait() == 0


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("word", "status", "state"),
    [
        ("exit 3", 3, "failed"),
        ("kill -KILL $$", 137, "failed"),
        ("exit 0", 75, "failed"),
    ],
)
async def test_how_it_ended_is_recorded(begin: Begin, shell: str, word: str, status: int, state: str) -> None:
    one = await begin(shell, run=["sh", "-c", word], finish="out")
    assert one.wait() == status
    truth = await look(LocalTransport(), str(one.run))
    assert (truth.state, truth.end["status"]) == (state, str(status))
    assert truth.end["signal"] == ("KILL" if "KILL" in word else "")
    assert truth.done == ()


@pytest.mark.parametrize("shell", SHELLS)
async def test_job_termtrap_a_term_reaches_a_job_that_saves(begin: Begin, shell: str) -> None:
    saves = "trap 'echo saved >saved; exit 0' TERM; while :; do sleep 0.1; done"
    one = await begin(shell, run=["sh", "-c", saves])
    await one.until(lambda truth: truth.child is not None)
    time.sleep(0.3)
    one.process.terminate()
    assert one.wait() == 143
    truth = await look(LocalTransport(), str(one.run))
    assert (truth.state, truth.end["signal"]) == ("stopped", "TERM")
    assert (one.run / "saved").exists()


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_hang_up_does_not_end_it(begin: Begin, shell: str) -> None:
    one = await begin(
        shell, run=["sh", "-c", "while [ ! -e go ]; do sleep 0.1; done; echo x >out"], finish="out"
    )
    truth = await one.until(lambda truth: truth.child is not None)
    assert truth.child is not None
    one.process.send_signal(signal.SIGHUP)
    os.kill(truth.child[0], signal.SIGHUP)
    time.sleep(0.3)
    (one.run / "go").touch()
    assert one.wait() == 0


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_stage_is_not_begun_without_the_room_it_needs(begin: Begin, shell: str) -> None:
    one = await begin(shell, run=["touch", "ran"], resources={"disk": "900 TB"})
    assert one.wait() == 74
    truth = await look(LocalTransport(), str(one.run))
    assert truth.end["reason"] == "disk-gate"
    assert truth.gate is not None
    assert not (one.run / "ran").exists()


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_stage_that_takes_too_long_is_ended_with_what_it_started(begin: Begin, shell: str) -> None:
    heeds_no_word = "trap '' TERM; echo $$ >worker; while [ ! -e go ]; do sleep 0.1; done"
    chain = ["sh", "-c", 'sh -c "$1" & sleep 60', "sh", heeds_no_word]
    one = await begin(shell, stages=[{"name": "hang", "run": chain, "timeout": "2 s"}])
    late = one.run / ".rgt" / "attempts" / "1" / "late"
    deadline = time.monotonic() + 30
    while not late.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    worker = psutil.Process(int((one.run / "worker").read_text()))
    time.sleep(0.5)
    assert worker.is_running() and one.process.poll() is None  # its end is not told while it is there
    (one.run / "go").touch()
    assert one.wait() == 143
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE


async def test_the_end_is_told_by_the_box_and_a_failed_word_changes_nothing(
    begin: Begin, tmp_path: Path
) -> None:
    one = await begin("dash", run=["true"])
    one.wait()
    plan = one.run / ".rgt" / "plan"
    (plan / "after").write_text(f'sh\n-c\ncat "$RGT_END" >{tmp_path}/told; exit 9\n')
    (plan / "stages" / "01-train" / "argv").write_text("false\n")
    (one.run / ".rgt" / "attempts" / "1" / "end").write_text("reason failed\n")
    (one.run / ".rgt" / "done" / "01-train").unlink()
    again = await begin("dash")
    assert again.wait() == 1
    assert "reason failed" in (tmp_path / "told").read_text()


@pytest.mark.parametrize(("kind", "key"), [("slack", "text"), ("feishu", "content"), ("text", None)])
async def test_the_box_itself_tells_of_the_end(
    begin: Begin, tmp_path: Path, kind: str, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("curl")
    heard: list[tuple[str, bytes]] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Listener)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HOOK", f"http://127.0.0.1:{server.server_port}/secret-path")
    try:
        one = await begin("dash", run=["false"], secrets=["HOOK"], notify={"url_env": "HOOK", "kind": kind})
        assert one.wait() == 1
    finally:
        server.shutdown()
        server.server_close()
    path, body = heard[0]
    assert path == "/secret-path"
    assert b"r-1 failed, status 1, attempt 1" in body
    assert key is None or key in json.loads(body)
    assert b"secret-path" not in b"".join(p.read_bytes() for p in one.run.rglob("*") if p.is_file())

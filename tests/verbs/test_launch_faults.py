"""Launches that meet the wrong box, changed code or an odd environment: refused, or not touched by it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real import need
from tests.rig import Sshd
from tests.verbs.launched import box, until_ended, where
from tui.cli import main
from tui.fleet.paths import Paths

__all__ = ["box", "where"]


def rgt(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """A verb's exit code, and everything it said."""
    code = main(list(words))
    said = capsys.readouterr()
    return code, said.out + said.err


def job_of(tmp_path: Path, script: bytes, more: str = "") -> Path:
    code = tmp_path / "code"
    code.mkdir(exist_ok=True)
    (code / "train.sh").write_bytes(script)
    file = code / "job.toml"
    file.write_text(f'name = "t"\nproject = "p"\nrun = ["sh", "train.sh"]\n{more}')
    return file


STEPS = b"n=0\nwhile [ $n -lt 300 ]; do n=$((n+1)); echo step $n/300 loss: 0.5; sleep 0.1; done\n"


def answer(said: str) -> dict[str, Any]:
    """The JSON among what a verb said."""
    return dict(json.JSONDecoder().raw_decode(said[said.index("{") :])[0])


def launched(file: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    code, said = rgt(capsys, "launch", str(file), "--on", "box-1", "--json")
    assert code == 0, said
    return Path(answer(said)["folder"])


def test_key_changed_nothing_of_a_launch_reaches_a_box_with_another_key(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """KEY-CHANGED: the machine was made anew, or somebody sits in between."""
    file = job_of(tmp_path, STEPS)
    assert rgt(capsys, "probe", "box-1")[0] == 0
    box.new_host_key()
    code, said = rgt(capsys, "launch", str(file), "--on", "box-1")
    assert code != 0
    assert "showed another identity" in said
    assert not (box.home / "rgt").exists()


def test_port_recycled_a_stranger_on_the_old_port_gets_neither_code_nor_secrets(
    where: Paths,
    box: Sshd,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    sshd_factory: Callable[..., Sshd],
) -> None:
    """PORT-RECYCLED: the machine is gone and its port is another customer's, who lets everybody in."""
    file = job_of(tmp_path, STEPS, 'secrets = ["HUB_TOKEN"]\n')
    run = launched(file, capsys)
    box.stop_listening()
    stranger = sshd_factory()
    stranger.authorize(box.client_key.with_suffix(".pub").read_text())
    stranger.stop_listening()
    stranger.port = box.port
    stranger.restart()
    for words in (("launch", str(file), "--on", "box-1"), ("resume", run.name)):
        code, said = rgt(capsys, *words)
        assert code != 0
        assert "showed another identity" in said
    assert list(stranger.home.iterdir()) == []


def test_key_revoked_the_run_goes_on_and_is_said_nothing_of_until_somebody_may_look(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """KEY-REVOKED: that nobody may look is no news of the run."""
    run = launched(job_of(tmp_path, STEPS), capsys)
    box.revoke_key()
    code, said = rgt(capsys, "resume", run.name)
    assert code != 0
    assert "lost" not in said
    assert "dead" not in said
    size = (run / "train.log").stat().st_size
    box.restore_key()
    code, said = rgt(capsys, "resume", run.name, "--json")
    assert (code, answer(said)["attempt"]) == (0, 1)
    assert (run / "train.log").stat().st_size > size


def test_alias_clash_a_name_that_means_another_machine_now_resumes_nothing(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ALIAS-CLASH: the box was rented anew under its old name."""
    text = where.fleet_file.read_text()
    where.fleet_file.write_text(text + 'instance_id = "i-1"\n')
    run = launched(job_of(tmp_path, STEPS), capsys)
    where.fleet_file.write_text(where.fleet_file.read_text().replace('"i-1"', '"i-2"'))
    code, said = rgt(capsys, "resume", run.name)
    assert code == 1
    assert "box-1 is another machine now (i-2)" in said


def test_a_script_edited_under_a_live_run_is_another_run(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shell reads its script as it goes: one that is written over runs neither the old nor the new text."""
    waits = b"echo step 1/2 loss: 1\nwhile [ ! -e $RGT_RUN/go ]; do sleep 0.1; done\necho as it was\n"
    first = launched(job_of(tmp_path, waits), capsys)
    other = job_of(tmp_path, b"echo other; exit 3\n" + b"#" * 400 + b"\n")
    code, said = rgt(capsys, "launch", str(other), "--on", "box-1", "--json")
    assert code == 1
    assert Path(answer(said)["folder"]) != first
    assert (first / "src" / "train.sh").read_bytes() == waits
    (first / "go").touch()
    assert until_ended(first).startswith("reason finished")
    assert (first / "train.log").read_text().endswith("as it was\n")


def test_a_script_with_windows_line_ends_runs(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = job_of(tmp_path, b"set -e\r\nfor i in 1 2; do\r\necho step $i/2 loss: 1\r\ndone\r\n")
    code, said = rgt(capsys, "launch", str(file), "--on", "box-1")
    assert code == 0, said
    assert "train.sh has Windows line ends; it travels with LF" in said


def test_a_tmux_that_runs_already_hides_no_variable_from_the_job(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new session gets the environment that tmux's server had when it was started, not the launch's."""
    tmux = need("tmux")["tmux"]
    old = {"PATH": os.environ["PATH"], "TMUX_TMPDIR": str(tmp_path / "tmux"), "FLAVOUR": "stale"}
    subprocess.run([tmux, "new-session", "-d", "-s", "mine", "sleep 60"], env=old, check=True, timeout=10)
    try:
        show = b"echo $FLAVOUR $HUB_TOKEN ${RGT_RUN##*/}\n"
        run = launched(job_of(tmp_path, show, 'secrets = ["HUB_TOKEN"]\n[env]\nFLAVOUR = "fresh"\n'), capsys)
        assert until_ended(run).startswith("reason finished")
        assert (run / "train.log").read_text() == f"fresh hf_secret {run.name}\n"
    finally:
        subprocess.run([tmux, "kill-server"], env=old, check=True, timeout=10)


def test_a_folder_that_is_gone_is_said_to_be_gone_and_launched_anew(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk was reset under a run: resume does not invent one, launch makes it from the start."""
    file = job_of(tmp_path, b"echo step 1/1 loss: 1\n")
    run = launched(file, capsys)
    until_ended(run)
    time.sleep(0.3)
    shutil.rmtree(box.home / "rgt")
    code, said = rgt(capsys, "resume", run.name)
    assert code == 1
    assert "does not hold the plan" in said
    assert launched(file, capsys) == run
    assert until_ended(run).startswith("reason finished")

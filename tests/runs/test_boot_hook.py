"""Where a platform runs a file at every start, a run goes on by itself, and a finished one does not."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.real import need
from tui.box.local import LocalTransport
from tui.model.failure import Failure
from tui.model.job import Job
from tui.runs.boot_hook import hook_file, install
from tui.runs.detach import lay_down
from tui.runs.plan_files import Where, plan_files


@pytest.mark.parametrize(
    ("told", "file"),
    [
        ("/root/onstart.sh runs again at every start of the container", "/root/onstart.sh"),
        ("a Job makes a new pod after a failure", None),
        (None, None),
    ],
)
def test_a_profile_names_a_file_or_none(told: str | None, file: str | None) -> None:
    assert hook_file(told) == file


async def test_a_run_goes_on_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("bash")
    monkeypatch.setenv("HOME", str(tmp_path))
    run, hook = tmp_path / "a run" / "active" / "r-1", tmp_path / "onstart.sh"
    hook.write_text('#!/bin/bash\necho mine >>"$HOME/mine"\n')
    job = Job.model_validate(
        {"name": "r", "project": "p", "run": ["sh", "-c", "echo went >>went; echo x >out"], "finish": "out"}
    )
    await lay_down(LocalTransport(), str(run), plan_files(job, Where(str(run))))
    for _ in range(2):
        await install(LocalTransport(), str(hook), "r-1", str(run))
    assert hook.read_text().count("# rgt") == 1
    for start in range(3):
        subprocess.run(
            ["bash", str(hook)], check=True, timeout=20, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        )
        deadline = time.monotonic() + 20
        while start == 0 and not (run / ".rgt" / "attempts" / "1" / "end").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert (run / "went").read_text() == "went\n"
    assert (tmp_path / "mine").read_text() == "mine\n" * 3
    assert list((tmp_path / ".rgt" / "boot.d").iterdir()) == []


async def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(Failure, match="could not be written"):
        await install(LocalTransport(), str(tmp_path / "no" / "such" / "onstart.sh"), "r-1", "/r")

"""Faults that no verb foresaw: one sentence each, and none that may be untrue."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tui import cli
from tui.last_words import last_words, output_fault


def raised(fault: Exception) -> Exception:
    try:
        raise fault
    except Exception as caught:
        return caught


def test_a_full_disk_of_rgts_own_is_not_blamed_on_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails names no file; only the output itself tells whether it was the output."""
    fault = raised(OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert output_fault(fault) == ""
    assert last_words(fault).startswith("A file on this computer can't be used: No space left on device (")
    with open("/dev/full", "w") as full:
        full.write("x")
        monkeypatch.setattr(sys, "stdout", full)
        assert output_fault(fault) == "No space left on device"
        with pytest.raises(OSError):
            full.close()


def test_nobody_says_that_a_box_was_spared() -> None:
    """A leash may be armed, or a run started, before the fault comes."""
    words = last_words(raised(ValueError("odd\x1b[2J")))
    assert words.startswith("an error of rgt's own: ValueError: odd")
    assert "\x1b" not in words
    assert "stays done" in words


def test_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    fault = raised(FileNotFoundError(errno.ENOENT, "No such file or directory"))
    assert "is gone" not in last_words(fault)
    here.rmdir()
    assert "The folder that rgt was started in is gone." in last_words(fault)
    monkeypatch.chdir(tmp_path)


def test_a_terminal_that_lacks_a_sign_breaks_nothing_off(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tui.cli", "profiles", "autodl"],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "RGT_HOME": str(tmp_path)},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert b"AutoDL \\xb7 ssh-rental" in done.stdout


def test_what_may_be_left_out_is_not_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ssh"]) == 2
    assert "required: BOX." in capsys.readouterr().err
    assert cli.main(["template"]) == 2
    assert "required: NAME." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "help_"),
    [
        (errno.EROFS, "Make room or give access, then repeat it."),
        (errno.EMFILE, "Raise the limit (`ulimit -n 1024`), then repeat it."),
        (errno.ENAMETOOLONG, "Set RGT_HOME to a shorter path, then repeat it."),
        (errno.ENOTTY, "RGT_DEBUG=1 shows all of it for a bug report."),
    ],
)
def test_the_advice_fits_the_fault(number: int, help_: str) -> None:
    assert last_words(raised(OSError(number, os.strerror(number), "/home/x"))).endswith(help_)


@pytest.mark.parametrize(
    ("words", "closed", "code", "said"),
    [
        ("", "<&-", 2, "The screen needs a terminal."),
        ("", ">&-", 2, "The screen needs a terminal."),
        ("", "2>&- <&-", 2, ""),
        ("add", "<&-", 2, "There is no text."),
        ("triage --log -", "<&- >&-", 0, ""),
        ("gotchas oom", ">&-", 0, ""),
        ("nonsense", ">&- 2>&-", 2, ""),
    ],
)
def test_a_stream_that_was_closed_is_no_fault(
    words: str, closed: str, code: int, said: str, tmp_path: Path
) -> None:
    line = f"{sys.executable} -m tui.cli {words} {closed}"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env={**os.environ, "RGT_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code
    assert said in done.stderr
    assert "rgt's own" not in done.stderr

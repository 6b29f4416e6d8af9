"""`rgt complete` in the shells themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real import need
from tui.cli import main

BASH = """
eval "$(rgt complete bash)"
at() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rgt; echo "${COMPREPLY[@]}"; }
"""
ASKED = (["rgt", "pro"], ["rgt", "ssh", "my-"], ["rgt", "launch", "--dr"])


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "fleet.toml").write_text(
        '[instances.my-box]\nhost = "h"\n[runs.my-run]\nbox = "my-box"\n[runs."my $(id)"]\nbox = "my-box"\n'
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "RGT_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": path}


def said(argv: list[str], home: dict[str, str]) -> list[list[str]]:
    done = subprocess.run(argv, env=home, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return [sorted(line.split()) for line in done.stdout.splitlines()]


def test_in_bash(home: dict[str, str]) -> None:
    script = BASH + "\n".join(f"at {' '.join(words)}" for words in ASKED)
    assert said([need("bash")["bash"], "-c", script], home) == [
        ["probe", "profiles"],
        ["my-box", "my-run"],
        ["--dry-run"],
    ]


def test_in_fish(home: dict[str, str]) -> None:
    lines = "; ".join(f"complete -C '{' '.join(words)}' | string join ' '" for words in ASKED)
    script = f"rgt complete fish | source; {lines}"
    assert said([need("fish")["fish"], "--no-config", "-c", script], home) == [
        ["probe", "profiles"],
        ["my-box", "my-run"],
        ["--dry-run"],
    ]


def test_zsh_takes_it(home: dict[str, str]) -> None:
    script = 'autoload -U compinit && compinit -u; eval "$(rgt complete zsh)"; print -r -- ${_comps[rgt]}'
    assert "_rgt" in said([need("zsh")["zsh"], "-f", "-c", script], home)[0]


def test_which_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["complete"]) == 2
    assert "rgt complete bash|zsh|fish" in capsys.readouterr().err

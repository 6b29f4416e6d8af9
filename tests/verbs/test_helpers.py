"""`rgt gpu`, `rgt mirrors` and `rgt fetch` on a real sshd with stand-ins for what is not there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real import need
from tests.rig import Sshd
from tests.verbs.launched import where
from tui.cli import main
from tui.fleet.paths import Paths

__all__ = ["where"]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder that stands first in the box's PATH."""
    folder = tmp_path / "tools"
    folder.mkdir()
    return folder


@pytest.fixture
def box(sshd_factory: Callable[..., Sshd], tools: Path) -> Sshd:
    return sshd_factory(extra_config=(f"SetEnv PATH={tools}:{os.environ['PATH']}",))


def tool(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_a_braked_card_is_found_by_looking_for_some_seconds(
    where: Paths, box: Sshd, tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool(
        tools,
        "nvidia-smi",
        'case "$*" in\n'
        "*compute-apps*) echo '77, python, 1000, GPU-11111111-2222-3333-4444-555555555555' ;;\n"
        "*--query-gpu*)\n"
        "  q=${1#--query-gpu=}; q=${q%% *}\n"
        '  echo "$q" | tr , "\\n" | while read -r f; do case $f in\n'
        "  index) v=0 ;; name) v='NVIDIA A100' ;; uuid) v=GPU-11111111-2222-3333-4444-555555555555 ;;\n"
        "  memory.used) v=9000 ;; memory.total) v=81920 ;; *thermal*) v=Active ;;\n"
        "  *reasons.active) v=0x0000000000000040 ;; *reasons*) v='Not Active' ;;\n"
        "  utilization.gpu) v=97 ;; clocks*sm) v=900 ;; *) v='[N/A]' ;;\n"
        "  esac; printf '%s, ' \"$v\"; done | sed 's/, $//'; echo ;;\n"
        "*) exit 9 ;; esac",
    )
    assert main(["gpu", "box-1", "--seconds", "2.5"]) == 1
    told = capsys.readouterr().out
    assert "util 97 %  clock 900 MHz" in told
    assert "thermal" in told
    assert "8000 MiB are held and no process that is listed owns them" in told
    assert "holds 1000 MiB: 77 python" in told
    assert "memory " in told


def test_a_box_without_a_card_says_so(where: Paths, box: Sshd, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu", "box-1", "--seconds", "1", "--json"]) in (0, 4)
    told = json.loads(capsys.readouterr().out)
    assert not told["cards"]
    assert told["memory"] is not None


def test_mirrors_are_told_with_whether_the_box_reaches_them(
    where: Paths, box: Sshd, tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where.fleet_file.write_text(where.fleet_file.read_text().replace('"ssh"', '"autodl"'))
    tool(
        tools,
        "curl",
        "read -r line; case $line in *hf-mirror*) printf '200 0.120' ;; *) printf '000 6.0'; exit 28 ;; esac",
    )
    assert main(["mirrors", "box-1"]) == 1
    told = capsys.readouterr().out
    assert 'HF_ENDPOINT = "https://hf-mirror.com"  # answers there: HTTP 200 in 0.120 s' in told
    assert "does not answer there" in told


def test_fetch_reads_an_address_with_a_key_from_stdin(
    where: Paths, box: Sshd, tools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need("sh")
    tool(
        tools,
        "curl",
        'echo "$*" >>"$HOME/args"; cat >"$HOME/config"; while [ $# -gt 0 ]; do '
        '[ "$1" = -o ] && printf abc >"$2"; shift; done',
    )
    read, write = os.pipe()
    os.write(write, b"https://example.com/x?token=secret\n")
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["fetch", "box-1", "-", "~/in/x.bin", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["bytes"], told["vouched"]) == (3, False)
    assert (box.home / "in" / "x.bin").read_text() == "abc"
    assert "secret" not in (box.home / "args").read_text()
    assert "secret" in (box.home / "config").read_text()
    assert main(["--read-only", "fetch", "box-1", "https://example.com/x", "~/in/y.bin"]) == 1

"""The README's experiment, word by word: from the guided setup to a verified run and an ended box."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.test_setup import answered, pasted
from tests.real import need
from tests.rig import Sshd
from tests.rig.person import Person
from tests.rig.tmux import Tmux

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

README = Path(__file__).parents[2] / "README.md"
BIN = str(Path(sys.executable).parent)


def parts() -> tuple[str, str, list[list[str]]]:
    """The example's program, its job file and its commands."""
    text = README.read_text("utf-8").partition("test_readme_example.py")[2]
    program, job, commands = (
        re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("python", "toml", "sh")
    )
    assert program is not None
    assert job is not None
    assert commands is not None
    return program[1], job[1], [shlex.split(line, comments=True) for line in commands[1].strip().split("\n")]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    return {
        "HOME": str(tmp_path / "home"),
        "RGT_HOME": str(tmp_path / "rgt"),
        "RGT_NO_ACCOUNTS": "1",
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "LANG": "C.UTF-8",
    }


@pytest.fixture
def box(sshd_factory: Callable[..., Sshd], tmp_path: Path) -> Sshd:
    """A box whose python3 has torch, and whose tmux is its own."""
    pytest.importorskip("torch")
    (tmp_path / "tmux").mkdir()
    path = f"{BIN}:/usr/local/bin:/usr/bin:/bin"
    return sshd_factory(extra_config=(f"SetEnv TMUX_TMPDIR={tmp_path / 'tmux'} PATH={path}",))


def set_up(box: Sshd, home: dict[str, str]) -> None:
    """`rgt setup` by keyboard, for a box that is there."""
    need("tmux")
    pane = Tmux(100, 32)
    pane.start([sys.executable, "-m", "tui.cli", "setup"], home)
    try:
        answered(pane, "Where do you rent", "G", "Enter")
        answered(pane, "Read it once", "Enter")
        answered(pane, "Which key", "G", "Enter")
        pane.wait_for("AAAA")
        box.authorize((Path(home["HOME"]) / ".ssh" / "rgt_ssh_ed25519.pub").read_text())
        answered(pane, "Paste the line", "Enter")
        answered(pane, "no API that rgt", "Enter")
        answered(pane, "Rent here", "Enter")
        pasted(pane, "Paste the login", f"ssh -p {box.port} {box.user}@{box.host}")
        answered(pane, "Enter connects", "Enter")
        answered(pane, "The box shows", "Enter")
        answered(pane, "Enter measures", "Enter")
        pane.wait_for("Checkpoint size", 90.0)
        pasted(pane, "Checkpoint size", "1 MB, 1, 1 MB")
        pasted(pane, "Which secrets", "")
        answered(pane, "Nothing is needed here", "Enter")
        answered(pane, "Enter ends the setup", "Enter")
        pane.wait_for("done")
    finally:
        pane.stop()


def rgt(home: dict[str, str], where: Path, *words: str, exit: int | None = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tui.cli", *words],
        cwd=where, env={**os.environ, **home}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=120, start_new_session=True,
    )  # fmt: skip
    assert exit in (None, done.returncode), f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_readme_does_what_it_says(box: Sshd, home: dict[str, str], tmp_path: Path) -> None:
    program, job, commands = parts()
    set_up(box, home)
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text(program)
    (work / "job.toml").write_text(job)
    rgt(home, work, "rename", "box-127-0-0-1", "my-box")
    for words in commands:
        assert words[0] == "rgt"
        if words[1] == "down":
            assert "ATTESTED" in ended(home, words[1:])
            continue
        if words[1] == "roster":
            decided(home, work, words[1:])
            continue
        told = rgt(home, work, *words[1:])
        if words[1] == "launch":
            finished(box.home / "rgt" / "first" / "active" / "tiny-1")
            assert re.search(r"tiny-1 +finished", rgt(home, work, "status", exit=None))
        if words[1] == "verify":
            assert "passes" in told
        if words[1] == "evidence":
            assert "destroy: attested" in told


def decided(home: dict[str, str], where: Path, words: list[str]) -> None:
    """The first roster is refused while groups are open; the second names each of them."""
    if "GROUP" not in words:
        assert "refused: unclassified" in rgt(home, where, *words, exit=1)
        return
    told = json.loads(rgt(home, where, "roster", "tiny-1", "--json", exit=1))
    groups = [word for one in told["leftovers"] for word in ("--scrap", one["group"])]
    at = words.index("--scrap")
    rgt(home, where, *words[:at], *groups, *words[at + 2 :])


def finished(run: Path) -> None:
    end = time.monotonic() + 60
    while not (run / ".rgt" / "attempts" / "1" / "end").exists():
        assert time.monotonic() < end
        time.sleep(0.2)


def ended(home: dict[str, str], words: list[str]) -> str:
    """`rgt down` with somebody who types the phrase, ends the box at its console, and says so."""
    person = Person([sys.executable, "-m", "tui.cli", *words], environment={**os.environ, **home})
    try:
        person.sees(b"\n> ")
        asked = re.search(rb"destroy my-box [0-9a-f]{8}", person.screen)
        assert asked is not None, person.screen
        person.types(asked[0] + b"\r")
        person.sees(b"or unsure: ")
        person.types(b"gone\r")
        return person.ends(60)[1]
    finally:
        person.close()

"""A leash on a box in namespaces of its own, whose only `shutdown` writes down that it was called."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest

from tests.real import need
from tests.rig import Sshd
from tests.rig.machine import Machine
from tests.verbs.launched import where
from tui.box.local import LocalTransport
from tui.box.transport import Completed, Script
from tui.cli import main
from tui.fleet import profiles
from tui.fleet.paths import Paths, shipped
from tui.model.failure import Failure
from tui.runs import leash

__all__ = ["where"]


@pytest.fixture
def called(tmp_path: Path) -> Path:
    return tmp_path / "called"


@pytest.fixture
def tools(tmp_path: Path, called: Path) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "shutdown").write_text(f'#!/bin/sh\necho "called $*" >>{called}\n')
    (folder / "shutdown").chmod(0o755)
    return folder


@pytest.fixture
def box(tmp_path: Path, tools: Path) -> Iterator[Machine]:
    """A machine with another boot id than this computer's, that can see no real shutdown."""
    assert not any((Path(folder) / "shutdown").exists() for folder in ("/usr/bin", "/bin"))
    machine = Machine.start(tmp_path / "machine", extra_config=(f"SetEnv PATH={tools}:/usr/bin:/bin",))
    assert isinstance(machine, Machine)
    yield machine
    machine.stop()


@pytest.fixture
def autodl(where: Paths) -> Paths:
    where.fleet_file.write_text(where.fleet_file.read_text().replace('"ssh"', '"autodl"'))
    return where


def rgt(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["leash", "box-1", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_leash_is_armed_shown_tested_renewed_and_taken_off(
    autodl: Paths, box: Machine, capsys: pytest.CaptureFixture[str], called: Path
) -> None:
    assert "no leash is armed" in rgt(capsys)[1]
    code, out, err = rgt(capsys, "--hours", "2")
    assert (code, "stops itself at 20" in out) == (0, True)
    assert "15" in err  # what begins with a stop is told: the platform releases stopped boxes
    told = json.loads(rgt(capsys, "--json")[1])
    assert told["state"] == "armed"
    assert 7100 < told["left_s"] <= 7200
    assert main(["status", "box-1"]) in (0, 1, 4)
    assert "leash  box-1  20" in capsys.readouterr().out
    code, out, err = rgt(capsys, "--test")
    assert code == 0, err
    assert "tools/shutdown when its time is up; nothing was run" in err
    assert 7000 < json.loads(rgt(capsys, "--json")[1])["left_s"] <= 7200
    assert rgt(capsys, "--hours", "5")[0] == 0
    assert json.loads(rgt(capsys, "--json")[1])["left_s"] > 17000
    assert "no leash" in rgt(capsys, "--off")[1]
    assert not called.exists()
    assert main(["receipts", "--json"]) == 0
    acts = [one["detail"] for one in json.loads(capsys.readouterr().out)["receipts"] if one["act"] == "leash"]
    assert acts == ["armed: armed for 2 h", "armed: armed for 5 h", "off: taken off"]


def test_it_fires_once_when_nobody_renews_it_and_an_older_timer_does_not(
    autodl: Paths,
    box: Machine,
    capsys: pytest.CaptureFixture[str],
    called: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leash, "SHORTEST_S", 1)
    assert rgt(capsys, "--hours", str(2 / 3600))[0] == 0
    assert rgt(capsys, "--hours", str(4 / 3600))[0] == 0
    deadline = time.monotonic() + 20
    while not called.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1.0)
    assert called.read_text() == "called \n"
    code, out, _ = rgt(capsys)
    assert (code, "its leash ran out: firing" in out) == (1, True)


def test_after_a_reboot_it_is_gone_and_said_to_be(
    autodl: Paths, box: Machine, capsys: pytest.CaptureFixture[str], called: Path
) -> None:
    assert rgt(capsys, "--hours", "1")[0] == 0
    box.cut_power()
    box.boot()
    code, out, _ = rgt(capsys)
    assert (code, "nothing stops it any more" in out) == (1, True)
    assert not called.exists()


def test_a_box_on_this_computer_gets_none(
    where: Paths,
    box: Machine,
    sshd_factory: Callable[..., Sshd],
    capsys: pytest.CaptureFixture[str],
    tools: Path,
) -> None:
    here = sshd_factory(extra_config=(f"SetEnv PATH={tools}:/usr/bin:/bin",))
    where.fleet_file.write_text(
        f'[instances.box-1]\nplatform = "autodl"\nhost = "{here.host}"\nport = {here.port}\n'
        f'user = "{here.user}"\nkey = "{here.client_key}"\n'
    )
    for words in (("--hours", "1"), ("--test",)):
        code, _, err = rgt(capsys, *words)
        assert (code, "runs on this very computer" in err) == (1, True)
    assert not (here.home / ".rgt").exists()


@pytest.mark.parametrize("boot", ["same", "?"])
def test_the_timer_itself_refuses_on_the_operators_computer(
    tmp_path: Path, tools: Path, called: Path, boot: str
) -> None:
    """The second lock: whatever armed it, it does nothing where its boot id is the operator's."""
    need("sh")
    if boot == "same":
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        text = resources.files("tui.runs").joinpath("leash.sh").read_text()
    else:
        text = (
            resources.files("tui.runs").joinpath("leash.sh").read_text().replace("/proc/sys/kernel", "/none")
        )
    (tmp_path / "leash.sh").write_text(text)
    subprocess.run(
        ["sh", str(tmp_path / "leash.sh"), str(tmp_path), "token", "0", "real", boot],
        env={"PATH": f"{tools}:/usr/bin:/bin"}, check=True, timeout=20,
    )  # fmt: skip
    assert (tmp_path / "fired").read_text().startswith("refused")
    assert not called.exists()


def test_only_a_stop_inside_the_box_that_keeps_its_disks_is_offered() -> None:
    """No profile whose own command destroys, or ends another thing than the machine, gets a leash."""
    found = profiles.load(shipped("profiles"), Path(os.devnull)).by_id
    possible = {name for name, one in found.items() if leash.refused(one.facts, name) is None}
    assert possible == {"autodl"}
    for name in ("featurize", "matpool"):
        assert "destroys" in str(leash.refused(found[name].facts, name))
    for name, needed in (("vastai", "vastai destroy"), ("runpod", "runpodctl stop"), ("slurm", "scancel")):
        told = str(leash.refused(found[name].facts, name))
        assert f"its timer runs shutdown alone, and this box would need: {needed}" in told
    assert "no command inside the box is known" in str(leash.refused(found["lambda"].facts, "lambda"))


def test_elsewhere_it_says_why_not(where: Paths, box: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = rgt(capsys, "--hours", "1")
    assert code == 1
    assert "not possible here, because" in err


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("none", "none"),
        ("boot b\ntoken t\nholder 9 77 b box\nleft 50 100\nnow 120\nproc 77 S", "armed"),
        ("boot b\ntoken t\nholder 9 77 b box\nleft 50 100\nnow 120\nproc 77 Z", "gone"),
        ("boot b\ntoken t\nholder 9 77 b box\nleft 50 100\nnow 120\nproc 78 S", "gone"),
        ("boot c\ntoken t\nholder 9 77 b box\nleft 50 100\nnow 120\nproc 77 S", "gone"),
        ("boot b\ntoken t\nnow 120", "gone"),
        ("boot b\ntoken \nholder 9 77 b box\nnow 120\nproc 77 S", "none"),
        ("boot b\ntoken t\nholder 9 77 b box\nfired would: /sbin/shutdown\nnow 1", "fired"),
    ],
)
def test_what_the_box_says_is_judged(text: str, state: str) -> None:
    assert leash.judged(text).state == state


def test_how_long_it_waits_is_counted_on_from_the_boxs_last_word() -> None:
    lives = "boot b\ntoken t\nholder 9 77 b box\nproc 77 S\n"
    assert leash.judged(f"{lives}left 50 100\nnow 120").left_s == 30.0
    assert leash.judged(f"{lives}left 50 100\nnow 90").left_s == 50.0  # its clock went back


async def test_one_that_could_not_be_taken_off_is_not_said_to_be() -> None:
    class Stuck(LocalTransport):
        async def run(self, script: Script, **_more: object) -> Completed:
            said = "boot b\ntoken t\nholder 7 9 b box\nleft 600 100\nnow 100\nproc 9 S\n"
            return Completed(0, said.encode() if "armed" in script.why else b"", b"", 0.0)

    with pytest.raises(Failure, match="could not be taken off"):
        await leash.off(Stuck())

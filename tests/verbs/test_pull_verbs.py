"""`rgt pull` and `rgt readback` after the steps before them: on this computer, and over a real sshd."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.box.transfer_box import content
from tests.custody.copy_rig import independent_readers, rclone_remotes
from tests.rig import Sshd
from tui.box.transfer.meter import Progress
from tui.cli import main
from tui.custody import errand
from tui.custody.receipts import verify_chain
from tui.fleet.paths import paths
from tui.model.custody import CopyReport, ReadbackReport
from tui.verbs.pull import _rate, progress_line


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tui.custody.roster.SETTLE_S", 0.05)
    (tmp_path / "home" / "config").mkdir(parents=True)
    empty = tmp_path / "ssh_config"
    empty.write_text("Host *\n  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n")
    monkeypatch.setenv("RGT_SSH_CONFIG", str(empty))
    return tmp_path / "home"


FILES = {"ck/step_2.pt": os.urandom(3_000_000), "train.log": b"done\n"}


def run_folder(top: Path) -> Path:
    for name, data in FILES.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (time.time() - 3600,) * 2)
    return top


def server(rig: Sshd) -> str:
    return (
        f'host = "{rig.host}"\nport = {rig.port}\nuser = "{rig.user}"\nkey = "{rig.client_key}"\n'
        f'host_key = "{rig.host_key_fingerprint}"\n'
    )


def fleet(home: Path, top: Path, box: str, more: str = "") -> None:
    (home / "config" / "fleet.toml").write_text(
        f'[instances.box]\n{box}mounts = ["{top}"]\n{more}\n[runs.exp]\nbox = "box"\n'
        f'log = "{top}/train.log"\ncheckpoints = "{top}/ck/*.pt"\n'
    )


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_chain_on_this_computer(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = run_folder(tmp_path / "exp" / "run1")
    fleet(home, top, 'platform = "local"\n')
    assert main(["pull", "exp", "--to", str(tmp_path / "vault")]) == 1
    assert "rgt digest exp" in capsys.readouterr().err
    assert main(["roster", "exp", "--verb", "stop"]) == 0
    assert main(["digest", "exp"]) == 0
    assert main(["readback", "exp"]) == 1
    assert "rgt pull exp" in capsys.readouterr().err
    assert main(["pull", "exp", "--to", str(tmp_path / "vault"), "--json"]) == 0
    report = told(capsys)
    bag = Path(report["destination"]["path"])
    assert bag.parent == tmp_path / "vault"
    independent_readers(bag)
    assert content(bag / "data") == FILES
    assert main(["readback", "exp"]) == 0
    out, err = capsys.readouterr()
    assert "2 of 2 files, 3.0 MB, same-device" in out
    assert "needs 3.0 MB" in err
    task = errand.errand("exp", paths())
    copied = task.records.newest(CopyReport)
    back = task.records.newest(ReadbackReport)
    assert copied is not None
    assert back is not None
    assert copied.digest == report["digest"] == back.copy_report
    assert content(Path(back.consumer.path)) == FILES
    chain = verify_chain(paths().receipts)
    assert chain.holds
    assert [one.receipt.act for one in chain.receipts][-2:] == ["copy-report", "readback-report"]
    assert {one.receipt.result for one in chain.receipts} == {"passed"}
    assert main(["pull", "exp", "--to", str(tmp_path / "vault")]) == 0
    assert "of it from before" in capsys.readouterr().out
    (bag / "data" / "train.log").write_bytes(b"dome\n")
    assert main(["readback", "exp"]) == 1
    out = capsys.readouterr().out
    assert "different: train.log" in out
    assert "refused: readback-inexact" in out
    assert verify_chain(paths().receipts).receipts[-1].receipt.result == "refused"


@pytest.mark.real
def test_over_ssh_to_another_box_and_read_on_it(
    home: Path, tmp_path: Path, sshd_factory: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = sshd_factory(), sshd_factory()
    (target.home / ".ssh").mkdir(mode=0o700)
    (target.home / ".ssh" / "authorized_keys").symlink_to(target.tmp / "authorized_keys")
    top = run_folder(tmp_path / "exp" / "run1")
    fleet(home, top, server(source), f"[instances.vault]\n{server(target)}")
    assert main(["roster", "exp", "--verb", "stop"]) == 0
    assert main(["digest", "exp"]) == 0
    capsys.readouterr()
    assert main(["pull", "exp", "--to", f"vault:{tmp_path}/far", "--json"]) == 0
    report = told(capsys)
    assert report["route"] == "direct"
    assert report["admissions"][0]["removed_at"] is not None
    detail = verify_chain(paths().receipts).receipts[-1].receipt.detail
    assert report["admissions"][0]["fingerprint"] in detail
    independent_readers(Path(report["destination"]["path"]))
    assert main(["readback", "exp", "--on", "box"]) != 0
    assert "made the files" in capsys.readouterr().err
    assert main(["readback", "exp", "--on", "vault", "--json"]) == 0
    back = told(capsys)
    assert back["consumer"]["box"] == "vault"
    assert back["independence"] == "same-device"  # both boxes of the rig are this computer
    restored = Path(back["consumer"]["path"])
    assert content(restored) == FILES
    assert main(["verify", "exp", "--manifest", "/dev/null"]) == 2  # it would be held against nothing
    assert main(["verify", "exp"]) == 1  # random bytes are no checkpoint, and the box's python is asked
    out = capsys.readouterr().out
    assert "corrupt          ck/step_2.pt" in out
    assert "loaded-on-box: on vault, by python 3." in out
    shutil.rmtree(restored.parent.parent)
    assert main(["readback", "exp", "--json"]) == 0  # whoever was chosen last reads again
    again = told(capsys)
    assert again["consumer"]["box"] == "vault"
    shutil.rmtree(Path(again["consumer"]["path"]).parent.parent)
    assert main(["verify", "exp"]) == 1
    assert "are not at vault:/" in capsys.readouterr().err
    assert main(["readback", "exp", "--on", "here"]) == 0
    assert main(["pull", "exp", "--to", f"box:{tmp_path}/own"]) == 1
    assert "copy-on-victim" in capsys.readouterr().out
    assert not (tmp_path / "own").exists()


@pytest.mark.real
def test_to_rclone(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = run_folder(tmp_path / "exp" / "run1")
    fleet(home, top, 'platform = "local"\n')
    assert main(["roster", "exp", "--verb", "stop"]) == 0
    assert main(["digest", "exp"]) == 0
    with rclone_remotes(tmp_path):
        assert main(["pull", "exp", "--to", "rclone:vault:runs"]) == 0
        assert "rclone:vault:runs/exp-" in capsys.readouterr().out
        assert main(["readback", "exp"]) == 0
        assert "cache-not-proven-cold" in capsys.readouterr().out


def test_a_box_that_is_another_machine_now(
    home: Path, tmp_path: Path, sshd_factory: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = sshd_factory(), sshd_factory()
    top = run_folder(tmp_path / "exp" / "run1")
    fleet(home, top, server(first))
    assert main(["roster", "exp", "--verb", "stop"]) == 0
    assert main(["digest", "exp"]) == 0
    fleet(home, top, server(second))
    capsys.readouterr()
    assert main(["pull", "exp", "--to", str(tmp_path / "vault")]) == 1
    assert not (tmp_path / "vault").exists()


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("rclone:no-colon", "names no rclone remote"),
        ("rclone::local:/x", "names no rclone remote"),
        ("nobody:/x", "No box is named 'nobody'"),
        ("box:", "names no folder"),
        ("", "no place"),
    ],
)
def test_places_that_are_none(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str, says: str
) -> None:
    top = run_folder(tmp_path / "exp" / "run1")
    fleet(home, top, 'platform = "local"\n')
    assert main(["pull", "exp", "--to", to]) == 2
    assert says in capsys.readouterr().err


def test_rates() -> None:
    assert [_rate(text) for text in ("500k", "20M", "1.5G", "100", "3MB/s", "2MiB")] == [
        500_000, 20_000_000, 1_500_000_000, 100, 3_000_000, 2_000_000,
    ]  # fmt: skip
    for bad in ("", "fast", "0", "-3M", "1e9"):
        with pytest.raises(argparse.ArgumentTypeError):
            _rate(bad)


def test_progress_on_one_line() -> None:
    line = progress_line(Progress(500, 1000, 1, 2, rate=100.0, eta_s=5.0), "copied")
    assert line == " 50 %  500 B of 1.0 kB copied  1/2 files  100 B/s  5 s left"
    stalled = progress_line(Progress(500, 1000, 1, 2, rate=0.0, silent_s=12, links=3), "copied")
    assert "nothing for 12 s" in stalled
    assert "link 3" in stalled
    assert "hashing" in progress_line(Progress(0, 0, 0, 0, note="hashing \x1b[31m"), "x")
    assert "\x1b" not in progress_line(Progress(0, 0, 0, 0, note="hashing \x1b[31m"), "x")

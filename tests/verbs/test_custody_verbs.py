"""`rgt roster` and `rgt digest` as they are typed, against this computer and over a real sshd."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rig import Sshd
from tui.cli import main
from tui.custody import errand
from tui.custody.machine import same_machine
from tui.custody.tiers import tiers_of
from tui.fleet import profiles
from tui.fleet.paths import paths, shipped
from tui.model.custody import DigestReport, Roster, Victim
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.run import RunSpec


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tui.custody.roster.SETTLE_S", 0.05)
    (tmp_path / "home" / "config").mkdir(parents=True)
    return tmp_path / "home"


def run_folder(top: Path) -> Path:
    (top / "ck").mkdir(parents=True)
    for name, size in {"ck/step_1.pt": 5, "ck/step_2.pt": 7, "train.log": 3}.items():
        (top / name).write_bytes(os.urandom(size))
        os.utime(top / name, (time.time() - 3600,) * 2)
    return top


def fleet(home: Path, top: Path, *box: str) -> None:
    lines = ["[instances.box]", *(box or ('platform = "local"', f'mounts = ["{top}"]'))]
    lines += ['[runs."exp"]', 'box = "box"', f'log = "{top}/train.log"', f'checkpoints = "{top}/ck/*.pt"']
    (home / "config" / "fleet.toml").write_text("\n".join(lines) + "\n")


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_roster_decision_and_digest(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = run_folder(tmp_path / "exp" / "run1")
    fleet(home, top)
    assert main(["digest", "exp"]) == 1
    assert "rgt roster exp" in capsys.readouterr().err
    assert main(["roster", "exp", "--verb", "stop", "--json"]) == 1
    first = told(capsys)
    assert first["root"] == str(top)
    assert [one["path"] for one in first["artifacts"]] == ["ck/step_2.pt", "train.log"]
    (group,) = [one["group"] for one in first["leftovers"]]
    assert main(["roster", "exp", "--verb", "stop", "--scrap", "no-such"]) == 2
    assert group not in capsys.readouterr().err
    assert main(["roster", "exp", "--verb", "stop", "--scrap", group, "--reason", "step 2 is newer"]) == 0
    assert "scrap" in capsys.readouterr().out
    assert main(["roster", "exp", "--verb", "stop", "--json"]) == 0, "the decision is carried over"
    second = told(capsys)
    assert second["leftovers"][0]["reason"] == "step 2 is newer"
    assert main(["digest", "exp", "--json"]) == 0
    report = told(capsys)
    assert report["roster"] == second["digest"]
    folder = home / "state" / "custody" / "exp"
    stored = errand.errand("exp", paths()).records
    newest = stored.newest(DigestReport)
    assert newest is not None
    assert newest.digest == report["digest"]
    roster = stored.newest(Roster)
    assert roster is not None
    assert roster.digest == newest.roster
    manifest = (folder / "manifest-sha256.txt").read_text()
    assert {line.split("  ")[1] for line in manifest.splitlines()} == {"ck/step_2.pt", "train.log"}


def test_over_ssh_another_machine_is_not_hashed_for_it(
    home: Path, tmp_path: Path, sshd: Sshd, capsys: pytest.CaptureFixture[str]
) -> None:
    top = run_folder(tmp_path / "exp" / "run1")
    fleet(
        home, top, f'host = "{sshd.host}"', f"port = {sshd.port}", f'user = "{sshd.user}"',
        f'key = "{sshd.client_key}"', f'host_key = "{sshd.host_key_fingerprint}"', f'mounts = ["{top}"]',
    )  # fmt: skip
    assert main(["roster", "exp", "--verb", "stop", "--json"]) == 1
    roster = told(capsys)
    assert roster["victim"]["host_key"] == sshd.host_key_fingerprint
    assert main(["digest", "exp"]) == 0
    capsys.readouterr()
    sshd.new_host_key()
    assert main(["digest", "exp"]) != 0
    text = (home / "config" / "fleet.toml").read_text()
    (home / "config" / "fleet.toml").write_text(
        text.replace('platform = "ssh"', "").replace(top.name, top.name)
    )


def test_the_same_machine_may_restart_and_no_other_may_stand_in() -> None:
    was = Victim(
        name="b", platform="autodl", instance_id="i", host_key="SHA256:x", endpoint="a:1", boot_id="1"
    )
    now = was.model_copy(update={"endpoint": "a:2", "boot_id": "2"})
    assert same_machine(was, now) == now
    for change in ({"host_key": "SHA256:y"}, {"instance_id": "j"}, {"account": "else"}, {"name": "c"}):
        with pytest.raises(Failure) as other:
            same_machine(was, was.model_copy(update=change))
        assert other.value.code == "other-machine"


def test_a_job_file_is_remembered(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = run_folder(tmp_path / "exp" / "run1")
    fleet(home, top)
    job = tmp_path / "job.toml"
    job.write_text(f'[custody]\nroot = "{top}"\n[custody.artifacts]\ncheckpoint = ["ck/*.pt"]\n')
    main(["roster", "exp", "--verb", "stop", "--job", str(job), "--json"])
    assert [one["path"] for one in told(capsys)["artifacts"]] == ["ck/step_1.pt", "ck/step_2.pt"]
    job.unlink()
    main(["roster", "exp", "--verb", "stop", "--json"])
    assert [one["path"] for one in told(capsys)["artifacts"]] == ["ck/step_1.pt", "ck/step_2.pt"]
    job.write_text("[custody]\nroots = 1\n")
    assert main(["roster", "exp", "--verb", "stop", "--job", str(job)]) == 1
    assert "job.toml:2:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("log", "checkpoints", "folder"),
    [
        ("/d/exp/train.log", "/d/exp/ck/*.pt", "/d/exp"),
        ("/d/logs/a.log", "/d/exp/ck/**/*.pt", "/d"),
        ("/root/a.log", "/data/ck/*.pt", "/data/ck"),
        (None, "/d/exp/run*/x.pt", "/d/exp"),
        ("exp/train.log", None, "exp"),
        (None, None, None),
        ("/d/a.log", "ck/*.pt", "ck"),
    ],
)
def test_the_folder_of_a_watched_run(log: str | None, checkpoints: str | None, folder: str | None) -> None:
    assert errand.results_folder(RunSpec("r", "b", log=log, checkpoints=checkpoints)) == folder


def test_the_sealed_export_of_a_run_that_was_closed_out() -> None:
    spec = RunSpec("r", "b", log="/d/p/active/run-7/logs/train.log")
    assert errand._exports(spec) == ["/d/p/export/run-7"]


def test_tiers_come_from_the_survival_matrix() -> None:
    found = profiles.load(shipped("profiles")).by_id

    def tiers(platform: str, verb: Any, seen: Any = None, **more: Any) -> dict[str, bool | None]:
        box = Instance("b", platform, None, **more)
        facts = found[platform].facts if platform in found else None
        return {tier.path: tier.survives for tier in tiers_of(facts, verb, box, seen)}

    fs = ("/", "/root/autodl-tmp", "/root/autodl-fs")
    assert tiers("autodl", "destroy", fs) == {"/": False, "/root/autodl-tmp": False, "/root/autodl-fs": True}
    assert set(tiers("autodl", "stop", fs).values()) == {True}
    for seen in (None, (), fs[:2]):  # nobody looked, or it is a directory of the system disk
        assert tiers("autodl", "destroy", seen)["/root/autodl-fs"] is None
    assert tiers("runpod", "stop", ("/", "/workspace")) == {"/": False, "/workspace": True}
    assert tiers("runpod", "stop", ("/",)) == {"/": False, "/workspace": None}
    assert tiers("vastai", "destroy", ("/",))["/data"] is None
    nfs = tiers("lambda", "destroy", ("/", "/lambda/nfs/mine", "/lambda/nfs2"))
    assert nfs == {"/": False, "/lambda/nfs": None, "/lambda/nfs/mine": True}
    assert tiers("gpushare", "stop", ("/", "/hy-tmp"))["/hy-tmp"] is False
    assert tiers("runpod", "destroy", ("/", "/workspace")) == {"/": False, "/workspace": None}, (
        "volume disk or network volume"
    )
    assert tiers("ssh", "destroy") == {"~": None}
    assert tiers("ssh", "destroy", mounts=("/data",)) == {"/data": None}
    assert tiers("unheard-of", "destroy", mounts=("/x",)) == {"/x": None}
    assert tiers("autodl", "destroy", mounts=("/more",))["/more"] is None
    told_by = {
        tier.path: tier.told_by
        for tier in tiers_of(found["autodl"].facts, "destroy", Instance("b", "autodl", None))
    }
    assert "autodl" in told_by["/"]

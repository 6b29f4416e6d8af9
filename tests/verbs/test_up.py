"""`rgt up`: what fits is shown with the exact request, rented by one word, once, and put into the fleet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.platforms.fake_provider import serving
from tests.platforms.world import KEY
from tests.rig import Sshd
from tests.verbs.cloud import Cloud, typed
from tui.cli import main
from tui.fleet import settings
from tui.fleet.paths import Paths, paths
from tui.model.failure import Failure
from tui.model.instance import Endpoint
from tui.model.job import Resources
from tui.platforms.control import Machine
from tui.platforms.renting import Rented
from tui.platforms.sent import Sent, Terms, find, mark
from tui.verbs.accounting import account_of
from tui.verbs.renting import Want, _added

__all__ = ["typed"]

IMAGE = ("--set", "image=pytorch:2")


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "rgt"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("POD_KEY", KEY)
    paths().fleet_file.parent.mkdir(parents=True)
    return paths()


@pytest.fixture
def cloud(where: Paths, sshd: Sshd) -> Iterator[Cloud]:
    """RunPod, whose next machine is the sshd."""
    world = Cloud(sshd, "runpod")
    with serving(world, "runpod") as base:
        where.fleet_file.write_text(
            f'[accounts.pods]\nplatform = "runpod"\nurl = "{base}"\nkey_env = "POD_KEY"\n'
        )
        yield world


def test_one_word_rents_what_fits_and_puts_it_into_the_fleet(
    where: Paths, sshd: Sshd, cloud: Cloud, typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["up", "runpod", "--gpu", ":2, ≥70 GB", "--offer", "NVIDIA H100@SECURE", *IMAGE]
    words += ["--name", "Sweep", "--key", str(sshd.client_key)]
    assert main([*words, "--dry-run", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["request"]["gpu"] == {"id": "NVIDIA H100", "count": 2}
    assert "2 × H100 80 GB" in told.err
    assert "5.98 USD/h from then on" in told.err
    assert "--offer 'NVIDIA L4@SECURE': 2 × L4 80 GB, secure cloud, stock low, 0.88 USD/h" in told.err
    typed.append("no")
    assert main(words) == 1
    assert cloud.asked == []
    typed.append("rent")
    assert main([*words, "--json"]) == 0
    told = capsys.readouterr()
    (box,) = settings.load(where.fleet_file).instances
    assert json.loads(told.out) == {"box": box.name, "platform": "runpod", "instance_id": "9001"}
    assert box.name.startswith("sweep-2")
    assert box.endpoint is not None
    assert (box.endpoint.port, box.endpoint.key) == (sshd.port, str(sshd.client_key))
    assert (len(cloud.asked), find(where, "runpod")) == (1, None)
    assert "its host key is SHA256:" in told.err
    assert main(["receipts", "--json"]) == 0
    assert "rent" in [one["act"] for one in json.loads(capsys.readouterr().out)["receipts"]]


def test_candidates_of_a_job_are_asked_in_their_order(
    where: Paths, cloud: Cloud, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.toml"
    job.write_text(
        'name = "t"\nproject = "p"\nrun = ["true"]\nplatforms = ["featurize", "runpod"]\n'
        '[resources]\ngpu = "L4:1"\ndisk = "100 GB"\n'
    )
    assert main(["up", "--for", str(job), *IMAGE, "--dry-run", "--json"]) == 0
    told = capsys.readouterr()
    assert "featurize: featurize has no API" in told.err
    assert json.loads(told.out)["request"]["disk"] >= 100


def test_nothing_is_rented_where_nothing_fits_or_something_is_open(
    where: Paths, cloud: Cloud, typed: list[str], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("tui.platforms.renting.LOOK_S", 0.05)
    monkeypatch.setattr("tui.platforms.renting.UP_S", 0.2)
    assert main(["up", "runpod", "--gpu", "GB200:1", *IMAGE]) == 1
    assert "None of 2 offers" in capsys.readouterr().err
    assert main(["up", "runpod", "--gpu", "≥≥", *IMAGE]) == 2
    capsys.readouterr()
    assert main(["up", "runpod", "--dry-run"]) == 2  # RunPod wants an image; what there is can be seen
    told = capsys.readouterr().err
    assert "rent     1 × L4" in told
    assert "Give it with --set" in told
    assert main(["up"]) == 2
    assert main(["up", "nowhere"]) == 1
    mark(where, Sent(platform="runpod", name="x", at="today", run="other"))
    capsys.readouterr()
    assert main(["up", "runpod", *IMAGE]) == 1
    assert "rgt relaunch other --rent looks what became of it" in capsys.readouterr().err
    (where.state / "renting-runpod.json").unlink()
    mark(where, Sent(platform="runpod", name="x", at="today"))
    assert main(["up", "runpod", *IMAGE]) == 4
    assert "say so with --not-there" in capsys.readouterr().err
    assert cloud.asked == []


def test_a_dry_run_leaves_an_open_request_as_it_is(
    where: Paths, cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Sent(platform="runpod", name="x", at="today")
    mark(where, before)
    cloud.create("x")
    assert main(["up", "runpod", *IMAGE, "--dry-run", "--not-there"]) == 1
    assert "rgt up runpod looks what became of it" in capsys.readouterr().err
    assert main(["up", "runpod", *IMAGE, "--not-there"]) == 1  # the account lists it
    assert "The account lists it: 9001" in capsys.readouterr().err
    assert find(where, "runpod") == before
    assert settings.load(where.fleet_file).instances == ()
    assert len(cloud.boxes) == 1


def test_the_word_that_nothing_is_there_is_said_of_one_platform(
    where: Paths, cloud: Cloud, tmp_path: Path
) -> None:
    job = tmp_path / "job.toml"
    job.write_text('name = "t"\nproject = "p"\nrun = ["true"]\nplatforms = ["runpod", "vastai"]\n')
    for platform in ("runpod", "vastai"):
        mark(where, Sent(platform=platform, name="x", at="today"))
    assert main(["up", "--for", str(job), "--not-there"]) == 2
    assert None not in (find(where, "runpod"), find(where, "vastai"))


def test_a_machine_at_the_address_of_an_old_box_is_told_to_bill(
    where: Paths, sshd: Sshd, cloud: Cloud, typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Platforms give addresses out again."""
    assert main(["add", f"ssh -p {sshd.port} root@{sshd.host}", "--name", "old"]) == 0
    words = ["up", "runpod", *IMAGE, "--key", str(sshd.client_key)]
    typed.append("rent")
    assert main(words) == 1
    told = capsys.readouterr().err
    assert "already in the fleet as old" in told
    assert "9001 is rented and bills" in told
    assert main(["remove", "old"]) == 0
    assert main(words) == 0
    assert [one.instance_id for one in settings.load(where.fleet_file).instances] == ["9001"]
    assert len(cloud.asked) == 1


def test_what_would_fail_after_the_money_fails_before_it(
    where: Paths, cloud: Cloud, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "runpod", *IMAGE, "--key", str(tmp_path / "none")]) == 2
    assert "There is no key at" in capsys.readouterr().err
    with pytest.raises(Failure, match="names no account other"):
        account_of(where, "runpod", "other")
    assert cloud.asked == []


def test_of_two_that_see_the_machine_come_up_one_puts_it_into_the_fleet(where: Paths) -> None:
    machine = Machine("m1", "a-1", "running", endpoint=Endpoint("203.0.113.9", 2222))
    rented = Rented(machine, Sent(platform="runpod", name="a-1", at="today"))
    want = Want("runpod", "a", Resources(), Terms(), account="pods")
    assert [_added(rented, want, where) for _ in range(2)] == ["a-1", "a-1"]
    (box,) = settings.load(where.fleet_file).instances
    assert (box.instance_id, box.account) == ("m1", "pods")

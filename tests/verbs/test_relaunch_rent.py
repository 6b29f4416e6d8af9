"""`rgt relaunch --rent`: the machine a run goes on at is rented in the same plan, by one word, and once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.platforms.fake_provider import serving
from tests.platforms.world import KEY, Box
from tests.rig import Sshd
from tests.verbs.cloud import Cloud, typed
from tests.verbs.launched import box, where
from tests.verbs.test_relaunch import copied, end, other, run
from tui.cli import main
from tui.custody.keyboard import no_terminal
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.model.instance import Instance
from tui.platforms.sent import Sent, Terms, find, keep_terms, mark
from tui.runs.book import book
from tui.workers.launch_once import worked_out

__all__ = ["box", "other", "run", "typed", "where"]

OLD = "77001"
TERMS = ("--set", "image=runpod/pytorch:1")


@pytest.fixture
def cloud(
    where: Paths, box: Sshd, other: Sshd, run: Path, monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Cloud]:  # fmt: skip
    """The run's box is one of a vendor's; it died, and what is rented next is the other sshd."""
    platform: str = getattr(request, "param", "runpod")
    end(box, run)
    other.authorize(box.client_key.with_suffix(".pub").read_text())
    world = Cloud(other, platform)
    world.add(Box(OLD, name="box-1"))
    page = book(where).page(run.name)
    book(where).move(page.model_copy(update={"platform": platform, "instance_id": OLD}))
    monkeypatch.setenv("POD_KEY", KEY)
    with serving(world, platform) as base:
        first = f'[instances.box-1]\nplatform = "{platform}"\ninstance_id = "{OLD}"\n'
        text = where.fleet_file.read_text().replace('[instances.box-1]\nplatform = "ssh"\n', first)
        kept = text.partition("[instances.box-2]")[0] + "[runs" + text.partition("[runs")[2]
        where.fleet_file.write_text(
            f'{kept}\n[accounts.pods]\nplatform = "{platform}"\nurl = "{base}"\nkey_env = "POD_KEY"\n'
        )
        yield world


@pytest.fixture
def words(run: Path, other: Sshd, tmp_path: Path) -> list[str]:
    copy = copied(run, tmp_path)
    return ["relaunch", run.name, "--rent", "--from", str(copy), "--dir", f"{other.home}/rgt"]


def new_box(where: Paths) -> Instance:
    (found,) = [one for one in settings.load(where.fleet_file).instances if one.name != "box-1"]
    return found


def test_one_plan_rents_the_cheapest_that_fits_and_goes_on_there(
    where: Paths, other: Sshd, run: Path, cloud: Cloud, typed: list[str], words: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert main([*words, *TERMS, "--dry-run"]) == 0
    plan = capsys.readouterr().err
    assert "rent     1 × L4 80 GB" in plan
    assert "0.44 USD/h from then on" in plan
    assert "--offer 'NVIDIA H100@SECURE'" in plan
    assert "POST /v2/pods" in plan
    assert '"image": "runpod/pytorch:1"' in plan
    typed.append("yes")
    assert main([*words, *TERMS]) == 1
    assert "Nothing was rented, nothing was started." in capsys.readouterr().err
    assert cloud.asked == []
    typed.append("rent")
    assert main([*words, *TERMS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] in ("runs", "first-step")
    there = other.home / "rgt/p/active" / run.name
    assert (there / ".rgt/attempts/1/holder").is_file()
    assert (there / "train.log").read_text().startswith("step ")
    made = new_box(where)
    assert made.name.startswith(run.name[:20])
    assert (made.platform, made.instance_id, made.price_per_hour) == ("runpod", "9001", 1.5)
    assert (book(where).page(run.name).box, find(where, "runpod")) == (made.name, None)
    assert [body["name"] for body in cloud.asked] == [made.name]
    assert main([*words, *TERMS]) == 1  # it runs there: no second machine
    assert "may be at work" in capsys.readouterr().err
    assert len(cloud.asked) == 1
    assert main(["receipts", "--json"]) == 0
    acts = [one["act"] for one in json.loads(capsys.readouterr().out)["receipts"]]
    assert acts[-3:] == ["rent", "relaunch", "launch"]


@pytest.mark.parametrize("cloud", ["vastai"], indirect=True)
def test_another_platform_is_asked_in_its_own_words(
    where: Paths, other: Sshd, run: Path, cloud: Cloud, typed: list[str], words: list[str]
) -> None:
    typed.append("rent")
    assert main([*words, *TERMS]) == 0
    assert (other.home / "rgt/p/active" / run.name / ".rgt/attempts/1/holder").is_file()
    assert len(cloud.asked) == 1
    assert new_box(where).platform == cloud.platform


def test_without_a_keyboard_or_with_a_run_that_may_live_nothing_is_rented(
    where: Paths, box: Sshd, run: Path, cloud: Cloud, words: list[str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def nobody(_prompt: str, _timeout: float) -> str:
        raise no_terminal()

    monkeypatch.setattr("tui.custody.keyboard.read_line", nobody)
    assert main([*words, *TERMS]) == 4
    assert main(words) == 2
    assert "Give it with --set" in capsys.readouterr().err
    assert main([*words, *TERMS, "--offer", "nonsense"]) == 1
    box.stop_listening()
    assert main([*words, *TERMS]) == 3
    assert "is not known" in capsys.readouterr().err
    assert cloud.asked == []
    assert find(where, "runpod") is None


def test_the_terms_of_the_old_machine_hold_for_the_new_one(
    where: Paths, cloud: Cloud, typed: list[str], words: list[str]
) -> None:
    keep_terms(where, "runpod", OLD, Terms(image="mine:2", disk_gb=70, more={"templateId": "t1"}))
    typed.append("rent")
    assert main(words) == 0
    (body,) = cloud.asked
    assert (body["image"], body["disk"], body["templateId"]) == ("mine:2", 70, "t1")


def test_the_checkpoints_are_those_of_the_durable_copy(
    other: Sshd, run: Path, cloud: Cloud, typed: list[str], words: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("tui.custody.roster.SETTLE_S", 0.05)
    pulled = ["relaunch", run.name, "--rent", "--pulled", *words[-2:], *TERMS]
    assert main(pulled) == 2
    assert f"rgt pull {run.name} --to DEST" in capsys.readouterr().err
    main(["roster", run.name, "--verb", "stop"])
    assert main(["digest", run.name]) == 0, capsys.readouterr()
    assert main(["pull", run.name, "--to", str(tmp_path / "vault")]) == 0, capsys.readouterr()
    typed.append("rent")
    assert main(pulled) == 0, capsys.readouterr()
    there = other.home / "rgt/p/active" / run.name
    first = next(line for line in (there / "train.log").read_text().split("\n") if line.startswith("step"))
    assert int(first.split("/")[0].split()[1]) == int((run / "ckpt-1").read_text()) + 1
    assert len(cloud.asked) == 1


def test_an_answer_that_never_came_is_looked_for_and_not_asked_again(
    where: Paths, other: Sshd, run: Path, cloud: Cloud, typed: list[str], words: list[str],
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("tui.platforms.renting.LOOK_S", 0.05)
    monkeypatch.setattr("tui.platforms.renting.UP_S", 0.5)
    cloud.script.append(("POST /v2/pods", (502, {"title": "bad gateway"}, {})))
    typed.append("rent")
    assert main([*words, *TERMS]) == 1
    assert "It may exist and bill." in capsys.readouterr().err
    assert main([*words, *TERMS]) == 4  # and nobody was asked for a word
    assert "say so with --not-there" in capsys.readouterr().err
    assert len(cloud.asked) == 1
    cloud.create(str(cloud.asked[0]["name"]))  # it comes up late
    assert main([*words, *TERMS]) == 0
    assert (other.home / "rgt/p/active" / run.name / ".rgt/attempts/1/holder").is_file()
    assert len(cloud.asked) == 1


def test_the_operators_word_that_there_is_no_machine_rents_anew(
    where: Paths, run: Path, cloud: Cloud, typed: list[str], words: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    mark(where, Sent(platform="runpod", name="x", at="today", run="other"))
    assert main([*words, *TERMS, "--not-there"]) == 1
    assert "A request to this platform is open" in capsys.readouterr().err
    (where.state / "renting-runpod.json").unlink()
    mark(where, Sent(platform="runpod", name="x", at="today", run=run.name))
    typed.append("rent")
    assert main([*words, *TERMS, "--not-there"]) == 0
    assert len(cloud.asked) == 1


STEPS = (
    "call:tui.platforms.sent:keep_terms",
    "call:tui.verbs.renting:_added",
    "call:tui.runs.book:Book.set_rented",
    "call:tui.verbs.renting:_receipt",
    "call:tui.platforms.sent:drop",
    "call:tui.runs.book:Book.move",
    "after:lay down the run's plan",
)


@pytest.mark.slow
def test_killed_at_every_step_it_rents_once_and_begins_once(
    where: Paths, other: Sshd, run: Path, cloud: Cloud, words: list[str], capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for step in STEPS:
        child = [sys.executable, "-m", "tests.verbs.typing_child", "rent", step, *words, *TERMS]
        done = subprocess.run(child, capture_output=True, timeout=90, check=False)
        assert done.returncode == -signal.SIGKILL, (step, done.stderr.decode()[-2000:])
        assert len(cloud.asked) == 1, step
    assert main([*words, *TERMS]) == 0
    there = other.home / "rgt/p/active" / run.name
    assert [one.name for one in (there / ".rgt/attempts").iterdir()] == ["1"]
    assert len(cloud.asked) == 1
    assert find(where, "runpod") is None
    assert book(where).page(run.name).box == new_box(where).name


def test_what_a_new_machine_would_lack_is_told_before_any_money(
    where: Paths, run: Path, cloud: Cloud, words: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    page = book(where).page(run.name)
    file = tmp_path / "code" / "job.toml"
    file.write_text(file.read_text() + '[[inputs]]\npath = "/data/train.bin"\n')
    task = worked_out(file, Instance("new", "runpod", None), where)
    book(where).move(page.model_copy(update={"job": task.job, "code": task.tree.digest}))
    assert main([*words, *TERMS]) == 1
    assert "/data/train.bin must be there" in capsys.readouterr().err
    assert cloud.asked == []


def test_every_way_in(cloud: Cloud, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    check: Callable[[list[str]], int] = lambda more: main([*words, *more])  # noqa: E731
    assert check([*TERMS, "--set", "nonsense"]) == 2
    assert check([*TERMS, "--set", "gpus=two"]) == 2
    assert "whole number" in capsys.readouterr().err
    assert check([*TERMS, "--set", "gpus=2", "--dry-run"]) == 0
    assert "0.88 USD/h from then on" in capsys.readouterr().err
    assert cloud.asked == []


def test_a_secret_that_is_not_set_here_is_told_before_any_money(
    where: Paths, run: Path, cloud: Cloud, words: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    page = book(where).page(run.name)
    file = tmp_path / "code" / "job.toml"
    file.write_text('secrets = ["RGT_NOT_SET"]\n' + file.read_text())
    task = worked_out(file, Instance("new", "runpod", None), where)
    book(where).move(page.model_copy(update={"job": task.job, "code": task.tree.digest}))
    assert main([*words, *TERMS]) == 1
    assert "needs the secret RGT_NOT_SET, which is not set here" in capsys.readouterr().err
    assert cloud.asked == []


def test_a_dry_run_onto_a_machine_that_was_rented_brings_nothing_there(
    where: Paths, box: Sshd, other: Sshd, run: Path, cloud: Cloud, words: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    page = book(where).page(run.name)
    file = tmp_path / "code" / "job.toml"
    data, there = tmp_path / "set.bin", other.home / "set.bin"
    data.write_bytes(b"x" * 1000)
    file.write_text(file.read_text() + f'[[inputs]]\npath = "{there}"\nhere = "{data}"\n')
    task = worked_out(file, Instance("new", "runpod", None), where)
    book(where).move(page.model_copy(update={"job": task.job, "code": task.tree.digest}))
    login = f"ssh -p {other.port} -i {box.client_key} root@{other.host}"
    assert main(["add", login, "--name", "new", "--platform", "runpod", "--instance-id", "9001"]) == 0
    book(where).set_rented(run.name, "new")
    assert main([*words, *TERMS, "--dry-run"]) in (0, 1)
    told = capsys.readouterr().err
    assert "rented before: new" in told
    assert "set.bin" in told
    assert "Nothing was started." in told
    assert not there.exists()

"""`rgt hold`, `stop`, `down`, `receipts`, `evidence` on a real sshd, with a person at a real terminal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.rig.person import Person
from tui.box.transport import Script, Transport
from tui.cli import main
from tui.custody import by_hand
from tui.custody.by_hand import reminders
from tui.custody.keyboard import no_terminal
from tui.custody.moments import moment
from tui.custody.receipts import verify_chain
from tui.custody.records import records
from tui.fleet.paths import Paths, paths
from tui.model.custody import (
    CheckpointFinding,
    CopyReport,
    DigestReport,
    LoadReport,
    MetricReport,
    Place,
    ReadbackReport,
    Roster,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sshd: Sshd) -> Paths:
    """One box on a real sshd, with a finished run of two files."""
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "rgt"))
    results = sshd.home / "results"
    (results / "ckpt").mkdir(parents=True)
    (results / "ckpt" / "best.safetensors").write_bytes(b"weights" * 100)
    (results / "train.csv").write_bytes(b"step,loss\n1,0.5\n")
    found = paths()
    write_fleet(found, sshd, "autodl")
    return found


def write_fleet(where: Paths, sshd: Sshd, platform: str) -> None:
    where.fleet_file.parent.mkdir(parents=True, exist_ok=True)
    where.fleet_file.write_text(
        f"""
[instances.box-1]
platform = "{platform}"
host = "{sshd.host}"
port = {sshd.port}
user = "{sshd.user}"
key = "{sshd.client_key}"
mounts = ["{sshd.home}"]
instance_id = "abc-1"
price_per_hour = 2.0

[runs.r1]
box = "box-1"
log = "{sshd.home}/results/train.csv"
checkpoints = "{sshd.home}/results/ckpt/*"
"""
    )


def rgt(*words: str) -> int:
    return main(list(words))


def nobody(*_: object) -> str:
    raise no_terminal()


@pytest.fixture
def no_keyboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a job of cron; the tests themselves may well run in a terminal."""
    monkeypatch.setattr("tui.custody.keyboard.read_line", nobody)
    monkeypatch.setattr("tui.custody.keyboard.require_terminal", nobody)


def test_hold_unhold_and_the_receipts_of_both(where: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert rgt("hold", "r1", "--reason", "the referee may ask") == 0
    assert rgt("hold", "box-1", "--reason", "and so may the editor", "--json") == 0
    assert rgt("unhold", "box-1") == 0
    assert rgt("unhold", "box-1") == 1
    capsys.readouterr()
    assert rgt("receipts", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["act"] for one in told["receipts"]] == ["hold", "hold", "unhold"]
    assert told["holds"] is True
    assert told["receipts"][1]["detail"] == "and so may the editor"


def test_the_table_of_codes_tells_what_clears_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert rgt("receipts", "--codes") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("refusal  corrupt-lfs-pointer ") and "git lfs pull" in line for line in lines)
    assert any(line.startswith("gap      same-device ") for line in lines)
    assert rgt("receipts", "--codes", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["copy-changed"]["kind"] == "refusal"
    assert all(one["means"] and one["clears"] for one in told.values())


def test_receipts_names_the_first_bad_one(where: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        rgt("hold", "box-1", "--reason", "why")
    path = where.receipts / "000002.json"
    path.write_bytes(path.read_bytes().replace(b'"why"', b'"who"'))
    capsys.readouterr()
    assert rgt("receipts") == 1
    assert "000002.json was changed" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("hold", "box-1", "--reason", "x"), ("stop", "box-1"), ("down", "r1")])
def test_read_only_mode_does_none_of_it(
    where: Paths, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert rgt("--read-only", *words) == 1
    assert "read-only" in capsys.readouterr().err
    assert not list(where.receipts.glob("0*.json"))


def stop_script(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`shutdown` on this box leaves a mark and does nothing else."""
    mark = sshd.home / "was-stopped"
    monkeypatch.setitem(by_hand.IN_BOX, "shutdown", Script('echo once >> "$1"', (str(mark),)))
    monkeypatch.setattr("tui.verbs.down._AFTER_IN_BOX_S", 0.0)
    for place in ("tui.custody.by_hand", "tui.workers.box_look"):
        monkeypatch.setattr(f"{place}.on_this_computer", elsewhere)
    return mark


async def elsewhere(_transport: Transport) -> bool:
    """The rig's box is taken for one that runs on another computer."""
    return False


def test_stop_never_shuts_down_the_operators_own_computer(
    where: Paths, sshd: Sshd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = sshd.home / "was-stopped"
    monkeypatch.setitem(by_hand.IN_BOX, "shutdown", Script('echo once >> "$1"', (str(mark),)))
    for words in (("stop", "box-1"), ("stop", "box-1", "--anyway", "it hangs")):
        assert rgt(*words) == 1
        assert "runs on this computer" in capsys.readouterr().out
    assert not mark.exists()


def test_stop_sends_the_verb_of_the_profile_and_asks_for_the_operators_word(
    where: Paths, sshd: Sshd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = stop_script(sshd, monkeypatch)
    monkeypatch.setattr("tui.custody.keyboard.read_line", nobody)
    assert rgt("stop", "box-1") == 4
    told = capsys.readouterr().out
    assert "bills afterwards: data disk beyond the free size: ? CNY" in told
    assert "15 days" in told
    assert "UNPROVEN" in told
    assert mark.read_text() == "once\n"
    assert [one.verb for one in reminders(where)] == ["stop"]
    monkeypatch.setattr("tui.custody.keyboard.read_line", lambda *_: "stopped")
    assert rgt("stop", "box-1") == 0
    assert "ATTESTED by your word, not proven" in capsys.readouterr().out
    assert mark.read_text() == "once\n"  # not sent again
    assert reminders(where) == ()
    results = [one.receipt.result for one in verify_chain(where.receipts).receipts]
    assert results == ["unproven", "attested"]


def test_stop_refuses_a_busy_box_unless_there_is_a_reason(
    where: Paths, sshd: Sshd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = stop_script(sshd, monkeypatch)
    monkeypatch.setattr("tui.custody.keyboard.read_line", nobody)
    busy = subprocess.Popen(["sleep", "60"])
    try:
        with where.fleet_file.open("a") as fleet:
            fleet.write(f"pid = {busy.pid}\n")
        assert rgt("stop", "box-1") == 1
        assert "run r1 is running" in capsys.readouterr().out
        assert not mark.exists()
        assert rgt("stop", "box-1", "--anyway", "it hangs") == 4
        assert mark.exists()
    finally:
        busy.kill()
        busy.wait()


def test_stop_of_an_unreachable_box_is_refused_and_says_why(
    where: Paths, sshd: Sshd, no_keyboard: None, capsys: pytest.CaptureFixture[str]
) -> None:
    sshd.stop()
    assert rgt("stop", "box-1") == 1
    assert "box-unknown" in capsys.readouterr().out


def test_stop_where_it_may_lose_data_takes_the_chain(
    where: Paths, sshd: Sshd, no_keyboard: None, capsys: pytest.CaptureFixture[str]
) -> None:
    write_fleet(where, sshd, "runpod")
    assert rgt("stop", "box-1") == 1
    shown = capsys.readouterr()
    assert "takes the chain" in shown.out
    assert "rgt roster r1" in shown.err


def walk_the_chain(where: Paths, sshd: Sshd, vault: Path) -> None:
    """Roster and digest by rgt itself; what comes after them as it would report a copy to this computer."""
    write_fleet(where, sshd, "ssh")
    assert rgt("roster", "r1", "--root", str(sshd.home / "results")) == 0
    assert rgt("digest", "r1") == 0
    stored = records(where, "r1")
    digests = stored.need(DigestReport, "")
    shutil.copytree(sshd.home / "results", vault)
    now = moment(time.time())
    copied = CopyReport(
        digests=digests.digest,
        destination=Place(kind="path", path=str(vault)),
        route="through this computer",
        files=digests.files,
        size=sum(one.size for one in digests.files),
        bag=digests.files,
        finished_at=now,
    )
    readback = ReadbackReport(
        copy_report=copied.digest,
        consumer=Place(kind="path", path="/tmp/fresh"),
        independence="same-device",
        cold=True,
        files=digests.files,
        finished_at=now,
    )
    findings = tuple(
        CheckpointFinding(path=one.path, verdict="ok")
        for one in stored.need(Roster, "").artifacts
        if one.role == "checkpoint"
    )
    load = LoadReport(readback=readback.digest, checkpoints=findings, finished_at=now)
    metrics = MetricReport(load=load.digest, metrics=(), finished_at=now)
    for record in (copied, readback, load, metrics):
        stored.save(record)


def test_down_without_its_steps_names_them(
    where: Paths, no_keyboard: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rgt("down", "r1") == 1
    assert "rgt roster r1 · rgt digest r1 · rgt pull r1 --to DEST" in capsys.readouterr().err


def test_down_without_a_terminal_prints_the_plan_and_ends_with_4(
    where: Paths, sshd: Sshd, tmp_path: Path
) -> None:
    walk_the_chain(where, sshd, tmp_path / "vault")
    for stdin in (b"destroy box-1 00000000\n", None):
        done = subprocess.run(
            [sys.executable, "-m", "tui.cli", "down", "r1"],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            cwd=ROOT,
            start_new_session=True,
            timeout=60,
        )
        assert done.returncode == 4, done.stderr
        assert b"abc-1 at ssh" in done.stdout  # the plan
        assert b"no terminal" in done.stderr
    assert not (where.state / "teardown").exists()


@pytest.fixture
def people() -> Iterator[list[Person]]:
    made: list[Person] = []
    yield made
    for person in made:
        person.close()


DOWN = [sys.executable, "-m", "tui.cli", "down", "r1"]


def phrase_on(person: Person) -> bytes:
    person.sees(b"> ", 60.0)
    lines = person.screen.decode("utf-8", "replace").splitlines()
    return next(line.strip().encode() for line in lines if line.strip().startswith("destroy box-1 "))


def test_down_with_the_phrase_typed_goes_on_to_the_operators_word(
    where: Paths, sshd: Sshd, tmp_path: Path, people: list[Person]
) -> None:
    walk_the_chain(where, sshd, tmp_path / "vault")
    people.append(wrong := Person(DOWN))
    wrong.types(b"yes\ry\r")  # typed ahead
    typed = phrase_on(wrong)
    wrong.types(typed.upper() + b"\r")
    code, out = wrong.ends()
    assert code == 1
    assert "phrase-wrong" in out
    people.append(right := Person(DOWN))
    right.types(phrase_on(right) + b"\r")
    right.sees(b"What does the console show?", 60.0)
    right.types(b"gone\r")
    code, out = right.ends()
    assert (code, "ATTESTED by your word" in out) == (0, True), out
    report = verify_chain(where.receipts)
    assert report.holds
    acts = [(one.receipt.act, one.receipt.result) for one in report.receipts]
    assert acts[:2] == [("roster", "passed"), ("digest-report", "passed")]
    assert acts[2:] == [("destroy", "unproven"), ("destroy", "attested")]
    first = report.receipts[2].receipt
    assert first.run == "r1"
    assert first.evidence[0].uri == str(tmp_path / "vault")
    assert {"proof", "approval", "roster", "readback"} <= {one.name for one in first.subjects}


def test_down_refuses_when_a_file_changed_since_the_proof(
    where: Paths, sshd: Sshd, tmp_path: Path, people: list[Person]
) -> None:
    walk_the_chain(where, sshd, tmp_path / "vault")
    people.append(person := Person(DOWN))
    typed = phrase_on(person)
    (sshd.home / "results" / "ckpt" / "newer.safetensors").write_bytes(b"later")
    person.types(typed + b"\r")
    code, out = person.ends()
    assert code == 1
    assert "newer.safetensors" in out
    assert reminders(where) == ()


def test_down_asks_for_no_phrase_once_the_copy_is_not_what_was_read_back(
    where: Paths, sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walk_the_chain(where, sshd, tmp_path / "vault")
    (tmp_path / "vault" / "train.csv").unlink()
    capsys.readouterr()
    assert rgt("down", "r1", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert [(one["code"], one["detail"]) for one in told["refusals"]] == [
        ("copy-changed", "train.csv is missing.")
    ]


def test_a_held_box_is_not_even_asked_about(
    where: Paths, sshd: Sshd, tmp_path: Path, no_keyboard: None, capsys: pytest.CaptureFixture[str]
) -> None:
    walk_the_chain(where, sshd, tmp_path / "vault")
    rgt("hold", "box-1", "--reason", "the referee")
    capsys.readouterr()
    assert rgt("down", "r1", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["code"] for one in told["refusals"]] == ["held"]


def test_evidence_tells_usable_artifacts_first_and_then_what_is_residual(
    where: Paths, sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walk_the_chain(where, sshd, tmp_path / "vault")
    capsys.readouterr()
    assert rgt("evidence", "r1", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["path"], one["status"]) for one in told["artifacts"]] == [
        ("ckpt/best.safetensors", "loaded"),
        ("train.csv", "read back"),
    ]
    assert told["copy"]["uri"] == str(tmp_path / "vault")
    assert told["copy"]["consumer"].startswith("/tmp/fresh (same-device")
    assert rgt("evidence", "r1") == 0
    out = capsys.readouterr().out
    assert out.index("best.safetensors") < out.index("residual")
    os.unlink(where.fleet_file)
    assert rgt("evidence", "r1") == 0  # the evidence outlives the box

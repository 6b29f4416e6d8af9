"""`rgt triage`: saved logs of every sort, saved probes, and a run by name; one line for whatever is wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures import run_fixture
from tui.box.probe.as_json import telemetry_json
from tui.cli import main
from tui.model.failure import Exit
from tui.model.incident import Diagnosis
from tui.model.text import SafeText
from tui.verbs.triage import exit_of
from tui.workers import triage_once
from tui.workers.triage import load_rules

OOM = (
    "epoch 1/9 step 3/10 loss 0.51\n"
    "Traceback (most recent call last):\n"
    '  File "train.py", line 10, in <module>\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "23.64 GiB of which 1.05 GiB is free. Including non-PyTorch memory, this process has 22.58 GiB memory in "
    "use. Of the allocated memory 21.9 GiB is allocated by PyTorch, and 200.0 MiB is reserved by PyTorch but "
    "unallocated.\n"
)
FINE = "".join(f"epoch {n}/9 loss {1 / n:.3f} val_error=0.12\n" for n in range(1, 5))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "config").mkdir(parents=True)
    return tmp_path / "home"


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def saved(tmp_path: Path, data: str | bytes) -> str:
    path = tmp_path / "the log.txt"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def test_a_saved_log_names_the_class_its_line_and_what_to_do(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["triage", "--log", saved(tmp_path, OOM), "--json"]) == Exit.ATTENTION
    found = told(capsys)
    (first, *_) = found["incidents"]
    assert first["class"] == "cuda_oom"
    assert any(e["source"] == "log" and e["line"] == 4 for e in first["evidence"])
    assert set(first) >= {"class", "severity", "confidence", "retry", "evidence", "ruled_out", "remedy"}
    assert first["remedy"] and all(0 <= step["level"] <= 3 for step in first["remedy"])
    assert found["outcome"] in ("unknown", "dead")


def test_nothing_wrong_is_said_and_ends_with_zero(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["triage", "--log", saved(tmp_path, FINE)]) == Exit.FINE
    assert "Nothing is wrong" in capsys.readouterr().out
    assert main(["triage", "--log", saved(tmp_path, "")]) == Exit.FINE


@pytest.mark.parametrize(
    "data",
    [
        OOM.replace("\n", "\r\n").encode(),
        OOM.encode("utf-16"),
        b"\0" * 200_000 + b"\n" + OOM.encode(),  # a hole that copytruncate leaves
        "训练开始\n".encode("gbk") * 50 + OOM.encode(),
        b"\x1b[31m" + OOM.encode() + b"\xff\xfe\x80\n",
    ],
    ids=["crlf", "utf-16", "hole", "gbk", "colour and damage"],
)
def test_logs_as_they_really_are_get_the_right_answer(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    assert main(["triage", "--log", saved(tmp_path, data), "--json"]) == Exit.ATTENTION
    assert "cuda_oom" in [one["class"] for one in told(capsys)["incidents"]]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (os.urandom(200_000), "is no text"),
        (gzip.compress(OOM.encode()), "is gzip"),
        (b"PK\x03\x04" + os.urandom(100), "is a zip file"),
    ],
)
def test_what_is_no_log_is_one_clear_line(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, says: str
) -> None:
    assert main(["triage", "--log", saved(tmp_path, data)]) == Exit.USAGE
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


@pytest.mark.parametrize("name", ["missing.log", ".", "a\0b"])
def test_a_path_that_cannot_be_read_is_one_clear_line(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["triage", "--log", name]) == Exit.USAGE
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["x", "--log", "y"], ["--log", "-", "--probe", "-"]])
def test_a_wrong_call_is_refused(home: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["triage", *words]) == Exit.USAGE
    assert capsys.readouterr().err.count("\n") == 1


def test_a_saved_probe_tells_what_is_true_now(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = tmp_path / "probe.json"
    probe.write_text(json.dumps(telemetry_json(run_fixture.telemetry())))
    log = saved(tmp_path, FINE)
    code = main(["triage", "--log", log, "--probe", str(probe), "--json"])
    found = told(capsys)
    assert found["outcome"] == "running"
    assert found["taken_at"] == pytest.approx(run_fixture.NOW - 1.2)
    assert code in (Exit.FINE, Exit.ATTENTION)
    assert main(["triage", "--log", log, "--probe", str(probe), "--run", "nobody"]) == Exit.USAGE
    assert "does not tell of nobody" in capsys.readouterr().err
    probe.write_text("inodes: many")
    assert main(["triage", "--log", log, "--probe", str(probe)]) == Exit.USAGE
    assert "it is no JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("outcome", "live", "code"),
    [
        ("running", True, Exit.FINE), ("finished", True, Exit.FINE), ("dead", True, Exit.ATTENTION),
        ("stalled", True, Exit.ATTENTION), ("unknown", True, Exit.UNKNOWN), ("unknown", False, Exit.FINE),
        ("unreachable", True, Exit.UNREACHABLE),
    ],
)  # fmt: skip
def test_exit_codes_tell_outcomes_apart(outcome: Any, live: bool, code: Exit) -> None:
    assert exit_of(Diagnosis(outcome, SafeText("")), live=live) is code


def test_a_run_by_name_is_looked_at_on_its_box(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"
    log.write_text("x\n" * 40 + OOM)
    (home / "config" / "fleet.toml").write_text(
        '[instances.here]\nplatform = "local"\n'
        f'[runs.mine]\nbox = "here"\nlog = "{log}"\npid = {2**22 + 1}\npid_start = 5\n'
        '[instances.away]\nplatform = "ssh"\nhost = "127.0.0.1"\nport = 1\n'
        '[runs.far]\nbox = "away"\nlog = "/x"\npid = 7\n'
    )
    assert main(["triage", "mine", "--json"]) == Exit.ATTENTION
    found = told(capsys)
    assert found["outcome"] == "dead"
    assert found["incidents"][0]["class"] == "cuda_oom"
    assert any(e["line"] == 44 for e in found["incidents"][0]["evidence"])
    assert {one["what"] for one in found["looked_at"]} >= {"probe", "log (44 lines)", "disks"}
    assert main(["triage", "here"]) == Exit.ATTENTION  # a box stands for its only run
    assert main(["triage", "far"]) == Exit.UNREACHABLE
    assert main(["triage", "nobody"]) == Exit.USAGE


def test_the_end_of_a_log_is_said_to_be_that_and_all_of_it_is_read_when_asked(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error at the beginning, and then more than is read of a log by itself."""
    monkeypatch.setattr(triage_once, "LOG_BYTES", 1 << 20)
    monkeypatch.setattr(triage_once, "STEP", 1 << 20)
    log = tmp_path / "train.log"
    log.write_text(OOM + "waiting for the other ranks\n" * 100_000)
    (home / "config" / "fleet.toml").write_text(
        '[instances.here]\nplatform = "local"\n'
        f'[runs.mine]\nbox = "here"\nlog = "{log}"\npid = {2**22 + 1}\npid_start = 5\n'
    )
    main(["triage", "mine"])
    said = capsys.readouterr()
    assert "cuda_oom" not in said.out
    first = 100_004 - (1 << 20) // 28
    assert f"log (lines {first:,} to 100,004; what lies before was not read)" in said.out
    assert f"the last 1 MiB of the log, from line {first:,} on; --whole reads all of it" in said.err
    assert main(["triage", "mine", "--whole"]) == Exit.ATTENTION
    said = capsys.readouterr()
    assert "cuda_oom (line 4):" in said.out
    assert "log (100,004 lines)" in said.out
    assert f"rgt: read the whole log: {log.stat().st_size:,} bytes" in said.err
    assert said.err.count(f" of {log.stat().st_size:,} bytes of the log") == 2
    log.unlink()
    main(["triage", "mine", "--whole"])
    assert "log (not read)" in capsys.readouterr().out
    assert main(["triage", "--log", str(tmp_path / "x"), "--whole"]) == Exit.USAGE


async def test_a_log_that_stops_coming_is_not_taken_for_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent:
        name, exit, rest = "b", None, [b"1000000\nhalf", b" of it\n"]

        async def open(self, *_: object, **__: object) -> Silent:
            return self

        async def read(self, size: int) -> bytes:
            if not self.rest:
                await asyncio.Event().wait()
            return self.rest.pop(0)

        async def close(self) -> None:
            pass

    monkeypatch.setattr(triage_once, "SILENCE_S", 0.05)
    lines: list[str] = []
    found = await triage_once._log_whole(Silent(), "/x", load_rules(home), lines.append)  # type: ignore[arg-type]
    assert found == (None, b"")
    assert lines == ["the log stopped coming after 11 of 1,000,000 bytes; nothing of it is used"]

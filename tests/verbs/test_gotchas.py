"""`rgt gotchas`: answers for people and programs, own entries, and a kept copy that never lies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui.cli import main
from tui.verbs import gotchas
from tui.verbs.known import KEPT

OWN = """\
---
id: x_own_cluster
title: The blue partition loses its scratch at noon
group: storage
plane: control
words: [blue partition, scratch vanishes at noon, 蓝色 分区]
remedy:
  - {text: Look at the clock, level: 0}
sources:
  - {from: 'the cluster handbook', verified: 2026-11}
---
## Symptom
Files under /scratch are gone after noon.

## Root cause
A cron job of the cluster cleans it.

## Fix
Copy to /home before noon.

## Confirm
The files are there at one.
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("RGT_HOME", str(tmp_path))
    monkeypatch.setattr(gotchas, "columns", lambda: 60)
    yield tmp_path


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["gotchas", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def found(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, str]]:
    code, out, _ = asked(capsys, *words, "--json")
    results: list[dict[str, str]] = json.loads(out)["results"]
    assert code == (0 if results else 1)
    return results


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["loss", "low", "but", "samples", "blurry"], "x_diff_low_loss_blurry"),
        (["loss low but samples blurry"], "x_diff_low_loss_blurry"),
        (["断点", "恢复", "epoch", "从", "0"], "x_resume_epoch_zero"),
        (["断点恢复epoch从0"], "x_resume_epoch_zero"),
        (["autodl", "stopped box is gone after 15 days, 释放"], "AD10"),
    ],
)
def test_plain_words_find_the_entry(
    words: list[str], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results = found(capsys, *words)
    assert results[0]["id"] == wanted
    assert set(results[0]) == {"id", "title", "source", "text"}
    assert all(value.strip() for value in results[0].values())


def test_an_answer_can_be_read_on_a_narrow_screen(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, "gpu utilisation jumps, 利用率 低", "--limit", "3")
    assert code == 0
    assert all(len(line) <= 60 for line in out.splitlines())
    ids = [line.strip()[2:] for line in out.splitlines() if line.startswith("  > ")]
    assert 1 <= len(ids) <= 3
    code, page, _ = asked(capsys, ids[0].upper())
    assert code == 0
    for heading in ("Symptom", "Root cause", "Fix", "Confirm", "Steps", "Source: "):
        assert heading in page


def test_a_gotcha_of_a_profile_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    (only,) = found(capsys, "ad14")
    assert only["id"] == "AD14"
    assert only["source"].endswith("autodl.md")


def test_a_platform_leaves_the_others_out(capsys: pytest.CaptureFixture[str]) -> None:
    results = found(capsys, "No space left on device", "--platform", "runpod", "--limit", "20")
    sources = {row["source"].split("/")[-1] for row in results}
    profiles = {name for name in sources if name in {"autodl.md", "runpod.md", "vastai.md", "ssh.md"}}
    assert profiles == {"runpod.md"}
    assert any(row["source"].startswith("catalog/") for row in results)
    code, _, said = asked(capsys, "disk", "--platform", "nimbus")
    assert code == 2
    assert "Profiles: autodl" in said


def test_nothing_fitting_is_said_and_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, "weather in Paris tomorrow")
    assert code == 1
    assert out.startswith("Nothing that is known fits these words. Try ")
    assert found(capsys, "weather in Paris tomorrow") == []


@pytest.mark.parametrize("words", [[], ["nan", "--limit", "0"], ["nan", "--limit", "many"]])
def test_a_wrong_call_is_one_line_of_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, said = asked(capsys, *words)
    assert (code, out, said.count("\n")) == (2, "", 1)


def test_own_entries_are_found_at_once_and_bad_ones_are_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = "scratch vanishes on the blue partition"
    assert "x_own_cluster" not in {row["id"] for row in found(capsys, question)}
    folder = home / "config" / "gotchas"
    folder.mkdir(parents=True)
    (folder / "x_own_cluster.md").write_text(OWN, encoding="utf-8")
    (folder / "x_bad.md").write_text("---\nid: x_bad\nwords: []\n---\n", encoding="utf-8")
    for _ in range(2):  # from the files, then from the kept copy
        code, out, said = asked(capsys, question)
        assert code == 0
        assert "x_own_cluster" in out
        assert "gotchas/x_bad.md:" in said
    (folder / "x_own_cluster.md").write_text(OWN.replace("blue", "green"), encoding="utf-8")
    assert found(capsys, "green partition scratch")[0]["title"].startswith("The green")
    (folder / "x_own_cluster.md").unlink()
    assert "x_own_cluster" not in {row["id"] for row in found(capsys, question)}


def test_hostile_text_of_an_own_entry_cannot_reach_the_terminal(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home / "config" / "gotchas"
    folder.mkdir(parents=True)
    (folder / "x_own_cluster.md").write_text(OWN.replace("cleans it", "cleans \x1b]0;owned\x07it"), "utf-8")
    for words in (["x_own_cluster"], ["blue partition scratch"], ["x_own_cluster", "--json"]):
        assert "\x1b" not in asked(capsys, *words)[1]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"mark": 1}', "\0\0\0"])
def test_a_damaged_copy_is_made_anew(home: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    found(capsys, "loss is nan")
    kept = home / "state" / KEPT
    whole = kept.read_text(encoding="utf-8")
    kept.write_text(damage, encoding="utf-8")
    assert found(capsys, "loss is nan")[0]["id"] == "loss_nan"
    assert kept.read_text(encoding="utf-8") == whole
    assert [path.name for path in kept.parent.iterdir()] == [KEPT]


def test_without_a_place_for_the_copy_it_is_only_slower(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "state").write_text("in the way", encoding="utf-8")
    assert found(capsys, "loss is nan")[0]["id"] == "loss_nan"


def test_the_second_answer_needs_half_a_second_of_the_processor_at_most(home: Path) -> None:
    code = (
        "import sys, time; from tui.cli import main; main(['gotchas', 'loss is nan', '--json']);"
        "heavy = {'pydantic', 'yaml', 'asyncssh', 'textual'} & set(sys.modules);"
        "print(time.process_time(), sorted(heavy), file=sys.stderr)"
    )
    used = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "RGT_HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        used.append(done.stderr.split(" ", 1))
    print(f"first {used[0][0]} s, second {used[1][0]} s of processor time")
    assert used[1][1].strip() == "[]"
    assert float(used[1][0]) <= 0.5

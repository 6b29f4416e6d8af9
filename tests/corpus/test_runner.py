"""The measure itself: it must notice what is wrong, missing or too much."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.__main__ import main
from tests.corpus.runner import Case, asked, misses, run

CASE = {
    "id": "A1-two-cards",
    "kind": "A",
    "source": "constructed",
    "ctx": {"cmd": "nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits", "rc": 0},
    "input": "0, 10\n1, [N/A]\n",
    "expect": {"gpus": [{"index": 0, "mem_used": 10}, {"index": 1, "mem_used": None}]},
    "why": "a number and a word",
}


def case(expect: dict[str, Any]) -> Case:
    return Case("A1", "A", None, 0, b"", b"", {}, expect)


def fields_missed(expect: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    return [miss.field for miss in misses(case(expect), expect, answer)]


@pytest.mark.parametrize(
    ("expect", "answer", "missed"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({"a": None}, {"a": None}, []),
        ({"a": None}, {"a": []}, ["a"]),
        ({"a": []}, {"a": None}, ["a"]),
        ({"a": 0}, {"a": False}, ["a"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, []),
        ({"a": [{"b": 1}]}, {"a": [{"b": 3}]}, ["a[0].b"]),
        ({"mem_used": 100}, {"mem_used": 100.9}, []),
        ({"mem_used": 100}, {"mem_used": 101.1}, ["mem_used"]),
        ({"util": 100}, {"util": 100.9}, ["util"]),
    ],
)
def test_compares_as_a_subset(expect: dict[str, Any], answer: dict[str, Any], missed: list[str]) -> None:
    assert fields_missed(expect, answer) == missed


def test_accepted_verdicts_are_no_misses() -> None:
    expect = {"incident": "gpu_lost", "accept": ["gpu_hung", None]}
    assert fields_missed(expect, {"incident": "gpu_hung"}) == []
    assert fields_missed(expect, {"incident": None}) == []
    assert fields_missed(expect, {"incident": "cuda_oom"}) == ["incident"]
    assert fields_missed(expect, {}) == ["incident"]


def test_parse_mode_leaves_verdicts_out() -> None:
    expect = {"incident": "gpu_lost", "severity": "fatal", "evidence_line": 1, "xid": 79}
    assert asked(case(expect), "parse") == {"xid": 79}
    assert asked(case(expect), "all") == expect


def folder(tmp_path: Path, *cases: dict[str, Any]) -> Path:
    (tmp_path / "A.jsonl").write_text("".join(json.dumps(one) + "\n" for one in cases), "utf-8")
    return tmp_path


def test_counts_passes_misses_and_kinds_without_code(tmp_path: Path) -> None:
    wrong = CASE | {"id": "A2", "expect": {"gpus": []}}
    unbuilt = CASE | {"id": "Z1", "kind": "Z", "expect": {"x": None}}
    verdict_only = CASE | {"id": "A3", "expect": {"incident": None}}
    summary = run(folder(tmp_path, CASE, wrong, unbuilt, verdict_only))
    assert (summary.total, summary.passed, summary.left_out, summary.false_alarms) == (3, 1, 1, 0)
    assert summary.by_kind == {"A": {"total": 2, "passed": 1}, "Z": {"total": 1, "passed": 0}}
    assert {miss.id for miss in summary.misses} == {"A2", "Z1"}


def test_prints_misses_then_one_line_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder(tmp_path, CASE | {"expect": {"gpus": None}}))]) == 1
    *told, last = capsys.readouterr().out.strip().split("\n")
    assert "A1-two-cards  gpus: expected null" in told[0]
    assert json.loads(last)["by_kind"] == {"A": {"total": 1, "passed": 0}}


def test_json_alone_and_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder(tmp_path, CASE)), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["total"], printed["passed"], printed["misses"]) == (1, 1, [])

"""A plan is plain files: words one a line, places filled in, and an identity over all of it."""

from __future__ import annotations

import pytest

from tui.model.failure import Failure
from tui.model.job import Job
from tui.runs.plan_files import PLAN, Where, plan_files, wrapper, wrapper_name

WHERE = Where(
    "/data/p/active/r-1", {"DATA_DIR": "/data", "PROXY_HOOK": "source /etc/turbo 2>/dev/null || true"}
)


def job(**changed: object) -> Job:
    return Job.model_validate({"name": "r", "project": "p", "run": ["true"], **changed})


def test_words_keep_their_braces_and_places_are_filled_in() -> None:
    files = plan_files(
        job(run=["x", '{"a": 1}', "{data}/d", "{run}", "{cell.lr}"]),
        Where("/r", {"DATA_DIR": "/d"}, {"lr": "1e-3"}),
    )
    assert files[f"{PLAN}/stages/01-train/argv"] == b'x\n{"a": 1}\n/d/d\n/r\n1e-3\n'


def test_a_place_that_is_not_known_stops_everything() -> None:
    with pytest.raises(Failure, match="durable"):
        plan_files(job(run=["x", "{durable}"]), WHERE)


def test_two_plans_are_one_only_if_every_word_is() -> None:
    one, same = plan_files(job(), WHERE), plan_files(job(), WHERE)
    other = plan_files(job(run=["true", ""]), WHERE)
    assert one[f"{PLAN}/id"] == same[f"{PLAN}/id"] != other[f"{PLAN}/id"]


def test_the_profile_speaks_first_and_the_job_last() -> None:
    seeded = job(env={"DATA_DIR": "/mine"}, seeds={"seed": 3, "deterministic": True})
    told = plan_files(seeded, WHERE)[f"{PLAN}/env"].decode().split("\n")
    assert "DATA_DIR=/mine" in told
    assert "DATA_DIR=/data" not in told
    assert {"RGT_SEED=3", "PYTHONHASHSEED=3", "CUBLAS_WORKSPACE_CONFIG=:4096:8"} <= set(told)


def test_a_proxy_hook_is_a_file_that_is_read_and_never_a_line_that_is_run() -> None:
    assert plan_files(job(), WHERE)[f"{PLAN}/hook"] == b"/etc/turbo\n"
    assert f"{PLAN}/hook" not in plan_files(job(), Where("/r", {"PROXY_HOOK": "eval evil"}))


def test_the_wrapper_is_named_by_its_content_and_is_no_part_of_what_the_plan_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An update of rgt must not make the command that started a run refuse to go on with it."""
    one = plan_files(job(), WHERE)
    assert one[wrapper_name()] == wrapper()
    monkeypatch.setattr("tui.runs.plan_files.wrapper", lambda: b"another\n")
    other = plan_files(job(), WHERE)
    assert other[f"{PLAN}/wrapper"] != one[f"{PLAN}/wrapper"]
    assert other[f"{PLAN}/id"] == one[f"{PLAN}/id"]

"""The recovery ladder: an exact allow-list, everything else protected, and the exact shortfall."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tui.triage.ladder import Found, Kept, Outlook, Survey, ladder, pressing

GB = 10**9
MOUNT = "/data"


def found(path: str, kind: str = "pip", size: int = 5 * GB, files: int = 100) -> Found:
    return Found(kind, path, "64:12:1700000000", size, files)


SURVEY = Survey(
    MOUNT,
    "/dev/nvme0n1",
    "ext4",
    used_bytes=95 * GB,
    size_bytes=100 * GB,
    used_inodes=10_000,
    inodes=1_000_000,
    by_bytes=(("/data", 95 * GB), ("/data/.cache/pip", 5 * GB), ("/data/ckpt", 60 * GB)),
    found=(found("/data/.cache/pip"),),
)


def test_the_resource_that_is_nearest_to_its_end_is_worked_on() -> None:
    assert pressing(SURVEY) == "bytes"
    assert pressing(replace(SURVEY, used_inodes=990_000)) == "inodes"
    assert pressing(replace(SURVEY, quota_used=49 * GB, quota_limit=50 * GB)) == "quota"


def test_what_is_proven_may_go_and_the_rest_stays_with_a_reason() -> None:
    made = ladder(SURVEY, box="b", at=0.0)
    assert [r.path for r in made.reclaim] == ["/data/.cache/pip"]
    assert made.to_free == 10 * GB
    assert made.frees == 5 * GB
    assert made.shortfall == 5 * GB
    stays = {str(p.path): str(p.why) for p in made.protected}
    assert stays == {"/data/ckpt": "nothing proves that it comes back"}


def test_enough_is_enough_and_an_unknown_limit_stays_unknown() -> None:
    plenty = replace(SURVEY, found=(found("/data/.cache/pip", size=20 * GB),))
    assert ladder(plenty, box="b", at=0.0).shortfall == 0
    blind = ladder(replace(SURVEY, size_bytes=None), box="b", at=0.0, resource="bytes")
    assert (blind.to_free, blind.shortfall, blind.expand_by) == (None, None, None)


def test_growth_until_the_end_of_the_run_says_how_much_larger_it_must_be() -> None:
    made = ladder(SURVEY, box="b", at=0.0, outlook=Outlook(per_s=1_000_000, left_s=10_000))
    assert made.expand_by == round((90 * GB + 10 * GB) * 100 / 85) - 100 * GB
    assert ladder(SURVEY, box="b", at=0.0, outlook=Outlook(per_s=1.0)).expand_by is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"open_paths": (("/data/.cache/pip/http/x", 41),)}, "in use by pid 41"),
        ({"recent": (("/data/.cache/pip/http", 3),)}, "last ten minutes"),
        ({"found": (found("/data/.cache/pip\n/etc"),)}, "cannot be shown exactly"),
        ({"found": (found("/data"),)}, "the mount itself"),
    ],
)
def test_what_is_active_or_not_exact_is_protected(change: dict[str, object], why: str) -> None:
    made = ladder(replace(SURVEY, **change), box="b", at=0.0)  # type: ignore[arg-type]
    assert made.reclaim == ()
    assert any(why in p.why for p in made.protected)


def test_a_folder_that_holds_a_runs_log_or_checkpoints_is_protected() -> None:
    kept = Kept((("/data/.cache/pip/run/train.log", "log"),))
    made = ladder(SURVEY, box="b", at=0.0, kept=kept)
    assert made.reclaim == ()
    assert "the log of a watched run lies there" in made.protected[0].why
    beside = Kept((("/data/.cache/piped", "checkpoint folder"),))
    assert ladder(SURVEY, box="b", at=0.0, kept=beside).reclaim


def test_unknown_kinds_are_never_proposed_and_nested_ones_count_once() -> None:
    survey = replace(
        SURVEY,
        found=(
            found("/data/.cache/pip"), found("/data/.cache/pip/x/__pycache__", "pycache"),
            found("/data/models", "whatever"), found("/data/hub", "tagged"),
            found("/data/hub/models--a--b", "hf"),
        ),
    )  # fmt: skip
    made = ladder(survey, box="b", at=0.0)
    assert {str(r.path) for r in made.reclaim} == {"/data/.cache/pip", "/data/hub/models--a--b"}


def test_late_and_unreadable_is_said() -> None:
    made = ladder(replace(SURVEY, unread=("2 processes could not be read",), whole=False), box="b", at=0.0)
    assert made.unread[0] == "2 processes could not be read"
    assert "lower bounds" in made.unread[1]


@pytest.mark.parametrize("name", ["plain", "two words", "it's", 'say "hi"', "$(touch pwned)", "-rf", "*"])
def test_a_command_removes_exactly_what_was_seen_and_nothing_that_changed(tmp_path: Path, name: str) -> None:
    target, other = tmp_path / name / "__pycache__", tmp_path / "other"
    target.mkdir(parents=True)
    other.mkdir()
    (target / "a.pyc").write_text("")
    seen = target.stat()
    identity = f"{seen.st_dev}:{seen.st_ino}:{int(seen.st_mtime)}"
    one = Found("pycache", str(target), identity, 4096, 2)
    survey = replace(SURVEY, found=(one, replace(one, path=str(other), identity="1:2:3")))
    made = ladder(survey, box="b", at=0.0, resource="inodes")
    for command in (str(r.command) for r in made.reclaim):
        subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, timeout=10, check=False)
    assert not target.exists()
    assert (tmp_path / name).exists()
    assert other.exists()  # it is another one than was looked at
    assert not (tmp_path / "pwned").exists()

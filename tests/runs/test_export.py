"""What an export must hold, by names and by figures; nothing is read here but text."""

from __future__ import annotations

import pytest

from tui.model.job import Job
from tui.runs.export import choose, figures_missing, read_json

FINISHED = ["metrics.json", "ckpt/best.pt", "train.log"]


def job(**custody: object) -> Job:
    found: dict[str, object] = {
        "name": "r", "project": "p", "run": ["x"], "finish": "metrics.json", "checkpoints": "ckpt/*.pt*",
    }  # fmt: skip
    return Job.model_validate(found | ({"custody": custody} if custody else {}))


@pytest.mark.parametrize(
    ("paths", "chosen", "says"),
    [
        (FINISHED, FINISHED, None),
        ([*FINISHED, "ckpt/latest.pth", "src/train.py"], FINISHED, None),
        (["metrics.json", "ckpt/latest.pth"], ["metrics.json"], "but latest.pth, which is no result"),
        (["metrics.json", "train.log"], ["metrics.json", "train.log"], "Nothing matches ckpt/*.pt*"),
        ([*FINISHED, "ckpt/last.pt.tmp"], [*FINISHED[:2], "ckpt/last.pt.tmp", "train.log"], "not finished"),
        ([*FINISHED, "ckpt/5.pt.part/0.bin"], None, "5.pt.part/0.bin is not finished"),
        ([], [], "left nothing"),
    ],
)
def test_what_belongs_into_an_export(paths: list[str], chosen: list[str] | None, says: str | None) -> None:
    found, reasons = choose(job(), paths)
    assert chosen is None or sorted(found) == sorted(chosen)
    assert (says in " ".join(reasons)) if says else not reasons


def test_a_declared_artifact_that_is_only_latest_pth_is_missing() -> None:
    found, reasons = choose(job(artifacts={"checkpoint": ["latest.pth"]}), ["latest.pth", "train.log"])
    assert found == ()
    assert "Nothing matches latest.pth, which must be there but latest.pth" in reasons[0]


def test_how_many_files_of_a_role_there_must_be() -> None:
    declared = job(artifacts={"checkpoint": ["ckpt/*.pt"]}, counts={"checkpoint": 2})
    assert choose(declared, ["ckpt/1.pt", "ckpt/2.pt"])[1] == ()
    assert choose(declared, ["ckpt/1.pt"])[1] == ("1 of role checkpoint are there; the job says 2.",)


@pytest.mark.parametrize(
    ("text", "metric", "says"),
    [
        ('{"acc": 0.5}', {"name": "acc"}, None),
        ('{"val": {"acc": 0.5}}', {"name": "val/acc", "file": "metrics.json"}, None),
        ('{"val/acc": "0.5"}', {"name": "val/acc"}, None),
        ('{"acc": NaN}', {"name": "acc"}, "acc in any metrics file is no finite number"),
        ('{"acc": null}', {"name": "acc"}, "is no finite number"),
        ('{"acc": true}', {"name": "acc"}, "is no finite number"),
        ('{"loss": 1}', {"name": "acc"}, "acc is not in any metrics file"),
        ("[1, 2]", {"name": "acc", "file": "metrics.json"}, "acc is not in metrics.json"),
        ("{}", {"name": "acc", "file": "test.json"}, "test.json is not there"),
        ("{}", {"name": "acc", "file": "test.csv"}, None),  # not read here
        ("{}", {"name": "acc", "reported": "0.5"}, None),
    ],
)
def test_a_declared_metric_is_a_finite_number(text: str, metric: dict[str, object], says: str | None) -> None:
    found = list(figures_missing(job(metrics=[metric]), {"metrics.json": read_json(text.encode())}))
    assert [says is not None and says in one for one in found] == [True] * (says is not None)


def test_of_a_file_that_was_not_read_nothing_is_said() -> None:
    declared = job(metrics=[{"name": "acc"}, {"name": "map", "file": "big.json"}])
    assert list(figures_missing(declared, {"metrics.json": {}}, ["big.json"])) == []


@pytest.mark.parametrize("text", [b"{", b"", b"\xff", b"[" * 100_000])
def test_what_is_no_json(text: bytes) -> None:
    with pytest.raises(ValueError):
        read_json(text)

"""A job file is read whole or refused with file and line; values are never repeated."""

from __future__ import annotations

import pytest

from tui.model.failure import Failure
from tui.model.job import Gpu
from tui.runs.job_file import parse_job, schema

GOOD = """\
name = "sweep-a"
project = "vlm"
run = ["python", "train.py", "--json", '{"a": 1}', "{data}/coco"]
finish = "metrics.json"
secrets = ["WANDB_API_KEY"]

[resources]
gpu = "A100:1, ≥40 GB"
disk = "40 GiB"
inodes = 20000

[custody]
layout = "plain"
"""


def test_a_job_file_is_read() -> None:
    job = parse_job(GOOD, "job.toml")
    assert job.resources.gpu == Gpu(model="A100", count=1, memory=40 * 10**9)
    assert job.resources.disk == 40 << 30
    assert [(stage.name, stage.artifact) for stage in job.chain()] == [("train", "metrics.json")]


@pytest.mark.parametrize(
    ("text", "model", "count", "memory"),
    [
        ("A100", "A100", 1, 0),
        (":2", None, 2, 0),
        (">= 24 GB", None, 1, 24 * 10**9),
        ("RTX 4090:2, >=24GiB", "RTX 4090", 2, 24 << 30),
        ("H100 SXM5:8", "H100 SXM5", 8, 0),
    ],
)
def test_a_gpu_is_a_constraint(text: str, model: str | None, count: int, memory: int) -> None:
    assert Gpu.model_validate(text) == Gpu(model=model, count=count, memory=memory)


@pytest.mark.parametrize(
    ("was", "now", "line", "says"),
    [
        ('name = "sweep-a"', 'name = "Sweep A"', 1, "name"),
        ('project = "vlm"', "", None, "project is missing"),
        ('finish = "metrics.json"', 'finish = "../metrics.json"', 4, "below the run's folder"),
        ('"train.py"', '"train\\npy"', 3, "line break"),
        ('disk = "40 GiB"', 'disk = "a lot"', 9, "a size such as"),
        ("inodes = 20000", "inodes = -1", 10, "inodes"),
        ('gpu = "A100:1, ≥40 GB"', 'gpu = "A100:x:y"', 8, "A100:1"),
        ('layout = "plain"', 'layout = "other"', 13, "custody.layout"),
        ("secrets", "secret", 5, "not known here"),
        ("run =", "stages = []\nrun_ =", None, "not known here"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(was: str, now: str, line: int | None, says: str) -> None:
    with pytest.raises(Failure) as failed:
        parse_job(GOOD.replace(was, now, 1), "job.toml")
    assert says in failed.value.line
    if line is not None:
        assert failed.value.line.startswith(f"job.toml:{line}: ")


def test_a_value_is_not_repeated() -> None:
    with pytest.raises(Failure) as failed:
        parse_job(GOOD.replace('["WANDB_API_KEY"]', '["sk-live-123456"]'), "job.toml")
    assert "sk-live" not in failed.value.line


def test_the_schema_names_every_key() -> None:
    keys = schema()["properties"]
    assert {"name", "project", "run", "stages", "finish", "resources", "custody", "matrix"} <= set(keys)

"""A job file is read whole or refused with file and line; values are never repeated."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

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
        ('disk = "40 GiB"', "disk = true", 9, "a size such as"),
        ('disk = "40 GiB"', "disk = -1", 9, "must be at least 0"),
        ('gpu = "A100:1, ≥40 GB"', "gpu = 3", 8, "must be written like"),
        ('gpu = "A100:1, ≥40 GB"', 'gpu = "A100:9999"', 8, "must be at most 1024"),
        ('["WANDB_API_KEY"]', '"WANDB_API_KEY"', 5, "must be a list in brackets"),
        ("[custody]", "[matrix]\nlr = []\n[custody]", 13, "must not be empty"),
        ("[custody]", "[matrix]\nlr = [[1]]\n[custody]", 13, "matrix.lr.0: must be text, a number"),
        ("[custody]", "[env]\nint = 3\n[custody]", 13, "env.int: must be text in quotes"),
        ("[custody]", "[seeds]\nseed = 0.5\n[custody]", 13, "must be a whole number"),
        ("[resources]", "name = 'again'\n[resources]", 7, "is not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(was: str, now: str, line: int | None, says: str) -> None:
    with pytest.raises(Failure) as failed:
        parse_job(GOOD.replace(was, now, 1), "job.toml")
    assert says in failed.value.line
    if line is not None:
        assert failed.value.line.startswith(f"job.toml:{line}: ")


def test_what_a_windows_editor_saves_is_read() -> None:
    assert parse_job("\ufeff" + GOOD.replace("\n", "\r\n"), "job.toml") == parse_job(GOOD, "job.toml")


def test_a_key_that_a_later_rgt_knows_makes_no_other_run_of_the_same_file() -> None:
    words = parse_job(GOOD, "job.toml").words()
    assert '"secrets":["WANDB_API_KEY"]' in words
    assert "null" not in words
    assert "matrix" not in words
    assert parse_job(GOOD + "\n[matrix]\nlr = [1]\n", "job.toml").words() != words


def test_a_value_is_not_repeated() -> None:
    with pytest.raises(Failure) as failed:
        parse_job(GOOD.replace('["WANDB_API_KEY"]', '["sk-live-123456"]'), "job.toml")
    assert "sk-live" not in failed.value.line


def test_the_schema_names_every_key() -> None:
    keys = schema()["properties"]
    assert {"name", "project", "run", "stages", "finish", "resources", "custody", "matrix"} <= set(keys)


def fits(value: object, rule: Mapping[str, Any], top: Mapping[str, Any]) -> bool:
    """Whether a schema takes a value, as far as it speaks of types, keys and choices."""
    if "$ref" in rule:
        return fits(value, top["$defs"][rule["$ref"].rpartition("/")[2]], top)
    if "anyOf" in rule:
        return any(fits(value, one, top) for one in rule["anyOf"])
    if "enum" in rule or "const" in rule:
        return value in rule.get("enum", [rule.get("const")])
    if rule.get("type") == "object":
        return isinstance(value, dict) and all(fits_key(k, v, rule, top) for k, v in value.items())
    if rule.get("type") == "array":
        return isinstance(value, list) and all(fits(one, rule.get("items", {}), top) for one in value)
    types: dict[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
    }
    return "type" not in rule or isinstance(value, types[rule["type"]])


def fits_key(key: str, value: object, rule: Mapping[str, Any], top: Mapping[str, Any]) -> bool:
    if key in rule.get("properties", {}):
        return fits(value, rule["properties"][key], top)
    found = [one for pattern, one in rule.get("patternProperties", {}).items() if re.match(pattern, key)]
    more = rule.get("additionalProperties", True)
    found += [] if found or isinstance(more, bool) else [more]
    return fits(value, found[0], top) if found else bool(more)


WHOLE = GOOD.replace(
    "[custody]",
    """\
cores = 8

[[inputs]]
path = "{data}/coco"
bytes = "12 GB"

[slurm]
time = "12 h"

[matrix]
lr = [0.1, "a", true]

[custody]
artifacts = { checkpoint = ["ckpt/*.pt"] }""",
)


def test_the_schema_takes_what_the_reader_takes() -> None:
    """An editor that has it marks no line of a good file, and marks a wrong one."""
    top = schema()
    parse_job(WHOLE, "job.toml")
    assert fits(tomllib.loads(WHOLE), top, top)
    for wrong in ("disk = 1.5", "gpu = 3", "gpus = 1", 'cores = "8"'):
        line = f"[resources]\n{wrong}\n"
        assert not fits(tomllib.loads('name = "a"\nproject = "p"\nrun = ["x"]\n' + line), top, top), wrong

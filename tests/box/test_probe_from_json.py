"""What a probe printed as JSON is read back as what it was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.fixtures import run_fixture
from tui.box.probe.as_json import telemetry_json
from tui.box.probe.from_json import telemetry_from
from tui.model.failure import Failure
from tui.model.reading import unknown
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText


def there_and_back(telemetry: Telemetry) -> Telemetry:
    return telemetry_from(json.loads(json.dumps(telemetry_json(telemetry), ensure_ascii=False)))


def test_every_part_comes_back_as_it_was() -> None:
    before = run_fixture.telemetry()
    after = there_and_back(before)
    for name in ("host", "gpus", "gpu_processes", "filesystems", "memory", "cpu", "processes", "candidates"):
        assert getattr(after, name).value == getattr(before, name).value, name
    assert after.taken_at == before.taken_at
    assert after.runs[0].alive is True
    assert after.runs[0].log.value == before.runs[0].log.value
    assert after.runs[0].checkpoints.value == before.runs[0].checkpoints.value


def test_what_was_not_known_stays_so_with_its_reason() -> None:
    before = replace(run_fixture.telemetry(), gpus=unknown(SafeText("driver/library mismatch")))
    after = there_and_back(before)
    assert after.gpus.value is None
    assert after.gpus.reason == "driver/library mismatch"
    assert not after.xid.known


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ([], "no time"),
        ({"gpus": []}, "no time"),
        ({"taken_at": True}, "no time"),
        ({"taken_at": 1.0, "gpus": {}}, "gpus is no list"),
        ({"taken_at": 1.0, "memory": {"limit_bytes": "64G"}}, "memory.limit_bytes is no number"),
        ({"taken_at": 1.0, "gpus": [{"name": "A"}]}, "index"),
        ({"taken_at": 1.0, "runs": [{"run": "a", "alive": 1}]}, r"runs\[0\].alive"),
    ],
)
def test_anything_else_is_refused_with_the_place(data: object, place: str) -> None:
    with pytest.raises(Failure, match=place):
        telemetry_from(data)


def test_foreign_text_is_made_safe() -> None:
    data = {"taken_at": 1.0, "host": {"system": "Linux", "hostname": "a\x1b]0;x\x07b"}}
    host = telemetry_from(data).host.value
    assert host is not None
    assert host.hostname == "ab"

"""Inputs besides the box: here, at their mirror, and by their SHA-256 on the box."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tui.box.local import LocalTransport
from tui.model.job import Job
from tui.runs import inputs
from tui.runs.preflight import Check

BODY = b"the set\n"
SUM = hashlib.sha256(BODY).hexdigest()


def job(**one: object) -> Job:
    return Job.model_validate(
        {"name": "r", "project": "p", "run": ["true"], "inputs": [{"path": "/data/set.tar", **one}]}
    )


@pytest.mark.parametrize(
    ("named", "verdict", "said"),
    [
        ({}, "ok", "names no SHA-256"),
        ({"sha256": SUM}, "ok", "has the SHA-256"),
        ({"bytes": 8, "sha256": SUM}, "ok", "has the SHA-256"),
        ({"bytes": 9}, "warn", "8 bytes; the job names 9"),
        ({"sha256": "0" * 64}, "warn", "other bytes"),
        ({"here": "none.tar"}, "warn", "No such file"),
        ({"here": "."}, "ok", "folder"),
    ],
)
def test_what_lies_here_is_compared(
    tmp_path: Path, named: dict[str, object], verdict: str, said: str
) -> None:
    (tmp_path / "set.tar").write_bytes(BODY)
    [check] = inputs.here(job(**{"here": "set.tar", **named}), tmp_path)
    assert check.verdict == verdict
    assert said in check.said


def asked(answer: Callable[[httpx.Request], httpx.Response], **named: object) -> Check:
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    url = "https://user:pass@mirror.example/set.tar?token=abc"
    [check] = asyncio.run(inputs.mirrored(job(mirror=url, **named), client))
    assert "abc" not in check.said
    assert "pass" not in check.said
    return check


def test_a_mirror_is_asked_by_head_and_its_size_compared() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.method == "HEAD"
        return httpx.Response(200, headers={"content-length": "8"})

    assert asked(answer, bytes=8).verdict == "ok"
    assert asked(answer, bytes=9).verdict == "warn"
    assert asked(lambda _request: httpx.Response(404)).verdict == "warn"


def test_a_mirror_that_knows_no_head_is_asked_for_one_byte() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "HEAD":
            return httpx.Response(403)
        assert request.headers["range"] == "bytes=0-0"
        return httpx.Response(206, headers={"content-range": "bytes 0-0/8"}, content=b"t")

    assert asked(answer, bytes=8).verdict == "ok"
    assert asked(answer, bytes=7).verdict == "warn"


def test_a_mirror_that_says_nothing_is_unknown_within_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "HEAD_S", 0.05)

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route", request=request)

    assert asked(refuse).verdict == "unknown"

    async def hang(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return httpx.Response(200)

    client = httpx.AsyncClient(transport=httpx.MockTransport(hang))
    [check] = asyncio.run(inputs.mirrored(job(mirror="https://mirror.example/x"), client))
    assert check.verdict == "unknown"


@pytest.mark.parametrize(("named", "verdict"), [(SUM, "ok"), ("0" * 64, "stop")])
async def test_other_bytes_on_the_box_stop(tmp_path: Path, named: str, verdict: str) -> None:
    path = tmp_path / "a set.tar"
    path.write_bytes(BODY)
    [check] = await inputs.sums(LocalTransport(), job(sha256=named), (str(path),))
    assert check.verdict == verdict
    [gone] = await inputs.sums(LocalTransport(), job(sha256=named), (str(tmp_path / "gone"),))
    assert gone.verdict == "unknown"

"""Secrets are given by stdin and proven by one read call: what each service shows, and what it does not."""

from __future__ import annotations

import base64
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.real import need
from tests.setup.test_steps import Heard, at, tools
from tui.model.failure import Failure
from tui.setup import asking
from tui.setup.asking import answered, listed
from tui.setup.proofs import BASES, Answer, Call, Remote, Told, proofs, proven
from tui.setup.secrets import Secrets
from tui.setup.state import Did, Tools

__all__ = ["tools"]

S3 = (
    "<?xml version='1.0'?><ListAllMyBucketsResult><Owner><ID>1</ID></Owner><Buckets>"
    "<Bucket><Name>ckpt</Name><CreationDate>2026-11-01T00:00:00.000Z</CreationDate></Bucket>"
    "</Buckets></ListAllMyBucketsResult>"
)


class Services:
    """All services at one address. `asked`: method, path and authorization of every request."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.answers: dict[str, tuple[int, dict[str, str], str]] = {}
        services = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(size)
                path = self.path.partition("?")[0]
                services.asked.append((self.command, path, self.headers.get("Authorization", "")))
                status, headers, body = services.answers.get(path, (404, {}, "{}"))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body.encode()))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            do_POST = do_GET  # noqa: N815 - the name that http.server looks for

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def says(self, path: str, body: object, status: int = 200, **headers: str) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        self.answers[path] = (status, {name.replace("_", "-"): v for name, v in headers.items()}, text)


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    made = Services()
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made.says("/api/whoami-v2", {"name": "ada", "auth": {"accessToken": {"role": "read"}}})
    made.says("/graphql", {"data": {"viewer": {"username": "ada", "entity": "lab"}}})
    made.says("/user", {"login": "ada"}, X_OAuth_Scopes="repo, gist")
    made.says("/api/v1/competitions/list", [{"ref": "titanic"}])
    made.says("/openapi/v1/users/me", {"success": True, "data": {"username": "ada"}})
    yield made
    made.server.shutdown()
    made.server.server_close()


def here(services: Services) -> Secrets:
    return Secrets(dict.fromkeys(BASES, services.url))


async def given(step: Secrets, tools: Tools, **secrets: str) -> Did:
    did = await step.take(at("lambda", "box"), replace(tools, environ=secrets), " ".join(secrets), Heard())
    assert isinstance(did, Did)
    assert not any(value in line for value in secrets.values() if len(value) > 3 for line in did.observed)
    return did


def without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    """A box with little on it: no curl, and a python only where it is named."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in Path(shutil.which("sh") or "/bin/sh").parent.iterdir():
        if not program.name.startswith(("curl", "py")):
            (folder / program.name).symlink_to(program)
    for name in more:
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


EVERY = {
    "HF_TOKEN": "hf_secret",
    "WANDB_API_KEY": "wandb-secret",
    "GITHUB_TOKEN": "ghp_secret",
    "KAGGLE_USERNAME": "ada",
    "KAGGLE_KEY": "kaggle-secret",
    "MODELSCOPE_API_TOKEN": "ms-secret",
}


@pytest.mark.parametrize("way", ["curl", "python3"])
async def test_each_service_is_asked_from_the_box(
    services: Services, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "curl":
        need("curl")
    else:
        without(tmp_path, monkeypatch, "python3")
    did = await given(here(services), tools, **EVERY)
    file = tmp_path / "home" / ".rgt" / "secrets"
    assert file.read_text() == "".join(f"{name}={value}\n" for name, value in EVERY.items())
    assert file.stat().st_mode & 0o077 == 0
    basic = base64.b64encode(b"api:wandb-secret").decode()
    pair = base64.b64encode(b"ada:kaggle-secret").decode()
    assert services.asked == [
        ("GET", "/api/whoami-v2", "Bearer hf_secret"),
        ("POST", "/graphql", f"Basic {basic}"),
        ("GET", "/user", "Bearer ghp_secret"),
        ("GET", "/api/v1/competitions/list", f"Basic {pair}"),
        ("GET", "/openapi/v1/users/me", "Bearer ms-secret"),
    ]
    host = services.url.removeprefix("http://")
    assert did.observed[1:] == (
        f"HF_TOKEN: {host} reads as user ada; may write: no",
        f"WANDB_API_KEY: {host} reads as user ada; may write: not told",
        f"GITHUB_TOKEN: {host} reads as user ada; may write: yes",
        f"KAGGLE_USERNAME, KAGGLE_KEY: {host} reads as user ada; may write: not told",
        f"MODELSCOPE_API_TOKEN: {host} reads as user ada; may write: not told",
    )
    assert did.brief == "6 on the box"


async def test_a_box_that_cannot_ask_is_asked_for_from_here(
    services: Services, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(tmp_path, monkeypatch)
    did = await given(here(services), tools, HF_TOKEN="hf_secret")
    assert did.observed[1].endswith("asked from here: the box has neither curl nor python3")
    assert "reads as user ada" in did.observed[1]


async def test_what_is_refused_or_unreachable_is_said_and_the_step_is_done(
    services: Services, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("curl")
    services.says("/api/whoami-v2", {"error": "Invalid"}, 401)
    services.says("/user", {"message": "rate limit"}, 403)
    services.says("/graphql", {"data": {"viewer": None}})
    services.says("/openapi/v1/users/me", "<html>", 302, Location=f"{services.url}/elsewhere")
    did = await given(
        here(services),
        tools,
        HF_TOKEN="hf_x",
        GH_TOKEN="ghp_x",
        WANDB_API_KEY="wb_x",
        MODELSCOPE_API_TOKEN="m_x",
    )
    said = "\n".join(did.observed)
    assert "mind: HF_TOKEN: " in said
    assert "refuses it" in said
    assert "does not let it read that (HTTP 403)" in said
    assert "does not know the key" in said
    assert "answered HTTP 302, which proves nothing" in said
    assert not any(path == "/elsewhere" for _, path, _ in services.asked)
    assert did.brief == "4 on the box, 2 to mind"
    services.server.server_close()
    services.server.shutdown()
    gone = await given(here(services), tools, HF_TOKEN="hf_x")
    assert gone.observed[1].endswith("could not be asked: no connection")


async def test_what_no_call_proves_is_stored_and_said(services: Services, tools: Tools) -> None:
    did = await given(
        here(services),
        tools,
        OPENAI_API_KEY="sk-secret",
        TEAM_WEBHOOK="https://hooks.example.com/secret",
        ALARM="https://oapi.dingtalk.com/robot/send?access_token=secret",
        KAGGLE_KEY="kaggle-secret",
    )
    assert did.observed[1:] == (
        "unknown: KAGGLE_KEY: not verified without KAGGLE_USERNAME",
        "OPENAI_API_KEY: stored, not verified: rgt knows no call that proves it",
        "TEAM_WEBHOOK: stored, not called: a call would post a message",
        "ALARM: stored, not called: a call would post a message",
    )
    assert services.asked == []


async def test_rclone_lists_with_what_lies_on_the_box(
    services: Services, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("rclone")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("RCLONE_CONFIG", str(tmp_path / "rclone.conf"))
    services.says("/", S3, Content_Type="application/xml")
    did = await given(
        here(services),
        tools,
        RCLONE_CONFIG_DISK_TYPE="alias",
        RCLONE_CONFIG_DISK_REMOTE=str(tmp_path),
        AWS_ACCESS_KEY_ID="AKIASECRET",
        AWS_SECRET_ACCESS_KEY="aws-secret",
        AWS_ENDPOINT_URL=services.url,
    )
    disk, s3 = did.observed[1:]
    assert disk.endswith("rclone lists disk: with it, 1 folders; may write: not told")
    assert s3.endswith("rclone lists :s3: with it, 1 folders; may write: not told")
    assert any("Credential=AKIASECRET" in auth for _, _, auth in services.asked)
    services.says("/", "<Error><Code>InvalidAccessKeyId</Code></Error>", 403, Content_Type="application/xml")
    refused = await given(
        here(services),
        tools,
        AWS_ACCESS_KEY_ID="AKIASECRET",
        AWS_SECRET_ACCESS_KEY="aws-secret",
        AWS_ENDPOINT_URL=services.url,
    )
    assert refused.observed[1].startswith("mind: ")
    assert "InvalidAccessKeyId" in refused.observed[1]


async def test_nothing_is_sent_where_a_value_is_missing(tools: Tools, tmp_path: Path) -> None:
    for bad in ("NOT_SET", "BAD", "no-name"):
        with pytest.raises(Failure, match="not set in this shell"):
            await Secrets().take(at("lambda", "box"), tools, bad, Heard())
    assert not (tmp_path / "home" / ".rgt").exists()


@pytest.mark.parametrize(
    ("role", "writes"),
    [
        ({"role": "write"}, "yes"),
        ({"role": "read"}, "no"),
        (
            {"role": "fineGrained", "fineGrained": {"scoped": [{"permissions": ["repo.write"]}]}},
            "yes, where it",
        ),
        ({"role": "fineGrained", "fineGrained": {"scoped": [{"permissions": ["repo.read"]}]}}, "no"),
        ({"role": 7}, "not told"),
        (None, "not told"),
    ],
)
def test_what_a_hub_token_may(role: object, writes: str) -> None:
    (call,) = proofs({"HF_TOKEN": "hf_x"}, BASES)
    assert isinstance(call, Call)
    said = proven(call, Answer(200, {}, {"name": "ada", "auth": {"accessToken": role}}))
    assert said.startswith(f"huggingface.co reads as user ada; may write: {writes}")
    assert proven(call, Answer(200, {}, ["odd"])).startswith("unknown: ")
    assert proven(call, Answer(200, {}, None)).startswith("unknown: ")


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"x-oauth-scopes": "public_repo"}, "may write: yes"),
        ({"x-oauth-scopes": ""}, "may write: no"),
        ({}, "may write: not told"),
        (
            {"github-authentication-token-expiration": "2026-12-24 10:00:00 UTC"},
            "until 2026-12-24 10:00:00 UTC",
        ),
    ],
)
def test_what_a_github_token_may(headers: dict[str, str], said: str) -> None:
    (call,) = proofs({"GH_TOKEN": "x"}, BASES)
    assert isinstance(call, Call)
    assert said in proven(call, Answer(200, headers, {"login": "ada"}))


def test_no_secret_goes_in_clear_or_is_shown() -> None:
    (clear,) = proofs({"WANDB_API_KEY": "k", "WANDB_BASE_URL": "http://wandb.lab"}, BASES)
    assert isinstance(clear, Told)
    assert "no https address" in clear.why
    (own,) = proofs({"WANDB_API_KEY": "k-secret", "WANDB_BASE_URL": "https://wandb.lab"}, BASES)
    assert isinstance(own, Call)
    assert own.request.url == "https://wandb.lab/graphql"
    assert "k-secret" not in repr(own)
    assert base64.b64encode(b"api:k-secret").decode() not in repr(own)
    (odd,) = proofs({"HF_TOKEN": "hf_\x1b[2J"}, BASES)
    assert isinstance(odd, Told)


def test_every_secret_is_accounted_for() -> None:
    values = dict.fromkeys(
        (
            "RCLONE_CONFIG_A_TYPE",
            "RCLONE_CONFIG_A_B_TYPE",
            "RCLONE_CONFIG_A_B_KEY",
            "RCLONE_CONFIG_PASS",
            "AWS_PROFILE",
            "HF_ENDPOINT",
            "KAGGLE_USERNAME",
            "KAGGLE_API_TOKEN",
            "x",
        ),
        "https://v.example",
    )
    made = proofs(values, BASES)
    assert sorted(name for one in made for name in one.names) == sorted(values)
    assert {one.remote: one.names for one in made if isinstance(one, Remote)} == {
        "a_b:": ("RCLONE_CONFIG_A_B_TYPE", "RCLONE_CONFIG_A_B_KEY"),
        "a:": ("RCLONE_CONFIG_A_TYPE",),
    }


def test_a_proxys_answer_is_not_the_services() -> None:
    raw = b'HTTP/1.1 200 Connection established\r\n\r\nHTTP/2 401 \r\nX-A: b\r\n\r\n{"a": 1}'
    assert answered(raw) == Answer(401, {"x-a": "b"}, {"a": 1})
    assert answered(b"none 6\n") is None
    assert answered(b"HTTP/1.1 200 OK\r\n\r\n<html>") == Answer(200, {}, None)


def test_a_request_is_one_config_that_nothing_breaks_out_of() -> None:
    (call,) = proofs({"HF_TOKEN": 'a"\\b'}, BASES)
    assert isinstance(call, Call)
    assert 'header = "Authorization: Bearer a\\"\\\\b"\n' in asking._curl(call.request).decode()


def test_what_rclone_says_holds_no_secret() -> None:
    said = "NOTICE: x\n2026/11/30 10:00:00 Failed to lsd: key AKIA123 is bad: \x1b[31mno\n\tat all\nexit 1"
    assert listed("a:", said, {"K": "AKIA123"}) == "mind: rclone can't list a: lsd: key … is bad: no at all"
    assert listed("a:", "none\n", {}) == "stored, not verified: rclone is not on the box"

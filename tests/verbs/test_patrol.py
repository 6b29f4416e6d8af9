"""`rgt patrol` on a real sshd: a line for everything, one notice a change, a timer after consent."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.rig import Sshd
from tui.cli import main
from tui.custody.keyboard import no_terminal
from tui.fleet.paths import paths


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sshd: Sshd) -> Path:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "rgt"))
    monkeypatch.delenv("RGT_NOTIFY", raising=False)
    (sshd.home / "train.log").write_text("step 3/9 loss: 0.5\n")
    file = paths().fleet_file
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[instances.box-1]\nplatform = "ssh"\nhost = "{sshd.host}"\nport = {sshd.port}\n'
        f'user = "{sshd.user}"\nkey = "{sshd.client_key}"\nmounts = ["{sshd.home}"]\n'
        f'[runs.r1]\nbox = "box-1"\nlog = "{sshd.home}/train.log"\npid = {os.getpid()}\n'
    )
    return file


@pytest.fixture
def heard() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """An address that apprise posts to, and what came there."""
    told: list[dict[str, str]] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Listener)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"json://127.0.0.1:{server.server_port}/", told
    server.shutdown()
    server.server_close()


def test_a_change_is_told_once(
    fleet: Path,
    heard: tuple[str, list[dict[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("apprise")
    address, told = heard
    monkeypatch.setenv("RGT_NOTIFY", address)
    main(["patrol"])
    assert "r1 on box-1: running" in capsys.readouterr().out
    assert told == []
    fleet.write_text(fleet.read_text().replace(f"pid = {os.getpid()}", f"pid = {2**22 - 3}"))
    assert main(["patrol", "--json"]) == 1
    ticks = json.loads(capsys.readouterr().out)["ticks"]
    assert [(one["key"], one["word"], one["changed"]) for one in ticks if one["key"] == "run r1"] == [
        ("run r1", "dead", True)
    ]
    assert [one["title"] for one in told] == ["rgt: run r1 is dead"]
    assert main(["patrol"]) == 1
    assert len(told) == 1


def test_an_address_that_cannot_be_used_never_shows(
    fleet: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("apprise")
    monkeypatch.setenv("RGT_NOTIFY", "nosuch://tok3n-secret@example.com")
    fleet.write_text(fleet.read_text().replace(f"pid = {os.getpid()}", f"pid = {2**22 - 3}"))
    assert main(["patrol"]) == 1
    said = capsys.readouterr()
    assert "none that apprise knows" in said.err
    assert "tok3n" not in said.err + said.out


def fake_systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder, calls = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    (folder / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>{calls}\necho running\n')
    (folder / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return calls


@pytest.mark.parametrize("typed", ["yes", "y", ""])
def test_a_timer_is_installed_only_after_a_whole_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = fake_systemctl(tmp_path, monkeypatch)
    monkeypatch.setattr("tui.custody.keyboard.read_line", lambda *_: typed)
    units = tmp_path / "config" / "systemd" / "user"
    if typed == "yes":
        assert main(["patrol", "--install"]) == 0
        assert {path.name for path in units.iterdir()} == {"rgt-patrol.service", "rgt-patrol.timer"}
        assert "--user enable --now rgt-patrol.timer" in calls.read_text()
    else:
        assert main(["patrol", "--install"]) == 1
        assert not units.exists()


def test_without_a_keyboard_the_cron_line_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nobody(*_: object) -> str:
        raise no_terminal()

    fake_systemctl(tmp_path, monkeypatch)
    monkeypatch.setattr("tui.custody.keyboard.read_line", nobody)
    assert main(["patrol", "--install"]) == 4
    assert "patrol --quiet" in capsys.readouterr().out


def test_a_disk_that_takes_nothing_keeps_no_tick_from_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A timer's tick is what tells of a full disk; it must not be lost to that disk."""
    (tmp_path / "config").mkdir()
    (tmp_path / "state").touch()  # nothing can be written below a file
    monkeypatch.setenv("RGT_HOME", str(tmp_path))
    monkeypatch.setenv("RGT_NO_ACCOUNTS", "1")
    assert main(["patrol"]) == 1
    told = capsys.readouterr()
    assert "No box yet" in told.out
    assert "could not be kept" in told.err
    assert "Traceback" not in told.err

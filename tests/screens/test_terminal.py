"""The terminal: colours, glyph width, the clipboard ladder, and what an app leaves behind on a real pty."""

from __future__ import annotations

import os
import pty
import select
import signal
import stat
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tui import terminal

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("environ", "choice", "depth"),
    [
        ({"TERM": "tmux-256color"}, "auto", "256"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "auto", "truecolor"),
        ({"TERM": "screen"}, "auto", "16"),
        ({"TERM": "linux"}, "auto", "16"),
        ({"TERM": "dumb"}, "auto", "none"),
        ({}, "auto", "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "auto", "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "auto", "256"),  # empty does not count
        ({"TERM": "dumb", "NO_COLOR": "1"}, "truecolor", "truecolor"),
    ],
)
def test_colour_depth(environ: Mapping[str, str], choice: str, depth: str) -> None:
    assert terminal.colour_depth(environ, choice) == depth


def test_textual_is_told_before_it_is_imported() -> None:
    environ = {"NO_COLOR": "", "TERM": "xterm"}
    terminal.prepare_colour("256", environ)
    assert environ == {"TERM": "xterm", "TEXTUAL_COLOR_SYSTEM": "256"}


@pytest.mark.parametrize(
    ("choice", "width", "environ", "glyphs"),
    [
        ("auto", 1, {"LANG": "zh_CN.UTF-8"}, "unicode"),
        ("auto", 2, {"LANG": "en_US.UTF-8"}, "ascii"),
        ("auto", None, {"LANG": "zh_CN.UTF-8"}, "ascii"),
        ("auto", None, {"LANG": "en_US.UTF-8"}, "unicode"),
        ("auto", 1, {"LC_ALL": "C"}, "ascii"),
        ("unicode", 2, {"LC_ALL": "C"}, "unicode"),
        ("ascii", 1, {}, "ascii"),
    ],
)
def test_glyph_choice(choice: str, width: int | None, environ: Mapping[str, str], glyphs: str) -> None:
    assert terminal.choose_glyphs(choice, width, environ) == glyphs


def test_a_remote_line_is_spared() -> None:
    assert terminal.frame_s({}) == 0.1
    assert terminal.frame_s({"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}) == 0.25


# -- clipboard -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "tools", "rungs"),
    [
        ({"TMUX": "x", "DISPLAY": ":0", "TERM": "tmux"}, {"tmux", "xclip"}, ["tmux", "xclip", "file"]),
        ({"TMUX": "x", "SSH_CONNECTION": "y", "DISPLAY": ":0"}, {"tmux", "xclip"}, ["tmux", "file"]),
        ({"TERM": "xterm-256color", "SSH_CONNECTION": "y"}, {"pbcopy"}, ["osc52", "file"]),
        ({"TERM": "xterm-256color"}, {"pbcopy"}, ["pbcopy", "osc52", "file"]),
        ({"TERM": "xterm", "WAYLAND_DISPLAY": "w"}, {"wl-copy", "xsel"}, ["wl-copy", "osc52", "file"]),
        ({"TERM": "linux"}, set(), ["file"]),
        ({"TERM": "screen", "STY": "1.x"}, set(), ["file"]),
    ],
)
def test_ladder(environ: Mapping[str, str], tools: set[str], rungs: list[str]) -> None:
    assert [r.name for r in terminal.clipboard_ladder(environ, lambda name: name in tools)] == rungs


def tool(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_copy_goes_down_the_ladder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    text = "$(touch owned); 北京\n"
    tool(tmp_path, "tmux", f'[ "$1 $2 $3" = "load-buffer -w -" ] && cat > {tmp_path}/buffer')
    environ = {"TMUX": "x", "TERM": "tmux-256color", "SSH_CONNECTION": "y"}
    said = terminal.copy(text, environ=environ, folder=tmp_path)
    assert "tmux" in said
    assert (tmp_path / "buffer").read_text() == text
    tool(tmp_path, "tmux", "exit 1")
    said = terminal.copy(text, environ=environ, folder=tmp_path)
    assert str(tmp_path / "copied.txt") in said
    assert (tmp_path / "copied.txt").read_text() == text
    assert stat.S_IMODE((tmp_path / "copied.txt").stat().st_mode) == 0o600
    assert not Path("owned").exists()


def test_a_hung_tool_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    tool(tmp_path, "xclip", "exec sleep 300")
    began = time.monotonic()
    said = terminal.copy(
        "x", environ={"DISPLAY": ":9", "TERM": "linux"}, folder=tmp_path, has=lambda n: n == "xclip"
    )
    assert time.monotonic() - began < 60
    assert "copied.txt" in said


def test_osc52_is_capped(tmp_path: Path) -> None:
    sent: list[str] = []
    environ = {"TERM": "xterm-256color", "SSH_CONNECTION": "y"}
    assert "OSC 52" in terminal.copy("short", environ=environ, folder=tmp_path, osc52=sent.append)
    assert "copied.txt" in terminal.copy("x" * 60_000, environ=environ, folder=tmp_path, osc52=sent.append)
    assert sent == ["short"]


def test_no_way_at_all_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "Nothing was copied" in terminal.copy("x", environ={}, folder=blocked / "below")


# -- on a real pty ---------------------------------------------------------------------------------------


class Child:
    """A Python program on a pty of its own."""

    def __init__(self, code: str, *arguments: str, columns: int = 100, rows: int = 30) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environ = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR", "COLORTERM")}
            environ |= {
                "TERM": "xterm-256color",
                "PYTHONPATH": str(ROOT),
                "COLUMNS": str(columns),
                "LINES": str(rows),
            }
            os.chdir(ROOT)
            os.execve(sys.executable, [sys.executable, "-c", code, *arguments], environ)
        termios.tcsetwinsize(self.fd, (rows, columns))
        self.output = b""

    def read(self, seconds: float, until: bytes = b"") -> bytes:
        """What comes within `seconds`, or up to and with `until`."""
        got, end = b"", time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and (not until or until not in got):
            if select.select([self.fd], [], [], left)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    break
                if not data:
                    break
                got += data
        self.output += got
        return got

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def ended(self, seconds: float) -> int:
        """The exit status; the program is killed when it does not end in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read(0.1)
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        raise AssertionError(f"still there after {seconds} s: {self.output[-300:]!r}")


APP = """
import asyncio, sys
from pathlib import Path
from dataclasses import replace
from tui import terminal
from tests.fixtures.fleet_fixture import NOW, fleet
from tests.screens.app_harness import THEMES
from tui.app import RgtApp
from tui.leaving import run
from tui.fleet.store import Store
from tui.model.event import FleetChanged, LinkChanged, TelemetryTaken

store = Store(clock=lambda: NOW)
snapshot = fleet()

async def start(app):
    boxes, runs = (b.instance for b in snapshot.boxes), (r.spec for r in snapshot.runs)
    await store.put(FleetChanged(tuple(boxes), tuple(runs)))
    for box in snapshot.boxes:
        await store.put(LinkChanged(box.name, box.link))
    tick = 0
    while True:
        tick += 1
        for box in snapshot.boxes:
            if box.telemetry:
                at = min(NOW, box.telemetry.taken_at) + tick * 1e-4
                await store.put(TelemetryTaken(box.name, replace(box.telemetry, tick=tick, taken_at=at)))
        await asyncio.sleep(0.2)

GUEST = "echo guest on $0; read line; echo got $line; exit 7"
app = RgtApp(store, themes=THEMES, start=start, state=Path(sys.argv[1]),
             shell_argv=lambda box: ["/bin/sh", "-c", GUEST, box], rgt=["/bin/echo", "verb"])
sys.exit(run(app))
"""

RESTORED = (b"\x1b[?1049l", b"\x1b[?25h")


def started(tmp_path: Path) -> Child:
    child = Child(APP, str(tmp_path))
    assert b"inodes 96%" in child.read(20, b"inodes 96%")
    child.read(1.0)
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_the_terminal_in_order(tmp_path: Path, number: signal.Signals) -> None:
    child = started(tmp_path)
    os.kill(child.pid, number)
    assert child.ended(5) == 130
    assert all(sequence in child.output for sequence in RESTORED)
    assert b"Traceback" not in child.output


def test_nothing_is_written_while_nothing_changes(tmp_path: Path) -> None:
    child = started(tmp_path)
    assert child.read(5) == b""  # telemetry keeps coming, five times a second, with the same numbers
    child.type(b"\x11")
    assert child.ended(5) == 0
    assert all(sequence in child.output for sequence in RESTORED)


def test_ctrl_c_as_a_key_does_not_leave(tmp_path: Path) -> None:
    child = started(tmp_path)
    child.type(b"\x03")
    assert b"leaves rgt" in child.read(5, b"leaves rgt")
    child.type(b"\x11")
    assert child.ended(5) == 0


def test_the_terminal_is_lent_to_a_shell_and_taken_back(tmp_path: Path) -> None:
    child = started(tmp_path)
    child.type(b"!")
    assert b"guest on done-01" in child.read(10, b"guest on done-01")
    os.kill(child.pid, signal.SIGINT)  # the guest's affair
    assert b"\x1b[38" not in child.read(2.5)  # not a stroke while the guest has the terminal
    child.type(b"hello\n")
    assert b"got hello" in child.read(10, b"got hello")
    assert b"ended with exit status 7." in child.read(10, b"exit status 7.")
    child.type(b"\x11")
    assert child.ended(5) == 0


def test_a_verb_gets_the_terminal_and_what_it_said_stays_until_enter(tmp_path: Path) -> None:
    child = started(tmp_path)
    child.type(b":")
    assert b"command" in child.read(5, b"command")
    child.type(b"gpu\r")
    assert b"verb gpu done-01" in child.read(10, b"enter goes back to rgt")
    assert b"\x1b[38" not in child.read(1)
    child.type(b"\n")
    assert b"inodes 96%" in child.read(10, b"inodes 96%")
    child.type(b"\x11")
    assert child.ended(5) == 0


def test_the_last_words_of_a_shell_that_fails_at_once_can_be_read(tmp_path: Path) -> None:
    child = started(tmp_path)
    child.type(b"!")
    assert b"guest on done-01" in child.read(10, b"guest on done-01")
    child.type(b"x\n")
    assert b"enter goes back to rgt" in child.read(10, b"enter goes back to rgt")
    assert b"\x1b[38" not in child.read(1)
    child.type(b"\n")
    assert b"ended with exit status 7." in child.read(10, b"exit status 7.")
    child.type(b"\x11")
    assert child.ended(5) == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (7, "ended with exit status 7"),
        (0, "ended with exit status 0"),
        (-2, "was ended by SIGINT (interrupt)"),
        (-9, "was ended by SIGKILL (killed)"),
    ],
)
def test_how_a_program_ended_is_said_in_words(code: int, words: str) -> None:
    assert terminal.ended(code) == words


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    assert terminal.ended(-63).startswith("was ended by signal 63")


def test_sigterm_while_the_terminal_is_lent(tmp_path: Path) -> None:
    child = started(tmp_path)
    child.type(b"!")
    assert b"guest on" in child.read(10, b"guest on")
    os.kill(child.pid, signal.SIGTERM)
    child.read(1)
    child.type(b"\n")
    assert child.ended(6) == 130


MEASURE = """
import sys
from tui.terminal import glyph_width
width = glyph_width("●", timeout=float(sys.argv[1]))
print("width", width, flush=True)
"""


@pytest.mark.parametrize(("answer", "width"), [(b"\x1b[12;2R", b"1"), (b"\x1b[12;3R", b"2"), (b"", b"None")])
def test_the_terminal_is_asked_how_wide_a_glyph_is(answer: bytes, width: bytes) -> None:
    child = Child(MEASURE, "1.0")
    assert b"\x1b[6n" in child.read(10, b"\x1b[6n")
    if answer:
        child.type(answer)
    assert b"width " + width in child.read(10, b"width " + width)
    assert child.ended(5) == 0

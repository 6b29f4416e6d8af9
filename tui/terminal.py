"""The operator's terminal: colours, glyph width, clipboard. For the app and for `doctor`, never for screens.

Nothing here imports Textual: colour must be decided before Textual is loaded, because it reads its
environment when it is imported.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
import tty
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from tui.model.failure import Failure
from tui.model.text import SafeText, safe

COLOURS = ("auto", "truecolor", "256", "16", "none")
FRAME_LOCAL_S = 0.1
FRAME_REMOTE_S = 0.25
OSC52_CAP = 74_994
"""Encoded bytes most terminals take in one OSC 52; longer ones are cut or dropped without a word."""

_MEASURE_S = 0.3
_TOOL_S = 1.0
_CURSOR = re.compile(rb"\x1b\[(\d+);(\d+)R")


# -- colour ------------------------------------------------------------------------------------------


def colour_depth(environ: Mapping[str, str], choice: str = "auto") -> str:
    """How many colours to use: ``truecolor``, ``256``, ``16`` or ``none``.

    Args:
        choice: one of `COLOURS`, from ``--color``; what is chosen is not second-guessed.

    NO_COLOR counts when it is not empty (https://no-color.org). COLORTERM seldom crosses ssh; without it
    TERM decides.
    """
    if choice != "auto":
        return choice
    if environ.get("NO_COLOR"):
        return "none"
    term = environ.get("TERM", "")
    if term in ("", "dumb"):
        return "none"
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "truecolor"
    if "256" in term or term.startswith(("xterm-kitty", "alacritty", "foot", "ghostty", "wezterm")):
        return "256"
    return "16"


def prepare_colour(depth: str, environ: MutableMapping[str, str]) -> None:
    """Tell Textual the depth; call it before Textual is imported.

    Textual takes an empty NO_COLOR for a set one, so the variable is settled here.
    """
    environ.pop("NO_COLOR", None)
    names = {"truecolor": "truecolor", "256": "256", "16": "standard", "none": "standard"}
    environ["TEXTUAL_COLOR_SYSTEM"] = names[depth]


def frame_s(environ: Mapping[str, str]) -> float:
    """Shortest time between two pictures: a remote line is spared."""
    return FRAME_REMOTE_S if environ.get("SSH_CONNECTION") else FRAME_LOCAL_S


# -- glyphs ------------------------------------------------------------------------------------------


def choose_glyphs(choice: str, width: int | None, environ: Mapping[str, str]) -> str:
    """Which glyph set to draw: ``unicode`` or ``ascii``.

    Args:
        choice: ``auto``, ``unicode`` or ``ascii``; what is chosen is not second-guessed.
        width: cells that the terminal measured for a state glyph; None when it did not answer.
    """
    if choice in ("unicode", "ascii"):
        return choice
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    if locale and "utf" not in locale.lower():
        return "ascii"
    if width is not None:
        return "unicode" if width == 1 else "ascii"
    return "ascii" if locale.lower().startswith(("zh", "ja", "ko")) else "unicode"


def glyph_width(glyph: str = "●", *, timeout: float = _MEASURE_S) -> int | None:
    """Cells that the terminal takes for `glyph`, by asking where its cursor is after it. None: no answer.

    Call it before the app starts. The glyph is wiped again.

    Args:
        timeout: seconds until the terminal counts as silent.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    fd = sys.stdin.fileno()
    try:
        before = termios.tcgetattr(fd)
        tty.setcbreak(fd)
    except termios.error:
        return None
    try:
        # \x1b[6n asks for the cursor's place (DSR, ECMA-48); \r first makes the column the width.
        os.write(sys.stdout.fileno(), b"\r" + glyph.encode() + b"\x1b[6n\r\x1b[K")
        column = _answer(fd, time.monotonic() + timeout)
    except OSError:
        return None
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)
    return None if column is None else column - 1


def _answer(fd: int, deadline: float) -> int | None:
    got = b""
    while (left := deadline - time.monotonic()) > 0 and len(got) < 256:
        ready, _, _ = select.select([fd], [], [], left)
        if not ready:
            break
        got += os.read(fd, 64)
        found = _CURSOR.search(got)
        if found:
            return int(found[2])
    return None


# -- clipboard ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to the clipboard: the program to run, or ``()`` for what needs none."""

    name: str
    argv: tuple[str, ...] = ()


_NATIVE = (
    ("pbcopy", ("pbcopy",), ""),
    ("wl-copy", ("wl-copy",), "WAYLAND_DISPLAY"),
    ("xclip", ("xclip", "-selection", "clipboard"), "DISPLAY"),
    ("xsel", ("xsel", "--clipboard", "--input"), "DISPLAY"),
)


def clipboard_ladder(environ: Mapping[str, str], has: Callable[[str], object] = shutil.which) -> list[Rung]:
    """The ways to the clipboard from here, best first.

    tmux's own buffer comes first inside tmux, whose default settings drop a plain OSC 52. A native tool on
    the far side of ssh would fill the wrong computer's clipboard. The file at the end always works.
    """
    ladder: list[Rung] = []
    if environ.get("TMUX") and has("tmux"):
        ladder.append(Rung("tmux", ("tmux", "load-buffer", "-w", "-")))
    if not environ.get("SSH_CONNECTION"):
        ladder += [
            Rung(n, argv) for n, argv, needs in _NATIVE if (not needs or environ.get(needs)) and has(n)
        ]
    if (
        not environ.get("TMUX")
        and not environ.get("STY")
        and environ.get("TERM", "") not in ("", "dumb", "linux")
    ):
        ladder.append(Rung("osc52"))
    return [*ladder, Rung("file")]


def copy(
    text: str,
    *,
    environ: Mapping[str, str],
    folder: Path,
    osc52: Callable[[str], None] | None = None,
    has: Callable[[str], object] = shutil.which,
) -> SafeText:
    """Copy `text` by the first way that works, and say which one it was.

    Args:
        folder: where the file of the last rung goes.
        osc52: writes an OSC 52 sequence for the text; None leaves that rung out.
    """
    what = f"{len(text.splitlines())} lines" if "\n" in text else f"{len(text)} characters"
    for rung in clipboard_ladder(environ, has):
        if rung.argv:
            if _filled(rung.argv, text):
                where = (
                    "tmux's buffer (and the terminal's clipboard, where tmux may)"
                    if rung.name == "tmux"
                    else ""
                )
                return safe(f"Copied {what} to {where or f'the clipboard by {rung.name}'}.")
        elif rung.name == "osc52" and osc52 is not None and _encoded(text) <= OSC52_CAP:
            osc52(text)
            return safe(
                f"Sent {what} to the terminal's clipboard (OSC 52); it does not tell whether it took them."
            )
    return _to_file(text, what, folder)


def _encoded(text: str) -> int:
    return len(base64.b64encode(text.encode("utf-8", "replace")))


def _filled(argv: tuple[str, ...], text: str) -> bool:
    try:
        done = subprocess.run(
            argv,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TOOL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _to_file(text: str, what: str, folder: Path) -> SafeText:
    path = folder / "copied.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        return safe(
            f"Nothing was copied: no clipboard is in reach, and {path} can't be written: {error.strerror}."
        )
    return safe(f"No clipboard is in reach; saved {what} to {path}.")


# -- handing the terminal over -----------------------------------------------------------------------

_READ_S = 30.0
_STAY_S = 600.0
_QUICK_S = 2.0


async def hand_over(
    argv: list[str], banner: str, started: Callable[[Process], None], *, stay: bool = False
) -> int:
    """Run a program on this terminal, whose screen must be free, and give its exit status; -N for a signal N.

    A program that fails at once gets its last words read: the screen comes back after enter, or after
    half a minute.

    Args:
        argv: program and arguments; no shell is involved.
        started: told the process, so that it can be ended from outside.
        stay: what it said is read before the screen comes back, however it ended.

    Raises:
        Failure: the program can't be started.
    """
    print(safe(banner), flush=True)  # noqa: T201 - this is the terminal's own screen
    began = time.monotonic()
    try:
        process = await asyncio.create_subprocess_exec(*argv)
    except OSError as error:
        raise Failure(f"{argv[0]} can't be started: {error.strerror}.") from None
    started(process)
    code = await process.wait()
    if stay:
        print("enter goes back to rgt", flush=True)  # noqa: T201
        await _enter(_STAY_S)
    elif code != 0 and time.monotonic() - began < _QUICK_S:
        print(f"it {ended(code)}; enter goes back to rgt", flush=True)  # noqa: T201
        await _enter(_READ_S)
    return code


def ended(code: int) -> str:
    """How a program ended, as the rest of a sentence: its exit status, or the signal that killed it."""
    if code >= 0:
        return f"ended with exit status {code}"
    name = f"signal {-code}"
    with contextlib.suppress(ValueError):
        name = signal.Signals(-code).name
    words = (signal.strsignal(-code) or "").partition(":")[0].lower()
    return f"was ended by {name}" + (f" ({words})" if words else "")


async def _enter(seconds: float) -> None:
    loop, pressed = asyncio.get_running_loop(), asyncio.Event()
    fd = sys.stdin.fileno()
    loop.add_reader(fd, pressed.set)
    try:
        await asyncio.wait_for(pressed.wait(), seconds)
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(fd)
    termios.tcflush(fd, termios.TCIFLUSH)

"""Rich's idea of a character's width and tmux's are the same for everything the gate lets through."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from rich.cells import cell_len, get_character_cell_size

from tests.real import need
from tui.model.cells import fold, width

RICH_TABLES = ("12.1.0", "13.0.0", "14.0.0", "15.0.0", "15.1.0", "16.0.0", "17.0.0")

# Runs inside the pane: prints each text at the left edge and asks where the cursor is then.
ASK = """
import json, os, re, sys, tty
tty.setraw(0)
texts, widths = json.load(open(sys.argv[1])), []
for i in range(0, len(texts), 200):
    part = texts[i:i + 200]
    os.write(1, b"".join(b"\\r" + t.encode() + b"\\x1b[6n" for t in part))
    answer = b""
    while answer.count(b"R") < len(part):
        answer += os.read(0, 65536)
    widths += [int(column) - 1 for column in re.findall(rb"\\x1b\\[\\d+;(\\d+)R", answer)]
json.dump(widths, open(sys.argv[2] + ".new", "w"))
os.rename(sys.argv[2] + ".new", sys.argv[2])
"""


def every_character() -> list[str]:
    """All code points the gate keeps; of the ideographs and syllables, which are all alike, each 40th."""
    kept = []
    for code in (*range(0x20, 0xD800), *range(0xE000, 0x30000), *range(0xE0000, 0xE0200)):
        alike = 0x3400 <= code < 0xA000 or 0xAC00 <= code < 0xD7A4 or code >= 0x20000
        if (not alike or code % 40 == 0) and fold(chr(code)) == chr(code) and code != 0x7F:
            kept.append(chr(code))
    return kept


def measured_by_tmux(texts: list[str], tmp_path: Path) -> list[int]:
    tmux = need("tmux")["tmux"]
    script, asked, answered = tmp_path / "ask.py", tmp_path / "asked", tmp_path / "answered"
    script.write_text(ASK)
    asked.write_text(json.dumps(texts))
    server = [tmux, "-u", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]
    env = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
    env.pop("TMUX", None)
    inside = [sys.executable, str(script), str(asked), str(answered)]
    subprocess.run(
        [*server, "new-session", "-d", "-x", "200", "-y", "24", *inside], env=env, check=True, timeout=10
    )
    try:
        deadline = time.monotonic() + 60
        while not answered.exists():
            assert time.monotonic() < deadline, "tmux did not answer"
            time.sleep(0.05)
    finally:
        subprocess.run([*server, "kill-server"], env=env, check=False, timeout=10, capture_output=True)
    return [int(n) for n in json.loads(answered.read_text())]


def test_every_table_of_rich_agrees() -> None:
    for c in every_character():
        widths = {get_character_cell_size(c, table) for table in RICH_TABLES} | {width(c)}
        assert widths in ({1}, {2}), f"U+{ord(c):04X}"


@pytest.mark.real
def test_tmux_agrees(tmp_path: Path) -> None:
    kept = every_character()
    assert len(kept) > 14_000
    chance = random.Random(7)
    anything = [chr(n) for n in range(0xA0, 0x1FB00) if unicodedata.category(chr(n)) != "Cs"]
    lines = [fold("".join(chance.sample(kept, 20) + chance.sample(anything, 40))) for _ in range(2000)]
    lines += [
        fold(s)
        for s in (
            "👩🏽\u200d🔬 👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 ⚠\ufe0f ❤\ufe0f 1\ufe0f\u20e3 🇨🇳🇺",
            "がé각ग्लो ต้ำ",
        )
    ]
    for text, cells in zip(kept + lines, measured_by_tmux(kept + lines, tmp_path), strict=True):
        assert cells == cell_len(text) == width(text), ascii(text)

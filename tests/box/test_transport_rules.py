"""Rules that hold for all code that talks to boxes, read off the source.

Traps of asyncssh that have no test of behaviour, because the way round them is not to use the feature:
its SFTP client hides truncation and leaves half files under their final names; `run` and `create_process`
return normally when the link is lost; a StreamReader as a source breaks under back-pressure; channel signals
do nothing for root; `readline` splits long lines silently.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import tui.box

ROOM = Path(tui.box.__file__).parent
FORBIDDEN = {
    "start_sftp_client": "hides truncation, has no resume",
    "scp": "path traversal by the box before 2.23.1",
    "create_process": "a lost link looks like success",
    "run_client": "has no deadline of ours",
    "send_signal": "does nothing for root on a box",
    "create_subprocess_shell": "a shell string built from data",
}


def test_features_with_traps_are_not_used() -> None:
    found = []
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = (
                node.attr
                if isinstance(node, ast.Attribute)
                else node.id
                if isinstance(node, ast.Name)
                else ""
            )
            if name in FORBIDDEN:
                found.append(f"{path.name}:{getattr(node, 'lineno', 0)} {name}: {FORBIDDEN[name]}")
    assert found == []


def test_no_host_key_check_is_ever_switched_off() -> None:
    """`known_hosts=None` means "any key" to asyncssh."""
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            pairs: list[tuple[object, ast.expr]] = []
            if isinstance(node, ast.Call):
                pairs = [(k.arg, k.value) for k in node.keywords]
            elif isinstance(node, ast.Dict):
                pairs = [
                    (k.value, v)
                    for k, v in zip(node.keys, node.values, strict=True)
                    if isinstance(k, ast.Constant)
                ]
            for name, value in pairs:
                if name == "known_hosts":
                    assert not (isinstance(value, ast.Constant) and value.value is None), path


def test_asyncssh_is_not_loaded_before_the_first_connection() -> None:
    program = (
        "import sys, tui.box.connect, tui.box.local, tui.box.system_ssh, tui.box.backoff, tui.box.wake\n"
        "print(sorted({'asyncssh', 'cryptography', 'pydantic', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("[]\n", "")

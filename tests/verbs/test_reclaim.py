"""`rgt reclaim`: a plan for everybody, and a removal only for somebody at the keyboard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.box.test_reclaim import age
from tests.rig.person import ROOT, Person
from tests.rig.tmpfs import tmpfs
from tui.cli import main
from tui.custody.receipts import verify_chain
from tui.fleet.paths import Paths, paths
from tui.verbs import reclaim


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "rgt"))
    (tmp_path / "rgt" / "config").mkdir(parents=True)
    return paths()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that is nearly full: half of it comes back, some of it is trash, the rest is kept."""
    with tmpfs(tmp_path / "disk", size=2 << 20) as made:
        for name, size in (
            (".cache/pip/http/x", 1_000_000), (".Trash-0/files/y", 500_000), ("best.pt", 400_000)
        ):  # fmt: skip
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(b"x" * size)
        age(made)
        yield made


@pytest.fixture
def people() -> Iterator[list[Person]]:
    made: list[Person] = []
    yield made
    for person in made:
        person.close()


def words(disk: Path, *more: str) -> list[str]:
    return ["reclaim", "local", "--mount", str(disk), *more]


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_plan_alone_changes_nothing_and_needs_nobody(
    where: Paths, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--read-only", *words(disk, "--dry-run")]) == 0
    out = capsys.readouterr().out
    assert f"  {disk}/.cache/pip\n" in out
    assert "pip cache: holds only what pip downloads or builds again" in out
    assert "% used now," in out and "computed; what comes free is read afterwards" in out
    assert f"not in it: {disk}/.Trash-0 (trash, " in out
    assert main(words(disk, "--json", "--path", f"{disk}/.Trash-0")) == 0
    plan = told(capsys)
    assert [entry["path"] for entry in plan["entries"]] == [f"{disk}/.Trash-0"]
    assert (plan["level"], plan["shortfall"]) == (3, 0)
    assert plan["pct_after"] < plan["pct_now"]
    assert (disk / ".Trash-0/files/y").exists() and not (where.state / "reclaim").exists()


def test_what_is_not_in_the_list_is_refused(
    where: Paths, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(disk, "--path", f"{disk}/best.pt")) == 1
    assert "is not in the allow-list" in capsys.readouterr().err
    assert main(["--read-only", *words(disk)]) == 1
    assert "read-only" in capsys.readouterr().err
    assert main(["reclaim", "nobody"]) == 2
    assert main(["reclaim", "local", "--mount", str(disk / "nix")]) == 4
    assert (disk / "best.pt").exists() and (disk / ".cache/pip/http/x").exists()


def test_where_nothing_may_go_the_exact_shortfall_is_told(
    where: Paths, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (disk / ".cache/pip/http/x").open("rb"), (disk / ".Trash-0/files/y").open("rb"):
        assert main(words(disk, "--json")) == 1
    plan = told(capsys)
    assert plan["entries"] == [] and plan["shortfall"] == plan["to_free"] > 0


@pytest.mark.parametrize("stdin", ["pipe", "/dev/null"])
def test_without_a_terminal_there_is_a_plan_and_no_act(
    where: Paths, disk: Path, stdin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    phrase = b""
    if stdin == "pipe":
        assert main(words(disk, "--json")) == 0
        phrase = f"reclaim local {told(capsys)['digest'][:8]}\n".encode()
    done = subprocess.run(
        [sys.executable, "-m", "tui.cli", *words(disk)],
        input=phrase if stdin == "pipe" else None,
        stdin=subprocess.DEVNULL if stdin == "/dev/null" else None,
        capture_output=True, cwd=ROOT, timeout=60, start_new_session=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert b".cache/pip" in done.stdout
    assert b"no terminal" in done.stderr
    assert (disk / ".cache/pip/http/x").exists() and not (where.state / "reclaim").exists()


def phrase_on(person: Person) -> bytes:
    person.sees(b"> ", 90.0)
    lines = person.screen.decode("utf-8", "replace").splitlines()
    return next(line.strip().encode() for line in lines if line.strip().startswith("reclaim local "))


def test_the_typed_phrase_removes_the_list_and_what_came_free_is_observed(
    where: Paths, disk: Path, people: list[Person]
) -> None:
    pipe, write = os.pipe()
    people.append(person := Person([sys.executable, "-m", "tui.cli", *words(disk)], stdin=pipe))
    person.types(b"y\r")  # typed ahead
    typed = phrase_on(person)
    os.write(write, typed + b"\n")  # standard input is nobody
    assert (disk / ".cache/pip/http/x").exists()
    person.types(typed + b"\r")
    code, out = person.ends()
    os.close(pipe)
    os.close(write)
    assert code == 0, out
    assert f"removed  {disk}/.cache/pip" in out
    assert "observed: 1.0 MB and 3 inodes came free; bytes " in out
    assert not (disk / ".cache/pip").exists()
    assert (disk / ".Trash-0/files/y").exists() and (disk / "best.pt").exists()
    report = verify_chain(where.receipts)
    assert report.holds
    assert [(one.receipt.act, one.receipt.result) for one in report.receipts] == [("reclaim", "passed")]


def test_a_terminal_is_the_only_way_in() -> None:
    """Nothing of the verb's own reads standard input, the environment or a file for an answer."""
    source = Path(str(reclaim.__file__)).read_text()
    for way in ("environ", "stdin", "input(", "getpass", "--yes", "--force"):
        assert way not in source

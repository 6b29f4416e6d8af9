"""Looks: read-only, bounded, whole under any shell, and honest about what they could not read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tui.box.local import LocalTransport
from tui.box.looks import LINES, Subjects, script_of, take
from tui.box.survey import SURVEY, read_survey, survey
from tui.box.transport import Completed, LinkLost, Script, SessionsExhausted
from tui.model.failure import Failure
from tui.model.look import LOOK, LOOKS
from tui.triage.ladder import ladder

SHELLS = [shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(shell[0])]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("text", [*(script_of(look, "x").text for look in LOOKS), SURVEY])
def test_every_script_is_whole_in_every_shell(shell: list[str], text: str) -> None:
    done = subprocess.run([*shell, "-n", "-c", text], capture_output=True, text=True, timeout=10, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("text", [*(script_of(look, "x").text for look in LOOKS), SURVEY])
def test_no_script_writes_kills_or_removes(text: str) -> None:
    words = re.sub(r"[0-9]?>(?:/dev/null|&[0-9])", "", text)
    for forbidden in (" rm ", "kill ", "mv ", "tee ", "-delete", "sysctl -w", "umount", "mount -"):
        assert forbidden not in words, forbidden
    assert not re.search(r"(?<![-=])>{1,2} ?[\"'/$a-z]", words)


async def test_a_subject_is_an_argument_and_never_source(tmp_path: Path) -> None:
    folder = tmp_path / 'a\'b $(touch pwned) `id` "q"'
    folder.mkdir()
    (folder / "one.txt").write_text("x")
    answer = await take(LocalTransport(), "disk_files", Subjects(mount=str(folder)), at=5.0, box="b")
    assert answer.exit == 0
    assert any("1  ." in line for line in answer.lines)
    assert not list(tmp_path.rglob("pwned"))


async def test_limits_and_stack_of_a_process_that_is_there_and_of_one_that_is_not() -> None:
    transport = LocalTransport()
    there = await take(transport, "limits", Subjects(pid=os.getpid()), at=5.0, box="b")
    assert any("open now: " in line for line in there.lines)
    gone = await take(transport, "stack", Subjects(pid=2**22 + 1), at=5.0, box="b")
    assert gone.exit == 1
    assert gone.lines[0] == f"pid {2**22 + 1} is not there"


async def test_deleted_but_open_files_are_found(tmp_path: Path) -> None:
    path = tmp_path / "big file.bin"
    with path.open("wb") as held:
        held.write(b"x" * 4321)
        held.flush()
        path.unlink()
        answer = await take(LocalTransport(), "deleted_files", Subjects(), at=5.0, box="b")
    assert any("4321 bytes" in line and f"pid {os.getpid()}" in line for line in answer.lines)
    assert "could not be read" in answer.lines[-1]


async def test_a_look_without_its_subject_says_what_is_missing() -> None:
    answer = await take(LocalTransport(), "stack", Subjects(), at=5.0, box="b")
    assert (answer.exit, answer.lines, answer.note) == (None, (), "no process is known for this run")


class Scripted:
    """A transport that answers as told."""

    name = "b"

    def __init__(self, answer: Completed | Exception) -> None:
        self._answer = answer

    async def run(self, script: Script, **_: object) -> Completed:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def test_what_hinders_a_look_is_its_note_and_a_lost_link_is_not() -> None:
    for answer, note in (
        (TimeoutError(), "no answer within 15 s; it was ended"),
        (SessionsExhausted("no session is free"), "no session is free"),
        (Completed(1, b"", b"dmesg: not permitted\n", 0.1), "dmesg: not permitted"),
        (Completed(7, b"", b"", 0.1), "exit status 7"),
        (Completed(0, b"x\n" * 9, b"", 0.1, truncated=True), "this is the beginning"),
    ):
        taken = await take(Scripted(answer), "dmesg", Subjects(), at=1.0, box="b")  # type: ignore[arg-type]
        assert note in taken.note
    with pytest.raises(LinkLost):
        await take(Scripted(LinkLost("cut")), "dmesg", Subjects(), at=1.0, box="b")  # type: ignore[arg-type]


async def test_hostile_and_endless_output_is_made_safe_and_bounded() -> None:
    raw = b"\x1b]0;evil\x07[red]x\xe2\x80\xae\n" * 5000
    taken = await take(Scripted(Completed(0, raw, b"", 0.1)), "dmesg", Subjects(), at=1.0, box="b")  # type: ignore[arg-type]
    assert len(taken.lines) == LINES
    assert all(line.isprintable() for line in taken.lines)


def test_every_look_has_a_script_and_a_deadline() -> None:
    for look in LOOKS:
        assert script_of(look, "x").why == look.title
        assert 0 < look.deadline_s <= 60
    assert len(LOOK) == len(LOOKS)


# -- the survey --------------------------------------------------------------------------------------------


def age(folder: Path) -> None:
    """Nothing here was written lately."""
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000), follow_symlinks=False)


def furnish(root: Path) -> None:
    folders = [f"hub/models--a--b/{part}" for part in ("blobs", "refs", "snapshots")]
    folders += [".cache/pip/http", "my's/__pycache__", ".Trash-0/files", "fake/__pycache__", "results"]
    for folder in folders:
        (root / folder).mkdir(parents=True)
    (root / ".cache/pip/http/x").write_bytes(b"x" * 200_000)
    (root / "hub/models--a--b/blobs/q").write_bytes(b"x" * 100_000)
    (root / "my's/__pycache__/a.cpython-311.pyc").write_bytes(b"x")
    (root / "fake/__pycache__/thesis.tex").write_bytes(b"x")
    (root / ".Trash-0/files/old").write_bytes(b"x" * 50_000)
    (root / "results/new\nline").write_bytes(b"x" * 300_000)


async def test_a_survey_knows_caches_by_their_content_and_leaves_what_is_in_use(tmp_path: Path) -> None:
    furnish(tmp_path)
    age(tmp_path)
    (tmp_path / "results/fresh.png").write_bytes(b"x")
    with (tmp_path / ".Trash-0/files/old").open("rb"):
        seen = await survey(LocalTransport(), str(tmp_path))
    names = {Path(one.path).relative_to(tmp_path).as_posix(): one.kind for one in seen.found}
    assert names == {
        ".cache/pip": "pip", "hub/models--a--b": "hf", "my's/__pycache__": "pycache", ".Trash-0": "trash"
    }  # fmt: skip
    assert seen.whole
    assert seen.size_bytes and seen.inodes
    assert dict(seen.recent) == {str(tmp_path / "results"): 1}
    made = ladder(seen, box="b", at=0.0, resource="bytes")
    assert str(tmp_path / ".cache/pip") in {str(r.path) for r in made.reclaim}
    assert any("in use by pid" in p.why and ".Trash-0" in p.path for p in made.protected)
    for one in seen.found:
        stat = os.lstat(one.path)
        assert one.identity == f"{stat.st_dev}:{stat.st_ino}:{int(stat.st_mtime)}"


async def test_what_is_linked_from_elsewhere_frees_nothing(tmp_path: Path) -> None:
    (tmp_path / "c/.cache/pip/http").mkdir(parents=True)
    (tmp_path / "c/.cache/pip/http/x").write_bytes(b"x" * 400_000)
    os.link(tmp_path / "c/.cache/pip/http/x", tmp_path / "elsewhere")
    age(tmp_path)
    (one,) = (await survey(LocalTransport(), str(tmp_path))).found
    assert one.bytes < 100_000


async def test_a_folder_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="There is no folder"):
        await survey(LocalTransport(), str(tmp_path / "nix"))


def test_rows_that_break_off_are_not_taken_for_whole() -> None:
    rows = ("B", "100", "200", "D", "5", "/d/x", "C", "pip", "1:2:3", "")
    seen = read_survey("/d", Completed(0, "\0".join(rows).encode(), b"", 1.0))
    assert not seen.whole
    assert (seen.used_bytes, seen.size_bytes) == (102_400, 204_800)
    assert seen.by_bytes == (("/d/x", 5120),)
    assert seen.found == ()

"""Removal on the box: exactly one path, re-checked there, in every shell, on a file system of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real import absent, need
from tests.rig.tmpfs import tmpfs
from tui.box.local import LocalTransport
from tui.box.reclaim import REMOVE, remove, still_there
from tui.box.survey import room_on, survey
from tui.box.transport import Completed, Script
from tui.model.text import safe
from tui.triage.ladder import ladder, mounted_as

SHELLS = [shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(shell[0])]
OLD = 1_700_000_000
ODD = ("a.pyc", "-rf", "two\nlines", 'it\'s "x"', "$(touch pwned)", "`id`", ".hidden", "\udcff\udcfe")


def age(folder: Path) -> None:
    """Nothing here was written lately."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (OLD, OLD), follow_symlinks=False)


def identity(path: Path) -> str:
    seen = path.lstat()
    return f"{seen.st_dev}:{seen.st_ino}:{int(seen.st_mtime)}"


def cache(where: Path, name: str = "__pycache__") -> Path:
    """A cache with names that a careless script trips over."""
    made = where / name
    (made / "deep" / "-rf *").mkdir(parents=True)
    for odd in (
        "a.pyc",
        "-rf",
        "two\nlines",
        'it\'s "quoted"',
        "$(touch pwned)",
        "`id`",
        ".hidden",
        "\udcff\udcfe",
    ):
        (made / odd).write_bytes(b"x" * 100)
        (made / "deep" / "-rf *" / odd).write_bytes(b"x")
    age(made)
    return made


class InShell(LocalTransport):
    """This computer under a given shell, and with its own tools where the shell brings some."""

    def __init__(self, shell: list[str], tools: str) -> None:
        super().__init__("box")
        self.shell, self.tools = shell, tools

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        words = [*self.shell, "-c", script.text, "rgt", *map(str, script.args)]
        env = {**os.environ, "PATH": self.tools}
        done = subprocess.run(words, input=stdin, capture_output=True, timeout=60, check=False, env=env)
        return Completed(done.returncode, done.stdout, done.stderr, 0.0)


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> InShell:
    """A box; busybox's has nothing but busybox's tools, and so a `find` that may know no -delete."""
    name, *options = request.param
    path = str(shutil.which(name))
    if name != "busybox":
        return InShell([path, *options], os.environ["PATH"])
    (tmp_path / "applets").mkdir()
    subprocess.run([path, "--install", "-s", str(tmp_path / "applets")], check=True, timeout=20)
    return InShell([path, *options], str(tmp_path / "applets"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with tmpfs(tmp_path / "disk", size=4 << 20) as made:
        yield made


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_script_is_whole_in_every_shell(shell: list[str]) -> None:
    done = subprocess.run(
        [*shell, "-n", "-c", REMOVE], capture_output=True, text=True, timeout=10, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["__pycache__", "-rf", 'it\'s "x" $(touch pwned)', "* ?", "a\\b c"])
async def test_exactly_the_path_goes_and_nothing_beside_it(box: InShell, disk: Path, name: str) -> None:
    target = cache(disk, name)
    (disk / "results").mkdir()
    (disk / "results" / "best.pt").write_bytes(b"kept")
    (target / "link to results").symlink_to(disk / "results")
    age(disk)
    answer = await remove(box, safe(str(target)), identity(target))
    assert (answer.removal.state, answer.removal.why) == ("removed", "")
    assert sorted(path.name for path in disk.iterdir()) == ["results"]
    assert (disk / "results" / "best.pt").read_bytes() == b"kept"


async def test_a_file_goes_as_well(box: InShell, disk: Path) -> None:
    core = disk / "core.41"
    core.write_bytes(b"\x7fELF")
    (disk / "core.412").write_bytes(b"kept")
    age(disk)
    assert (await remove(box, safe(str(core)), identity(core))).removal.state == "removed"
    assert [path.name for path in disk.iterdir()] == ["core.412"]


def swapped_for_a_link(target: Path) -> None:
    target.rename(target.with_name("moved"))
    target.symlink_to(target.with_name("moved"))


def parent_swapped_for_a_link(target: Path) -> None:
    folder = target.parent
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def replaced(target: Path) -> None:
    target.rename(target.with_name("moved"))
    shutil.copytree(target.with_name("moved"), target)


def written_to(target: Path) -> None:
    (target / "thesis.tex").write_bytes(b"mine")


def written_to_below(target: Path) -> None:
    """The folder itself looks as before."""
    (target / "deep" / "thesis.tex").write_bytes(b"mine")


def gone(target: Path) -> None:
    shutil.rmtree(target)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (swapped_for_a_link, "it is a link now"),
        (parent_swapped_for_a_link, "a link in the way"),
        (replaced, "not what the survey saw"),
        (written_to, "not what the survey saw"),
        (written_to_below, "within the last 10 minutes"),
        (gone, "not there any more"),
    ],
)
async def test_what_is_not_what_it_was_is_skipped(
    box: InShell, disk: Path, change: Callable[[Path], None], why: str
) -> None:
    target = cache(disk / "project")
    seen = identity(target)
    age(disk)
    change(target)
    before = sorted(disk.rglob("*"))
    answer = await remove(box, safe(str(target)), seen)
    assert answer.removal.state == "skipped"
    assert why in answer.removal.why
    assert sorted(disk.rglob("*")) == before


@pytest.mark.parametrize(
    "path", ["", "relative", "/", "/tmp/", "/tmp/../etc", "/tmp/./x", "//etc/passwd", "/tmp/.."]
)
async def test_a_path_that_is_not_exact_is_skipped(path: str) -> None:
    answer = await remove(LocalTransport(), safe(path), "0:0:0")
    assert (answer.removal.state, answer.removal.why) == ("skipped", "its path is not exact")


async def test_what_a_process_has_open_stays_and_it_is_named(box: InShell, disk: Path) -> None:
    target = cache(disk)
    with (target / "two\nlines").open("rb"):
        answer = await remove(box, safe(str(target)), identity(target))
    assert answer.removal.state == "skipped"
    assert f"pid {os.getpid()} has it open" in answer.removal.why
    assert (target / "a.pyc").exists()
    worker = subprocess.Popen(["sleep", "60"], cwd=target / "deep")
    try:
        answer = await remove(box, safe(str(target)), identity(target))
    finally:
        worker.kill()
        worker.wait(10)
    assert f"pid {worker.pid} has it open (sleep 60" in answer.removal.why
    assert (await remove(box, safe(str(target)), identity(target))).removal.state == "removed"


async def test_a_file_that_only_begins_alike_is_not_in_the_way(box: InShell, disk: Path) -> None:
    target = cache(disk)
    beside = disk / "__pycache__2"
    beside.write_bytes(b"x")
    with beside.open("rb"):
        assert (await remove(box, safe(str(target)), identity(target))).removal.state == "removed"


@pytest.mark.parametrize("kind", ["bind", "tmpfs"])
@pytest.mark.parametrize("name", ["__pycache__", "with blank \\ and more"])
async def test_nothing_mounted_below_is_ever_entered(box: InShell, disk: Path, kind: str, name: str) -> None:
    """A bind mount has the same device number as its surroundings: `find -xdev` would go in."""
    mount = need("mount", "umount")
    target = cache(disk, name)
    kept = disk / "kept"
    kept.mkdir()
    (kept / "best.pt").write_bytes(b"weights")
    source = ["--bind", str(kept)] if kind == "bind" else ["-t", "tmpfs", "tmpfs"]
    made = subprocess.run([mount["mount"], *source, str(target / "deep")], capture_output=True, timeout=10)
    if made.returncode:
        absent("nothing can be mounted here")
    try:
        answer = await remove(box, safe(str(target)), identity(target))
        assert answer.removal.state == "skipped"
        assert "mounted below it" in answer.removal.why
        assert (kept / "best.pt").exists()
        assert mounted_as(str(target)) in Path("/proc/self/mountinfo").read_text()
    finally:
        subprocess.run([mount["umount"], "-l", str(target / "deep")], check=True, timeout=10)


async def test_the_copied_command_does_not_go_into_a_bind_mount_either(disk: Path) -> None:
    mount = need("mount", "umount")
    target = cache(disk)
    for odd in target.iterdir():
        if odd.is_file():
            odd.unlink()
    (target / "deep" / "-rf *").rename(target / "x")
    shutil.rmtree(target / "x")
    (target / "a.pyc").write_bytes(b"x")
    kept = disk / "kept"
    kept.mkdir()
    (kept / "best.pt").write_bytes(b"weights")
    age(disk)
    made = ladder(await survey(LocalTransport(), str(disk)), box="b", at=0.0, resource="inodes")
    (command,) = (str(one.command) for one in made.reclaim if one.path == str(target))
    bound = subprocess.run([mount["mount"], "--bind", str(kept), str(target / "deep")], timeout=10)
    if bound.returncode:
        absent("nothing can be mounted here")
    try:
        subprocess.run(["/bin/sh", "-c", command], timeout=10, check=False)
        assert (kept / "best.pt").exists()
        assert (target / "a.pyc").exists()
    finally:
        subprocess.run([mount["umount"], "-l", str(target / "deep")], check=True, timeout=10)
    subprocess.run(["/bin/sh", "-c", command], timeout=10, check=False)
    assert not target.exists()


async def test_what_cannot_be_removed_is_a_failure_with_the_reason(
    box: InShell, disk: Path, tmp_path: Path
) -> None:
    target = cache(disk)
    shims = tmp_path / "shims"
    shims.mkdir()
    for tool in ("find", "rmdir"):
        real = shutil.which(tool, path=box.tools)
        (shims / tool).write_text(
            f'#!/bin/sh\ncase "$*" in *-delete*-exec*|*"! -name"*) exit 1 ;; *-exec*|./*) '
            f'echo "{tool}: Operation not permitted" >&2; exit 1 ;; esac\nexec {real} "$@"\n'
        )
        (shims / tool).chmod(0o755)
    box.tools = f"{shims}:{box.tools}"
    answer = await remove(box, safe(str(target)), identity(target))
    assert answer.removal.state == "failed"
    assert "Operation not permitted" in answer.removal.why
    assert (target / "a.pyc").exists()


async def test_an_answer_that_cannot_be_read_is_unknown() -> None:
    class Garbled(LocalTransport):
        async def run(self, script: Script, **_: object) -> Completed:
            return Completed(127, b"", b"sh: \x1b[31mstat: not found\n", 0.1)

    answer = await remove(Garbled(), safe("/data/x"), "1:2:3")
    assert answer.removal.state == "unknown"
    assert answer.removal.why.endswith("sh: stat: not found")


async def test_room_and_what_is_there_are_read_without_a_walk(disk: Path) -> None:
    (disk / "x").write_bytes(b"x" * (1 << 20))
    (disk / "dangling").symlink_to("nowhere")
    room = await room_on(LocalTransport(), str(disk))
    assert room.size_bytes == 4 << 20
    assert room.used_bytes == 1 << 20
    assert room.used_inodes == 3
    found = await still_there(LocalTransport(), (str(disk / "dangling"), str(disk / "gone\n"), str(disk)))
    assert found == {str(disk / "dangling"): True, str(disk / "gone\n"): False, str(disk): True}

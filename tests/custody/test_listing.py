"""The listing of a box's folder: every byte of every name, with GNU tools and with BusyBox alone."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.custody.boxes import Through, busybox, everyones_folder, gnu, stranger
from tui.custody.listing import FolderMissing, look_again, relative, take_listing

ODD = (
    b"new\nline.pt", b"back\\slash", b"car\rreturn", b"-rf", b" lead", b"trail ", b"tab\t", b"`id`", b"end\n",
    b"$(touch CANARY)", b"star*[1]?", b"per%0Acent%s", b"latin1_\xe9", b"\xff\xfe", "café".encode(), b"...",
    "cafe\u0301".encode(), b"'\"", b"\x1b[31mred", b"L" * 255,
)  # fmt: skip

BOXES = ["dash", "bash", "busybox"]


@pytest.fixture(params=BOXES)
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Through:
    return busybox(tmp_path / "bin") if request.param == "busybox" else gnu(request.param)


def _tree(top: Path) -> dict[str, os.stat_result]:
    found = {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in (*folders, *files):
            path = folder + b"/" + name
            found[os.fsdecode(os.path.relpath(path, os.fsencode(top)))] = os.lstat(path)
    return found


async def test_every_kind_and_every_name(box: Through, tmp_path: Path) -> None:
    top = tmp_path / "run"
    (top / "deep" / "er").mkdir(parents=True)
    for number, name in enumerate(ODD):
        (Path(os.fsdecode(os.fsencode(top / "deep") + b"/" + name))).write_bytes(b"x" * number)
    (top / "link").symlink_to("deep/er")
    (top / "odd link").symlink_to("a\nb ")
    os.mkfifo(top / "pipe")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(top / "sock"))
        listing = await take_listing(box, str(top))
    real = _tree(top)
    assert {e.path for e in listing.entries} == set(real)
    for entry in listing.entries:
        status = real[entry.path]
        assert (entry.size, entry.inode, entry.device) == (status.st_size, status.st_ino, status.st_dev)
        assert (entry.modified_ns, entry.changed_ns) == (status.st_mtime_ns, status.st_ctime_ns)
    kinds = {e.path: e.kind for e in listing.entries}
    assert (kinds["pipe"], kinds["sock"], kinds["link"], kinds["deep"]) == ("p", "s", "l", "d")
    assert {e.target for e in listing.entries if e.kind == "l"} == {"deep/er", "a\nb "}
    assert not list(tmp_path.rglob("CANARY"))
    assert not listing.coarse
    assert not listing.complaints
    again = await look_again(box, str(top), [e.path for e in listing.files()] + ["gone"])
    assert {(e.path, e.size, e.modified_ns) for e in again.entries} == {
        (e.path, e.size, e.modified_ns) for e in listing.files()
    }


async def test_no_link_is_followed_and_nothing_left_out_is_entered(box: Through, tmp_path: Path) -> None:
    top, outside = tmp_path / "run", tmp_path / "outside"
    (top / "in[1]*").mkdir(parents=True)
    (top / "in[1]*" / "no").touch()
    (top / "in1x").mkdir()
    (top / "in1x" / "yes").touch()
    outside.mkdir()
    (outside / "secret").touch()
    (top / "out").symlink_to(outside)
    via = tmp_path / "via"
    via.symlink_to(top)
    listing = await take_listing(box, str(via), leave_out=[str(top / "in[1]*"), str(outside)])
    assert listing.top == str(top)
    assert {e.path for e in listing.entries} == {"in1x", "in1x/yes", "out"}


async def test_a_folder_that_is_not_there_is_said(box: Through, tmp_path: Path) -> None:
    with pytest.raises(FolderMissing):
        await take_listing(box, str(tmp_path / "absent"))


async def test_a_file_that_goes_away_meanwhile_takes_no_other_with_it(tmp_path: Path) -> None:
    box = busybox(tmp_path / "bin")
    stat = tmp_path / "bin" / "stat"
    stat.unlink()
    stat.write_text(f'#!/bin/sh\nrm -f "{tmp_path}/run/b"\nexec {tmp_path}/bin/busybox-stat "$@"\n')
    stat.chmod(0o755)
    program = tmp_path / "bin" / "busybox-stat"
    program.write_text(f'#!/bin/sh\nexec {(tmp_path / "bin" / "sh").readlink()} stat "$@"\n')
    program.chmod(0o755)
    (tmp_path / "run").mkdir()
    for name in "abc":
        (tmp_path / "run" / name).write_text(name)
    listing = await take_listing(box, str(tmp_path / "run"))
    assert sorted(e.path for e in listing.entries) == ["a", "c"]


async def test_a_folder_that_cannot_be_read_is_a_complaint() -> None:
    nobody = stranger()
    with everyones_folder() as folder:
        (folder / "run" / "closed").mkdir(parents=True)
        (folder / "run" / "closed").chmod(0)
        listing = await take_listing(nobody, str(folder / "run"))
    assert listing.complaints
    assert "closed" in listing.complaints[0]


_name = st.binary(min_size=1, max_size=40).filter(
    lambda b: b"\0" not in b and b"/" not in b and b not in (b".", b"..")
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(_name, min_size=1, max_size=20))
def test_any_name_at_all(names: set[bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("names")
    for name in names:
        with open(os.fsencode(folder) + b"/" + name, "wb") as file:
            file.write(name)
    makers: tuple[Callable[[], Through], ...] = (gnu, lambda: busybox(folder.parent / "bin"))
    for make in makers:
        listing = asyncio.run(take_listing(make(), str(folder)))
        assert {os.fsencode(e.path): e.size for e in listing.entries} == {n: len(n) for n in names}


def test_relative_paths_stay_below() -> None:
    assert relative("/a/b/c", "/a/b") == "c"
    assert relative("/a/b", "/a/b") == ""
    assert relative("/a/bc", "/a/b") is None
    assert relative("/x", "/") == "x"

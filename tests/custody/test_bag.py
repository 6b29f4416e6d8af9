"""The shape of a bag: what other programs read, and what travels in its tar."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.custody.copy_rig import FILES, ODD, independent_readers
from tests.real import need
from tui.box.transfer.tarstream import TarRefused
from tui.custody.bag import hashed, layout, raw_name, tag_files, tar_header
from tui.custody.tar_copy import read_tar, write_tar
from tui.model.custody import HashedFile


def files(content: dict[str, bytes]) -> list[HashedFile]:
    return [hashed(path, data) for path, data in content.items()]


def test_odd_names_are_told_from_plain_ones() -> None:
    made = layout(files({**FILES, **ODD}))
    assert {one.path for one in made.plain} == set(FILES)
    assert {one.path for one in made.tarred} == set(ODD)
    assert made.tar == "data/unportable-names.tar"
    assert layout(files(dict(FILES))).tar is None
    assert layout(files({"Unportable-Names.tar": b"", "a%": b""})).tar == "data/unportable-names-2.tar"


def test_names_that_leave_or_come_twice_are_refused() -> None:
    for bad in ("../x", "/x", "a/../../x"):
        with pytest.raises(ValueError, match="leads out"):
            layout(files({bad: b""}))
    with pytest.raises(ValueError, match="twice"):
        layout(files({"a": b""}) * 2)


def _bag(folder: Path, content: dict[str, bytes]) -> None:
    payload = []
    for path, data in content.items():
        target = folder / "data" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        payload.append(hashed(f"data/{path}", data))
    for path, data in tag_files(payload, "run-1", "2027-01-15T08:00:00Z").items():
        (folder / path).write_bytes(data)


@pytest.mark.real
def test_independent_readers_accept_it(tmp_path: Path) -> None:
    _bag(tmp_path, dict(FILES))
    independent_readers(tmp_path)
    info = (tmp_path / "bag-info.txt").read_text()
    assert f"Payload-Oxum: {sum(map(len, FILES.values()))}.{len(FILES)}\n" in info
    (tmp_path / "data" / "train.csv").write_bytes(b"step,loss\n1,3\n")
    with pytest.raises(subprocess.CalledProcessError):
        independent_readers(tmp_path)


def test_the_tar_follows_from_its_members_and_any_tar_reads_it(tmp_path: Path) -> None:
    made = layout(files(dict(ODD)))
    numbers = {one.path: tmp_path / str(number) for number, one in enumerate(made.tarred)}
    for path, place in numbers.items():
        place.write_bytes(ODD[path])
    one = write_tar(tmp_path / "a.tar", made.tarred, lambda f: numbers[f.path])
    two = write_tar(tmp_path / "b.tar", made.tarred[::-1][::-1], lambda f: numbers[f.path])
    assert (one.size, one.sha256) == (two.size, two.sha256)
    assert one.size == made.tar_size == (tmp_path / "a.tar").stat().st_size
    assert one.sha256 == "sha256:" + hashlib.sha256((tmp_path / "a.tar").read_bytes()).hexdigest()
    told = read_tar(tmp_path / "a.tar", 2_000_000)
    assert told == {raw_name(f.path): (f.size, f.sha256) for f in made.tarred}
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert {m.name: tar.extractfile(m).read() for m in tar} == dict(ODD)  # type: ignore[union-attr]


@pytest.mark.real
@pytest.mark.parametrize("program", ["tar", "busybox"])
def test_programs_unpack_the_tar(tmp_path: Path, program: str) -> None:
    test_the_tar_follows_from_its_members_and_any_tar_reads_it(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    tool = need(program)[program]
    command = [tool, "tar"] if program == "busybox" else [tool]
    subprocess.run([*command, "-xf", str(tmp_path / "a.tar")], cwd=out, check=True, timeout=20)
    assert {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()} == dict(ODD)


@pytest.mark.parametrize("size", [0, 1, 8**11 - 1, 8**11, 5 * 10**12])
def test_sizes_in_headers(size: int) -> None:
    info = tarfile.TarInfo.frombuf(tar_header(b"big", size), "utf-8", "surrogateescape")
    assert (info.name, info.size) == ("big", size)


@given(st.binary(min_size=1, max_size=300).filter(lambda b: b"\0" not in b and not b.endswith(b"/")))
def test_any_name_survives_the_header(name: bytes) -> None:
    raw = tar_header(name, 3) + b"abc".ljust(512, b"\0") + bytes(1024)
    with tarfile.open(fileobj=io.BytesIO(raw), encoding="utf-8", errors="surrogateescape") as tar:
        member = tar.next()
        assert member is not None
        assert raw_name(member.name) == name.rstrip(b"/")


def test_a_damaged_or_foreign_tar_is_refused(tmp_path: Path) -> None:
    test_the_tar_follows_from_its_members_and_any_tar_reads_it(tmp_path)
    raw = (tmp_path / "a.tar").read_bytes()
    cases = {"cut": raw[:-20480], "twice": raw + raw, "page": b"<html>" * 500, "short": raw[: len(raw) // 2]}
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(TarRefused):
            read_tar(tmp_path / name, 2_000_000)
    with pytest.raises(TarRefused, match="larger"):
        read_tar(tmp_path / "a.tar", 1000)

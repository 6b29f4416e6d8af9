"""The tar reader: real archives of several programs, and hostile ones."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.real import need
from tui.box.transfer.lots import lots
from tui.box.transfer.tarstream import Begin, End, TarReader, TarRefused
from tui.box.transfer.wanted import Wanted

LARGEST = 1 << 20


def taken(stream: bytes, step: int = 1000, largest: int = LARGEST) -> dict[bytes, bytes]:
    """What the reader makes of a stream that comes in pieces of `step` bytes."""
    reader = TarReader(largest)
    found: dict[bytes, bytes] = {}
    name, data, whole = b"", b"", True
    for at in range(0, len(stream), step):
        for event in reader.feed(stream[at : at + step]):
            if isinstance(event, Begin):
                assert whole
                name, data, whole = event.name, b"", False
            elif isinstance(event, End):
                found[name], whole = data, True
            else:
                data += event
    assert reader.whole
    return found


def archive(build: Callable[[tarfile.TarFile], None], form: int = tarfile.GNU_FORMAT) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=form) as tar:
        build(tar)
    return raw.getvalue()


def member(name: str, data: bytes = b"x", **more: object) -> Callable[[tarfile.TarFile], None]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return lambda tar: tar.addfile(info, io.BytesIO(data))


NAMES = {
    "plain.bin": b"one",
    "empty": b"",
    "folder/with blank": b"two" * 500,
    "line\nfeed": b"3",
    "back\\slash": b"4",
    "back\\nslash": b"4b",
    "数据/ckpt é.pt": b"5",
    "-rf": b"6",
    "odd\udcff": b"7",
    "/".join(["deep" * 20] * 3) + "/" + "n" * 200: b"8" * 513,
    "block": b"9" * 512,
}


@pytest.mark.real
@pytest.mark.parametrize("tar", ["tar", "busybox"])
@pytest.mark.parametrize("form", ["gnu", "posix", "ustar"])
def test_archives_of_real_programs(tmp_path: Path, tar: str, form: str) -> None:
    tool = need(tar)[tar]
    names = {k: v for k, v in NAMES.items() if len(k) < 100 or form != "ustar"}
    for name, data in names.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    gnu = [f"--format={form}", "--no-unquote"]  # it unquotes backslashes in names, also on the command line
    command = [tool, *(["tar"] if tar == "busybox" else gnu), "-cf", "-"]
    done = subprocess.run(
        [*command, *(f"./{name}" for name in names)], cwd=tmp_path, capture_output=True, check=True
    )
    expected = {name.encode("utf-8", "surrogateescape"): data for name, data in names.items()}
    for step in (1, 511, 512, 513, 1 << 20):
        assert taken(done.stdout, step) == expected


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_archives_in_a_row_are_one(form: int) -> None:
    first, second = archive(member("a", b"1"), form), archive(member("b", b"2"), form)
    assert taken(first + second) == {b"a": b"1", b"b": b"2"}


def members(*names: str, data: bytes) -> bytes:
    def build(tar: tarfile.TarFile) -> None:
        for name in names:
            member(name, data)(tar)

    return archive(build)


def _linked(tar: tarfile.TarFile, kind: bytes) -> None:
    info = tarfile.TarInfo("innocent")
    info.type = kind
    info.linkname = "/etc/passwd"
    tar.addfile(info)


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        (archive(member("../escape")), "leads out"),
        (archive(member("a/../../escape")), "leads out"),
        (archive(member("/etc/cron.d/evil")), "leads out"),
        (archive(member("a//b")), "leads out"),
        (archive(member("x" * 200 + "/../evil")), "leads out"),
        (archive(member("../" + "x" * 200), tarfile.PAX_FORMAT), "leads out"),
        (archive(lambda tar: _linked(tar, tarfile.SYMTYPE)), "a link"),
        (archive(lambda tar: _linked(tar, tarfile.LNKTYPE)), "a hard link"),
        (archive(lambda tar: _linked(tar, tarfile.CHRTYPE)), "a device"),
        (archive(lambda tar: _linked(tar, tarfile.BLKTYPE)), "a device"),
        (archive(lambda tar: _linked(tar, tarfile.FIFOTYPE)), "a pipe"),
        (archive(lambda tar: _linked(tar, tarfile.DIRTYPE)), "a folder"),
        (archive(member("big", bytes(LARGEST + 1))), "larger"),
        (b"<html>not found</html>" * 100, "damaged|no tar"),
        (archive(member("a"))[:200] + b"!" + archive(member("a"))[201:], "damaged"),
    ],
)
def test_hostile_streams_are_refused(stream: bytes, says: str) -> None:
    with pytest.raises(TarRefused, match=says):
        taken(stream)


def test_a_cut_stream_is_never_whole() -> None:
    stream = members("f0", "f1", "f2", data=b"y" * 700)
    for end in range(0, len(stream) - 10240 + 1024, 256):
        reader = TarReader(LARGEST)
        list(reader.feed(stream[:end]))
        assert not reader.whole


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_stream_is_refused_or_stays_inside(data: st.DataObject) -> None:
    """Whatever is done to a stream: no name that leaves, no file beyond the limit, no other exception."""
    stream = bytearray(members("a", "b/c", "d" * 150, data=b"z" * 600))
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, 4096))] = data.draw(st.integers(0, 255))
    reader = TarReader(LARGEST)
    try:
        for event in reader.feed(bytes(stream)):
            if isinstance(event, Begin):
                assert event.size <= LARGEST
                assert not event.name.startswith(b"/")
                assert b".." not in event.name.split(b"/")
    except TarRefused:
        pass


def test_lots_are_about_equal_and_hold_every_file_once() -> None:
    files = [Wanted(str(number), 1000 + number % 7, "sha256:") for number in range(9000)]
    cut = lots(files, largest=4_000_000)
    assert [wanted for lot in cut for wanted in lot] == files
    sizes = [sum(wanted.size for wanted in lot) for lot in cut]
    assert len(sizes) == 3
    assert max(sizes) <= 4_000_000
    assert max(sizes) - min(sizes) < 10_000
    assert len(lots(files)) == 2  # 5,000 files are the most, however small
    assert lots([]) == []

"""The parts of the log tail that need no box: splitting, directory listings, the spool."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.box.tail.rotation import HELD, Entry, Following, copies, entries, entry, following, look
from tui.box.tail.splitter import MOST_LINES, Piece, Splitter
from tui.box.tail.spool import Spool, gap_line, spool_name
from tui.model.log import LogBatch, LogGap, LogPosition
from tui.model.text import LINE_LIMIT, LogGate, LogText, SafeText, log_lines

# --- splitter ------------------------------------------------------------------------------------------


def fed(data: bytes, cuts: list[int], offset: int = 0) -> tuple[list[Piece], Splitter]:
    splitter = Splitter(offset, LogGate())
    pieces = []
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        if start < end:
            pieces += list(splitter.feed(data[start:end]))
    return pieces, splitter


lines_of_a_log = st.lists(
    st.one_of(
        st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")),
        st.sampled_from(
            [b"", b"\r", b"a\rb", b"bar 1\r", b"x\r\r", "训练".encode(), b"\0\0\0", b"\x1b[31mred\x1b[0m"]
        ),
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(lines_of_a_log, st.lists(st.integers(0, 400), max_size=8))
def test_lines_do_not_depend_on_where_reads_were_cut(raw: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join(raw)
    whole, _ = fed(data, [])
    pieces, splitter = fed(data, cuts)
    assert [line for p in pieces for line in p.lines] == [line for p in whole for line in p.lines]
    for piece in pieces:
        assert data[: piece.end].endswith(b"\n")
    assert splitter.resume_at <= len(data)
    assert b"\n" not in data[splitter.resume_at :]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([b"abc", b"\r", b" 7%", b"\r\r", b"\0"]), max_size=12), st.binary(max_size=5))
def test_a_line_resumed_after_a_cut_is_the_same_line(before: list[bytes], after: bytes) -> None:
    data = b"".join(before)
    tail = after.replace(b"\n", b"") + b"\n"
    uncut, _ = fed(data + tail, [])
    _, splitter = fed(data, [1, 2, 3])
    resumed, _ = fed(data[splitter.resume_at :] + tail, [])
    assert resumed[-1].lines == uncut[-1].lines


def test_progress_bars_do_not_pile_up() -> None:
    splitter = Splitter(0, LogGate())
    for n in range(2000):
        assert list(splitter.feed(b"\r%4d/2000 |" % n + b"#" * 80)) == []
    assert splitter.partial.startswith("1999/2000")
    assert splitter.resume_at == 1999 * 92 + 1
    assert splitter.finish() == [splitter_line(1999)]


def splitter_line(n: int) -> str:
    return f"{n:4d}/2000 |" + "#" * 80


def test_pieces_are_bounded_and_say_where_they_end() -> None:
    data = b"x\n" * 23_456 + b"y" * 3_000_000 + b"\n" + b"z" * 100
    pieces, splitter = fed(data, [], offset=1000)
    assert all(len(p.lines) <= MOST_LINES for p in pieces)
    assert [p.end for p in pieces][-1] == 1000 + len(data) - 100
    assert sum(len(p.lines) for p in pieces) == 23_457
    assert pieces[-1].lines[-1] == "y" * LINE_LIMIT + " … 3.0 MB more"
    assert splitter.partial == "z" * 100


def test_characters_cut_between_reads_are_whole() -> None:
    text = "训练损失 0.25 — naïve ✅\n"
    for encoding in ("utf-8", "gb18030"):
        data = text.encode(encoding)
        for cut in range(len(data)):
            pieces, _ = fed(data, [cut])
            assert [line for p in pieces for line in p.lines] == log_lines(data)
    assert log_lines(text) == [text.rstrip("\n")]


def test_a_hole_of_nuls_is_one_mark() -> None:
    pieces, _ = fed(b"\0" * 5_000_000 + b"step 1\n", list(range(0, 5_000_000, 65536)))
    assert pieces[-1].lines == ["␀step 1"]


# --- listings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"2146462 -rw-r--r-- 1 0 0 10 Nov 29 21:29 ./t/a b.log",
        b"2146462 -rw-r--r--    1 0        0               10 Nov 29 21:29 ./t/a b.log",
        b"  2146462 -rw-r--r--+ 12 1000 1000 10 Nov 29  2024 /x/a b.log",
        b"2146462 -rw-r--r--@ 1 501  20  10 29 Nov 21:29 ./a b.log",
    ],
)
def test_entries_of_every_ls(line: bytes) -> None:
    assert entry(line) == Entry(2146462, 10, "-", b"a b.log")


def test_what_is_no_entry() -> None:
    assert entry(b"5 crw-rw-rw- 1 0 0 1, 3 Nov 29 20:59 /dev/null") is None
    assert entries(b"ls: cannot access\ntotal 5\n") == []
    assert entry(b"9 drwxr-xr-x 2 0 0 4096 Nov 29 21:29 logs") == Entry(9, 4096, "d", b"logs")


def test_looks() -> None:
    path, held = (
        b"5 -rw-r--r-- 1 0 0 10 Nov 29 21:29 ./a@b.log",
        b"4 -rw-r--r-- 0 0 0 7 Nov 29 21:29 /dev/fd/3",
    )
    seen = look(path + b"\n" + held + b"\n")
    assert seen.path == Entry(5, 10, "-", b"a@b.log") and seen.held == Entry(4, 7, "-", HELD)
    by_name = look(path + b"\n@\n" + path)
    assert by_name.path == by_name.held == seen.path
    assert look(b"@\n").path is None and look(b"@").held is None
    assert look(held).path is None


def listing(*named: tuple[int, str]) -> list[Entry]:
    return [Entry(inode, 100, "-", name.encode()) for inode, name in named]


BASE = b"train.log"


@pytest.mark.parametrize(
    ("newest_first", "next_one"),
    [
        ([(9, "train.log"), (5, "train.log.1"), (5, "/dev/fd/3")], None),
        (
            [
                (9, "train.log"),
                (8, "train.log.1"),
                (7, "train.log.2"),
                (5, "train.log.3"),
                (4, "train.log.4"),
            ],
            7,
        ),
        ([(9, "train.log"), (8, "train.log-20240501"), (5, "train.log-20240401")], 8),
        (
            [
                (9, "train.log"),
                (8, "train.log.bak"),
                (7, "train.log2"),
                (6, "trainer.log.1"),
                (5, "train.log.1"),
            ],
            None,
        ),
        ([(9, "train.log"), (8, "train.1.log"), (5, "train.2.log")], 8),
        ([(9, "train.log"), (8, "train.1.log"), (5, "/dev/fd/3")], None),
    ],
)
def test_what_follows_a_rotated_file(newest_first: list[tuple[int, str]], next_one: int | None) -> None:
    assert following(listing(*newest_first), 5, 9, BASE, set()) == Following(next_one)


def test_what_cannot_be_followed_is_a_gap() -> None:
    packed = listing((9, "train.log"), (8, "train.log.1.gz"), (5, "/dev/fd/3"))
    assert following(packed, 5, 9, BASE, set()) == Following(None, "a rotated part of this log is compressed")
    assert following(listing((9, "train.log")), 5, 9, BASE, set()).gap
    again = listing((9, "train.log"), (8, "train.log.1"), (5, "train.log.2"))
    assert following(again, 5, 9, BASE, {(8, 100)}) == Following(None)


def test_copies_of_a_truncated_file() -> None:
    beside = [*listing((9, "train.log"), (8, "train.log.1"), (7, "train.log.2.gz"), (6, "other.log")),
              Entry(5, 10, "-", b"train.log.3")]  # fmt: skip
    assert [c.inode for c in copies(beside, 9, 50, BASE)] == [8]


# --- spool ---------------------------------------------------------------------------------------------


def batch(first: int, lines: list[str], offset: int, gap: int | None = None) -> LogBatch:
    gaps = () if gap is None else ((gap, LogGap(SafeText("it is gone"), 12_000)),)
    texts = [LogText(line) for line in lines]
    for index, what in gaps:
        texts[index] = gap_line(what)
    return LogBatch("r", first, tuple(texts), 0.0, gaps, position=LogPosition(7, offset, "ab", 2))


def test_a_spool_is_found_again_as_it_was_left(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s")
    assert (spool.next, spool.position, spool.load(10, 5).lines) == (0, None, [])
    spool.append(batch(0, ["one", "", "训练 ✅ \x1b[31mred\x1b[0m"], 30), "train.log")
    spool.append(batch(3, ["x", "after"], 50, gap=0), "train.log")
    spool.close()
    again = Spool(tmp_path / "s")
    assert (again.next, again.first, again.source) == (5, 0, "train.log")
    assert again.position == LogPosition(7, 50, "ab", 2)
    rows = again.load(5, 3)
    assert rows.first == 2
    assert rows.lines == ["训练 ✅ \x1b[31mred\x1b[0m", "──── 12.0 kB are missing: it is gone ────", "after"]
    assert rows.gaps == ((1, LogGap(SafeText("it is gone"), 12_000)),)
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    assert all(f.stat().st_mode & 0o777 == 0o600 for f in (tmp_path / "s").iterdir())


@given(st.integers(0, 10_000), st.binary(max_size=40))
@settings(max_examples=80, deadline=None)
def test_a_torn_spool_is_cut_to_what_agrees(
    tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes
) -> None:
    home = tmp_path_factory.mktemp("torn")
    spool = Spool(home)
    for n in range(20):
        spool.append(batch(n * 3, [f"line {n * 3 + i}" for i in range(3)], 100 * (n + 1)))
    spool.close()
    (file,) = home.iterdir()
    data = file.read_bytes()
    file.write_bytes(data[: cut % (len(data) + 1)] + junk)
    again = Spool(home)
    rows = again.load(again.next, 1000)
    assert rows.lines == [f"line {i}" for i in range(again.next)]
    assert again.next % 3 == 0
    expected = again.next // 3 * 100
    assert (again.position.offset if again.position else 0) in (
        expected,
        100 if again.next == 0 else expected,
    )
    again.append(batch(again.next, ["goes on"], 9999))
    assert again.load(again.next, 1).lines == ["goes on"]
    again.close()


def test_the_oldest_go_and_it_shows(tmp_path: Path) -> None:
    spool = Spool(tmp_path, cap_bytes=200_000)
    for n in range(400):
        spool.append(batch(n * 10, [f"{n * 10 + i:09d} " + "x" * 90 for i in range(10)], n))
    used = sum(f.stat().st_size for f in tmp_path.iterdir())
    assert used < 230_000
    assert 1000 < spool.first < spool.next == 4000
    assert spool.starts_at is not None and spool.starts_at.offset == spool.first // 10 - 1
    assert [line[:9] for line in spool.load(4000, 2).lines] == ["000003998", "000003999"]
    everything = spool.load(4000, 100_000)
    assert everything.first == spool.first and len(everything.lines) == 4000 - spool.first
    assert spool.load(spool.first, 10).lines == []
    assert sum(len(rows.lines) for rows in spool.newest_first()) == 4000 - spool.first
    spool.close()


def test_a_full_disk_stops_the_keeping_not_the_watching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path)
    spool.append(batch(0, ["kept"], 10))
    real = os.write

    def full(fd: int, data: bytes) -> int:
        real(fd, data[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tui.box.tail.spool.os.write", full)
    spool.append(batch(1, ["not kept"], 20))
    assert "No space left" in spool.fault
    assert (spool.next, spool.load(9, 9).lines) == (1, ["kept"])
    monkeypatch.undo()
    spool.append(batch(2, ["kept again"], 30))
    assert spool.fault == ""
    assert spool.load(3, 9).lines == ["kept again"], "lines that do not join are not shown as if they did"
    assert spool.load(1, 9).lines == ["kept"]
    spool.close()
    again = Spool(tmp_path)
    assert again.next == 3 and again.position == LogPosition(7, 30, "ab", 2)
    again.close()


def test_names_on_disk() -> None:
    odd = ["run", "../../etc", "a/b", "训练", "", "x" * 300, "a\nb", "CON", "a b"]
    names = [spool_name(name) for name in odd]
    assert len(set(names)) == len(odd)
    assert all(name.replace("-", "").replace("_", "").isalnum() and len(name) < 60 for name in names)

"""The log follower against real shells and real files that are rotated, truncated, replaced and removed."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path

import pytest

from tests.box.tail_box import SHELLS, ShellBox, Watcher, numbered_lines, write

pytestmark = pytest.mark.real


@pytest.fixture(params=[*SHELLS, "dash by name"])
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def watcher(tmp_path: Path, shell: str = "dash", path: str = "train.log") -> Watcher:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    name, _, by_name = shell.partition(" ")
    return Watcher(ShellBox(home, name), path, tmp_path / "spool", hold="name" if by_name else "")


async def test_reads_on_and_shows_what_is_unfinished(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell, "a b's.log")
    log = tmp_path / "home" / "a b's.log"
    write(log, "one", "two")
    async with watch:
        await watch.seen("two")
        with log.open("ab") as file:
            file.write(b"three\n 10%|#\r 20%|##")
        await watch.until(lambda: watch.partial == " 20%|##")
        assert watch.lines == ["one", "two", "three"]
        with log.open("ab") as file:
            file.write(b"\r 30%|###\r\nend\n")
        await watch.seen("end")
    assert watch.lines == ["one", "two", "three", " 30%|###", "end"]
    assert watch.gaps == []
    last = [b for b in watch.batches if b.lines][-1]
    assert last.position.offset == log.stat().st_size == last.file_bytes
    assert last.position.inode == log.stat().st_ino
    assert last.behind_bytes == 0


async def test_a_path_that_appears_later_goes_and_comes_back(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell, "sub/train.log")
    log = tmp_path / "home" / "sub" / "train.log"
    async with watch:
        await watch.until(lambda: any(s.word == "waiting for the file" for s in watch.states))
        log.parent.mkdir()
        write(log, "one")
        await watch.seen("one")
        log.unlink()
        await watch.until(lambda: watch.states[-1].word == "waiting for the file")
        write(log, "two")
        await watch.seen("two")
        await watch.until(lambda: watch.states[-1].word == "following")
    assert watch.lines[0] == "one" and watch.lines[-1] == "two"


async def test_a_path_that_appears_is_read_from_its_beginning(tmp_path: Path) -> None:
    watch = watcher(tmp_path)
    async with watch:
        await watch.until(lambda: watch.states)
        new = tmp_path / "home" / "new"
        write(new, *[f"{n:099d}" for n in range(10_000)])
        new.rename(tmp_path / "home" / "train.log")
        await watch.seen(f"{9999:099d}")
    assert len(watch.lines) == 10_000


async def test_rotation_reads_the_old_file_to_its_end(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell)
    log = tmp_path / "home" / "train.log"
    write(log, "one")
    async with watch:
        await watch.seen("one")
        held = log.open("a")
        log.rename(log.with_name("train.log.1"))
        held.write("two, into the renamed file\n")
        held.flush()
        await watch.seen("two, into the renamed file")
        held.write("three, without an end")
        held.close()
        write(log, "four")
        await watch.seen("four")
    assert watch.lines == ["one", "two, into the renamed file", "three, without an end", "four"]
    assert watch.gaps == []


async def test_a_quiet_log_that_is_rotated_once_and_then_quiet_again(tmp_path: Path, shell: str) -> None:
    """Nothing changes after the rotation, so the next look says that all is the same as at the last one."""
    watch = watcher(tmp_path, shell)
    log = tmp_path / "home" / "train.log"
    write(log, "one")
    async with watch:
        await watch.seen("one")
        await asyncio.sleep(1.5)  # it is drained and looked at quietly by now
        new = tmp_path / "home" / "new"
        write(new, "last words")
        log.rename(tmp_path / "home" / "train.log.1")
        new.rename(log)
        await watch.seen("last words")
    assert watch.lines == ["one", "last words"]


async def test_several_rotations_between_two_looks(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell)
    log = tmp_path / "home" / "train.log"
    write(log.with_name("train.log.7"), "an old part that was never asked for")
    write(log, "one")
    os.utime(log.with_name("train.log.7"), (1, 1))
    async with watch:
        await watch.seen("one")
        write(log, "one more")
        for text in ("two", "three", "four"):
            for number in (2, 1):
                part = log.with_name(f"train.log.{number}")
                if part.exists():
                    part.rename(log.with_name(f"train.log.{number + 1}"))
            log.rename(log.with_name("train.log.1"))
            time.sleep(0.012)  # longer than the clock tick of file times
            write(log, text)
        await watch.seen("four")
    assert watch.lines == ["one", "one more", "two", "three", "four"]
    assert watch.gaps == []


async def test_truncation_is_declared_and_nothing_is_doubled(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell)
    log = tmp_path / "home" / "train.log"
    write(log, *[f"old {n}" for n in range(100)])
    async with watch:
        await watch.seen("old 99")
        os.truncate(log, 0)
        write(log, "new")
        await watch.seen("new")
    assert watch.lines[:100] == [f"old {n}" for n in range(100)]
    assert watch.lines[101:] == ["new"]
    assert len(watch.gaps) == 1 and "truncated" in watch.gaps[0]


async def test_rewritten_in_place_and_longer_at_once(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell)
    log = tmp_path / "home" / "train.log"
    write(log, *[f"old {n}" for n in range(20)])
    inode = log.stat().st_ino
    async with watch:
        await watch.seen("old 19")
        log.write_text("".join(f"new {n}\n" for n in range(50)))
        assert log.stat().st_ino == inode
        await watch.seen("new 49")
    assert watch.lines[21:] == [f"new {n}" for n in range(50)]
    assert len(watch.gaps) == 1 and "rewritten" in watch.gaps[0]


async def test_copytruncate_is_read_from_the_copy(tmp_path: Path) -> None:
    watch = watcher(tmp_path)
    log = tmp_path / "home" / "train.log"
    write(log, *[f"old {n}" for n in range(100)])
    async with watch:
        await watch.seen("old 99")
        watch.box.cut()  # type: ignore[attr-defined]
        await watch.lost()
        write(log, "written while nobody looked")
        log.with_name("train.log.1").write_bytes(log.read_bytes())
        os.truncate(log, 0)
        write(log, "new")
        watch.start()
        await watch.seen("new")
    assert watch.lines[100] == "written while nobody looked"
    assert "truncated" in watch.lines[101] and len(watch.gaps) == 1
    assert watch.lines[102:] == ["new"]


async def test_a_cut_loses_and_doubles_nothing(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell)
    log = tmp_path / "home" / "train.log"
    write(log, "one")
    async with watch:
        await watch.seen("one")
        with log.open("a") as file:
            file.write("begun before the cut, ")
        await watch.until(lambda: watch.partial)
        watch.box.cut()  # type: ignore[attr-defined]
        await watch.lost()
        with log.open("a") as file:
            file.write("ended after it\n")
        log.rename(log.with_name("train.log.1"))
        time.sleep(0.012)
        write(log, "three")
        log.rename(log.with_name("train.log.2"))
        time.sleep(0.012)
        write(log, "four")
        watch.start()
        await watch.seen("four")
    assert watch.lines == ["one", "begun before the cut, ended after it", "three", "four"]
    assert watch.gaps == []


async def test_rotated_away_while_offline_is_a_gap(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell)
    log = tmp_path / "home" / "train.log"
    write(log, *[f"{n} {n}" for n in range(50)])
    async with watch:
        await watch.seen("49 49")
        watch.box.cut()  # type: ignore[attr-defined]
        await watch.lost()
        write(log, "never read")
        log.with_name("new").write_text("after\n")
        log.with_name("new").rename(log)
        watch.start()
        await watch.seen("after")
    assert len(watch.gaps) == 1 and "replaced" in watch.gaps[0]
    assert watch.lines[51:] == ["after"]


async def test_a_copy_with_another_inode_is_the_same_log(tmp_path: Path) -> None:
    watch = watcher(tmp_path)
    log = tmp_path / "home" / "train.log"
    write(log, *[f"{n} {n}" for n in range(50)])
    async with watch:
        await watch.seen("49 49")
        watch.box.cut()  # type: ignore[attr-defined]
        await watch.lost()
        log.with_name("new").write_bytes(log.read_bytes() + b"after\n")
        log.with_name("new").rename(log)
        watch.start()
        await watch.seen("after")
    assert watch.gaps == [] and len(watch.lines) == 51


async def test_a_restarted_rgt_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "home" / "train.log"
    first = watcher(tmp_path)
    write(log, "one", "two")
    async with first:
        await first.seen("two")
    write(log, "three")
    async with watcher(tmp_path) as second:
        await second.seen("three")
        assert second.lines == ["one", "two", "three"]
        older = await second.follower.load_older(2)
        assert (older.first, older.lines) == (0, ("one", "two"))
        assert (await second.follower.load_older(0)).lines == ()
    async with watcher(tmp_path, path="other.log") as third:
        write(log.with_name("other.log"), "another")
        await third.seen("another")
        assert len(third.gaps) == 1 and "other.log" in third.gaps[0]


async def test_ten_gigabytes_open_at_their_end(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell)
    log = tmp_path / "home" / "train.log"
    with log.open("wb") as file:
        file.truncate(10_000_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"".join(b"%020d %s\n" % (n, b"x" * 80) for n in range(5000)))
    began = time.monotonic()
    async with watch:
        await watch.seen(f"{4999:020d} " + "x" * 80)
        assert time.monotonic() - began < 10
        assert 2000 <= len(watch.lines) <= 3000
        assert len({len(line) for line in watch.lines}) == 1, "begins with a whole line"


async def test_a_line_of_megabytes_takes_little(tmp_path: Path) -> None:
    watch = watcher(tmp_path)
    log = tmp_path / "home" / "train.log"
    write(log, "one")
    async with watch:
        await watch.seen("one")
        with log.open("ab") as file:
            for _ in range(30):
                file.write(b"y" * 1_000_000)
                file.flush()
                await asyncio.sleep(0.01)
            file.write(b"\nend\n")
        await watch.seen("end")
    assert watch.lines[1] == "y" * 8192 + " … 30.0 MB more"


async def test_nothing_is_left_on_the_box(tmp_path: Path, shell: str) -> None:
    watch = watcher(tmp_path, shell)
    log = tmp_path / "home" / "train.log"
    write(log, "one")
    box = watch.box
    assert isinstance(box, ShellBox)
    async with watch:
        await watch.seen("one")
        process = box.channels[-1].process
        assert process.stdin is not None
        process.stdin.close()  # what the box sees when its client is gone
        async with asyncio.timeout(20):
            assert await process.wait() == 0
        write(log, "two")
        await watch.seen("two")  # the link stands, so the reader is started again
    assert len(box.channels) == 2
    assert [f.name for f in (tmp_path / "home").iterdir()] == ["train.log"]


async def test_a_file_made_in_advance_is_read_as_it_fills(tmp_path: Path) -> None:
    watch = watcher(tmp_path)
    log = tmp_path / "home" / "train.log"
    with log.open("wb", buffering=0) as file:
        file.truncate(1_000_000)
        async with watch:
            for n in range(4):
                file.write(f"line {n}\n".encode())
                await watch.seen(f"line {n}")
            assert watch.states[-1].word == "following"
    assert watch.lines == [f"line {n}" for n in range(4)]
    assert watch.batches[-1].behind_bytes == 0


async def test_a_hole_before_the_text_is_one_mark(tmp_path: Path) -> None:
    watch = watcher(tmp_path)
    log = tmp_path / "home" / "train.log"
    with log.open("wb", buffering=0) as file:
        file.write(b"old\n" * 100_000)
        async with watch:
            await watch.seen("old")
            os.truncate(log, 0)  # and its writer goes on where it was
            file.write(b"new\n")
            await watch.seen("␀new")
    assert watch.lines[-1] == "␀new" and len(watch.gaps) == 1


async def test_what_is_no_readable_file_is_said(tmp_path: Path) -> None:
    async with watcher(tmp_path, path=".") as watch:
        await watch.until(lambda: watch.states and watch.states[-1].word == "not a file")


async def test_a_slow_reader_holds_the_box_back(tmp_path: Path) -> None:
    watch = watcher(tmp_path)
    log = tmp_path / "home" / "train.log"
    write(log, "one")
    async with watch:
        await watch.seen("one")
        write(log, *["z" * 99] * 300_000)
        await watch.until(lambda: len(watch.lines) > 300_000, 30)
    behind = [batch.behind_bytes for batch in watch.batches]
    assert max(behind) > 1_000_000 and behind[-1] == 0
    assert all(len(b.lines) <= 5000 and sum(map(len, b.lines)) <= 1 << 20 for b in watch.batches)


async def numbered(tmp_path: Path, total: int, shell: str) -> None:
    watch = watcher(tmp_path, shell)
    box = watch.box
    assert isinstance(box, ShellBox)

    async def same() -> ShellBox:
        return box

    await numbered_lines(tmp_path / "home" / "train.log", total, watch, box.cut, same)


@pytest.mark.timeout(60)
async def test_two_hundred_thousand_lines(tmp_path: Path) -> None:
    await numbered(tmp_path, 200_000, "dash")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", SHELLS)
async def test_a_million_lines(tmp_path: Path, kind: str) -> None:
    await numbered(tmp_path, 1_000_000, kind)


CHILD = """
import asyncio, sys
from pathlib import Path
from tests.box.tail_box import ShellBox
from tui.box.tail import Follower, Spool

async def emit(batch):
    pass

async def main():
    home = Path(sys.argv[1])
    spool = Spool(home.parent / "spool", cap_bytes=4 << 20)
    follower = Follower("run", "train.log", spool)
    await follower.follow(ShellBox(home), emit, lambda state: None)

asyncio.run(main())
"""


@pytest.mark.timeout(60)
async def test_killed_again_and_again_the_spool_holds_each_line_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    log = home / "train.log"
    write(log, "first")
    chance = random.Random(4)
    number = 0
    for _ in range(8):
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, str(home), cwd=Path.cwd())
        for _ in range(chance.randrange(20, 60)):
            write(log, *[f"{n:07d}" for n in range(number, number + 50)])
            number += 50
            await asyncio.sleep(0.02)
        child.kill()
        await child.wait()
    async with watcher(tmp_path) as watch:
        write(log, "END")
        await watch.seen("END", 20)
        rows = watch.spool.load(watch.spool.next, 10**6)
    assert rows.lines == ["first", *[f"{n:07d}" for n in range(number)], "END"]

"""Search beyond memory: in the spool, and on the box in the part of the file that was never read here."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.box.tail_box import SHELLS, ShellBox
from tui.box.tail import Follower, Spool
from tui.box.tail import search as search_module
from tui.box.tail.search import MOST_HITS, to_ere
from tui.box.transport import LinkLost
from tui.model.command import SearchLog
from tui.model.log import LogBatch, LogPosition, SearchResult
from tui.model.text import LogText

pytestmark = pytest.mark.real


def spool_of(tmp_path: Path, lines: list[str], start: LogPosition) -> Spool:
    """A spool whose first line begins at `start`."""
    spool = Spool(tmp_path / "spool")
    spool.append(LogBatch("run", 0, (), 0.0, position=start), "train.log")
    spool.append(LogBatch("run", 0, tuple(map(LogText, lines)), 0.0, position=start), "train.log")
    return spool


async def search(
    spool: Spool, box: ShellBox | None, pattern: str, *, regex: bool = False, ignore_case: bool = False
) -> tuple[SearchResult, list[SearchResult]]:
    told: list[SearchResult] = []
    follower = Follower("run", "train.log", spool)
    result = await follower.search(box, SearchLog("run", pattern, ignore_case, regex), told.append)
    return result, told


@pytest.fixture(params=SHELLS)
def box(request: pytest.FixtureRequest, tmp_path: Path) -> ShellBox:
    (tmp_path / "home").mkdir()
    return ShellBox(tmp_path / "home", request.param)


async def test_both_places(tmp_path: Path, box: ShellBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "WINDOW", 128 << 10)
    log = box.home / "train.log"
    written = [f"{n:07d} loss [0.{n % 97:02d}] it's \\n" for n in range(30_000)]
    log.write_text("".join(f"{line}\n" for line in written))
    start = LogPosition(log.stat().st_ino, log.stat().st_size)
    spool = spool_of(tmp_path, ["in the spool [0.13]", "other", "newest [0.13]"], start)
    log.open("a").write("in the spool [0.13]\nother\nnewest [0.13]\n")
    result, told = await search(spool, box, "[0.13]")
    expected = [line for line in reversed(written) if "[0.13]" in line]
    assert [h.text for h in result.hits] == ["newest [0.13]", "in the spool [0.13]", *expected]
    assert [h.number for h in result.hits[:3]] == [2, 0, None]
    if result.hits[-1].offset is not None:  # GNU grep tells; busybox's does not
        for hit in result.hits[2:]:
            assert hit.offset is not None
            assert log.read_bytes()[hit.offset :].startswith(hit.text.encode())
    assert result.complete and not result.capped
    assert result.covered == (f"lines 1-3 on this computer; bytes 0-{start.offset:,} of the file on the box")
    assert len(told) > 5 and not any(t.complete for t in told)
    assert len(told[-1].hits) <= len(result.hits)


async def test_patterns(tmp_path: Path, box: ShellBox) -> None:
    log = box.home / "train.log"
    log.write_bytes("ERROR: it's 'bad' $HOME `id`\nerror 12\n训练 完成\n-e dash\nnul\0byte 7\n".encode())
    spool = spool_of(tmp_path, [], LogPosition(log.stat().st_ino, log.stat().st_size))

    async def found(pattern: str, **how: bool) -> list[str]:
        return [str(h.text) for h in (await search(spool, box, pattern, **how))[0].hits]

    assert await found("it's 'bad' $HOME `id`") == ["ERROR: it's 'bad' $HOME `id`"]
    assert await found("error", ignore_case=True) == ["error 12", "ERROR: it's 'bad' $HOME `id`"]
    assert await found("完成") == ["训练 完成"]
    assert await found("-e") == ["-e dash"]
    assert await found(r"error\s\d+$", regex=True) == ["error 12"]
    assert await found(r"^(?:-e|nope) \w+", regex=True) == ["-e dash"]
    assert await found("byte 7") == ["nul␀byte 7"]
    assert await found("absent") == []


async def test_what_is_not_searched_is_said(tmp_path: Path, box: ShellBox) -> None:
    log = box.home / "train.log"
    log.write_text("x\n" * 10)
    spool = spool_of(tmp_path, ["x"], LogPosition(log.stat().st_ino, 20))
    offline, _ = await search(spool, None, "x")
    assert not offline.complete and "not searched" in offline.covered and len(offline.hits) == 1
    odd, _ = await search(spool, box, r"(?<=a)x", regex=True)
    assert not odd.complete and "no such expression" in odd.covered
    broken, _ = await search(spool, box, "(", regex=True)
    assert not broken.complete and "no regular expression" in broken.covered and broken.hits == ()
    log.unlink()
    gone, _ = await search(spool, box, "x")
    assert not gone.complete and "not to be found" in gone.covered
    box.down = True
    with pytest.raises(LinkLost):
        await search(spool, box, "x")


async def test_the_rotated_file_is_found_by_its_inode(tmp_path: Path, box: ShellBox) -> None:
    log = box.home / "train.log"
    log.write_text("the old part\n")
    spool = spool_of(tmp_path, [], LogPosition(log.stat().st_ino, 13))
    log.rename(log.with_name("renamed"))
    log.write_text("the old part of another file\n")
    result, _ = await search(spool, box, "old")
    assert [h.text for h in result.hits] == ["the old part"]


async def test_too_many_hits_are_said(tmp_path: Path, box: ShellBox) -> None:
    log = box.home / "train.log"
    log.write_text("".join(f"hit {n}\n" for n in range(2000)))
    start = LogPosition(log.stat().st_ino, log.stat().st_size)
    result, _ = await search(spool_of(tmp_path, [], start), box, "hit")
    assert [h.text for h in result.hits] == [f"hit {n}" for n in range(1999, 1899, -1)]
    assert not result.complete and "more hits" in result.covered
    many = spool_of(tmp_path / "b", [f"hit {n}" for n in range(2000)], start)
    result, _ = await search(many, box, "hit")
    assert len(result.hits) == MOST_HITS and result.capped and not result.complete
    assert result.covered.startswith("lines 1,501-2,000 on this computer")


async def test_a_search_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "WINDOW", 64 << 10)
    (tmp_path / "home").mkdir()
    box = ShellBox(tmp_path / "home")
    log = box.home / "train.log"
    log.write_bytes(b"x" * 99 + b"\n" + b"y" * 50_000_000)
    spool = spool_of(tmp_path, [], LogPosition(log.stat().st_ino, log.stat().st_size))
    task = asyncio.ensure_future(search(spool, box, "x"))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("pattern", "expression"),
    [
        (r"loss\s*=\s*\d+\.\d+", "loss[[:space:]]*=[[:space:]]*[0-9]+\\.[0-9]+"),
        (r"a.*?b", "a.*b"),
        (r"(?:a|b){2,3}", "(a|b){2,3}"),
        (r"[^a-z]", "[^a-z]"),
        (r"\[rank\d\]", r"\[rank[0-9]\]"),
        ("\\-\\'", "-'"),
        (r"\bword\b", None),
        (r"(?i)x", None),
        (r"(?P<n>x)", None),
        (r"(a)\1", None),
        (r"[\d]", None),
        (r"a++", None),
    ],
)
def test_expressions_for_grep(pattern: str, expression: str | None) -> None:
    assert to_ere(pattern) == expression


@given(st.text(max_size=20))
def test_any_text_as_a_pattern_is_quoted_or_refused(text: str) -> None:
    assert to_ere(re.escape(text)) is not None or any(c in text for c in "\n\r\v\f")

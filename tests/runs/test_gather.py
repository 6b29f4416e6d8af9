"""A sealed export goes to another file system: proven on both sides, named once, never over anything."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.rig.tmpfs import tmpfs
from tui.box.local import LocalTransport
from tui.box.transport import Completed, Script
from tui.model.failure import Failure
from tui.runs.gather import gather

NAMES = ("metrics.json", "ckpt/step 1.pt", "ckpt/it's.pt", "deep/er/x")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "p" / "export" / "r-1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(5000))
    return tmp_path / "p"


async def test_it_is_there_with_every_byte_and_a_second_time_it_is_only_compared(
    root: Path, tmp_path: Path
) -> None:
    done = await gather(LocalTransport(), str(root), "r-1", str(tmp_path / "shared fs" / "p"))
    assert (done.files, done.was_there) == (4, False)
    for name in NAMES:
        assert (tmp_path / "shared fs/p/r-1" / name).read_bytes() == (root / "export/r-1" / name).read_bytes()
    assert [path.name for path in (tmp_path / "shared fs" / "p").iterdir()] == ["r-1"]
    again = await gather(LocalTransport(), str(root), "r-1", str(tmp_path / "shared fs" / "p"))
    assert again.was_there
    (tmp_path / "shared fs/p/r-1/metrics.json").write_text("other")
    with pytest.raises(Failure, match="holds other bytes"):
        await gather(LocalTransport(), str(root), "r-1", str(tmp_path / "shared fs" / "p"))
    assert (tmp_path / "shared fs/p/r-1/metrics.json").read_text() == "other"


class Rots:
    """A file system that keeps the size and changes a byte, so many times."""

    name = "rots"

    def __init__(self, copy: Path, times: int) -> None:
        self.copy, self.times, self.real = copy, times, LocalTransport()

    async def run(self, script: Script, **options: Any) -> Completed:
        done = await self.real.run(script, **options)
        if script.why == "copy the export" and self.times:
            self.times -= 1
            body = bytearray((self.copy / "metrics.json").read_bytes())
            body[7] ^= 1
            (self.copy / "metrics.json").write_bytes(body)
            (self.copy / "extra").write_text("of nobody")
        return done


@pytest.mark.parametrize("times", [1, 2])
async def test_a_copy_that_rots_is_made_again_once_and_else_gets_no_name(
    root: Path, tmp_path: Path, times: int
) -> None:
    box = Rots(tmp_path / "to" / ".partial-r-1", times)
    if times == 1:
        assert (await gather(box, str(root), "r-1", str(tmp_path / "to"))).files == 4  # type: ignore[arg-type]
        return
    with pytest.raises(Failure, match="is not the same"):
        await gather(box, str(root), "r-1", str(tmp_path / "to"))  # type: ignore[arg-type]
    assert not (tmp_path / "to" / "r-1").exists()


async def test_what_is_not_sealed_or_does_not_fit_is_not_begun(root: Path, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no sealed export"):
        await gather(LocalTransport(), str(root), "r-2", str(tmp_path / "to"))
    with pytest.raises(Failure, match="absolute folder"):
        await gather(LocalTransport(), str(root), "r-1", "to")
    with tmpfs(tmp_path / "small", size=16 << 10) as small:
        with pytest.raises(Failure, match="too full"):
            await gather(LocalTransport(), str(root), "r-1", str(small / "to"))
        assert list(small.iterdir()) == []
    with tmpfs(tmp_path / "large", size=1 << 20) as large:
        assert not (await gather(LocalTransport(), str(root), "r-1", str(large))).same_disk

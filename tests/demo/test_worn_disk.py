"""The demo's bad disk: one bit of each copy turns, once, and nothing shows it from outside."""

from __future__ import annotations

from pathlib import Path

from tui.demo.worn_disk import WornDisk

GOOD = bytes(1000)


def copied(folder: Path, name: str) -> Path:
    path = folder / name / "data" / "best.pt"
    path.parent.mkdir(parents=True)
    path.write_bytes(GOOD)
    path.chmod(0o444)
    return path


def flipped(path: Path) -> int:
    return sum((a ^ b).bit_count() for a, b in zip(path.read_bytes(), GOOD, strict=True))


def test_one_bit_of_a_copy_turns_once_also_when_the_copy_is_sealed(tmp_path: Path) -> None:
    disk = WornDisk(tmp_path / "worn")
    disk.make()
    path = copied(tmp_path / "worn", "run-1234.part")
    before = path.stat()
    assert disk.rot() == [path]
    (tmp_path / "worn" / "run-1234.part").rename(tmp_path / "worn" / "run-1234")
    sealed = tmp_path / "worn" / "run-1234" / "data" / "best.pt"
    assert disk.rot() == []
    assert flipped(sealed) == 1
    after = sealed.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_mode) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_mode,
    )


def test_what_is_still_being_written_and_what_is_no_checkpoint_is_left_alone(tmp_path: Path) -> None:
    disk = WornDisk(tmp_path / "worn")
    disk.make()
    part = tmp_path / "worn" / "run.part" / "parts" / "best.pt"
    log = tmp_path / "worn" / "run.part" / "data" / "train.log"
    for path in (part, log):
        path.parent.mkdir(parents=True)
        path.write_bytes(GOOD)
    (tmp_path / "worn" / "a file").write_bytes(b"")
    assert disk.rot() == []
    assert part.read_bytes() == log.read_bytes() == GOOD

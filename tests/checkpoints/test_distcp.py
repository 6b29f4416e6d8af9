"""Folders of torch.distributed.checkpoint, as FSDP writes them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checkpoints.made import by_path, calls, looked_at, need_torch, put, state
from tui.model.verdict import CheckpointVerdict

PARTS = ("__0_0.distcp", "__0_1.distcp", "__0_2.distcp")
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """What torch itself wrote: three tensors in as many files, and ``.metadata``."""
    torch = need_torch()
    from torch.distributed import checkpoint

    folder = tmp_path_factory.mktemp("saved")
    writer = checkpoint.FileSystemWriter(folder, single_file_per_rank=False, thread_count=1)
    state_dict = {"model": {f"w{n}": torch.randn(48, 32) for n in range(3)}}
    checkpoint.save(state_dict, storage_writer=writer, no_dist=True)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def judged(folder: Path, files: Files) -> CheckpointVerdict:
    put(folder / "run", files)
    return by_path(looked_at(folder))["run"]


def test_a_whole_one_is_fine_and_says_what_was_not_looked_at(tmp_path: Path, saved: Files) -> None:
    assert sorted(saved) == [".metadata", *PARTS]
    found = judged(tmp_path, saved)
    assert (found.kind, found.verdict, found.shards) == ("distcp", "ok", 3)
    report = looked_at(tmp_path)
    assert {one.path for one in report.checkpoints} == {"run"}
    assert [p.code for p in report.problems].count("numbers-not-read") == 3


def _flipped(raw: bytes) -> bytes:
    middle = len(raw) // 2
    return raw[:middle] + bytes([raw[middle] ^ 4]) + raw[middle + 1 :]


@pytest.mark.parametrize(
    ("change", "subtype"),
    [
        (lambda raw: raw[:-1], "truncated"),
        (lambda raw: b"", "empty"),
        (lambda raw: bytes(len(raw)), "zeros"),
        (lambda raw: bytes(4096) + raw[4096:], "zero_block"),
        (_flipped, "bitflip"),
        (lambda raw: raw + b"x", "trailing"),
    ],
    ids=("cut", "empty", "zeros", "first page", "one bit", "one byte more"),
)
def test_damage_to_one_file_is_named(
    tmp_path: Path, saved: Files, change: Callable[[bytes], bytes], subtype: str
) -> None:
    found = judged(tmp_path, {**saved, PARTS[1]: change(saved[PARTS[1]])})
    assert (found.verdict, found.subtype, found.bad) == ("corrupt", subtype, (PARTS[1],))


def test_every_file_that_the_metadata_knows_must_be_there(tmp_path: Path, saved: Files) -> None:
    part = saved.pop(PARTS[2])
    found = judged(tmp_path / "a", saved)
    assert (found.verdict, found.missing) == ("incomplete", (PARTS[2],))
    found = judged(tmp_path / "b", {**saved, f"{PARTS[2]}.part": part[:10]})
    assert (found.verdict, found.in_progress) == ("partial", (f"{PARTS[2]}.part",))
    saved[PARTS[2]] = part


def test_the_metadata_is_written_last_and_must_be_whole(tmp_path: Path, saved: Files) -> None:
    parts = {name: saved[name] for name in PARTS}
    assert judged(tmp_path / "a", parts).missing == (".metadata",)
    assert judged(tmp_path / "b", {**parts, ".metadata": saved[".metadata"][:90]}).subtype == "truncated"
    assert judged(tmp_path / "c", {**parts, ".metadata": b""}).subtype == "empty"
    later = {name.replace("__0", "__2"): data for name, data in parts.items()}
    assert judged(tmp_path / "d", later).missing == (".metadata", "__0_0.distcp", "__1_0.distcp")


def test_nothing_hostile_gets_past(tmp_path: Path, saved: Files) -> None:
    evil = {**saved, ".metadata": state({"x": calls("posix.system")})}
    found = judged(tmp_path / "a", evil)
    assert (found.verdict, found.globals) == ("unsafe", ("posix.system",))
    outside = saved[".metadata"].replace(b"__0_1.distcp", b"/etc/x.distc")
    assert judged(tmp_path / "b", {**saved, ".metadata": outside}).code == "path-escapes"


def test_a_hostile_part_among_good_ones_is_unsafe(tmp_path: Path, saved: Files) -> None:
    from tests.checkpoints.made import good_zip

    size = len(saved[PARTS[0]])
    evil = good_zip({"x": calls("posix.system")})
    padded = io.BytesIO(evil + b"\0" * (size - len(evil)))  # of the length that the metadata says
    found = judged(tmp_path, {**saved, PARTS[0]: padded.getvalue()[:size]})
    assert found.verdict in ("unsafe", "corrupt")


def test_another_programmes_hidden_file_is_nobodys_checkpoint(tmp_path: Path) -> None:
    put(tmp_path / "run", {".metadata": b'{"version": 1}'})
    assert looked_at(tmp_path).checkpoints == ()

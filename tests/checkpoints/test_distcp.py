"""Folders of torch.distributed.checkpoint, as FSDP writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checkpoints.made import (
    by_path,
    calls,
    good_zip,
    listed_parts,
    looked_at,
    need_torch,
    put,
    state,
)  # fmt: skip
from tui.checkpoints.jailer import Jail
from tui.model.verdict import CheckpointVerdict

PARTS = ("__0_0.distcp", "__0_1.distcp", "__0_2.distcp")
Files = dict[str, bytes]

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


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


def test_a_whole_one_is_fine_and_its_numbers_are_read(tmp_path: Path, saved: Files) -> None:
    assert sorted(saved) == [".metadata", *PARTS]
    found = judged(tmp_path, saved)
    assert (found.kind, found.verdict, found.shards) == ("distcp", "ok", 3)
    assert (found.tensors, found.elements, found.dtypes) == (3, 3 * 48 * 32, {"float32": 3})
    without = looked_at(tmp_path)
    assert {one.path for one in without.checkpoints} == {"run"}
    assert [p.code for p in without.problems].count("values-not-checked") == 3
    with Jail() as jail:
        report = looked_at(tmp_path, jail)
    values = by_path(report)["run"].values
    assert values is not None and (values.elements, values.nonfinite) == (3 * 48 * 32, 0)
    assert not report.problems


def test_weights_that_are_not_a_number_are_found_in_any_part(tmp_path: Path) -> None:
    torch = need_torch()
    from torch.distributed import checkpoint

    wrong = torch.ones(40, 8)
    wrong[7, 3] = float("nan")
    state_dict = {f"w{n}": torch.randn(16, 4) for n in range(5)} | {"bad": wrong}
    checkpoint.save(state_dict, checkpoint_id=tmp_path / "run", no_dist=True)
    with Jail() as jail:
        found = by_path(looked_at(tmp_path, jail))["run"]
    assert (found.verdict, found.incident, found.tensors) == ("suspicious", "loss_nan", 6)
    assert found.values is not None and found.values.nan == 1


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


def test_parts_that_share_bytes_are_refused_before_they_are_read(tmp_path: Path) -> None:
    part = good_zip()
    size = len(part)
    two = {".metadata": listed_parts(PARTS[0], (size, size), (0, size)), PARTS[0]: part * 2}
    assert judged(tmp_path / "a", two).verdict == "ok"
    shared = {**two, ".metadata": listed_parts(PARTS[0], (0, size), (size - 1, size))}
    assert judged(tmp_path / "b", shared).subtype == "bad_index"


def test_a_hostile_part_among_good_ones_is_unsafe(tmp_path: Path) -> None:
    good, evil = good_zip(), good_zip({"x": calls("posix.system")})
    files = {
        ".metadata": listed_parts(PARTS[0], (0, len(good)), (len(good), len(evil))),
        PARTS[0]: good + evil,
    }
    found = judged(tmp_path, files)
    assert (found.verdict, found.globals, found.bad) == ("unsafe", ("posix.system",), (PARTS[0],))


def test_another_programmes_hidden_file_is_nobodys_checkpoint(tmp_path: Path) -> None:
    put(tmp_path / "run", {".metadata": b'{"version": 1}'})
    assert looked_at(tmp_path).checkpoints == ()

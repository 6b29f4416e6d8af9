"""Checkpoints out of the durable copy on record, wherever it lies: the newest, whole, or none and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.custody.copy_rig import Rig, here, rclone_remotes
from tui.custody.records import records
from tui.custody.stores.base import Store
from tui.custody.stores.box import BoxStore
from tui.custody.stores.rclone import RcloneStore
from tui.fleet.paths import Paths
from tui.model.custody import CopyReport
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.workers.carried_back import bring_here, drop, durable_copy
from tui.workers.local_box import LocalBox

FILES = {
    "ckpt/s-9.pt": b"nine" * 400_000,
    "ckpt/s-10.pt": b"ten" * 10,
    "ckpt/s-8.pt": b"eight",
    "train.log": b"step 10/20\n",
}
RUN = "run-1"


async def dial(instance: Instance) -> LocalBox:
    return LocalBox(instance.name)


class Desk:
    """A run whose copy was made, and its record."""

    def __init__(self, tmp_path: Path, files: Mapping[str, bytes] = FILES) -> None:
        self.where = Paths(tmp_path / "config", tmp_path / "state")
        self.where.config.mkdir(parents=True)
        self.where.fleet_file.write_text('[instances.vault]\nplatform = "local"\n')
        self.rig = Rig(tmp_path, files, here)
        self.tmp = tmp_path

    async def pulled(self, kind: str) -> CopyReport:
        stores: dict[str, Callable[[], Store]] = {
            "path": lambda: self.rig.path_store(),
            "box": lambda: BoxStore("vault", here, str(self.tmp / "far"), self.rig.name),
            "rclone": lambda: RcloneStore("disk:x", self.rig.name),
        }
        report = await self.rig.copy(stores[kind]())
        assert report.refusals == ()
        records(self.where, RUN).save(report)
        return report


@pytest.mark.real
@pytest.mark.parametrize("kind", ["path", "box", "rclone"])
async def test_the_newest_two_come_here_whole_and_are_gone_afterwards(tmp_path: Path, kind: str) -> None:
    desk = Desk(tmp_path)
    with ExitStack() as stack:
        if kind == "rclone":
            stack.enter_context(rclone_remotes(tmp_path))
        report = await desk.pulled(kind)
        copy = durable_copy(RUN, "ckpt/*.pt", desk.where)
        assert [one.path for one in copy.files] == ["ckpt/s-10.pt", "ckpt/s-9.pt"]
        assert {one.origin for one in copy.files} == {report.destination.uri}
        await bring_here(copy, desk.where, dial)
        assert [one.here.read_bytes() for one in copy.files] == [FILES[one.path] for one in copy.files]
        if kind != "path":  # what came is kept until it has been carried on; what is damaged comes again
            copy.files[0].here.write_bytes(b"torn")
            await bring_here(copy, desk.where, dial)
            assert copy.files[0].here.read_bytes() == FILES["ckpt/s-10.pt"]
    await drop(copy)
    assert copy.files[0].here.exists() == (kind == "path")
    assert not any((desk.where.state / "carried").glob("*"))


INDEX = b'{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}'
SHARDED = {
    f"out/checkpoint-{step}/{name}": f"{step}{name}".encode() * 9
    for step in (10, 20)
    for name in (
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "global_step20/mp_rank_00_model_states.pt",
        "trainer_state.json",
    )
} | {f"out/checkpoint-{step}/model.safetensors.index.json": INDEX for step in (10, 20)}


@pytest.mark.parametrize("kind", ["path", "box"])
async def test_a_folder_of_shards_comes_whole_and_a_missing_shard_is_noticed(
    tmp_path: Path, kind: str
) -> None:
    desk = Desk(tmp_path / "whole", SHARDED)
    await desk.pulled(kind)
    copy = durable_copy(RUN, "out/checkpoint-*", desk.where)
    await bring_here(copy, desk.where, dial)
    assert {one.path: one.here.read_bytes() for one in copy.files} == SHARDED
    await drop(copy)

    cut = {path: body for path, body in SHARDED.items() if "00002-of-" not in path}
    desk = Desk(tmp_path / "cut", cut)
    await desk.pulled(kind)
    with pytest.raises(Failure, match="lacks model-00002-of-00002"):
        await bring_here(durable_copy(RUN, "out/checkpoint-*", desk.where), desk.where, dial)


@pytest.mark.parametrize("kind", ["path", "box"])
async def test_a_copy_that_has_changed_is_not_carried(tmp_path: Path, kind: str) -> None:
    desk = Desk(tmp_path)
    report = await desk.pulled(kind)
    (Path(report.destination.path) / "data" / "ckpt" / "s-10.pt").write_bytes(b"ten" * 9 + b"tan")
    copy = durable_copy(RUN, "ckpt/*.pt", desk.where)
    with pytest.raises(Failure, match=r"s-10.pt can't be had from .*vault|far") as told:
        await bring_here(copy, desk.where, dial)
    assert told.value.means == "Nothing was started."


async def test_no_copy_an_unfinished_one_and_one_without_checkpoints_are_told_apart(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name in (RUN, "no/name"):
        with pytest.raises(Failure, match="is on record here"):
            durable_copy(name, "ckpt/*.pt", desk.where)
    report = await desk.pulled("path")
    with pytest.raises(Failure, match="is a checkpoint"):
        durable_copy(RUN, "weights/*.bin", desk.where)
    records(desk.where, RUN).save(report.model_copy(update={"bag": ()}))
    with pytest.raises(Failure, match="was not finished"):
        durable_copy(RUN, "ckpt/*.pt", desk.where)

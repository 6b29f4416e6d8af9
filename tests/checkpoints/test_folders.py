"""Folders that are one checkpoint, links, rows of steps and what lies beside them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.checkpoints.made import (
    by_path,
    calls,
    floats,
    good_safetensors,
    good_zip,
    listed_parts,
    looked_at,
    number,
    put,
    safetensors,
    state,
    tensor,
    text,
    torch_zip,
)  # fmt: skip
from tui.checkpoints.names import claim_of, is_portable, number_of, step_and_epoch, transfer_of
from tui.model.verdict import CheckpointVerdict, Examination

GOOD = good_zip()
SHARD = {n: f"model-{n:05d}-of-00003.safetensors" for n in range(1, 5)}
INDEX = "model.safetensors.index.json"


def index(weights: Mapping[str, str], total: int = 24) -> bytes:
    return json.dumps({"metadata": {"total_size": total}, "weight_map": dict(weights)}).encode()


def sharded(*there: int, **change: bytes) -> dict[str, bytes]:
    """Three shards of one tensor each, and their index."""
    files = {SHARD[n]: safetensors({f"w{n}": ("F32", (2,), floats(n, n + 1))}) for n in there}
    return {**files, INDEX: index({f"w{n}": SHARD[n] for n in (1, 2, 3)}), **change}


def only(folder: Path, files: Mapping[str, bytes], kind: str) -> CheckpointVerdict:
    """The one verdict of a kind on these files."""
    put(folder, files)
    return next(one for one in looked_at(folder).checkpoints if one.kind == kind)


def words(found: Examination) -> dict[str, str]:
    return {one.path: one.verdict for one in found.checkpoints}


def test_shards_are_one_checkpoint(tmp_path: Path) -> None:
    put(tmp_path, {f"run/{name}": data for name, data in sharded(1, 2, 3).items()})
    found = looked_at(tmp_path)
    assert words(found) == {"run": "ok"}
    whole = by_path(found)["run"]
    assert (whole.shards, whole.tensors, whole.elements, whole.dtypes) == (3, 3, 6, {"float32": 3})
    assert {file.part_of for file in found.files} == {"run"}


@pytest.mark.parametrize(
    ("files", "word", "told"),
    [
        (sharded(1, 3), "incomplete", {"missing": (SHARD[2],)}),
        (sharded(), "incomplete", {"missing": (SHARD[1], SHARD[2], SHARD[3])}),
        (sharded(1, 2, 3, **{SHARD[2]: b""}), "corrupt", {"bad": (SHARD[2],), "subtype": "empty"}),
        (sharded(1, 2, **{SHARD[2]: good_safetensors()[:-1]}), "corrupt", {"subtype": "truncated"}),
        (
            sharded(1, 2, 3, **{SHARD[3]: good_safetensors(("other",))}),
            "incomplete",
            {"missing_keys": ("w3",)},
        ),
        (sharded(1, 2, 3, **{INDEX: b"{"}), "corrupt", {"subtype": "bad_index"}),
        (sharded(1, 2, 3, **{INDEX: b'{"weight_map": {"a": 7}}'}), "corrupt", {"subtype": "bad_index"}),
        (sharded(1, 2, 3, **{INDEX: b"[]"}), "corrupt", {"subtype": "bad_index", "bad": (INDEX,)}),
        (sharded(1, 2, 3, **{INDEX: b"{}"}), "corrupt", {"subtype": "bad_index"}),
        (sharded(1, 2, 3, **{INDEX: b"<<<<<<< HEAD\n{}\n"}), "corrupt", {"subtype": "bad_index"}),
        (
            sharded(1, 2, 3, **{INDEX: index({f"w{n}": SHARD[n] for n in (1, 2, 3)}, total=48)}),
            "suspicious",
            {"code": "suspicious-total-size", "detail": "total_size"},
        ),
        (sharded(1, 2, 3, **{INDEX: index({"w": "/etc/passwd"})}), "unsafe", {"code": "path-escapes"}),
        (sharded(1, 2, 3, **{INDEX: index({"w": "..\\..\\x"})}), "unsafe", {"code": "path-escapes"}),
        (sharded(1, 2, 3, **{INDEX: index({"w": "a/../../x"})}), "unsafe", {"code": "path-escapes"}),
        (
            sharded(1, 2, **{f".{SHARD[3]}.q3Xk9d": b"x"}),
            "partial",
            {"in_progress": (f".{SHARD[3]}.q3Xk9d",)},
        ),
        (sharded(1, 2, **{f"{SHARD[3]}.part": b"x"}), "partial", {"missing": (SHARD[3],)}),
        (
            sharded(1, 2, 3, **{"model-00001-of-00002.safetensors": good_safetensors()}),
            "suspicious",
            {"code": "suspicious-foreign-shard", "detail": "foreign shard model-00001-of-00002.safetensors"},
        ),
    ],
)
def test_what_is_wrong_with_shards(
    tmp_path: Path, files: dict[str, bytes], word: str, told: dict[str, object]
) -> None:
    found = only(tmp_path, files, "hf_sharded")
    assert found.verdict == word
    assert {key: getattr(found, key) for key in told} == told


def test_the_index_of_a_variant_names_it_last(tmp_path: Path) -> None:
    files = {name.replace("model-", "model.fp16-"): data for name, data in sharded(1, 2, 3).items()}
    listed = files.pop(INDEX).replace(b"model-", b"model.fp16-")
    whole = {**files, "model.safetensors.index.fp16.json": listed}
    assert only(tmp_path / "a", whole, "hf_sharded").verdict == "ok"
    assert only(tmp_path / "b", files, "hf_sharded").verdict == "incomplete"


def test_an_index_that_counts_no_bytes_is_fine(tmp_path: Path) -> None:
    listed = json.dumps({"weight_map": {f"w{n}": SHARD[n] for n in (1, 2, 3)}}).encode()
    assert only(tmp_path, sharded(1, 2, 3, **{INDEX: listed}), "hf_sharded").verdict == "ok"


def test_a_shard_that_is_a_link_to_nothing_is_missing(tmp_path: Path) -> None:
    put(tmp_path, sharded(1, 2))
    (tmp_path / SHARD[3]).symlink_to("../../blobs/gone")
    found = next(one for one in looked_at(tmp_path).checkpoints if one.kind == "hf_sharded")
    assert (found.verdict, found.missing) == ("incomplete", (SHARD[3],))


def test_shards_without_an_index(tmp_path: Path) -> None:
    files = sharded(1, 2)
    del files[INDEX]
    assert only(tmp_path, files, "hf_sharded").missing == (INDEX, SHARD[3])


def test_shards_of_the_older_kind_are_judged_by_their_pickles(tmp_path: Path) -> None:
    one, other = "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"
    names = index({"w": one, "b": one, "v": other})
    second = torch_zip(state({"v": tensor("0", (2,))}), {"0": floats(1, 2)})
    files = {one: GOOD, other: second, "pytorch_model.bin.index.json": names}
    assert only(tmp_path / "good", files, "hf_sharded").verdict == "ok"
    evil = {**files, other: good_zip({"x": calls("posix.system")})}
    assert only(tmp_path / "evil", evil, "hf_sharded").verdict == "unsafe"
    swapped = {**files, other: torch_zip(state({"u": tensor("0", (2,))}), {"0": floats(1, 2)})}
    assert only(tmp_path / "swapped", swapped, "hf_sharded").missing_keys == ("v",)


def test_the_cache_of_a_hub_is_links_to_blobs(tmp_path: Path) -> None:
    put(tmp_path, {f"blobs/{n:064d}": data for n, data in enumerate(sharded(1, 2, 3).values())})
    snapshot = tmp_path / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    for n, name in enumerate(sharded(1, 2, 3)):
        (snapshot / name).symlink_to(f"../../blobs/{n:064d}")
    assert by_path(looked_at(tmp_path))["snapshots/abc"].verdict == "ok"


def test_numbered_data_files_are_no_shards(tmp_path: Path) -> None:
    put(tmp_path, {f"train-{n:05d}-of-00002.bin": bytes(range(1, 200)) for n in (0, 1)})
    assert looked_at(tmp_path).checkpoints == ()


def test_an_adapter_needs_no_model(tmp_path: Path) -> None:
    config = b'{"peft_type":"IA3","base_model_name_or_path":"x"}'
    files = {"adapter_config.json": config, "adapter_model.safetensors": good_safetensors()}
    assert only(tmp_path / "a", files, "adapter").flavour == "ia3"
    assert only(tmp_path / "b", {"adapter_config.json": config}, "adapter").missing == (
        "adapter_model.safetensors",
    )
    cut = {**files, "adapter_config.json": config[:12]}
    assert only(tmp_path / "d", cut, "adapter").code == "corrupt-bad-config"
    lonely = {"adapter_model.safetensors": good_safetensors()}
    assert only(tmp_path / "c", lonely, "adapter").missing == ("adapter_config.json",)


TRAINER = {
    "config.json": b"{}",
    "model.safetensors": good_safetensors(),
    "optimizer.pt": GOOD,
    "rng_state.pth": good_zip({"n": calls("numpy.core.multiarray._reconstruct")}),
    "training_args.bin": good_zip({"a": calls("transformers.training_args.TrainingArguments")}),
    "trainer_state.json": b"{}",
}


def step(n: int, **change: bytes | None) -> dict[str, bytes]:
    files: dict[str, bytes | None] = {**TRAINER, **change}
    return {f"checkpoint-{n}/{name}": data for name, data in files.items() if data is not None}


def test_a_trainers_folder_is_judged_by_its_weights(tmp_path: Path) -> None:
    put(tmp_path, step(500))
    found = looked_at(tmp_path)
    assert words(found) == {"checkpoint-500": "ok"}
    assert by_path(found)["checkpoint-500"].step == 500
    assert [p.code for p in found.problems].count("side-file-needs-allowlist") == 2


@pytest.mark.parametrize(
    ("change", "word", "missing"),
    [
        ({"trainer_state.json": None}, "incomplete", ("trainer_state.json",)),
        ({"model.safetensors": None}, "incomplete", ("model.safetensors",)),
        ({"model.safetensors": good_safetensors()[:-1]}, "corrupt", ()),
        ({"optimizer.pt": GOOD[:-1]}, "corrupt", ()),
        ({"optimizer.pt": good_zip({"x": calls("posix.system")})}, "unsafe", ()),
        ({"trainer_state.json": b'{"global_step": 5'}, "corrupt", ()),
        ({"trainer_state.json": b""}, "corrupt", ()),
    ],
)
def test_a_trainers_folder_that_is_not_whole(
    tmp_path: Path, change: dict[str, bytes | None], word: str, missing: tuple[str, ...]
) -> None:
    put(tmp_path, step(500, **change))
    found = by_path(looked_at(tmp_path))["checkpoint-500"]
    assert (found.verdict, found.missing) == (word, missing)


SIDE = {name: TRAINER[name] for name in ("rng_state.pth", "training_args.bin")}
ADAPTER = {"adapter_config.json": b'{"peft_type":"LORA"}', "adapter_model.safetensors": good_safetensors()}


@pytest.mark.parametrize(
    "files",
    [
        {**SIDE, **ADAPTER, "trainer_state.json": b"{}"},
        {**SIDE, **sharded(1, 2, 3), "trainer_state.json": b"{}"},
        {**SIDE, "latest": b"global_step5", "global_step5/mp_rank_00_model_states.pt": GOOD},
        {
            **SIDE,
            "trainer_state.json": b"{}",
            "pytorch_model_fsdp_0/.metadata": listed_parts("__0_0.distcp", (0, len(GOOD))),
            "pytorch_model_fsdp_0/__0_0.distcp": GOOD,
        },
        {"model.safetensors": good_safetensors(), "random_states_0.pkl": SIDE["rng_state.pth"]},
    ],
    ids=("an adapter", "shards", "DeepSpeed", "FSDP", "accelerate"),
)
def test_a_trainers_own_state_stops_nobody_whatever_the_weights_are(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    put(tmp_path, {f"checkpoint-5/{name}": data for name, data in files.items()})
    found = looked_at(tmp_path)
    assert set(words(found).values()) == {"ok"}
    assert "side-file-needs-allowlist" in {problem.code for problem in found.problems}
    evil = {"rng_state.pth": good_zip({"x": calls("posix.system")})}
    put(tmp_path / "checkpoint-5", evil)
    assert "unsafe" in words(looked_at(tmp_path)).values()


def test_steps_of_fsdp_are_a_row_as_others_are(tmp_path: Path) -> None:
    listed = listed_parts("__0_0.distcp", (0, len(GOOD)))
    for n, data in ((5, GOOD), (10, GOOD), (15, GOOD[:-1])):
        parts = {"pytorch_model_fsdp_0/.metadata": listed, "pytorch_model_fsdp_0/__0_0.distcp": data}
        files = {**SIDE, "trainer_state.json": b"{}", **parts}
        put(tmp_path, {f"checkpoint-{n}/{name}": raw for name, raw in files.items()})
    found = by_path(looked_at(tmp_path))
    assert (found["checkpoint-10"].verdict, found["checkpoint-10"].step) == ("ok", 10)
    assert (found["checkpoint-15"].verdict, found["checkpoint-15"].bad) == (
        "corrupt",
        ("pytorch_model_fsdp_0",),
    )
    assert found["."].resume_from == "checkpoint-10"


def test_a_trainers_own_state_alone_is_judged_by_itself(tmp_path: Path) -> None:
    put(tmp_path, {"run/training_args.bin": SIDE["training_args.bin"]})
    assert words(looked_at(tmp_path)) == {"run/training_args.bin": "needs_allowlist"}


def test_a_damaged_side_file_is_not_hidden_by_good_weights(tmp_path: Path) -> None:
    put(tmp_path, step(500, **{"rng_state.pth": GOOD[:50]}))
    assert words(looked_at(tmp_path))["checkpoint-500/rng_state.pth"] == "corrupt"


def test_steps_in_a_row_go_by_number(tmp_path: Path) -> None:
    put(tmp_path, step(500) | step(1000) | step(1500, **{"trainer_state.json": None}))
    (tmp_path / "checkpoint-2000").mkdir()
    found = looked_at(tmp_path)
    rows = [one for one in found.checkpoints if one.kind == "series"]
    assert [(row.path, row.resume_from) for row in rows] == [(".", "checkpoint-1000")]
    assert by_path(found)["checkpoint-2000"].code == "incomplete-folder"


def test_a_row_of_files_says_when_times_disagree(tmp_path: Path) -> None:
    put(
        tmp_path,
        {"epoch=9-step=90.ckpt": GOOD, "epoch=10-step=100.ckpt": GOOD, "notes-2.txt": b"", "last.ckpt": GOOD},
    )
    os.utime(tmp_path / "epoch=10-step=100.ckpt", (1e9, 1e9))
    row = by_path(looked_at(tmp_path))["."]
    assert (row.kind, row.resume_from) == ("series", "epoch=10-step=100.ckpt")
    assert row.detail == "mtime order disagrees (copied later)"


def test_a_row_without_any_usable_step(tmp_path: Path) -> None:
    put(tmp_path, {"step_1.pt": GOOD[:-1], "step_2.pt": b""})
    assert by_path(looked_at(tmp_path))["."].code == "incomplete-series"


# DeepSpeed


def zero(ranks: range, world: int, model: int = 1, prefix: str = "") -> dict[str, bytes]:
    facts = {"dp_world_size": number(world), "mp_world_size": number(model), "global_steps": number(70)}
    states = {f"mp_rank_{m:02d}_model_states.pt": good_zip(facts) for m in range(model)}
    optimizers = {
        f"{prefix}zero_pp_rank_{r}_mp_rank_{m:02d}_optim_states.pt": GOOD for r in ranks for m in range(model)
    }
    return states | optimizers


def ranked(
    folder: Path, files: Mapping[str, bytes], latest: bytes | None = b"global_step70"
) -> CheckpointVerdict:
    put(folder, {f"global_step70/{name}": data for name, data in files.items()})
    if latest is not None:
        put(folder, {"latest": latest})
    return next(one for one in looked_at(folder).checkpoints if one.kind == "deepspeed")


def test_every_rank_must_be_there(tmp_path: Path) -> None:
    found = ranked(tmp_path / "a", zero(range(8), 8, model=2, prefix="bf16_"))
    assert (found.verdict, found.world, found.step, found.usable) == ("ok", 8, 70, "global_step70")
    short = ranked(tmp_path / "b", zero(range(7), 8))
    assert (short.verdict, short.missing) == ("incomplete", ("zero_pp_rank_7_mp_rank_00_optim_states.pt",))
    states = zero(range(2), 2, model=2)
    del states["mp_rank_01_model_states.pt"]
    assert ranked(tmp_path / "c", states).missing == ("mp_rank_01_model_states.pt",)


def test_what_latest_says_counts(tmp_path: Path) -> None:
    files = zero(range(2), 2)
    assert ranked(tmp_path / "a", files, b"global_step90").missing == ("global_step90",)
    assert ranked(tmp_path / "b", files, None).missing == ("latest",)
    assert ranked(tmp_path / "c", files, b"../elsewhere").code == "path-escapes"
    damaged = ranked(tmp_path / "d", {**files, "mp_rank_00_model_states.pt": GOOD[:-1]})
    assert (damaged.verdict, damaged.bad) == ("corrupt", ("mp_rank_00_model_states.pt",))


def test_one_generation_may_be_named_by_itself(tmp_path: Path) -> None:
    put(tmp_path, {f"global_step70/{name}": data for name, data in zero(range(2), 2).items()})
    found = looked_at(tmp_path / "global_step70").checkpoints
    assert [(one.kind, one.verdict, one.step) for one in found] == [("deepspeed", "ok", 70)]


def test_a_pointer_to_nothing_is_told(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a/last_checkpoint": b"model_0099.pth",
            "b/last_checkpoint": b"model_1.pth\n",
            "b/model_1.pth": GOOD,
        },
    )
    put(tmp_path, {"c/latest": b"some words of mine", "d/latest_checkpointed_iteration.txt": b"40"})
    (tmp_path / "d" / "iter_0000040").mkdir()
    found = words(looked_at(tmp_path))
    assert found["a/last_checkpoint"] == "incomplete"
    assert {"b/last_checkpoint", "c/latest", "d/latest_checkpointed_iteration.txt"}.isdisjoint(found)


# links, times, names


def test_links_are_never_followed_out_of_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "run"
    put(root, {"m.pt": GOOD, "sub/n.pt": GOOD})
    put(tmp_path, {"secret.pt": good_zip({"x": calls("posix.system")})})
    aims = {
        "out.pt": "../secret.pt", "absolute.pt": str(tmp_path / "secret.pt"), "good.pt": "m.pt",
        "home.pt": str(root / "m.pt"), "around.pt": "sub/../m.pt", "through.pt": "sub/up/m.pt",
        "sub/up": "..",
        "over.pt": "sub/up/../secret.pt", "gone.pt": "nothing.pt", "gone.log": "nothing.log", "self": "self",
        "folder": "sub", "chain.pt": "good.pt",
    }  # fmt: skip
    for name, aim in aims.items():
        (root / name).symlink_to(aim)
    found = looked_at(root)
    told = {one.path: one.verdict for one in found.checkpoints if one.kind == "link"}
    assert told == {
        "out.pt": "suspicious", "absolute.pt": "suspicious", "over.pt": "suspicious", "gone.pt": "incomplete",
        "good.pt": "ok", "home.pt": "ok", "around.pt": "ok", "through.pt": "ok", "chain.pt": "ok",
    }  # fmt: skip
    assert {file.path for file in found.files if file.code == "ok"} >= {"m.pt", "sub/n.pt"}


def test_the_same_bytes_twice_are_read_once_and_told(tmp_path: Path) -> None:
    put(tmp_path, {"a.pt": GOOD})
    os.link(tmp_path / "a.pt", tmp_path / "b.pt")
    os.link(tmp_path / "a.pt", tmp_path / "c.safetensors")
    found = by_path(looked_at(tmp_path, digests=True))
    assert found["a.pt"].detail == found["b.pt"].detail == "hardlink_pair"
    assert found["c.safetensors"].subtype == "wrong_format"


def test_odd_times_are_told_and_stop_nobody(tmp_path: Path) -> None:
    put(tmp_path, {"a.pt": GOOD, "b.pt": GOOD, "c.pt": GOOD})
    now = time.time()
    os.utime(tmp_path / "a.pt", (now + 9e6, now + 9e6))
    os.utime(tmp_path / "b.pt", (5, 5))
    found = by_path(looked_at(tmp_path))
    assert [found[name].detail for name in ("a.pt", "b.pt", "c.pt")] == ["mtime_future", "mtime_1970", None]
    assert {one.verdict for one in found.values()} == {"ok"}


def test_pipes_and_sockets_are_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.pt")
    found = looked_at(tmp_path)
    assert (found.checkpoints, [p.code for p in found.problems]) == ((), ["special-file"])


@pytest.mark.parametrize(
    "name",
    ["m.pt.part", "m.pt.PART", "m.safetensors.incomplete", "m.pt.tmp", "m.pt.tmp.4711",
     "m.pt.12ab34cd.partial",
     "Unconfirmed 123.crdownload", ".m.pt.Xk3d9Q", "model.pt~", "#model.pt#", ".~tmp~m.pt", "m.pt.aria2",
     "m.pt.7F3a9c0D", "m.pt.uploading", "m.pt.baiduyun.p.downloading", "m.safetensors.xltd",
     "predictions.csv.part", ".syncthing.m.pt.tmp", ".goutputstream-AB12CD", "m.ckpt.bak", "m.ckpt.bak~",
     "m.pt.tmp~", "m.pt.rsync-partial", "m.safetensors.in_progress", "m.pt.st"],
)  # fmt: skip
def test_what_is_being_written_is_known_by_its_name(tmp_path: Path, name: str) -> None:
    assert transfer_of(name) is not None
    put(tmp_path, {name: GOOD})
    assert words(looked_at(tmp_path)) == {name: "partial"}


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt~",
        ".gitignore",
        ".eslintrc.base.config",
        "a.partial_results.csv",
        "tmp.pt",
        "party.pt",
        "m.st",
        "m.pt.20241231",
        "m.pt.1a2b3c4d",
        "notes.DEADBEEF",
    ],
)
def test_what_stands_by_itself(name: str) -> None:
    assert transfer_of(name) is None


def test_a_control_file_beside_it_means_unfinished(tmp_path: Path) -> None:
    for kept in ("m.pt.aria2", "m.pt.st", "m.pt.lftp-pget-status"):
        put(tmp_path / kept, {"m.pt": GOOD, kept: b"\0\1"})
        assert words(looked_at(tmp_path / kept)) == {"m.pt": "partial", kept: "partial"}


def test_what_rsync_keeps_of_a_cut_transfer_is_no_checkpoint(tmp_path: Path) -> None:
    put(tmp_path, {".rsync-partial/m.pt": GOOD[:200], "m.pt": GOOD})
    found = by_path(looked_at(tmp_path))
    assert {path: one.verdict for path, one in found.items()} == {".rsync-partial": "partial", "m.pt": "ok"}


@pytest.mark.parametrize("name", ["COMPLETED", "_COMMITTED", "commit_success.txt", "step_5.ready", ".done"])
def test_an_empty_file_that_says_something_by_being_there(tmp_path: Path, name: str) -> None:
    put(tmp_path, {name: b""})
    [found] = looked_at(tmp_path).files
    assert (found.verdict, found.kind) == ("ignore", "marker")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("step_100.pt", ("step_*.pt", 100)),
        ("epoch=07-step=4200.ckpt", ("epoch=*-step=*.ckpt", 4200)),
        ("epoch=2-val_loss=0.25.ckpt", ("epoch=*-val_loss=*.ckpt", 2)),
        ("lr_0.1_step_20-acc-71.25.pt", ("lr_0.1_step_*-acc-*.pt", 20)),
        ("model_0009999.pth", ("model_*.pth", 9999)),
        ("checkpoint-500", ("checkpoint-*", 500)),
        ("global_step70", ("global_step*", 70)),
        ("12.pt", ("*.pt", 12)),
        ("unet_ema_200k.pt", ("unet_ema_*k.pt", 200)),
        ("generator_000100.pt", ("generator_*.pt", 100)),
        ("50_net_G.pth", ("*_net_G.pth", 50)),
        ("e12.pth", ("e*.pth", 12)),
        ("G_200.pth", ("G_*.pth", 200)),
        ("fold_2.pt", None),
        ("7b-chat.pt", None),
        ("resnet50.pt", None),
        ("truncated_tail20.pt", None),
        ("best.pt", None),
    ],
)
def test_the_number_in_a_name(name: str, expected: tuple[str, int] | None) -> None:
    assert number_of(name) == expected


def test_names_are_claims() -> None:
    claims = {"a.PT": "torch", "a.pth.tar": "torch", "pytorch_model.bin": "torch", "train.bin": "weights",
              "m.onnx": "other", "m.pt2": "other", ".pt": None, "x.txt": None}  # fmt: skip
    assert {name: claim_of(name) for name in claims} == claims
    assert step_and_epoch("step100.pt") == (100, None)
    assert is_portable("epoch=07-step=4200.ckpt")
    assert not any(map(is_portable, ("-rf.pt", "a b.pt", "é.pt", "...", "a:b.pt", "x" * 201)))


def test_text_behind_a_step_is_no_number_of_another_kind(tmp_path: Path) -> None:
    put(tmp_path, {"m.pt": good_zip({"note": text("epoch 9")})})
    assert by_path(looked_at(tmp_path))["m.pt"].epoch is None

"""Which checkpoints of a copy go along: the newest that are whole, with everything that belongs to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.model.failure import Failure
from tui.runs.carry import carry_lines
from tui.workers.carried_back import copy_in
from tui.workers.generations import Chosen, Found, choose


def chosen(paths: list[str], pattern: str, texts: dict[str, str] | None = None, **more: object) -> Chosen:
    read = {path: text.encode() for path, text in (texts or {}).items()}
    found = {path: Found(8 << 20, modified_ns=number) for number, path in enumerate([*paths, *read])}
    return choose(found, pattern, "copy-1", read, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("paths", "pattern", "expected"),
    [
        (["ckpt/s-9.pt", "ckpt/s-10.pt", "ckpt/s-2.pt"], "ckpt/*.pt", ["ckpt/s-10.pt", "ckpt/s-9.pt"]),
        (["s-9.pt", "s-10.pt"], "ckpt/*.pt", ["ckpt/s-10.pt", "ckpt/s-9.pt"]),
        (["e=3-s=40.ckpt", "e=2-s=30.ckpt"], "*.ckpt", ["e=3-s=40.ckpt", "e=2-s=30.ckpt"]),
        (["epoch=1-loss=0.91.ckpt", "epoch=2-loss=0.12.ckpt", "epoch=0-loss=0.99.ckpt"], "*.ckpt",
         ["epoch=2-loss=0.12.ckpt", "epoch=1-loss=0.91.ckpt"]),
        (["third.pt", "best.pt", "last.pt"], "*.pt", ["last.pt", "best.pt"]),  # without numbers by time
        (["last.pt"], "*.pt", ["last.pt"]),
        (["ckpt/s-1.pt", "ckpt/s-2.pt", "best.pt"], "ckpt/*.pt", ["ckpt/s-2.pt", "ckpt/s-1.pt"]),
        (["s-1.pt", "vis/s-9.pt"], "./ckpt/*.pt", ["ckpt/s-1.pt"]),
        (["active/r/ckpt/s-1.pt", "active/r/train.log"], "ckpt/*.pt", ["ckpt/s-1.pt"]),
        (["out/a/s-1.pt", "out/b/s-2.pt"], "out/**/*.pt", ["out/b/s-2.pt", "out/a/s-1.pt"]),
        # one save may write several files
        (["m-8.pt", "opt-8.pt", "ema-8.pt", "m-9.pt", "opt-9.pt", "ema-9.pt", "m-7.pt"], "*.pt",
         ["opt-9.pt", "m-9.pt", "ema-9.pt", "opt-8.pt", "m-8.pt", "ema-8.pt"]),
        # a rank's number is no step
        ([f"step-{step}-rank{rank}.pt" for step in (5, 6, 7) for rank in range(3)], "*.pt",
         [f"step-{step}-rank{rank}.pt" for step in (7, 6) for rank in (2, 1, 0)]),
    ],
)  # fmt: skip
def test_the_newest_files_by_the_numbers_of_their_names(
    paths: list[str], pattern: str, expected: list[str]
) -> None:
    assert list(chosen(paths, pattern).files.values()) == expected


@pytest.mark.parametrize(
    ("paths", "pattern"),
    [
        (["train.log"], "ckpt/*.pt"),
        (["a/ckpt/s-1.pt", "b/ckpt/s-2.pt"], "ckpt/*.pt"),  # of which of two runs?
        ([], "ckpt/*.pt"),
    ],
)
def test_none_is_no_beginning(paths: list[str], pattern: str) -> None:
    with pytest.raises(Failure, match="copy-1 is a checkpoint"):
        chosen(paths, pattern)


def trainer(step: int) -> list[str]:
    names = (
        "model.safetensors",
        "optimizer.pt",
        "rng_state.pth",
        "scheduler.pt",
        "trainer_state.json",
    )
    return [f"out/checkpoint-{step}/{name}" for name in names]


HF = [*trainer(90), *trainer(1000), *trainer(500), "out/runs/events.out", "out/README.md", "train.log"]


@pytest.mark.parametrize(
    "pattern",
    ["out/checkpoint-*", "out/checkpoint-*/*", "out/checkpoint-*/model.safetensors", "out/*", "out"],
)
def test_a_trainers_folder_travels_whole_whatever_of_it_the_pattern_names(pattern: str) -> None:
    found = chosen(HF, pattern)
    assert found.names == ("out/checkpoint-1000", "out/checkpoint-500")
    assert set(found.files.values()) == {*trainer(1000), *trainer(500)}
    assert list(found.files)[4] == "out/checkpoint-1000/trainer_state.json"  # the proof of it comes last


def test_a_folder_that_was_cut_while_it_was_written_is_passed_over_and_named() -> None:
    cut = [path for path in HF if path != "out/checkpoint-1000/trainer_state.json"]
    found = chosen(cut, "out/checkpoint-*")
    assert found.names == ("out/checkpoint-500", "out/checkpoint-90")
    assert "out/checkpoint-1000 is not whole: it lacks trainer_state.json" in found.skipped[0]
    with pytest.raises(Failure, match="No checkpoint in copy-1 is whole"):
        chosen([path for path in HF if "trainer_state" not in path], "out/checkpoint-*")


def test_a_folder_is_told_in_one_line_and_what_was_passed_over_is_said(tmp_path: Path) -> None:
    for path in (*trainer(7), *trainer(8)[:-1]):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x" * 100)
    told = list(carry_lines(copy_in(tmp_path, "out/checkpoint-*")))
    assert [title for title, _ in told] == ["passed", "carry"]
    assert "checkpoint-8 is not whole: it lacks trainer_state.json" in told[0][1]
    assert told[1][1].startswith("out/checkpoint-7: 5 files, 500 B")
    assert list(carry_lines(())) == [("carry", "nothing: it begins at step 0")]


def test_the_copy_may_be_of_the_output_folder_or_of_one_checkpoint(tmp_path: Path) -> None:
    inner = [path.removeprefix("out/") for path in trainer(7)]
    assert set(chosen(inner, "out/checkpoint-*").files.values()) == set(trainer(7))
    for path in trainer(7):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x")
    for folder in ("", "out", "out/checkpoint-7"):
        carried = copy_in(tmp_path / folder, "out/checkpoint-*")
        assert {one.path for one in carried} == set(trainer(7))
        assert all(one.here.read_bytes() == b"x" for one in carried)


def test_a_shard_that_the_index_names_and_is_not_there() -> None:
    def sharded(step: int, *numbers: int) -> list[str]:
        names = [f"model-0000{n}-of-00002.safetensors" for n in numbers]
        return [f"out/checkpoint-{step}/{name}" for name in (*names, "trainer_state.json")]

    index = json.dumps({"weight_map": {str(n): f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}})
    texts = {f"out/checkpoint-{step}/model.safetensors.index.json": index for step in (1, 2)}
    found = chosen([*sharded(1, 1, 2), *sharded(2, 1)], "out/checkpoint-*", texts)
    assert found.names == ("out/checkpoint-1",)
    # far away the index is not read yet, and nothing is said against what it may name
    far = {path: Found(9) for path in (*sharded(1, 1, 2), *texts)}
    assert choose(far, "out/checkpoint-*", "far").names == ("out/checkpoint-1",)


def zero(step: int, ranks: int = 2) -> list[str]:
    names = [f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(ranks)]
    return [f"ckpt/global_step{step}/{name}" for name in ("mp_rank_00_model_states.pt", *names)]


@pytest.mark.parametrize("pattern", ["ckpt/global_step*", "ckpt/*", "ckpt", "ckpt/**"])
def test_deepspeeds_latest_goes_along_with_what_it_names(pattern: str) -> None:
    paths = [*zero(8), *zero(10), *zero(9), "ckpt/zero_to_fp32.py"]
    found = chosen(paths, pattern, {"ckpt/latest": "global_step9\n"})
    assert found.names == ("ckpt/global_step10", "ckpt/global_step9")
    assert list(found.files.values())[-1] == "ckpt/latest"
    assert set(found.files) == {*zero(10), *zero(9), "ckpt/latest"}
    old = chosen(paths, pattern, {"ckpt/latest": "global_step8"})  # the newest two are not what is loaded
    assert set(old.names) == {f"ckpt/global_step{n}" for n in (8, 9, 10)}


@pytest.mark.parametrize(
    ("latest", "why"), [("global_step10", "lacks zero_pp_rank_1"), ("global_step11", "is not there")]
)
def test_a_latest_that_leads_nowhere_is_refused(latest: str, why: str) -> None:
    """DeepSpeed would warn, load nothing and train on from step 0."""
    with pytest.raises(Failure, match=f"names {latest}, which {why}"):
        chosen([*zero(9), *zero(10, ranks=1)], "ckpt/global_step*", {"ckpt/latest": latest})


def sharded_state(step: int, *without: str) -> list[str]:
    names = {"__0_0.distcp", "__1_0.distcp", ".metadata"} - {*without}
    return [f"ckpt/step-{step}/{name}" for name in sorted(names)]


@pytest.mark.parametrize("pattern", ["ckpt/step-*", "ckpt/step-*/*.distcp", "ckpt"])
def test_a_distributed_checkpoint_is_whole_with_its_metadata_and_every_rank(pattern: str) -> None:
    paths = [*sharded_state(100), *sharded_state(200), *sharded_state(300, ".metadata")]
    found = chosen([*paths, *sharded_state(250, "__0_0.distcp")], pattern)
    assert found.names == ("ckpt/step-200", "ckpt/step-100")
    assert set(found.files) == {*sharded_state(200), *sharded_state(100)}
    assert list(found.files)[2] == "ckpt/step-200/.metadata"
    assert [words.split(" ")[0] for words in found.skipped] == ["ckpt/step-300", "ckpt/step-250"]


def test_a_folder_that_nobody_knows_is_taken_as_it_is_and_one_with_an_unfinished_name_is_not() -> None:
    paths = ["ck/iter_0000100/mp_rank_00/x.bin", "ck/iter_0000200/mp_rank_00/x.bin", "ck/iter_0000300.tmp/x"]
    found = chosen(paths, "ck/iter_*", {"ck/latest_checkpointed_iteration.txt": "200"})
    assert found.names == ("ck/iter_0000200", "ck/iter_0000100")
    assert list(found.files)[-1] == "ck/latest_checkpointed_iteration.txt"


def test_what_lies_in_an_archive_of_the_copy_is_not_there() -> None:
    found = {
        path: Found(9, apart="scheduler" in path and "-7/" in path) for path in (*trainer(6), *trainer(7))
    }
    assert choose(found, "out/checkpoint-*", "copy").names == ("out/checkpoint-6",)


def test_a_latest_that_lies_in_an_archive_is_refused() -> None:
    found = {path: Found(9) for path in zero(9)} | {"ckpt/latest": Found(9, apart=True)}
    with pytest.raises(Failure, match="ckpt/latest names the checkpoint to load, and lies in an archive"):
        choose(found, "ckpt/global_step*", "copy")

"""Which files are one checkpoint, which are complete, and what is chosen: by names and sizes alone."""

from __future__ import annotations

import json

import pytest

from tests.custody.trees import TOP, tree
from tui.custody.layouts.recognise import recognise
from tui.custody.layouts.tree import Tree
from tui.custody.selection import Selection, counted, select
from tui.model.custody_table import CustodyTable

HF = (
    "config.json",
    "model.safetensors",
    "optimizer.pt",
    "scheduler.pt",
    "rng_state.pth",
    "trainer_state.json",
)


def hf(step: int, *without: str) -> dict[str, int]:
    return {f"out/checkpoint-{step}/{name}": 5 << 20 for name in HF if name not in without}


def chosen(of: Tree, table: CustodyTable | None = None) -> Selection:
    return select(of, TOP, table)


def codes(selection: Selection) -> list[tuple[str, str | None]]:
    return [(one.code, one.path) for one in selection.refusals]


def test_hf_trainer_the_newest_complete_one_is_kept_and_older_ones_wait_for_a_decision() -> None:
    found = chosen(tree({**hf(500), **hf(1000), **hf(900), "train.log": 5}))
    assert set(found.generation_of.values()) == {"out/checkpoint-1000"}
    assert {one.name for one in found.unkept} == {"out/checkpoint-500", "out/checkpoint-900"}
    assert found.roles["train.log"] == "log"
    assert found.roles["out/checkpoint-1000/model.safetensors"] == "checkpoint"
    assert not any(path.startswith("out/checkpoint-5") for path in found.roles)
    assert not found.refusals


@pytest.mark.parametrize(
    "lacking", ["trainer_state.json", "model.safetensors", "optimizer.pt", "rng_state.pth"]
)
def test_hf_trainer_an_incomplete_newest_one_is_named_and_the_complete_one_before_it_counts(
    lacking: str,
) -> None:
    found = chosen(tree({**hf(400), **hf(500), **hf(1000, lacking)}))
    assert set(found.generation_of.values()) == {"out/checkpoint-500"}
    assert [g.code for g in found.gaps if "checkpoint-1000" in g.detail] == ["generation-skipped"]
    assert "out/checkpoint-1000" in {one.name for one in found.unkept}


def test_hf_trainer_a_folder_made_before_the_save_began_is_no_checkpoint() -> None:
    found = chosen(tree(hf(500), None, "out/checkpoint-1000"))
    assert set(found.generation_of.values()) == {"out/checkpoint-500"}
    assert any("out/checkpoint-1000" in gap.detail for gap in found.gaps)


def test_hf_trainer_no_complete_one_at_all_is_refused() -> None:
    found = chosen(tree(hf(1000, "model.safetensors")))
    assert codes(found) == [("generation-incomplete", "out/checkpoint-1000")]


def index(*names: str) -> bytes:
    return json.dumps(
        {"metadata": {}, "weight_map": {f"layer.{n}": name for n, name in enumerate(names)}}
    ).encode()


S1, S2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


def test_sharded_safetensors_complete() -> None:
    found = chosen(tree({S1: 9, S2: 9, INDEX: 5}, texts={INDEX: index(S1, S2)}))
    assert set(found.generation_of) == {S1, S2, INDEX}
    assert not found.refusals


def test_sharded_safetensors_a_missing_shard_a_missing_index_and_an_empty_shard() -> None:
    for files in ({S1: 9, INDEX: 5}, {S1: 9, S2: 9}, {S1: 9, S2: 0, INDEX: 5}):
        found = chosen(tree(files, texts={INDEX: index(S1, S2)} if INDEX in files else None))
        assert codes(found) == [("generation-incomplete", "model")], files
        assert S2 in found.refusals[0].detail or INDEX in found.refusals[0].detail


def test_sharded_safetensors_a_shard_of_another_split_does_not_belong() -> None:
    stale = "model-00003-of-00003.safetensors"
    found = chosen(tree({S1: 9, S2: 9, INDEX: 5, stale: 9}, texts={INDEX: index(S1, S2)}))
    assert set(found.generation_of) == {S1, S2, INDEX}
    assert any(stale in gap.detail for gap in found.gaps)
    assert stale not in found.roles
    assert not found.refusals


def test_sharded_safetensors_an_index_may_not_lead_out_of_its_folder() -> None:
    found = chosen(tree({S1: 9, INDEX: 5}, texts={INDEX: index(S1, "../../other/good.pt")}))
    assert ("leaves-tree", INDEX) in codes(found)
    assert not found.generation_of


@pytest.mark.parametrize(
    "raw", [b'{"metadata": {"total', b"[]", b'{"weight_map": {"a": 1}}', b"", b"[" * 100_000]
)
def test_sharded_safetensors_a_damaged_index_is_said(raw: bytes) -> None:
    found = chosen(tree({S1: 9, S2: 9, INDEX: 5}, texts={INDEX: raw}))
    assert codes(found) == [("layout-damaged", INDEX), ("generation-incomplete", "model")]
    assert not found.generation_of


def zero(tag: str, ranks: tuple[int, ...]) -> dict[str, int]:
    files = {f"ds/{tag}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt": 9 for rank in ranks}
    return {**files, f"ds/{tag}/mp_rank_00_model_states.pt": 9}


def test_deepspeed_complete_and_latest() -> None:
    of = tree(
        {**zero("global_step100", (0, 1, 2, 3)), **zero("global_step90", (0, 1, 2, 3)), "ds/latest": 14},
        texts={"ds/latest": b"global_step100"},
    )
    found = chosen(of)
    assert set(found.generation_of.values()) == {"ds/global_step100"}
    assert found.roles["ds/latest"] == "other"
    assert not found.refusals


def test_deepspeed_a_rank_in_the_middle_or_at_the_end_is_missed() -> None:
    middle = chosen(tree(zero("global_step200", (0, 1, 3))))
    assert "zero_pp_rank_2_mp_rank_00_optim_states.pt" in middle.refusals[0].detail
    end = chosen(tree({**zero("global_step100", (0, 1, 2, 3)), **zero("global_step200", (0, 1, 2))}))
    assert set(end.generation_of.values()) == {"ds/global_step100"}
    assert any("zero_pp_rank_3" in gap.detail for gap in end.gaps)


def test_deepspeed_latest_names_a_folder_that_is_gone() -> None:
    files = {**zero("global_step100", (0, 1)), "ds/latest": 14}
    found = chosen(tree(files, texts={"ds/latest": b"global_step300\n"}))
    assert any("global_step300" in gap.detail and "global_step100" in gap.detail for gap in found.gaps)
    alone = chosen(
        tree({"ds/latest": 14, **zero("global_step100", (1,))}, texts={"ds/latest": b"global_step300"})
    )
    assert ("generation-incomplete", "ds/latest") in codes(alone)


def test_lightning_top_k_last_and_sharded_folders() -> None:
    sharded = {
        f"ck/epoch=2-step=300.ckpt/{name}": 9
        for name in (".metadata", "meta.pt", "__0_0.distcp", "__1_0.distcp")
    }
    found = chosen(
        tree({"v/last.ckpt": 9, "v/epoch=1-val=0.5.ckpt": 9, "v/epoch=3-val=0.2.ckpt": 9, **sharded})
    )
    assert set(found.generation_of.values()) == {
        "v/last.ckpt",
        "v/epoch=3-val=0.2.ckpt",
        "ck/epoch=2-step=300.ckpt",
    }
    del sharded["ck/epoch=2-step=300.ckpt/.metadata"]
    assert codes(chosen(tree(sharded))) == [("generation-incomplete", "ck/epoch=2-step=300.ckpt")]


def test_lightning_a_link_named_last_pins_what_it_points_at() -> None:
    found = chosen(tree({"epoch=1.ckpt": 9, "epoch=2.ckpt": 9}, {"best.ckpt": "epoch=1.ckpt"}))
    assert set(found.generation_of) == {"epoch=1.ckpt", "epoch=2.ckpt"}


def test_ultralytics_must_have_best_last_and_results() -> None:
    run = {
        "args.yaml": 9,
        "results.csv": 9,
        "weights/best.pt": 9,
        "weights/last.pt": 9,
        "weights/epoch10.pt": 9,
    }
    assert not chosen(tree(run)).refusals
    del run["weights/best.pt"]
    assert ("roster-missing", "weights/best.pt") in codes(chosen(tree(run)))


def test_a_series_is_ordered_by_number_not_by_text_or_time() -> None:
    found = chosen(tree({"step_1000.pt": 9, "step_200.pt": 9, "step_100.pt": 9}))
    assert set(found.generation_of) == {"step_1000.pt"}
    assert {one.name for one in found.unkept} == {"step_100.pt", "step_200.pt"}


def test_ckpt_trunc_an_empty_or_unfinished_newest_one_does_not_count() -> None:
    empty = chosen(tree({"step_100.pt": 9, "step_200.pt": 0}))
    assert set(empty.generation_of) == {"step_100.pt"}
    aria = chosen(tree({"step_100.pt": 9, "step_200.pt": 9, "step_200.pt.aria2": 9}))
    assert set(aria.generation_of) == {"step_100.pt"}
    assert "step_200.pt.aria2" not in aria.roles


def test_ckpt_trunc_a_newest_one_much_smaller_than_all_others_was_cut() -> None:
    found = chosen(
        tree({"step_100.pt": 2000, "step_200.pt": 2010, "step_1000.pt": 2000, "step_1100.pt": 800})
    )
    assert set(found.generation_of) == {"step_1000.pt"}
    assert any("step_1100.pt" in gap.detail and "800" in gap.detail for gap in found.gaps)
    growing = chosen(tree({"step_1.pt": 100, "step_2.pt": 200, "step_3.pt": 50}))
    assert set(growing.generation_of) == {"step_3.pt"}, "a series without one size tells nothing"


def test_a_pointer_file_to_nothing() -> None:
    alone = chosen(tree({"last_checkpoint": 9}, texts={"last_checkpoint": b"model_0009999.pth"}))
    assert ("generation-incomplete", "last_checkpoint") in codes(alone)
    whole = chosen(
        tree({"last_checkpoint": 9, "model_0009999.pth": 9}, texts={"last_checkpoint": b"model_0009999.pth"})
    )
    assert not whole.refusals


SEALED = {"run.json": 9, "config.yaml": 9, "train.csv": 9, "best.pth": 9, "test/coco/metrics.json": 9}


def test_a_sealed_export_is_taken_whole_and_must_be_whole() -> None:
    found = chosen(tree({**SEALED, "test/coco/results.parquet": 9, "test/coco/vis/1.png": 9}))
    assert found.layout == "sealed-export"
    assert found.roles["test/coco/results.parquet"] == "predictions"
    assert found.roles["test/coco/vis/1.png"] == "other"
    assert not found.refusals
    assert codes(chosen(tree(SEALED))) == [("roster-missing", "test/coco/results.parquet")]
    assert ("not-a-file", "last.pth") in codes(chosen(tree(SEALED, {"last.pth": "best.pth"})))


def test_a_table_takes_what_it_names_and_nothing_else() -> None:
    table = CustodyTable.model_validate(
        {
            "artifacts": {"checkpoint": ["best.pt"], "metrics": ["eval/**/*.json"], "log": ["logs"]},
            "optional": {"other": ["notes.txt"]},
            "counts": {"checkpoint": 1, "metrics": 2},
        }
    )
    files = {"best.pt": 9, "last.pt": 9, "eval/a/m.json": 9, "eval/m.json": 9, "logs/x/y.log": 9}
    found = chosen(tree(files), table)
    assert found.roles == {
        "best.pt": "checkpoint", "eval/a/m.json": "metrics", "eval/m.json": "metrics", "logs/x/y.log": "log",
    }  # fmt: skip
    assert not list(counted(found, table))
    less = chosen(tree({"best.pt": 9, "eval/m.json": 9}), table)
    assert codes(less) == [("roster-missing", None)]
    assert [one.code for one in counted(less, table)] == ["roster-count"]


def test_a_table_that_names_only_incomplete_checkpoints_is_refused() -> None:
    table = CustodyTable.model_validate({"artifacts": {"checkpoint": ["out/checkpoint-*"]}})
    found = chosen(tree({**hf(500), **hf(1000, "trainer_state.json")}), table)
    assert set(found.generation_of.values()) == {"out/checkpoint-500"}
    assert not found.refusals
    only = chosen(tree(hf(1000, "trainer_state.json")), table)
    assert codes(only) == [("generation-incomplete", "out/checkpoint-1000")]
    assert [one.code for one in counted(only, table)] == ["roster-empty"]


def test_nothing_is_a_refusal_and_not_an_empty_roster() -> None:
    found = chosen(tree({}))
    assert [one.code for one in counted(found, None)] == ["roster-empty"]


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ({"best.pt": "/etc/passwd"}, ("leaves-tree", "best.pt")),
        ({"best.pt": "../../x.pt"}, ("leaves-tree", "best.pt")),
        ({"best.pt": "nowhere.pt"}, ("link-dangling", "best.pt")),
        ({"a.pt": "b.pt", "b.pt": "a.pt"}, ("link-dangling", "a.pt")),
        ({"up": "..", "best.pt": "up/other/best.pt"}, ("leaves-tree", "best.pt")),
    ],
)
def test_links_that_lead_out_or_nowhere_are_refused(links: dict[str, str], expected: tuple[str, str]) -> None:
    assert expected in codes(chosen(tree({"train.log": 9}, links)))


def test_links_inside_are_told_and_their_targets_kept() -> None:
    found = chosen(
        tree({"a/step_1.pt": 9, "a/step_2.pt": 9}, {"latest": f"{TOP}/a/step_1.pt", "data": "/datasets"})
    )
    assert set(found.generation_of) == {"a/step_1.pt", "a/step_2.pt"}
    assert not found.refusals
    assert sum(gap.code == "links-not-copied" for gap in found.gaps) == 2


def test_every_generation_is_claimed_once() -> None:
    of = tree(
        {
            **hf(100, "model.safetensors"),
            **{f"out/checkpoint-100/{name}": 9 for name in (S1, S2, INDEX)},
            "out/checkpoint-100/global_step100/mp_rank_00_model_states.pt": 9,
            "out/checkpoint-100/global_step100/zero_pp_rank_0_mp_rank_00_optim_states.pt": 9,
        },
        texts={f"out/checkpoint-100/{INDEX}": index(S1, S2)},
    )
    claimed = [path for claim in recognise(of) for one in claim.generations for path in one.files]
    assert len(claimed) == len(set(claimed))
    assert {one.name for claim in recognise(of) for one in claim.generations} == {"out/checkpoint-100"}

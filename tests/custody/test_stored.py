"""A proof stands on the newest records alone: any step that is made again voids it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.custody.chains import NOW, Maker, changed, good_proof, sha
from tests.custody.endings import Scene, codes
from tui.custody.proof import Chain
from tui.custody.records import Records
from tui.custody.stored import STEPS, missing, stored_chain, superseded
from tui.model.failure import Failure


def saved(folder: Path, chain: Chain, count: int = len(STEPS)) -> Records:
    records = Records(folder / "records")
    for name, _ in STEPS[:count]:
        records.save(getattr(chain, name))
    return records


def test_a_chain_is_read_back_as_it_was_made(tmp_path: Path) -> None:
    chain = Maker().chain()
    records = saved(tmp_path, chain)
    assert stored_chain(records) == chain
    assert missing(records) == ()
    assert superseded(records, good_proof(chain)) == ()


def test_a_chain_with_a_step_missing_is_none(tmp_path: Path) -> None:
    records = saved(tmp_path, Maker().chain(), 4)
    assert stored_chain(records) is None
    assert missing(records) == ("load", "metrics")


@pytest.mark.parametrize("step", [name for name, _ in STEPS])
def test_store_rot_any_step_made_again_voids_the_proof(tmp_path: Path, step: str) -> None:
    """As when a second readback finds a flipped bit: the approval of the first one is worth nothing."""
    chain = Maker().chain()
    records = saved(tmp_path, chain)
    proof = good_proof(chain)
    link = getattr(Maker(at=NOW + 1).chain(), step)
    records.save(link if step != "readback" else link.model_copy(update={"different": ("ckpt/best",)}))
    assert [one.code for one in superseded(records, proof)] == ["proof-other"]
    scene = Scene(tmp_path / "scene")
    scene.newer = lambda proof: superseded(records, proof)  # type: ignore[method-assign]
    assert set(codes(scene.carry_out(scene.order()))) == {"proof-other"}
    assert scene.plane.sent == []


def test_a_damaged_record_is_no_older_one(tmp_path: Path) -> None:
    chain = Maker({"metrics": changed(load=sha(b"x"))}).chain()
    records = saved(tmp_path, chain)
    (records.folder / "metric-report-000001.json").write_bytes(b"{}")
    with pytest.raises(Failure, match="not what was stored"):
        stored_chain(records)

"""Damaged and hostile checkpoints in a readback whose every byte is what the box had: none gets a proof.

The names are those of the fault catalogue. The bytes agree with the box's; it is the box's file that is bad.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkpoints import made
from tests.custody.chains import Maker, changed, good_proof, proof_of
from tui.checkpoints.examine import Options, examine_tree, listed
from tui.checkpoints.jailer import Jail
from tui.custody.judged import load_report
from tui.model.custody import LoadReport

GOOD_ST = made.safetensors({"w": ("F32", (4096,), made.GOOD_FLOATS * 2)})


@pytest.fixture(scope="module")
def jail() -> Iterator[Jail]:
    with Jail() as started:
        yield started


def judged(folder: Path, jail: Jail, name: str, data: bytes) -> LoadReport:
    """The load report on a readback of this one checkpoint."""
    path = folder / name
    path.write_bytes(data)
    readback = Maker(files={name: (data, "checkpoint")}).chain().readback
    assert readback.files[0].sha256 == "sha256:" + hashlib.sha256(data).hexdigest()
    found = examine_tree(listed(str(folder)), Options(jail=jail, digests=True))
    return load_report(readback, found, readback.finished_at)


def refused(folder: Path, jail: Jail, name: str, data: bytes) -> str:
    """What the one finding says; no proof is made of it."""
    report = judged(folder, jail, name, data)
    assert report.refusals == ()  # nothing was changed since the readback
    (finding,) = report.checkpoints
    files = {name: (data, "checkpoint")}
    answer = proof_of(Maker({"load": changed(checkpoints=report.checkpoints)}, files=files).chain())
    assert isinstance(answer, tuple), f"a proof was made of {finding}"
    assert {one.code for one in answer} == {"checkpoint-refused"}
    return finding.code


@pytest.mark.parametrize("name", ["best.pt", "best.safetensors"])
def test_ckpt_whole_ones_do_get_a_proof(tmp_path: Path, jail: Jail, name: str) -> None:
    data = made.good_zip() if name.endswith(".pt") else GOOD_ST
    report = judged(tmp_path, jail, name, data)
    files = {name: (data, "checkpoint")}
    good_proof(Maker({"load": changed(checkpoints=report.checkpoints)}, files=files).chain())


@pytest.mark.parametrize("name", ["best.pt", "best.safetensors"])
def test_ckpt_trunc_gets_no_proof(tmp_path: Path, jail: Jail, name: str) -> None:
    data = made.good_zip() if name.endswith(".pt") else GOOD_ST
    assert refused(tmp_path, jail, name, data[: len(data) * 2 // 3]) == "corrupt-truncated"


@pytest.mark.parametrize("name", ["best.pt", "best.safetensors"])
def test_ckpt_zerotail_gets_no_proof(tmp_path: Path, jail: Jail, name: str) -> None:
    """Space that was reserved and never written: the size is right and the end reads as zeros."""
    data = made.good_zip() if name.endswith(".pt") else GOOD_ST
    code = refused(tmp_path, jail, name, data[: len(data) // 2] + bytes(len(data) - len(data) // 2))
    assert code in ("corrupt-preallocated", "suspicious-zero-tail", "corrupt-truncated")


@pytest.mark.parametrize("name", ["best.pt", "best.safetensors"])
def test_ckpt_hole_gets_no_proof(tmp_path: Path, jail: Jail, name: str) -> None:
    """A lost block in the middle reads as zeros; nothing else is wrong with the file."""
    dense = made.floats(*(0.001 * n - 30.0005 for n in range(60_000)))
    data = made.safetensors({"w": ("F32", (60_000,), dense)})
    if name.endswith(".pt"):
        entries = {"w": made.tensor("0", (len(dense) // 4,))}
        data = made.torch_zip(made.state(entries), {"0": dense})
    start = 4096 * 8
    harmed = data[:start] + bytes(4096 * 4) + data[start + 4096 * 4 :]
    assert refused(tmp_path, jail, name, harmed) in ("corrupt-zero-block", "suspicious-zero-pages")


def test_ckpt_trailing_bytes_get_no_proof(tmp_path: Path, jail: Jail) -> None:
    assert refused(tmp_path, jail, "best.safetensors", GOOD_ST + b"#!/bin/sh\n") == "corrupt-trailing"


@pytest.mark.parametrize("name", ["best.pt", "best.bin", "best.ckpt"])
def test_ckpt_pickle_evil_gets_no_proof_and_never_runs(tmp_path: Path, jail: Jail, name: str) -> None:
    canary = tmp_path / "canary"
    evil = made.good_zip({"x": made.calls("os.system", f"touch {canary}")})
    folder = tmp_path / "restored"
    folder.mkdir()
    assert refused(folder, jail, name, evil) == "unsafe-pickle"
    assert not canary.exists()

"""Checkpoints that go along to another box: the newest by their numbers, whole or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tui.box.local import LocalTransport
from tui.box.transport import Completed, LinkLost, Script, Transport
from tui.model.failure import Failure
from tui.model.text import SafeText
from tui.runs import carry
from tui.runs.fate import fate
from tui.runs.truth import State, Truth


def copy_of(tmp_path: Path, *names: str) -> Path:
    folder = tmp_path / "copy"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(os.urandom(3000))
    return folder


@pytest.mark.parametrize(
    ("names", "pattern", "expected"),
    [
        (["ckpt/s-9.pt", "ckpt/s-10.pt", "ckpt/s-2.pt"], "ckpt/*.pt", ["ckpt/s-10.pt", "ckpt/s-9.pt"]),
        (["s-9.pt", "s-10.pt"], "ckpt/*.pt", ["ckpt/s-10.pt", "ckpt/s-9.pt"]),
        (["e=3-s=40.ckpt", "e=2-s=30.ckpt"], "*.ckpt", ["e=3-s=40.ckpt", "e=2-s=30.ckpt"]),
        (["last.pt"], "*.pt", ["last.pt"]),
    ],
)
def test_the_newest_by_the_last_number_of_their_names(
    tmp_path: Path, names: list[str], pattern: str, expected: list[str]
) -> None:
    folder = copy_of(tmp_path, *names)
    for number, name in enumerate(names):  # a copy need not keep the times
        os.utime(folder / name, (1e9 - number, 1e9 - number))
    assert [one.path for one in carry.newest(folder, pattern)] == expected


def test_names_without_numbers_go_by_their_times(tmp_path: Path) -> None:
    folder = copy_of(tmp_path, "best.pt", "last.pt", "third.pt")
    for name, when in (("best.pt", 5), ("last.pt", 9), ("third.pt", 1)):
        os.utime(folder / name, (when, when))
    assert [one.path for one in carry.newest(folder, "*.pt")] == ["last.pt", "best.pt"]


def test_none_is_no_beginning(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="is a checkpoint"):
        carry.newest(copy_of(tmp_path, "notes.txt"), "ckpt/*.pt")


class Cut:
    """A link that breaks after so many scripts, again and again."""

    name = "cut"

    def __init__(self, after: int) -> None:
        self.left = after
        self.real = LocalTransport()

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        self.left -= 1
        if self.left < 0:
            await self.real.run(script, stdin=stdin[: len(stdin) // 2], timeout=timeout)
            raise LinkLost("cut")
        return await self.real.run(script, stdin=stdin, timeout=timeout, limit=limit)


async def test_it_goes_on_where_the_link_was_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry, "PIECE", 1000)
    files = carry.newest(copy_of(tmp_path, "ckpt/step-1.pt", "ckpt/step-2.pt"), "ckpt/*.pt")
    run = tmp_path / "run"
    run.mkdir()
    links: list[Transport] = [Cut(2), Cut(3), LocalTransport(), LocalTransport()]  # type: ignore[list-item]

    async def dial() -> Transport:
        return links.pop(0) if len(links) > 1 else links[0]

    await carry.carry(dial, str(run), files)
    for one in files:
        assert hashlib.sha256((run / one.path).read_bytes()).hexdigest() == one.sha256
    assert sorted(path.name for path in (run / "ckpt").iterdir()) == ["step-1.pt", "step-2.pt"]
    await carry.carry(dial, str(run), files)  # all there: nothing happens


async def test_another_file_of_the_name_is_not_written_over(tmp_path: Path) -> None:
    files = carry.newest(copy_of(tmp_path, "step-1.pt"), "*.pt")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "step-1.pt").write_text("mine")

    async def dial() -> Transport:
        return LocalTransport()

    with pytest.raises(Failure, match="another file of this name"):
        await carry.carry(dial, str(tmp_path / "run"), files)
    assert (tmp_path / "run" / "step-1.pt").read_text() == "mine"


@pytest.mark.parametrize(
    ("state", "provider", "kind"),
    [
        ("running", None, "runs"),
        ("pending", "stopped", "runs"),  # the run's own word counts more than a list
        ("finished", None, "over"),
        ("lost", None, "dead"),
        ("failed", None, "dead"),
        ("absent", None, "unbegun"),  # a disk that is not mounted shows no folder either
        ("placed", None, "unbegun"),
        ("unknown", "gone", "unknown"),
        (None, "stopped", "taken"),
        (None, "gone", "taken"),
        (None, "running", "unknown"),
        (None, "starting", "unknown"),
        (None, "stopping", "unknown"),
        (None, "destroying", "unknown"),
        (None, None, "unknown"),
    ],
)
def test_preempted_is_told_from_dead_and_silence_from_both(
    state: State | None, provider: str | None, kind: str
) -> None:
    seen = None if state is None else Truth(state, SafeText("because"))
    told = fate(seen, "no route", provider, spot=True)
    assert told.kind == kind
    assert told.certain is (kind in ("dead", "taken"))


@pytest.mark.parametrize(
    ("paths", "pattern", "expected"),
    [
        (["ckpt/s-1.pt", "ckpt/s-2.pt", "best.pt"], "ckpt/*.pt", ["ckpt/s-2.pt", "ckpt/s-1.pt"]),
        (["s-1.pt", "vis/s-9.pt"], "./ckpt/*.pt", ["ckpt/s-1.pt"]),
        (["active/r/ckpt/s-1.pt", "active/r/train.log"], "ckpt/*.pt", ["ckpt/s-1.pt"]),
        (["a/ckpt/s-1.pt", "b/ckpt/s-2.pt"], "ckpt/*.pt", []),  # of which of two runs?
        (["ckpt-5/model.safetensors"], "ckpt-*", []),  # a folder is no file that can be taken along
        (["out/a/s-1.pt", "out/b/s-2.pt"], "out/**/*.pt", ["out/b/s-2.pt", "out/a/s-1.pt"]),
        (["train.log"], "ckpt/*.pt", []),
    ],
)
def test_a_copys_listing_tells_which_files_the_run_would_load(
    paths: list[str], pattern: str, expected: list[str]
) -> None:
    times = dict.fromkeys(paths, 0.0)
    if not expected:
        with pytest.raises(Failure, match="copy-1"):
            carry.newest_of(times, pattern, "copy-1")
        return
    assert [name for _, name in carry.newest_of(times, pattern, "copy-1")] == expected

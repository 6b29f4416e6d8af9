"""Files that go along to another box: whole or not at all, and nothing is written over."""

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
from tui.runs.carry import Carried
from tui.runs.fate import fate
from tui.runs.truth import State, Truth


def copy_of(tmp_path: Path, *names: str) -> tuple[Carried, ...]:
    found = []
    for name in names:
        here = tmp_path / "copy" / name
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_bytes(os.urandom(3000))
        found.append(Carried(name, here, 3000, hashlib.sha256(here.read_bytes()).hexdigest()))
    return tuple(found)


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
    files = copy_of(tmp_path, "ckpt/step-1.pt", "ckpt/step-2.pt")
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
    files = copy_of(tmp_path, "step-1.pt")
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

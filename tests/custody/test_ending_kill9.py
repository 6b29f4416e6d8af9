"""kill -9 at every step of an ending: it goes on where it was, and the verb is never sent twice blindly."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.custody.chains import VICTIM
from tests.custody.endings import Scene
from tests.custody.fake_plane import StoredPlane
from tests.custody.killing import run_until
from tui.custody.journal import Journal, journal_path
from tui.custody.order import Order
from tui.model.custody import Verb
from tui.model.failure import Failure


def scene_in(folder: Path) -> Scene:
    """As a new rgt process finds it: the platform and the files are what they are."""
    return Scene(folder, StoredPlane(file=folder / "platform.json").load())


@pytest.mark.parametrize("verb", ["destroy", "stop"])
def test_app_kill9(tmp_path: Path, verb: Verb) -> None:
    for step in range(1, 400):
        folder = tmp_path / f"{step:03d}"
        folder.mkdir()
        order = scene_in(folder).order(verb)
        if not run_until(lambda: carry(folder, order), step):  # noqa: B023 - used at once
            break
        _goes_on(folder, order, verb)
    assert step > 15, "nothing was killed"


def carry(folder: Path, order: Order) -> None:
    scene = scene_in(folder)
    scene.order(order.verb)  # the look at the box says that nothing changed
    scene.carry_out(order)


def _goes_on(folder: Path, order: Order, verb: Verb) -> None:
    """The next rgt with the same order, and then one with a fresh approval, as the operator would."""
    before = _sent(folder)
    assert before.count(verb) <= 1
    scene = scene_in(folder)
    scene.unchanged_for(order)
    outcome = scene.carry_out(order)
    if outcome.kind in ("refused", "unproven"):  # the approval was used before the verb went out
        assert before == []
        assert _sent(folder) == []
        fresh = scene_in(folder)
        outcome = fresh.carry_out(fresh.order(verb, nonce="n2"))
    assert _sent(folder) == [verb]
    results = scene.receipts(verb)
    if verb == "destroy":
        assert outcome.kind == "proven"
        assert results.count("proven") == 1
    else:  # a stop is looked at anew each time it is ordered: somebody may have started the machine
        assert outcome.kind in ("proven", "already-stopped")
        assert results.count("proven") <= 1
        assert results[-1] == outcome.kind


def _sent(folder: Path) -> list[str]:
    path = folder / "platform.json"
    return json.loads(path.read_text())["calls"] if path.exists() else []


def test_a_half_written_line_at_the_end_never_happened(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    with scene.journal() as journal:
        journal.add("preflight", {"verb": "destroy"})
        path = journal.path
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at":"2026-11-29T10:00:00Z","data":{"nonce":"n1"')
    with scene.journal() as journal:
        assert [one.step for one in journal.entries] == ["preflight"]
        journal.add("approval", {"nonce": "n"})
    with scene.journal() as journal:
        assert [one.step for one in journal.entries] == ["preflight", "approval"]


def test_zeros_at_the_end_as_after_a_power_cut_never_happened(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    with scene.journal() as journal:
        journal.add("preflight", {})
        path = journal.path
    path.write_bytes(path.read_bytes() + bytes(512))
    with scene.journal() as journal:
        assert len(journal.entries) == 1


@pytest.mark.parametrize("damage", [b"preflight", b"2026"])
def test_damage_in_the_middle_stops_everything(tmp_path: Path, damage: bytes) -> None:
    scene = Scene(tmp_path)
    with scene.journal() as journal:
        journal.add("preflight", {})
        journal.add("sending", {"verb": "destroy", "nonce": "n1"})
        path = journal.path
    path.write_bytes(path.read_bytes().replace(damage, damage[::-1], 1))
    with pytest.raises(Failure, match="not what was written") as caught:
        scene.journal()
    assert caught.value.code == "journal-damaged"


def test_a_full_disk_before_the_verb_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path)
    order = scene.order()
    add = Journal.add

    def full(self: Journal, step: object, data: dict[str, object]) -> object:
        if step == "sending":
            raise Failure("No space left on device.")
        return add(self, step, data)  # type: ignore[arg-type]

    monkeypatch.setattr(Journal, "add", full)
    with pytest.raises(Failure, match="No space"):
        scene.carry_out(order)
    assert scene.plane.sent == []


def test_a_write_that_fails_half_way_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path)
    real = os.write
    with scene.journal() as journal:
        journal.add("preflight", {})

        def full(fd: int, data: memoryview) -> int:
            monkeypatch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
            return real(fd, data[:20])

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(Failure, match="No space"):
            journal.add("sending", {"verb": "destroy", "nonce": "n1"})
        monkeypatch.setattr(os, "write", real)
        journal.add("approval", {})
    with scene.journal() as journal:
        assert [one.step for one in journal.entries] == ["preflight", "approval"]


def test_the_journal_of_the_next_machine_of_this_name_is_another(tmp_path: Path) -> None:
    where = Scene(tmp_path).where
    reborn = VICTIM.model_copy(update={"instance_id": "inst-99"})
    moved = VICTIM.model_copy(update={"endpoint": "root@10.1.1.1:22", "boot_id": "x"})
    assert journal_path(where, VICTIM) != journal_path(where, reborn)
    assert journal_path(where, VICTIM) == journal_path(where, moved)


def test_an_approval_is_spent_for_every_verb_of_the_machine(tmp_path: Path) -> None:
    with Scene(tmp_path).journal() as journal:
        journal.add("sending", {"verb": "stop", "nonce": "n1"})
        with pytest.raises(Failure, match="used already"):
            journal.add("sending", {"verb": "destroy", "nonce": "n1"})

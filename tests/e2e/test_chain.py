"""The chain of custody in a shell, on the demo's finished runs: to a deleted box, and to refusals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.person import Person
from tui.demo.fleet import DemoBox, DemoFleet, embedded_fleet
from tui.demo.worn_disk import turn_a_bit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

LINKS = ["roster", "digest-report", "copy-report", "readback-report", "load-report", "metric-report"]


@pytest.fixture(scope="module")
def fleet() -> Iterator[DemoFleet]:
    with embedded_fleet(speed=4) as started:
        yield started


def rgt(fleet: DemoFleet, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tui.cli", *words],
        env={**os.environ, **fleet.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        start_new_session=True,
    )


def passes(fleet: DemoFleet, *words: str) -> str:
    done = rgt(fleet, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(fleet: DemoFleet, *words: str) -> str:
    done = rgt(fleet, *words)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr


def sealed(fleet: DemoFleet, run: str) -> DemoBox:
    """The box of a run, once that has finished."""
    box = next(b for b in fleet.boxes if b.run == run)
    end = time.monotonic() + 60
    while not (Path(box.out) / "metrics.json").exists():
        assert time.monotonic() < end, "the demo's run was never sealed"
        time.sleep(0.2)
    return box


def decide(fleet: DemoFleet, run: str) -> None:
    """Take the roster, and give up what is not on it: tools, and an older checkpoint by its exact name."""
    told: dict[str, Any] = json.loads(rgt(fleet, "roster", run, "--json").stdout)
    older = [one["group"] for one in told["leftovers"] if one["checkpoint_like"]]
    assert older
    named = [word for group in older for word in ("--scrap", group)]
    passes(fleet, "roster", run, "--scrap", "files:*", *named, "--reason", "best and last are enough")


def test_a_finished_run_goes_through_the_chain_to_a_deleted_box(fleet: DemoFleet, tmp_path: Path) -> None:
    box = sealed(fleet, "spiral-done")
    home = Path(box.out).parents[2]
    decide(fleet, box.run)
    passes(fleet, "digest", box.run)
    passes(fleet, "pull", box.run, "--to", str(tmp_path / "vault"))
    passes(fleet, "readback", box.run)
    told = json.loads(passes(fleet, "verify", box.run, "--json"))
    assert {c["verdict"] for c in told["load"]["checkpoints"]} == {"ok"}
    assert {m["name"]: m["verdict"] for m in told["metrics"]["metrics"]} == {
        "accuracy": "recomputed",
        "nll": "recomputed",
    }

    nobody = rgt(fleet, "down", box.run)
    assert nobody.returncode == 4
    assert "no terminal" in nobody.stderr
    assert home.is_dir()

    assert "destroy done-a10: PROVEN by two witnesses" in typed_down(fleet, box.run)
    assert not home.exists()
    (copy,) = (tmp_path / "vault").iterdir()
    assert json.loads(passes(fleet, "verify", str(copy), "--json"))["verdict"] == "accepted"
    receipts = json.loads(passes(fleet, "receipts", "--json"))
    assert receipts["holds"] is True
    acts = [(one["act"], one["result"]) for one in receipts["receipts"]]
    assert acts == [("roster", "refused"), *((link, "passed") for link in LINKS), ("destroy", "proven")]
    assert "destroy: proven" in passes(fleet, "evidence", box.run)


def typed_down(fleet: DemoFleet, run: str) -> str:
    """`rgt down` with somebody at the keyboard who types the phrase; what it printed."""
    words = [sys.executable, "-m", "tui.cli", "down", run]
    person = Person(words, environment={**os.environ, **fleet.environment})
    try:
        person.sees(b"\n> ")
        asked = re.search(rb"destroy done-a10 [0-9a-f]{8}", person.screen)
        assert asked is not None, person.screen
        person.types(asked[0] + b"\r")
        code, out = person.ends(60)
        assert code == 0, out
        return out
    finally:
        person.close()


def test_a_flipped_bit_is_refused_in_the_copy_and_in_what_was_read_back(
    fleet: DemoFleet, tmp_path: Path
) -> None:
    box = sealed(fleet, "spiral-second")
    decide(fleet, box.run)
    passes(fleet, "digest", box.run)
    passes(fleet, "pull", box.run, "--to", str(fleet.worn_disk))
    assert "different: best.pt" in refused(fleet, "readback", box.run)
    assert "does not pass" in refused(fleet, "verify", box.run)
    assert "not proven safe" in refused(fleet, "down", box.run)

    passes(fleet, "pull", box.run, "--to", str(tmp_path / "vault"))
    passes(fleet, "readback", box.run)
    records = fleet.home / "state" / "custody" / box.run
    newest = max(records.glob("readback-report-*.json"))
    turn_a_bit(Path(json.loads(newest.read_bytes())["consumer"]["path"]) / "best.pt")
    assert "readback-changed" in refused(fleet, "verify", box.run)
    assert (Path(box.out) / "metrics.json").exists()


def test_nothing_stops_the_operators_own_computer(fleet: DemoFleet) -> None:
    assert "runs on this computer" in refused(fleet, "stop", "steady-a100", "--anyway", "it is this computer")

"""The chain of custody in a shell, on the demo's finished run: from its roster to its verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tui.demo.fleet import DemoFleet, embedded_fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def rgt(fleet: DemoFleet, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tui.cli", *words],
        env={**os.environ, **fleet.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def wait_until_sealed(out: Path) -> None:
    end = time.monotonic() + 60
    while not (out / "metrics.json").exists():
        assert time.monotonic() < end, "the demo's run was never sealed"
        time.sleep(0.2)


def test_from_roster_to_verdict_and_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    with embedded_fleet(speed=4) as fleet:
        box = next(b for b in fleet.boxes if b.run == "spiral-done")
        wait_until_sealed(Path(box.out))
        assert "predictions" in rgt(fleet, "roster", "spiral-done").stdout
        for step in (["digest"], ["pull", "--to", str(tmp_path / "vault")], ["readback"]):
            done = rgt(fleet, step[0], "spiral-done", *step[1:])
            assert done.returncode == 0, done.stderr

        verdict = rgt(fleet, "verify", "spiral-done", "--json")
        assert verdict.returncode == 0, verdict.stdout
        told = json.loads(verdict.stdout)
        assert {c["verdict"] for c in told["load"]["checkpoints"]} == {"ok"}
        assert {m["name"]: m["verdict"] for m in told["metrics"]["metrics"]} == {
            "accuracy": "recomputed",
            "nll": "recomputed",
        }

        (restored,) = (fleet.home / "state" / "custody" / "spiral-done" / "readback").glob("*/data")
        victim = next(restored.glob("ckpt-*"))
        raw = bytearray(victim.read_bytes())
        raw[len(raw) // 2] ^= 1
        victim.chmod(0o600)
        victim.write_bytes(raw)
        refused = rgt(fleet, "verify", "spiral-done")
        assert refused.returncode == 1
        assert "readback-changed" in refused.stdout

        stopped = rgt(fleet, "stop", "steady-a100", "--anyway", "the demo is this computer")
        assert stopped.returncode == 1
        assert "runs on this computer" in stopped.stdout

        nothing_destroyed = rgt(fleet, "down", box.name)
        assert nothing_destroyed.returncode == 1
        assert Path(box.out, "metrics.json").exists()

"""Starts and ends the embedded fleet from the operator's side."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tui.demo.boxes import PROVIDER, ROOM
from tui.demo.job_file import write_job
from tui.demo.worn_disk import NAME
from tui.model.failure import Failure

START_S = 60.0


@dataclass(frozen=True, slots=True)
class DemoBox:
    """What the demo says of one of its boxes."""

    name: str
    port: int
    run: str
    out: str


@dataclass(frozen=True, slots=True)
class DemoFleet:
    """A running embedded fleet. `home` is its RGT_HOME, `key` the one key its boxes admit."""

    home: Path
    key: Path
    boxes: tuple[DemoBox, ...]

    @property
    def worn_disk(self) -> Path:
        """A disk that does not keep what is copied to it."""
        return self.home / NAME

    @property
    def environment(self) -> Mapping[str, str]:
        """What an `rgt` needs to see this fleet and nothing of the operator's own set-up."""
        return {"RGT_HOME": str(self.home), "RGT_SSH_CONFIG": os.devnull, "SSH_AUTH_SOCK": ""}


@contextlib.contextmanager
def embedded_fleet(
    *, seed: int = 0, speed: float = 1.0, incidents: Sequence[str] = (), alone: bool = False
) -> Iterator[DemoFleet]:
    """The embedded fleet for the length of a ``with`` block; nothing of it is left afterwards.

    Args:
        seed: of data, models and cuts.
        speed: 2 trains and fails twice as fast.
        incidents: names of `tui.demo.boxes.INCIDENTS`; each adds a box on which it happens.
        alone: leave the other boxes out.

    Raises:
        Failure: the fleet did not come up.
    """
    root = Path(tempfile.mkdtemp(prefix="rgt-demo-"))
    command = [sys.executable, "-m", "tui.demo.host", str(root), "--seed", str(seed), "--speed", str(speed)]
    command += [word for name in incidents for word in ("--incident", name)] + ["--alone"] * alone
    errors = (root / "host.log").open("wb")
    host = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
    )
    try:
        fleet = _write_home(root, _first_line(host, root))
        write_job(fleet.home / "config", speed)
        yield fleet
    finally:
        assert host.stdin is not None
        host.stdin.close()
        try:
            left = host.wait(timeout=15) != 0
        except subprocess.TimeoutExpired:
            host.kill()
            left = True
        if left:  # it did not get to clean up after itself
            from tui.demo.host import end_marked

            end_marked(root)
        errors.close()
        shutil.rmtree(root, ignore_errors=True)


def _first_line(host: subprocess.Popen[bytes], root: Path) -> list[dict[str, Any]]:
    import select

    assert host.stdout is not None
    ready, _, _ = select.select([host.stdout], [], [], START_S)
    line = host.stdout.readline() if ready else b""
    if not line:
        log = (root / "host.log").read_text(errors="replace").strip().splitlines()
        raise Failure(
            "The demo's boxes did not start.",
            means=log[-1] if log else f"They said nothing for {START_S:.0f} s.",
            do="Run `rgt doctor`, and try again with a larger disk or less load.",
        )
    described: list[dict[str, Any]] = json.loads(line)
    return described


def _write_home(root: Path, described: list[dict[str, Any]]) -> DemoFleet:
    """Write the fleet file the way `rgt add` and `rgt watch` would have."""
    import tomlkit

    home = root / "home"
    (home / "config" / "profiles").mkdir(parents=True)
    shutil.copy(ROOM / "profile.md", home / "config" / "profiles" / f"{PROVIDER}.md")
    key = root / "key"
    document = tomlkit.document()
    document.add(tomlkit.comment("The embedded fleet of `rgt demo`; it goes when the demo ends."))
    instances, runs = tomlkit.table(True), tomlkit.table(True)
    for box in described:
        rented = datetime.fromtimestamp(box["rented_at"], UTC).replace(microsecond=0)
        instances[box["name"]] = {
            "platform": box["platform"],
            "host": "127.0.0.1",
            "port": box["port"],
            "user": "demo",
            "key": str(key),
            "host_key": box["host_key"],
            "mounts": [box["data"]],
            "data_dir": box["data"],
            "price_per_hour": box["price"],
            "currency": box["currency"],
            "rented_at": rented,
            "simulated": box["simulated"],
            **{key: box[key] for key in ("instance_id", "account") if box[key] is not None},
        }
        runs[box["run"]] = {
            "box": box["name"],
            "log": f"{box['out']}/train.log",
            "checkpoints": f"{box['out']}/ckpt-*",
            "pid": box["pid"],
        }
    document["instances"] = instances
    document["runs"] = runs
    (home / "config" / "fleet.toml").write_text(tomlkit.dumps(document))
    boxes = tuple(DemoBox(b["name"], b["port"], b["run"], b["out"]) for b in described)
    return DemoFleet(home, key, boxes)

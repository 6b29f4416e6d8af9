"""The job that comes with the demo, ready to be launched on one of its boxes."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tui.demo.boxes import ROOM

NAME = "spiral"

_TEXT = """\
# A job of your own for the demo's boxes: L launches it, and so does rgt launch.
# Cards are simulated here, so that torch would not find one: the job asks for none.
name = "{name}"
project = "demo"
run = [{python}, "-u", "train.py", "--epochs", "100", "--pause", "{pause:g}"]
smoke = [{python}, "-u", "train.py", "--epochs", "1", "--pause", "0"]
finish = "metrics.json"
checkpoints = "ckpt-*"

[resources]
disk = "50 MB"
inodes = 100
"""


def write_job(config: Path, speed: float) -> Path:
    """Put the job file and its code among the operator's own jobs.

    Args:
        config: the folder of ``fleet.toml``.
        speed: 2 trains twice as fast.
    """
    folder = config / "jobs" / NAME
    folder.mkdir(parents=True)
    shutil.copy(ROOM / "trainer.py", folder / "train.py")
    file = folder / "job.toml"
    python = json.dumps(sys.executable)  # of rgt's own, which has what the training needs
    file.write_text(_TEXT.format(name=NAME, python=python, pause=0.25 / speed))
    return file

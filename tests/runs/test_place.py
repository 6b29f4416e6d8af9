"""The place of a run as the preflight sees it: free, cut off on the way, a run's, or somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.box.local import LocalTransport
from tui.fleet import profiles
from tui.fleet.paths import shipped
from tui.model.instance import Instance
from tui.model.job import Job
from tui.runs.detach import lay_down
from tui.runs.errand import errand
from tui.runs.plan_files import Where, plan_files
from tui.runs.preflight import ask_box

FILES = plan_files(Job.model_validate({"name": "r", "project": "p", "run": ["true"]}), Where("/r"))


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        ([], None),
        ([".in123/.rgt/plan/"], None),  # the box or the link died while it was laid down
        ([".in123/", ".in77/"], None),
        (["results.txt"], "other"),
        ([".index"], "other"),
        ([".rgt/plan/id"], "plan"),
    ],
)
async def test_what_lies_at_the_place_of_a_run(tmp_path: Path, there: list[str], taken: str | None) -> None:
    run = tmp_path / "p" / "active" / "r-1"
    run.mkdir(parents=True)
    for name in there:
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(parents=True, exist_ok=True) if name.endswith("/") else path.write_text("x")
    assert (await ask_box(LocalTransport(), str(run), ())).taken == taken
    if taken is None:
        assert await lay_down(LocalTransport(), str(run), FILES)
        assert (run / ".rgt" / "plan" / "id").read_bytes() == FILES[".rgt/plan/id"]


@pytest.mark.parametrize(
    ("data_dir", "folder", "base"),
    [
        (None, None, "/root/autodl-tmp"),
        ("/mnt/nvme", None, "/mnt/nvme"),
        ("/mnt/nvme", "/elsewhere", "/elsewhere"),
    ],
)
def test_a_box_may_have_a_data_disk_of_its_own(
    tmp_path: Path, data_dir: str | None, folder: str | None, base: str
) -> None:
    (tmp_path / "job.toml").write_text(
        'name = "r"\nproject = "p"\nrun = ["cat", "{data}/set"]\ninputs = [{ path = "{data}/set" }]\n'
    )
    facts = profiles.load(shipped("profiles"), tmp_path).by_id["autodl"].facts
    box = Instance("b", "autodl", None, data_dir=data_dir)
    task = errand(tmp_path / "job.toml", box, facts, name="r-1", folder=folder)
    assert task.run == f"{base}/p/active/r-1"
    assert task.inputs() == (f"{data_dir or base}/set",)

"""The place of a run as the preflight sees it: free, cut off on the way, a run's, or somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.box.local import LocalTransport
from tui.model.job import Job
from tui.runs.detach import lay_down
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

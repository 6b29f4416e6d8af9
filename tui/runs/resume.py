"""Goes on with a launched run: the identical plan that lies on its box is started again, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from tui.box.transport import Script
from tui.model.failure import Failure
from tui.model.text import SafeText, safe
from tui.runs.book import Page
from tui.runs.detach import How
from tui.runs.launch import Answer, Dial, Launch, launch
from tui.runs.plan_files import PLAN
from tui.runs.truth import look

_HOW: dict[str, How] = {"slurm": "sbatch", "kubernetes": "job"}


async def resume(
    dial: Dial, page: Page, *, told: Callable[[SafeText], None] = lambda _line: None, answer_s: float = 60.0
) -> Answer:
    """Start a run again where it stopped; one that is alive or finished is left alone.

    A newer rgt brings its newer wrapper beside the old one; the plan stays as it was laid down.

    Raises:
        Failure: its folder is not there, or holds another plan; nothing was started.
    """
    box = await dial()
    done = await box.run(Script('cat -- "$1/.rgt/plan/id"', (page.folder,), why="is the plan there?"))
    there = done.stdout.decode("ascii", "replace").strip()
    if done.exit != 0 or there != page.plan:
        raise Failure(
            f"{safe(page.folder, 200)} does not hold the plan of {page.run}.",
            means="Nothing was started.",
            do="The box may have been reset: launch the job again, with its checkpoints in place.",
            code="plan-gone",
        )
    seen = await look(box, page.folder)
    if seen.state == "placed" and not page.cell:  # a queue lays its cells down whole
        raise Failure(
            f"{page.run} was laid down and never started; its code or checkpoints may not be there.",
            means="Nothing was started.",
            do=f"Launch it again, or rgt relaunch {page.run} --on {page.box}, which bring what is missing.",
            code="never-started",
        )
    what = Launch(
        page.folder, {f"{PLAN}/id": f"{page.plan}\n".encode()}, page.job.log, page.session,
        _HOW.get(page.platform) or ("tmux" if page.session else "nohup"),
    )  # fmt: skip
    return await launch(dial, what, told=told, answer_s=answer_s)

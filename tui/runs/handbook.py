"""The handbook page of a run: what somebody needs who knows nothing of it, with another rgt or none."""

from __future__ import annotations

import shlex

from tui.fleet.leash_notes import date
from tui.model.text import safe
from tui.runs import kube_job
from tui.runs.book import Page
from tui.runs.plan_files import PLAN, RGT
from tui.runs.scheduler import WORDS, job_name


def handbook(page: Page, reach: str, stops_at: float | None = None) -> list[tuple[str, str]]:
    """What somebody needs who knows nothing of a run, as titles and lines, safe to show.

    Args:
        reach: the command that gives a shell on the box.
        stops_at: when the box's leash stops it, as it was armed from here, in seconds since the epoch.
    """
    log = shlex.quote(f"{page.folder}/{page.job.log}")
    chain = " → ".join(stage.name for stage in page.job.chain())
    proofs = ", ".join(stage.artifact or "exit 0" for stage in page.job.chain())
    named = page.job.checkpoints
    checkpoints = f"{page.folder}/{named}" if named else "the job file names none: it begins at step 0"
    leash = (
        []
        if stops_at is None
        else [("leash", safe(f"stops itself {date(stops_at)}: rgt leash {page.box}", 200))]
    )
    return [
        ("first", safe(f"rgt status {shlex.quote(page.box)}", 200)),
        ("reach", safe(reach, 400)),
        ("look", safe(f"tail -n 50 {log}", 400)),
        ("session", safe(_session(page), 300)),
        ("goes on", safe(f"rgt resume {page.run}", 200)),
        ("box gone", safe(f"rgt relaunch {page.run} --rent --pulled", 200)),
        ("by hand", safe(_by_hand(page), 600)),
        ("chain", safe(chain, 400)),
        ("done when", safe(proofs, 400)),
        ("markers", safe(f"{page.folder}/{RGT}/done, {page.folder}/{RGT}/attempts/N/end", 400)),
        ("checkpoints", safe(checkpoints, 400)),
        ("cadence", safe(f"rgt cadence {shlex.quote(page.run)}", 200)),
        *leash,
        ("made of", safe(f"code {page.code[:12]}, commit {(page.commit or 'none')[:12]}, {page.file}", 400)),
    ]


def _session(page: Page) -> str:
    """Where it can be looked at, besides its log."""
    if page.platform == "slurm":
        return f"squeue -n {job_name(page.session, page.folder)}"
    if page.platform == "kubernetes":
        return f"kubectl get job {kube_job.name_of(page.session, page.folder)}"
    return f"tmux attach -t {page.session}" if page.session else "(no tmux session)"


def _by_hand(page: Page) -> str:
    """Starts it without rgt, on its box: the wrapper that the plan itself names, as it was laid down."""
    folder = shlex.quote(page.folder)
    if page.platform == "kubernetes":
        return f"by rgt alone: the Job is made from {page.folder}/{kube_job.WANTED} and from its desk's pod"
    if page.platform == "slurm":
        job = shlex.quote(job_name(page.session, page.folder))
        return (
            f"cd {folder} && sbatch --job-name={job} --chdir={folder} --open-mode=append $(cat {WORDS}) "
            f"$(ls {RGT}/batch-*.sh | head -n 1) {folder}"
        )
    wrapper = f'"$(cat {PLAN}/wrapper)"'
    return f"cd {folder} && nohup setsid sh {wrapper} {folder} </dev/null >>{RGT}/wrapper.out 2>&1 &"

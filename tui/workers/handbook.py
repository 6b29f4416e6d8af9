"""The handbook page of a run: what the book of launches holds of it, else what is known from watching it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tui.fleet import settings
from tui.fleet.leash_notes import noted
from tui.fleet.paths import Paths
from tui.model.failure import Failure
from tui.model.handbook import HandbookView
from tui.model.run import RunSpec
from tui.model.text import SafeText, safe
from tui.runs.book import Page, book
from tui.runs.handbook import handbook


def handbook_of(run: str, where: Paths) -> HandbookView:
    """Everything that is known here of a run. Raises Failure: nothing is."""
    loaded = settings.load(where.fleet_file)
    spec = next((one for one in loaded.runs if one.name == run), None)
    try:
        page = book(where).page(run)
    except Failure as failure:
        if spec is None:
            raise
        return HandbookView(run, False, tuple(_watched(spec)), _not_launched(failure))
    box = next((one for one in loaded.instances if one.name == page.box), None)
    told = handbook(page, reach(page.box), noted(where).get(page.box))
    lines = tuple((safe(title, 20), safe(line, 600)) for title, line in told)
    return HandbookView(run, True, lines, _moved(page, box.instance_id if box else None, gone=box is None))


def reach(box: str) -> str:
    """The command that gives a shell on a box."""
    return f"rgt ssh {shlex.quote(box)}"


def _not_launched(failure: Failure) -> SafeText:
    if failure.code == "unknown-run":
        return SafeText(
            "rgt did not launch this run from here, so what starts it again is not known. "
            "This is what is known from watching it."
        )
    return safe(f"{failure.line} This is what is known from watching it.", 400)


def _moved(page: Page, now: str | None, *, gone: bool) -> SafeText:
    if gone:
        return safe(f"{page.box} is no longer in the fleet file; the lines tell where the run was.", 300)
    if page.instance_id and now and page.instance_id != now:
        return safe(
            f"{page.box} is another machine now ({now}); the run was launched on {page.instance_id}.", 300
        )
    return SafeText("")


def _session(session: str) -> str:
    kind, _, job = session.partition(":")
    by = {"slurm": "squeue -j", "job": "kubectl get job"}.get(kind) if job else None
    return f"{by} {shlex.quote(job)}" if by else f"tmux attach -t {shlex.quote(session)}"


def _watched(spec: RunSpec) -> Iterator[tuple[SafeText, SafeText]]:
    """What the fleet file says of a run that somebody else started."""
    told = [("first", f"rgt status {shlex.quote(spec.box)}"), ("reach", reach(spec.box))]
    if spec.log:
        told.append(("look", f"tail -n 50 {shlex.quote(spec.log)}"))
    told.append(("session", _session(spec.session) if spec.session else "(none is known)"))
    if spec.pid is not None:
        told.append(("process", f"ps -o pid,lstart,stat,args -p {spec.pid}"))
    told.append(("checkpoints", spec.checkpoints or "(none are known)"))
    return ((safe(title, 20), safe(line, 600)) for title, line in told)

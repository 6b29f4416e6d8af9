"""The machine a relaunch rents: of the run's own platform, on the terms of the old one, and only one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.runs.book import Page
    from tui.runs.errand import Errand
    from tui.verbs.renting import Want


def provisional(page: Page) -> Instance:
    """Stands for the machine that is not there yet, so that the job can be worked out before any money."""
    return Instance("the new machine", page.platform, None)


def rented_before(page: Page, where: Paths, *, unbegun: bool) -> Instance | None:
    """The box that was rented for this run by a relaunch that was cut off; None: there is none.

    Args:
        unbegun: the run's page names a box that answers and knows no attempt of it.
    """
    from tui.fleet import settings
    from tui.runs.book import book

    name = book(where).rented(page.run)
    if name is None or (name == page.box and not unbegun):
        return None
    return next((one for one in settings.load(where.fleet_file).instances if one.name == name), None)


def want_of(args: argparse.Namespace, page: Page, where: Paths) -> Want:
    """What to rent: where and as the old machine was, as far as that is known. Raises Failure."""
    from tui.fleet import settings
    from tui.platforms.sent import Terms, terms_of
    from tui.verbs.renting import Want, pairs, with_words

    boxes = settings.load(where.fleet_file).instances
    old = next((one for one in boxes if one.name == page.box), None)
    more = pairs(args.set)
    return Want(
        platform=page.platform,
        stem=page.run,
        resources=page.job.resources,
        terms=with_words(terms_of(where, page.platform, page.instance_id) or Terms(), more),
        run=page.run,
        account=old.asked_as if old else None,
        key=old.endpoint.key if old and old.endpoint else None,
        offer=args.offer,
        region=more.get("region"),
    )


def after_it(task: Errand, base: Path) -> Iterator[tuple[str, str]]:
    """What the plan does once the machine is there. Raises Failure: an input can't get there."""
    from tui.runs.stage import steps_on_fresh

    shared = [path for tier in task.shared for path in tier.paths]
    for step in steps_on_fresh(task.job.inputs, task.inputs(), base):
        if step.source == "nowhere" and not any(step.path.startswith(path) for path in shared):
            raise Failure(
                f"{safe(step.path, 200)} must be there; the job names neither a mirror nor a file here.",
                means="A new machine would not have it; nothing was rented.",
                do="Add mirror or here to that input of the job, or prepare a box and give it with --on.",
                code="input-nowhere",
            )
        yield "then", f"bring {step.line}"
    yield "then", "look at it as before any launch; what stops there leaves it rented, and starts nothing"
    yield "then", "bring code and checkpoints, prove them by SHA-256, and start the run"

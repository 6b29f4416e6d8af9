"""What is said of a full file system and of a plan to make room on it. Pure, and without a terminal."""

from __future__ import annotations

from tui.model.reclaim import ReclaimPlan, ReclaimView
from tui.model.storage import Ladder
from tui.widgets.figures import size

LEVELS = {
    2: "L2: everything in it comes back by itself or is fetched again; until then it is missing",
    3: 'L3: what is marked "for ever" never comes back',
}


def amount(count: int | None, made: Ladder | ReclaimPlan) -> str:
    """An amount of the resource that runs out."""
    if count is None:
        return "not counted"
    return f"{count:,} files" if made.resource == "inodes" else size(count)


def conclusion(made: Ladder | ReclaimPlan) -> str:
    """What can be reached, in a sentence; never by making the experiment smaller."""
    if made.to_free is None:
        return "How much must be freed is not known: the file system does not tell its limit."
    if made.to_free == 0:
        told = f"Below {made.target_pct:.0f} %: nothing needs to be freed now."
    elif made.shortfall == 0:
        told = f"{amount(made.to_free, made)} to free for {made.target_pct:.0f} %; the list is enough."
    else:
        told = (
            f"{amount(made.to_free, made)} to free for {made.target_pct:.0f} %; the list frees "
            f"{amount(made.frees, made)}: {amount(made.shortfall, made)} short. Enlarge it by that much "
            "at least, or move results to a durable copy first: rgt pull RUN --to DEST."
        )
    if made.expand_by:
        told += f" For the rest of the run it would have to grow by {amount(made.expand_by, made)}."
    return told


def computed(plan: ReclaimPlan) -> str:
    """Where a plan leaves the mount, worked out from the survey."""
    now, after = plan.pct_now, plan.pct_after
    if now is None or after is None:
        return f"what share of the {plan.resource} that leaves is not known"
    figures = f"{plan.resource}: {now:.1f} % used now, {after:.1f} % after"
    return f"{figures}: computed; what comes free is read afterwards"


def observed(view: ReclaimView) -> str:
    """What was read before and after, and where that is on record."""
    bytes_, inodes = view.gained
    parts = []
    if bytes_ is not None:
        parts.append(f"{'-' if bytes_ < 0 else ''}{size(abs(bytes_))}")
    if inodes is not None:
        parts.append(f"{inodes:,} inodes")
    told = f"{' and '.join(parts)} came free" if parts else "nothing; it could not be read"
    before = view.before.pct(view.plan.resource) if view.before is not None else None
    after = view.after.pct(view.plan.resource) if view.after is not None else None
    if before is not None and after is not None:
        told += f"; {view.plan.resource} {before:.1f} % used before, {after:.1f} % now"
    return f"observed: {told}" + (f"; receipt {view.receipt:06d}" if view.receipt is not None else "")

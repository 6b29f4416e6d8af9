"""The plan alone: which entries, what they add up to, how serious it is, and what the phrase is bound to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui.model.failure import Failure
from tui.model.reclaim import ReclaimView, Removal, Room, plan_of
from tui.model.storage import Ladder, Reclaimable
from tui.model.text import SafeText, safe

GB = 10**9


def place(name: str, size: int, files: int, *, returns: bool = True) -> Reclaimable:
    kind = SafeText("pip cache" if returns else "trash")
    return Reclaimable(
        safe(f"/data/{name}"), kind, SafeText("why"), "1:2:3", SafeText("x"), size, files, returns
    )


PIP, HUB, TRASH = place("pip", 4 * GB, 100), place("hub", 6 * GB, 50), place("t", GB, 900, returns=False)
LADDER = Ladder(
    "box-1", SafeText("/data"), SafeText("/dev/x"), SafeText("ext4"), "bytes", 96 * GB, 100 * GB, 50.0,
    reclaim=(HUB, PIP, TRASH), to_free=11 * GB, frees=11 * GB, shortfall=0, expand_by=2 * GB,
)  # fmt: skip


def test_by_default_all_that_comes_back_and_nothing_else() -> None:
    plan = plan_of(LADDER)
    assert plan.entries == (HUB, PIP)
    assert (plan.level, plan.bytes, plan.files, plan.frees) == (2, 10 * GB, 150, 10 * GB)
    assert (plan.pct_now, plan.pct_after) == (96.0, 86.0)
    assert plan.shortfall == GB  # to the byte, for exactly this list
    assert plan.expand_by == 2 * GB + round(GB * 100 / 85)


def test_what_is_gone_for_ever_is_named_and_makes_it_level_3() -> None:
    plan = plan_of(LADDER, {"/data/t", "/data/pip"})
    assert plan.entries == (PIP, TRASH)
    assert plan.level == 3
    assert plan.phrase == f"reclaim box-1 for ever {plan.digest[:8]}"
    assert plan_of(LADDER, {"/data/pip"}).phrase.startswith("reclaim box-1 ")
    assert "for ever" not in plan_of(LADDER, {"/data/pip"}).phrase


def test_files_are_what_counts_where_inodes_run_out() -> None:
    plan = plan_of(replace(LADDER, resource="inodes", used=990, limit=1000, to_free=140))
    assert (plan.frees, plan.pct_now, plan.pct_after, plan.shortfall) == (150, 99.0, 84.0, 0)


def test_an_unknown_limit_stays_unknown() -> None:
    plan = plan_of(replace(LADDER, used=None, to_free=None, expand_by=None))
    assert (plan.pct_now, plan.pct_after, plan.shortfall, plan.expand_by) == (None, None, None, None)
    enough = plan_of(replace(LADDER, expand_by=0), {"/data/pip"})
    assert enough.expand_by is None  # the ladder was enough with its whole list; by how much is not told
    assert plan_of(replace(LADDER, expand_by=0), {"/data/pip", "/data/hub", "/data/t"}).expand_by == 0


@pytest.mark.parametrize("path", ["/data", "/data/ckpt", "/data/pip/", "/etc", "/data/pip\n"])
def test_only_what_the_survey_proved_can_be_in_a_plan(path: str) -> None:
    with pytest.raises(Failure, match="not in the allow-list"):
        plan_of(LADDER, {"/data/pip", path})


def test_nothing_is_no_plan() -> None:
    with pytest.raises(Failure, match="is proven to come back"):
        plan_of(replace(LADDER, reclaim=()))
    with pytest.raises(Failure, match="1 can go for ever, and only by name"):
        plan_of(replace(LADDER, reclaim=(TRASH,)))


@pytest.mark.parametrize(
    "other",
    [
        replace(LADDER, box="box-2"),
        replace(LADDER, mount=SafeText("/")),
        replace(LADDER, reclaim=(HUB, replace(PIP, identity="1:2:4"))),
        replace(LADDER, reclaim=(HUB, replace(PIP, bytes=1))),
        replace(LADDER, reclaim=(HUB, replace(PIP, path=safe("/data/pip2")))),
        replace(LADDER, reclaim=(HUB,)),
        replace(LADDER, reclaim=(PIP, HUB)),
    ],
)
def test_the_phrase_is_that_of_exactly_this_list(other: Ladder) -> None:
    assert plan_of(LADDER).digest == plan_of(replace(LADDER, at=99.0)).digest
    assert plan_of(other).phrase != plan_of(LADDER).phrase


def test_what_came_free_is_observed_and_may_be_less_than_nothing() -> None:
    view = ReclaimView(plan_of(LADDER), (Removal(PIP.path, "removed"), Removal(HUB.path, "skipped")))
    assert view.gained == (None, None)
    before, after = Room(100, 200, 10, 20), Room(110, 200, 8, None)
    view = replace(view, before=before, after=after)
    assert view.gained == (-10, 2)
    assert (before.pct("bytes"), after.pct("inodes"), before.pct("quota")) == (50.0, None, None)
    assert (view.count("removed"), view.count("failed")) == (1, 0)


def test_a_sum_with_an_unknown_part_is_unknown_and_not_smaller() -> None:
    plan = plan_of(replace(LADDER, reclaim=(HUB, replace(PIP, bytes=None))))
    assert (plan.bytes, plan.frees, plan.pct_after, plan.shortfall) == (None, None, None, None)
    assert plan.files == 150
    left = plan_of(replace(LADDER, reclaim=(HUB, replace(PIP, bytes=None))), {"/data/hub"})
    assert (left.bytes, left.expand_by) == (6 * GB, None)

"""A vendor's rate limit is kept by everybody in the process together."""

from __future__ import annotations

import asyncio

import pytest

from tui.platforms.limit import Spacing, shared
from tui.platforms.vendors import WAYS


class Clock:
    """Sleeping moves it, and nothing else does."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.now = max(self.now, self.now + seconds)


async def turns(every_s: dict[str, float], *kinds: str) -> list[float]:
    clock = Clock()
    spacing = Spacing(every_s, clock, clock.sleep)
    at = []
    for kind in kinds:
        await spacing.turn(kind)
        at.append(clock.now - 100)
    return at


async def test_calls_of_a_kind_keep_their_distance_and_others_do_not_wait_for_them() -> None:
    assert await turns({"*": 1.0, "launch": 12.0}, "a", "b", "launch", "c", "launch") == [0, 1, 1, 2, 13]


async def test_callers_at_once_get_turns_one_after_another() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    spacing = Spacing({"*": 1.0}, lambda: 100.0, sleep)
    await asyncio.gather(*[spacing.turn("x") for _ in range(4)])
    assert sorted(waits) == [1, 2, 3]


async def test_a_vendor_that_wants_to_be_left_alone_is_left_alone_by_all() -> None:
    clock = Clock()
    spacing = Spacing({"*": 0.5, "list": 0.0}, clock, clock.sleep)
    spacing.rest(7.0)
    await spacing.turn("list")
    assert clock.now == 107


def test_an_account_has_one_spacing_in_the_whole_process() -> None:
    assert shared("x", "a", {"*": 1.0}) is shared("x", "a", {"*": 1.0})
    assert shared("x", "a", {"*": 1.0}) is not shared("x", "b", {"*": 1.0})
    for number in range(200):
        shared("many", str(number), {"*": 1.0})  # bounded: the oldest are forgotten


@pytest.mark.parametrize(
    ("platform", "kind", "least"),
    [("lambda", "*", 1.0), ("lambda", "launch", 12.0), ("vastai", "destroy", 3.0), ("vastai", "one", 2.0),
     ("vastai", "list", 1.0), ("runpod", "*", 1.0)],
)  # fmt: skip
def test_the_limits_that_vendors_document_are_kept(platform: str, kind: str, least: float) -> None:
    assert WAYS[platform].vendor.every_s[kind] >= least

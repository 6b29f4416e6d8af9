"""Pauses between attempts, and waking up."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from tui.box.backoff import Backoff
from tui.box.errors import refused, unreachable
from tui.box.wake import SleepDetector, watch


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_pauses_double_up_to_a_minute() -> None:
    backoff = Backoff(draw=lambda: 1.0)
    assert [backoff.failed() for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    for _ in range(5000):
        assert backoff.failed() == 60
    backoff.reset()
    assert backoff.failed() == 1


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True))
def test_jitter_is_full_and_bounded(failures: int, drawn: float) -> None:
    backoff = Backoff(draw=lambda: drawn)
    pause = [backoff.failed() for _ in range(failures)][-1]
    assert pause is not None
    assert 0 <= pause == drawn * min(60, 2.0 ** (failures - 1))


def test_what_only_the_operator_can_change_is_not_retried() -> None:
    backoff = Backoff()
    assert backoff.failed(refused("no")) is None
    assert backoff.failed(unreachable("gone")) is not None


def test_only_a_healthy_connection_clears_the_failures() -> None:
    clock = Clock()
    backoff = Backoff(draw=lambda: 1.0, clock=clock)
    for _ in range(4):
        backoff.failed()
    backoff.connected()
    clock.now += 59  # let in and dropped again, over and over
    assert backoff.failed() == 16
    backoff.connected()
    clock.now += 60
    assert backoff.failed() == 1


def test_a_hundred_boxes_lost_at_once_do_not_return_at_once() -> None:
    """A provider's network goes away for ten minutes: attempts in any second stay few, and end in minutes."""
    drawn = random.Random(7)
    attempts: list[float] = []
    for _ in range(100):
        backoff, at = Backoff(draw=drawn.random), 0.0
        while at < 600:
            pause = backoff.failed(unreachable("down"))
            assert pause is not None
            at += pause
            attempts.append(at)
    per_second = [sum(second <= at < second + 1 for at in attempts) for second in range(600)]
    assert sum(per_second[60:]) / 540 < 5  # 100 boxes, 30 s on average
    assert max(per_second[10:]) <= 25
    assert max(per_second) < 150  # the first second, in which the connector still lets only 8 through at once


def test_sleep_is_the_wall_clock_running_ahead() -> None:
    wall, monotonic = Clock(), Clock()
    detector = SleepDetector(wall=wall, monotonic=monotonic)
    wall.now += 30
    monotonic.now += 30
    assert detector.slept() is None
    wall.now += 3600
    monotonic.now += 1
    assert detector.slept() == 3599
    assert detector.slept() is None
    wall.now -= 100  # the clock was set back
    assert detector.slept() is None


async def test_the_watch_tells_once_and_ends_when_cancelled() -> None:
    wall, monotonic = Clock(), Clock()
    told: list[float] = []

    async def on_wake(seconds: float) -> None:
        told.append(seconds)

    watching = asyncio.ensure_future(watch(on_wake, SleepDetector(wall=wall, monotonic=monotonic), 0.01))
    await asyncio.sleep(0.05)
    wall.now += 100
    await asyncio.sleep(0.05)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert told == [100]

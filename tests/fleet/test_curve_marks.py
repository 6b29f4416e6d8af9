"""NaN, spike and plateau are told apart from noise and from progress."""

from __future__ import annotations

import math
import random

import pytest

from tui.fleet.curve_marks import PLATEAU, marks_of


def falling(count: int, noise: float = 0.03) -> list[float]:
    rng = random.Random(1)
    return [3.0 * math.exp(-i / 40) + 0.2 + rng.uniform(-noise, noise) for i in range(count)]


def test_a_healthy_curve_has_no_marks() -> None:
    assert marks_of(falling(100)).broken == ()
    assert marks_of(falling(100)).spikes == ()
    assert marks_of(falling(100)).level_for == 0


def test_what_is_no_number_is_marked_where_it_is() -> None:
    losses = [*falling(30), math.nan, math.inf]
    assert marks_of(losses).broken == (30, 31)
    assert marks_of(losses).level_for == 0


def test_one_jump_is_a_spike_and_noise_is_none() -> None:
    losses = falling(60)
    losses[40] = 9.0
    assert marks_of(losses).spikes == (40,)
    assert marks_of(falling(60, noise=0.15)).spikes == ()


def test_too_few_losses_say_nothing() -> None:
    assert marks_of([1.0, 1.0, 50.0]).spikes == ()
    assert marks_of([1.0] * (PLATEAU - 1)).level_for == 0


@pytest.mark.parametrize("count", [PLATEAU, 80, 120])
def test_a_level_end_is_a_plateau_with_its_length(count: int) -> None:
    rng = random.Random(2)
    losses = [*falling(120 - count), *(0.5 + rng.uniform(-0.004, 0.004) for _ in range(count))]
    level = marks_of(losses).level_for
    assert PLATEAU <= level <= count


def test_a_loss_of_zero_is_level_and_divides_nothing() -> None:
    assert marks_of([0.0] * 60).level_for >= PLATEAU
    assert marks_of([]).level_for == 0

"""Figures of predicted and true numbers, each with how far the stored digits leave it open."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tui.custody.scoring.array_collectors import Errors, Pairs
from tui.custody.scoring.collecting import Params
from tui.custody.scoring.figures import Figure, Undecided
from tui.custody.scoring.formulas import mean


def mae(collector: Errors, params: Params) -> Figure:
    value = math.fsum(collector.absolute.tolist()) / collector.values
    return Figure(value, max(0.0, value - collector.half), value + collector.half, note=collector.tally.note)


def mse(collector: Errors, params: Params) -> Figure:
    value = math.fsum(collector.squared.tolist()) / collector.values
    slack = 2 * collector.half * math.fsum(collector.absolute.tolist()) / collector.values + collector.half**2
    return Figure(value, max(0.0, value - slack), value + slack, note=collector.tally.note)


def rmse(collector: Errors, params: Params) -> Figure:
    found = mse(collector, params)
    return Figure(
        math.sqrt(found.value), math.sqrt(found.low or 0), math.sqrt(found.high or 0), note=found.note
    )


def r2(collector: Pairs, params: Params) -> Figure:
    true, error = collector.true, collector.guess - collector.true
    if collector.tally.note:
        return Figure(math.nan, note=collector.tally.note)
    if _equal(true):
        raise Undecided("no-ground-truth", "it is not defined: all targets are equal")
    off = np.abs(true - mean(true))
    around = math.fsum((off * off).tolist())
    left = math.fsum((error * error).tolist()) / around
    half = collector.half_true + collector.half_guess
    slack = 2 * half * math.fsum(np.abs(error).tolist()) + len(true) * half**2
    slack += left * (2 * collector.half_true * math.fsum(off.tolist()) + len(true) * collector.half_true**2)
    return Figure(1 - left, 1 - left - slack / around, 1 - left + slack / around)


def pearson(collector: Pairs, params: Params) -> Figure:
    if collector.tally.note:
        return Figure(math.nan, note=collector.tally.note)
    if _equal(collector.true) or _equal(collector.guess):
        raise Undecided("no-ground-truth", "it is not defined: targets or predictions are all equal")
    true, guess = collector.true - mean(collector.true), collector.guess - mean(collector.guess)
    lengths = [math.sqrt(math.fsum((side * side).tolist())) for side in (true, guess)]
    value = math.fsum((true * guess).tolist()) / (lengths[0] * lengths[1])
    halves = zip((collector.half_true, collector.half_guess), lengths, strict=True)
    slack = sum(2 * half * math.sqrt(len(true)) / length for half, length in halves)
    return Figure(value, value - slack, value + slack)


def _equal(values: Any) -> bool:
    """Whether none differs: rounding lets equal numbers stray from their mean."""
    return bool((values == values[0]).all())


def mape(collector: Pairs, params: Params) -> Figure:
    if collector.tally.note:
        return Figure(math.nan, note=collector.tally.note)
    size = np.abs(collector.true)
    if not size.all():
        raise Undecided("not-declared", "it is not defined: a target is 0")
    share = np.abs(collector.guess - collector.true) / size
    value = mean(share)
    slack = mean((collector.half_guess + collector.half_true * (1 + share)) / size)
    return Figure(value, max(0.0, value - slack), value + slack)

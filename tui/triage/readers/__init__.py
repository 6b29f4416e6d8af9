"""Readers: what a rule can use where no pattern of one line shows the fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui.triage.finding import Hit
from tui.triage.readers import (
    endings,
    exceptions,
    gpu_cells,
    kernel,
    loss_scale,
    losses,
    metrics,
    oom,
    states,
    tables,
)
from tui.triage.view import View


@dataclass(frozen=True, slots=True)
class Reader:
    """One reader.

    Attributes:
        read: gives the hits of a text for a class.
        words, fragments: what must be kept of a log for it, as words and as patterns of folded bytes.
    """

    read: Callable[[View, str], Iterator[Hit]]
    words: tuple[str, ...] = ()
    fragments: tuple[bytes, ...] = ()


READERS: dict[str, Reader] = {
    "oom-own": Reader(oom.own, oom.WORDS),
    "oom-foreign": Reader(oom.foreign, oom.WORDS),
    "loss-not-finite": Reader(losses.not_finite, fragments=losses.FRAGMENTS),
    "gradients-not-finite": Reader(losses.gradients, fragments=losses.FRAGMENTS),
    "validation-not-finite": Reader(losses.validation, fragments=losses.FRAGMENTS),
    "loss-scale-sinking": Reader(loss_scale.sinking, loss_scale.WORDS),
    "metrics-flat": Reader(metrics.flat, metrics.WORDS, metrics.FRAGMENTS),
    "ended-killed": Reader(endings.killed, endings.WORDS),
    "ended-terminated": Reader(endings.terminated, endings.WORDS),
    "ended-hangup": Reader(endings.hung_up, endings.WORDS),
    "ended-crash": Reader(endings.crashed, endings.WORDS),
    "ended-interrupt": Reader(endings.interrupted, endings.WORDS),
    "ended-error": Reader(endings.failed, endings.WORDS),
    "exception": Reader(exceptions.exceptions, exceptions.WORDS),
    "disk-full": Reader(tables.disk_full, tables.WORDS),
    "inodes-full": Reader(tables.inodes_full, tables.WORDS),
    "shm-full": Reader(tables.shm_full, tables.WORDS),
    "quota-table": Reader(tables.quota),
    "mounts-read-only": Reader(tables.read_only),
    "kernel-gpu": Reader(kernel.of_class, kernel.WORDS),
    "recovery-cells": Reader(gpu_cells.recovery),
    "ecc-cells": Reader(gpu_cells.bad_memory),
    "silent": Reader(states.silent),
    "rebooted": Reader(states.rebooted),
    "oom-counter": Reader(states.oom_counter, ("oom_kill ",)),
    "pids-exhausted": Reader(states.pids_exhausted),
}

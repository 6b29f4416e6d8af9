"""Actions that have no view of their own: the terminal is lent to a verb, about what is selected."""

from __future__ import annotations

from tui.actions.action import Action, Level

_BOTH = ("fleet", "run")

LENT: tuple[Action, ...] = (
    Action(
        "gpu",
        (),
        "GPU health",
        "Look at the cards for some seconds: clocks, brakes, ECC, zombies that hold VRAM; cgroup memory.",
        _BOTH,
        verb="gpu",
        runs=("gpu", "{box}"),
    ),
    Action(
        "mirrors",
        (),
        "mirrors",
        "The mirrors near the box, as in China: what to set, and whether they answer there.",
        _BOTH,
        verb="mirrors",
        runs=("mirrors", "{box}"),
    ),
    Action(
        "cadence",
        (),
        "cadence",
        "How long the run's saves take, and how often it should save.",
        _BOTH,
        verb="cadence",
        runs=("cadence", "{run}"),
    ),
    Action(
        "fetch",
        (),
        "fetch",
        "Download a file on the box; resumable, bounded, checked by its SHA-256.",
        _BOTH,
        Level.REMOTE,
        takes="URL DEST [--sha256 HEX]",
        verb="fetch",
        runs=("fetch", "{box}"),
    ),
    Action(
        "gather",
        (),
        "gather",
        "Copy the run's sealed export to the shared file system, proven by its hashes.",
        _BOTH,
        Level.REMOTE,
        takes="[--to FOLDER]",
        verb="gather",
        runs=("gather", "{run}"),
    ),
    Action(
        "leash",
        (),
        "leash",
        "Show, arm or take off the date at which the box stops itself, disks kept.",
        _BOTH,
        Level.REMOTE,
        takes="[--hours N]",
        verb="leash",
        runs=("leash", "{box}"),
    ),
    Action(
        "queue",
        (),
        "queue",
        "Run every cell of a job's matrix, split over boxes.",
        (*_BOTH, "launch", "matrix"),
        Level.REMOTE,
        takes="JOB --on BOX,BOX",
        verb="queue",
        runs=("queue",),
    ),
)

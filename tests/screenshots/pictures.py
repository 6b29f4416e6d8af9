"""Which pictures there are, and how each is drawn: the real app, real keys, fixtures, a clock that stands."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input

from tests.fixtures import (
    fleet_fixture,
    launch_fixture,
    run_fixture,
    setup_fixture,
    teardown_fixture,
    triage_fixture,
)
from tests.screenshots import svg
from tui.app import RgtApp
from tui.fleet import themes
from tui.fleet.paths import shipped
from tui.fleet.store import Store
from tui.model.event import HostKeyAsked
from tui.model.instance import Link, LinkState
from tui.model.log import LogBatch
from tui.model.reading import known
from tui.model.snapshot import BoxView, FleetSnapshot
from tui.model.telemetry import GpuProcess
from tui.model.text import safe
from tui.screens.view import View
from tui.widgets.glyphs import SETS

FOLDER = Path(__file__).resolve().parents[2] / "screenshots"
THEMES = themes.load([shipped("themes")]).by_name
SETTLE_S = 10.0

Step = str | tuple[str, str]
"""A key to press, or an action of the registry with what is typed for it."""


def fleet_store() -> Store:
    """Six boxes at three in the morning, the worst of them with its log."""
    store = _held(fleet_fixture.fleet())
    store.log("sweep-a.seed3").append(
        LogBatch("sweep-a.seed3", 0, tuple(run_fixture.log_lines()[-60:]), fleet_fixture.NOW)
    )
    return store


def changed_key_store() -> Store:
    """The same fleet, with a box whose host key is another than the pinned one."""
    fleet = fleet_fixture.fleet()
    boxes = list(fleet.boxes)
    boxes[3] = replace(
        boxes[3],
        link=Link(LinkState.IDENTITY, fleet_fixture.NOW - 40, safe("the host key changed")),
        asked_key=HostKeyAsked(
            boxes[3].name,
            safe("SHA256:Vx0mQ2cF7pYk1sT9rB4hWzE6uLnJd3aGiKoX8eMvCwA"),
            safe("SHA256:p9KfR3tZ6vHq8yLw2NcJx5bSdA1mUoE7gTiYkV4QrXs"),
        ),
    )
    return _held(fleet_fixture.judged(tuple(boxes), fleet.runs))


def empty_store() -> Store:
    """The very first start."""
    return _held(FleetSnapshot(started=True))


def cards_store() -> Store:
    """The same fleet, with the processes on its cards: one card is free, one is held by nobody."""
    fleet = fleet_fixture.fleet()
    return _held(fleet_fixture.judged(tuple(map(_with_processes, fleet.boxes)), fleet.runs))


def _with_processes(box: BoxView) -> BoxView:
    if box.telemetry is None or box.telemetry.gpus.value is None:
        return box
    listed = [
        GpuProcess(4121 + 7 * gpu.index, None, gpu.mem_used_mib, safe("python train.py"), gpu_index=gpu.index)
        for gpu in box.telemetry.gpus.value
        if gpu.util_pct and (box.name, gpu.index) != ("vlm-h100", 3)
    ]
    if box.name == "ablate-02":
        listed.append(GpuProcess(5233, None, 1_210.0, safe("jupyter-lab --port 8888"), gpu_index=0))
    return replace(box, telemetry=replace(box.telemetry, gpu_processes=known(tuple(listed))))


def run_store() -> Store:
    """One box in trouble, with its run and its log."""
    return run_fixture.store()


def unwatched_store() -> Store:
    """The same box before its run was adopted."""
    return run_fixture.store(run_fixture.snapshot(watched=False))


def triage_store() -> Store:
    """The box in trouble after triage looked, and after its storage was surveyed."""
    return triage_fixture.store()


def healthy_store() -> Store:
    """The same run with nothing wrong."""
    return triage_fixture.store(triage_fixture.healthy())


def reading_store() -> Store:
    """A teardown whose copy is read back just now."""
    return _held(teardown_fixture.fleet(teardown_fixture.READING))


def deciding_store() -> Store:
    """A teardown with leftovers to decide."""
    return _held(teardown_fixture.fleet(teardown_fixture.DECIDING))


def approving_store() -> Store:
    """A teardown that is proven and asks for its phrase."""
    return _held(teardown_fixture.fleet(teardown_fixture.APPROVING))


def choosing_store() -> Store:
    """A setup with offers to choose from."""
    return _held(setup_fixture.fleet(setup_fixture.CHOOSING))


def measured_store() -> Store:
    """A setup whose box was measured."""
    return _held(setup_fixture.fleet(setup_fixture.MEASURED))


def planned_store() -> Store:
    """A launch whose plan waits for the operator's word."""
    return _held(launch_fixture.fleet(launch_fixture.PLANNED))


def stepped_store() -> Store:
    """A launch of which the first step was seen."""
    return _held(launch_fixture.fleet(launch_fixture.STEPPED))


def refused_store() -> Store:
    """A launch that the preflight stops."""
    return _held(launch_fixture.fleet(launch_fixture.STOPPED))


def queue_store() -> Store:
    """A queue of 48 cells, one of its boxes silent."""
    return _held(launch_fixture.queued())


def handbook_store() -> Store:
    """The page of a run that rgt launched."""
    return _held(launch_fixture.kept(launch_fixture.LAUNCHED))


def _held(snapshot: FleetSnapshot) -> Store:
    store = Store(clock=lambda: fleet_fixture.NOW)
    store._snapshot = snapshot
    return store


@dataclass(frozen=True, slots=True)
class Picture:
    """One stored picture.

    Attributes:
        name: of the file, without ``.svg``.
        title: said to who can't see it.
        store: makes what the app shows.
        steps: what is pressed before the picture is taken.
    """

    name: str
    title: str
    size: tuple[int, int]
    store: Callable[[], Store] = fleet_store
    steps: tuple[Step, ...] = ()
    theme: str = "dark"
    glyphs: str = "unicode"

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.svg"


SIZES = ((120, 40), (80, 24), (60, 15), (200, 60))
LOOKS = ("light", "high-contrast", "colourblind-dark", "colourblind-light", "ansi16", "mono")
FILTERED: tuple[Step, ...] = (("filter_in", "psnr"), ("filter_in", "Error"), ("context", "2"))

END: tuple[Step, ...] = (("goto", teardown_fixture.BOX), "D")

PICTURES = (
    *(Picture(f"fleet-{w}x{h}", f"The fleet at {w} by {h} cells", (w, h)) for w, h in SIZES),
    *(
        Picture(f"run-{w}x{h}", f"A run at {w} by {h} cells", (w, h), run_store, ("enter",))
        for w, h in SIZES[:3]
    ),
    *(
        Picture(f"triage-{w}x{h}", f"Triage of a run at {w} by {h} cells", (w, h), triage_store, ("t",))
        for w, h in SIZES[:3]
    ),
    Picture("triage-nothing-wrong", "A run with nothing wrong", (80, 24), healthy_store, ("t",)),
    Picture(
        "storage-ladder",
        "What can be freed on a mount whose inodes run out",
        (100, 30),
        triage_store,
        ("t", "j", "j", "j", "enter"),
    ),
    Picture(
        "storage-plan",
        "The plan to make room there, with the phrase to type",
        (100, 30),
        triage_store,
        ("t", "j", "j", "j", "enter", "R"),
    ),
    Picture(
        "log-filtered", "The log, filtered, with context", (120, 40), run_store, ("enter", "l", *FILTERED)
    ),
    *(
        Picture(f"teardown-{w}x{h}", f"The teardown wizard at {w} by {h} cells", (w, h), reading_store, END)
        for w, h in SIZES[:3]
    ),
    Picture("teardown-leftovers", "Leftovers to keep or to scrap", (100, 30), deciding_store, END),
    Picture("teardown-phrase", "The last step, with the phrase to type", (100, 30), approving_store, END),
    *(
        Picture(f"setup-{w}x{h}", f"The guided setup at {w} by {h} cells", (w, h), choosing_store, ("S",))
        for w, h in SIZES[:3]
    ),
    Picture(
        "setup-audit", "What a new box was found to have", (100, 34), measured_store, ("S", "escape", "k")
    ),
    Picture(
        "launch-120x40", "A launch: the plan, before the word to start", (120, 40), planned_store, ("L",)
    ),
    Picture(
        "launch-80x24", "A launch that answered: the first step was seen", (80, 24), stepped_store, ("L",)
    ),
    Picture("launch-60x15", "A launch that the preflight stops", (60, 15), refused_store, ("L",)),
    Picture("matrix-100x30", "The cells of a queue", (100, 30), queue_store, ("m", *("j",) * 4)),
    Picture(
        "handbook-100x30",
        "How a run is found again by somebody who knows nothing of it",
        (100, 30),
        handbook_store,
        (("handbook", "sweep-a.seed3"), *("j",) * 5),
    ),
    Picture("gpu-use-100x30", "Who is on which card, over all boxes", (100, 30), cards_store, steps=("P",)),
    Picture(
        "gpu-use-60x15",
        "The cards of a small pane, the free ones first",
        (60, 15),
        cards_store,
        ("P", "s"),
    ),
    Picture("palette", "Every command, found by a few letters", (80, 24), steps=("ctrl+p", *"st")),
    Picture("help", "Help for the fleet view", (100, 30), steps=("question_mark",)),
    Picture(
        "explain",
        "Where a value comes from",
        (100, 30),
        steps=(("goto", "vlm-h100"), *("right",) * 3, "e"),
    ),
    Picture("adopt", "Runs that rgt did not start", (100, 30), unwatched_store, ("a",)),
    Picture("command-log", "Every command that ran on a box", (100, 30), steps=("c",)),
    Picture(
        "host-key-changed",
        "A changed host key, with both fingerprints",
        (100, 30),
        changed_key_store,
        (("goto", "parked-4090"), "C"),
    ),
    Picture("no-box", "What to do where no box is known", (60, 15), empty_store),
    Picture("too-small", "A pane too small to draw in", (36, 8)),
    *(Picture(f"theme-{look}", f"The fleet in the theme {look}", (80, 24), theme=look) for look in LOOKS),
    Picture("ascii", "The fleet without colours, in ASCII", (80, 24), theme="mono", glyphs="ascii"),
)


@contextmanager
def frozen_zone() -> Iterator[None]:
    """Clock times as in UTC, wherever the pictures are drawn."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


async def taken(picture: Picture) -> str:
    """The SVG of a picture, drawn now."""
    with frozen_zone():
        app = RgtApp(
            picture.store(),
            themes=THEMES,
            theme=picture.theme,
            glyphs=SETS[picture.glyphs],
            state=Path("/nonexistent"),
            environ={},
        )
        async with app.run_test(size=picture.size, notifications=True) as pilot:
            await _settled(app, pilot, lambda: isinstance(app.screen, View) or len(app.screen_stack) > 2)
            for step in picture.steps:
                if isinstance(step, str):
                    await pilot.press(step)
                else:
                    await app.perform(*step)
                await _settled(app, pilot)
            rows = await _settled(app, pilot)
            if app.faults:
                raise AssertionError(app.faults[0])
        return svg.draw(rows, picture.title)


async def _settled(app: RgtApp, pilot: Pilot[int], ready: Callable[[], bool] = lambda: True) -> list[Strip]:
    """The rows of the screen once it looks the same three times in a row."""
    end, same, last = time.monotonic() + SETTLE_S, 0, None
    while time.monotonic() < end:
        await pilot.pause(0.05)
        for field in app.screen.query(Input):
            field.cursor_blink = False
        rows = app.screen._compositor.render_strips(app.size)
        same = same + 1 if ready() and rows == last else 0
        if same == 3:
            return rows
        last = rows
    raise AssertionError(f"the screen did not come to rest in {SETTLE_S:.0f} s")

"""The platform's own limit of files counts where df knows none or a larger one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tui.fleet.fleet_source import FleetFile
from tui.fleet.growth import capped
from tui.fleet.paths import paths
from tui.fleet.platform_facts import ClockFact, PlatformFacts, next_clock
from tui.fleet.reducer import reduce
from tui.model.event import FleetChanged, LinkChanged, TelemetryTaken
from tui.model.instance import Endpoint, Instance, Link, LinkState
from tui.model.reading import Source, known
from tui.model.snapshot import FleetSnapshot
from tui.model.telemetry import Filesystem, Telemetry
from tui.model.text import SafeText

NOW = 1_796_000_000.0
FS = SafeText("/root/autodl-fs")
CAPS = (("/root/autodl-fs", 200_000),)


def seen(
    inodes: int | None, used: int | None, mount: SafeText = FS, error: str = "", at: float = NOW
) -> Telemetry:
    pct = None if not inodes or used is None else 100 * used / inodes
    disk = Filesystem(
        mount,
        SafeText("fs"),
        inodes=inodes,
        inodes_used=used,
        inode_use_pct=pct,
        inodes_free=None if inodes is None or used is None else inodes - used,
        error=SafeText(error),
    )
    empty = Telemetry(taken_at=at)
    return replace(empty, filesystems=known((disk,), Source(SafeText("df -Pi"), at)))


def shown(telemetry: Telemetry) -> tuple[int | None, int | None, float | None]:
    (disk,) = telemetry.filesystems.value or ()
    return disk.inodes, disk.inodes_used, disk.inode_use_pct


@pytest.mark.parametrize(
    ("inodes", "used", "expected", "because"),
    [
        (200_000, 190_000, (200_000, 190_000, 95.0), "df knows the limit itself"),
        (150_000, 75_000, (150_000, 75_000, 50.0), "a lower limit of df's holds"),
        (
            10**9,
            190_000,
            (200_000, 190_000, 95.0),
            "df counts up to the store's end, the account ends before",
        ),
        (10**9, 5 * 10**8, (200_000, None, None), "df counts everybody's files: nothing is known of ours"),
        (None, None, (200_000, None, None), "df counts none: a limit and an unknown use, never 0"),
        (None, 50_000, (200_000, 50_000, 25.0), "a count without a limit"),
    ],
)
def test_which_limit_counts(
    inodes: int | None,
    used: int | None,
    expected: tuple[int | None, int | None, float | None],
    because: str,
) -> None:
    assert shown(capped(seen(inodes, used), CAPS)) == expected, because


def test_other_mounts_errors_and_boxes_without_limits_stay_as_they_are() -> None:
    for telemetry in (seen(10**9, 5, SafeText("/data")), seen(None, None, error="mount does not answer")):
        assert capped(telemetry, CAPS) == telemetry
    assert capped(seen(10**9, 5), ()) == seen(10**9, 5)
    assert capped(Telemetry(taken_at=NOW), CAPS) == Telemetry(taken_at=NOW)


def test_the_limit_reaches_the_warning_and_the_time_that_is_left() -> None:
    box = Instance("b", "autodl", Endpoint("b.example"))
    start: list[FleetChanged | LinkChanged | TelemetryTaken] = [
        FleetChanged((box,), (), inode_caps=(("b", CAPS),)),
        LinkChanged("b", Link(LinkState.LIVE, since=NOW - 60)),
    ]
    snapshot = reduce(FleetSnapshot(), start, NOW - 60)
    for at, used in ((NOW - 60, 191_400), (NOW, 192_000)):
        snapshot = reduce(snapshot, [TelemetryTaken("b", seen(10**9, used, at=at))], at)
    (view,) = snapshot.boxes
    assert [one.short for one in view.attention] == ["inodes 96%"]
    assert dict(view.growth)[FS].inodes_full_in_s == pytest.approx(800.0)


def test_the_fleet_file_brings_the_limits_of_its_platforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RGT_HOME", str(tmp_path))
    where = paths()
    where.fleet_file.parent.mkdir(parents=True, exist_ok=True)
    where.fleet_file.write_text(
        '[instances.a]\nplatform = "autodl"\nhost = "a.example"\n'
        '[instances.b]\nplatform = "vastai"\nhost = "b.example"\n'
    )
    changed, problems = FleetFile(where).load()
    assert problems == () and dict(changed.inode_caps) == {"a": CAPS}


def test_a_date_that_is_over_gives_way_to_the_next() -> None:
    wipe = ClockFact(SafeText("wipe"), "stopped", 86_400.0, SafeText("scratch"))
    release = ClockFact(SafeText("release"), "stopped", 864_000.0, SafeText("everything"))
    facts = PlatformFacts("x", clocks=(wipe, release))
    box = Instance("b", "x", None)

    def told(now: float | None) -> str:
        found = next_clock(facts, box, stopped_at=0.0, now=now)
        assert found is not None
        return str(found.text)

    assert [told(now) for now in (None, 0.0, 86_400.0, 86_401.0, 900_000.0)] == [
        "wipe", "wipe", "wipe", "release", "release",
    ]  # fmt: skip

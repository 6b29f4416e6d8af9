"""Rows of the detail never lose the end of a figure: a number without its unit says nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fixtures import run_fixture as fixture
from tui.model.reading import known
from tui.model.telemetry import Filesystem
from tui.model.text import SafeText
from tui.widgets.detail_hardware import disk_rows
from tui.widgets.glyphs import UNICODE
from tui.widgets.lines import length
from tui.widgets.mount_words import read_only_spans

MOUNTS = tuple(
    Filesystem(
        SafeText(mount),
        SafeText("/dev/vda"),
        size_bytes=270_582_939_648,
        used_bytes=199_000_000_000,
        use_pct=74.0,
        inodes=9_999_999,
        inodes_used=9_123_456,
        inode_use_pct=91.0,
        read_only=read_only,
    )
    for mount, read_only in (("/", False), ("/root/autodl-tmp", False), ("/a/long/path/of/a/mount/x", True))
)


@pytest.mark.parametrize("room", range(30, 190))
def test_no_row_is_wider_than_its_room(room: int) -> None:
    box = fixture.box()
    assert box.telemetry is not None
    telemetry = replace(box.telemetry, filesystems=known(MOUNTS))
    for mounts in (MOUNTS, MOUNTS[:1], MOUNTS[:2]):
        rows = disk_rows(box, None, UNICODE, replace(telemetry, filesystems=known(mounts)), room)
        wide = [row for row in rows if length(row) > max(room, 58)]
        assert not wide, "".join(text for text, _ in wide[0])


@pytest.mark.parametrize(
    ("mount", "loud"),
    [
        ("/", True),
        ("/home/user", True),
        ("/root/autodl-tmp", True),  # its log is there
        ("/root/autodl", False),  # a beginning of a name is no folder above
        ("/usr/share/models", False),
        ("/mnt/tools", False),
    ],
)
def test_a_read_only_mount_is_loud_where_somebody_means_to_write(mount: str, loud: bool) -> None:
    run = fixture.run()
    run = replace(run, spec=replace(run.spec, log="/root/autodl-tmp/run/train.log"))
    fs = replace(MOUNTS[0], mount=SafeText(mount))
    assert read_only_spans(fs, run) == []
    ((word, style),) = read_only_spans(replace(fs, read_only=True), run)
    assert (word.strip(), style) == ("read-only", "attention" if loud else "dim")

"""Small files that a crash leaves whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tui.durable import read_regular, write_new, write_whole


def test_a_file_is_replaced_at_once_and_is_the_operators_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "page.json"
    write_whole(file, "one\udcff")
    write_whole(file, b"two")
    assert file.read_bytes() == b"two"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == ["page.json"]


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_what_fails_leaves_what_was_there_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    file = tmp_path / "page.json"
    write_whole(file, "old")

    def fails(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if broken == "fsync" else Path, broken, fails)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    file = tmp_path / "page.json"
    write_new(file, "first")
    with pytest.raises(FileExistsError):
        write_new(file, "second")
    assert file.read_text() == "first"
    assert list(tmp_path.iterdir()) == [file]


def test_a_pipe_in_place_of_a_file_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match=r"no regular file|[Ii]s a directory"):
            read_regular(path, 10)
    write_whole(tmp_path / "file", b"0123456789")
    assert read_regular(tmp_path / "file", 4) == b"0123"
    assert read_regular(tmp_path / "file", 99) == b"0123456789"

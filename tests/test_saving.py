"""Saving: where it went in words, and never over something."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.model.failure import Failure
from tui.saving import save_lines


def test_lines_are_saved_where_asked(tmp_path: Path) -> None:
    said = save_lines(["a", "损失"], str(tmp_path / "x.log"), name="run.log", folder=tmp_path)
    assert (tmp_path / "x.log").read_text() == "a\n损失\n"
    assert said == f"2 lines saved to {tmp_path}/x.log"
    assert (tmp_path / "x.log").stat().st_mode & 0o077 == 0


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("kept")
    with pytest.raises(Failure, match="exists; nothing was written"):
        save_lines(["a"], str(tmp_path / "x.log"), name="run.log", folder=tmp_path)
    assert (tmp_path / "x.log").read_text() == "kept"


def test_without_a_path_a_free_name_is_found(tmp_path: Path) -> None:
    for _ in range(3):
        save_lines(["a"], " ", name="run.log", folder=tmp_path / "new")
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["run-2.log", "run-3.log", "run.log"]
    save_lines(["b"], str(tmp_path / "new"), name="other.log", folder=tmp_path)
    assert (tmp_path / "new" / "other.log").exists()


@pytest.mark.parametrize("path", ["/nonexistent/dir/x.log", "a\0b", "~no-such-user/x"])
def test_what_cannot_be_written_is_said(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Failure, match="cannot be written"):
        save_lines(["a"], path, name="run.log", folder=tmp_path)

"""What `rgt triage --log` reads besides a file, and what it does not wait for."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tui.cli import main
from tui.model.failure import Exit, Failure
from tui.verbs.log_file import opened

LOG = b"RuntimeError: CUDA out of memory\n"


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_device_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("RGT_HOME", str(tmp_path))
    assert main(["triage", "--log", name]) == Exit.USAGE
    assert capsys.readouterr().err.startswith(f"rgt: {name} is a device, so it is no log.")


def test_a_pipe_of_the_shell_is_read_to_its_end() -> None:
    out, into = os.pipe()
    os.write(into, LOG)
    os.close(into)
    try:
        with opened(f"/dev/fd/{out}") as file:
            assert file.read() == LOG
    finally:
        os.close(out)


def test_a_pipe_whose_writer_comes_later_is_waited_for(tmp_path: Path) -> None:
    name = tmp_path / "pipe"
    os.mkfifo(name)
    writer = threading.Thread(target=name.write_bytes, args=(LOG * 5000,))
    with opened(str(name)) as file:
        writer.start()  # it could not open it before somebody reads
        assert file.read() == LOG * 5000
    writer.join(10)


def test_a_pipe_that_gives_nothing_or_has_no_end_is_not_waited_for(tmp_path: Path) -> None:
    name = tmp_path / "pipe"
    os.mkfifo(name)
    with pytest.raises(Failure, match="nothing came out of it"), opened(str(name), 0.01) as file:
        file.read(1)
    out, into = os.pipe()
    os.write(into, LOG * 3)
    with (
        pytest.raises(Failure, match="goes on without an end"),
        opened(f"/dev/fd/{out}", most=len(LOG)) as file,
    ):
        while file.read(len(LOG)):
            pass
    os.close(out)
    os.close(into)

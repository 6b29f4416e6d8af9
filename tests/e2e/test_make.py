"""The Makefile on machines that lack something: one clear line, and nothing half made is left."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.real import need

ROOT = Path(__file__).resolve().parents[2]
TOO_OLD = "#!/bin/sh\nexit 1\n"
NO_VENV = '#!/bin/sh\ncase "$*" in *venv*) mkdir -p .venv/bin; : >.venv/bin/python; exit 1;; esac\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory with the Makefile, and a PATH that holds no Python but those a test puts there."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, path in need("make", "sh", "rm", "mkdir").items():
        (tools / name).symlink_to(path)
    return tmp_path


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def make(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "PYTHON"))}
    environment["PATH"] = str(checkout / "bin")
    return subprocess.run(
        ["make", *words],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("found", [(), ("python3",), ("python3", "python3.12", "python3.11")])
@pytest.mark.parametrize("target", ["demo", "test"])
def test_no_python_that_is_new_enough(checkout: Path, found: tuple[str, ...], target: str) -> None:
    for name in found:
        program(checkout / "bin" / name, TOO_OLD)
    done = make(checkout, target)
    assert done.returncode == 2
    assert (
        done.stdout
        == "rgt needs Python 3.11 or newer; none was found on PATH. Set PYTHON=/path/to/python3.\n"
    )
    assert not (checkout / ".venv").exists()


def test_a_newer_python_is_found_behind_an_old_one(checkout: Path) -> None:
    program(checkout / "bin" / "python3", TOO_OLD)
    program(
        checkout / "bin" / "python3.12",
        '#!/bin/sh\necho "took $0 $*" >&2\ncase "$*" in *venv*) exit 1;; esac\n',
    )
    done = make(checkout, "demo")
    assert "bin/python3.12 -m venv .venv" in done.stderr


def test_a_given_python_that_is_too_old(checkout: Path) -> None:
    program(checkout / "old", TOO_OLD)
    done = make(checkout, "demo", "PYTHON=./old")
    assert done.stdout.startswith("rgt needs Python 3.11 or newer; PYTHON=./old is not.")
    assert not (checkout / ".venv").exists()


def test_a_python_without_venv_leaves_no_broken_one(checkout: Path) -> None:
    program(checkout / "bin" / "python3", NO_VENV)
    done = make(checkout, "demo")
    assert (
        done.stdout
        == "python3 can't make a virtual environment; on Debian and Ubuntu: apt install python3-venv.\n"
    )
    assert not (checkout / ".venv").exists()

"""What is handed to people: the wheel, in empty environments far from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real import absent
from tui.demo.torch_build import CPU_INDEX, gpu_packages

ROOT = Path(__file__).resolve().parents[2]
INSTALL_S = 500

pytestmark = [pytest.mark.slow, pytest.mark.timeout(INSTALL_S + 100)]


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment that holds the wheel, and a directory to work in."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def run(self, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """A program of this environment, which sees nothing of the checkout or of the operator's set-up."""
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR")}
        away = self.folder / "elsewhere"
        away.mkdir(exist_ok=True)
        own = {"HOME": str(away), "RGT_HOME": str(away / "rgt"), "RGT_SSH_CONFIG": os.devnull, **extra}
        return subprocess.run(
            [str(self.folder / "venv" / "bin" / words[0]), *words[1:]],
            cwd=away,
            env=kept | own,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )


def pip(python: Path | str, *words: str) -> str:
    """What pip prints; where it fails, the end of what it says is the reason."""
    done = subprocess.run(
        [str(python), "-m", "pip", "--disable-pip-version-check", *words],
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    if done.returncode != 0:
        absent(f"pip {words[0]} failed: {done.stderr.strip()[-600:]}")
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def environment(folder: Path, *requirements: str) -> Installed:
    made = Installed(folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=120)
    pip(made.python, "install", "--quiet", "--no-compile", *requirements)
    return made


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    yield environment(tmp_path_factory.mktemp("plain"), str(wheel))


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """``WHEEL[verify]``, with PyTorch's CPU build wherever that is to be had."""
    wanted = f"{wheel}[verify]"
    for source in ((), ("--extra-index-url", CPU_INDEX)):
        plan = pip(
            sys.executable,
            "install",
            "-q",
            "--dry-run",
            "--ignore-installed",
            "--report",
            "-",
            *source,
            wanted,
        )
        if not gpu_packages(json.loads(plan)):
            yield environment(tmp_path_factory.mktemp("full"), *source, wanted)
            return
    pytest.skip("only CUDA builds of torch are to be had here, and no test pulls gigabytes")


def test_everything_the_app_reads_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        executable = {i.filename for i in archive.infolist() if i.external_attr >> 16 & 0o100}
    tracked = subprocess.run(
        ["git", "ls-files", "tui"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    sources = tracked.stdout.split() or [
        str(p.relative_to(ROOT)) for p in (ROOT / "tui").rglob("*.*") if p.is_file()
    ]
    assert not {name for name in sources if "__pycache__" not in name and (ROOT / name).exists()} - held
    for room in ("profiles", "themes"):
        files = {f"tui/{room}/{path.name}" for path in (ROOT / room).iterdir()}
        assert files
        assert files <= held
    catalog = {f"tui/triage/catalog/{path.name}" for path in (ROOT / "tui/triage/catalog").glob("*.md")}
    assert len(catalog) > 200
    assert catalog <= held
    for suffix in (
        ".sh",
        ".tcss",
        "py.typed",
        "triage/glossary.txt",
        "standins/nvidia-smi",
        "standins/df",
        "standins/ending",
    ):
        assert any(name.endswith(suffix) for name in held), suffix
    assert {"tui/demo/standins/nvidia-smi", "tui/demo/standins/df"} <= executable
    assert not [name for name in held if name.startswith(("tests/", "screenshots/")) or "__pycache__" in name]


def test_with_torch_the_demo_tests_itself(full: Installed) -> None:
    assert full.run("rgt", "--version").stdout == "rgt 0.1.0\n"
    listed = full.run("rgt", "profiles")
    assert listed.returncode == 0, listed.stderr
    for name in ("autodl", "runpod", "ssh", "local"):
        assert name in listed.stdout
    checked = full.run("rgt", "profiles", "--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = full.run("rgt", "demo", "--selftest", "--speed", "4")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "torch is not installed" not in tested.stdout
    for box in ("steady-a100", "inodes-4090", "flaky-h100", "done-a10", "done-l4"):
        assert f"{box}: a login without the key is refused" in tested.stdout
        assert f"{box}: probe " in tested.stdout
    assert tested.stdout.count(".pt, ") == 5
    assert tested.stdout.count("(simulated)") == 5


def test_without_extras_the_verbs_work_and_the_demo_says_what_it_lacks(plain: Installed) -> None:
    has = plain.run(
        "python",
        "-c",
        "import importlib.util as i; print([bool(i.find_spec(m)) for m in ('torch', 'numpy')])",
    )
    assert has.stdout == "[False, False]\n", has.stderr
    status = plain.run("rgt", "status", "--json")
    assert status.returncode == 0, status.stderr
    assert json.loads(status.stdout)["boxes"] == []
    doctor = plain.run("rgt", "doctor", "--json")
    assert doctor.returncode in (0, 1), doctor.stderr
    assert json.loads(doctor.stdout)
    probed = plain.run("rgt", "probe", "local", "--json")
    assert json.loads(probed.stdout)["filesystems"], probed.stderr
    refused = plain.run("rgt", "demo", "--selftest")
    assert refused.returncode != 0
    assert "NumPy" in refused.stderr
    assert f"{plain.python} -m pip install numpy safetensors" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_with_numpy_alone_the_demo_says_so_and_works(plain: Installed) -> None:
    pip(plain.python, "install", "--quiet", "numpy", "safetensors")  # what the refusal said to do
    tested = plain.run("rgt", "demo", "--selftest", "--speed", "4")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert tested.stdout.splitlines()[0] == "torch is not installed: the jobs train in NumPy"
    assert tested.stdout.count(".safetensors, ") == 5


def test_the_way_to_the_screen_imports_nothing_heavy(plain: Installed) -> None:
    heavy = ("torch", "numpy", "asyncssh", "pydantic", "yaml", "tomlkit", "cryptography")
    code = f"import sys, tui.cli, tui.app, tui.verbs.screen; print([m for m in {heavy} if m in sys.modules])"
    assert plain.run("python", "-c", code).stdout == "[]\n"

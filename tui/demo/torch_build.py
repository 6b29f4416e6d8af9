"""Takes PyTorch's CPU build for a demo, and nothing else: ``python -m tui.demo.torch_build``.

A plain ``pip install torch`` on Linux pulls several gigabytes of CUDA wheels. What pip *would* install is
asked first (``--dry-run --report``); a plan with GPU packages in it is not carried out.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Sequence

REQUIREMENT = "torch==2.13.0"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SOURCES: tuple[tuple[str, ...], ...] = (
    (),  # what pip is configured to use: a Mac, an ARM box or a mirror has a CPU build there
    ("--index-url", CPU_INDEX),
)
GPU_PACKAGES = ("nvidia-", "cuda-", "triton", "pytorch-triton", "rocm")
GPU_BUILDS = ("cu", "rocm", "xpu")
"""How the local part of a version starts in a GPU build that holds its libraries itself: ``2.13.0+cu128``."""
DEADLINE_S = 300


def gpu_packages(report: object) -> list[str]:
    """Names in a pip installation report that only a GPU build needs.

    Args:
        report: parsed JSON of ``pip install --report``.

    Raises:
        ValueError, KeyError, TypeError: the report has not the documented shape, so nothing is known.
    """
    if not isinstance(report, dict) or not isinstance(report.get("install"), list):
        raise ValueError("not a pip installation report")
    found = (item["metadata"] for item in report["install"])
    return sorted(str(each["name"]) for each in found if _needs_gpu(str(each["name"]), str(each["version"])))


def _needs_gpu(name: str, version: str) -> bool:
    plain = re.sub(r"[-_.]+", "-", name).lower()  # as package indexes compare names
    _, _, local = version.partition("+")
    return plain.startswith(GPU_PACKAGES) or local.startswith(GPU_BUILDS)


def _pip(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def _offer(source: Sequence[str]) -> str:
    """Why this source will not do, or an empty string."""
    try:
        asked = _pip(["install", "--quiet", "--dry-run", "--report", "-", *source, REQUIREMENT])
        if asked.returncode != 0:
            return "it has no such build, or can't be reached"
        heavy = gpu_packages(json.loads(asked.stdout))
    except (ValueError, KeyError, TypeError):
        return "pip's plan can't be read"
    except subprocess.TimeoutExpired:
        return f"no answer in {DEADLINE_S} s"
    return f"it would bring {len(heavy)} GPU packages ({heavy[0]}, …)" if heavy else ""


def main() -> int:
    """Install the CPU build where there is one. Going on without is no failure: the demo trains in NumPy."""
    try:
        print(f"torch {importlib.metadata.version('torch')} is there")
        return 0
    except importlib.metadata.PackageNotFoundError:
        pass
    for source in SOURCES:
        where = source[-1] if source else "pip's configured index"
        refused = _offer(source)
        if refused:
            print(f"torch from {where}: {refused}")
            continue
        print(f"torch from {where}: installing the CPU build")
        if _pip(["install", "--quiet", *source, REQUIREMENT]).returncode == 0:
            return 0
        print(f"torch from {where}: the installation failed")
    print(
        "Going on without torch: the demo trains in NumPy. To add it later: "
        f"{sys.executable} -m pip install --index-url {CPU_INDEX} {REQUIREMENT}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

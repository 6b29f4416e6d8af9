"""Real tools in tests: found, or the test is skipped with the reason (a failure under RGT_REQUIRE_REAL=1)."""

from __future__ import annotations

import os
import shutil

import pytest

_SBIN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/local/sbin"))


def find(tool: str) -> str | None:
    """Absolute path of a tool, also where only root's PATH has it."""
    return shutil.which(tool, path=_SBIN)


def absent(reason: str) -> None:
    """Skip this test, or fail it where CI promises to have everything."""
    if os.environ.get("RGT_REQUIRE_REAL") == "1":
        pytest.fail(f"RGT_REQUIRE_REAL=1, but {reason}")
    pytest.skip(reason)


def need(*tools: str) -> dict[str, str]:
    """Absolute paths of the tools a test cannot do without."""
    found = {tool: find(tool) for tool in tools}
    missing = [tool for tool, path in found.items() if path is None]
    if missing:
        absent(f"not installed: {', '.join(missing)}")
    return {tool: path for tool, path in found.items() if path is not None}

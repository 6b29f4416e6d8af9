"""A cluster for each test, with the real kubectl of this computer in front of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real import need
from tests.rig.kube_api import Cluster


@pytest.fixture(scope="session")
def kubectl() -> str:
    """Its path. The rig's exec is the one of websockets, which kubectl prefers since 1.31."""
    program = need("kubectl")["kubectl"]
    told = subprocess.run([program, "version", "--client", "-o", "json"], capture_output=True, timeout=20)
    version = json.loads(told.stdout)["clientVersion"]
    minor = int("".join(c for c in version["minor"] if c.isdigit()) or 0)
    if minor < 31:
        pytest.skip(f"kubectl is 1.{minor}, and exec over websockets came with 1.31")
    return program


@pytest.fixture
def kube(kubectl: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    rig = Cluster(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(rig.kubeconfig))
    monkeypatch.setenv("KUBECACHEDIR", str(tmp_path / "cache"))
    yield rig
    rig.stop()

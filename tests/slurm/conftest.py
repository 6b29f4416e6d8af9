"""One Slurm for the whole room, and its login node: a real sshd whose sessions know it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.rig.slurm import Slurm


@pytest.fixture(scope="session")
def cluster() -> Iterator[Slurm]:
    rig = Slurm.start()
    yield rig
    rig.stop()


@pytest.fixture
def slurm(cluster: Slurm) -> Iterator[Slurm]:
    """The cluster with an empty queue."""
    yield cluster
    cluster.clear()


@pytest.fixture
def login(sshd_factory: Callable[..., Sshd], slurm: Slurm, tmp_path: Path) -> Sshd:
    """Its login node."""
    tmp_path.chmod(0o755)
    return sshd_factory(rc_text=f"export SLURM_CONF={slurm.conf}\n")

"""What goes wrong at 3 a.m.: identities, full disks, odd input. Each was a defect once."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Home
from tests.rig import Sshd

pytestmark = pytest.mark.real


def test_a_renamed_box_with_another_host_key_is_not_taken_for_a_new_one(home: Home, box: Sshd) -> None:
    assert home.rgt("probe", "box-a").returncode in (0, 1, 4)
    old = box.host_key_fingerprint
    assert home.rgt("rename", "box-a", "box-b").returncode == 0
    assert home.rgt("probe", "box-b").returncode in (0, 1, 4)
    box.new_host_key()
    refused = home.rgt("probe", "box-b")
    assert refused.returncode == 1
    assert old in refused.stderr

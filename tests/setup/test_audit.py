"""What a box told in phase 0 is read right, and what it means is said right."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.real import need
from tests.rig.tmpfs import tmpfs
from tui.box.local import LocalTransport
from tui.model.cadence import daly
from tui.model.reading import known
from tui.model.telemetry import Cpu, Gpu, Host, Memory, Telemetry
from tui.model.text import SafeText, safe
from tui.setup.audit import (
    Audit,
    Finding,
    findings,
    look,
    measure_disk,
    measure_routes,
    read,
    read_routes,
)
from tui.setup.budget import budget

CARD = Gpu(0, safe("NVIDIA A100-SXM4-80GB"), mem_total_mib=81920)
SEEN = Telemetry(
    0.0,
    gpus=known((CARD,)),
    memory=known(Memory(limit_bytes=64 << 30)),
    cpu=known(Cpu(quota_cores=8, cores_visible=128)),
    host=known(Host(SafeText("Linux"), clock_offset_s=41.0)),
)

TOLD = """\
home /root
tool tmux
tool curl
tmux 3.3a
tier 52428800 41943040 200000 7590 yes /root/autodl-fs /root/autodl-fs
tier 31457280 5242880 ? ? no / /
tier none /root/none
driver 535.104.05
cuda_driver 12.2
shm 65536
python 3.10.8 /root/miniconda3
torch 2.4.0+cu121 12.1
sees 1
arch yes
"""


def by_name(found: list[Finding], name: str) -> list[Finding]:
    return [one for one in found if one.name == name]


def test_a_usual_box() -> None:
    found = findings(read(TOLD), SEEN)
    assert by_name(found, "gpu")[0].said == "1 × NVIDIA A100-SXM4-80GB 80 GiB"
    torch = by_name(found, "torch")[0]
    assert (torch.verdict, "cards seen: 1" in torch.said) == ("ok", True)
    disks = {one.said.split(":")[0].split(" ")[0]: one.verdict for one in by_name(found, "disk")}
    assert disks == {"/": "bad", "/root/autodl-fs": "mind", "/root/none": "mind"}
    assert by_name(found, "cores")[0].said.startswith("8 cores of the 128")
    assert by_name(found, "clock")[0].verdict == "mind"
    assert by_name(found, "shm")[0].verdict == "mind"
    assert found[0].verdict == "bad"


@pytest.mark.parametrize(
    ("was", "now", "verdict", "says"),
    [
        ("torch 2.4.0+cu121 12.1", "torch 2.4.0+cpu None", "bad", "CPU build"),
        ("torch 2.4.0+cu121 12.1", "torch 2.8.0+cu128 12.8", "mind", "newer than the driver"),
        ("sees 1", "sees 0", "bad", "sees no card"),
        ("arch yes", "arch no", "bad", "no code for this card"),
        (
            "torch 2.4.0+cu121 12.1\nsees 1\narch yes",
            "torch_error No module named torch",
            "mind",
            "No module",
        ),
    ],
)
def test_driver_cuda_and_torch_must_fit(was: str, now: str, verdict: str, says: str) -> None:
    assert was in TOLD
    one = by_name(findings(read(TOLD.replace(was, now)), SEEN), "torch")[0]
    assert (one.verdict, says in one.said) == (verdict, True)


def test_what_the_box_does_not_tell_is_unknown() -> None:
    found = findings(Audit(), Telemetry(0.0))
    assert {one.name: one.verdict for one in found if one.verdict == "unknown"} == {
        "gpu": "unknown",
        "memory": "unknown",
    }


def test_condas_base_matters_on_a_machine_of_ones_own() -> None:
    assert by_name(findings(read(TOLD), SEEN, own=True), "python")[0].verdict == "mind"
    assert not by_name(findings(read(TOLD), SEEN), "python")


@pytest.mark.parametrize(
    ("told", "rate", "why"),
    [
        ("206 8388608 2.0 ", 4194304.0, ""),
        ("curl: (28) Operation timed out 200 1000000 20.0", 50000.0, ""),
        ("curl: (6) Could not resolve host: x 000 0 0.1", None, "resolve"),
        ("403 169 0.2", None, "HTTP 403"),
        ("no-curl", None, "no curl"),
        ("what?", None, "what?"),
    ],
)
def test_a_route_is_fast_slow_or_told_why_not(told: str, rate: float | None, why: str) -> None:
    route = read_routes(f"noise\nnet https://x.example/a {told}\n", ["https://x.example/a"])[0]
    assert route.rate == rate
    assert why in route.why


async def test_this_computer_is_looked_at_for_real(tmp_path: Path) -> None:
    found = await look(LocalTransport(), "python3", [str(tmp_path), "/no/such"])
    assert found.said["python"].startswith("3.")
    assert [tier.folder for tier in found.tiers] == [str(tmp_path), "/no/such"]
    assert found.tiers[0].writable
    assert found.tiers[1].mount is None


async def test_the_disk_is_measured_and_left_as_it_was(tmp_path: Path) -> None:
    write, files = await measure_disk(LocalTransport(), str(tmp_path))
    assert write is not None
    assert files is not None
    assert list(tmp_path.iterdir()) == []


async def test_a_disk_that_is_too_small_is_not_measured_and_left_as_it_was(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "small", size=1 << 20) as small:
        assert await measure_disk(LocalTransport(), str(small)) == (None, None)
        assert list(small.iterdir()) == []


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "file").write_bytes(b"x" * 1_000_000)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def test_routes_are_measured_for_real(served: str) -> None:
    need("curl")
    there, gone, nobody = await measure_routes(
        LocalTransport(), [f"{served}/file", f"{served}/none", "http://127.0.0.1:9/x"]
    )
    assert there.rate is not None
    assert (gone.rate, gone.why) == (None, "HTTP 404")
    assert nobody.rate is None


def test_a_budget_counts_the_one_that_is_being_written() -> None:
    planned = budget(10 << 30, keep=3, scratch=5 << 30, files=4, rate=1e9)
    assert planned.need == 45 << 30
    assert planned.inodes == 16
    assert planned.save_s == pytest.approx(10.74, abs=0.01)
    assert budget(1, 2).every_s is None


@pytest.mark.parametrize(
    ("save", "failures", "every"), [(5.0, 86400.0, 926.2), (60.0, 3600.0, 617.9), (9e4, 4e4, 4e4)]
)
def test_the_cadence_is_dalys(save: float, failures: float, every: float) -> None:
    assert daly(save, failures) == pytest.approx(every, abs=0.1)

"""Files that lie on another machine get the verdicts they get here, by the two programmes that run there."""

from __future__ import annotations

import ast
import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.checkpoints.made import (
    calls,
    floats,
    good_safetensors,
    good_zip,
    listed_parts,
    need_numpy,
    need_torch,
    put,
    safetensors,
    state,
    tensor,
    torch_zip,
)
from tui.checkpoints import bundle, far_disk, jailer
from tui.checkpoints.bundle import LOADER
from tui.checkpoints.examine import Options, examine_tree, listed
from tui.checkpoints.far_disk import FarDisk, FarGround, FarLost
from tui.checkpoints.jailer import Jail
from tui.checkpoints.source import NotAFile, Source, Stopped
from tui.model.verdict import Examination

PROGRAMMES: dict[str, Callable[[], bytes]] = {"files": far_disk.programme, "jail": jailer.programme}


class Machine:
    """Starts the programmes as children; `pids` are theirs."""

    def __init__(self) -> None:
        self.children: list[subprocess.Popen[bytes]] = []

    def __call__(self, what: far_disk.What) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            text = PROGRAMMES[what]()
            self.children.append(
                subprocess.Popen(
                    [sys.executable, "-I", "-B", "-X", "utf8", "-c", LOADER, str(len(text))],
                    stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
            ours.sendall(text)
        return ours


@contextmanager
def machine() -> Iterator[Machine]:
    made = Machine()
    try:
        yield made
    finally:
        for child in made.children:
            child.kill()
            child.wait()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def furnish(folder: Path) -> None:
    """One of every kind: whole, damaged, hostile, odd, in rows and in parts."""
    noise = random.Random(7).randbytes(3_000_000)
    big = torch_zip(b"", {"0": noise})
    part = len(good_zip())
    unfit = torch_zip(state({"w": tensor("0", (2,))}), {"0": floats(float("nan"), 1)})
    put(
        folder,
        {
            "good.pt": good_zip(),
            "good.safetensors": good_safetensors(),
            "nan.safetensors": safetensors({"w": ("F32", (2,), floats(float("nan"), 1))}),
            "cut.pt": good_zip()[:-30],
            "cut.safetensors": good_safetensors()[:-3],
            "flip.pt": flipped(big, 1_500_000),
            "lost.pt": big[:1_000_000] + bytes(4096) + big[1_004_096:],
            "evil.pt": torch_zip(calls("os.system"), {}),
            "page.pt": b"<!DOCTYPE html><html></html>",
            "empty.safetensors": b"",
            "raw.pkl": calls("posix.system"),
            "zeros.pt": bytes(300_000),
            "run/latest": b"global_step9\n",
            "run/checkpoint-2/trainer_state.json": b"{}",
            "hf/model.safetensors.index.json": b'{"weight_map": {"w": "model-00001-of-00002.safetensors"}}',
            "hf/model-00001-of-00002.safetensors": good_safetensors(),
            "odd/n\udcff\n.safetensors": good_safetensors(),
            "big_endian.pt": torch_zip(
                state({"w": tensor("0", (2,))}), {"0": b"\x3f\x80\0\0\x7f\xc0\0\0"}, order=b"big"
            ),
            "fsdp/.metadata": listed_parts("__0_0.distcp", (0, part), (part, len(unfit))),
            "fsdp/__0_0.distcp": good_zip() + unfit,
            "log.txt": b"epoch 1\n",
        },
    )
    (folder / "link.pt").symlink_to("good.pt")
    (folder / "out.pt").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe")
    with (folder / "hole.pt").open("wb") as hole:
        hole.truncate(50 << 20)


def told(found: Examination) -> list[object]:
    """Without what is known of the place alone."""
    return [
        [one.model_dump(exclude={"confined"}) for one in found.files],
        [one.model_dump(exclude={"confined"}) for one in found.checkpoints],
        sorted((one.code, one.path or "", one.detail or "") for one in found.problems),
    ]


def both(folder: Path) -> tuple[Examination, Examination]:
    with Jail() as jail:
        here = examine_tree(listed(str(folder)), Options(jail=jail, digests=True, now=2e9))
    with machine() as start, FarDisk(start) as disk, Jail(ground=FarGround(start, disk)) as jail:
        far = examine_tree(disk.walk(str(folder)), Options(jail=jail, digests=True, disk=disk, now=2e9))
    return here, far


def test_every_verdict_is_the_one_of_this_computer(tmp_path: Path) -> None:
    need_numpy()
    furnish(tmp_path)
    here, far = both(tmp_path)
    assert told(far) == told(here)
    words = {one.path: one.verdict for one in far.checkpoints}
    assert words["good.pt"] == "ok"
    assert words["evil.pt"] == "unsafe"
    assert words["cut.safetensors"] == "corrupt"
    assert words["flip.pt"] == "corrupt"
    assert words["big_endian.pt"] == words["fsdp"] == "suspicious"


def test_torch_loads_there(tmp_path: Path) -> None:
    torch = need_torch()
    model = {"w": torch.arange(300_000, dtype=torch.float32), "b": torch.ones(3)}
    torch.save(model, tmp_path / "new.pt")
    torch.save(model, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    here, far = both(tmp_path)
    assert told(far) == told(here)
    assert [one.loaded for one in far.checkpoints] == [True, True]
    assert all("memory" in one.confined for one in far.checkpoints)


def test_a_file_reads_as_it_does_here(tmp_path: Path) -> None:
    data = random.Random(3).randbytes(1_300_000) + bytes(700_000)
    (tmp_path / "f").write_bytes(data)
    (tmp_path / "folder").mkdir()
    with machine() as start, FarDisk(start) as disk:
        with Source(str(tmp_path / "f")) as here, disk.open(str(tmp_path / "f")) as far:
            for at, length in (
                (0, 10),
                (262_140, 10),
                (5, 1_900_000),
                (1_999_990, 99),
                (2_000_000, 1),
                (-1, 4),
            ):
                assert far.read(at, length) == here.read(at, length)
            assert far.crc32(1, 1_500_000) == here.crc32(1, 1_500_000)
            assert far.crc32(1_900_000, 500_000) == here.crc32(1_900_000, 500_000)
            assert far.zero_tail() == here.zero_tail() >= 700_000
            assert far.is_zero(1_300_000, 9_000_000)
            assert not far.is_zero(0, 1)
            assert b"".join(bytes(one) for one in far.blocks(3, 1_400_000)) == data[3:1_400_003]
            assert far.section(100, 50).read() == data[100:150]
        with pytest.raises(FileNotFoundError):
            disk.open(str(tmp_path / "none"))
        with pytest.raises(NotAFile):
            disk.open(str(tmp_path / "folder"))
        with pytest.raises(FileNotFoundError):
            disk.walk(str(tmp_path / "none"))
        with disk.open(str(tmp_path / "f"), lambda: True) as far, pytest.raises(Stopped):
            list(far.blocks(0, 100))


def test_a_lost_machine_is_never_a_verdict(tmp_path: Path) -> None:
    put(tmp_path, {f"{n}.pt": good_zip() for n in range(3)})
    with machine() as start:
        disk = FarDisk(start)
        tree = disk.walk(str(tmp_path))
        start.children[0].kill()
        with pytest.raises(FarLost), Jail(ground=FarGround(start, disk)) as jail:
            examine_tree(tree, Options(jail=jail, digests=True, disk=disk))
    with machine() as start:
        disk = FarDisk(start, silence_s=0.3)
        start.children[0].send_signal(19)  # SIGSTOP: it is there and does not answer
        with pytest.raises(FarLost):
            disk.walk(str(tmp_path))


def test_a_jailed_process_that_dies_leaves_a_gap_while_its_machine_answers(tmp_path: Path) -> None:
    put(tmp_path, {"m.pt": good_zip()})
    with machine() as start, FarDisk(start) as disk:

        class Dying(FarGround):
            def start(self) -> jailer.Running:
                made = super().start()
                start.children[-1].kill()
                return made

        with Jail(ground=Dying(start, disk)) as jail:
            found = examine_tree(disk.walk(str(tmp_path)), Options(jail=jail, disk=disk))
    assert "values-not-checked" in {one.code for one in found.problems}


@pytest.mark.parametrize(
    "line",
    [b"no json\n", b"[]\n", b'{"fd": "x", "size": 3}\n', b'{"fd": 3, "size": -1}\n', b'{"at": 1}\n', b""],
)
def test_what_a_machine_may_answer(line: bytes) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b'{"ready": true, "python": "3.9"}\n' + line)
    if not line or b"at" in line:
        theirs.shutdown(socket.SHUT_WR)
    disk = FarDisk(lambda what: ours)
    with theirs, pytest.raises((FarLost, OSError)):
        disk.open("/x")
    disk.close()


@pytest.mark.parametrize("name", ["far_files", "jail", "confinement", "tensor_values"])
def test_the_programmes_run_on_an_old_python(name: str) -> None:
    """They parse as 3.7, and import nothing but the standard library and what travels with them."""
    tree = ast.parse(Path(far_disk.__file__).with_name(f"{name}.py").read_text(), feature_version=(3, 7))
    nodes = list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)}
    travels = {f"tui.checkpoints.{one}" for one in ("confinement", "tensor_values") if name == "jail"}
    assert {one.partition(".")[0] for one in names - travels} <= set(sys.stdlib_module_names)


def test_a_bundle_runs_without_rgt_and_leaves_no_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", bundle.LOADER, str(len(jailer.programme()))],
        input=jailer.programme(), capture_output=True, cwd=tmp_path, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["ready"] is True
    assert list(tmp_path.iterdir()) == []

"""The numbers are read in a process that can do nothing else, and what is odd about them is told."""

from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.checkpoints.made import (
    by_path,
    floats,
    good_zip,
    looked_at,
    need_numpy,
    need_torch,
    number,
    put,
    safetensors,
    state,
    tensor,
    text,
    torch_zip,
)  # fmt: skip
from tests.real import absent
from tui.checkpoints import confinement
from tui.checkpoints import jail as inside
from tui.checkpoints.contents import Contents
from tui.checkpoints.jailer import Ask, Jail
from tui.checkpoints.source import Stopped
from tui.model.verdict import CheckpointVerdict


@pytest.fixture(scope="module")
def jail() -> Iterator[Jail]:
    need_numpy()
    with Jail() as running:
        yield running


def told(folder: Path, jail: Jail, name: str, raw: bytes) -> CheckpointVerdict:
    put(folder, {name: raw})
    return by_path(looked_at(folder, jail))[name]


NAN, INF = math.nan, math.inf
ONE = struct.pack("<H", 0x3F80)  # 1.0 as bfloat16

NUMBERS: dict[str, tuple[tuple[str, tuple[int, ...], bytes], tuple[int, int]]] = {
    "float32 NaN": (("F32", (3,), floats(1, NAN, 2)), (1, 1)),
    "float32 infinities": (("F32", (3,), floats(-INF, INF, 2)), (2, 0)),
    "float32 that only sums to infinity": (("F32", (3,), floats(3e38, 3e38, 3e38)), (0, 0)),
    "float64 NaN": (("F64", (2,), struct.pack("<2d", NAN, 1)), (1, 1)),
    "float16": (("F16", (3,), struct.pack("<3e", INF, NAN, 1)), (2, 1)),
    "bfloat16": (("BF16", (3,), ONE + b"\xc0\x7f" + b"\x80\xff"), (2, 1)),
    "float8 e5m2": (("F8_E5M2", (3,), b"\x7c\x7f\x3c"), (2, 1)),
    "float8 e4m3": (("F8_E4M3", (3,), b"\x7f\xff\x38"), (2, 2)),
    "complex": (("C64", (1,), floats(1, NAN)), (1, 1)),
    "integers have none": (("I32", (2,), b"\xff" * 8), (0, 0)),
    "bytes have none": (("U8", (4,), b"\x7f\xff\x7f\xff"), (0, 0)),
}


@pytest.mark.parametrize(("described", "counts"), NUMBERS.values(), ids=NUMBERS)
def test_what_is_not_finite_is_counted(
    tmp_path: Path, jail: Jail, described: tuple[str, tuple[int, ...], bytes], counts: tuple[int, int]
) -> None:
    found = told(tmp_path, jail, "m.safetensors", safetensors({"layer.w": described}))
    assert found.values is not None
    assert (found.values.nonfinite, found.values.nan) == counts
    detail = "nan" if counts[1] else "inf" if counts[0] else None
    assert found.detail == detail
    assert found.verdict == ("suspicious" if detail else "ok")
    assert found.incident == ("loss_nan" if detail else None)
    assert found.values.nonfinite_in == (("layer.w",) if detail else ())


def test_numbers_of_a_big_endian_machine_are_read_in_its_order(tmp_path: Path, jail: Jail) -> None:
    pickle = state({"w": tensor("0", (3,))})
    for place, (last, counts) in enumerate(
        ((NAN, (1, 1)), (struct.unpack(">f", b"\0\0\xc0\x7f")[0], (0, 0)))
    ):
        raw = torch_zip(pickle, {"0": struct.pack(">3f", 1, 2, last)}, order=b"big")
        found = told(tmp_path / str(place), jail, "m.pt", raw)
        assert found.values is not None
        assert (found.values.nonfinite, found.values.nan) == counts


def test_a_tensor_under_a_key_that_is_no_text_is_looked_at(tmp_path: Path, jail: Jail) -> None:
    pickle = b"\x80\x02}(" + text("a") + number(1) + b"\x86" + tensor("0", (2,)) + b"u."
    found = told(tmp_path, jail, "m.pt", torch_zip(pickle, {"0": floats(1, NAN)}))
    assert (found.verdict, found.incident) == ("suspicious", "loss_nan")


def test_infinity_on_purpose_is_no_damage(tmp_path: Path, jail: Jail) -> None:
    triangle = floats(*(-INF if column > row else 0.0 for row in range(8) for column in range(8)))
    raw = safetensors(
        {"attn.bias": ("F32", (1, 1, 8, 8), triangle), "best": ("F32", (), floats(INF)),
         "attn.mask": ("F32", (2,), floats(-INF, 0))}
    )  # fmt: skip
    found = told(tmp_path, jail, "m.safetensors", raw)
    assert found.verdict == "ok"
    assert found.values is not None
    assert found.values.masks == 28 + 1 + 1


def test_one_infinity_in_a_small_square_is_no_mask(tmp_path: Path, jail: Jail) -> None:
    raw = safetensors({"w": ("F32", (2, 2), floats(1, INF, 2, 3))})
    assert told(tmp_path, jail, "m.safetensors", raw).code == "suspicious-inf"


DENSE = bytes(1 + n % 250 for n in range(1 << 16))


def padded(zeros: range | None, rows: int = 16) -> bytes:
    """64 KiB of dense data whose header ends on a page, with zeros at these places of the file."""
    header = b'{"w":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,65536]}}' % (rows, 16384 // rows)
    raw = bytearray(struct.pack("<Q", 4096 - 8) + header.ljust(4096 - 8) + DENSE)
    if zeros is not None:
        raw[zeros.start : zeros.stop] = bytes(len(zeros))
    return bytes(raw)


@pytest.mark.parametrize(
    ("zeros", "rows", "code"),
    [
        (None, 16, "ok"),
        (range(4096 + 4096 * 8, 4096 + 4096 * 9), 64, "ok"),  # four rows of a padded table
        (range(8192 + 4096, 8192 + 8192), 1, "suspicious-zero-pages"),
        (range(8192 + 4096, 8192 + 3 * 4096), 1, "suspicious-zero-pages"),
        (range(8192 + 4000, 8192 + 8192 + 700), 1, "ok"),  # no page ends there: a sparse tensor
        (range(4096 + 40960, 4096 + 65536), 1, "suspicious-zero-tail"),
        (range(4096 + 40000, 4096 + 65536), 1, "suspicious-zero-tail"),  # a download stops anywhere
        (range(4096 + 32768, 4096 + 65536), 16, "ok"),  # the last rows of a padded table
        (range(4096 + 65536 - 512, 4096 + 65536), 1, "ok"),
        (range(4096 + 32768, 4096 + 65536), 256, "suspicious-zero-tail"),  # of short rows few begin a page
        (range(4096 + 32768 + 256, 4096 + 65536), 256, "ok"),
    ],
)
def test_lost_pages_show_where_there_is_no_checksum(
    tmp_path: Path, jail: Jail, zeros: range | None, rows: int, code: str
) -> None:
    assert told(tmp_path, jail, "m.safetensors", padded(zeros, rows)).code == code


def test_an_unfinished_download_with_a_whole_header_is_told(tmp_path: Path, jail: Jail) -> None:
    size = 4 << 20
    header = b'{"w":{"dtype":"F32","shape":[1048576],"data_offsets":[0,%d]}}' % size
    with (tmp_path / "m.safetensors").open("wb") as out:
        out.write(struct.pack("<Q", len(header)) + header + DENSE)
        out.truncate(8 + len(header) + size)
    found = by_path(looked_at(tmp_path, jail))["m.safetensors"]
    assert found.code in ("corrupt-preallocated", "suspicious-zero-tail")  # the second: no holes on this disk
    assert found.verdict != "ok"


def test_space_reserved_behind_a_whole_file_is_told_for_what_it_is(tmp_path: Path) -> None:
    with (tmp_path / "m.safetensors").open("wb") as out:
        out.write(safetensors({"w": ("F32", (16384,), DENSE)}))
        out.truncate(8 << 20)
    found = by_path(looked_at(tmp_path))["m.safetensors"]
    assert found.verdict == "corrupt"
    if found.kind == "sparse":  # else this disk keeps no holes
        assert (found.subtype, found.apparent) == ("preallocated", 8 << 20)


def test_zero_and_constant_tensors_are_named(tmp_path: Path, jail: Jail) -> None:
    raw = safetensors(
        {"z": ("F32", (4,), bytes(16)), "c": ("F32", (3,), floats(7, 7, 7)), "w": ("F32", (2,), floats(1, 2))}
    )
    values = told(tmp_path, jail, "m.safetensors", raw).values
    assert values is not None
    assert (values.all_zero_in, values.constant_in) == (("z",), ("c",))


def test_nothing_but_zeros_is_odd_where_it_is_large(tmp_path: Path, jail: Jail) -> None:
    large = safetensors({"w": ("F32", (1 << 16,), bytes(1 << 18))})
    small = safetensors({"lora_B": ("F32", (4,), bytes(16))})
    assert told(tmp_path, jail, "m.safetensors", large).code == "suspicious-all-zero"
    assert told(tmp_path, jail, "a.safetensors", small).code == "ok"


def test_torch_loads_it_and_reads_the_same_numbers(tmp_path: Path, jail: Jail) -> None:
    torch = need_torch()
    torch.save(
        {"w": torch.tensor([[1.0, math.nan], [2.0, 3.0]]).t(), "n": torch.arange(3)}, tmp_path / "m.pt"
    )
    found = by_path(looked_at(tmp_path, jail))["m.pt"]
    assert found.loaded is True
    assert (found.code, found.incident) == ("suspicious-nan", "loss_nan")


def test_numpy_scalars_load_by_the_named_list_and_still_need_it(tmp_path: Path, jail: Jail) -> None:
    torch, numpy = need_torch(), need_numpy()
    torch.save({"w": torch.ones(2), "epoch": numpy.int64(3), "rng": numpy.arange(4)}, tmp_path / "m.pt")
    found = by_path(looked_at(tmp_path, jail))["m.pt"]
    assert (found.verdict, found.danger, found.loaded) == ("needs_allowlist", "low", True)


def test_what_torch_refuses_is_not_called_good(tmp_path: Path, jail: Jail) -> None:
    need_torch()
    wrong_order = good_zip().replace(b"little", b"middle")  # an honest checksum over a lie
    place = wrong_order.index(b"middle")
    assert place > 0
    raw = torch_zip(state({"w": tensor("0", (2,)), "s": b"\x80\x02N"}), {"0": floats(1, 2)})
    assert told(tmp_path, jail, "m.pt", raw).verdict in ("ok", "corrupt")


# the jail itself

PROBE = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("confinement", sys.argv[1])
its = importlib.util.module_from_spec(spec); spec.loader.exec_module(its)
got = its.without_network() + its.limits({"memory": 1 << 30, "cpu": 10}) + its.filtered()
def refused(act):
    try: act()
    except (PermissionError, MemoryError): return True
    return False
import socket
acts = {
    "socket": lambda: socket.socket(),
    "write": lambda: open(sys.argv[2], "w"),
    "append": lambda: open(sys.argv[2], "a"),
    "unlink": lambda: os.unlink(sys.argv[2]), "rename": lambda: os.rename(sys.argv[2], sys.argv[2] + "x"),
    "fork": os.fork,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(os.getppid(), 0),
    "truncate": lambda: os.truncate(sys.argv[2], 0), "chmod": lambda: os.chmod(sys.argv[2], 0),
    "memory": lambda: bytearray(3 << 30),
}
print(" ".join(got), "|", " ".join(name for name, act in acts.items() if not refused(act)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")
def test_whoever_reads_a_file_can_do_nothing_else(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("whole")
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROBE, confinement.__file__, str(victim)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    had, _, did = done.stdout.partition("|")
    if "programs" not in had:
        absent("seccomp is not allowed here")
    assert did.split() == []
    assert victim.read_text() == "whole"


def test_the_verdict_says_what_the_reader_was_kept_from(tmp_path: Path, jail: Jail) -> None:
    found = told(tmp_path, jail, "m.pt", good_zip())
    assert {"memory", "cpu", "writing"} <= set(found.confined)


@pytest.mark.parametrize(
    ("version", "loaded"),
    [("2.5.1", None), ("2.9.1+cu128", None), ("1.13.0", None), ("2.10.0", True), ("3.0.0", True)],
)
def test_an_old_torch_is_not_asked(version: str, loaded: bool | None) -> None:
    calls: list[dict[str, Any]] = []

    class Allowing:
        def __init__(self, _: Any) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    torch = SimpleNamespace(
        __version__=version,
        serialization=SimpleNamespace(safe_globals=Allowing),
        load=lambda path, **options: calls.append(options),
    )
    answer = inside.load(torch, 0, {"allow": [], "legacy": False})
    assert answer["loaded"] is loaded
    assert all(options["weights_only"] is True for options in calls)
    assert len(calls) == (1 if loaded else 0)


def stub(folder: Path, body: str) -> str:
    """An interpreter that behaves as a hostile file might make it behave."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\nimport json, os, signal, sys, time\n{body}\n")
    path.chmod(0o755)
    return str(path)


READY = "print(json.dumps({'ready': True}), flush=True)\n"
DIED_OF = READY + "sys.stdin.readline(); print(json.dumps({'died': %d}), flush=True)"
ANSWERS = {
    "nothing": ("", "values-not-checked"),
    "no JSON": (READY + "sys.stdin.readline(); print('hello', flush=True)", "values-not-checked"),
    "a list": (READY + "sys.stdin.readline(); print('[]', flush=True)", "values-not-checked"),
    "numbers that are none": (
        READY + "sys.stdin.readline(); print(json.dumps({'values': {'nonfinite': 'x'}}), flush=True)",
        "values-not-checked",
    ),
    "too much": (READY + "sys.stdin.readline(); sys.stdout.write('x' * (1 << 23))", "values-not-checked"),
    "its processor time": (DIED_OF % 24, "load-timed-out"),
    "never": (READY + "time.sleep(600)", "load-timed-out"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "code"), ANSWERS.values(), ids=ANSWERS)
def test_a_reader_that_misbehaves_leaves_a_gap_and_no_process(tmp_path: Path, body: str, code: str) -> None:
    began = time.monotonic()
    with Jail(stub(tmp_path, body), patience=0.03) as running:
        answer = running.look(Ask("/dev/null", 10, Contents()))
        process = running._process
    assert [gap[0] for gap in answer.gaps] == [code]
    assert answer.values is None
    assert time.monotonic() - began < 20
    assert process is None or process.ended


def test_a_reader_that_crashes_makes_the_file_suspicious(tmp_path: Path) -> None:
    body = DIED_OF % 11
    put(tmp_path / "files", {"m.pt": good_zip()})
    with Jail(stub(tmp_path, body)) as running:
        found = by_path(looked_at(tmp_path / "files", running))["m.pt"]
    assert (found.verdict, found.code) == ("suspicious", "suspicious-load-crashed")


def test_without_a_reader_the_structure_stands_and_the_gap_is_told(tmp_path: Path) -> None:
    put(tmp_path, {"m.pt": good_zip()})
    found = looked_at(tmp_path, None)
    assert by_path(found)["m.pt"].verdict == "ok"
    assert by_path(found)["m.pt"].nonfinite is None
    assert [p.code for p in found.problems] == ["values-not-checked"]


@pytest.mark.parametrize("hang", ["loading", "hashing"])
def test_an_interrupted_operator_does_not_wait(tmp_path: Path, hang: str) -> None:
    """As after ctrl+c: the first answer comes late, and giving up ends everything at once."""
    put(tmp_path / "files", {"m.pt": good_zip(), "n.pt": good_zip()})
    body = READY + "sys.stdin.readline(); time.sleep(600)"
    began = time.monotonic()

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with Jail(stub(tmp_path, body)) as running:
        if hang == "hashing":
            with pytest.raises(Stopped):
                looked_at(tmp_path / "files", None, digests=True, stop=lambda: True)
        else:
            threading.Timer(0.5, running.close).start()
            gaps = {problem.code for problem in looked_at(tmp_path / "files", running).problems}
            assert "values-not-checked" in gaps
    with pytest.raises(KeyboardInterrupt):
        looked_at(tmp_path / "files", None, progress=interrupt)
    assert time.monotonic() - began < 10


def test_a_jailed_process_ends_with_the_jail(tmp_path: Path) -> None:
    need_numpy()
    put(tmp_path, {"m.safetensors": safetensors({"w": ("F32", (2,), floats(1, 2))})})
    with Jail() as running:
        looked_at(tmp_path, running)
        process = running._process
        assert process is not None
        pid = process._process.pid  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

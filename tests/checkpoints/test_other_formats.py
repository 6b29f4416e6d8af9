"""Files that `torch.save` did not write and that carry weights all the same, or code."""

from __future__ import annotations

import math
import pickle
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints.made import (
    by_path,
    calls,
    floats,
    good_zip,
    looked_at,
    need_torch,
    number,
    put,
    state,
    tensor,
    torch_zip,
    verdict_on,
    with_members,
)
from tui.checkpoints.jailer import Jail
from tui.checkpoints.one_file import judge_file
from tui.checkpoints.pickle_globals import danger


def flipped(raw: bytes, place: int) -> bytes:
    return raw[:place] + bytes([raw[place] ^ 0x10]) + raw[place + 1 :]


def an_array(objects: bytes, descr: bytes = b"'|O'") -> bytes:
    """A ``.npy`` of objects."""
    header = b"{'descr': %s, 'fortran_order': False, 'shape': (1,), }\n" % descr
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + objects


def test_an_array_of_objects_is_a_pickle(tmp_path: Path) -> None:
    array = an_array(calls("posix.system") + b".")
    for name, raw in {"a.npy": array, "b.npz": with_members(("x.npy", array)), "c.pt": array}.items():
        found = verdict_on(tmp_path, name, raw)
        assert (found.verdict, found.globals) == ("unsafe", ("posix.system",))
    plain = array.replace(b"'|O'", b"'|u1'")
    harmless = an_array(pickle.dumps([{"a": 1}]))
    for raw in (plain, harmless, harmless[:-3]):
        assert verdict_on(tmp_path, "a.npy", raw).verdict == "ignore"


def test_arrays_of_objects_are_looked_through_only_so_far(tmp_path: Path) -> None:
    long = an_array(b"]" + b"(N1" * (6 << 20) + b".")
    put(tmp_path, {"a.npz": with_members(("x.npy", long), method=zipfile.ZIP_DEFLATED)})
    began = time.process_time()
    judged = judge_file(str(tmp_path / "a.npz"), "a.npz")
    assert (judged.verdict.verdict, [p.code for p in judged.problems]) == ("ignore", ["pickle-not-scanned"])
    assert time.process_time() - began < 20


HOSTILE = calls("posix.system") + b"."


@pytest.mark.parametrize(
    "descr",
    [b"'O'", b"'object'", b"'<O8'", rb"'\x7cO'", b'"|O"', b"('|O', (1,))", b"[('a', '<f4'), ('b', 'O')]",
     b"'<f4', 'descr': '|O'", rb"'<f4', 'de\x73cr': '|O'"],
)  # fmt: skip
def test_a_type_of_objects_is_known_however_it_is_written(tmp_path: Path, descr: bytes) -> None:
    assert verdict_on(tmp_path, "a.npy", an_array(HOSTILE, descr)).verdict == "unsafe"


@pytest.mark.parametrize(
    "dtype", ["<f4", "|b1", "<c16", "<U5", "|S3", "<M8[ns]", "|V2", [("a", "<f4"), ("b", "<i2", (2, 3))]]
)
def test_numbers_and_rows_of_them_are_no_pickles(tmp_path: Path, dtype: Any) -> None:
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "a.npy", np.zeros(0, dtype=dtype))
    raw = (tmp_path / "a.npy").read_bytes() + HOSTILE
    put(tmp_path, {"a.npy": raw, "b.npz": with_members(("x.npy", raw))})
    assert [(one.verdict, one.code) for one in looked_at(tmp_path).files] == [("ignore", "ignore")] * 2
    assert not {p.code for p in looked_at(tmp_path).problems} - {"no-checkpoint", "nothing-judged"}


def test_no_array_of_objects_hides_in_an_archive(tmp_path: Path) -> None:
    plain, hostile = an_array(b"", b"'<f4'"), an_array(HOSTILE)
    unnamed = with_members(("x.npy", plain), ("y", hostile))
    assert verdict_on(tmp_path, "a.npz", unnamed).verdict == "unsafe"
    damaged = with_members(("w.npy", plain * 99), ("x.npy", hostile), method=zipfile.ZIP_DEFLATED)
    assert verdict_on(tmp_path, "a.npz", damaged.replace(damaged[35:50], b"\xff" * 15, 1)).verdict == "unsafe"
    put(tmp_path, {"a.npz": with_members(("x.npy", hostile), method=zipfile.ZIP_BZIP2)})
    assert [p.code for p in judge_file(str(tmp_path / "a.npz"), "a.npz").problems] == ["pickle-not-scanned"]


TABLE = (
    b'{"config": {"l.w": {"path_name": "weight_0", "use_pickle": false, "tensor_meta": '
    b'{"dtype": 7, "sizes": [{"as_int": 2}]}}}}'
)


def exported(
    weight: bytes = floats(1, 2),
    *,
    nested: bytes = b"",
    config: bytes = TABLE,
    method: int = zipfile.ZIP_STORED,
) -> bytes:
    """What `torch.export.save` would have written."""
    return with_members(
        ("a/data/weights/weight_0", weight), ("a/data/weights/model_weights_config.json", config),
        ("a/models/model.json", b"{}"), ("a/archive_format", b"pt2"),
        ("a/data/sample_inputs/model.pt", nested), method=method,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["m.pt2", "m.pt"])
def test_an_exported_program_is_judged_by_its_weights(tmp_path: Path, name: str) -> None:
    whole = exported()
    found = verdict_on(tmp_path, name, whole)
    assert (found.verdict, found.flavour, found.keys, found.dtypes) == (
        "ok", "exported_program", 1, {"float32": 1},
    )  # fmt: skip
    place = whole.find(floats(1, 2))
    assert verdict_on(tmp_path, name, flipped(whole, place)).subtype == "bitflip"
    for cut in (len(whole) // 2, len(whole) - 1):
        assert verdict_on(tmp_path, name, whole[:cut]).subtype == "truncated"
    assert verdict_on(tmp_path, name, exported(nested=good_zip())).verdict == "ok"
    hostile = exported(nested=good_zip({"x": calls("posix.system")}))
    assert verdict_on(tmp_path, name, hostile).globals == ("posix.system",)


def test_nothing_of_an_exported_program_is_passed_over_in_silence(tmp_path: Path) -> None:
    without_storage = torch_zip(state({"x": calls("posix.system"), "w": tensor("0", (4,))}), {})
    for nested in (without_storage, b"\x80\x02" + HOSTILE):
        assert verdict_on(tmp_path, "m.pt2", exported(nested=nested)).verdict == "unsafe"
    packed_too = exported(nested=good_zip(), method=zipfile.ZIP_DEFLATED)
    assert verdict_on(tmp_path, "m.pt2", packed_too).code == "suspicious-huge-pickle"
    lacking = exported(config=TABLE.replace(b"weight_0", b"weight_1"))
    assert (found := verdict_on(tmp_path, "m.pt2", lacking)).subtype == "bad_zip" and "l.w" in found.reason
    for config in (b"{", b"[]", TABLE.replace(b'[{"as_int": 2}]', b"7"), TABLE.replace(b'"as_int": 2', b"")):
        put(tmp_path, {"m.pt2": exported(config=config)})
        judged = judge_file(str(tmp_path / "m.pt2"), "m.pt2")
        assert judged.verdict.verdict == "ok" and judged.contents is not None and judged.contents.gap


@pytest.mark.slow  # torch takes seconds to trace the smallest program
def test_torchs_own_exported_program_is_good_and_its_numbers_are_read(tmp_path: Path) -> None:
    torch = need_torch()
    program = torch.export.export(torch.nn.Linear(3, 2), (torch.randn(1, 3),))
    torch.export.save(program, tmp_path / "m.pt2")
    with Jail() as jail:
        [found] = looked_at(tmp_path, jail).checkpoints
    assert (found.verdict, found.tensors, found.elements, found.nonfinite) == ("ok", 2, 8, 0)


def a_gguf(*, kind: int = 0, offset: int = 0, data: bytes = floats(1, 2), alignment: int = 32) -> bytes:
    """One tensor of two elements, one text and the alignment."""

    def named(name: bytes) -> bytes:
        return struct.pack("<Q", len(name)) + name

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 3)
    head += named(b"general.architecture") + struct.pack("<I", 8) + named(b"llama")
    head += named(b"tokens") + struct.pack("<IIQ", 9, 8, 2) + named(b"a") + named(b"b")
    head += named(b"general.alignment") + struct.pack("<II", 4, alignment)
    head += named(b"w") + struct.pack("<IQIQ", 1, 2 if kind == 0 else 32, kind, offset)
    return head + bytes(-len(head) % max(alignment, 1)) + data


def test_gguf_is_as_long_as_its_header_says(tmp_path: Path) -> None:
    found = verdict_on(tmp_path, "m.gguf", a_gguf())
    assert (found.verdict, found.format, found.tensors, found.elements) == ("ok", "gguf", 1, 2)
    assert verdict_on(tmp_path, "m.gguf", a_gguf(kind=8, data=bytes(34))).dtypes == {"ggml-8": 1}
    damaged = {"truncated": a_gguf()[:-1], "bad_header": a_gguf(offset=4)}
    damaged_too = {"truncated": a_gguf()[:50], "bad_header": a_gguf(alignment=0)}
    for raws in (damaged, damaged_too):
        for subtype, raw in raws.items():
            assert verdict_on(tmp_path, "m.gguf", raw).subtype == subtype
    assert verdict_on(tmp_path, "m.gguf", a_gguf(kind=200)).code == "ignore"  # how long it is nobody knows
    assert verdict_on(tmp_path, "m.gguf", b"GGUF\x01" + bytes(40)).code == "ignore"  # counts of another width


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_no_cut_of_gguf_is_ever_fine(tmp_path: Path, cut: int) -> None:
    raw = a_gguf()
    assert verdict_on(tmp_path, "m.gguf", raw[: max(8, len(raw) - 1 - cut)]).verdict == "corrupt"


def test_keys_that_are_no_text_count_as_well(tmp_path: Path) -> None:
    raw = b"\x80\x02}(" + number(0) + tensor("0", (4,)) + number(1) + tensor("0", (4,)) + b"u."
    assert verdict_on(tmp_path, "m.pt", torch_zip(raw, {"0": floats(1, 2, 3, 4)})).keys == 2


def test_weights_of_nothing_but_zeros_are_odd_also_in_a_small_net(tmp_path: Path) -> None:
    raw = torch_zip(
        state({"w": tensor("0", (32, 64)), "b": tensor("1", (32,))}), {"0": bytes(8192), "1": bytes(128)}
    )
    (tmp_path / "m.pt").write_bytes(raw)
    with Jail() as jail:
        [found] = looked_at(tmp_path, jail).checkpoints
    assert found.code == "suspicious-all-zero"


@pytest.mark.parametrize(
    "name",
    ["torch._utils._import_dotted_name", "django.utils.module_loading.import_string",
     "hydra.utils.instantiate", "transformers.dynamic_module_utils.get_class_from_dynamic_module"],
)  # fmt: skip
def test_what_imports_by_name_can_do_anything(name: str) -> None:
    assert danger(name) == "high"


def packed(entries: dict[str, tuple[tuple[int, ...], bytes]]) -> bytes:
    """A torch zip that somebody packed anew, as ``zip -r`` does."""
    tensors = {name: tensor(str(key), shape) for key, (name, (shape, _)) in enumerate(entries.items())}
    storages = {str(key): data for key, (_, data) in enumerate(entries.values())}
    return torch_zip(state(tensors), storages, method=zipfile.ZIP_DEFLATED)


def test_numbers_in_packed_members_are_read_as_well(tmp_path: Path) -> None:
    dense = floats(*(0.5 + n for n in range(4000)))
    files = {
        "good.pt": packed({"w": ((4000,), dense), "z": ((8,), bytes(32))}),
        "inf.pt": packed({"w": ((4000,), dense[:-4] + floats(math.inf))}),
        "nan.pt": packed({"w": ((4000,), floats(math.nan) + dense[4:])}),
        "zeros.pt": packed({"w": ((40, 100), bytes(16_000))}),
    }
    put(tmp_path, files)
    with Jail() as jail:
        found = by_path(looked_at(tmp_path, jail))
    told = {path: one.code for path, one in found.items()}
    assert told == {
        "good.pt": "ok", "inf.pt": "suspicious-inf", "nan.pt": "suspicious-nan",
        "zeros.pt": "suspicious-all-zero",
    }  # fmt: skip
    assert found["good.pt"].values is not None and found["good.pt"].values.all_zero_in == ("z",)


def test_what_is_packed_loads_though_torch_cannot_map_it(tmp_path: Path) -> None:
    torch = need_torch()
    torch.save({"w": torch.zeros(128, 128), "b": torch.ones(3)}, tmp_path / "stored.pt")
    with zipfile.ZipFile(tmp_path / "stored.pt") as old:
        members = [(name, old.read(name)) for name in old.namelist()]
    (tmp_path / "stored.pt").unlink()
    put(tmp_path, {"m.pt": with_members(*members, method=zipfile.ZIP_DEFLATED)})
    with Jail() as jail:
        [found] = looked_at(tmp_path, jail).checkpoints
    assert (found.verdict, found.loaded) == ("ok", True)


def test_a_bit_of_the_end_record_shows_where_another_stands_beside_it(tmp_path: Path) -> None:
    torch = need_torch()
    torch.save({"w": torch.ones(3)}, tmp_path / "m.pt")
    raw = (tmp_path / "m.pt").read_bytes()
    end = raw.rindex(b"PK\x05\x06")
    for place in (10, 12, 16):
        judged = verdict_on(tmp_path, "n.pt", flipped(raw, end + place))
        assert (judged.verdict, judged.subtype) == ("corrupt", "bitflip"), place

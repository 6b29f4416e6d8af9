"""What torch wrote, damaged and disguised; most of it made here without torch."""

from __future__ import annotations

import io
import pickle
import struct
import sys
import tarfile
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.checkpoints.made import (
    GOOD_FLOATS,
    a_global,
    calls,
    floats,
    good_safetensors,
    good_zip,
    need_torch,
    number,
    state,
    tensor,
    text,
    torch_zip,
    verdict_on,
    with_members,
)  # fmt: skip
from tui.checkpoints.bit_rot import MAX_BYTES, flipped_bit
from tui.checkpoints.first_bytes import LEGACY_MAGIC
from tui.checkpoints.one_file import judge_file

GOOD = good_zip()


def spans(raw: bytes) -> list[tuple[int, int]]:
    """Where the content of each member lies."""
    found = []
    for info in zipfile.ZipFile(io.BytesIO(raw)).infolist():
        name, extra = struct.unpack_from("<HH", raw, info.header_offset + 26)
        start = info.header_offset + 30 + name + extra
        found.append((start, start + info.compress_size))
    return found


def largest(raw: bytes) -> tuple[int, int]:
    return max(spans(raw), key=lambda span: span[1] - span[0])


def flipped(raw: bytes, place: int, bits: int = 0x10) -> bytes:
    return raw[:place] + bytes([raw[place] ^ bits]) + raw[place + 1 :]


def zeroed(raw: bytes, start: int, length: int) -> bytes:
    return raw[:start] + bytes(length) + raw[start + length :]


START, END = largest(GOOD)
DIRECTORY = GOOD.index(b"PK\x01\x02")

DAMAGED = {
    "one byte less": (GOOD[:-1], "truncated"),
    "half": (GOOD[: len(GOOD) // 2], "truncated"),
    "only its begin": (GOOD[:40], "truncated"),
    "one bit of a tensor": (flipped(GOOD, START + 77), "bitflip"),
    "one bit of the pickle": (flipped(GOOD, spans(GOOD)[0][0] + 9), "bitflip"),
    "a sector of a tensor": (zeroed(GOOD, START + 1024, 512), "zero_block"),
    "a tensor": (zeroed(GOOD, START, END - START), "zero_block"),
    "a local header": (zeroed(GOOD, START - 40, 40), "zero_block"),
    "one bit of a local header": (flipped(GOOD, 1), "bitflip"),
    "one bit of a member's name": (flipped(GOOD, 33), "bitflip"),
    "one bit of the directory": (flipped(GOOD, DIRECTORY + 2), "bitflip"),
    "the directory": (zeroed(GOOD, DIRECTORY, 60), "zero_block"),
    "its end, never written": (zeroed(GOOD, len(GOOD) - 5000, 5000), "preallocated"),
    "reserved and never written": (GOOD + bytes(70_000), "preallocated"),
    "its begin": (zeroed(GOOD, 0, 64), "zero_block"),
    "its first page": (zeroed(GOOD, 0, 4096), "zero_block"),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "subtype"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named(tmp_path: Path, raw: bytes, subtype: str) -> None:
    found = verdict_on(tmp_path, "m.pt", raw)
    assert (found.verdict, found.subtype, found.incident) == ("corrupt", subtype, "ckpt_corrupt"), (
        found.reason
    )


ZEROS = torch_zip(state({"exp_avg": tensor("0", (1000,))}), {"0": bytes(4000)})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(byte=st.integers(0, 3999), bit=st.integers(0, 7))
def test_one_flipped_bit_is_found_also_among_zeros(tmp_path: Path, byte: int, bit: int) -> None:
    start, _ = largest(ZEROS)
    found = verdict_on(tmp_path, "m.pt", flipped(ZEROS, start + byte, 1 << bit))
    assert found.subtype == "bitflip"
    assert f"bit {bit} of its byte {byte} " in found.reason


@pytest.mark.parametrize("length", [1, 7, 2049, MAX_BYTES])
def test_a_bit_is_found_at_any_distance_and_other_damage_is_not_one(length: int) -> None:
    data = bytearray(length)
    right = zlib.crc32(data)
    for byte in {0, length // 2, length - 1}:
        data[byte] ^= 0x20
        assert flipped_bit(right, zlib.crc32(data), length) == (byte, 5)
        data[byte] ^= 0x20
    data[0] ^= 0x55
    assert flipped_bit(right, zlib.crc32(data), length) is None
    assert flipped_bit(right, right, length) is None


PICKLE = state({"w": tensor("0", (4,))})
FOUR = floats(1, 2, 3, 4)

CONTRADICTIONS = {
    "no such storage": (torch_zip(PICKLE, {}), "bad_zip"),
    "a storage too small": (torch_zip(PICKLE, {"0": FOUR[:-4]}), "bad_zip"),
    "beyond its storage": (torch_zip(state({"w": tensor("0", (4,), count=2)}), {"0": FOUR}), "bad_pickle"),
    "no pickle in data.pkl": (torch_zip(b"hello", {}), "bad_pickle"),
    "a pickle cut short": (torch_zip(PICKLE[:-9], {"0": FOUR}), "bad_pickle"),
    "no data.pkl": (with_members(("m/data/0", FOUR), ("m/version", b"3")), "not_torch"),
    "an archive of documents": (with_members(("readme.txt", b"hello")), "not_torch"),
}


@pytest.mark.parametrize(("raw", "subtype"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_parts_that_do_not_fit_are_named(tmp_path: Path, raw: bytes, subtype: str) -> None:
    assert verdict_on(tmp_path, "m.pt", raw).subtype == subtype


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    raw = with_members(
        ("m/data.pkl", PICKLE), ("m/data/0", FOUR), ("m/data.pkl", state({"x": calls("os.system")}))
    )
    assert verdict_on(tmp_path, "m.pt", raw).verdict in ("corrupt", "unsafe")


def test_members_that_share_bytes_are_refused(tmp_path: Path) -> None:
    raw = bytearray(
        torch_zip(state({"w": tensor("0", (4,)), "v": tensor("1", (4,))}), {"0": FOUR, "1": FOUR})
    )
    entries = [place for place in range(len(raw)) if raw[place : place + 4] == b"PK\x01\x02"]
    one, other = entries[2], entries[3]
    raw[other + 42 : other + 46] = raw[one + 42 : one + 46]
    assert verdict_on(tmp_path, "m.pt", bytes(raw)).verdict == "corrupt"


ODD = {
    "written twice": (GOOD + GOOD, "data_before_zip"),
    "written three times": (GOOD * 3, "data_before_zip"),
    "behind a header": (b"HTTP/1.1 200 OK\r\n\r\n" + GOOD, "data_before_zip"),
    "something behind it": (GOOD + b"\r\n", "data_after_zip"),
    "a page behind it": (GOOD + b"x" * 4096, "data_after_zip"),
    "a second pickle": (
        torch_zip(PICKLE + state({"x": calls("posix.system")}), {"0": FOUR}),
        "data_after_pickle",
    ),
    "a newer pickle": (torch_zip(b"\x80\x04" + PICKLE[2:-1] + b"\x94.", {"0": FOUR}), "pickle_protocol"),
}


@pytest.mark.parametrize(("raw", "detail"), ODD.values(), ids=ODD)
def test_what_loads_and_is_odd_is_told(tmp_path: Path, raw: bytes, detail: str) -> None:
    found = verdict_on(tmp_path, "m.pt", raw)
    assert (found.verdict, found.detail) == ("suspicious", detail), found.reason


def test_a_packed_archive_is_as_good_as_a_stored_one(tmp_path: Path) -> None:
    raw = torch_zip(state({"w": tensor("0", (64, 32))}), {"0": GOOD_FLOATS}, method=zipfile.ZIP_DEFLATED)
    assert verdict_on(tmp_path, "m.pt", raw).verdict == "ok"
    start, end = largest(raw)
    assert verdict_on(tmp_path, "m.pt", flipped(raw, (start + end) // 2)).subtype == "bitflip"


def test_a_bomb_is_not_expanded(tmp_path: Path) -> None:
    pickled = state({"w": tensor("0", (25_000_000,))})
    raw = torch_zip(pickled, {"0": bytes(100_000_000)}, method=zipfile.ZIP_DEFLATED)
    began = time.process_time()
    assert verdict_on(tmp_path, "m.pt", raw).code == "suspicious-zip-bomb"
    assert time.process_time() - began < 2


def test_a_hundred_thousand_members_are_not_read(tmp_path: Path) -> None:
    one = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    count = 600_000
    begin = b"PK\x03\x04" + bytes(22) + struct.pack("<HH", 10, 0) + b"m/data.pkl"
    end = struct.pack(
        "<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(one) * count, len(begin)
    )
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(begin) + len(one) * count, 1)
    raw = (
        begin
        + one * count
        + end
        + locator
        + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0, 0, 0)
    )
    began = time.process_time()
    assert verdict_on(tmp_path, "m.pt", raw).code == "suspicious-too-many-parts"
    assert time.process_time() - began < 2


def a_tar(**members: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


OLD_BEGIN = b"\x80\x02" + LEGACY_MAGIC
"""The first pickle of the format before torch 1.6."""

LONG = b"\x80\x02B" + (9 << 20).to_bytes(4, "little") + bytes(9 << 20) + b"."
"""A pickle of nine million zero bytes."""


@pytest.mark.parametrize("before", [b"\x80\x02}." * 1001, b"\x80\x02}." + LONG], ids=["many", "long"])
def test_pickles_beyond_what_is_looked_through_are_told(tmp_path: Path, before: bytes) -> None:
    behind = {"a.pkl": b"", "b.pkl": b"\x80\x02" + calls("posix.system") + b"."}
    for name, raw in behind.items():
        (tmp_path / name).write_bytes(before + raw)
        judged = judge_file(str(tmp_path / name), name)
        assert judged.verdict.verdict == "ignore"
        assert [one.code for one in judged.problems] == (["pickle-not-scanned"] if raw else [])


OLD_TAR = {"sys_info": b"\x80\x02}.", "storages": b"\x80\x02K\0.", "tensors": b"\x80\x02K\0."}

HOSTILE = {
    "a zip": good_zip({"x": calls("posix.system")}),
    "a damaged zip": flipped(good_zip({"x": calls("posix.system")}), START + 700),
    "a zip without its end": good_zip({"x": calls("posix.system")})[:2000],
    "a further pickle in the zip": with_members(
        ("m/data.pkl", PICKLE), ("m/data/0", FOUR), ("m/extra.pkl", calls("posix.system") + b".")
    ),
    "a packed zip": torch_zip(state({"x": calls("posix.system")}), {}, method=zipfile.ZIP_DEFLATED),
    "written twice": good_zip({"x": calls("posix.system")}) * 2,
    "a torch.package": with_members(("p/.data/extern_modules", b"torch"), ("p/model.pkl", b"\x80\x02N.")),
    "the tar of old": a_tar(pickle=state({"x": calls("posix.system")}), **OLD_TAR),
    "a bare pickle": b"\x80\x02" + calls("posix.system") + b".",
    "an old pickle": b"cposix\nsystem\n(S'true'\ntR.",
    "a pickle cut short": b"\x80\x04\x95" + bytes(8) + b"\x8c\x05posix\x8c\x06system\x93\x8c",
    "text that is a pickle": b"(S'hello'\nios\nsystem\n.",
    "behind a harmless pickle": b"\x80\x02}." + b"\x80\x02" + calls("posix.system") + b".",
    "in the writer's system of the old format": OLD_BEGIN + b"\x80\x02M\xe9\x03."
    + calls("posix.system") + b".\x80\x02}.\x80\x02].",
    "the same, and then damage": OLD_BEGIN + b"\x80\x02M\xe9\x03." + calls("posix.system") + b".#",
}  # fmt: skip


@pytest.mark.parametrize("name", ["m.pt", "m.ckpt", "m.pkl"])
@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_what_would_run_code_is_unsafe_under_any_name(tmp_path: Path, raw: bytes, name: str) -> None:
    found = verdict_on(tmp_path, name, raw)
    assert (found.verdict, found.danger, found.code) == ("unsafe", "high", "unsafe-pickle")


def test_the_tar_of_old_is_named_and_not_called_damaged(tmp_path: Path) -> None:
    found = verdict_on(tmp_path, "m.pth", a_tar(pickle=b"\x80\x02}.", **OLD_TAR))
    assert (found.verdict, found.detail, found.format) == ("suspicious", "torch_tar", "torch_tar")
    cut = a_tar(pickle=b"\x80\x02}", **OLD_TAR)
    assert (verdict_on(tmp_path, "m.pth", cut).verdict) == "corrupt"
    assert verdict_on(tmp_path, "m.pth", a_tar(readme=b"hello")).subtype == "wrong_format"


def test_a_zip_with_code_is_unsafe_without_any_ending(tmp_path: Path) -> None:
    assert verdict_on(tmp_path, "blob", good_zip({"x": calls("posix.system")})).verdict == "unsafe"


def test_types_beside_the_weights_need_an_allow_list(tmp_path: Path) -> None:
    arguments = a_global("argparse.Namespace") + b")\x81}" + text("lr") + number(1) + b"sb"
    found = verdict_on(tmp_path, "m.pt", good_zip({"args": arguments, "k": calls("my.package.Thing")}))
    assert (found.verdict, found.danger) == ("needs_allowlist", "medium")
    assert found.globals == ("argparse.Namespace", "my.package.Thing")
    assert found.tensors == 2


NOT_CHECKPOINTS = {
    "notes.txt": b"hello",
    "results.zip": with_members(("a.csv", b"1,2")),
    "results-cut.zip": with_members(("a.csv", b"1,2"))[:30],
    "results-packed-otherwise.zip": with_members(("a.csv", b"1,2" * 99), method=zipfile.ZIP_BZIP2),
    "aoti.pt2": with_members(("m/archive_format", b"pt2"), ("m/data/aotinductor/model/x.so", b"\x7fELF")),
    "predictions.npz": with_members(("p.npy", b"\x93NUMPY\x01\x00")),
    "train.bin": bytes(range(256)) * 8,
    "vocabulary.bin": b"not\nfound\nerrors\n" * 400,
    "data.pkl": pickle.dumps({"a": 1}),
    "scaler.pkl": pickle.dumps([1.0, 2.0], 4),
    "config.json": b'{"error": null}',
    "page.html": b"<!DOCTYPE html><html></html>",
    "model.tar.gz": b"\x1f\x8b\x08" + bytes(60),
    "._model.pt": b"\0\x05\x16\x07\0\2\0\0Mac OS X" + bytes(60),
    "m.keras": with_members(("metadata.json", b"{}")),
    "m.pdparams": pickle.dumps({"w": [1.0]}, 2),
    "venv/lib/python3.11/site-packages/x.pth": b"/home/u/project\n",
    "empty.txt": b"",
    "_SUCCESS": b"",
    "checkpoint-10.lock": b"",
}


@pytest.mark.parametrize(("name", "raw"), NOT_CHECKPOINTS.items(), ids=NOT_CHECKPOINTS)
def test_what_is_no_checkpoint_is_left_alone(tmp_path: Path, name: str, raw: bytes) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    assert verdict_on(tmp_path, name, raw).verdict == "ignore"


LEFT_BEHIND = {
    "a page": ("m.pt", b"\n  <html><head></head></html>", "html"),
    "a page with a byte order mark": ("m.ckpt", b"\xef\xbb\xbf<!doctype HTML>", "html"),
    "XHTML": ("m.pth", b'<?xml version="1.0"?><!DOCTYPE html><html></html>', "html"),
    "an object store's answer": ("pytorch_model.bin", b"<Error><Code>NoSuchKey</Code></Error>", "xml"),
    "an API's answer": ("model.safetensors", b' {\n "message": "Bad credentials"}', "json"),
    "a pointer": ("model.safetensors", b"version https://git-lfs.github.com/spec/v1\nsize 7", "lfs_pointer"),
    "a pointer with CRLF": (
        "m.pt", b"version https://git-lfs.github.com/spec/v1\r\noid sha256:ab\r\nsize 7\r\n", "lfs_pointer"
    ),
    "git-annex, unlocked": ("m.pt", b"../../.git/annex/objects/Xx/9k/SHA256E-s1--ab.pt", "annex_pointer"),
    "three bytes of a zip": ("m.pt", b"PK\x03", "truncated"),
    "some bytes of the old magic number": ("m.ckpt", b"\x80\x02\x8a\x0al\xfc", "truncated"),
    "git-annex": ("m.pt", b"/annex/objects/SHA256E-s438012345--ab.pt\n", "annex_pointer"),
    "a sentence": ("m.pt", "Zugriff verweigert – bitte anmelden\n".encode(), "text"),
    "a raw host's answer": ("weights.bin", b"404: Not Found", "text"),
    "nothing": ("m.pth", b"", "empty"),
    "an image": ("m.pt", b"\x89PNG\r\n\x1a\n" + bytes(range(200)), "not_torch"),
    "gzip": ("m.pt", b"\x1f\x8b\x08\0" + bytes(range(200)), "wrong_format"),
    "a tar of the old days": ("m.pth", bytes(100) + b"x" * 157 + b"ustar" + bytes(200), "wrong_format"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "raw", "subtype"), LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_what_a_failed_download_leaves_is_named(tmp_path: Path, name: str, raw: bytes, subtype: str) -> None:
    found = verdict_on(tmp_path, name, raw)
    assert (found.verdict, found.subtype) == ("corrupt", subtype), found.reason


def test_a_file_that_may_not_be_read_is_unknown_and_not_damaged(tmp_path: Path) -> None:
    found = judge_file(str(tmp_path / "gone.pt"), "gone.pt").verdict
    assert (found.verdict, found.code) == ("incomplete", "not-readable")


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_to_a_member_is_ever_fine(tmp_path: Path, data: st.DataObject) -> None:
    start, end = data.draw(st.sampled_from(spans(GOOD)))
    place = data.draw(st.integers(start, end - 1))
    length = data.draw(st.integers(1, end - place))
    new = data.draw(st.binary(min_size=length, max_size=length) | st.just(bytes(length)))
    raw = GOOD[:place] + new + GOOD[place + length :]
    assert (verdict_on(tmp_path, "m.pt", raw).verdict == "ok") == (raw == GOOD)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, len(GOOD) - 1), begin=st.integers(0, 40), tail=st.binary(max_size=30))
def test_no_cut_and_no_appended_byte_is_ever_fine(tmp_path: Path, cut: int, begin: int, tail: bytes) -> None:
    for raw in (GOOD[:cut], GOOD[:cut] + tail, GOOD + tail + b"x", GOOD[begin + 1 :]):
        if raw != GOOD:
            assert verdict_on(tmp_path, "m.pt", raw).verdict != "ok"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    raw=st.sampled_from([GOOD, good_safetensors(), *HOSTILE.values()]),
    name=st.sampled_from(["m.pt", "m.safetensors", "m.pkl", "m.bin", "m"]),
    edits=st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), max_size=6),
    cut=st.none() | st.integers(0, 1 << 14),
)
def test_whatever_a_file_holds_nothing_is_raised(
    tmp_path: Path, raw: bytes, name: str, edits: list[tuple[int, int]], cut: int | None
) -> None:
    damaged = bytearray(raw)
    for place, value in edits:
        damaged[place % len(damaged)] = value
    verdict_on(tmp_path, name, bytes(damaged[:cut]))


# what torch itself writes


def saved(value: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    need_torch().save(value, out, **options)
    return out.getvalue()


def weights() -> dict[str, Any]:
    torch = need_torch()
    return {"w": torch.randn(33, 7), "b": torch.zeros(5), "i": torch.arange(6)}


def test_torchs_own_files_and_damage_to_each_of_their_bytes(tmp_path: Path) -> None:
    raw = saved(weights())
    assert verdict_on(tmp_path, "m.pt", raw).verdict == "ok"
    for start, end in spans(raw):
        for place in range(start, end, 7):
            assert verdict_on(tmp_path, "m.pt", flipped(raw, place)).verdict == "corrupt"


def test_saved_without_checksums_is_told_and_not_called_damaged(tmp_path: Path) -> None:
    need_torch()
    from torch.utils.serialization import config

    with config.patch({"save.compute_crc32": False}):
        raw = saved(weights())
    path = tmp_path / "m.pt"
    path.write_bytes(raw)
    judged = judge_file(str(path), "m.pt")
    assert (judged.verdict.verdict, judged.verdict.crc) == ("ok", "none-recorded")
    assert [problem.code for problem in judged.problems] == ["crc-not-recorded"]
    assert judged.unchecked


@pytest.mark.filterwarnings("ignore:.*quantize.*:UserWarning")
def test_every_kind_of_tensor_torch_saves_is_understood(tmp_path: Path) -> None:
    torch = need_torch()
    one = torch.randn(4, 6)
    many = {
        "view": one[1:, ::2], "transposed": one.t(), "tied": one, "parameter": torch.nn.Parameter(one),
        "sparse": torch.eye(3).to_sparse(), "bf16": one.bfloat16(), "f8": one.to(torch.float8_e4m3fn),
        "complex": torch.zeros(2, dtype=torch.complex64), "u16": torch.zeros(2, dtype=torch.uint16),
        "meta": torch.empty(3, device="meta"), "size": torch.Size([1, 2]), "device": torch.device("cpu"),
        "type": torch.float32, "scalar": torch.tensor(3.0), "none": torch.empty(0), "set": {1, 2},
        "quantised": torch.quantize_per_tensor(one, 0.1, 0, torch.qint8),
    }  # fmt: skip
    for legacy in (False, True):
        raw = saved(many, _use_new_zipfile_serialization=not legacy)
        found = verdict_on(tmp_path, "m.pt", raw)
        assert found.verdict == "ok", found.reason
        assert found.format == ("torch_legacy" if legacy else "torch_zip")


def test_the_old_format_is_measured_to_its_last_byte(tmp_path: Path) -> None:
    raw = saved(weights(), _use_new_zipfile_serialization=False)
    assert verdict_on(tmp_path, "m.pt", raw).verdict == "ok"
    assert verdict_on(tmp_path, "m.pt", raw + b"x").detail == "data_after_end"
    for cut in range(1, len(raw), 11):
        found = verdict_on(tmp_path, "m.pt", raw[:cut])
        assert found.verdict == "corrupt"
        assert found.subtype == "truncated" or cut < 24


def test_the_step_and_the_epoch_of_a_name_and_of_the_content(tmp_path: Path) -> None:
    raw = saved({"state_dict": weights(), "epoch": 3, "global_step": 12, "pytorch-lightning_version": "2"})
    found = verdict_on(tmp_path, "epoch=09-step=77.ckpt", raw)
    assert (found.epoch, found.step, found.flavour) == (3, 12, "lightning")
    bare = verdict_on(tmp_path, "step_100.pt", saved(weights()))
    assert (bare.epoch, bare.step) == (None, 100)
    assert verdict_on(tmp_path, "vit16.pt", saved(weights())).step is None


@pytest.mark.skipif(sys.platform != "linux", reason="counts anonymous memory as Linux does")
def test_a_large_file_costs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    size = 1 << 30
    header = b'{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (size, size)
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        out.truncate(8 + len(header) + size)

    def anonymous() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))

    before = anonymous()
    assert judge_file(str(path), "m.safetensors").verdict.verdict == "ok"
    assert anonymous() - before < 20 << 10

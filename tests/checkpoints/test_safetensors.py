"""A safetensors file is its header's arithmetic; the library is the second opinion where it is installed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.checkpoints.made import floats, good_safetensors, safetensors, verdict_on, with_header

W = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
EMPTY = b'{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
BODY = floats(1, 2)
GOOD = good_safetensors()


def entry(**change: Any) -> dict[str, Any]:
    return {"w": {**W, **change}}


BAD: dict[str, tuple[bytes, str]] = {
    "begins with a hole": (with_header({"w": {**W, "data_offsets": [8, 16]}}, BODY * 2), "bad_header"),
    "overlap": (with_header({"w": W, "v": {**W, "data_offsets": [4, 12]}}, BODY + BODY[:4]), "bad_header"),
    "the same bytes twice": (with_header({"w": W, "v": W}, BODY), "bad_header"),
    "hole between": (with_header({"w": W, "v": {**W, "data_offsets": [12, 20]}}, BODY * 3), "bad_header"),
    "name twice": (with_header(b'{"w":%b,"w":%b}' % (EMPTY, EMPTY)), "bad_header"),
    "key twice": (with_header(b'{"w":%b}' % EMPTY.replace(b"{", b'{"dtype":"U8",')), "bad_header"),
    "offsets backwards": (with_header(entry(data_offsets=[8, 0]), BODY), "bad_header"),
    "negative": (with_header(entry(shape=[-2])), "bad_header"),
    "floats": (with_header(entry(shape=[2.0]), BODY), "bad_header"),
    "booleans": (with_header(entry(shape=[True], data_offsets=[0, 4]), BODY[:4]), "bad_header"),
    "shape too large": (with_header(entry(shape=[1 << 61, 1 << 61]), BODY), "bad_header"),
    "unknown field": (with_header({"w": {**W, "stride": [1]}}, BODY), "bad_header"),
    "no shape": (with_header({"w": {"dtype": "F32", "data_offsets": [0, 8]}}, BODY), "bad_header"),
    "half a byte": (with_header(entry(dtype="F4", shape=[3], data_offsets=[0, 2]), b"xx"), "bad_header"),
    "metadata no texts": (with_header({"__metadata__": {"a": 1}, "w": W}, BODY), "bad_header"),
    "metadata a list": (with_header({"__metadata__": [], "w": W}, BODY), "bad_header"),
    "a list": (with_header(b"[1,2,3]"), "bad_header"),
    "nothing but brackets": (with_header(b'{"w":' + b"[" * 100_000), "bad_header"),
    "not UTF-8": (with_header(b'{"\xff\xfe":{}}'), "bad_header"),
    "text behind it": (with_header(b'{} {"w"'), "bad_header"),
    "length of 2^63": (struct.pack("<Q", 1 << 63) + GOOD[8:], "bad_header"),
    "length one short": (struct.pack("<Q", struct.unpack("<Q", GOOD[:8])[0] - 1) + GOOD[8:], "bad_header"),
    "only the length": (GOOD[:8], "truncated"),
    "one byte less": (GOOD[:-1], "truncated"),
    "one byte more": (GOOD + b"\0", "trailing"),
    "a page of it gone": (bytes(4096) + GOOD, "zero_block"),
    "nothing but zeros": (bytes(4096), "zeros"),
    "gzip": (b"\x1f\x8b\x08" + bytes(100), "wrong_format"),
    "an old torch.save": (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "wrong_format"),
    "a model card": (b"---\nlicense: mit\n---\n# A model\n", "bad_header"),
    "an error": (b'{"error":"Entry not found"}', "json"),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "subtype"), BAD.values(), ids=BAD)
def test_what_breaks_the_format_is_named(tmp_path: Path, raw: bytes, subtype: str) -> None:
    found = verdict_on(tmp_path, "m.safetensors", raw)
    assert (found.verdict, found.subtype, found.kind) == ("corrupt", subtype, "safetensors")


FINE = {
    "every type": safetensors(
        {
            d: (d, (2,), bytes(2 * n))
            for d, n in (("BOOL", 1), ("I64", 8), ("F8_E4M3", 1), ("BF16", 2), ("C64", 8))
        }
    ),
    "padded header": with_header(b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}     ', b"x"),
    "sub-byte types": safetensors({"w": ("F4", (4,), b"xx")}),
    "empty tensors": safetensors(
        {"a": ("F32", (0, 7), b""), "b": ("F32", (), floats(1)), "c": ("F32", (0,), b"")}
    ),
    "escapes in names": with_header(b'{"\\u00e9\\"]}":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', b"x"),
    "any order": with_header({"v": {**W, "data_offsets": [8, 16]}, "w": W}, BODY * 2),
    "metadata last": with_header({"w": W, "__metadata__": {"a}": '{"b'}}, BODY),
    "no tensors": with_header({}),
}


@pytest.mark.parametrize("raw", FINE.values(), ids=FINE)
def test_what_the_format_allows_is_fine(tmp_path: Path, raw: bytes) -> None:
    assert verdict_on(tmp_path, "m.safetensors", raw).verdict == "ok"


def test_what_a_good_file_holds_is_told(tmp_path: Path) -> None:
    raw = safetensors(
        {"module.w": ("BF16", (2, 3), bytes(12)), "module.b": ("F32", (3,), bytes(12))}, {"step": "40"}
    )
    found = verdict_on(tmp_path, "m.safetensors", raw)
    assert (found.keys, found.tensors, found.elements, found.step) == (2, 2, 9, 40)
    assert (found.prefix, found.dtypes) == ("module.", {"bfloat16": 1, "float32": 1})


def test_a_renamed_file_is_told(tmp_path: Path) -> None:
    assert verdict_on(tmp_path, "m.pt", GOOD).subtype == "wrong_format"
    assert verdict_on(tmp_path, "0123abcd", GOOD).verdict == "ok"  # a cache's name: judged by its content
    assert (
        verdict_on(tmp_path, "0123abcd", GOOD[:-1]).verdict == "ignore"
    )  # and damaged, it could be anything


def test_a_header_of_megabytes_is_not_read(tmp_path: Path) -> None:
    huge = with_header(b'{"__metadata__":{"a":"' + b"x" * (9 << 20) + b'"}}')
    assert verdict_on(tmp_path, "m.safetensors", huge).code == "suspicious-huge-header"


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255), cut=st.integers(0, len(GOOD)))
def test_agrees_with_the_library_on_damaged_files(tmp_path: Path, place: int, value: int, cut: int) -> None:
    library = pytest.importorskip("safetensors")
    raw = bytearray(GOOD)
    raw[place] = value
    raw = raw[:cut] if cut % 3 == 0 else raw
    try:
        library.deserialize(bytes(raw))
        opens = True
    except library.SafetensorError:
        opens = False
    assert (verdict_on(tmp_path, "m.safetensors", bytes(raw)).verdict == "ok") == opens

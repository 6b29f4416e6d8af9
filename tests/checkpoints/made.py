"""Files made for the tests, byte by byte; torch is only needed where a test says so."""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real import absent
from tui.checkpoints.examine import Options, examine
from tui.checkpoints.jailer import Jail
from tui.checkpoints.one_file import judge_file
from tui.model.verdict import CheckpointVerdict, Examination


def need_torch() -> Any:
    """torch, or the test is skipped."""
    try:
        import torch
    except ImportError:
        absent("torch is not installed")
        raise
    return torch


def need_numpy() -> Any:
    try:
        import numpy
    except ImportError:
        absent("NumPy is not installed")
        raise
    return numpy


# pickles


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def a_global(name: str) -> bytes:
    module, _, attribute = name.rpartition(".")
    return f"c{module}\n{attribute}\n".encode()


def sizes(shape: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(number(n) for n in shape) + b"t"


def tensor(
    key: str, shape: tuple[int, ...], storage: str = "FloatStorage", count: int | None = None
) -> bytes:
    """A contiguous tensor over a storage of its own."""
    stride = tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))
    count = math.prod(shape) if count is None else count
    reference = (
        b"("
        + text("storage")
        + a_global(f"torch.{storage}")
        + text(key)
        + text("cpu")
        + number(count)
        + b"tQ"
    )
    rest = number(0) + sizes(shape) + sizes(stride) + b"\x89" + a_global("collections.OrderedDict") + b")R"
    return a_global("torch._utils._rebuild_tensor_v2") + b"(" + reference + rest + b"tR"


def state(entries: Mapping[str, bytes]) -> bytes:
    """A whole pickle of a dict with text keys."""
    return b"\x80\x02}(" + b"".join(text(key) + value for key, value in entries.items()) + b"u."


def calls(name: str, argument: str = "true") -> bytes:
    """What a hostile ``__reduce__`` leaves in a pickle."""
    return a_global(name) + text(argument) + b"\x85R"


# files


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def torch_zip(
    pickle: bytes,
    storages: Mapping[str, bytes],
    *,
    method: int = zipfile.ZIP_STORED,
    order: bytes = b"little",
) -> bytes:
    """What ``torch.save`` would have written, by the standard library's zip writer."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        members = {"data.pkl": pickle, "byteorder": order, "version": b"3\n"}
        for name, data in (members | {f"data/{key}": data for key, data in storages.items()}).items():
            info = zipfile.ZipInfo(f"m/{name}")  # its own time, so that every call gives the same bytes
            info.compress_type = method
            archive.writestr(info, data)
    return out.getvalue()


def with_members(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Any zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


GOOD_FLOATS = floats(*(0.5 + n for n in range(2048)))


def good_zip(extra: Mapping[str, bytes] | None = None) -> bytes:
    """Two tensors and whatever else."""
    entries = {"w": tensor("0", (64, 32)), "b": tensor("1", (2,)), **(extra or {})}
    return torch_zip(state(entries), {"0": GOOD_FLOATS, "1": floats(1.0, 2.0)})


def listed_parts(file: str, *places: tuple[int, int]) -> bytes:
    """A ``.metadata`` of `torch.distributed.checkpoint` that says only where parts lie in one file."""
    info = a_global("torch.distributed.checkpoint.filesystem._StorageInfo") + b")\x81}("
    items = (
        info + text("relative_path") + text(file) + text("offset") + number(start)
        + text("length") + number(length) + b"ub"
        for start, length in places
    )  # fmt: skip
    return b"\x80\x02](" + b"".join(items) + b"e."


def safetensors(
    tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """A file that follows the format."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    body = b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    return with_header(header, body)


def with_header(header: Any, body: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(raw)) + raw + body


def good_safetensors(names: tuple[str, ...] = ("w", "b")) -> bytes:
    return safetensors({name: ("F32", (4,), floats(1, 2, 3, 4)) for name in names}, {"format": "pt"})


# verdicts


def verdict_on(folder: Path, name: str, data: bytes) -> CheckpointVerdict:
    """What is said of one file by its structure alone."""
    path = os.path.join(os.fsencode(folder), os.fsencode(name))
    with open(path, "wb") as out:
        out.write(data)
    return judge_file(os.fsdecode(path), name).verdict


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def looked_at(folder: Path, jail: Jail | None = None, **options: Any) -> Examination:
    return examine(str(folder), Options(jail=jail, **options))


def by_path(found: Examination) -> dict[str, CheckpointVerdict]:
    return {one.path: one for one in found.checkpoints}

"""What ``torch.export.save`` writes: a zip of raw weights with a table of them, and the program as JSON.

Members below one folder (torch/export/pt2_archive/constants.py of torch 2.13): ``archive_format``,
``models/*.json``, ``data/weights/weight_N`` with ``data/weights/*_weights_config.json``, constants likewise,
``data/sample_inputs/*.pt``. Until torch 2.7: ``serialized_exported_program.json`` beside pickled state dicts.
A package of AOTInductor is machine code and none of this.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tui.checkpoints.contents import Contents, prefix_of
from tui.checkpoints.pickle_globals import danger, refused
from tui.checkpoints.pickle_reader import Pickle, PickleTooLong
from tui.checkpoints.source import Part, Source
from tui.checkpoints.tensors import BITS, Span, row_of
from tui.checkpoints.torch_zip import Contradiction, NotTorch, TorchZip, read_torch_zip
from tui.checkpoints.zip_directory import (
    STORED,
    BadZip,
    Directory,
    Member,
    TooManyMembers,
    locate,
    read_directory,
)

EXPORTED_MEMBERS = ("/archive_format", "/data/weights/weight_0", "serialized_exported_program.json")
_CONFIG = "_weights_config.json"
_MAX_CONFIG = 32 << 20
_NESTED = 100
_TYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
    29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
"""ScalarType of torch/_export/serde/schema.py."""


def read_exported(source: Source, directory: Directory) -> TorchZip | None:
    """The weights of an exported program, each in its place; None for any other zip."""
    if not any(m.name.endswith(("/archive_format", EXPORTED_MEMBERS[2])) for m in directory.members):
        return None
    if any("/aotinductor/" in member.name for member in directory.members):
        return None
    found = TorchZip(False, Pickle(), exported=True)
    found.globals = tuple(dict.fromkeys(_hidden(source, directory)))
    for member in directory.members:
        if member.name.endswith(_CONFIG):
            _described(source, directory, member, found.contents)
    found.contents.keys = len(found.contents.names) or None
    found.contents.prefix = prefix_of(found.contents.names)
    return found


def _described(source: Source, directory: Directory, config: Member, contents: Contents) -> None:
    """The tensors that one table names. What cannot be placed is a gap, and no damage."""
    members = {member.name: member for member in directory.members}
    folder = config.name.rpartition("/")[0]
    for name, entry in _table(source, config):
        span = _span(name, entry, members.get(f"{folder}/{entry.get('path_name')}"))
        if span is None:
            contents.gap = contents.gap or "weights that its table does not place"
            continue
        contents.spans.append(span)
        contents.names += (name,)
        contents.tensors += 1
        contents.elements += span.length * 8 // BITS[span.dtype]
    contents.dtypes = dict(Counter(span.dtype for span in contents.spans))


def _table(source: Source, config: Member) -> Iterator[tuple[str, dict[str, Any]]]:
    if config.method != STORED or config.size > _MAX_CONFIG:
        return
    try:
        table = json.loads(source.read(config.start, config.size))
    except (ValueError, RecursionError):
        return  # its checksum tells what is wrong with it
    entries = table.get("config") if isinstance(table, dict) else None
    if isinstance(entries, dict):
        yield from ((name[:200], entry) for name, entry in entries.items() if isinstance(entry, dict))


def _span(name: str, entry: dict[str, Any], member: Member | None) -> Span | None:
    meta = entry.get("tensor_meta")
    if member is None or member.method != STORED or entry.get("use_pickle") or not isinstance(meta, dict):
        return None
    dtype = _TYPES.get(meta["dtype"]) if isinstance(meta.get("dtype"), int) else None
    told = [size.get("as_int") for size in meta.get("sizes") or () if isinstance(size, dict)]
    sizes = [size for size in told if isinstance(size, int) and 0 <= size < 1 << 60]
    if dtype is None or len(sizes) != len(told):
        return None
    length = math.prod(sizes) * BITS[dtype] // 8
    if length > member.size:
        return None
    return Span(name, dtype, member.start, length, row_of(sizes, length))


def _hidden(source: Source, directory: Directory) -> Iterator[str]:
    """Dangerous names in the checkpoints inside: sample inputs, and the weights of older torch."""
    nested = [m for m in directory.members if m.method == STORED and m.size > 4]
    for member in [m for m in nested if source.read(m.start, 4) == b"PK\x03\x04"][:_NESTED]:
        part = Part(source, member.start, member.size)
        try:
            inner = read_directory(part)
            locate(part, inner)
            names = read_torch_zip(part, inner).globals
        except (BadZip, TooManyMembers, NotTorch, Contradiction, PickleTooLong):
            continue
        yield from (name for name in refused(names) if danger(name) == "high")

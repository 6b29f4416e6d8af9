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
from tui.checkpoints.pickle_globals import certain, danger, refused
from tui.checkpoints.pickle_reader import Pickle, PickleTooLong
from tui.checkpoints.source import Part, Source
from tui.checkpoints.tensors import BITS, Span, row_of
from tui.checkpoints.torch_legacy import BadLegacy, Legacy, read_legacy
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
_NESTED, _DIMENSIONS = 1000, 64
_TYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
    29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
"""ScalarType of torch/_export/serde/schema.py."""


def read_exported(source: Source, directory: Directory) -> TorchZip | None:
    """The weights of an exported program, each in its place; None for any other zip.

    Raises:
        PickleTooLong: not every pickle inside could be looked through.
        Contradiction: a weight of its table is not in it.
    """
    if not any(m.name.endswith(("/archive_format", EXPORTED_MEMBERS[2])) for m in directory.members):
        return None
    if any("/aotinductor/" in member.name for member in directory.members):
        return None
    found = TorchZip(False, Pickle(), exported=True)
    found.globals = tuple(dict.fromkeys(_hidden(source, directory)))
    for member in directory.members:
        if member.name.endswith(_CONFIG):
            _described(source, directory, member, found.contents)
    contents = found.contents
    contents.names = tuple(span.name for span in contents.spans)
    contents.tensors = len(contents.spans)
    contents.keys = contents.tensors or None
    contents.elements = sum(span.length * 8 // BITS[span.dtype] for span in contents.spans)
    contents.dtypes = dict(Counter(span.dtype for span in contents.spans))
    contents.prefix = prefix_of(contents.names)
    if not contents.spans:
        contents.gap = contents.gap or "no table names its weights"
    return found


def _described(source: Source, directory: Directory, config: Member, contents: Contents) -> None:
    """The tensors that one table names. What cannot be placed is a gap, and no damage."""
    members = {member.name: member for member in directory.members}
    folder = config.name.rpartition("/")[0]
    table = _table(source, config)
    if table is None:
        contents.gap = "a table of its weights that cannot be read"
        return
    for name, entry in table.items():
        member = members.get(f"{folder}/{entry.get('path_name')}")
        if member is None:
            raise Contradiction("bad_zip", f"the weight {name[:80]!r} is missing")
        span = _span(name, entry, member)
        if span is None:
            contents.gap = contents.gap or "weights that its table does not place"
        else:
            contents.spans.append(span)


def _table(source: Source, config: Member) -> dict[str, dict[str, Any]] | None:
    """What a table says of each weight; None where it cannot be read as one."""
    if config.method != STORED or config.size > _MAX_CONFIG:
        return None
    try:
        table = json.loads(source.read(config.start, config.size))
    except (ValueError, RecursionError):
        return None
    entries = table.get("config") if isinstance(table, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        return None
    return entries


def _span(name: str, entry: dict[str, Any], member: Member) -> Span | None:
    meta = entry.get("tensor_meta")
    if member.method != STORED or entry.get("use_pickle") or not isinstance(meta, dict):
        return None
    dtype = _TYPES.get(meta["dtype"]) if isinstance(meta.get("dtype"), int) else None
    told = meta.get("sizes")
    if dtype is None or not isinstance(told, list) or len(told) > _DIMENSIONS:
        return None
    sizes = [size.get("as_int") if isinstance(size, dict) else None for size in told]
    known = [size for size in sizes if isinstance(size, int) and 0 <= size < 1 << 60]
    length = math.prod(known) * BITS[dtype] // 8
    if len(known) != len(sizes) or length > member.size:
        return None
    return Span(name[:200], dtype, member.start, length, row_of(known, length))


def _hidden(source: Source, directory: Directory) -> Iterator[str]:
    """Dangerous names in the checkpoints inside: sample inputs, and the weights of older torch."""
    left = _NESTED
    for member in directory.members:
        if member.method != STORED and member.name.endswith((".pt", ".pkl")):
            raise PickleTooLong  # torch stores them as they are
        head = source.read(member.start, 4) if member.method == STORED and member.size > 4 else b""
        if head != b"PK\x03\x04" and not (head[:1] == b"\x80" and head[1:2] <= b"\5"):
            continue
        left -= 1
        if left < 0:
            raise PickleTooLong
        names = _names_in(Part(source, member.start, member.size), zipped=head[:1] == b"P")
        yield from (name for name in refused(names) if danger(name) == "high")


def _names_in(part: Source, *, zipped: bool) -> tuple[str, ...]:
    """Also of a damaged one: whoever loads it has run what stands before the damage."""
    if not zipped:
        legacy = Legacy()
        try:
            read_legacy(part, legacy)
        except BadLegacy:
            return certain(legacy.globals)  # a weight may begin like a pickle
        return legacy.globals
    try:
        inner = read_directory(part)
        locate(part, inner)
        return read_torch_zip(part, inner, look=False).globals
    except TooManyMembers:
        raise PickleTooLong from None
    except (BadZip, NotTorch):
        return ()

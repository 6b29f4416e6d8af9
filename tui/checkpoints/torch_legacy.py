"""What ``torch.save`` wrote before 1.6: five pickles in a row, then the storages. No checksum.

Layout (`_legacy_save` of torch/serialization.py): magic number, protocol 1001, the writer's system, the
object, the list of storage keys; then for each key 8 bytes of element count and the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tui.checkpoints.contents import Contents, contents_of, tensors_in
from tui.checkpoints.pickle_reader import Pickle, PickleDamaged, read_pickle
from tui.checkpoints.source import Source
from tui.checkpoints.tensors import BITS, Span, Storage, row_of

_PICKLES_BEFORE = 3


class BadLegacy(Exception):
    """Damage. `subtype` is a word of the verdicts."""

    def __init__(self, subtype: str, what: str) -> None:
        self.subtype = subtype
        super().__init__(what)


@dataclass(slots=True)
class Legacy:
    """The object's pickle, what it describes, and bytes behind the last storage.

    Attributes:
        others: the pickles before and behind it: whoever unpickles the file runs what they name as well.
    """

    pickle: Pickle = field(default_factory=Pickle)
    others: list[Pickle] = field(default_factory=list)
    contents: Contents = field(default_factory=Contents)
    after: int = 0

    @property
    def globals(self) -> tuple[str, ...]:
        """Names in all its pickles, each once."""
        return tuple(dict.fromkeys(name for p in (self.pickle, *self.others) for name in p.globals))


def read_legacy(source: Source, found: Legacy) -> None:
    """Fill `found`, step by step, so that globals seen before damage are known.

    Raises:
        BadLegacy, PickleTooLong.
    """
    stream = source.section(0, source.size)
    try:
        for _ in range(_PICKLES_BEFORE):
            found.others.append(Pickle())
            read_pickle(stream, found=found.others[-1])
        read_pickle(stream, found=found.pickle)
        found.others.append(Pickle())
        keys = read_pickle(stream, found=found.others[-1]).value
    except PickleDamaged as damage:
        raise BadLegacy("truncated" if damage.truncated else "bad_pickle", str(damage)) from None
    if not isinstance(keys, list):
        raise BadLegacy("bad_pickle", "its list of storages is none")
    found.contents = contents_of(found.pickle.value, complete=found.pickle.complete)
    tensors, _ = tensors_in(found.pickle.value)
    places, end = _storages(source, stream.tell(), keys, found.pickle.storages)
    if end > source.size:
        raise BadLegacy("truncated", f"{end - source.size} of {end} bytes are missing")
    found.after = source.size - end
    for name, tensor in tensors:
        start = places.get(tensor.storage.key)
        if start is None or not tensor.inside:
            raise BadLegacy("bad_pickle", f"{name[:80]!r} reaches beyond its storage")
        size = BITS[tensor.dtype] // 8
        if tensor.contiguous:
            begin, length = start + tensor.offset * size, tensor.elements * size
        else:
            begin, length = start, tensor.storage.size or 0
        row = row_of(tensor.shape, length)
        found.contents.spans.append(Span(name, tensor.dtype, begin, length, row))


def _storages(
    source: Source, at: int, keys: list[object], storages: dict[str, Storage]
) -> tuple[dict[str, int], int]:
    """Where each storage's bytes begin, and where the last ends: beyond the file, if it was cut."""
    places: dict[str, int] = {}
    for key in keys:
        storage = storages.get(str(key))
        raw = source.read(at, 8)
        if len(raw) < 8:
            rest = sum(8 + (storages[str(k)].size or 0) for k in keys[len(places) :] if str(k) in storages)
            return places, max(at + rest, source.size + 1)
        count = int.from_bytes(raw, "little", signed=True)
        if storage is None or storage.size is None:
            raise BadLegacy("bad_pickle", f"the storage {str(key)[:40]!r} is of no known type")
        if count != storage.count:
            subtype = "zero_block" if not any(raw) else "bitflip"
            raise BadLegacy(subtype, f"the storage {str(key)[:40]!r} has another length than the pickle says")
        places[storage.key] = at + 8
        at += 8 + storage.size
    return places, at

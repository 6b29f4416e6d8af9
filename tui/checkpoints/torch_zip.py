"""What ``torch.save`` has written since 1.6: a zip of a pickle and one member per storage; TorchScript as
well.

Layout: ``NAME/data.pkl``, ``NAME/data/KEY``, ``NAME/version``, ``NAME/byteorder``; TorchScript adds
``code/`` and ``constants.pkl`` (torch/serialization.py, caffe2/serialize/inline_container.h of torch 2.13).
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field

from tui.checkpoints.contents import Contents, contents_of, tensors_in
from tui.checkpoints.pickle_reader import Pickle, PickleDamaged, PickleTooLong, read_pickle
from tui.checkpoints.source import Source
from tui.checkpoints.tensors import BITS, Span, row_of
from tui.checkpoints.zip_directory import STORED, BadZip, Directory, Member
from tui.checkpoints.zip_members import expanded

_MAIN = re.compile(r"[^/]*/data\.pkl", re.DOTALL)
MAX_UNPACKED_PICKLE = 16 << 20


class NotTorch(Exception):
    """A zip, and none that torch wrote."""


class Contradiction(Exception):
    """The pickle and the members do not fit together. `subtype` is a word of the verdicts."""

    def __init__(self, subtype: str, what: str) -> None:
        self.subtype = subtype
        super().__init__(what)


@dataclass(slots=True)
class TorchZip:
    """The pickle of a torch zip and what it describes.

    Attributes:
        globals: of every pickle in it.
        after: bytes behind the pickle in ``data.pkl``: torch never reads them, and others may.
        exported: no pickle, but a program of `torch.export` with its weights.
    """

    script: bool
    pickle: Pickle
    contents: Contents = field(default_factory=Contents)
    globals: tuple[str, ...] = ()
    after: int = 0
    exported: bool = False


def read_torch_zip(source: Source, directory: Directory, *, look: bool = True) -> TorchZip:
    """The pickles inside, and each tensor's place in the file.

    Args:
        look: False for an archive known to be damaged: only globals are looked for.

    Raises:
        NotTorch, Contradiction, PickleTooLong.
    """
    main = next((m for m in directory.members if _MAIN.fullmatch(m.name)), None)
    if main is None:
        raise NotTorch
    root = main.name.removesuffix("data.pkl")
    script = directory.named("/constants.pkl") is not None
    found = TorchZip(script, Pickle())
    names: dict[str, None] = {}
    for member in directory.members:
        if member is not main and member.name.endswith(".pkl") and member.name.startswith(root):
            names |= dict.fromkeys(_globals_of(source, member))
    try:
        with _opened(source, main) as stream:
            read_pickle(stream, found=found.pickle)
    except PickleDamaged as damage:
        if look:
            raise Contradiction("bad_pickle", f"{main.name}: {damage}") from None
    finally:
        found.globals = tuple(dict.fromkeys((*found.pickle.globals, *names)))
    if look:
        found.after = main.size - found.pickle.end
        found.contents = contents_of(found.pickle.value, complete=found.pickle.complete)
        members = {m.name: m for m in directory.members}
        _place(found, members, root)
        order = members.get(f"{root}byteorder")
        if order is not None and source.read(order.start, min(order.size, 8)) == b"big":
            found.contents.big = True
    return found


def _globals_of(source: Source, member: Member) -> list[str]:
    """Names in a further pickle. One that cannot be read is nobody's: torch reads ``data.pkl`` alone."""
    found = Pickle()
    try:
        with _opened(source, member) as stream:
            read_pickle(stream, found=found)
    except (PickleDamaged, PickleTooLong):
        pass
    return found.globals


def _opened(source: Source, member: Member) -> io.BufferedReader | io.BytesIO:
    if member.method == STORED:
        return source.section(member.start, member.size)
    if member.size > MAX_UNPACKED_PICKLE:
        raise PickleTooLong
    try:
        return io.BytesIO(b"".join(bytes(block) for block in expanded(source, member)))
    except BadZip as bad:
        raise PickleDamaged(str(bad)) from None


def _place(found: TorchZip, members: dict[str, Member], root: str) -> None:
    """Every tensor must lie inside its storage, and the storage be a member of its size."""
    tensors, _ = tensors_in(found.pickle.value)
    packed: set[str] = set()
    for name, tensor in tensors:
        storage = tensor.storage
        member = members.get(f"{root}data/{storage.key}")
        if member is None:
            raise Contradiction("bad_zip", f"the storage {storage.key[:40]!r} of {name[:80]!r} is missing")
        if storage.size is not None and member.size < storage.size:
            raise Contradiction("bad_zip", f"the storage {storage.key[:40]!r} of {name[:80]!r} is too small")
        if not tensor.inside:
            raise Contradiction("bad_pickle", f"{name[:80]!r} reaches beyond its storage")
        if member.method != STORED:
            if storage.key not in packed:  # whole, and once: it has to be expanded from its begin
                packed.add(storage.key)
                span = Span(name, tensor.dtype, member.start, member.size, member.size, member.packed)
                found.contents.spans.append(span)
        else:
            size = BITS[tensor.dtype] // 8
            length = tensor.elements * size
            if tensor.contiguous:
                start = member.start + tensor.offset * size
            else:  # a transposed or cut view: the whole storage is looked at instead
                start, length = member.start, member.size
            row = row_of(tensor.shape, length)
            found.contents.spans.append(Span(name, tensor.dtype, start, length, row))
    found.contents.packed = bool(packed)

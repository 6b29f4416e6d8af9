"""What ``torch.save`` wrote before 0.1.10: a tar of pickles. Safe loading refuses it; the rest unpickles all.

Members (`_legacy_load` of torch/serialization.py): ``sys_info``, ``pickle``, ``tensors``, ``storages``.
"""

from __future__ import annotations

from tui.checkpoints.judged import Judged, say
from tui.checkpoints.pickle_globals import certain, refused, worst
from tui.checkpoints.pickle_reader import Pickle, PickleDamaged, PickleTooLong, read_pickle
from tui.checkpoints.source import Source

_BLOCK = 512
_MEMBERS = frozenset({"sys_info", "pickle", "tensors", "storages"})
_MOST = 16


def judge_tar(source: Source, path: str) -> Judged | None:
    """The verdict on such a file; None for any other archive."""
    members = _members(source)
    if not {"pickle", "storages"} <= members.keys() <= _MEMBERS:
        return None
    names: list[str] = []
    damage = ""
    for name, (start, size) in members.items():
        found = Pickle()
        try:
            read_pickle(source.section(start, size), found=found)
        except (PickleDamaged, PickleTooLong) as bad:
            damage = damage or f"{name}: {bad}"
        names += certain(refused(found.globals))
    if worst(names) == "high":
        shown = tuple(name[:200] for name in dict.fromkeys(names))[:50]
        why = "a tar of pickles"
        return Judged(
            say(path, "torch_legacy", "unsafe", None, why, danger="high", globals=shown, format="torch_tar")
        )
    if damage or not members.keys() >= _MEMBERS:
        subtype = "bad_pickle" if damage else "truncated"
        return Judged(say(path, "torch_legacy", "corrupt", subtype, damage, format="torch_tar"))
    return Judged(say(path, "torch_legacy", "suspicious", "torch_tar", format="torch_tar"))


def _members(source: Source) -> dict[str, tuple[int, int]]:
    """Name → where its bytes begin, and how many. Plain headers only; ends at the first that is none."""
    found: dict[str, tuple[int, int]] = {}
    at = 0
    while len(found) < _MOST:
        header = source.read(at, _BLOCK)
        size = header[124:136].strip(b" \0")
        if header[257:262] != b"ustar" or not size.isdigit() or size.strip(b"01234567"):
            break
        name = header[:100].rstrip(b"\0").decode("utf-8", "surrogateescape")
        found[name] = (at + _BLOCK, int(size, 8))
        at += _BLOCK + -(-int(size, 8) // _BLOCK) * _BLOCK
    return found

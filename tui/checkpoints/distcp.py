"""Folders of ``torch.distributed.checkpoint`` (FSDP): ``__RANK_PART.distcp``, then ``.metadata``.

``.metadata`` is a pickle that the library loads without any care; it gives each part's file, place and length
(`_StorageInfo` of torch/distributed/checkpoint/filesystem.py). A part is a file of `torch.save` by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tui.checkpoints.judged import say
from tui.checkpoints.names import PART, is_part
from tui.checkpoints.pickle_globals import certain, refused, worst
from tui.checkpoints.pickle_reader import Pickle, PickleDamaged, PickleTooLong, read_pickle
from tui.checkpoints.pickle_values import Call, named
from tui.checkpoints.sharded import Folder, Whole, in_progress
from tui.checkpoints.source import NotAFile, Part
from tui.checkpoints.torch_files import judge_zip
from tui.model.verdict import CheckpointVerdict, Word

METADATA = ".metadata"
_LISTED = 100
_ITEM = "torch.distributed.checkpoint.filesystem._StorageInfo"


@dataclass(frozen=True, slots=True)
class _Item:
    """One part. `plain`: stored as it was saved, not packed."""

    file: str
    start: int
    length: int
    plain: bool


def judge_distributed(folder: Folder) -> Whole | None:
    """The folder as one checkpoint; None where it is none."""
    files = {name for name in folder.files if is_part(name)}
    if METADATA not in folder.files and not files:
        return None
    if METADATA not in folder.files:
        missing = [METADATA, *_skipped(files)]
        return Whole(_lacking(folder, missing), files)
    found, damage = _metadata(folder)
    names = certain(refused(found.globals)) if damage else refused(found.globals)
    items = list(_items(found.value))
    if not files and not items and (damage or worst(names) != "high"):
        return None  # another programme's hidden file
    if worst(names) == "high":
        shown = tuple(name[:200] for name in names)[:50]
        verdict = say(
            folder.path, "distcp", "unsafe", None, METADATA, danger="high", globals=shown, bad=(METADATA,)
        )
        return Whole(verdict, files | {METADATA})
    if damage:
        verdict = say(folder.path, "distcp", "corrupt", damage, METADATA, bad=(METADATA,))
        return Whole(verdict, files | {METADATA})
    return Whole(_against(folder, items), files | {METADATA})


def _skipped(files: set[str]) -> list[str]:
    """Ranks below the highest of which nothing is there."""
    ranks = {int(match["rank"]) for name in files if (match := PART.fullmatch(name))}
    below = range(min(max(ranks, default=0), _LISTED))
    return [f"__{rank}_0.distcp" for rank in below if rank not in ranks]


def _lacking(folder: Folder, missing: list[str]) -> CheckpointVerdict:
    moving = in_progress(folder.names, missing)
    word: Word = "partial" if moving else "incomplete"
    what = None if moving else "file" if missing[0] == METADATA else "rank"
    return say(
        folder.path, "distcp", word, what, ", ".join(missing[:3]), incident="ckpt_incomplete",
        missing=tuple(missing[:_LISTED]), in_progress=moving,
    )  # fmt: skip


def _metadata(folder: Folder) -> tuple[Pickle, str]:
    """What stands there, and the subtype of its damage; "" where it is whole."""
    found = Pickle()
    try:
        with folder.opener(folder.absolute(METADATA), None) as source:
            if not source.size:
                return found, "empty"
            read_pickle(source.section(0, source.size), found=found)
    except PickleDamaged as bad:
        return found, "truncated" if bad.truncated else "bad_pickle"
    except (PickleTooLong, OSError, NotAFile):
        return found, "bad_pickle"
    return found, ""


def _items(value: object) -> Iterator[_Item]:
    """Every part that the metadata knows of; of one too long to be kept whole, the first of them."""
    waiting, seen = [value], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Call):
            state = node.state if isinstance(node.state, dict) else {}
            item = _item(state) if named(node.function) == _ITEM else None
            if item is not None:
                yield item
            waiting += [node.state, node.arguments]
        elif isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list | tuple):
            waiting += node


def _item(state: dict[object, object]) -> _Item | None:
    match (state.get("relative_path"), state.get("offset"), state.get("length")):
        case (str(file), int(start), int(length)) if start >= 0 and length >= 0:
            return _Item(file, start, length, not state.get("transform_descriptors"))
    return None


def _against(folder: Folder, items: list[_Item]) -> CheckpointVerdict:
    """What the metadata says against what is there."""
    outside = next((item.file for item in items if "/" in item.file or item.file in ("", ".", "..")), None)
    if outside is not None:
        return say(folder.path, "distcp", "unsafe", "path", outside, detail="path leaves the folder")
    wanted: dict[str, list[_Item]] = {}
    for item in items:
        wanted.setdefault(item.file, []).append(item)
    found = [_of_file(folder, file, parts) for file, parts in wanted.items() if file in folder.files]
    worst = next(
        (one for word in ("unsafe", "corrupt") for one in found if one and one.verdict == word), None
    )
    if worst is not None:
        return worst
    missing = sorted({*wanted, *_skipped(set(folder.files))} - folder.files.keys())
    if missing:
        return _lacking(folder, missing)
    size = sum(folder.files[file].verdict.size or 0 for file in wanted)
    return say(folder.path, "distcp", "ok", size=size, shards=len(wanted))


def _of_file(folder: Folder, file: str, parts: list[_Item]) -> CheckpointVerdict | None:
    """What is wrong with a file that is there; None where it holds its parts, or could not be read."""
    verdict = folder.files[file].verdict
    if verdict.verdict == "corrupt":
        return _damaged(folder, file, verdict.subtype or "bad_zip", verdict.reason)
    end = max(part.start + part.length for part in parts)
    try:
        with folder.opener(folder.absolute(file), folder.stop) as source:
            if source.size < end:
                return _damaged(folder, file, "truncated", f"{end - source.size} of {end} bytes are missing")
            for part in parts:
                if part.plain and (bad := _of_part(folder, Part(source, part.start, part.length), part)):
                    return bad
            if source.size > end:
                return _damaged(folder, file, "trailing", f"{source.size - end} bytes behind the last part")
    except (OSError, NotAFile):
        return None  # its own verdict says that it could not be read
    return None


def _of_part(folder: Folder, source: Part, part: _Item) -> CheckpointVerdict | None:
    begin, where = source.read(0, 4), f"the part at {part.start}"
    if part.length >= 4 and not any(begin) and source.is_zero(0, min(part.length, 4096)):
        return _damaged(folder, part.file, "zero_block", where)
    if begin != b"PK\3\4":
        return None  # of the newer kinds that are no files of torch
    judged = judge_zip(source, part.file, "torch", crc=folder.crc)
    found = judged.verdict if judged is not None else None
    if found is None or found.verdict not in ("unsafe", "corrupt"):
        return None
    change = {
        "path": folder.path,
        "kind": "distcp",
        "bad": (part.file,),
        "reason": f"{where}: {found.reason}",
    }
    return found.model_copy(update=change)


def _damaged(folder: Folder, file: str, subtype: str, why: str) -> CheckpointVerdict:
    return say(folder.path, "distcp", "corrupt", subtype, f"{file}: {why}", bad=(file,))

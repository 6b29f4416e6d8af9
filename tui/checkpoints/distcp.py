"""Folders of ``torch.distributed.checkpoint`` (FSDP): ``__RANK_PART.distcp``, then ``.metadata``.

``.metadata`` is a pickle that the library loads without any care; it gives each part's file, place and length
(`_StorageInfo` of torch/distributed/checkpoint/filesystem.py). A part is a file of `torch.save` by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tui.checkpoints.contents import Contents
from tui.checkpoints.judged import Judged, say
from tui.checkpoints.names import PART, is_part
from tui.checkpoints.pickle_globals import certain, refused, worst
from tui.checkpoints.pickle_reader import Pickle, PickleDamaged, PickleTooLong, read_pickle
from tui.checkpoints.pickle_values import Call, named
from tui.checkpoints.sharded import Folder, Whole, in_progress, of_parts
from tui.checkpoints.source import NotAFile, Part, Source
from tui.checkpoints.torch_files import judge_zip
from tui.model.verdict import CheckpointVerdict, Problem, Word

METADATA = ".metadata"
_LISTED = 100
_WORDS: dict[str, Word] = {"huge_pickle": "suspicious", "not_readable": "incomplete"}
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
        word: Word = _WORDS.get(damage, "corrupt")
        verdict = say(folder.path, "distcp", word, damage, METADATA, bad=(METADATA,))
        return Whole(verdict, files | {METADATA})
    whole = _against(folder, items)
    return Whole(whole.verdict, files | {METADATA}, whole.problems)


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
    """What stands there, and why that is not all; "" where it is whole."""
    found = Pickle()
    try:
        with folder.opener(folder.absolute(METADATA), None) as source:
            if not source.size:
                return found, "empty"
            read_pickle(source.section(0, source.size), found=found)
    except PickleDamaged as bad:
        return found, "truncated" if bad.truncated else "bad_pickle"
    except PickleTooLong:
        return found, "huge_pickle"
    except (OSError, NotAFile):
        return found, "not_readable"
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


def _against(folder: Folder, items: list[_Item]) -> Whole:
    """What the metadata says against what is there."""
    outside = next((item.file for item in items if "/" in item.file or item.file in ("", ".", "..")), None)
    if outside is not None:
        verdict = say(folder.path, "distcp", "unsafe", "path", outside, detail="path leaves the folder")
        return Whole(verdict)
    wanted: dict[str, list[_Item]] = {}
    for item in items:
        wanted.setdefault(item.file, []).append(item)
    found = {file: _of_file(folder, file, parts) for file, parts in wanted.items() if file in folder.files}
    parts = {file: judged.verdict for file, judged in found.items()}
    verdict = of_parts(folder.path, "distcp", parts, shards=len(wanted))
    missing = sorted({*wanted, *_skipped(set(folder.files))} - folder.files.keys())
    if missing and verdict.verdict not in ("unsafe", "corrupt"):
        verdict = _lacking(folder, missing)
    return Whole(verdict, problems=tuple(p for judged in found.values() for p in judged.problems))


def _of_file(folder: Folder, file: str, items: list[_Item]) -> Judged:
    """The verdict on a file that is there: its parts one by one, then the numbers in them."""
    path = f"{folder.path}/{file}" if folder.path else file
    known = folder.files[file]
    if known.verdict.verdict in ("corrupt", "incomplete"):
        return known
    items = sorted(set(items), key=lambda item: (item.start, item.length))
    end = 0
    for item in items:
        if item.start < end:  # else a few bytes could be made to be read for ever
            return Judged(say(path, "distcp", "corrupt", "bad_index", "two parts share bytes"))
        end = item.start + item.length
    try:
        with folder.opener(folder.absolute(file), folder.stop) as source:
            if source.size < end:
                why = f"{end - source.size} of {end} bytes are missing"
                return Judged(say(path, "distcp", "corrupt", "truncated", why))
            judged = _of_items(source, path, items, crc=folder.crc)
            if source.size > end and judged.verdict.verdict == "ok":
                why = f"{source.size - end} bytes behind the last part"
                return Judged(say(path, "distcp", "corrupt", "trailing", why))
    except (OSError, NotAFile):
        problem = Problem(code="file-unreadable", path=path)
        return Judged(say(path, "distcp", "incomplete", "not_readable"), problems=(problem,))
    return folder.look(judged, file)


def _of_items(source: Source, path: str, items: list[_Item], *, crc: bool) -> Judged:
    """All parts of a file together, or the first that is damaged or hostile."""
    together = Contents()
    dtypes: Counter[str] = Counter()
    for item in items:
        judged = _of_item(Part(source, item.start, item.length), path, item, crc=crc)
        if judged is None or judged.contents is None:
            if judged is not None:
                return judged
            together.gap = "parts that are not as torch.save writes them"
            continue
        contents = judged.contents
        together.spans += [replace(span, start=span.start + item.start) for span in contents.spans]
        together.tensors += contents.tensors
        together.elements += contents.elements
        together.gap = together.gap or contents.gap
        dtypes.update(contents.dtypes)
    together.dtypes = dict(dtypes)
    verdict = say(
        path, "distcp", "ok", size=source.size, tensors=together.tensors, elements=together.elements,
        dtypes=together.dtypes or None,
    )  # fmt: skip
    return Judged(verdict, together)


def _of_item(source: Source, path: str, item: _Item, *, crc: bool) -> Judged | None:
    """A verdict without contents where the part is damaged or hostile; None where it is no file of torch."""
    begin, where = source.read(0, 4), f"the part at {item.start}"
    if item.plain and len(begin) == 4 and not any(begin) and source.is_zero(0, min(item.length, 4096)):
        return Judged(say(path, "distcp", "corrupt", "zero_block", where))
    judged = judge_zip(source, path, "torch", crc=crc) if begin == b"PK\3\4" and item.plain else None
    if judged is None or judged.verdict.verdict not in ("unsafe", "corrupt"):
        return judged
    change = {"kind": "distcp", "reason": f"{where}: {judged.verdict.reason}"}
    return Judged(judged.verdict.model_copy(update=change))

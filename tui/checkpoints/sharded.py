"""Folders that are one checkpoint: shards with their index, adapters, a trainer's folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tui.checkpoints.judged import Judged, say
from tui.checkpoints.names import SHARD, claim_of, transfer_of
from tui.checkpoints.source import NotAFile, Opener, Source
from tui.model.verdict import CheckpointVerdict, Problem, Values, Word

MAX_INDEX = 32 << 20
_INDEX = re.compile(r"(?P<file>.+)\.index(?:\.[\w-]+)?\.json", re.DOTALL)
_LISTED = 100
_GRAVEST: tuple[Word, ...] = (
    "unsafe",
    "corrupt",
    "partial",
    "incomplete",
    "needs_allowlist",
    "suspicious",
    "ok",
    "ignore",
)


@dataclass(slots=True)
class Folder:
    """One folder, with every file in it judged.

    Attributes:
        files: by name; a link counts as the file it leads to.
        names: all names in it, folders and leftovers too.
        absolute: where a name lies, for an index that has to be read.
        opener: opens it there.
        crc: compare the checksums inside parts that are files by themselves.
        stop: asked meanwhile whether to give up.
        below: folders in it that are checkpoints themselves.
        look: looks at the numbers of a file of that name, where its own verdict could not.
    """

    path: str
    files: Mapping[str, Judged]
    names: frozenset[str]
    absolute: Callable[[str], str]
    opener: Opener = Source
    crc: bool = True
    stop: Callable[[], bool] | None = None
    below: Mapping[str, CheckpointVerdict] = field(default_factory=dict)
    look: Callable[[Judged, str], Judged] = lambda judged, name: judged

    def small(self, name: str, limit: int) -> bytes | None:
        """One of its small files; None where it is larger, or cannot be read."""
        return read_small(self.absolute(name), limit, self.opener)


@dataclass(slots=True)
class Whole:
    """A folder judged as one checkpoint, the names in it that are its parts, and what was not checked."""

    verdict: CheckpointVerdict
    parts: set[str] = field(default_factory=set)
    problems: tuple[Problem, ...] = ()


def of_parts(path: str, kind: str, parts: Mapping[str, CheckpointVerdict], **more: Any) -> CheckpointVerdict:
    """The verdict on parts that are all there: the gravest among them, and their numbers together."""
    there = {part.verdict for part in parts.values()}
    word: Word = next((word for word in _GRAVEST if word in there), "ok")
    bad = tuple(name for name, part in parts.items() if part.verdict == word)
    total = _together(parts.values())
    if word in ("ok", "ignore"):
        return say(path, kind, "ok", None, "", **(total | more))
    first = parts[bad[0]]
    kept = {
        "code": first.code, "incident": first.incident, "subtype": first.subtype, "detail": first.detail,
        "danger": first.danger, "globals": first.globals, "notes": first.notes, "bad": bad[:_LISTED],
        "reason": f"{bad[0]}: {first.reason}",
    }  # fmt: skip
    return CheckpointVerdict(path=path, kind=kind, verdict=word, **(kept | total | more))


def _together(parts: Iterable[CheckpointVerdict]) -> dict[str, Any]:
    parts = list(parts)
    dtypes: dict[str, int] = {}
    for part in parts:
        for dtype, count in (part.dtypes or {}).items():
            dtypes[dtype] = dtypes.get(dtype, 0) + count
    known = [part for part in parts if part.tensors is not None and part.elements is not None]
    values = [part.values for part in parts if part.values is not None]
    tried = [part.loaded for part in parts if part.loaded is not None]
    return {
        "size": sum(part.size or 0 for part in parts),
        "tensors": sum(part.tensors or 0 for part in known) if known else None,
        "elements": sum(part.elements or 0 for part in known) if known else None,
        "dtypes": dtypes or None,
        "values": _added(values) if values and len(values) == len(parts) else None,
        "loaded": all(tried) if tried and len(tried) == len(parts) else None,
        "confined": parts[0].confined if parts else (),
    }


def _added(values: list[Values]) -> Values:
    numbers = (
        "tensors",
        "elements",
        "nonfinite",
        "nan",
        "masks",
        "all_zero",
        "constant",
        "zero_tail",
        "zero_pages",
    )
    names = ("nonfinite_in", "all_zero_in", "constant_in", "unread")
    added: dict[str, Any] = {key: sum(getattr(value, key) for value in values) for key in numbers}
    for key in names:
        added[key] = tuple(name for value in values for name in getattr(value, key))[:20]
    return Values(**added)


def judge_sharded(folder: Folder) -> list[Whole]:
    """Every sharded checkpoint in the folder."""
    found: list[Whole] = []
    claimed: set[str] = set()
    for name in sorted(folder.names):
        if _INDEX.fullmatch(name) and name in folder.files:
            whole = _by_index(folder, name)
            if whole is not None:
                found.append(whole)
                claimed |= whole.parts
    return found + _without_index(folder, claimed)


def _by_index(folder: Folder, index: str) -> Whole | None:
    shards = [n for n in folder.files if (m := SHARD.fullmatch(n)) and index in _indices_of(m)]
    parts = {index, *shards}
    try:
        weights, total = _weight_map(folder.small(index, MAX_INDEX))
    except (ValueError, RecursionError):
        match = _INDEX.fullmatch(index)
        if not shards and (match is None or claim_of(match["file"]) is None):
            return None  # an index of something else
        return Whole(say(folder.path, "hf_sharded", "corrupt", "bad_index", index, bad=(index,)), parts)
    files = list(dict.fromkeys(weights.values()))
    outside = [file for file in files if _escapes(file)]
    if outside:
        detail = "path leaves the folder"
        return Whole(say(folder.path, "hf_sharded", "unsafe", "path", outside[0], detail=detail), parts)
    parts |= {file for file in files if file in folder.files}
    verdict = _of_index(folder, weights, files, shards)
    if verdict.verdict == "ok" and total is not None and total != (held := _bytes_in(folder, files)) and held:
        why = f"it counts {total} bytes, the shards hold {held}"
        verdict = say(folder.path, "hf_sharded", "suspicious", "total_size", why, shards=len(files))
    return Whole(verdict, parts)


def _indices_of(shard: re.Match[str]) -> tuple[str, ...]:
    """What the index of a shard may be called: of ``model.fp16-00001-of-00002`` it names the variant last."""
    stem, dot, variant = shard["stem"].rpartition(".")
    plain = f"{shard['stem']}.{shard['end']}.index.json"
    return (plain, f"{stem}.{shard['end']}.index.{variant}.json") if dot and stem else (plain,)


def _bytes_in(folder: Folder, files: Iterable[str]) -> int | None:
    """Bytes of all tensors of the shards; None where one does not tell."""
    contents = [folder.files[file].contents for file in files]
    sizes = [None if one is None else one.size for one in contents]
    return None if None in sizes else sum(size or 0 for size in sizes)


def _of_index(
    folder: Folder, weights: Mapping[str, str], files: list[str], shards: list[str]
) -> CheckpointVerdict:
    missing = tuple(file for file in files if file not in folder.files)  # a link to nothing is no shard
    there = {file: folder.files[file].verdict for file in files if file in folder.files}
    common: dict[str, Any] = {"shards": len(files)}
    worst = of_parts(folder.path, "hf_sharded", there, **common)
    if worst.verdict in ("unsafe", "corrupt"):
        return worst
    if missing:
        moving = in_progress(folder.names, missing)
        word: Word = "partial" if moving else "incomplete"
        return say(
            folder.path, "hf_sharded", word, None if moving else "shard", ", ".join(missing[:3]),
            incident="ckpt_incomplete", missing=missing[:_LISTED], in_progress=moving, **common,
        )  # fmt: skip
    absent = _absent_keys(folder, weights)
    if absent:
        why = ", ".join(absent[:3])
        return say(
            folder.path, "hf_sharded", "incomplete", "keys", why, missing_keys=absent[:_LISTED], **common
        )
    foreign = [name for name in sorted(shards) if name not in there]
    if foreign and worst.verdict == "ok":
        detail = f"foreign shard {foreign[0]}"
        return say(folder.path, "hf_sharded", "suspicious", "foreign_shard", foreign[0], **common).model_copy(
            update={"detail": detail, "notes": (detail,)}
        )
    return worst


def in_progress(names: Iterable[str], missing: Iterable[str]) -> tuple[str, ...]:
    """Names under which a missing file is just being written."""
    wanted = set(missing)
    return tuple(sorted(name for name in names if transfer_of(name) in wanted))


def _absent_keys(folder: Folder, weights: Mapping[str, str]) -> tuple[str, ...]:
    held: dict[str, frozenset[str] | None] = {}
    for file in set(weights.values()):
        contents = folder.files[file].contents if file in folder.files else None
        known = contents is not None and not contents.gap and (contents.names or contents.tensors == 0)
        held[file] = frozenset(contents.names) if contents is not None and known else None
    return tuple(
        key for key, file in weights.items() if (names := held[file]) is not None and key not in names
    )


def _weight_map(raw: bytes | None) -> tuple[dict[str, str], int | None]:
    """Key → shard, and the bytes of all of them. Raises ValueError where it is no index of weights."""
    if raw is None:
        raise ValueError("too large")
    held = json.loads(raw)
    weights = held.get("weight_map") if isinstance(held, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(file, str) for file in weights.values()):
        raise ValueError("no names")
    said = held.get("metadata")
    total = said.get("total_size") if isinstance(said, dict) else None
    return weights, total if isinstance(total, int) else None


def read_small(absolute: str, limit: int, opener: Opener = Source) -> bytes | None:
    """A whole small file; None where it is larger, or cannot be read."""
    try:
        with opener(absolute, None) as source:
            return source.read(0, source.size) if source.size <= limit else None
    except (OSError, NotAFile):
        return None


def _escapes(file: str) -> bool:
    parts = re.split(r"[/\\]", file)
    return (
        file.startswith(("/", "\\", "~"))
        or ".." in parts
        or "\0" in file
        or re.match(r"[A-Za-z]:", file) is not None
    )


def _without_index(folder: Folder, claimed: set[str]) -> list[Whole]:
    """Numbered shards of a set whose index is not there."""
    sets: dict[tuple[str, str, str], dict[int, str]] = {}
    for name, judged in folder.files.items():
        match = SHARD.fullmatch(name)
        if match and name not in claimed and judged.verdict.verdict != "ignore":
            key = (match["stem"], match["total"], match["end"])
            sets.setdefault(key, {})[int(match["number"])] = name
    found = []
    for (stem, total, end), numbered in sets.items():
        width, first = len(total), 0 if 0 in numbered else 1
        expected = range(first, first + min(int(total), 100_000))
        absent = [f"{stem}-{n:0{width}d}-of-{total}.{end}" for n in expected if n not in numbered]
        missing = (f"{stem}.{end}.index.json", *absent)
        worst = of_parts(folder.path, "hf_sharded", {n: folder.files[n].verdict for n in numbered.values()})
        verdict = worst if worst.verdict in ("unsafe", "corrupt") else say(
            folder.path, "hf_sharded", "incomplete", "shard" if absent else "index", ", ".join(missing[:3]),
            missing=missing[:_LISTED], shards=len(numbered),
        )  # fmt: skip
        found.append(Whole(verdict, set(numbered.values())))
    return found


_ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin")


def judge_adapter(folder: Folder) -> Whole | None:
    """What PEFT writes: a small configuration and the adapter's weights. No model is missing beside it."""
    weights = [name for name in _ADAPTERS if name in folder.files]
    config = "adapter_config.json" in folder.files
    if not weights and not config:
        return None
    if not weights or not config:
        missing = _ADAPTERS[:1] if config else ("adapter_config.json",)
        moving = in_progress(folder.names, missing)
        word: Word = "partial" if moving else "incomplete"
        what = None if moving else "weights" if config else "file"
        verdict = say(folder.path, "adapter", word, what, missing[0], missing=missing, in_progress=moving)
        return Whole(verdict, {*weights, "adapter_config.json"})
    parts = {name: folder.files[name].verdict for name in weights}
    said = _object(folder.small("adapter_config.json", 1 << 20))
    verdict = of_parts(folder.path, "adapter", parts, flavour=_peft_type(said or {}))
    if said is None and verdict.verdict == "ok":
        verdict = _bad_config(folder, "adapter", "adapter_config.json")
    return Whole(verdict, {*weights, "adapter_config.json"})


def _bad_config(folder: Folder, kind: str, name: str) -> CheckpointVerdict:
    return say(folder.path, kind, "corrupt", "bad_config", name, bad=(name,))


def _object(raw: bytes | None) -> dict[str, Any] | None:
    """A JSON object; None where it is none."""
    try:
        held = json.loads(raw or b"")
    except (ValueError, RecursionError):
        return None
    return held if isinstance(held, dict) else None


def _peft_type(said: Mapping[str, Any]) -> str | None:
    kind = said.get("peft_type")
    return kind.lower()[:40] if isinstance(kind, str) else None


SIDE_FILES = re.compile(
    r"training_args\.bin|rng_state(?:_\d+)?\.pth|scheduler\.(?:pt|bin)|random_states_\d+\.pkl|scaler\.pt"
    r"|custom_checkpoint_\d+\.pkl|(?:sampler|dl_state_dict)(?:_\d+)?\.bin"
)
"""A trainer's own state beside the weights: types and NumPy arrays are expected in it."""

_STEP_FOLDER = re.compile(r"checkpoint[-_]\d+")
_WEIGHTS = re.compile(
    r"(?:pytorch_model|model|adapter_model|diffusion_pytorch_model)(?:[.-].*)?\.(?:safetensors|bin)"
)
_FSDP_FOLDER = re.compile(r"(?:pytorch_model_fsdp|optimizer)_\d+")
_WEIGHT_FOLDERS = re.compile(r"pytorch_model_fsdp_\d+|global_step\d+")


def side_files(folder: Folder, *, whole: bool) -> set[str]:
    """Those of a folder that holds weights of any kind: a model, shards, an adapter, ranks of ZeRO or FSDP.

    Args:
        whole: the folder was judged as a checkpoint.
    """
    weights = (
        whole
        or "trainer_state.json" in folder.names
        or any(_WEIGHTS.fullmatch(name) for name in folder.files)
        or any(_WEIGHT_FOLDERS.fullmatch(name) for name in folder.names)
    )
    return {name for name in folder.files if SIDE_FILES.fullmatch(name)} if weights else set()


def judge_trainer(folder: Folder) -> Whole | None:
    """A folder ``checkpoint-N`` of the HF trainer: the weights first, ``trainer_state.json`` last."""
    name = folder.path.rpartition("/")[2]
    state = "trainer_state.json" in folder.names
    optimizer = "optimizer.pt" in folder.names or "training_args.bin" in folder.names
    if not (state or (_STEP_FOLDER.fullmatch(name) and (optimizer or "config.json" in folder.names))):
        return None
    weights = [n for n in folder.files if _WEIGHTS.fullmatch(n)]
    elsewhere = any(_WEIGHT_FOLDERS.fullmatch(n) for n in folder.names)
    if not weights and not elsewhere:
        if state and not optimizer and not _STEP_FOLDER.fullmatch(name):
            return None  # a run's own folder: its steps lie below
        return Whole(say(folder.path, "folder", "incomplete", "weights", missing=("model.safetensors",)))
    if optimizer and not state and _STEP_FOLDER.fullmatch(name):
        return Whole(say(folder.path, "folder", "incomplete", "file", missing=("trainer_state.json",)))
    whole = [n for n in weights if not SHARD.fullmatch(n) and n not in _ADAPTERS]
    parts = {n: folder.files[n].verdict for n in [*whole, *(n for n in folder.files if n == "optimizer.pt")]}
    if not whole:
        if not any(n.startswith("pytorch_model") for n in folder.below):
            return None  # its shards, its adapter or its ranks are judged as such
        parts |= {n: found for n, found in folder.below.items() if _FSDP_FOLDER.fullmatch(n)}
    extra = {n for n in folder.files if SIDE_FILES.fullmatch(n)}
    step = re.search(r"\d+$", name)
    more = {
        "step": int(step[0][:15]) if step else None,
        "flavour": "hf",
        "resumable": any(n.startswith("optimizer") for n in parts) or None,
    }
    verdict = of_parts(folder.path, "folder", parts, **more)
    if state and verdict.verdict == "ok" and _object(folder.small("trainer_state.json", MAX_INDEX)) is None:
        verdict = _bad_config(folder, "folder", "trainer_state.json")
    return Whole(verdict, set(parts) | extra)

"""Which files of a run hold predictions: as declared, else by name beside the metrics they explain.

Nothing outside the run is opened on the word of a file in it: links that lead out, devices and ``..`` are
refused.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tui.model.metrics import Population
from tui.model.text import safe

SUFFIXES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".npz", ".safetensors")
FOLDERS = 20_000
FILES = 10_000
_STEMS = {"predictions", "prediction", "preds", "pred", "predicted", "results", "outputs", "detections"}
_FOLDERS = {"predictions", "preds", "outputs"}
_SPLITS = {
    "test": "test",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "eval": "val",
    "dev": "val",
    "train": "train",
}
_SHARD = re.compile(
    r"(?P<base>.*?)[._-]?(?:(?:rank|shard|part|worker|gpu|proc|process|chunk)[._-]?(?P<index>\d{1,6})"
    r"|(?P<place>\d{1,6}))(?P<of>[._-]?of[._-]?(?P<total>\d{1,6}))?\Z"
)


@dataclass(frozen=True)
class Source:
    """The files of one population, and what is already known to be wrong with them.

    Attributes:
        files: name relative to the run, and path, in order.
        split: ``test``, ``val`` or ``train`` where the name says so.
        folder: relative to the run; "" is the run itself.
        targets: the files of the targets, where they are declared to lie apart from the predictions.
        wrong: why they can't hold each sample once.
        unclear: why it can't be told which files are meant.
    """

    name: str
    folder: str
    files: tuple[tuple[str, Path], ...]
    declared: Population | None = None
    targets: tuple[tuple[str, Path], ...] = ()
    split: str | None = None
    wrong: str = ""
    unclear: str = ""


def shown(text: str) -> str:
    """A foreign name as it may be shown: one line, nothing active in it, odd bytes spelled out."""
    return safe(text.encode("utf-8", "backslashreplace").decode())


def folders(root: Path) -> Iterator[Path]:
    """The folders of a run, itself first; links are not followed and hidden folders left out."""
    for seen, (where, inner, _) in enumerate(os.walk(root)):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        if seen >= FOLDERS:
            return
        yield Path(where)


def inside(root: Path, path: Path) -> bool:
    """Whether a path is a regular file that lies in the run, links followed."""
    try:
        real = path.resolve(strict=True)
        return real.is_relative_to(root.resolve()) and stat.S_ISREG(real.stat().st_mode)
    except (OSError, RuntimeError, ValueError):
        return False


def declared_source(root: Path, population: Population) -> Source:
    """The files a declared population names. Each pattern must find at least one, each file stands once."""
    found: dict[Path, None] = {}
    missing: list[str] = []
    for pattern in population.files:
        matches = _matches(root, pattern)
        if not matches:
            missing.append(pattern)
        found.update(dict.fromkeys(matches))
    paths = list(found)
    folder = _relative(root, paths[0].parent) if paths else ""
    shards = _shards(paths)
    wrong = f"declared predictions are not there: {', '.join(missing[:3])}" if missing else ""
    targets, no_targets = _target_files(root, population)
    return Source(
        name=population.name or folder or "predictions",
        folder=folder,
        files=tuple((_relative(root, path), path) for path in paths),
        declared=population,
        targets=targets,
        split=_split_of(population.name or folder),
        wrong=wrong or no_targets or (shards.wrong if shards is not None else ""),
    )


def _target_files(root: Path, population: Population) -> tuple[tuple[tuple[str, Path], ...], str]:
    """The declared target files, and what is wrong with them. An absolute path is the operator's word."""
    found: dict[Path, str] = {}
    missing: list[str] = []
    for pattern in population.target_files:
        absolute = Path(pattern)
        if absolute.is_absolute():
            matches = {absolute: shown(pattern)} if absolute.is_file() else {}
        else:
            matches = {path: _relative(root, path) for path in _matches(root, pattern)}
        if not matches:
            missing.append(pattern)
        found |= matches
    wrong = f"declared targets are not there: {', '.join(missing[:3])}" if missing else ""
    return tuple((name, path) for path, name in found.items()), wrong


def _matches(root: Path, pattern: str) -> list[Path]:
    pure = PurePosixPath(pattern)
    if pure.is_absolute() or ".." in pure.parts:
        return []
    found: list[Path] = []
    for path in root.glob(pattern):
        if inside(root, path):
            found.append(path)
        if len(found) > FILES:
            break
    return sorted(found)


def recognised_sources(root: Path, folder: Path) -> list[Source]:
    """Populations in one folder that the names of its files show: one a split, of one file or its shards."""
    entries = sorted(_names(folder))
    here = _by_split(root, folder, entries, _prediction_name)
    if not here:  # a folder for them, which says what its files are
        for name in (name for name in entries if name.lower() in _FOLDERS and (folder / name).is_dir()):
            below = _by_split(root, folder / name, sorted(_names(folder / name)), _inner_name)
            if below:
                return [_source(root, folder / name, split, groups) for split, groups in below.items()]
    return [_source(root, folder, split, groups) for split, groups in here.items()]


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []


_Named = tuple[str | None, tuple[str, str]]
_Groups = dict[tuple[str, str], list[Path]]


def _by_split(
    root: Path, folder: Path, names: Sequence[str], told: Callable[[str], _Named | None]
) -> dict[str | None, _Groups]:
    by_split: dict[str | None, _Groups] = {}
    for name in names:
        found = told(name)
        if found is not None and inside(root, folder / name):
            split, key = found
            by_split.setdefault(split, {}).setdefault(key, []).append(folder / name)
    return by_split


def _inner_name(name: str) -> _Named | None:
    """As `_prediction_name` tells it; a split or a number is enough where the folder names the rest."""
    return _prediction_name(name) or _prediction_name(f"predictions_{name}")


def _source(root: Path, folder: Path, split: str | None, groups: dict[tuple[str, str], list[Path]]) -> Source:
    where = _relative(root, folder)
    name = "/".join(part for part in (where, split or "") if part) or "predictions"
    sets: list[list[Path]] = []
    for paths in groups.values():
        whole = [path for path in paths if _shard(path) is None]
        parts = [path for path in paths if _shard(path) is not None]
        sets += [[path] for path in whole] + ([parts] if parts else [])
    if len(sets) > 1:
        names = " or ".join(_set_name(paths) for paths in sets[:4])
        return Source(
            name, where, (), split=split, unclear=f"the predictions could be {names}; name them in [custody]"
        )
    shards = _shards(sets[0])
    return Source(
        name,
        where,
        tuple((_relative(root, path), path) for path in sets[0]),
        split=split,
        wrong="" if shards is None else shards.wrong,
    )


def _set_name(paths: Sequence[Path]) -> str:
    name = shown(paths[0].name)
    return name if len(paths) == 1 else f"{name} and {len(paths) - 1} more parts"


def _prediction_name(name: str) -> _Named | None:
    """The split a file name speaks of and what its shards have in common; None for other files."""
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a bare name
    if suffix.lower() not in SUFFIXES:
        return None
    shard = _SHARD.match(stem)
    base = shard["base"] if shard is not None and _is_shard(shard) else stem
    words = re.findall(r"[a-z0-9]+", base.lower())
    if not _STEMS.intersection(words):
        return None
    rest = [word for word in words if word not in _STEMS]
    splits = {_SPLITS[word] for word in rest if word in _SPLITS}
    if len(splits) > 1 or any(word not in _SPLITS for word in rest):
        return None
    if suffix.lower() == ".json" and "results" in words:
        return None  # a summary, as everybody calls it, not rows
    return (splits.pop() if splits else None), (base, suffix)


@dataclass(frozen=True)
class _Shards:
    wrong: str


def _is_shard(match: re.Match[str]) -> bool:
    return match["index"] is not None or match["of"] is not None


def _shard(path: Path) -> tuple[str, int, int | None] | None:
    match = _SHARD.match(path.stem)
    if match is None or not _is_shard(match):
        return None
    total = None if match["total"] is None else int(match["total"])
    return match["base"], int(match["index"] or match["place"] or 0), total


def _shards(paths: Sequence[Path]) -> _Shards | None:
    """What the numbers in the names of shards say about their set; None where they are none."""
    parts = [_shard(path) for path in paths]
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts) or len({base for base, _, _ in known}) != 1:
        return None
    numbers = sorted(number for _, number, _ in known)
    totals = {total for _, _, total in known if total is not None}
    start = 1 if totals and min(numbers) == 1 and max(numbers) == max(totals) else 0
    count = max(totals) if totals else numbers[-1] + 1 - start
    if len(totals) > 1:
        return _Shards("the parts do not agree on how many they are")
    missing = sorted(set(range(start, start + count)) - set(numbers))
    if missing:
        return _Shards(
            f"part {missing[0]} of {count} is missing" + (f" ({len(missing)} in all)" if missing[1:] else "")
        )
    if len(numbers) != len(set(numbers)) or len(numbers) > count:
        return _Shards("a part is there twice")
    return _Shards("")


def _split_of(name: str) -> str | None:
    words = re.findall(r"[a-z]+", name.lower())
    return next((_SPLITS[word] for word in words if word in _SPLITS), None)


def _relative(root: Path, path: Path) -> str:
    text = path.relative_to(root).as_posix()
    return "" if text == "." else shown(text)

"""What belongs into the export of a run, and what is wrong with it by its names and its figures. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

from tui.model.globs import matching
from tui.model.job import Job
from tui.model.text import SafeText, safe

IDENTITIES = "run.json"
_LATEST = "latest.pth"
_UNFINISHED = (".tmp", ".part", ".partial", ".incomplete")


def choose(job: Job, paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[SafeText, ...]]:
    """Which files of a run belong into its export, and what is wrong with them by name alone.

    What the ``[custody]`` table declares is taken as it is; without one: artifacts, log and checkpoints.
    ``latest.pth`` is what the next save would have written over, and never the thing itself.
    """
    needed, wanted = _globs(job)
    lasting = [path for path in paths if path.rpartition("/")[2] != _LATEST]
    chosen: dict[str, None] = {}
    reasons: list[SafeText] = []
    for glob in needed:
        found = matching(glob, lasting)
        chosen |= dict.fromkeys(found)
        if not found:
            only = f" but {_LATEST}, which is no result" if matching(glob, paths) else ""
            reasons.append(safe(f"Nothing matches {glob}, which must be there{only}.", 300))
    for glob in wanted:
        chosen |= dict.fromkeys(matching(glob, lasting))
    reasons += [
        safe(f"{path} is not finished: its name says so.", 300)
        for path in chosen
        if any(part.endswith(_UNFINISHED) for part in path.split("/"))
    ]
    reasons += _counted(job, paths)
    if not chosen:
        reasons.append(safe("The run left nothing that belongs into an export."))
    return tuple(chosen), tuple(reasons)


def _globs(job: Job) -> tuple[list[str], list[str]]:
    """What must be there, and what may."""
    table = job.custody
    if table is not None and (table.artifacts or table.optional):
        needed = [glob for globs in table.artifacts.values() for glob in globs]
        wanted = [glob for globs in table.optional.values() for glob in globs]
    else:
        needed = [stage.artifact for stage in job.chain() if stage.artifact]
        needed += [job.checkpoints] if job.checkpoints else []
        wanted = [job.log]
    return [glob for glob in needed if glob != IDENTITIES], wanted  # that one the close-out makes itself


def _counted(job: Job, paths: Sequence[str]) -> Iterator[SafeText]:
    """How many files of a role there must be, where the job says it of roles that it names globs for."""
    table = job.custody
    for role, count in table.counts.items() if table is not None else ():
        globs = (*table.artifacts.get(role, ()), *table.optional.get(role, ())) if table is not None else ()
        found = {path for glob in globs for path in matching(glob, paths)}
        if globs and len(found) != count:
            yield safe(f"{len(found)} of role {role} are there; the job says {count}.", 300)


def read_json(text: bytes) -> object:
    """What a file says. Raises ValueError: it is no JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("too deep") from None


def figures_missing(job: Job, files: Mapping[str, object], unread: Sequence[str] = ()) -> Iterator[SafeText]:
    """Metrics that the job declares and the export does not hold as finite numbers.

    Args:
        files: contents of the JSON files of the export.
        unread: JSON files of it that could not be read whole: nothing is said of what they may hold.
    """
    for metric in job.custody.metrics if job.custody is not None else ():
        if metric.reported is not None or metric.file in unread:
            continue
        if metric.file is not None and metric.file not in files:
            if metric.file.endswith(".json"):
                yield safe(f"{metric.file} is not there, and must hold {metric.name}.", 300)
            continue
        asked = [files[metric.file]] if metric.file is not None else list(files.values())
        values = [value for data in asked for value in _at(data, metric.name.split("/"))]
        if any(_is_figure(value) for value in values):
            continue
        where = metric.file or "any metrics file"
        if values:
            yield safe(f"{metric.name} in {where} is no finite number.", 300)
        elif metric.file is not None or not unread:
            yield safe(f"{metric.name} is not in {where}.", 300)


def _at(data: object, keys: Sequence[str]) -> Iterator[object]:
    """The values that a name with ``/`` means: nested keys, or keys that hold one themselves."""
    if not keys:
        yield data
    elif isinstance(data, dict):
        for cut in range(1, len(keys) + 1):
            if (key := "/".join(keys[:cut])) in data:
                yield from _at(data[key], keys[cut:])


def _is_figure(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        return math.isfinite(float(value))
    except (ValueError, OverflowError):
        return False

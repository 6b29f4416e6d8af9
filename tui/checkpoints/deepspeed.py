"""DeepSpeed's folders: one file of model state, one of optimizer state per rank, and ``latest`` written last.

Names as `deepspeed/runtime/engine.py` writes them: ``mp_rank_MM_model_states.pt``, with ZeRO
``zero_pp_rank_D_mp_rank_MM_optim_states.pt`` (``bf16_`` before it for bf16), with ZeRO-3 a model state per
rank.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tui.checkpoints.judged import Judged, say
from tui.checkpoints.sharded import Whole, of_parts, read_small
from tui.checkpoints.source import Opener, Source
from tui.model.verdict import CheckpointVerdict

_OPTIMIZER = re.compile(
    r"(?P<pre>(?:bf16_|fp16_)?)zero_pp_rank_(?P<dp>\d+)_mp_rank_(?P<mp>\d+)_optim_states\.pt"
)
_PER_RANK = re.compile(r"zero_pp_rank_(?P<dp>\d+)_mp_rank_(?P<mp>\d+)_model_states\.pt")
_MODEL = re.compile(r"mp_rank_(?P<mp>\d+)_model_states\.pt")
_LAYER = re.compile(r"layer_\d+-model_\d+-model_states\.pt")
_MAX_WORLD = 65_536
_LISTED = 100


def is_state(name: str) -> bool:
    """Whether DeepSpeed writes files of that name."""
    return any(pattern.fullmatch(name) for pattern in (_OPTIMIZER, _PER_RANK, _MODEL, _LAYER))


@dataclass(slots=True)
class Tag:
    """One generation, such as ``global_step100``."""

    name: str
    files: Mapping[str, Judged]
    missing: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    world: int | None = None
    step: int | None = None
    states: dict[str, CheckpointVerdict] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        return not self.missing and all(state.verdict == "ok" for state in self.states.values())


def read_tag(name: str, files: Mapping[str, Judged]) -> Tag | None:
    """A folder of states; None where it holds none."""
    states = {n: judged.verdict for n, judged in files.items() if is_state(n)}
    if not states:
        return None
    tag = Tag(name, files, states=states)
    tag.world, model_world = _worlds(tag)
    tag.step = _step(tag)
    tag.missing = tuple(n for n in _expected(tag, model_world) if n not in states)
    return tag


def _worlds(tag: Tag) -> tuple[int, int]:
    """How many data and model parallel ranks wrote it: what the states say, else what is there."""
    data = model = 0
    for name in tag.states:
        contents = tag.files[name].contents
        facts = contents.facts if contents is not None else {}
        data = max(data, _number(facts.get("dp_world_size")))
        model = max(model, _number(facts.get("mp_world_size")))
    for name in tag.states:
        match = _OPTIMIZER.fullmatch(name) or _PER_RANK.fullmatch(name) or _MODEL.fullmatch(name)
        if match:
            data = max(data, int(match.groupdict().get("dp") or 0) + 1)
            model = max(model, int(match["mp"]) + 1)
    return min(data, _MAX_WORLD), min(model or 1, _MAX_WORLD)


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _expected(tag: Tag, model_world: int) -> list[str]:
    names = list(tag.states)
    world = tag.world or 1
    optimizers = [match for name in names if (match := _OPTIMIZER.fullmatch(name))]
    per_rank = any(_PER_RANK.fullmatch(name) for name in names)
    if world * model_world > _MAX_WORLD:
        world = max(1, _MAX_WORLD // model_world)
    expected = []
    for mp in range(model_world):
        if per_rank:
            expected += [f"zero_pp_rank_{dp}_mp_rank_{mp:02d}_model_states.pt" for dp in range(world)]
        else:
            expected.append(f"mp_rank_{mp:02d}_model_states.pt")
        if optimizers:
            before = optimizers[0]["pre"]
            expected += [f"{before}zero_pp_rank_{dp}_mp_rank_{mp:02d}_optim_states.pt" for dp in range(world)]
    return expected


def _step(tag: Tag) -> int | None:
    for name in tag.states:
        contents = tag.files[name].contents
        if contents is not None and contents.step is not None and not _OPTIMIZER.fullmatch(name):
            return contents.step
    match = re.search(r"(\d+)\Z", tag.name)
    return int(match[1][:15]) if match else None


def judge_deepspeed(path: str, tags: list[Tag], latest: str | None, names: frozenset[str]) -> Whole:
    """The checkpoint one would go on from: the one ``latest`` names.

    Args:
        latest: the text of that file; None where it is not there.
        names: of everything in the folder.
    """
    usable = [tag for tag in tags if tag.usable]
    best = max(usable, key=lambda tag: tag.step if tag.step is not None else -1, default=None)
    parts = {f"{tag.name}/{name}" for tag in tags for name in tag.states} | {"latest"}
    common: dict[str, Any] = {"usable": best.name if best else None}
    if latest is not None and ("/" in latest or latest in ("", ".", "..")):
        detail = "path leaves the folder"
        return Whole(say(path, "deepspeed", "unsafe", "path", latest, detail=detail, **common), parts)
    wanted = next((tag for tag in tags if tag.name == latest), None)
    if latest is not None and wanted is None:
        what = "pointer" if latest not in names else "rank"
        return Whole(say(path, "deepspeed", "incomplete", what, latest, missing=(latest,), **common), parts)
    if wanted is None:
        newest = max(tags, key=lambda tag: tag.step if tag.step is not None else -1)
        if newest.usable:
            return Whole(
                say(path, "deepspeed", "incomplete", "file", "latest", missing=("latest",), **common), parts
            )
        wanted = newest
    return Whole(of_tag(path, wanted, **common), parts)


def of_tag(path: str, tag: Tag, **more: Any) -> CheckpointVerdict:
    """The verdict on one generation."""
    common = {"step": tag.step, "world": tag.world, **more}
    verdict = of_parts(path, "deepspeed", tag.states, **common)
    if verdict.verdict in ("unsafe", "corrupt") or not tag.missing:
        return verdict
    why = ", ".join(tag.missing[:3])
    return say(path, "deepspeed", "incomplete", "rank", why, missing=tag.missing[:_LISTED], **common)


def read_pointer(absolute: str, opener: Opener = Source) -> str | None:
    """The one line of a file that names a checkpoint; None where it is something else."""
    raw = read_small(absolute, 4096, opener)
    if raw is None:
        return None
    text = raw.decode("utf-8", "surrogateescape").strip()
    return text if text and len(text) <= 512 and "\n" not in text and "\0" not in text else None

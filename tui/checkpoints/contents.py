"""What a checkpoint holds, told from its pickle or header alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tui.checkpoints.pickle_values import Call
from tui.checkpoints.tensors import Span, Tensor

MAX_TENSORS = 100_000
MAX_DEPTH = 100

STATE_DICTS = (
    "state_dict", "model_state_dict", "model", "module", "model_state", "net", "network", "weights", "params",
    "ema", "model_ema", "generator", "G",
)  # fmt: skip
"""Keys under which trainers keep the weights, the commonest first."""

_PREFIXES = ("module.", "_orig_mod.", "model.")
_STEPS = (
    "global_step", "global_steps", "step", "iteration", "iter", "total_steps", "iter_num", "num_updates",
    "train_step", "current_step",
)  # fmt: skip
_EPOCHS = ("epoch", "epochs_trained", "current_epoch")
_OPTIMIZERS = ("optimizer", "optimizer_states", "optimizer_state_dict", "optim", "optimizer_state", "opt")


@dataclass(slots=True)
class Contents:
    """Tensors and the few plain facts beside them.

    Attributes:
        names: of all tensors of the state dict, for the index of a sharded checkpoint.
        spans: bytes of the file that hold tensors, for whoever looks at the numbers.
        size: bytes of all tensors; None where views may share them.
        big: numbers stand there with their most significant byte first.
        packed: some spans are deflated: torch cannot map them.
        gap: why the spans do not cover every tensor; empty where they do.
        facts: whole numbers and short texts at the top, by key.
    """

    names: tuple[str, ...] = ()
    spans: list[Span] = field(default_factory=list)
    tensors: int = 0
    elements: int = 0
    dtypes: dict[str, int] = field(default_factory=dict)
    keys: int | None = None
    prefix: str | None = None
    epoch: int | None = None
    step: int | None = None
    flavour: str | None = None
    resumable: bool | None = None
    size: int | None = None
    metadata: dict[str, str] | None = None
    big: bool = False
    packed: bool = False
    gap: str = ""
    facts: dict[str, int | str] = field(default_factory=dict)


def tensors_in(value: object) -> tuple[list[tuple[str, Tensor]], bool]:
    """Every tensor with its dotted path, and whether that is all of them. Shared parts are walked once."""
    found: list[tuple[str, Tensor]] = []
    seen: set[int] = set()
    waiting: list[tuple[str, object, int]] = [("", value, 0)]
    complete = True
    while waiting:
        path, node, depth = waiting.pop()
        if isinstance(node, Tensor):
            found.append((path, node))
            if len(found) >= MAX_TENSORS:
                return found, False
            continue
        inner = _children(node)
        if inner is None or id(node) in seen:
            continue
        seen.add(id(node))
        if depth > MAX_DEPTH:
            complete = False
            continue
        waiting += [(f"{path}.{key}" if path else key, child, depth + 1) for key, child in reversed(inner)]
    return found, complete


def _children(node: object) -> list[tuple[str, object]] | None:
    if isinstance(node, dict):
        return [(str(key)[:200], child) for key, child in node.items()]
    if isinstance(node, list | tuple):
        return [(str(place), child) for place, child in enumerate(node)]
    if isinstance(node, Call):
        return [*(_children(node.state) or []), *(_children(node.arguments) or [])]
    return None


def contents_of(value: object, *, complete: bool = True) -> Contents:
    """What the value of a torch pickle says of itself. Spans are added by whoever knows the file."""
    tensors, whole = tensors_in(value)
    contents = Contents(
        gap="" if complete and whole else "more tensors than are listed", tensors=len(tensors)
    )
    contents.elements = sum(tensor.elements for _, tensor in tensors)
    contents.dtypes = dict(Counter(tensor.dtype for _, tensor in tensors))
    if not isinstance(value, dict):
        return contents
    top = {key: child for key, child in value.items() if isinstance(key, str)}
    weights = state_dict(top)
    contents.keys = len(weights) if weights is not None else len(value)
    contents.names = tuple(weights or ())
    contents.prefix = prefix_of(contents.names)
    contents.facts = {
        k: v for k, v in top.items() if isinstance(v, int) or (isinstance(v, str) and len(v) < 200)
    }
    contents.step = _first(contents.facts, _STEPS)
    contents.epoch = _first(contents.facts, _EPOCHS)
    optimizer = any(isinstance(top.get(key), dict | list) and top[key] for key in _OPTIMIZERS)
    contents.resumable = True if optimizer and weights is not None else None
    contents.flavour = _flavour(top, weights)
    return contents


def state_dict(top: Mapping[str, object]) -> dict[str, object] | None:
    """The dict of weights: `top` itself where its values are mostly tensors, else one it holds."""
    if _is_weights(top):
        return dict(top)
    for key in STATE_DICTS:
        inner = top.get(key)
        if isinstance(inner, Call) and isinstance(inner.state, dict):
            continue  # a whole model: its parts are no state dict
        if isinstance(inner, dict):
            named = {k: v for k, v in inner.items() if isinstance(k, str)}
            if _is_weights(named):
                return named
    return None


def _is_weights(values: Mapping[str, object]) -> bool:
    return bool(values) and 2 * sum(isinstance(v, Tensor) for v in values.values()) > len(values)


def prefix_of(names: Iterable[str]) -> str | None:
    """What a wrapper put before every name, such as ``module.`` of DDP; None where nothing."""
    names, prefix = list(names), ""
    while names:
        found = next((p for p in _PREFIXES if all(n.startswith(p, len(prefix)) for n in names)), None)
        if found is None:
            break
        prefix += found
    return prefix or None


def _first(facts: Mapping[str, int | str], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = facts.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _flavour(top: Mapping[str, object], weights: object) -> str | None:
    if "pytorch-lightning_version" in top:
        return "lightning"
    if top.keys() == {"state", "param_groups"}:
        return "optimizer_only"
    if {"model", "ema", "train_args"} <= top.keys() or {"model", "ema", "updates", "date"} <= top.keys():
        return "ultralytics"
    if weights is None and any(isinstance(v, Call) for v in top.values()):
        return "whole_module"
    return None

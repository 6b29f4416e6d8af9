"""What a file is for, by its name: the role of a result, and what can be made again."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from tui.custody.layouts.tree import is_weights
from tui.model.custody import Role

_CACHES = """
    __pycache__ .cache .pytest_cache .mypy_cache .ruff_cache .ipynb_checkpoints .npm .nv .triton .keras .conda
    .vscode-server .cursor-server .windsurf-server .mamba .local miniconda3 anaconda3 miniforge3 mambaforge
    node_modules site-packages .venv venv .tox .uv .cargo .rustup lost+found torchinductor_root
"""
_CACHE_NAMES = frozenset(_CACHES.split())
_BUFFERS = frozenset(("trackio",))  # inside ~/.cache/huggingface: metrics that were never sent
_RULES: tuple[tuple[Role, re.Pattern[str]], ...] = (
    (
        "environment",
        re.compile(
            r"(?:requirements|environment|pip[_-]?freeze|conda|versions|run)[^/]*\.(?:txt|ya?ml|json)\Z"
        ),
    ),
    (
        "predictions",
        re.compile(
            r"(?:.*(?:pred|logits|outputs?|probs)[^/]*\.(?:parquet|csv|jsonl|npz|npy|safetensors)"
            r"|results?\.parquet)\Z"
        ),
    ),
    (
        "metrics",
        re.compile(
            r".*(?:metrics?|results?|scores?|eval|report|summary)[^/]*\.(?:json|jsonl|csv|ya?ml|txt)\Z"
        ),
    ),
    (
        "log",
        re.compile(
            r"(?:.*\.(?:log|out|err)|events\.out\.tfevents\..*|train[^/]*\.csv|log[^/]*\.(?:txt|jsonl|csv)"
            r"|trainer_state\.json|history[^/]*\.(?:json|csv))\Z"
        ),
    ),
    ("config", re.compile(r"(?:.*\.(?:ya?ml|toml|ini|cfg|gin)|[^/]*config[^/]*\.json|args\.json)\Z")),
)


def role_of(path: str, size: int) -> Role:
    """The role of a result, by its name."""
    name = posixpath.basename(path).lower()
    for role, pattern in _RULES:
        if pattern.match(name):
            return role
    return "checkpoint" if is_weights(path, size) else "other"


def cache_root(path: str) -> str | None:
    """The folder of things that can be made again which a path lies in, None when it lies in none."""
    parts = path.split("/")
    if not _BUFFERS.isdisjoint(parts):
        return None
    for at, part in enumerate(parts[:-1]):
        if part in _CACHE_NAMES:
            return "/".join(parts[: at + 1])
    return None


def repository_roots(folders: Iterable[str]) -> frozenset[str]:
    """The folders that hold a ``.git``."""
    return frozenset(folder[: -len("/.git")] for folder in folders if folder.endswith("/.git"))


def is_secrets(path: str) -> bool:
    """Whether rgt itself gave a job its secrets there: their values come from the operator's own computer."""
    folder, _, name = path.rpartition("/")
    mine = folder == ".rgt" or folder.endswith("/.rgt")
    return mine and (name == "secrets" or name.startswith(("secrets-", "secrets.part")))

"""The ``[custody]`` table of a job file: what of a run must survive, in the operator's own words.

Not imported by anything the first frame needs: this module brings pydantic.
"""

from __future__ import annotations

import posixpath
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from tui.model.custody import Role
from tui.model.metrics import Declaration

LayoutName = Literal[
    "auto", "sealed-export", "plain", "lightning", "hf-trainer", "ultralytics", "deepspeed", "safetensors"
]


def _glob(value: str) -> str:
    if value.startswith("/") or ".." in value.split("/") or "\0" in value:
        raise ValueError("must be a pattern below root: no leading / and no ..")
    if posixpath.normpath(value) in (".", "") or value.endswith("/"):
        raise ValueError("must name files: write **/* for all of them, or folder/**")
    return value


def _root(value: str) -> str:
    if not value.startswith(("/", "~/")) or "\0" in value or ".." in value.split("/"):
        raise ValueError("must be an absolute folder on the box, or begin with ~/")
    return value.rstrip("/") or "/"


Glob = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_glob)]
Globs = Annotated[tuple[Glob, ...], Field(max_length=1024)]


class CustodyTable(Declaration):
    """What a job declares about its results; the metric part is `Declaration`'s.

    Globs are relative to `root`; ``*`` stays in one folder, ``**`` crosses folders, and a folder's name alone
    stands for everything in it.

    Attributes:
        root: the folder on the box that all paths are below; by default the run's own.
        layout: which program wrote it; ``auto`` recognises it, ``plain`` takes the globs alone.
        artifacts: globs by role. A pattern that matches nothing is refused.
        optional: globs by role that may match nothing.
        counts: how many files of a role there must be.
        generations: how many complete checkpoint generations are kept: the newest ones, or all with 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True)

    root: Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_root)] | None = None
    layout: LayoutName = "auto"
    artifacts: dict[Role, Globs] = Field(default_factory=dict)
    optional: dict[Role, Globs] = Field(default_factory=dict)
    counts: dict[Role, Annotated[int, Field(ge=0, le=1_000_000)]] = Field(default_factory=dict)
    generations: Annotated[int, Field(ge=0, le=100_000)] = 1

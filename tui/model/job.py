"""The job file: what to run, with what, and what proves that it is done. One file for every platform.

Not imported by anything the first frame needs: this module brings pydantic.
"""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from tui.model.custody_table import CustodyTable

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*\Z", re.IGNORECASE)
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhd])\s*\Z")
_GPU = re.compile(
    r"\s*(?P<model>[A-Za-z][\w .+-]*?)?\s*(?::\s*(?P<count>\d+))?\s*(?:,?\s*(?:≥|>=)\s*(?P<size>[^,]+))?\s*\Z"
)


def _size(value: object) -> object:
    """``40 GB`` is 40 · 10⁹ bytes, ``40 GiB`` is 40 · 2³⁰."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _SIZE.match(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("must be a size such as 40 GB or 512 MiB")
    unit = found[2].lower()
    step = 1024 ** "kmgt".index(unit) * 1024 if unit and found[3] else _UNITS[unit]
    return round(float(found[1]) * step)


def _span(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _SPAN.match(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("must be a time such as 90 s, 30 m, 12 h or 2 d")
    return round(float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]])


def _word(value: str) -> str:
    if any(sign in value for sign in "\0\n\r"):
        raise ValueError("holds a line break or a NUL, which no argument of a job may")
    return value


def _below(value: str) -> str:
    if value.startswith(("/", "~")) or ".." in value.split("/") or any(c in value for c in "\0\n\r"):
        raise ValueError("must be a path below the run's folder: no leading / or ~, and no ..")
    return posixpath.normpath(value)


def _on_box(value: str) -> str:
    if (
        not value.startswith(("/", "~/", "{"))
        or ".." in value.split("/")
        or any(c in value for c in "\0\n\r")
    ):
        raise ValueError("must be an absolute path, or begin with ~/ or with a place such as {data}")
    return value


Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Word = Annotated[str, Field(max_length=32768), AfterValidator(_word)]
Argv = Annotated[tuple[Word, ...], Field(min_length=1, max_length=1024)]
Below = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_below)]
OnBox = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_on_box)]
# The schema of an editor must take what the reader takes: a number, or words with a unit.
Bytes = Annotated[
    int,
    BeforeValidator(_size),
    Field(ge=0),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "examples": ["40 GB"]}]}),
]
Seconds = Annotated[
    int,
    BeforeValidator(_span),
    Field(gt=0),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "examples": ["12 h"]}]}),
]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _or_text(schema: dict[str, Any]) -> None:
    """A constraint is mostly written as one text."""
    table = dict(schema)
    schema.clear()
    schema["anyOf"] = [{"type": "string", "examples": ["A100:1, ≥40 GB"]}, table]


class Gpu(Frozen):
    """A constraint, not a machine: ``A100:1, ≥40 GB``, ``:2``, ``>= 24 GB``.

    Attributes:
        model: must occur in the card's name, whatever the case; None: any.
        memory: of each card, in bytes.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, json_schema_extra=_or_text
    )

    model: str | None = None
    count: Annotated[int, Field(ge=0, le=1024)] = 1
    memory: Bytes = 0

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, dict | Gpu):
            return value
        found = _GPU.match(value) if isinstance(value, str) else None
        if found is None or not value.strip():
            raise ValueError("must be written like A100:1, ≥40 GB")
        return {
            "model": found["model"],
            "count": int(found["count"] or 1),
            "memory": found["size"] or 0,
        }


class Resources(Frozen):
    """What a box must have. `disk` and `inodes` must be free where the run lies, with what it will write."""

    gpu: Gpu = Gpu(count=0)
    disk: Bytes = 0
    inodes: Annotated[int, Field(ge=0)] = 0
    memory: Bytes = 0
    cores: Annotated[int, Field(ge=0, le=4096)] = 0


class Slurm(Frozen):
    """What only a Slurm cluster wants to know. Its resources come from the constraint.

    Attributes:
        time: limit of one start; the site's default otherwise.
        gres: the site's own word for the cards, such as ``gpu:a100_80gb:2``, in place of the constraint's.
        at_once: tasks of an array that may run at the same time.
    """

    partition: Word | None = None
    account: Word | None = None
    qos: Word | None = None
    constraint: Word | None = None
    gres: Word | None = None
    time: Seconds | None = None
    at_once: Annotated[int, Field(gt=0)] | None = None


class Code(Frozen):
    """What is pushed.

    Attributes:
        path: folder on this computer, relative to the job file.
        exclude: patterns as in ``.gitignore``; what git ignores is left out anyway.
        config: the file, below `path`, whose hash is the identity of the configuration; it stands in the
            run's receipt and in its export.
    """

    path: str = "."
    exclude: tuple[Word, ...] = ()
    config: Below | None = None


class Input(Frozen):
    """Something that must be there before anything is paid for.

    Attributes:
        path: on the box; places such as ``{data}`` are filled in from the platform's profile.
        here, mirror: where it lies on this computer, or the URL it can be fetched from.
        sha256, bytes: what it must be.
    """

    path: OnBox
    here: str | None = None
    mirror: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    bytes: Bytes | None = None


class Stage(Frozen):
    """One step of a chain. The next begins only when this one's artifact is there.

    Attributes:
        run: the argument vector; no shell reads it.
        artifact: below the run's folder; its being there, whole and new, is what "done" means.
        disk, inodes: what must be free before it starts.
        timeout: after which it is ended.
    """

    name: Slug
    run: Argv
    artifact: Below | None = None
    disk: Bytes = 0
    inodes: Annotated[int, Field(ge=0)] = 0
    timeout: Seconds | None = None


class Seeds(Frozen):
    """What makes a second run the same: told to the job as environment, recorded with the run."""

    seed: int | None = None
    deterministic: bool = False
    cublas_workspace: Literal[":4096:8", ":16:8"] | None = None


class Notify(Frozen):
    """The run tells of its end from the box itself.

    Attributes:
        url_env: names the secret that holds the address.
        kind: the form in which that address wants it.
    """

    url_env: EnvName
    kind: Literal["text", "slack", "feishu", "dingtalk"] = "text"


class Job(Frozen):
    """A job file.

    Attributes:
        name, project: the run's id begins with `name`; it lies in the folder of `project`.
        run: the argument vector of a job of one stage; or `stages` in order.
        finish: the artifact, below the run's folder, that proves the whole job done.
        log, checkpoints: below the run's folder; a glob for `checkpoints`.
        data: the manifest of the data, below the code's folder, such as a list of ``sha256sum``; its hash is
            the identity of the data.
        resume: the identical command goes on where it stopped, though no `checkpoints` are named: a scheduler
            may start it again by itself.
        env: environment; its values are recorded and shown, so no secret belongs here.
        secrets: names of this computer's environment variables that the job gets, by stdin, never shown.
        platforms: candidates in order of preference.
        matrix: names with their values; each combination is one cell of a queue.
        slurm: partition, account and the like, where it runs on a Slurm cluster.
    """

    name: Slug
    project: Slug
    run: Argv | None = None
    stages: Annotated[tuple[Stage, ...], Field(max_length=99)] = ()
    finish: Below | None = None
    log: Below = "train.log"
    checkpoints: Below | None = None
    code: Code = Code()
    data: Below | None = None
    inputs: tuple[Input, ...] = ()
    resources: Resources = Resources()
    env: dict[EnvName, Word] = Field(default_factory=dict)
    secrets: tuple[EnvName, ...] = ()
    seeds: Seeds = Seeds()
    smoke: Argv | None = None
    resume: bool = False
    notify: Notify | None = None
    platforms: tuple[Slug, ...] = ()
    matrix: dict[Slug, Annotated[tuple[str | int | float | bool, ...], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    custody: CustodyTable | None = None
    slurm: Slurm = Slurm()

    @model_validator(mode="after")
    def _one_way_to_run(self) -> Job:
        if (self.run is None) == (not self.stages):
            raise ValueError("give either run, for one stage, or a list of stages")
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise ValueError("two stages have one name")
        if self.notify and self.notify.url_env not in self.secrets:
            raise ValueError("notify.url_env must be one of secrets")
        return self

    def words(self) -> str:
        """Everything that the file says, and nothing that it leaves open: a later rgt has more keys, and the
        same file must make the same run."""
        return self.model_dump_json(exclude_defaults=True)

    def chain(self) -> tuple[Stage, ...]:
        """The stages in order; the last one's artifact is `finish` where it names none itself."""
        stages = self.stages or (Stage(name="train", run=self.run or (), artifact=self.finish),)
        last = stages[-1]
        return (*stages[:-1], last.model_copy(update={"artifact": last.artifact or self.finish}))

"""The front matter of a catalog file: one fault, by what it is known and what may be done about it.

An entry without rules is knowledge: it is found by search and named by no diagnosis.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Group = Literal[
    "memory", "gpu-hardware", "driver", "distributed", "numerics", "data", "storage", "network", "ssh",
    "scheduler", "process", "checkpoint", "dependency", "training", "throughput", "evaluation",
]  # fmt: skip
"""Where an entry belongs. The last three hold what no log shows."""

Kind = Literal["log", "kernel", "gpu", "disk", "memory", "process", "session", "scheduler", "ssh", "shell"]
"""What a text is: a run's log, the kernel's messages, a tool's answer, what an ssh client or a shell said."""

Afterwards = Literal["nothing", "info", "warning", "same"]
"""What is left of a finding when training visibly went on after it."""

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Class = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{2,47}$")]
Month = Annotated[str, Field(pattern=r"^20\d\d-(0[1-9]|1[0-2])$")]

PATTERN_LIMIT = 1000
PREDICATE = re.compile(
    r"^(?P<subject>[a-z]+)\.(?P<field>[a-z0-9_]+)\s*(?P<op>==|!=|<=|>=|<|>|is|in)\s*(?P<value>\S.{0,80})$"
)


def _one_line(value: str) -> str:
    value = value.strip()
    if not value or not value.isprintable():
        raise ValueError("must be one line of visible text")
    return value


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return pattern


def _predicate(text: str) -> str:
    if not PREDICATE.match(text):
        raise ValueError("a predicate reads: subject.field == value")
    return text


Line = Annotated[str, Field(max_length=400), AfterValidator(_one_line)]
Pattern = Annotated[str, Field(min_length=3, max_length=PATTERN_LIMIT), AfterValidator(_compiles)]
Predicate = Annotated[str, Field(max_length=160), AfterValidator(_predicate)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(_Strict):
    """One way in which the fault shows itself. Exactly one of `match`, `reader` and `when` starts it.

    Attributes:
        reads: the kinds of text that are read.
        match: patterns of one line, any of which is enough. Named groups become facts.
        reader: a built-in reader for what no single line shows, such as a series of losses.
        when: predicates about telemetry and known facts that must all hold, for one and the same row.
        unless: patterns that make the same line harmless.
        also: patterns of which one must be found within `within` lines of the line.
        without: patterns of which none may be found within `within` lines; found, the class is ruled out.
        within: how far `also` and `without` look, in lines; 0 is the whole text.
        because: why a text with a line of `without` does not mean this class.
        tells: patterns whose named groups, found within 30 lines of the line, become facts as well.
        rank: how much the line says about the cause: 70 and more names it, 40 to 69 is a general word for it,
            less follows from many causes and yields to them.
        afterwards: what is left when training went on after the line.
        handled: what is left when the program says that it tries again or goes on, and no more is known.
        facts: constants to be told beside the class.
    """

    name: Slug
    reads: tuple[Kind, ...] = ("log", "shell")
    match: tuple[Pattern, ...] = ()
    reader: Slug | None = None
    when: tuple[Predicate, ...] = ()
    unless: tuple[Pattern, ...] = ()
    also: tuple[Pattern, ...] = ()
    without: tuple[Pattern, ...] = ()
    within: int = Field(default=0, ge=0, le=200)
    because: Line | None = None
    rank: int = Field(default=75, ge=0, le=100)
    severity: Literal["fatal", "warning", "info"] | None = None
    confidence: float = Field(default=0.8, gt=0, le=1)
    tells: tuple[Pattern, ...] = ()
    afterwards: Afterwards = "nothing"
    handled: Afterwards = "nothing"
    facts: dict[str, str | int | float | bool | None] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _starts_once(self) -> Rule:
        if bool(self.match) + (self.reader is not None) > 1:
            raise ValueError("match and reader exclude each other")
        if not self.match and self.reader is None and not self.when:
            raise ValueError("a rule needs match, reader or when")
        return self


class Step(_Strict):
    """One step of the remedy.

    Attributes:
        level: consequence, 0 observe to 3 irreversible.
        command: to copy; nothing is ever run by itself.
        look: id of a read-only look, at level 0 only.
    """

    text: Line
    level: int = Field(ge=0, le=3)
    command: Annotated[str, Field(max_length=400), AfterValidator(_one_line)] | None = None
    look: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")] | None = None

    @model_validator(mode="after")
    def _looks_only(self) -> Step:
        if self.look is not None and self.level != 0:
            raise ValueError("a look is at level 0")
        return self


class Source(_Strict):
    """Where the knowledge is from, and when it was last looked at."""

    from_: Line = Field(alias="from")
    verified: Month


class Front(_Strict):
    """The whole front matter.

    Attributes:
        id: the class; an operator's own and pure knowledge begin with ``x_``.
        title: what is wrong, as one would say it.
        plane: where the fault lies: in the machinery around the experiment, or in the experiment itself.
        retry: whether the same configuration may be started again as it is.
        words: what people type when they look for this, in English and Chinese.
        verdict: one sentence for the top of the screen; without it the title stands there.
    """

    id: Class
    title: Line
    group: Group
    plane: Literal["control", "science"]
    severity: Literal["fatal", "warning", "info"] = "warning"
    retry: Literal["identical", "after-fix", "never"] = "after-fix"
    words: tuple[Line, ...] = Field(min_length=1, max_length=80)
    verdict: Line | None = None
    rules: tuple[Rule, ...] = ()
    remedy: tuple[Step, ...] = Field(min_length=1, max_length=12)
    sources: tuple[Source, ...] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def _names_once(self) -> Front:
        names = [rule.name for rule in self.rules]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two rules are named {name}")
        return self

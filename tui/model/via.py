"""How commands reach a machine that does not answer SSH itself: beside a job, in a pod, or not at all.

The written form is what stands in ``fleet.toml`` and what `rgt add` takes:
``slurm:JOBID@LOGIN-BOX``, ``pod:NAMESPACE/NAME[/CONTAINER][@CONTEXT]``, ``job:`` and the same, and ``none``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_JOB = re.compile(r"[0-9]{1,12}(?:_[0-9]{1,9}|\+[0-9]{1,4})?\Z")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_POD = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\Z")
_CONTEXT = re.compile(r"[A-Za-z0-9_][\x21-\x7e]{0,252}\Z")


@dataclass(frozen=True, slots=True)
class SlurmStep:
    """A step inside a running job, started from the login node.

    Attributes:
        job: as squeue prints it: ``4227``, or ``4227_3`` for a task of an array.
        login: name of the fleet's box that is the login node.
    """

    job: str
    login: str

    def __str__(self) -> str:
        return f"slurm:{self.job}@{self.login}"


@dataclass(frozen=True, slots=True)
class PodExec:
    """A process in a pod's container, by the ``kubectl`` of this computer.

    Attributes:
        container: None: the pod's first, or the one it names as its default.
        context: of the kubeconfig; None: it has none, as inside a pod. A current one is never used.
    """

    namespace: str
    pod: str
    container: str | None = None
    context: str | None = None

    def __str__(self) -> str:
        container = f"/{self.container}" if self.container else ""
        context = f"@{self.context}" if self.context else ""
        return f"pod:{self.namespace}/{self.pod}{container}{context}"


@dataclass(frozen=True, slots=True)
class JobExec:
    """A process in whichever pod of a Kubernetes Job runs now: each attempt has a pod of another name.

    Attributes: as those of `PodExec`.
    """

    namespace: str
    job: str
    container: str | None = None
    context: str | None = None

    def __str__(self) -> str:
        return f"job{str(self.at(self.job))[3:]}"

    def at(self, pod: str) -> PodExec:
        """The way into one of its pods."""
        return PodExec(self.namespace, pod, self.container, self.context)


@dataclass(frozen=True, slots=True)
class NoWay:
    """Nothing can be run there; every value is not available, for this reason."""

    why: str = "its platform offers no way to run a command from outside"

    def __str__(self) -> str:
        return "none"


Via = SlurmStep | PodExec | JobExec | NoWay


def is_via(text: str) -> bool:
    """Whether a text is meant to be such a way: then `parse_via` says what is wrong with it."""
    return text.strip().startswith(("slurm:", "pod:", "job:"))


def parse_via(text: str) -> Via:
    """Read the written form. Raises ValueError, whose words go on from the name of the key."""
    kind, _, rest = text.strip().partition(":")
    if kind == "none" and not rest:
        return NoWay()
    if kind == "slurm":
        job, _, login = rest.partition("@")
        if not _JOB.match(job) or not login:
            raise ValueError("must be slurm:JOBID@LOGIN-BOX, such as slurm:4227@hpc")
        return SlurmStep(job, login)
    if kind == "pod":
        return PodExec(*_inside(kind, rest))
    if kind == "job":
        return JobExec(*_inside(kind, rest))
    raise ValueError("must be slurm:JOBID@LOGIN-BOX, pod:NAMESPACE/NAME, job:NAMESPACE/NAME or none")


def _inside(kind: str, text: str) -> tuple[str, str, str | None, str | None]:
    path, at, context = text.partition("@")
    namespace, _, rest = path.partition("/")
    pod, slash, container = rest.partition("/")
    fine = _LABEL.match(namespace) and _POD.match(pod)
    if not fine or (slash and not _LABEL.match(container)) or (at and not _CONTEXT.match(context)):
        raise ValueError(f"must be {kind}:NAMESPACE/NAME, with /CONTAINER and @CONTEXT where they are needed")
    return namespace, pod, container or None, context or None

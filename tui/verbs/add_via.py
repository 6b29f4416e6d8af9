"""`rgt add slurm:JOBID@LOGIN-BOX`, `pod:NAMESPACE/NAME` and `job:NAMESPACE/NAME`: they answer no SSH."""

from __future__ import annotations

from dataclasses import dataclass

from tui.box.cluster import current_context
from tui.fleet import fleet_file, settings
from tui.fleet.paths import Paths
from tui.fleet.toml_edit import Value
from tui.model.failure import Exit, Failure
from tui.model.via import JobExec, PodExec, SlurmStep, Via, parse_via
from tui.verbs.naming import unused


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as it is to be written."""

    name: str
    values: dict[str, Value]


def understood(where: Paths, text: str, name: str | None, more: dict[str, Value]) -> Entry:
    """Read the text and find a name. Raises Failure: it is no such way, or it is known already.

    Args:
        more: further keys, such as the price.
    """
    try:
        via = parse_via(text)
    except ValueError as error:
        raise Failure(
            f"The address {error}.", means="Nothing was added.", exit=Exit.USAGE, code="bad-address"
        ) from None
    if isinstance(via, PodExec | JobExec) and via.context is None:
        via = _pinned(via)
    known = settings.load(where.fleet_file).instances
    twin = next((one.name for one in known if one.via is not None and one.via == via), None)
    if twin:
        raise Failure(
            f"{via} is already in the fleet as {twin}.",
            means="Nothing was added.",
            do=f"`rgt edit {twin} KEY=VALUE` changes it.",
            code="known-box",
        )
    if isinstance(via, SlurmStep):
        login = next((one for one in known if one.name == via.login), None)
        if login is None or login.endpoint is None or login.via is not None:
            raise Failure(
                f"{via.login} is no box of the fleet that answers SSH.",
                means="Nothing was added.",
                do="Add the login node first: rgt add 'ssh USER@LOGIN-NODE' --platform slurm.",
                exit=Exit.USAGE,
                code="unknown-login",
            )
        platform, base = "slurm", f"{via.login}-{via.job}"
    else:
        platform, base = "kubernetes", _base(via)
    values: dict[str, Value] = {"platform": platform, "transport": str(via), **more}
    chosen = name or unused(base, (one.name for one in known))
    settings.check_instance(chosen, values)
    return Entry(chosen, values)


def _base(via: Via) -> str:
    return via.pod if isinstance(via, PodExec) else via.job if isinstance(via, JobExec) else "box"


def _pinned(via: PodExec | JobExec) -> Via:
    """The same with the context that is current now, which another terminal may change at any time."""
    context = current_context()
    try:
        return parse_via(f"{via}@{context}") if context else via
    except ValueError:  # a context of a name that the written form can't hold
        return via


def written(where: Paths, text: str, name: str | None, more: dict[str, Value]) -> Entry:
    """The same, written into the fleet file. Raises Failure."""
    entry = understood(where, text, name, more)
    fleet_file.add_instance(where.fleet_file, entry.name, dict(entry.values))
    return entry

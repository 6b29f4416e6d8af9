"""Which control plane a machine has. A vendor is one module with a function `plane`, and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.fleet.profile_schema import Facts
from tui.model.instance import Instance
from tui.platforms import kubernetes, simulated, slurm, vendors
from tui.platforms.control import ControlPlane, NoControlPlane


@dataclass(frozen=True, slots=True)
class Wanted:
    """The machine that is asked about.

    Attributes:
        facts: its platform's profile, None where there is none.
        where: the operator's files; credentials are found by reference only.
        reach: connects to a box, for what is asked on one; None: by keys alone.
    """

    instance: Instance
    facts: Facts | None
    where: Paths
    reach: slurm.Reach | None = None


Opener = Callable[[Wanted], ControlPlane | str]
"""Makes the control plane of a machine without asking anybody; or says, in words that go on from the
machine's name, why nobody can be asked: "is an ordinary instance, which has no API"."""


def _vendor(wanted: Wanted) -> ControlPlane | str:
    written = settings.load(wanted.where.fleet_file).accounts
    return vendors.control(wanted.instance, written, vendors.finder())


PLANES: Mapping[str, Opener] = {
    simulated.PLATFORM: lambda wanted: simulated.plane(wanted.where),
    slurm.PLATFORM: lambda wanted: slurm.plane(wanted.instance, wanted.where, wanted.reach),
    kubernetes.PLATFORM: lambda wanted: kubernetes.plane(wanted.instance),
    **dict.fromkeys(vendors.WAYS, _vendor),
}
"""By the id of the platform's profile."""


def plane_for(
    wanted: Wanted, otherwise: NoControlPlane, planes: Mapping[str, Opener] = PLANES
) -> ControlPlane | NoControlPlane:
    """The control plane of a machine; where nobody can be asked, `otherwise` with the reason.

    What the demo simulates is never asked about at a real vendor: an id there would be somebody's machine.
    """
    opener = planes.get(wanted.instance.platform)
    if wanted.instance.simulated and wanted.instance.platform != simulated.PLATFORM:
        return replace(otherwise, why=f"{wanted.instance.name} belongs to rgt demo, not to a real provider")
    if opener is None:
        return otherwise
    found = opener(wanted)
    return replace(otherwise, why=f"{wanted.instance.name} {found}") if isinstance(found, str) else found

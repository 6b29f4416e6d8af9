"""The fleet file as the workers use it: read whole, one run added or dropped at a time."""

from __future__ import annotations

from dataclasses import dataclass

from tui.fleet import fleet_file, profiles, settings
from tui.fleet.paths import Paths, shipped
from tui.fleet.platform_facts import next_clock
from tui.model.event import FleetChanged
from tui.model.failure import Failure
from tui.model.run import RunSpec

_PLACE = ("box", "log", "checkpoints", "pid", "pid_start", "boot_id", "session")


@dataclass(slots=True)
class FleetFile:
    """One ``fleet.toml``, and what the profiles say of its platforms."""

    where: Paths

    def load(self) -> tuple[FleetChanged, tuple[Failure, ...]]:
        """Instances and runs with their platforms' clocks, and what was wrong with the rest."""
        loaded = settings.load(self.where.fleet_file)
        found = profiles.load(shipped("profiles"), self.where.profiles)
        facts = found.plain()
        clocks = tuple(
            (i.name, clock)
            for i in loaded.instances
            if (clock := next_clock(facts.get(i.platform), i)) is not None
        )
        caps = tuple(
            (i.name, known.inode_caps)
            for i in loaded.instances
            if (known := facts.get(i.platform)) is not None and known.inode_caps
        )
        wrong = tuple(problem.line for problem in loaded.problems)
        fleet = FleetChanged(loaded.instances, loaded.runs, clocks, wrong, caps)
        return fleet, (*loaded.problems, *found.problems)

    def stamp(self) -> tuple[int, int, int] | None:
        """Changes with the file; None where there is none."""
        try:
            found = self.where.fleet_file.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def add_run(self, spec: RunSpec) -> None:
        """Write a run down. Raises Failure."""
        fleet_file.add_run(self.where.fleet_file, spec.name, _values(spec, *_PLACE, "progress_regex"))

    def set_run(self, spec: RunSpec) -> None:
        """Write a run down, or where it is now, in one step; how its log is read stays. Raises Failure."""
        if any(one.name == spec.name for one in settings.load(self.where.fleet_file).runs):
            fleet_file.edit_run(self.where.fleet_file, spec.name, _values(spec, *_PLACE))
        else:
            self.add_run(spec)

    def remove_run(self, name: str) -> None:
        """Drop a run. Raises Failure."""
        fleet_file.remove_run(self.where.fleet_file, name)

    def remove_box(self, name: str) -> tuple[str, ...]:
        """Drop a box and its runs, whose names are returned. Raises Failure."""
        return fleet_file.remove_instance(self.where.fleet_file, name)

    def repin(self, box: str, fingerprint: str) -> None:
        """Let the file follow a host key the operator accepted, where the file itself names one."""
        instance = next((i for i in settings.load(self.where.fleet_file).instances if i.name == box), None)
        if instance is not None and instance.host_key not in (None, fingerprint):
            fleet_file.set_host_key(self.where.fleet_file, box, fingerprint)


def _values(spec: RunSpec, *keys: str) -> dict[str, fleet_file.Value | None]:
    return {key: getattr(spec, key) for key in keys}

"""The fleet file as the workers use it: read whole, one run added or dropped at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tui.fleet import fleet_file, settings
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.run import RunSpec


@dataclass(slots=True)
class FleetFile:
    """One ``fleet.toml``."""

    path: Path

    def load(self) -> tuple[tuple[Instance, ...], tuple[RunSpec, ...], tuple[Failure, ...]]:
        """Instances, runs and what was wrong with the rest."""
        loaded = settings.load(self.path)
        return loaded.instances, loaded.runs, loaded.problems

    def add_run(self, spec: RunSpec) -> None:
        """Write a run down. Raises Failure."""
        values: dict[str, fleet_file.Value] = {"box": spec.box}
        for key in ("log", "checkpoints", "pid", "pid_start", "boot_id", "session"):
            value = getattr(spec, key)
            if value is not None:
                values[key] = value
        fleet_file.add_run(self.path, spec.name, values)

    def remove_run(self, name: str) -> None:
        """Drop a run. Raises Failure."""
        fleet_file.remove_run(self.path, name)

    def repin(self, box: str, fingerprint: str) -> None:
        """Let the file follow a host key the operator accepted, where the file itself names one."""
        instance = next((i for i in settings.load(self.path).instances if i.name == box), None)
        if instance is not None and instance.host_key not in (None, fingerprint):
            fleet_file.set_host_key(self.path, box, fingerprint)

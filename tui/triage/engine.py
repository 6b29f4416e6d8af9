"""Evidence in, diagnosis out. Pure: it reads no file and asks no box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.model.incident import Diagnosis
from tui.model.telemetry import Telemetry
from tui.triage.inputs import NOTHING_KNOWN, Known, Said

if TYPE_CHECKING:
    from tui.triage.catalog import Catalog
    from tui.triage.scan import Digest


def diagnose(
    catalog: Catalog,
    log: Digest | None = None,
    said: Sequence[Said] = (),
    telemetry: Telemetry | None = None,
    known: Known = NOTHING_KNOWN,
) -> Diagnosis:
    """Say what is wrong with a run or a box.

    Args:
        log: what `tui.triage.scan.scan` kept of the run's log.
        said: answers of commands: looks, and what ssh or a scheduler said.
        telemetry: the newest probe.
        known: what was known before and besides.

    Returns:
        The first cause first. Never raises on any input.
    """
    raise NotImplementedError

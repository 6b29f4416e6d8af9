"""What is said of a mount that is read-only: of most it is meant to be, of some it is the end of a run."""

from __future__ import annotations

from tui.model.snapshot import RunView
from tui.model.telemetry import Filesystem
from tui.widgets.lines import Span

_HOMES = ("/", "/root", "/home")
"""Where a run whose paths are relative writes."""


def read_only_spans(fs: Filesystem, run: RunView | None) -> list[Span]:
    """The word where a mount is read-only, loud only where the run means to write on it."""
    if not fs.read_only:
        return []
    own = (run.spec.log, run.spec.checkpoints) if run is not None else ()
    below = fs.mount.rstrip("/") + "/"
    written = fs.mount in _HOMES or fs.mount.startswith("/home/")
    written = written or any(path.startswith(below) for path in own if path)
    return [("  read-only", "attention" if written else "dim")]

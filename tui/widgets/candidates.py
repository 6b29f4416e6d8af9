"""What looks like a run on this box and is not watched."""

from __future__ import annotations

from typing import Any

from tui.model.reading import Reading
from tui.widgets.lines import Line
from tui.widgets.panel import Panel, Sight, na, unread
from tui.widgets.process_panel import candidate_line

SHOWN = 6


class CandidatePanel(Panel):
    """Candidates to adopt; shown for a box without a watched run, and where there are any."""

    TITLE = "not watched yet"
    MEANING = "Processes and sessions that look like a training run and are not watched."
    PART, PERIODS = "seldom", 15.0

    def wanted(self, sight: Sight) -> bool:
        found = sight.telemetry.candidates.value if sight.telemetry else None
        return sight.run is None or bool(found)

    def reading(self, sight: Sight) -> Reading[Any] | None:
        return sight.telemetry.candidates if sight.telemetry else None

    def body(self, sight: Sight, width: int) -> list[Line]:
        reading = sight.telemetry.candidates if sight.telemetry else None
        if reading is None or reading.value is None:
            return [na(unread(sight, reading), width, sight.glyphs)]
        if not reading.value:
            return [(("  nothing here looks like a run", "dim"),)]
        lines = [candidate_line(c, width, sight) for c in reading.value[:SHOWN]]
        if len(reading.value) > SHOWN:
            lines.append(((f"  {len(reading.value) - SHOWN} more", "dim"),))
        return lines

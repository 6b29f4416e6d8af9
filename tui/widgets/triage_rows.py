"""A diagnosis as entries of a list: verdict, evidence, what was ruled out, what to do. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from tui.fleet.age import age_word, long
from tui.model.event import Diagnosed
from tui.model.incident import Diagnosis, Evidence, Incident, RemedyStep, RuledOut
from tui.model.look import LOOKS, LookAnswer
from tui.model.snapshot import BoxView, RunView
from tui.model.text import SafeText, safe
from tui.widgets.chooser import Entry
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, clip, fit, wrap

WIDE = 70
LEVELS = ("read only", "reversible", "plan first", "irreversible")
SHORT_LEVELS = ("look", "local", "plan", "final")
PLANES = {
    "control": "control plane: the machinery around the experiment",
    "science": "science: the experiment itself",
}
RETRIES = {
    "identical": "the same config may be started again as it is",
    "after-fix": "start again only after the fix",
    "never": "never start this config again as it is",
}
_SHORT_LABEL = {
    "evidence": "why",
    "ruled out": "not",
    "do next": "do",
    "also found": "also",
    "looked at": "seen",
    "more looks": "more",
    "needs you": "wants",
    "leads to": "then",
}
_SHORT_PLANE = {"control": "control plane", "science": "science"}
_SHORT_RETRY = {
    "identical": "retry as it is",
    "after-fix": "retry after the fix",
    "never": "never retry as it is",
}
STORAGE = frozenset({"disk_full", "inodes_full", "quota_exceeded", "shm_exhausted"})


@dataclass(frozen=True, slots=True)
class TriageView:
    """What a diagnosis is drawn from.

    Attributes:
        at_incident: place of the incident that is shown in full.
        asked_at: when a diagnosis was last asked for; None before.
        mount: the mount that presses, where one does.
        running: looks that were asked for and have not answered.
        all_evidence: show every piece, not just what there is room for.
    """

    box: BoxView | None
    run: RunView | None
    told: Diagnosed | None
    now: float
    period_s: float
    glyphs: Glyphs
    at_incident: int = 0
    asked_at: float | None = None
    mount: str = ""
    running: frozenset[str] = frozenset()
    all_evidence: bool = False

    @property
    def incident(self) -> Incident | None:
        found = self.told.diagnosis.incidents if self.told is not None else ()
        return found[min(self.at_incident, len(found) - 1)] if found else None

    @property
    def looks(self) -> tuple[LookAnswer, ...]:
        return self.box.looks if self.box is not None else ()


def entries(view: TriageView, width: int, height: int) -> list[Entry]:
    """Everything about a diagnosis, most wanted first, for a list of this size."""
    if view.told is None:
        return [Entry(tuple(_waiting(view, width)))]
    head = [Entry((*_verdict(view, view.told.diagnosis, width), *_standing(view, width)))]
    incident = view.incident
    if incident is None:
        ruled = list(_ruled_out(view.told.diagnosis.ruled_out, view, width))
        press, steps = list(_pressing(view, width)), list(_against_pressure(view, width))
        looks = list(_looks(view, width, ("disk_files", "storage") if steps else ()))
        return _airy([head, press, steps, ruled, list(_looked_at(view, width)), looks], height)
    ruled = list(_ruled_out((*incident.ruled_out, *view.told.diagnosis.ruled_out), view, width))
    steps = list(_steps(incident, view, width))
    others = [*_leads_to(incident, view, width), *_others(view, width)]
    used = sum(len(e.lines) for e in (*head, *ruled)) + min(3, sum(len(e.lines) for e in steps))
    room = max(2, height - used) if not view.all_evidence else 10_000
    used_looks = tuple(step.look for step in incident.remedy if step.look)
    shown = list(_evidence(incident, view, width, room))
    seen = list(_looked_at(view, width))
    return _airy([head, shown, ruled, steps, others, seen, list(_looks(view, width, used_looks))], height)


def _airy(parts: Sequence[Sequence[Entry]], height: int) -> list[Entry]:
    """The parts below each other, with air between them where all that is urgent fits with it."""
    tight = [entry for part in parts for entry in part]
    urgent = sum(len(entry.lines) for part in parts[:-1] for entry in part) + len(parts)
    if urgent > height:
        return tight
    return [entry for part in parts if part for entry in (*part, Entry(((),)))][:-1]


def first_choice(found: Sequence[Entry]) -> object | None:
    """Where the cursor begins: on the first thing to do."""
    keys = [entry.key for entry in found if entry.key is not None]
    return next((key for key in keys if isinstance(key, tuple) and key[0] == "step"), None)


def label_cells(width: int) -> int:
    """Cells of the label column."""
    return 12 if width >= WIDE else 6


def _waiting(view: TriageView, width: int) -> Iterator[Line]:
    yield ()
    since = "" if view.asked_at is None else f", asked {age_word(view.asked_at, view.now, view.period_s)}"
    text = f"Reading the log, the newest probe and the catalog{since}."
    if view.asked_at is not None and view.now - view.asked_at > 15:
        text = f"No diagnosis came for {long(view.now - view.asked_at)}; log and probe are as they were."
    for part in wrap(text, width - 4):
        yield ((f"  {part}", "dim"),)


def _verdict(view: TriageView, told: Diagnosis, width: int) -> Iterator[Line]:
    incident = view.incident
    glyphs = view.glyphs
    level, glyph = _mark(incident, told, glyphs, pressed=bool(view.told and view.told.pressing))
    text = told.verdict if view.at_incident == 0 or incident is None else incident.title
    for i, part in enumerate(wrap(text, max(10, width - 4))):
        yield ((f" {glyph} " if i == 0 else "   ", level), (part, f"strong {level}".strip()))


def _mark(incident: Incident | None, told: Diagnosis, glyphs: Glyphs, *, pressed: bool) -> tuple[str, str]:
    if incident is not None:
        if incident.severity == "fatal":
            return "danger", glyphs.gone
        return ("attention", glyphs.attention) if incident.severity == "warning" else ("", glyphs.dot)
    if told.outcome == "unreachable" or (told.outcome == "unknown" and not pressed):
        return "dim", glyphs.unknown
    wants = pressed or told.outcome in ("dead", "stalled")
    return ("attention", glyphs.attention) if wants else ("", glyphs.done)


def _standing(view: TriageView, width: int) -> Iterator[Line]:
    """How the run stands, and what sort of fault it is: labelled apart, in words."""
    assert view.told is not None
    outcome, run, incident = view.told.diagnosis.outcome, view.run, view.incident
    why = f": {run.why}" if run is not None and run.state.value == outcome else ""
    yield from _wrapped(f"{outcome if run is not None else f'box {outcome}'}{why}", width, "")
    if incident is None:
        return
    sure = f"{incident.confidence * 100:.0f} % sure"
    plane, retry = PLANES[incident.plane], RETRIES[incident.retry]
    parts = [incident.cls, incident.severity, sure, plane, retry]
    if width < WIDE:
        parts = [incident.cls, sure, _SHORT_PLANE[incident.plane], _SHORT_RETRY[incident.retry]]
    yield from _wrapped(f" {view.glyphs.dot} ".join(parts), width, "dim")


def _wrapped(text: str, width: int, style: str) -> Iterator[Line]:
    for part in wrap(safe(text), max(10, width - 4)):
        yield (("   ", ""), (part, style))


def _evidence(incident: Incident, view: TriageView, width: int, room: int) -> Iterator[Entry]:
    found = incident.evidence
    rows = [(n, _evidence_line(one, n, view, width)) for n, one in enumerate(found)]
    shown = rows if len(rows) <= room else rows[: max(1, room - 1)]
    for place, (n, line) in enumerate(shown):
        yield Entry((_labelled("evidence" if place == 0 else "", line, view, width),), ("evidence", n))
    if len(shown) < len(rows):
        more: Line = ((f"{view.glyphs.ellipsis} {len(rows) - len(shown)} more pieces", "dim"),)
        yield Entry((_labelled("", more, view, width),), ("more",))


def _evidence_line(one: Evidence, n: int, view: TriageView, width: int) -> Line:
    place = f"{one.source} {one.line:,}" if one.line is not None else str(one.source)
    age = "" if one.at is None else f"  {age_word(one.at, view.now, view.period_s)}"
    room = width - label_cells(width) - 2
    wide = width >= 100
    cells = min(30, max(12, cell_len(place))) if wide else min(cell_len(place), max(8, room // 4))
    text = fit(one.text, max(8, room - cells - 5 - cell_len(age)), ellipsis=view.glyphs.ellipsis)
    return (
        (f"{n + 1} " if n < 9 else "  ", "strong"),
        (fit(place, cells, ellipsis=view.glyphs.ellipsis), "dim"),
        (f"  {text}", ""),
        (age, "dim"),
    )


def _labelled(label: str, line: Line, view: TriageView, width: int) -> Line:
    """A line after its label; narrow panes have room for the first letters of it only."""
    cells = label_cells(width)
    word = label if width >= WIDE else _SHORT_LABEL.get(label, label)
    head: Span = (f" {fit(word, cells - 1, ellipsis=view.glyphs.ellipsis)}", "dim")
    return clip((head, *line), width - 1, view.glyphs.ellipsis)


def _pressing(view: TriageView, width: int) -> Iterator[Entry]:
    """What is no fault yet and will be one."""
    label = "needs you"
    for text in view.told.pressing if view.told is not None else ():
        for part in wrap(text, max(10, width - label_cells(width) - 2)):
            yield Entry((_labelled(label, ((part, "attention"),), view, width),))
            label = ""


def _against_pressure(view: TriageView, width: int) -> Iterator[Entry]:
    """Where a mount presses, what to do about it before it ends the run."""
    words = view.told.pressing if view.told is not None else ()
    if not view.mount or not any(f" on {view.mount}:" in text for text in words):
        return
    files = RemedyStep(SafeText("List the directories with the most files"), 0, look="disk_files")
    yield _step(("look", "disk_files"), "do next", files, view, width)
    survey = RemedyStep(SafeText(f"Find out what can be freed on {safe(view.mount)}"), 0, look="storage")
    yield _step(("storage", view.mount), "", survey, view, width)


def _ruled_out(found: Sequence[RuledOut], view: TriageView, width: int) -> Iterator[Entry]:
    if not found:
        return
    joint = f" {view.glyphs.dot} "
    text = joint.join(f"{one.cls} ({one.why})" for one in found)
    parts = wrap(safe(text), max(10, width - label_cells(width) - 2))
    most = 3 if width >= WIDE else 1
    if len(parts) > most:
        last = parts[most - 1][: max(1, width - label_cells(width) - 4)]
        parts = [*parts[: most - 1], f"{last} {view.glyphs.ellipsis}"]
    yield Entry(
        tuple(
            _labelled("ruled out" if i == 0 else "", ((part, ""),), view, width)
            for i, part in enumerate(parts)
        ),
        ("ruled",),
    )


def _steps(incident: Incident, view: TriageView, width: int) -> Iterator[Entry]:
    found = list(incident.remedy)
    for n, step in enumerate(found):
        yield _step(("step", n), "do next" if n == 0 else "", step, view, width)
    if view.mount and incident.cls in STORAGE:
        survey = RemedyStep(SafeText(f"Find out what can be freed on {safe(view.mount)}"), 0, look="storage")
        yield _step(("storage", view.mount), "" if found else "do next", survey, view, width)


def _step(
    key: tuple[object, ...],
    label: str,
    step: RemedyStep,
    view: TriageView,
    width: int,
    *,
    quiet: bool = False,
) -> Entry:
    """One thing to do; `quiet` in a list of looks, of which the first says for all that nothing changes."""
    tag = f"L{step.level} {(LEVELS if width >= WIDE else SHORT_LEVELS)[step.level]}"
    if quiet and not label:
        tag = ""
    if step.look and step.look in view.running:
        tag = "asked" if width < WIDE else "asked, waiting"
    elif step.look and (answer := _answer(view, step.look)) is not None:
        tag = _answered(answer, view) if width >= WIDE else age_word(answer.at, view.now, view.period_s)
    room = width - label_cells(width) - 4
    parts = wrap(step.text, max(10, room - cell_len(tag) - 2))
    ink = "dim" if quiet else ""
    style = "danger" if step.level == 3 else "" if step.level == 2 else "dim"
    first: Line = ((fit(parts[0] if parts else "", room - cell_len(tag)), ink), (f"  {tag}", style))
    lines = [_labelled(label, first, view, width)]
    lines += [_labelled("", ((part, ink),), view, width) for part in parts[1:]]
    if step.command:
        lines.append(_labelled("", (("$ ", "dim"), (step.command, "")), view, width))
    return Entry(tuple(lines), key)


def _answer(view: TriageView, look: str) -> LookAnswer | None:
    return next((a for a in reversed(view.looks) if a.look == look), None)


def _answered(answer: LookAnswer, view: TriageView) -> str:
    age = age_word(answer.at, view.now, view.period_s)
    if not answer.lines:
        return f"no answer, {age}"
    return f"{len(answer.lines)} lines, exit {'?' if answer.exit is None else answer.exit}, {age}"


def _others(view: TriageView, width: int) -> Iterator[Entry]:
    assert view.told is not None
    label = "also found"
    for n, one in enumerate(view.told.diagnosis.incidents):
        if one is view.incident:
            continue
        level = {"fatal": "danger", "warning": "attention"}.get(one.severity, "dim")
        which = f"({one.which}) " if one.which else ""
        line: Line = (
            (f"{one.cls} ", level), (f"{which}{one.title}", ""), (f"  {_SHORT_PLANE[one.plane]}", "dim")
        )  # fmt: skip
        yield Entry((_labelled(label, line, view, width),), ("incident", n))
        label = ""


def _leads_to(incident: Incident, view: TriageView, width: int) -> Iterator[Entry]:
    """What else was seen and only follows from this."""
    if incident.also:
        line: Line = ((f"{', '.join(incident.follows)} (follows from it)", "dim"),)
        yield Entry((_labelled("leads to", line, view, width),))


def _looked_at(view: TriageView, width: int) -> Iterator[Entry]:
    """What the diagnosis rests on. Silence about something must not look like health of it."""
    assert view.told is not None
    joint = f" {view.glyphs.dot} "
    parts = [
        f"{what} {'not read' if at is None else age_word(at, view.now, view.period_s)}"
        for what, at in view.told.looked_at
    ]
    if not parts:
        return
    lines = wrap(safe(joint.join(parts)), max(10, width - label_cells(width) - 2))
    yield Entry(
        tuple(
            _labelled("looked at" if i == 0 else "", ((part, "dim"),), view, width)
            for i, part in enumerate(lines)
        )
    )


def _looks(view: TriageView, width: int, used: Sequence[str]) -> Iterator[Entry]:
    """Every other look there is, for an operator who wants to know more."""
    label = "more looks"
    for look in LOOKS:
        if look.id in used:
            continue
        step = RemedyStep(SafeText(look.title), 0, look=look.id)
        yield _step(("look", look.id), label, step, view, width, quiet=True)
        label = ""
    offered = "storage" in used or (view.incident is not None and view.incident.cls in STORAGE)
    if view.mount and not offered:
        step = RemedyStep(SafeText(f"find out what can be freed on {safe(view.mount)}"), 0, look="storage")
        yield _step(("storage", view.mount), label, step, view, width, quiet=True)


def taken_words(view: TriageView) -> str:
    """When the evidence was taken, for the rule."""
    if view.told is None:
        return ""
    at = view.told.diagnosis.taken_at or view.told.at
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    tick = view.box.telemetry.tick if view.box is not None and view.box.telemetry is not None else 0
    probe = f" by probe {tick}" if tick else ""
    age = age_word(at, view.now, view.period_s)
    return f"taken {clock}{probe}{'' if age == 'live' else f', {age} old'}"

"""A teardown in lines of text: its steps, one in full, the leftovers, what becomes of the disks. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from tui.model.teardown import LeftoverView, StepId, StepProgress, StepView, TeardownView, Trouble
from tui.model.text import amount
from tui.widgets.figures import percent
from tui.widgets.gauge import bar_spans
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, clip, end_of, fit, wrap

NAMES: Mapping[StepId, str] = {
    "roster": "1 roster",
    "digest": "2 sha-256",
    "copy": "3 copy",
    "readback": "4 readback",
    "load": "  load",
    "metrics": "  metrics",
    "approval": "5 approval",
    "outcome": "6 outcome",
}
_STOP_NAMES: Mapping[StepId, str] = {**NAMES, "approval": "1 approval", "outcome": "2 outcome"}
_NAME = 13
_ASCII = str.maketrans({"·": "-", "…": "~", "→": ">", "↑": "^", "↓": "v", "–": "-"})
_BAR = 20
_LABEL = 10


def name_of(view: TeardownView, step: StepId) -> str:
    """A step's number and name; a stop without a chain has two."""
    return (NAMES if len(view.steps) > 2 else _STOP_NAMES)[step]


# --- steps ------------------------------------------------------------------------------------------------


def step_line(view: TeardownView, step: StepView, width: int, glyphs: Glyphs) -> Line:
    """One step in one line: number, name, state, and what came of it or how far it is."""
    mark, style = _mark(step, glyphs)
    child = step.id in ("load", "metrics")
    name = (fit(f" {name_of(view, step.id)}", _NAME), "dim" if child or step.state == "waiting" else "strong")
    head: Line = (name, (f"{mark} ", style))
    said = tuple(_brief(step, width - _NAME - 3, glyphs))
    return clip(_drawn((*head, *said), glyphs), width - 1, glyphs.ellipsis)


def _drawn(line: Iterable[Span], glyphs: Glyphs) -> Line:
    """A line in the glyphs of this terminal: the worker's sentences know only one set."""
    if glyphs.name != "ascii":
        return tuple(line)
    return tuple((text.translate(_ASCII), style) for text, style in line)


def _mark(step: StepView, glyphs: Glyphs) -> Span:
    return {
        "waiting": (glyphs.dot, "dim"),
        "running": (glyphs.now, "accent"),
        "done": (glyphs.done, "fine"),
        "refused": (glyphs.gone, "danger"),
        "needs-you": (glyphs.attention, "attention"),
        "failed": (glyphs.gone, "attention"),
    }[step.state]


def _brief(step: StepView, room: int, glyphs: Glyphs) -> Iterator[Span]:
    if step.state == "running":
        if step.progress is not None:
            yield from progress_spans(step.progress, room, glyphs)
        else:
            yield (step.brief or f"at work{glyphs.ellipsis}", "")
        return
    if step.state == "refused":
        first = next(iter(step.refusals), None)
        yield ("refused  ", "danger")
        yield ((f"{first.code}  {first.detail}" if first and not step.brief else str(step.brief)), "")
        return
    word = {"needs-you": "you  ", "failed": "not done  "}.get(step.state, "")
    if word:
        yield (word, "attention")
    yield (step.brief, "dim" if step.state == "waiting" else "")
    if step.state == "done" and step.gaps:
        yield (f"  {len(step.gaps)} gap{'s' if len(step.gaps) > 1 else ''}", "attention")
    if step.reused:
        yield ("  holds still", "dim")


def progress_spans(at: StepProgress, room: int, glyphs: Glyphs) -> Iterator[Span]:
    """A bar with its share, rate and remaining time; without a total, what is done so far."""
    if at.total <= 0:
        yield (str(at.note), "")
        return
    cells = max(0, min(_BAR, room - 34))
    if cells > 3:
        yield from bar_spans(at.done / at.total, cells, glyphs)
        yield ("  ", "")
    yield (f"{percent(100 * at.done / at.total):>5}", "")
    yield (f"  {_rate(at)}", "")
    if at.note:
        yield (f"  {at.note}", "dim")
    elif at.files_total and room >= 62:
        yield (f"  {at.files:,} of {at.files_total:,} files", "dim")


def _rate(at: StepProgress) -> str:
    rate = f"{amount(int(at.rate)):>8}/s" if at.rate is not None else "     ? B/s"
    return f"{rate}  {_left(at.eta_s):>8}"


def _left(seconds: float | None) -> str:
    if seconds is None or not math.isfinite(seconds):
        return "? left"
    if seconds < 90:
        return f"{math.ceil(seconds)} s left"
    if seconds < 5400:
        return f"{round(seconds / 60)} m left"
    return f"{seconds / 3600:.1f} h left"


# --- one step in full -------------------------------------------------------------------------------------


def detail_lines(view: TeardownView, step: StepView, width: int, glyphs: Glyphs) -> list[Line]:
    """What ran, what was expected, what was observed, and everything that stands against it."""
    lines: list[Line] = []
    if view.held:
        lines += _field("held", view.held, width, "danger")
        lines += _field("", "Nothing irreversible is done to it. In a shell: rgt unhold NAME", width, "dim")
    if step.id in ("approval", "outcome"):
        lines += _asked(view, step, width)
    for trouble in step.refusals:
        lines += _trouble("refused", trouble, width, "danger")
    if step.id == "approval" and view.summary:
        lines += _summary(view, width)
    else:
        lines += _field("runs", step.runs, width, "")
        lines += _field("expected", step.expected, width, "")
        label = "observed"
        for text in step.observed:
            lines += _field(label, text, width, "")
            label = ""
    for trouble in step.gaps:
        lines += _trouble("gap", trouble, width, "attention")
    if step.id in ("approval", "roster") and not (step.id == "roster" and view.leftovers):
        for text in view.warnings:
            lines += _field("mind", text, width, "attention")
    if step.at:
        kept = "; looked at again and found to hold" if step.reused else ""
        lines += _field("made", f"{step.at[:19].replace('T', ' ')} UTC{kept}", width, "dim")
    if view.problem:
        lines[:0] = _field("problem", view.problem, width, "danger")
    return [_drawn(line, glyphs) for line in lines]


def _asked(view: TeardownView, step: StepView, width: int) -> list[Line]:
    if step.id == "outcome" and view.console:
        return _field("by hand", view.console, width, "attention")
    return []


def _summary(view: TeardownView, width: int) -> list[Line]:
    wide = max(len(title) for title, _ in view.summary) + 4
    label = wide if width >= 70 else _LABEL + 7
    lines: list[Line] = []
    for title, value in view.summary:
        style = "danger" if title in ("destroys", "act") and view.verb == "destroy" else ""
        lines += _field(title, value, width, style, label)
    return lines


def _trouble(word: str, trouble: Trouble, width: int, style: str) -> list[Line]:
    path = f"{trouble.path}: " if trouble.path else ""
    lines = _field(word, f"{trouble.code}: {path}{trouble.detail}", width, style)
    if trouble.reason:
        lines += _field("", f"you: {trouble.reason}", width, "")
    elif trouble.clears and word == "refused":
        lines += _field("", trouble.clears, width, "dim")
    return lines


def _field(label: str, text: str, width: int, style: str, room: int = _LABEL) -> list[Line]:
    """A label and its text, wrapped under itself."""
    if not text:
        return []
    parts = wrap(text, max(16, width - room - 3))
    return [
        ((fit(f"  {label if i == 0 else ''}", room + 2), "dim"), (part, style))
        for i, part in enumerate(parts)
    ]


# --- leftovers --------------------------------------------------------------------------------------------


def leftover_line(one: LeftoverView, width: int, glyphs: Glyphs, *, marked: bool) -> Line:
    """One group: what was decided, what it is, how much."""
    word, style = {"keep": ("keep ", "strong"), "scrap": ("scrap", "dim"), "": ("?    ", "attention")}[
        one.decision
    ]
    title = max(12, width - 32)
    sizes = f"{one.count:>7,} {amount(one.size):>9}" if one.count else f"{'?':>7} {'? B':>9}"
    like = "strong" if one.checkpoint_like else ""
    return (
        (f" {glyphs.mark if marked else ' '} ", "accent"),
        (f"{word}  ", style),
        (fit(_ending(one.title, title, glyphs), title, ellipsis=glyphs.ellipsis), like),
        (sizes, ""),
    )


def _ending(title: str, width: int, glyphs: Glyphs) -> str:
    """A title whose path, where it is too long, keeps its end."""
    kind, slash, path = title.partition("/")
    room = width - len(kind)
    return kind + end_of(slash + path, room, ellipsis=glyphs.ellipsis) if slash and room > 8 else title


def leftover_head(width: int) -> Line:
    """The head of the list of groups."""
    return ((fit("          NOT ON THE ROSTER", max(22, width - 22)) + f"{'FILES':>7} {'SIZE':>9}", "dim"),)


def leftover_detail(one: LeftoverView, width: int) -> list[Line]:
    """A group in full: examples, and why it was decided so."""
    lines: list[Line] = []
    if one.checkpoint_like:
        told = "These look like checkpoints, and nothing proves that a copy of them is anywhere."
        lines += _field("mind", told, width, "attention")
    label = "such as"
    for path in one.examples:
        lines += _field(label, path, width, "")
        label = ""
    if one.reason:
        lines += _field("you", one.reason, width, "")
    return lines


# --- heads and feet ---------------------------------------------------------------------------------------


def title_spans(view: TeardownView, width: int, glyphs: Glyphs) -> list[Span]:
    """What is ended, at which platform, by which verb, and whether it can be undone, which is never cut."""
    word = "stop" if view.verb == "stop" else "teardown"
    spans: list[Span] = [(f"{word}: {view.box}", "title")]
    if view.machine and width >= 90:
        spans.append((f" ({view.machine})", "dim"))
    if view.act:
        both = view.verb if view.act.casefold() == view.verb else f"{view.act} {view.verb}"
        spans.append((f" {glyphs.dot} {both}", ""))
    if view.verb == "destroy" or view.reversible is False:
        spans.append((f" {glyphs.dot} irreversible", "danger"))
    elif view.reversible:
        spans.append((f" {glyphs.dot} can be undone", "dim"))
    return spans


def fate_spans(view: TeardownView, glyphs: Glyphs) -> list[Span]:
    """What is lost, what goes on billing, what survives: that one is the longest and may be cut."""
    parts: list[list[Span]] = []
    if view.lost:
        parts.append([("lost: ", "dim"), (_listed(view.lost), "danger")])
    if view.bills:
        parts.append([("bills after: ", "dim"), (str(view.bills), "money")])
    if view.survives:
        parts.append([("survives: ", "dim"), (_listed(view.survives), "")])
    spans: list[Span] = []
    for part in parts:
        spans += [(f" {glyphs.dot} ", "rule"), *part] if spans else part
    return spans


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)

"""A guided setup in lines of text: its steps, and one of them in full. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from tui.model.setup import Option, SetupStep, SetupView, StepId
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, clip, fit, wrap

NAMES: Mapping[StepId, str] = {
    "platform": "platform",
    "surface": "know first",
    "key": "ssh key",
    "credentials": "api key",
    "rent": "rent",
    "connect": "login",
    "identity": "identity",
    "audit": "audit",
    "budget": "disk",
    "secrets": "secrets",
    "mirrors": "mirrors",
    "summary": "summary",
}
_NUMBER = 4
_NAME = 12
_LABEL = 10
_TITLE_LEAST = 12


def step_line(view: SetupView, step: SetupStep, width: int, glyphs: Glyphs) -> Line:
    """One step in one line: number, state, name, and what came of it or what is asked."""
    number = [one.id for one in view.steps].index(step.id) + 1
    mark, style = _mark(step, glyphs)
    name = "dim" if step.state == "waiting" else "strong"
    head: Line = (
        (f"{number:>{_NUMBER - 1}} ", "dim"),
        (f"{mark} ", style),
        (fit(NAMES[step.id], _NAME), name),
    )
    return clip((*head, *_brief(step)), width - 1, glyphs.ellipsis)


def _mark(step: SetupStep, glyphs: Glyphs) -> Span:
    return {
        "waiting": (glyphs.dot, "dim"),
        "running": (glyphs.now, "accent"),
        "done": (glyphs.done, "fine"),
        "skipped": (glyphs.dot, "attention"),
        "needs-you": (glyphs.now, "accent"),
        "failed": (glyphs.gone, "danger"),
    }[step.state]


def _brief(step: SetupStep) -> Line:
    if step.state == "skipped":
        return (("skipped  ", "attention"), (str(step.reason), "dim"))
    if step.state == "failed":
        return (("did not do  ", "danger"), (str(step.brief), ""))
    return ((str(step.brief), "dim" if step.state == "waiting" else ""),)


def title_spans(view: SetupView) -> list[Span]:
    """What is set up."""
    about = " · ".join(part for part in (view.platform, view.box) if part)
    return [("setup", "strong"), (f": {about}" if about else "", "")]


def title_cells(options: Sequence[Option], width: int) -> int:
    """Cells that the titles of these options stand in: as many as the longest takes, or half the width."""
    longest = max((cell_len(option.title) for option in options), default=0)
    return min(max(_TITLE_LEAST, longest), max(_TITLE_LEAST, width // 2))


def option_line(option: Option, cells: int, width: int, glyphs: Glyphs) -> Line:
    """One thing to choose: its title in `cells`, and what speaks for it or against it."""
    title = fit(option.title, cells, ellipsis=glyphs.ellipsis)
    return clip(((f"  {title}  ", ""), (option.note, "dim")), width - 1, glyphs.ellipsis)


def cut_note(option: Option, cells: int, width: int) -> list[Line]:
    """What an option's line had no room for, in full; nothing where all of it is on the line."""
    if cells + 4 + cell_len(option.note) < width:
        return []
    return [*_labelled("chosen", option.note, width), ()]


def detail_lines(step: SetupStep, problem: str, width: int) -> list[Line]:
    """A step in full: what is wrong, what it does, what must come of it, what did, and the question."""
    found: list[Line] = []
    if problem:
        found += _labelled("problem", problem, width, "danger")
    found += _labelled("does", step.runs, width)
    found += _labelled("expects", step.expected, width)
    for number, line in enumerate(step.observed):
        style = _STYLES.get(line.partition(":")[0], "")
        found += _labelled("" if number else "shows", line, width, style)
    if step.reason:
        found += _labelled("skipped", step.reason, width)
    if step.asked is not None and step.asked.hint:
        found += _labelled("hint", step.asked.hint, width, "dim")
    return found


_STYLES = {"bad": "danger", "mind": "attention", "unknown": "dim"}
"""By the verdict that a line of the audit begins with."""


def _labelled(label: str, text: str, width: int, style: str = "") -> list[Line]:
    """A labelled sentence, wrapped under itself; nothing for an empty one."""
    if not text:
        return []
    parts = wrap(text, max(10, width - _LABEL - 3))
    return [
        ((fit(f"  {label if not number else ''}", _LABEL), "dim"), (part, style))
        for number, part in enumerate(parts)
    ]

"""A launch in lines of text: its stages, what can be chosen, what was looked at, what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tui.fleet.age import age_word
from tui.model.launch import STAGES, CheckView, JobFile, LaunchView, Stage
from tui.model.snapshot import BoxView
from tui.model.text import safe
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, clip, fit, wrap

_NAME = 12
_LABEL = 12
_BOX = 18
_SOON_S = 60.0

WORDS: Mapping[str, str] = {
    "first-step": "first step seen",
    "alive": "alive, no step yet",
    "pending": "waits in the scheduler's queue",
    "finished": "finished",
    "dead": "dead",
    "unknown": "not known",
}
"""What came of a launch, by its kind."""

_GOOD = frozenset(("first-step", "finished"))
_VERDICTS: Mapping[str, tuple[str, str]] = {
    "stop": ("stops", "danger"),
    "unknown": ("not known", "dim"),
    "warn": ("warns", "attention"),
    "ok": ("fine", ""),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One line that can be selected. `key` is what choosing it means."""

    key: str
    line: Line
    about: tuple[Line, ...] = ()
    """The same in full."""


# --- the stages -------------------------------------------------------------------------------------------


def title_spans(view: LaunchView) -> list[Span]:
    """What is launched, and where."""
    run = view.run or view.job.partition(":")[0]
    on = f" on {view.box}" if view.box and run else ""
    return [("launch", "strong"), (f": {run}{on}" if run else "", "")]


def stage_line(view: LaunchView, stage: Stage, width: int, glyphs: Glyphs, now: float) -> Line:
    """One stage in one line: number, state, name, and what came of it or what is asked."""
    mark, style = _mark(view, stage, glyphs)
    ahead = STAGES.index(stage) > STAGES.index(view.stage)
    head: Line = (
        (f"{STAGES.index(stage) + 1:>3} ", "dim"),
        (f"{mark} ", style),
        (fit(stage, _NAME), "dim" if ahead else "strong"),
    )
    return clip((*head, *_brief(view, stage, glyphs, now)), width - 1, glyphs.ellipsis)


def _mark(view: LaunchView, stage: Stage, glyphs: Glyphs) -> Span:
    place, current = STAGES.index(stage), STAGES.index(view.stage)
    if place > current:
        return glyphs.dot, "dim"
    if place < current:
        return glyphs.done, "fine"
    if view.working:
        return glyphs.now, "accent"
    if view.problem or (stage == "preflight" and view.stopped):
        return glyphs.gone, "danger"
    return _answer_mark(view, glyphs) if view.answer is not None else (glyphs.now, "accent")


def _answer_mark(view: LaunchView, glyphs: Glyphs) -> Span:
    kind = view.answer.kind if view.answer is not None else ""
    if kind in _GOOD:
        return glyphs.done, "fine"
    if kind == "dead":
        return glyphs.gone, "danger"
    return (glyphs.unknown, "attention") if kind == "unknown" else (glyphs.running, "")


def _brief(view: LaunchView, stage: Stage, glyphs: Glyphs, now: float) -> Line:
    joint = f" {glyphs.dot} "
    match stage:
        case "job":
            return ((str(view.job) or "which job file", "" if view.job else "dim"),)
        case "box":
            asks = f"{joint}the job needs {view.needs}" if view.needs else ""
            return ((view.box or ("which box" if view.job else ""), ""), (asks, "dim"))
        case "preflight":
            return _checked(view, joint, now)
        case "plan":
            if view.began_at is not None:
                return ((f"your word came {_ago(view.began_at, now)}", "dim"),)
            return (("waits for your word", "attention"),) if view.stage == "plan" else ()
        case "answer":
            return _answered(view, now)


def _checked(view: LaunchView, joint: str, now: float) -> Line:
    if view.stage == "preflight" and view.working:
        return ((f"looks at {view.box}; nothing is changed there", ""),)
    if view.stage == "preflight" and view.problem:
        return ((str(view.problem), ""),)
    if not view.checks or view.checked_at is None:
        return ()
    spans: list[Span] = []
    for verdict in ("stop", "unknown", "warn", "ok"):
        count = sum(one.verdict == verdict for one in view.checks)
        word, style = _VERDICTS[verdict]
        if count:
            spans += [(joint if spans else "", "dim"), (f"{count} {word}", style)]
    return (*spans, (f"{joint}{_ago(view.checked_at, now)}", "dim"))


def _ago(at: float, now: float) -> str:
    word = age_word(at, now, 1.0)
    return "just now" if word == "live" else f"{word} ago"


def _answered(view: LaunchView, now: float) -> Line:
    if view.answer is not None:
        style = {"dead": "danger", "unknown": "attention"}.get(view.answer.kind, "")
        return ((WORDS.get(view.answer.kind, view.answer.kind), style),)
    if view.problem and view.stage == "answer":
        return ((str(view.problem), ""),)
    if view.working and view.stage == "answer" and view.told:
        return ((str(view.told[-1]), ""),)
    return ()


# --- what can be chosen -----------------------------------------------------------------------------------


def job_choices(view: LaunchView, width: int, glyphs: Glyphs) -> Iterator[Choice]:
    """Job files, those launched before first, and a line for a path that is typed."""
    room = min(44, max(14, width // 2 - 4))
    for one in view.jobs or ():
        mark: Span = (f" {glyphs.gone} ", "danger") if not one.fits else ("   ", "")
        when = "launched before  " if one.earlier else ""
        title = fit(one.title, room, ellipsis=glyphs.ellipsis)
        line = clip(
            (mark, (title, ""), ("  ", ""), (when, "dim"), (one.note, "dim")), width - 1, glyphs.ellipsis
        )
        yield Choice(one.path, line, tuple(_about_job(one, width)))
    near = f"none was found in {view.near}" if view.jobs == () else ""
    yield Choice("", (("   ", ""), ("another one", "strong"), ("  type its path  ", "dim"), (near, "dim")))


def _about_job(one: JobFile, width: int) -> Iterator[Line]:
    yield from labelled("file", one.title, width)
    yield from labelled("says" if one.fits else "wrong", one.note, width, "" if one.fits else "danger")


def box_choices(
    view: LaunchView, boxes: Sequence[BoxView], width: int, glyphs: Glyphs, now: float, period_s: float
) -> Iterator[Choice]:
    """Boxes of the fleet file; those on platforms that the job prefers first."""
    order = {platform: place for place, platform in enumerate(view.platforms)}
    known = [box for box in boxes if not box.unwritten]
    for box in sorted(known, key=lambda one: order.get(one.instance.platform, len(order))):
        preferred = box.instance.platform in order
        cards = cards_of(box)
        line: Line = (
            (" ", ""),
            (fit(safe(box.name), _BOX, ellipsis=glyphs.ellipsis), "strong"),
            (f" {fit(safe(box.instance.platform), 10)}", ""),
            (f" {fit(box.link.state.value, 14)}", "" if box.link.state.value == "live" else "dim"),
            (f" {cards}", ""),
            ("  the job prefers its platform" if preferred else "", "dim"),
        )
        about = [*labelled("box", safe(box.name), width), *labelled("cards", cards, width)]
        about += labelled("needs", view.needs, width)
        if box.link.detail:
            about += labelled("link", box.link.detail, width)
        if box.telemetry is not None:
            about += labelled("looked at", age_word(box.telemetry.taken_at, now, period_s), width)
        yield Choice(box.name, clip(line, width - 1, glyphs.ellipsis), tuple(about))


def cards_of(box: BoxView) -> str:
    """A box's cards in a few words; ``?`` where nobody told."""
    gpus = box.telemetry.gpus.value if box.telemetry is not None else None
    if gpus is None:
        return "cards ?"
    if not gpus:
        return "no card"
    size = gpus[0].mem_total_mib
    memory = f", {size / 1024:.0f} GiB{' each' if len(gpus) > 1 else ''}" if size else ""
    return safe(f"{len(gpus)} {gpus[0].name}{memory}", 60)


def check_choices(checks: Sequence[CheckView], width: int, glyphs: Glyphs) -> Iterator[Choice]:
    """What was looked at, stops first."""
    marks = {"stop": glyphs.gone, "unknown": glyphs.unknown, "warn": glyphs.attention, "ok": glyphs.done}
    for number, one in enumerate(checks):
        word, style = _VERDICTS[one.verdict]
        line: Line = (
            (f" {marks[one.verdict]} ", style or "fine"),
            (fit(word, 10), style or "dim"),
            (fit(one.name, 11), "strong"),
            (one.said, ""),
        )
        about = tuple(labelled(one.name, one.said, width, style))
        yield Choice(f"check {number}", clip(line, width - 1, glyphs.ellipsis), about)


START = "start"


def plan_choices(view: LaunchView, width: int, glyphs: Glyphs, key: str) -> Iterator[Choice]:
    """The plan line by line, what warned, and last the line that starts it.

    Args:
        key: that starts it.
    """
    rows = [(title, text, "") for title, text in view.plan]
    rows += [
        (safe(_VERDICTS[one.verdict][0]), safe(f"{one.name}: {one.said}"), _VERDICTS[one.verdict][1])
        for one in view.checks
        if one.verdict in ("warn", "unknown")
    ]
    for number, (title, text, style) in enumerate(rows):
        line: Line = ((f"   {fit(title, _LABEL - 3)} ", style or "dim"), (text, ""))
        about = tuple(labelled(title, text, width, style))
        yield Choice(f"plan {number}", clip(line, width - 1, glyphs.ellipsis), about)
    if view.consent:
        says = f"{key} on this line; Enter does nothing"
        start: Line = ((f" {glyphs.now} ", "accent"), ("start it  ", "strong"), (says, "dim"))
        yield Choice(START, clip(start, width - 1, glyphs.ellipsis), tuple(_about_start(view, key, width)))


def _about_start(view: LaunchView, key: str, width: int) -> Iterator[Line]:
    text = (
        f"{key} pushes the code and starts {view.run} on {view.box}, detached: from then on it needs neither "
        "this view nor this computer. Nothing was written there so far."
    )
    yield from labelled("start", text, width)


# --- what came of it --------------------------------------------------------------------------------------


def answer_lines(view: LaunchView, width: int, glyphs: Glyphs, now: float) -> list[Line]:
    """What came of it, with the run's last words, else how long it took so far; and what was done."""
    found: list[Line] = []
    if view.answer is not None:
        found += [*_outcome(view, width, glyphs), ()]
    if view.problem:
        found += [*labelled("problem", view.problem, width, "danger"), ()]
    for number, line in enumerate(view.told):
        done = number < len(view.told) - 1 or not view.working
        mark = f" {glyphs.done if done else glyphs.now} "
        found += [
            ((mark if n == 0 else "   ", "dim"), (part, "")) for n, part in enumerate(wrap(line, width - 5))
        ]
    if view.working and view.began_at is not None:
        spent = max(0.0, now - view.began_at)
        text = f"{spent:.0f} s since your word; it answers within {_SOON_S:.0f} s of the start."
        found += [
            (("   ", ""), (part, "dim"))
            for part in wrap(f"{text} Leaving this view stops nothing.", width - 5)
        ]
    return found


def _outcome(view: LaunchView, width: int, glyphs: Glyphs) -> list[Line]:
    answer = view.answer
    assert answer is not None
    mark, style = _answer_mark(view, glyphs)
    word = WORDS.get(answer.kind, answer.kind)
    lines: list[Line] = [((f" {mark} ", style), (word, f"strong {style}".strip()))]
    lines += [(("   ", ""), (part, "")) for part in wrap(answer.why, max(10, width - 5))]
    if answer.last:
        lines.append((("   its newest lines:", "dim"),))
    lines += [
        clip(((f"   {glyphs.vrule} ", "rule"), (line, "")), width - 1, glyphs.ellipsis)
        for line in answer.last
    ]
    pace = f"Checkpoints: {answer.pace}" if answer.pace else ""
    return lines + [(("   ", ""), (part, "dim")) for part in wrap(pace, max(10, width - 5)) if part]


def labelled(label: str, text: str, width: int, style: str = "") -> list[Line]:
    """A labelled sentence, wrapped under itself; nothing for an empty one."""
    if not text:
        return []
    parts = wrap(text, max(10, width - _LABEL - 3))
    return [
        ((fit(f"  {label if not number else ''}", _LABEL) + " ", "dim"), (part, style))
        for number, part in enumerate(parts)
    ]

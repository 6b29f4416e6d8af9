"""The run screen's head: what the run is, how far, on what evidence, and what is wrong."""

from __future__ import annotations

from tui.fleet import judge
from tui.fleet.age import age_word, is_stale, long
from tui.model.instance import LinkState
from tui.model.snapshot import RunView
from tui.model.text import safe
from tui.widgets.figures import significant
from tui.widgets.lines import Line, Span, fit, length, shortened
from tui.widgets.panel import Sight, apart, packed
from tui.widgets.roster_rows import glyph_of, run_progress_word, run_word


def head_lines(sight: Sight, name: str | None, box_name: str, width: int) -> list[Line]:
    """Two lines: state, name, progress and age; then the evidence, or what wants the operator."""
    return [_first(sight, name, box_name, width), _second(sight, name, width)]


def _first(sight: Sight, name: str | None, box_name: str, width: int) -> Line:
    dot = f"{sight.glyphs.dot}  "
    left: list[Span]
    if name is None:
        left = [*_box_state(sight), (safe(box_name), "strong"), ("  no watched run", "dim")]
    elif sight.run is None:
        left = [(f" {sight.glyphs.unknown} not watched  ", "dim"), (safe(name), "strong")]
    else:
        run = sight.run
        word, style = run_word(run.state, sight.glyphs)
        left = [(f" {word}  ", style or "strong"), (safe(name), "strong")]
        left.append((f" on {safe(box_name)}  ", "dim"))
        right = _age(sight)
        parts: list[Line] = []
        for i, span in enumerate(_progress(run, judge.time_left(run, sight.now))):
            parts.append(((dot, "dim"), span) if i else (span,))
        line = packed(tuple(left), parts, width - length(right))
        return apart(line, right, width, sight.glyphs)
    return apart(tuple(left), _age(sight), width, sight.glyphs)


def _box_state(sight: Sight) -> list[Span]:
    if sight.box is None:
        return [(f" {sight.glyphs.unknown} not in the fleet file  ", "attention")]
    word = judge.box_word(sight.box, sight.now, sight.period_s)
    style = word.kind if word.kind in ("attention", "danger") else "strong"
    return [(f" {glyph_of(word.kind, sight.glyphs)} {word.word}  ", style)]


def _progress(run: RunView, left: float | None) -> list[Span]:
    progress = run.progress
    if progress is None:
        return []
    spans: list[Span] = []
    word = run_progress_word(run)
    if word:
        spans.append((word, ""))
    if progress.loss is not None:
        finite = progress.loss == progress.loss and abs(progress.loss) != float("inf")
        spans.append((f"loss {significant(progress.loss)}", "" if finite else "danger"))
    if left is not None:
        spans.append((f"{long(left)} left, says the log", "dim"))
    return spans


def _age(sight: Sight) -> Line:
    taken = sight.telemetry.taken_at if sight.telemetry else None
    if sight.box is None:
        return ()
    if taken is None:
        return ((f"  {sight.box.link.state.value} ", "dim"),)
    age = age_word(taken, sight.now, sight.period_s)
    if is_stale(taken, sight.now, sight.period_s):
        return ((f"  stale {age} ", "attention"),)
    return ((f"  {age} ", "dim"),)


def _second(sight: Sight, name: str | None, width: int) -> Line:
    """The most urgent sentence there is; the evidence behind the state when nothing is wrong."""
    text, style, glyph = _sentence(sight, name)
    line = f" {glyph} {text}" if glyph else f"   {text}"
    dots = sight.glyphs.ellipsis
    return ((fit(shortened(safe(line), width, ellipsis=dots), width, ellipsis=dots), style),)


def _sentence(sight: Sight, name: str | None) -> tuple[str, str, str]:
    box, run = sight.box, sight.run
    sign = sight.glyphs.attention
    if box is None:
        return "There is no box of this name in the fleet file.", "attention", sign
    if over := judge.over_words(box, sight.now):
        return over, "dim", sight.glyphs.gone
    wrong = [*(run.attention if run else ()), *box.attention]
    wrong.sort(key=lambda a: a.level != "danger")
    if box.link.state is not LinkState.LIVE and box.link.detail:
        final = box.link.state in (LinkState.IDENTITY, LinkState.REFUSED, LinkState.NEEDS_SECRET)
        return box.link.detail, "attention" if final else "dim", sign if final else sight.glyphs.unknown
    if wrong:
        return wrong[0].text, wrong[0].level, sign
    if name is not None and run is None:
        return "This run is not watched any more; it goes on on the box.", "dim", ""
    return (_evidence(run) if run else _box_facts(sight)), "dim", ""


def _evidence(run: RunView) -> str:
    held = f". Watched by {run.held_by}; here it is read only" if run.held_by is not None else ""
    return f"{run.why}{held}"


def _box_facts(sight: Sight) -> str:
    box = sight.box
    assert box is not None
    if box.telemetry is None:
        return f"{box.link.state.value}; not probed yet"
    host = box.telemetry.host.value
    if host is None:
        return ""
    facts = [host.system, host.hostname or "", host.kernel or ""]
    if host.booted_at is not None:
        facts.append(f"up {long(sight.box_now - host.booted_at)}")
    return "  ".join(fact for fact in facts if fact)

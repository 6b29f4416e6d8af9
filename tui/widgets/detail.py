"""The selected row in full: what is wrong, what to press, disks, cards, ages, the meter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.cells import cell_len

from tui.fleet import judge, money
from tui.fleet.age import is_stale, long, short
from tui.model.instance import LinkState
from tui.model.snapshot import BoxView, RunView
from tui.model.telemetry import CheckpointFile, Telemetry
from tui.model.text import LogText, safe
from tui.widgets.detail_hardware import disk_rows, gpu_rows, memory_spans
from tui.widgets.figures import size
from tui.widgets.glyphs import Glyphs, glyphs_of
from tui.widgets.lines import Line, Lines, Span, clip, end_of, fit, wrap
from tui.widgets.roster_rows import run_progress_word, run_word, whole_minute

LABEL = 12
LABEL_NARROW = 9
"""Cells of the label column, where there is room for air and where there is not."""

BLANK = 1
"""Rows of air between a list and what is said of its selected row."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a detail is drawn from.

    Attributes:
        machine: whose cards the run has: `box`, or what its scheduler gave it; None: not in the fleet.
        others: runs on the same box besides `run`.
        key_of: how an action's key is written; empty where the action does not exist (read-only).
        log: the newest lines of the run's log, the last one at the end.
    """

    box: BoxView
    run: RunView | None
    machine: BoxView | None
    now: float
    period_s: float
    glyphs: Glyphs
    key_of: Callable[[str], str]
    others: int = 0
    log: tuple[LogText, ...] = ()

    @property
    def stale(self) -> bool:
        t = self.box.telemetry
        return t is not None and is_stale(t.taken_at, self.now, self.period_s)


def detail_lines(look: Look, width: int) -> list[list[Line]]:
    """Everything about a row in groups, most urgent first; the widget shows what it has room for."""
    return [group for group in ([*_wrong(look, width), *_press(look, width)], *_facts(look, width)) if group]


def _facts(look: Look, width: int) -> list[list[Line]]:
    """What was seen of a row, and what is known of its box."""
    telemetry, room = look.box.telemetry, width - label_cells(width)
    dots = look.glyphs.ellipsis
    seen: list[Line] = _labelled("run", _run(look), width, dots)
    if telemetry is not None:
        seen += _labelled("saved", _saved(look, telemetry), width, dots)
        seen += _rows("disks", disk_rows(look.box, look.run, look.glyphs, telemetry, room), width)
    seen += _machine(look, width)
    known = [*_labelled("meter", _meter(look), width, dots), *_labelled("box", _box(look), width, dots)]
    return [group for group in (seen, known) if group]


def _machine(look: Look, width: int) -> list[Line]:
    """Cards and memory where the run is, which need not be where it is watched."""
    machine, dots = look.machine, look.glyphs.ellipsis
    if machine is None:
        return _labelled("gpus", [("n/a: the machine of its job is not in the fleet", "dim")], width, dots)
    lines: list[Line] = []
    there = machine.telemetry
    if machine.name != look.box.name:
        told = "not probed yet" if there is None else f"seen {ago(look.now - there.taken_at)}"
        lines += _labelled("job on", [(safe(machine.name), "strong"), (told, "dim")], width, dots)
    if there is not None:
        lines += _rows("gpus", gpu_rows(machine, look.glyphs, there, width - label_cells(width)), width)
        lines += _labelled("memory", memory_spans(there), width, dots)
    return lines


def sentence(look: Look, width: int, rows: int) -> list[Line]:
    """The most urgent about a row in at most `rows` lines, for panes without room for a detail.

    What does not fit is cut with an ellipsis; what is less urgent has the rows that are left.
    """
    lines: list[Line] = []
    for level, text in _sentences(look):
        left = rows - len(lines)
        parts = wrap(safe(text), max(10, width - 5))
        if left > 0:
            parts[left - 1 :] = [" ".join(parts[left - 1 :])] if parts[left - 1 :] else []
            lines += _marked(look, level, parts)
    run = _in_rows(_labelled("run", _run(look), width, look.glyphs.ellipsis), rows)
    if len(lines or run) < rows - BLANK:  # the detail, as far as it goes, and air above it
        lines = [*lines, *(line for group in _facts(look, width) for line in group)][: rows - BLANK]
        if lines and lines[-1][0][0].strip() == "disks" and len(lines[-1]) <= len(("label", "mount")):
            lines.pop()  # a mount without its figures, which would be below it
    lines = lines or run
    return [clip(line, width, look.glyphs.ellipsis) for line in lines]


def _in_rows(lines: list[Line], rows: int) -> list[Line]:
    """What fits into `rows` lines; the last one goes on with what had to be left out, for the cut to show."""
    kept, rest = lines[:rows], lines[rows:]
    if rest and kept:
        more = ((f" {part.strip()}", style) for line in rest for part, style in line[1:])
        kept[-1] = (*kept[-1], *more)
    return kept


def _wrong(look: Look, width: int) -> list[Line]:
    room = max(10, width - 5)
    return [line for level, text in _sentences(look) for line in _marked(look, level, wrap(safe(text), room))]


def _marked(look: Look, level: str, parts: list[str]) -> list[Line]:
    """A sentence's lines behind its sign."""
    glyph = {"dim": look.glyphs.unknown, "over": look.glyphs.gone}.get(level, look.glyphs.attention)
    sign, style = ("dim", "") if level in ("dim", "over") else (level, level)
    return [((f"  {glyph} " if i == 0 else "    ", sign), (part, style)) for i, part in enumerate(parts)]


def _sentences(look: Look) -> list[tuple[str, str]]:
    """What is wrong, the most urgent first, each with its level."""
    sentences: list[tuple[str, str]] = []
    box, link = look.box, look.box.link
    if box.asked_key is not None:
        sentences.append(("danger", _key_sentence(box)))
    if box.asked_secret is not None:
        sentences.append(("attention", f"{box.name} asks: {box.asked_secret.prompt}"))
    if over := judge.over_words(box, look.now):
        return [("over", f"{over} What was last seen is below.")]
    if link.state is not LinkState.LIVE and link.detail and box.asked_key is None:
        final = link.state in (LinkState.IDENTITY, LinkState.REFUSED, LinkState.NEEDS_SECRET)
        sentences.append(("attention" if final else "dim", link.detail))
    if look.stale and box.telemetry is not None:
        age = long(look.now - box.telemetry.taken_at)
        sentences.append(
            ("dim", f"Not heard of for {age}: whether it runs or bills now is unknown. Old numbers are dim.")
        )
    sentences += [(a.level, a.text) for a in box.attention]
    if look.run is not None and look.run.held_by is not None:
        sentences.append(
            ("dim", f"Another rgt watches {look.run.name}: {look.run.held_by}. Here it is read only.")
        )
    return sentences


def _key_sentence(box: BoxView) -> str:
    asked = box.asked_key
    assert asked is not None
    if asked.pinned is None:
        return f"First contact: {box.name} shows the key {asked.offered}. Compare it before you trust it."
    return (
        f"{box.name} shows another host key than the pinned one. It was rebuilt, its address now belongs to "
        "another machine, or someone stands between. Nothing was sent."
    )


def _press(look: Look, width: int) -> list[Line]:
    hints: list[tuple[str, str]] = []
    box = look.box
    if box.ended is not None and look.key_of("clear"):
        hints.append(("clear", "takes it off the list; its receipts stay"))
    elif box.ended is not None:
        line: Line = (
            ("    in a shell  ", "dim"),
            (f"rgt remove {safe(box.name)}", "strong"),
            ("  forgets it", "dim"),
        )
        return [clip(line, width, look.glyphs.ellipsis)]
    elif box.asked_key is not None:
        hints.append(("reconnect", "shows both keys, to compare and decide"))
    elif box.asked_secret is not None:
        hints.append(("open", "lets you type it; it stays in memory, for this session only"))
    elif box.link.state in (LinkState.LOST, LinkState.UNREACHABLE, LinkState.REFUSED):
        retry = box.link.retry_at
        when = f" (next try in {short(retry - look.now)})" if retry is not None and retry > look.now else ""
        hints.append(("reconnect", f"connects now{when}"))
    candidates = (box.telemetry.candidates.value if box.telemetry else None) or ()
    if candidates and look.run is None and box.ended is None:
        hints.append(("adopt", f"watches what runs here: {candidates[0].command}"))
    asked = box.asked_key or box.asked_secret
    if look.run is not None and (look.run.attention or box.attention) and not asked:
        hints.append(("triage", "says why, and what to do"))
    lines: list[Line] = []
    for action, text in hints:
        key = look.key_of(action)
        if key:
            hint: Line = ((f"    {key}", "strong"), (f"  {safe(text)}", "dim"))
            lines.append(clip(hint, width, look.glyphs.ellipsis))
    return lines


def _labelled(label: str, spans: list[Span], width: int, dots: str) -> list[Line]:
    """Spans after their label; whole spans go to the next line when they do not fit, long ones in parts."""
    if not spans:
        return []
    edge = label_cells(width)
    lines: list[list[Span]] = [[(fit(f"  {label}", edge), "dim")]]
    used = edge
    for text, style in spans:
        for part in _parts(text, width - edge, dots):
            size = cell_len(part)
            if used > edge and used + 3 + size > width:
                lines.append([(" " * edge, "")])
                used = edge
            lead = "   " if used > edge else ""
            lines[-1].append((lead + part, style))
            used += len(lead) + size
    return [tuple(line) for line in lines]


def _parts(text: str, room: int, dots: str) -> list[str]:
    """A sentence that is too long, at its blanks; anything else whole, such as an address."""
    if " " not in text or cell_len(text) <= room or room <= 10:
        return [text]
    paths = (word for word in text.split() if "/" in word and cell_len(word) > room)
    for path in paths:  # its last parts say more than two halves of it
        text = text.replace(path, end_of(path, room, ellipsis=dots))
    return wrap(text, room)


def _rows(label: str, rows: list[list[Span]], width: int) -> list[Line]:
    edge = label_cells(width)
    return [((fit(f"  {label}" if i == 0 else "", edge), "dim"), *row) for i, row in enumerate(rows)]


def label_cells(width: int) -> int:
    """Cells of the label column in a detail of this width."""
    return LABEL if width >= 70 else LABEL_NARROW


def _run(look: Look) -> list[Span]:
    run = look.run
    if run is None:
        return []
    spans: list[Span] = [run_word(run.state, look.glyphs)]
    progress = run.progress
    word = run_progress_word(run)
    if word:
        spans.append((word, ""))
    if progress is not None and progress.loss is not None:
        spans.append((f"loss {progress.loss:.4g}", ""))
    if (left := judge.time_left(run, look.now)) is not None:
        spans.append((f"{long(left)} left by its own count", ""))
    spans.append((safe(run.why).removeprefix(f"{run.state.value}; "), "dim"))  # the word stands before it
    if look.others:
        spans.append((f"{look.others} more on this box", "dim"))
    return spans


def ago(seconds: float) -> str:
    """An age in steps coarse enough not to be repainted every second."""
    if seconds < 10:
        return "just now"
    return f"{long(seconds - seconds % (10 if seconds < 60 else 60))} ago"


def _saved(look: Look, telemetry: Telemetry) -> list[Span]:
    truth = look.run.truth if look.run is not None else None
    if truth is None:
        return []
    host = telemetry.host.value
    offset = host.clock_offset_s if host is not None else None
    spans: list[Span] = []
    points = truth.checkpoints.value
    if points:
        spans += _checkpoint(points[0], offset, look)
    elif points is not None:
        spans.append(("no file matches the checkpoints' pattern", "dim"))
    elif truth.checkpoints.source is not None:
        spans.append((f"checkpoints n/a: {truth.checkpoints.reason}", "dim"))
    log = truth.log.value
    if log is not None:
        age = _age(log.modified_at, offset, look)
        spans.append((f"log {size(log.size_bytes)}, grew {age}", ""))
    elif truth.log.source is not None:
        spans.append((f"log n/a: {truth.log.reason}", "dim"))
    return spans


def _checkpoint(point: CheckpointFile, offset: float | None, look: Look) -> Iterator[Span]:
    name = safe(point.path).rsplit("/", 1)[-1]
    yield (f"checkpoint {_age(point.modified_at, offset, look)}", "")
    yield (f"{name} {size(point.size_bytes)}", "dim")


def _age(modified_at: float, offset: float | None, look: Look) -> str:
    return "at a time not known" if offset is None else ago(max(0.0, look.now + offset - modified_at))


def _meter(look: Look) -> list[Span]:
    instance = look.box.instance
    if instance.here and instance.price_per_hour is None:
        return []
    sign = money.SIGNS.get(instance.currency, instance.currency)
    price = instance.price_per_hour
    if look.box.ended is not None:
        paid = money.spent(money.metered(look.box), look.now)
        return [("at rest", ""), *([] if paid is None else [(f"spent {paid:,.2f} {sign}", "money")])]
    spans: list[Span] = [("price not known" if price is None else f"{price:.2f} {sign}/h", "money")]
    if instance.rented_at is not None:
        spans.append((f"since {long(look.now - instance.rented_at)}", ""))
    spent = money.spent(instance, whole_minute(look.now))
    if spent is not None:
        spans.append((f"spent {spent:,.2f} {sign}", "money"))
    clock = look.box.clock
    if clock is not None and clock.at is not None:
        left = clock.at - look.now
        when = f"in {long(left)}" if left >= 0 else f"{long(-left)} ago"
        destroys = f"; takes {clock.destroys}" if clock.destroys else ""
        spans.append((f"{safe(clock.text)} {when}{destroys}", "danger" if left < 86400 else ""))
    return spans


def _box(look: Look) -> list[Span]:
    box = look.box
    instance = box.instance
    spans: list[Span] = [(f"link {box.link.state.value}", "")]
    if instance.via is not None:
        spans.append((safe(str(instance.via)), "dim"))
    elif instance.endpoint is not None:
        user = f"{instance.endpoint.user}@" if instance.endpoint.user else ""
        port = f":{instance.endpoint.port}" if instance.endpoint.port else ""
        spans.append((safe(f"{user}{instance.endpoint.host}{port}"), "dim"))
    else:
        spans.append(("this computer" if box.telemetry else safe(instance.platform), "dim"))
    host = box.telemetry.host.value if box.telemetry else None
    if host is not None and host.booted_at is not None:
        skew = host.clock_offset_s or 0.0
        spans.append((f"up {long(max(0.0, look.now + skew - host.booted_at))}", "dim"))
    if host is not None and host.clock_offset_s is not None and abs(host.clock_offset_s) > 60:
        spans.append((f"its clock is {long(abs(host.clock_offset_s))} off", "attention"))
    if box.forwards:
        spans.append((f"{len(box.forwards)} forwarded", "dim"))
    if instance.simulated:
        spans.append((f"simulated: {', '.join(map(safe, instance.simulated))}", "dim"))
    return spans


class Detail(Lines):
    """Draws a `Look`; `look` is None while nothing is selected."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._look: Look | None = None
        self._tail: tuple[tuple[object, ...], list[Line]] = ((), [])

    def apply(self, look: Look | None) -> None:
        """Show another row, or the same one as it is now."""
        self._look = look
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.size.width
        if self._look is None or width == 0:
            self.show(())
            return
        lines = arrange(detail_lines(self._look, width - 1), self.size.height, glyphs_of(self).ellipsis)
        self.show([*lines, *self._newest(self._look, width, self.size.height - len(lines))])

    def _newest(self, look: Look, width: int, rows: int) -> list[Line]:
        """The log's newest lines; looked through for errors only when they are others."""
        if look.run is None or not look.log:
            return []
        from tui.widgets.log_tail import tail_lines  # with its patterns; the first picture has no log yet

        shown = (look.run.name, look.log, width, rows)
        if self._tail[0] != shown:
            path = safe(look.run.spec.log or "")
            self._tail = (shown, tail_lines(look.log, path, width, rows, look.glyphs))
        return self._tail[1]


def arrange(groups: list[list[Line]], room: int, dots: str) -> list[Line]:
    """Groups as lines, with blank lines between them where there is room; cut, with a count, where not."""
    airy: list[Line] = []
    for group in groups:
        airy += [(), *group] if airy else group
    tight = [line for group in groups for line in group]
    if len(airy) < room:
        return airy
    if len(tight) <= room:
        return tight
    rest: Line = ((f"    {dots} {len(tight) - room + 1} more lines; enter opens the run", "dim"),)
    return [*tight[: max(0, room - 1)], rest]

"""One text as the rules see it: its rows, what is harmless in it, and how training went on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tui.model.telemetry import Telemetry
from tui.model.text import LogText, SafeText, safe
from tui.triage.columns import Lines
from tui.triage.inputs import NOTHING_KNOWN, Known, Said
from tui.triage.lines import LIMIT, Row, row
from tui.triage.progress import ProgressReader
from tui.triage.progress_line import Found, read_line
from tui.triage.schema import Kind

# A program that prints texts it works with quotes errors of others: prompts, samples, answers, translations.
_QUOTES = re.compile(
    r"(?i)^\W*(?:(?:gen(?:erated)?|decoded|predicted|model|random|eval|val|test|train|training|first)[ _-]?)?"
    r"(?:samples?|prompts?|questions?|answers?|user|human|assistant|bot|gpt|instructions?|inputs?|outputs?"
    r"|responses?|completions?|generations?|predictions?|preds?|references?|targets?|hypothesis|hyp|ref|src"
    r"|texts?|content|examples?|dialogue?|chat|query|documents?|captions?|transcripts?|title|message_text"
    r"|[STHDP]-\d+|问题|回答|样本|样例|输入|输出|用户|助手)"
    r"(?: ?[#\[(]?\d{1,9}[\])]?)?\s*['\"]?\s*(?:[:=>|：]|\t)"
    r"|^test_\w+ \(\S+\) \.\.\. "  # a test names what it provokes
)
_QUOTES_INSIDE = re.compile(
    r"(?i)['\"](?:text|content|prompt|instruction|inputs?|outputs?|response|question|answer|completion"
    r"|caption"
    r"|query|document|body|description|summary|chosen|rejected|messages|conversations?|value"
    r"|dialog)['\"]\s*:\s*[\['\"{]"
    r"|(?:^|[\s\"'(])(?:user|human|assistant|q|a|question|answer)\s*[:：]\s"
)
# A trace of the shell, a script that is printed, a help text or a setting: words, not events.
_ECHO = re.compile(
    r"^\s*(?:\+{1,4} |\$ |>>> |# |//|echo |export |usage: |--?[a-z][\w-]+[ =])"
    r"|^\s*['\"]?[\w.-]{2,60}['\"]?\s*[:=]\s*(?:True|False|None|null|true|false|yes|no|on|off"
    r"|-?\d[\d.e+-]*)['\",]*\s*$"
)
_FINALIZERS = re.compile(r'\s*File ".*multiprocessing/util\.py", line \d+, in _run_finalizers')
_CLEANING = 24  # rows of a traceback below that frame, at most
_NAMES_ERROR = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b")
_FRAME = re.compile(r'\s*File "[^"]+", line \d+(?:, in .+)?\s*$')
_HANDLED = re.compile(
    r"(?i)\bretry(?:ing)?\b|\bre-trying\b|\btrying again\b|\bwill (?:retry\b|try (?!(?:our|its|my) best))"
    r"|\b(?:skipp(?:ing|ed)|(?<!exception )ignor(?:ing|ed))\b"
    r"|\bfall(?:s|ing)? ?back\b|\bfallback\b|\brecovered\b|\battempting to recover\b|\bcontinuing\b"
    r"|\bsuppress(?:ing|ed)\b|\bnot (?:a )?(?:fatal|failure)\b|\bnon-fatal\b|\bharmless\b|\bcan be ignored\b"
    r"|\bsafely ignore|\btrying another port\b|重试|已忽略|跳过"
)
_NOT_HANDLED = re.compile(
    r"(?i)giving up|gave up|no more retries|retries exhausted|max(?:imum)? retries (?:reached|hit)"
    r"|\babort|retry (?:failed"
    r"|limit)"
    r"|as a temporary fix, you can|to use the CPU as a fallback"  # what one might do, not what is done
    r"|after \d+ (?:retries|attempts)|not retrying|cannot retry|retry=False"
)
_RESTART = re.compile(
    r"(?i)^\W*(?:[=#*-]{3,}[^=#*]*)\b(?:re-?start|re-?launch|re-?run|attempt|resum|start(?:ing"
    r"|ed)? (?:run|job|train)|new run)"
    r"|\bResum(?:ing|ed) (?:training )?from\b|\bAuto[- ]?resum|restarting (?:the )?(?:worker|training|run"
    r"|job)"
    r"|=+ ?(?:Attempt|Restart|Run) #?\d+|^Script started on"
)
_ENDED = re.compile(
    r"(?i)\btraining completed\. do not forget|^\W*training time:? +(?:\d+ days?, )?\d+:\d\d"
    r"|\bepoch \d+: early stopping"
    r"|^early stopping, best iteration|\[after training is done\]|^did not meet best iteration"
)
_CLOSES = re.compile(r"(?i)^\W*wandb:|synced \d+ w&b file")
_TAIL = 60


@dataclass(frozen=True, slots=True)
class Pulse:
    """A row that shows training at work.

    Attributes:
        strong: not a bar that is drawn once more.
        bar: the total of the bar it is a state of; None where it is no bar.
    """

    at: int
    strong: bool
    bar: int | None = None


@dataclass(slots=True)
class View:
    """One text.

    Attributes:
        source: how evidence names it.
        command: what printed it; empty for a run's log.
        stderr_from: index of the first row that came on stderr.
        others: the other texts of the same diagnosis.
        cache: what readers worked out once.
    """

    kind: Kind
    source: SafeText
    rows: tuple[Row, ...]
    known: Known = NOTHING_KNOWN
    telemetry: Telemetry | None = None
    rc: int | None = None
    command: str = ""
    at: float | None = None
    whole: bool = True
    cut_at_end: bool = False
    stderr_from: int | None = None
    others: tuple[View, ...] = ()
    cache: dict[str, Any] = field(default_factory=dict)

    def origin(self, index: int) -> SafeText:
        if self.stderr_from is not None and index >= self.stderr_from:
            return SafeText("stderr")
        return self.source

    def quoted(self, index: int, start: int) -> bool:
        """Whether what stands at `start` of a row is text the program works with or repeats."""
        text = self.rows[index].text
        if _QUOTES.match(self.rows[index].head) or index in self.at_exit:
            return True
        inside = _QUOTES_INSIDE.search(text)
        return (inside is not None and inside.start() < start) or _ECHO.match(text) is not None

    def source_line(self, index: int) -> bool:
        """Whether a row is a line of source that a traceback shows, not what was said."""
        return (
            index > 0
            and self.rows[index].head.startswith("    ")
            and _FRAME.match(self.rows[index - 1].head) is not None
        )

    @property
    def at_exit(self) -> frozenset[int]:
        """Rows of tracebacks that Python shows when it cleans up behind a program, and goes on."""
        if "at_exit" not in self.cache:
            self.cache["at_exit"] = frozenset(_at_exit(self.rows))
        found: frozenset[int] = self.cache["at_exit"]
        return found

    def handled(self, index: int, start: int = 0) -> bool:
        """Whether the program says, there or in the next rows, that it goes on all the same."""
        near = [self.rows[index].text[start:]]
        for following in self.rows[index + 1 : index + 3]:
            if following.number - self.rows[index].number > 2 or len(following.text) > 300:
                break
            if following.rank is not None and following.rank != self.rows[index].rank:
                continue  # another process speaks for itself
            near.append(following.text)
        return any(_HANDLED.search(text) for text in near) and not any(
            _NOT_HANDLED.search(text) for text in near
        )

    @property
    def pulses(self) -> tuple[Pulse, ...]:
        """Rows that show training at work, in order."""
        if "pulses" not in self.cache:
            self.cache["pulses"] = tuple(_pulses(self.rows))
        found: tuple[Pulse, ...] = self.cache["pulses"]
        return found

    @property
    def finished_at(self) -> int | None:
        """Row of the last regular end after which no training was seen; None when there is none."""
        return self._end[0]

    @property
    def only_closed(self) -> bool:
        """Whether the end is that of a tracker alone, which closes its run however the program ended."""
        return self._end[1]

    @property
    def _end(self) -> tuple[int | None, bool]:
        if "finished" not in self.cache:
            ends = self._ends()
            own = self._last_of([at for at in ends if not _CLOSES.match(self.rows[at].head)])
            self.cache["finished"] = (own, False) if own is not None else (self._last_of(ends), bool(ends))
        found: tuple[int | None, bool] = self.cache["finished"]
        return found

    def _last_of(self, ends: list[int]) -> int | None:
        return ends[-1] if ends and not self.strong_after(ends[-1]) else None

    def _ends(self) -> list[int]:
        ends = [
            i
            for i, one in enumerate(self.rows)
            if read_line(one.text).finished
            or (one.head != one.text and read_line(one.head).finished)
            or (_ENDED.search(one.text) and not self.quoted(i, 0))
        ]
        return ends + self._counted_out()

    def _counted_out(self) -> list[int]:
        """The last row, where the counters of the last rows have come to their end."""
        shown = [index for index, one in enumerate(self.rows) if one.text.strip()]
        if not shown or self.kind != "log":
            return []
        newest = [LogText(self.rows[index].text) for index in shown[-_TAIL:]]
        told = ProgressReader().feed(newest, 0.0)
        if told is not None and told.finished:
            return [shown[-1]]
        last = self.known.epochs
        if last is None:
            return []
        done = re.compile(rf"checkpoint at {last} epochs?\b|Epoch\(val\) *\[{last}\]\[(\d+)/\1\]")
        return [shown[-1]] if any(done.search(line) for line in newest[-3:]) else []

    def strong_after(self, index: int) -> list[int]:
        """Rows after one that show training at work.

        A bar is drawn a last time when its program ends, however it ends: its first state after the row may
        be that, and only a second one that is further shows that the loop runs.
        """
        found: list[int] = []
        drawn: set[int] = set()
        for pulse in self.pulses:
            if pulse.at <= index or not pulse.strong:
                continue
            if pulse.bar is not None and pulse.bar not in drawn:
                drawn.add(pulse.bar)
                continue
            found.append(pulse.at)
        return found

    def restarted_after(self, index: int) -> bool:
        """Whether a new attempt begins after the row, and something follows it."""
        return any(
            _RESTART.search(one.text) and place + 1 < len(self.rows)
            for place, one in enumerate(self.rows[index + 1 :], index + 1)
        )


def of_text(said: Said, known: Known, telemetry: Telemetry | None = None) -> View:
    """The view of what a command printed."""
    rows = [*_rows(said.text)]
    stderr_from = len(rows) if said.stderr.strip() else None
    rows += _rows(said.stderr)
    return View(
        said.kind,
        said.source,
        tuple(rows),
        known,
        telemetry,
        said.rc,
        said.command,
        said.at,
        stderr_from=stderr_from,
    )


_ROWS = 20_000


def _rows(text: str) -> Iterable[Row]:
    for number, line in enumerate(text.split("\n")[:_ROWS], 1):
        states = line.rstrip("\r").split("\r")
        for place, state in enumerate(states):
            if state or len(states) == 1:
                yield row(number, safe(state, LIMIT), under=place + 1 < len(states))


def _at_exit(rows: tuple[Row, ...]) -> Iterable[int]:
    """From the frame of the finalizers to the row that names the exception."""
    left = 0
    for index, one in enumerate(rows):
        if left == 0 and _FINALIZERS.match(one.head):
            left = _CLEANING
        if left:
            yield index
            left = 0 if _NAMES_ERROR.match(one.head) else left - 1


def _pulses(rows: Iterable[Row]) -> Iterable[Pulse]:
    """A bar that stands still or is drawn once more shows nothing; a loss or a counter that grows does."""
    furthest: dict[int | None, int] = {}
    lines = Lines()
    for index, one in enumerate(rows):
        found = lines.read(one.text)
        if not found.training:
            continue
        key = found.steps
        grows = found.step is not None and found.step > furthest.get(key, 0 if found.steps else -1)
        first = key not in furthest
        if found.step is not None:
            furthest[key] = max(found.step, furthest.get(key, 0))
        bar = found.steps if "it/s" in one.text or "s/it" in one.text or "%|" in one.text else None
        yield Pulse(index, _shows(found, grows, first, bar is not None), bar)


def _shows(found: Found, grows: bool, first: bool, bar: bool) -> bool:
    if found.loss is not None and not math.isfinite(found.loss):
        return False  # a loop that goes round is no training at work
    if bar:
        return grows and not (first and found.step == 0)
    if found.loss is not None:
        return True
    return grows and not first

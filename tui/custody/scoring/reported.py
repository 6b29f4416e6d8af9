"""The figures a run reports: every number of its metrics files, with the digits it was written with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation, Overflow
from pathlib import Path
from typing import Any

from tui.custody.predictions.files import shown
from tui.custody.predictions.foreign import Unreadable, parse_json

METRICS_FILE = "metrics.json"
SUMMARY_FILE = re.compile(
    r"(?:(?:eval|all|test|predict|val|valid|validation)[_-]?)?results\.json|"
    r"(?:eval|test|val|valid|validation|final)[_-]?(?:metrics|scores?)\.json|"
    r"metrics[_-](?:eval|test|val|valid|validation|final)\.json|(?:scores?|evaluation)\.json",
    re.IGNORECASE,
)
"""What trainers call a file of figures of all kinds, such as the ``eval_results.json`` of Transformers. It is
read where predictions lie beside it, and only what they can give is taken from it."""
FILE_BYTES = 4 << 20
FIGURES = 10_000
DEPTH = 16
_IN_WORDS = re.compile(r"\s*([+-]?\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,4})?)\s*(%?)\s*\Z")


class BadMetrics(Exception):
    """A metrics file can't be read, in one sentence."""


@dataclass(frozen=True)
class Reported:
    """One figure.

    Attributes:
        path: the keys that lead to it.
        value: exact, with its trailing zeros; None where the file says null.
        percent: written with a percent sign.
        in_words: written as text.
    """

    path: tuple[str, ...]
    value: Decimal | None
    percent: bool = False
    in_words: bool = False

    @property
    def name(self) -> str:
        """The keys joined by a slash."""
        return "/".join(self.path)


@dataclass
class MetricsFile:
    """The figures of one metrics file. `lists` are the names whose value is a list, which is not compared."""

    name: str
    figures: list[Reported] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)


def read_metrics(path: Path, name: str) -> MetricsFile:
    """The figures of a metrics file, which is a JSON object with numbers at any depth.

    Args:
        name: the file relative to the run.

    Raises:
        BadMetrics: it is damaged, too large or holds a key twice.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise BadMetrics(f"{name} cannot be read ({error.strerror})") from None
    if len(raw) > FILE_BYTES:
        raise BadMetrics(f"{name} is larger than {FILE_BYTES >> 20} MiB")
    return figures_of(raw, name)


def figures_of(raw: bytes, name: str) -> MetricsFile:
    """The figures in the bytes of a JSON object.

    Raises:
        BadMetrics: see `read_metrics`.
    """
    try:
        tree = parse_json(raw.removeprefix(b"\xef\xbb\xbf"), name, numbers=_decimal)
    except Unreadable as error:
        raise BadMetrics(str(error)) from None
    if not isinstance(tree, dict):
        raise BadMetrics(f"{name} is no JSON object")
    found = MetricsFile(name)
    for figure in _figures(tree, (), found):
        if len(found.figures) >= FIGURES:
            raise BadMetrics(f"{name} holds more than {FIGURES:,} figures")
        found.figures.append(figure)
    return found


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except (InvalidOperation, Overflow):
        raise ValueError(text) from None


def _figures(tree: dict[str, Any], path: tuple[str, ...], found: MetricsFile) -> Iterator[Reported]:
    if len(path) >= DEPTH:
        raise BadMetrics(f"{found.name} is nested more than {DEPTH} deep")
    for key, value in tree.items():
        here = (*path, shown(key))
        if isinstance(value, dict):
            yield from _figures(value, here, found)
        elif isinstance(value, Decimal):
            yield Reported(here, value)
        elif value is None:
            yield Reported(here, None)
        elif isinstance(value, str):
            match = _IN_WORDS.match(value)
            if match is not None:
                yield Reported(here, Decimal(match[1]), percent=bool(match[2]), in_words=True)
        elif isinstance(value, list) and any(isinstance(item, Decimal) for item in value):
            found.lists.append("/".join(here))

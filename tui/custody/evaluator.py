"""The user's own evaluation: a command run on a copy of the results, and the figures it answers."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from tui.custody.child import Ended, Limits, clean_environment, run_child
from tui.custody.predictions.files import inside
from tui.custody.scoring.reported import BadMetrics, MetricsFile, figures_of, read_metrics
from tui.model.metrics import Evaluator
from tui.model.text import safe

FILE_SIZE = 8 << 30
SPARE = 256 << 20
"""Disk that stays free beside the copy."""


class EvaluatorFailed(Exception):
    """The command gave no figures, in one sentence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command gave elsewhere.

    Attributes:
        where: the box that ran it.
        figures: as text, by name; None: it gave none, for the reason `failed`.
    """

    where: str
    figures: Mapping[str, str] | None
    failed: str = ""


def evaluate(
    evaluator: Evaluator, root: Path, *, stop: Callable[[], bool] = lambda: False
) -> dict[str, Decimal]:
    """Run the command in a copy of `root`; gives its figures by name.

    The copy is this command's to spoil. It sees no environment but a search path, has a home of its own, a
    deadline, and limits on memory and file size. It is not shut off from the network or from files of this
    account: it is the user's own program.

    Raises:
        EvaluatorFailed: there is no room for the copy, or the command failed or answered no JSON object.
    """
    with tempfile.TemporaryDirectory(prefix="rgt-evaluate-") as place:
        copy, home = Path(place, "results"), Path(place, "home")
        home.mkdir()
        _copied(root, copy)
        ended = run_child(
            evaluator.command,
            cwd=copy,
            env=clean_environment(home),
            limits=Limits(evaluator.timeout, evaluator.memory, FILE_SIZE),
            stop=stop,
        )
        _check(ended, evaluator)
        return _figures(ended, evaluator, copy)


def _copied(root: Path, copy: Path) -> None:
    """Copy a tree. Links stay links, so that nothing outside is copied on the word of one."""
    try:
        needed = sum(p.lstat().st_size for p in root.rglob("*") if p.is_file() and not p.is_symlink())
        free = shutil.disk_usage(copy.parent).free
        if needed + SPARE > free:
            raise EvaluatorFailed(
                f"a copy of the results needs {needed >> 20:,} MiB, {copy.parent} has {free >> 20:,}"
            )
        shutil.copytree(root, copy, symlinks=True, ignore=_specials)
    except (OSError, shutil.Error) as error:
        raise EvaluatorFailed(f"the results could not be copied ({type(error).__name__})") from None


def _specials(folder: str, names: list[str]) -> list[str]:
    """Pipes, sockets and devices are not copied: opening one may wait for ever."""
    paths = [(name, Path(folder, name)) for name in names]
    return [name for name, path in paths if not (path.is_symlink() or path.is_dir() or path.is_file())]


def refused_status(evaluator: Evaluator, code: int, err: bytes) -> EvaluatorFailed:
    """A program that ended with a status, in its own last words."""
    last = safe(err.strip().split(b"\n")[-1], 200)
    program = Path(evaluator.command[0]).name
    return EvaluatorFailed(f"{program} ended with {code}" + (f": {last}" if last else ""))


def late(evaluator: Evaluator) -> EvaluatorFailed:
    """A program that took longer than it may."""
    program = Path(evaluator.command[0]).name
    return EvaluatorFailed(f"{program} did not end within {evaluator.timeout:g} s and was killed")


def endless(evaluator: Evaluator) -> EvaluatorFailed:
    """A program that printed more than any answer is."""
    return EvaluatorFailed(f"{Path(evaluator.command[0]).name} was printing without end")


def figures_in(answer: bytes, evaluator: Evaluator) -> dict[str, Decimal]:
    """The figures in what a command printed, or in the file that it wrote. Raises EvaluatorFailed."""
    try:
        if evaluator.output is None:
            return _by_name(figures_of(_last_object(answer), "the evaluator's answer"))
        return _by_name(figures_of(answer, evaluator.output))
    except BadMetrics as error:
        raise EvaluatorFailed(str(error)) from None


def _check(ended: Ended, evaluator: Evaluator) -> None:
    if ended.why == "timeout":
        raise late(evaluator)
    if ended.why == "stopped":
        raise EvaluatorFailed(f"{Path(evaluator.command[0]).name} was stopped")
    if ended.why:
        raise endless(evaluator)
    if ended.code != 0:
        raise refused_status(evaluator, ended.code, ended.err)


def _figures(ended: Ended, evaluator: Evaluator, copy: Path) -> dict[str, Decimal]:
    if evaluator.output is None:
        return figures_in(ended.out, evaluator)
    path = copy / evaluator.output
    if not inside(copy, path):
        raise wrote_nothing(evaluator)
    try:
        return _by_name(read_metrics(path, evaluator.output))
    except BadMetrics as error:
        raise EvaluatorFailed(str(error)) from None


def wrote_nothing(evaluator: Evaluator) -> EvaluatorFailed:
    """The file that it was to write is not there."""
    return EvaluatorFailed(f"the evaluator wrote no {evaluator.output}")


def _last_object(out: bytes) -> bytes:
    """What was printed, or its last line that starts an object: programs like to talk before."""
    text = out.strip()
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        lines = [line for line in text.split(b"\n") if line.lstrip().startswith(b"{")]
        return lines[-1] if lines else b""
    return text


def _by_name(found: MetricsFile) -> dict[str, Decimal]:
    return {figure.name: figure.value for figure in found.figures if figure.value is not None}

"""Reads the ``[custody]`` table of a job file; every problem names file and line."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from tui.fleet.problems import parse_toml, problem, read_user_file
from tui.fleet.toml_map import map_toml
from tui.model.custody_table import CustodyTable
from tui.model.failure import Exit, Failure

_MEANS = "No roster is taken from it."


def read_table(path: Path) -> CustodyTable | None:
    """The table of a job file, None when it has none.

    Raises:
        Failure: the file is missing or broken, or says something else than a table may; the first problem.
    """
    text = read_user_file(path, means=_MEANS)
    if text is None:
        raise Failure(f"There is no file {path}.", do="Give the job file with --job.", exit=Exit.USAGE)
    return parse_table(text, path.name)


def parse_table(text: str, file: str) -> CustodyTable | None:
    """`read_table` of a text. Raises Failure."""
    data = parse_toml(text, file, means=_MEANS)
    if "custody" not in data:
        return None
    try:
        return CustodyTable.model_validate(data["custody"])
    except ValidationError as error:
        raise _complaint(error, text, file) from None


def _complaint(error: ValidationError, text: str, file: str) -> Failure:
    first = error.errors(include_url=False, include_input=False)[0]
    path: tuple[str | int, ...] = ("custody", *first["loc"])
    if first["type"] == "extra_forbidden":
        what = f"{_dotted(path)} is not known here."
    elif first["type"] == "value_error":
        what = f"{_dotted(path)} {first['ctx']['error']}."
    else:
        what = f"{_dotted(path)}: {first['msg'][:1].lower()}{first['msg'][1:]}."
    return problem(file, map_toml(text).line(path), what, means=_MEANS, do="Correct the line.")


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path if part != "[key]")

"""Reads a job file; every problem names file and line, and never repeats a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tui.fleet.problems import parse_toml, problem, read_user_file
from tui.fleet.toml_map import map_toml
from tui.model.failure import Exit, Failure
from tui.model.job import Job

_MEANS = "Nothing was run."


def read_job(path: Path) -> Job:
    """The job of a file.

    Raises:
        Failure: the file is missing or broken, or says something that a job cannot be; the first problem.
    """
    text = read_user_file(path, means=_MEANS)
    if text is None:
        raise Failure(f"There is no file {path}.", do="Give the path of a job file.", exit=Exit.USAGE)
    return parse_job(text, path.name)


def parse_job(text: str, file: str) -> Job:
    """`read_job` of a text. Raises Failure."""
    text = text.removeprefix("\ufeff")  # what some editors put before the first line
    data = parse_toml(text, file, means=_MEANS)
    try:
        return Job.model_validate(data)
    except ValidationError as error:
        raise _complaint(error, text, file) from None


def schema() -> dict[str, Any]:
    """The JSON schema of a job file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Job.model_json_schema(by_alias=True)}


_PLAIN = {
    "string_type": "must be text in quotes",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "tuple_type": "must be a list in brackets",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}
"""Complaints that a library words for programmers."""

_BOUNDS = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
}

_OF_A_UNION = frozenset(("str", "int", "float", "bool"))


def _complaint(error: ValidationError, text: str, file: str) -> Failure:
    first = error.errors(include_url=False, include_input=False)[0]
    where = tuple(part for part in first["loc"] if part != "[key]")
    union = where[:1] == ("matrix",) and where[-1] in _OF_A_UNION
    where = where[:-1] if union else where
    name = ".".join(str(part) for part in where) or "The job"
    if first["type"] == "extra_forbidden":
        what = f"{name} is not known here."
    elif first["type"] == "missing":
        what = f"{name} is missing."
    elif first["type"] == "value_error":
        what = f"{name}: {first['ctx']['error']}."
    elif union:
        what = f"{name}: must be text, a number, true or false."
    elif first["type"] in _BOUNDS:
        what = f"{name}: must be {_BOUNDS[first['type']].format_map(first['ctx'])}."
    elif first["type"] == "too_short":
        what = f"{name}: must not be empty."
    else:
        what = f"{name}: {_PLAIN.get(first['type']) or first['msg'][:1].lower() + first['msg'][1:]}."
    return problem(file, map_toml(text).line(where), what, means=_MEANS, do="Correct the line.")

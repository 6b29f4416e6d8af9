"""Markdown files that begin with a block of YAML: cutting them apart, and what is wrong with the block."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tui.model.failure import Failure
from tui.model.problems import problem

if TYPE_CHECKING:
    from pydantic import ValidationError

    from tui.model.yaml_map import Path


def parts(text: str, file: str, kind: str, *, means: str = "") -> tuple[str, str, int]:
    """Front matter, body, and the line on which the body begins.

    Args:
        kind: what the file is, with its article, for the complaint.
        means: what follows for the operator when it is not such a file.

    Raises:
        Failure: the block does not begin or end.
    """
    opening, _, rest = text.partition("\n")
    if opening.rstrip() != "---":
        raise problem(file, 1, f"{kind} begins with a line ---.", means=means)
    match = re.search(r"^---[ \t]*$", rest, re.MULTILINE)
    if match is None:
        raise problem(file, 1, "the front matter has no closing line ---.", means=means)
    return rest[: match.start()], rest[match.end() :], rest.count("\n", 0, match.end()) + 2


def complaint(error: ValidationError, file: str, lines: Mapping[Path, int], *, means: str = "") -> Failure:
    """The first thing a schema found wrong, with the line of the key it stands at."""
    errors = error.errors(include_url=False, include_input=False)
    first = min(errors, key=lambda one: one["type"] != "extra_forbidden")  # a typo explains what is missing
    path = tuple(first["loc"])
    what = (
        str(first["ctx"]["error"])
        if first["type"] == "value_error"
        else first["msg"][:1].lower() + first["msg"][1:]
    )
    where = ".".join(map(str, path))
    while path and path not in lines:
        path = path[:-1]
    text = f"{where}: {what}." if where else f"{what}."
    return problem(file, lines.get(path), text, means=means)

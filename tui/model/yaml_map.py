"""YAML with line numbers, and without what makes YAML dangerous or ambiguous: tags, aliases, doubled keys."""

from __future__ import annotations

from typing import Any, TypeAlias

import yaml

from tui.model.problems import problem

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where it was built in: ten times as fast, and the profiles are read at each start."""

Path: TypeAlias = tuple[str | int, ...]
"""Keys from the root; array elements by index."""


def load_yaml(text: str, file: str, first_line: int = 1) -> tuple[Any, dict[Path, int]]:
    """Parse one YAML document.

    Args:
        first_line: the line of `file` on which `text` begins.

    Returns:
        The data, and the line of each key and list element by its path.

    Raises:
        Failure: it is not such YAML; names the line.
    """
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.AliasEvent):  # a few of them can stand for gigabytes
                line = event.start_mark.line + first_line if event.start_mark else None
                raise problem(file, line, "aliases (*name) are not allowed.")
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            data = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = f"is not YAML: {(error.problem or 'bad syntax')[:120]}."
        raise problem(file, mark.line + first_line if mark else None, what) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise problem(file, None, "is not YAML.") from None
    lines: dict[Path, int] = {}
    if node is not None:
        _walk(node, (), file, first_line, lines)
    return data, lines


def _walk(node: yaml.Node, path: Path, file: str, first_line: int, lines: dict[Path, int]) -> None:
    lines.setdefault(path, node.start_mark.line + first_line)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(key.value))
            line = key.start_mark.line + first_line
            if inner in lines:
                raise problem(file, line, f"{key.value} is written twice.")
            lines[inner] = line
            _walk(value, inner, file, first_line, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(value, (*path, index), file, first_line, lines)

"""Edits of ``fleet.toml``: one writer at a time, all or nothing, and nothing but the asked change.

Each edit reads the file under a lock, changes the text, proves that the result parses to exactly what was
meant, and swaps it in by an atomic rename. A file that does not parse is never written over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from tui.durable import write_whole
from tui.fleet import entry_rules, toml_edit
from tui.fleet.problems import parse_toml, problem, read_user_file
from tui.fleet.settings import check_instance, check_run
from tui.fleet.toml_edit import NotHere
from tui.fleet.toml_edit import Value as Value
from tui.fleet.toml_map import map_toml
from tui.model.failure import Exit, Failure
from tui.model.text import safe
from tui.model.via import SlurmStep, parse_via

Data: TypeAlias = dict[str, Any]
LOCK_WAIT_S = 5.0
UNTOUCHED = "Nothing was written."
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Names:
    """Every name in the file, also of entries that are wrong."""

    instances: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


def names(path: Path) -> Names:
    """What can be named in an edit. Raises Failure when the file cannot be read."""
    data = parse_toml(read_user_file(path) or "", path.name)
    found = {kind: data.get(kind) for kind in ("instances", "runs")}
    return Names(**{kind: tuple(table) for kind, table in found.items() if isinstance(table, dict)})


def add_instance(path: Path, name: str, values: Mapping[str, Value | None]) -> None:
    """Write a new box.

    Args:
        values: keys of ``[instances.NAME]``, in the order they are to be written; None leaves a key out.

    Raises:
        Failure: the values are not valid, the name is taken, or the file cannot be written.
    """
    check_instance(name, values)
    _add(path, ("instances", name), values)


def edit_instance(path: Path, name: str, changes: Mapping[str, Value | None]) -> None:
    """Change keys of a box; None removes a key. Raises Failure."""
    _edit(path, ("instances", name), changes, check_instance)


def rename_instance(path: Path, old: str, new: str) -> tuple[str, ...]:
    """Rename a box; its runs follow. Returns the names of those runs. Raises Failure."""
    _check_name(new)
    followers: list[str] = []

    def change(text: str, data: Data) -> tuple[str, Data]:
        followers[:] = _runs_of(data, old)
        text, data = _renamed(path, text, data, ("instances", old), new)
        for run in followers:
            text = toml_edit.set_value(text, ("runs", run, "box"), new)
            data["runs"][run]["box"] = new
        for job, via in _behind(data, old).items():  # jobs are reached through it by its name
            text = toml_edit.set_value(text, ("instances", job, "transport"), str(replace(via, login=new)))
            data["instances"][job]["transport"] = str(replace(via, login=new))
        return text, data

    _rewrite(path, change, ("instances", old))
    return tuple(followers)


def _behind(data: Data, login: str) -> dict[str, SlurmStep]:
    """The jobs that are reached through this box."""
    found = {}
    for name, entry in data["instances"].items():
        text = entry.get("transport") if isinstance(entry, dict) else None
        try:
            via = parse_via(text) if isinstance(text, str) else None
        except ValueError:
            continue
        if isinstance(via, SlurmStep) and via.login == login:
            found[name] = via
    return found


def remove_instance(path: Path, name: str) -> tuple[str, ...]:
    """Forget a box and its runs; nothing happens on the box.

    Returns:
        The names of the forgotten runs.

    Raises:
        Failure: there is no such box, or the file cannot be written.
    """
    gone: list[str] = []

    def change(text: str, data: Data) -> tuple[str, Data]:
        gone[:] = _runs_of(data, name)
        text, data = _removed(path, text, data, ("instances", name))
        for run in gone:
            text, data = _removed(path, text, data, ("runs", run))
        return text, data

    _rewrite(path, change, ("instances", name))
    return tuple(gone)


def set_host_key(path: Path, name: str, fingerprint: str) -> None:
    """Pin a box's host key. Raises Failure."""
    edit_instance(path, name, {"host_key": fingerprint})


def add_run(path: Path, name: str, values: Mapping[str, Value | None]) -> None:
    """Write a new run of a known box. Raises Failure."""
    check_run(name, values)
    _add(path, ("runs", name), values)


def edit_run(path: Path, name: str, changes: Mapping[str, Value | None]) -> None:
    """Change keys of a run; None removes a key. Raises Failure."""
    _edit(path, ("runs", name), changes, check_run)


def rename_run(path: Path, old: str, new: str) -> None:
    """Rename a run. Raises Failure."""
    _check_name(new)
    _rewrite(path, lambda t, d: _renamed(path, t, d, ("runs", old), new), ("runs", old))


def remove_run(path: Path, name: str) -> None:
    """Stop watching a run. Nothing happens on the box. Raises Failure."""
    _rewrite(path, lambda t, d: _removed(path, t, d, ("runs", name)), ("runs", name))


def set_theme(path: Path, name: str) -> None:
    """Write which theme is worn from now on. Raises Failure."""

    def change(text: str, data: Data) -> tuple[str, Data]:
        settings = data.setdefault("settings", {})
        if not isinstance(settings, dict):
            raise NotHere
        try:
            text = toml_edit.set_value(text, ("settings", "theme"), name)
        except NotHere:
            if settings:
                raise
            text = toml_edit.add_table(text, ("settings",), {"theme": name})
        settings["theme"] = name
        return text, data

    _rewrite(path, change, ("settings", "theme"))


def _add(path: Path, at: tuple[str, str], given: Mapping[str, Value | None]) -> None:
    kind, name = at
    values = {key: value for key, value in given.items() if value is not None}

    def change(text: str, data: Data) -> tuple[str, Data]:
        table = data.setdefault(kind, {})
        if not isinstance(table, dict):
            raise NotHere
        if name in table:
            raise Failure(f"{name} is already in {path.name}.", do="Choose another name.", code="name-taken")
        if kind == "runs" and values["box"] not in data.get("instances", {}):
            raise _unknown(path, "box", str(values["box"]))
        table[name] = dict(values)
        return toml_edit.add_table(text, at, values), data

    _rewrite(path, change, at)


def _edit(
    path: Path,
    at: tuple[str, str],
    changes: Mapping[str, Value | None],
    check: Callable[[str, Mapping[str, Any]], object],
) -> None:
    def change(text: str, data: Data) -> tuple[str, Data]:
        entry = _table_with(path, data, at)[at[1]]
        if not isinstance(entry, dict):
            raise NotHere
        for key, value in changes.items():
            text = toml_edit.set_value(text, (*at, key), value)
            if value is None:
                entry.pop(key, None)
            else:
                entry[key] = value
        check(at[1], entry)
        return text, data

    _rewrite(path, change, at)


def _renamed(path: Path, text: str, data: Data, at: tuple[str, str], new: str) -> tuple[str, Data]:
    kind, old = at
    table = _table_with(path, data, at)
    if new in table:
        raise Failure(f"{new} is already taken.", do="Choose another name.", code="name-taken")
    data[kind] = {(new if name == old else name): entry for name, entry in table.items()}
    return toml_edit.rename_key(text, at, new), data


def _removed(path: Path, text: str, data: Data, at: tuple[str, str]) -> tuple[str, Data]:
    table = _table_with(path, data, at)
    del table[at[1]]
    return toml_edit.remove_table(text, at), data


def _table_with(path: Path, data: Data, at: tuple[str, str]) -> dict[str, Any]:
    """The table of all boxes or runs, which has this one in it."""
    kind, name = at
    table = data.get(kind)
    if not isinstance(table, dict) or name not in table:
        raise _unknown(path, "box" if kind == "instances" else "run", name)
    return table


def _check_name(name: str) -> None:
    try:
        entry_rules.name(name)
    except ValueError as error:
        raise Failure(f"The new name {error}.", exit=Exit.USAGE, code="bad-name") from None


def _runs_of(data: Data, box: str) -> list[str]:
    runs = data.get("runs", {})
    if not isinstance(runs, dict):
        return []
    return [name for name, run in runs.items() if isinstance(run, dict) and run.get("box") == box]


def _unknown(path: Path, what: str, name: str) -> Failure:
    return Failure(
        f"There is no {what} {safe(name, 80)} in {path.name}.",
        do="`rgt status` lists the names.",
        exit=Exit.USAGE,
        code="unknown-name",
    )


def _rewrite(path: Path, change: Callable[[str, Data], tuple[str, Data]], at: tuple[str, str]) -> None:
    """Apply `change` to the file's text and data, which must then agree with each other."""
    target = path.resolve()  # a link into a dotfiles folder stays a link
    with _locked(target):
        for _ in range(_TRIES):
            before = _stamp(target)
            text = read_user_file(target, means=UNTOUCHED) or ""
            new = _changed(path, text, change, at)
            if _stamp(target) == before:  # an editor does not take our lock
                if new != text:
                    _swap_in(target, new)
                return
    raise Failure(f"{path.name} keeps changing.", do="Save it in your editor, then try again.", code="busy")


def _changed(
    path: Path, text: str, change: Callable[[str, Data], tuple[str, Data]], at: tuple[str, str]
) -> str:
    data = parse_toml(text, path.name, means=UNTOUCHED)
    try:
        new, meant = change(text, data)
        if not _means(new, meant):
            raise NotHere
    except NotHere:
        raise problem(
            path.name,
            map_toml(text).line(at),
            f"{'.'.join(at)} is written in a form that rgt does not edit.",
            means=UNTOUCHED,
            do=f"Change it by hand, or write it as its own [{'.'.join(at)}] table.",
            code="not-editable",
        ) from None
    return new


def _means(text: str, meant: Data) -> bool:
    try:
        return _same(_without_empty(tomllib.loads(text)), _without_empty(meant))
    except (ValueError, RecursionError):
        return False


def _without_empty(data: Data) -> Data:
    """A kind whose last entry went has no line left in the file; that is as good as an empty table."""
    return {key: value for key, value in data.items() if value != {}}


def _same(one: object, other: object) -> bool:
    """Equal in value and type; a NaN equals itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Hold the writers' lock of a file, which lies beside it: the file itself is replaced by each edit."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(target.parent / f".{target.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _unwritable(target, error) from None
    try:
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Failure(
                        f"Another rgt has held {target.name} for {LOCK_WAIT_S:g} s.",
                        means=UNTOUCHED,
                        do="Try again.",
                        code="busy",
                    ) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(lock)


def _stamp(target: Path) -> tuple[int, int, int] | None:
    try:
        status = target.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _swap_in(target: Path, text: str) -> None:
    """Write `text` beside the file, flush it to the disk and rename it over the file."""
    try:
        write_whole(target, text)
    except OSError as error:
        raise _unwritable(target, error) from None


def _unwritable(target: Path, error: OSError) -> Failure:
    return Failure(
        f"{target} cannot be written ({error.strerror}).",
        means="The file is as it was.",
        do="Look at the folder's rights and free space.",
        code="unwritable",
    )

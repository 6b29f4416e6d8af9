"""Targets in files of their own: their columns get their roles and stand beside those of the predictions."""

from __future__ import annotations

from dataclasses import replace

from tui.custody.predictions.files import Source
from tui.custody.predictions.joined import JoinedTable, Targets, one_shape
from tui.custody.predictions.roles import Roles, recognise
from tui.custody.predictions.tables import Table, open_table
from tui.custody.scoring.figures import Undecided
from tui.model.metrics import Population

TARGET_ROLES = ("target", "target_boxes", "target_labels")

Opened = tuple[tuple[Table, ...], Roles, Targets]


def with_targets(source: Source, tables: tuple[Table, ...], roles: Roles) -> Opened:
    """The predictions with the target files' columns beside their own, the roles of all, and the targets.

    Args:
        roles: of the predictions' own columns. A target found among them gives way to the declared file.

    Raises:
        Undecided: there is nothing to join by, or no column is plainly the target.
        Unreadable: the target files are damaged, or do not fit together.
    """
    declared = source.declared
    assert declared is not None
    if not source.targets:
        raise Undecided("population-incomplete", source.wrong)
    if roles.id is None:
        why = roles.unclear.get("id", "the predictions have no column that is plainly the id")
        raise Undecided("not-declared", f"targets lie in files of their own, but {why}")
    files = tuple(open_table(path, name) for name, path in source.targets)
    one_shape(files)
    found = _recognised(files[0], declared)
    identity = declared.targets_id or found.id or (roles.id if roles.id in files[0].columns else None)
    columns = {role: c for role, c in _targets_of(found).items() if c is not None}
    for column in (identity, *columns.values()):
        if column is not None and column not in files[0].columns:
            raise Undecided("not-declared", f"the declared column {column[:80]!r} is not in {files[0].name}")
    if identity is None:
        raise Undecided("not-declared", f"{files[0].name} has no column that is plainly the id")
    targets = Targets(files, identity)
    own = set(tables[0].columns)
    named = {role: c if c not in own else f"{c} of {files[0].name}" for role, c in columns.items()}
    taken = {named[role]: column for role, column in columns.items()}
    joined = tuple(JoinedTable(table, roles.id, targets, taken) for table in tables)
    return joined, _merged(roles, found, named, source), targets


def _recognised(table: Table, declared: Population) -> Roles:
    """The roles of a target file's columns. A lone column beside the id can only be the target."""
    only = Population(
        files=("-",), id=declared.targets_id, **{role: getattr(declared, role) for role in TARGET_ROLES}
    )
    found = recognise(table.columns, only)
    rest = [column for column in table.columns if column != found.id]
    if not any(_targets_of(found).values()) and len(rest) == 1 and "target" not in found.unclear:
        return replace(found, target=rest[0])
    return found


def _targets_of(roles: Roles) -> dict[str, str | None]:
    return {
        "target": roles.target,
        "target_boxes": roles.boxes.get("target_boxes"),
        "target_labels": roles.boxes.get("target_labels"),
    }


def _merged(roles: Roles, found: Roles, named: dict[str, str], source: Source) -> Roles:
    boxes = {role: column for role, column in roles.boxes.items() if role not in TARGET_ROLES}
    boxes |= {role: column for role, column in named.items() if role != "target"}
    unclear = {role: why for role, why in roles.unclear.items() if role not in TARGET_ROLES}
    unclear |= {role: why for role, why in found.unclear.items() if role in TARGET_ROLES}
    files = ", ".join(name for name, _ in source.targets[:3])
    notes = [note for note in roles.notes if not note.startswith(tuple(f"{role} " for role in TARGET_ROLES))]
    notes.append(f"targets are joined by id from {files}: the columns {', '.join(map(repr, named.values()))}")
    if roles.target is not None:
        notes.append(f"the column {roles.target[:80]!r} of the predictions was not taken for the target")
    return replace(roles, target=named.get("target"), boxes=boxes, unclear=unclear, notes=tuple(notes))

"""Whether a pasted login is a box that the fleet has already, and whose it is."""

from __future__ import annotations

from tui.box.address import Address
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.model.failure import Exit, Failure


def refuse_unplaced(address: Address, instance_id: str | None) -> None:
    """An id is a provider's. Raises Failure where nothing tells whose."""
    if instance_id and address.platform in ("ssh", "local"):
        raise Failure(
            "The login does not tell whose instance this is.",
            means="Nothing was added.",
            do="Add --platform NAME; rgt profiles lists the names.",
            exit=Exit.USAGE,
            code="no-platform",
        )


def refuse_known(where: Paths, address: Address, instance_id: str | None) -> None:
    """One box has one entry. Raises Failure: its login, or its provider's id, stands in the fleet already."""
    known = settings.load(where.fleet_file).instances
    same = [i.name for i in known if i.endpoint and _door(i.endpoint) == _door(address.endpoint())]
    if same:
        raise Failure(
            f"This login is already in the fleet as {same[0]}.",
            means="Nothing was added.",
            do=f"`rgt edit {same[0]} KEY=VALUE` changes it.",
            code="known-box",
        )
    mine = (address.platform, instance_id)
    moved = next((i.name for i in known if i.instance_id and (i.platform, i.instance_id) == mine), None)
    if moved:
        raise Failure(
            f"This instance is already in the fleet as {moved}, with another login.",
            means="Nothing was added.",
            do=f"`rgt edit {moved} host=HOST port=PORT` where it moved.",
            code="known-instance",
        )


def _door(endpoint: object) -> tuple[object, ...]:
    return tuple(getattr(endpoint, part) for part in ("host", "port", "user", "jump"))

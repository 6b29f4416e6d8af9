"""From what the operator typed to stores, readers and routes: the one place that puts them together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tui.box import ssh_config
from tui.box.transfer.line import BulkTransport, Dial
from tui.box.trust import TrustStore
from tui.custody.consumers import BoxConsumer, HereConsumer
from tui.custody.direct import DirectRoute
from tui.custody.stores.box import BoxStore
from tui.custody.stores.path import PathStore
from tui.custody.stores.place import Destination
from tui.custody.stores.rclone import RcloneStore
from tui.model.failure import Failure
from tui.model.instance import Instance

Connect = Callable[[Instance], Awaitable[BulkTransport]]
AnyStore = PathStore | BoxStore | RcloneStore
HERE = "here"


def dial_to(connect: Connect, instance: Instance) -> Dial:
    """Connections to one box, each of its own."""
    return lambda: connect(instance)


def store_for(
    to: Destination, name: str, connect: Connect, boxes: dict[str, Instance], cap: int | None = None
) -> AnyStore:
    """The bag `name` at a destination. Raises Failure where the box is not known any more."""
    if to.kind == "path":
        return PathStore(Path(to.path), name)
    if to.kind == "rclone":
        return RcloneStore(to.path, name, cap=cap)
    return BoxStore(to.box, dial_to(connect, _box(to.box, boxes)), to.path, name, cap=cap)


def consumer_for(
    on: str, connect: Connect, boxes: dict[str, Instance], state: Path
) -> HereConsumer | BoxConsumer:
    """Who reads a copy back: ``here``, or a box by its name.

    Args:
        state: folder of this computer for what is restored here, or is on its way to the box.
    """
    if on == HERE:
        return HereConsumer(state / "readback")
    return BoxConsumer(on, dial_to(connect, _box(on, boxes)), state / "readback-staging")


def _box(name: str, boxes: dict[str, Instance]) -> Instance:
    if name not in boxes:
        raise Failure(f"No box is named {name!r}.", do="See `rgt status`.", code="no-such-box")
    return boxes[name]


async def direct_route(source: Instance, target: Instance, trust: TrustStore) -> DirectRoute | None:
    """How `source` reaches `target` by itself; None where a jump host or proxy of this computer leads there.

    The target's key is the one this computer recorded, so the source can't be led to another machine.

    Raises:
        Failure: the endpoint or the recorded key can't be used.
    """
    if source.endpoint is None or target.endpoint is None or source.name == target.name:
        return None
    pin = await asyncio.to_thread(trust.pinned, target.name)
    route = await ssh_config.resolve(target.endpoint)
    if pin is None or route.jumps or route.proxy_command is not None or not route.user:
        return None
    return DirectRoute(source.name, target.name, route.host, route.port, route.user, pin.public_key)

"""`rgt setup`: the guided setup, which is a view of the app; and what its steps need of this computer."""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tui.model.failure import Failure

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance
    from tui.setup.state import Closable, Tools


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    setup = sub.add_parser("setup", help="from nothing to a watched box, step by step")
    setup.add_argument(
        "name", nargs="?", default="", metavar="NAME", help="a platform, or a box of the fleet"
    )
    setup.set_defaults(run=_setup)


def _setup(args: argparse.Namespace) -> int:
    from tui.verbs.ending import changing
    from tui.verbs.screen import open_screen

    changing(args)
    return open_screen(args, setup=args.name)


def tools(
    where: Paths,
    dial: Callable[[Instance], Awaitable[Closable]],
    reload: Callable[[], Awaitable[None]],
    clock: Callable[[], float],
) -> Tools:
    """What the steps need, of this computer."""
    from tui.custody.host_keys import trust_store
    from tui.fleet import fleet_file, profiles, settings
    from tui.fleet.paths import shipped
    from tui.model.via import is_via
    from tui.platforms.credentials import keep
    from tui.platforms.vault import Keyring
    from tui.setup.state import Tools
    from tui.verbs import add_via
    from tui.verbs.accounting import account_of
    from tui.verbs.fleet import Extras, written
    from tui.verbs.screen import instance_named

    def edit(name: str, changes: Mapping[str, str | float]) -> None:
        if changes:
            fleet_file.edit_instance(where.fleet_file, name, dict(changes))

    def add(pasted: str, name: str, platform: str) -> str:
        if is_via(pasted):
            return add_via.written(where, pasted, name or None, {}).name
        return written(where, pasted, name or None, Extras(platform=platform or None))[1]

    def forget(name: str) -> None:
        try:
            trust_store(where).forget(name)
        except OSError as error:
            raise Failure(f"The host key of {name} could not be taken back ({error.strerror}).") from None

    return Tools(
        where=where,
        profiles=profiles.load(shipped("profiles"), where.profiles).by_id,
        dial=dial,
        add_box=add,
        instance=lambda name: instance_named(name, where),
        boxes=lambda: settings.load(where.fleet_file).instances,
        edit_box=edit,
        forget_key=forget,
        reload=reload,
        account=lambda platform: account_of(where, platform),
        keep_key=lambda platform, typed: keep(platform, typed, Keyring()),
        keys=Path.home() / ".ssh",
        environ=os.environ,
        clock=clock,
    )

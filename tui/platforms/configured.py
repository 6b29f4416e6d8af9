"""Which accounts may be asked at all. Light: where there is no key, nothing more is ever loaded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tui.model.account import AccountSpec
from tui.model.instance import Instance
from tui.platforms.credentials import PLACES, Credential, Finder
from tui.platforms.vault import Keyring

OFF = "RGT_NO_ACCOUNTS"
"""Set, whatever to, no provider is asked by itself."""


def configured(
    written: Sequence[AccountSpec],
    instances: Iterable[Instance],
    *,
    asking: bool = True,
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
) -> tuple[AccountSpec, ...]:
    """Accounts that are asked: those of the fleet file, then platforms for which a key is found.

    A fleet with stand-ins in it is a demo, which asks no real provider.

    Args:
        asking: the operator's ``ask_platforms``.
    """
    environ = os.environ if environ is None else environ
    instances = tuple(instances)
    if not asking or environ.get(OFF) or any(instance.simulated for instance in instances):
        return ()
    named = {spec.platform for spec in written}
    rented = {instance.platform for instance in instances}
    found = []
    for platform in PLACES:
        if platform in named:
            continue
        # A keyring may ask to be unlocked: only for a platform that the operator has a box at.
        vault = Keyring() if platform in rented else None
        finder = Finder(environ, Path.home() if home is None else home, vault)
        key = finder.find(platform)
        if isinstance(key, Credential) or key.silent:  # one that may be there is asked for, and so told of
            found.append(AccountSpec(platform, platform, found=True))
    return (*(spec for spec in written if spec.ask), *found)

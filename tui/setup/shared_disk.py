"""Whether a disk that a platform calls shared is the same on two boxes: written on one, read on the other.

A path of the same name need not be the same disk: some are shared within a region or data centre alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from tui.box.transport import Script, Transport
from tui.fleet.profile_schema import Facts
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.text import SafeText, safe
from tui.setup.audit import Finding
from tui.setup.reaching import connected
from tui.setup.state import Tools

MOST = 3
"""Other boxes that are asked."""

# $1 folder, $2 token.
_WRITE = 'umask 077; [ -d "$1" ] && printf %s "$2" >"$1/.rgt-shared-$2"'
_READ = 'cat -- "$1/.rgt-shared-$2"'
_REMOVE = 'rm -f -- "$1/.rgt-shared-$2"'


async def seen_elsewhere(box: Transport, instance: Instance, facts: Facts, tools: Tools) -> list[Finding]:
    """One finding for each shared folder and each other box of the platform; none where there is no other."""
    shared = [tier for tier in facts.tiers if tier.scope not in ("instance", "machine")]
    folders = [path for tier in shared for path in tier.paths]
    others = [one for one in tools.boxes() if one.platform == instance.platform and one.name != instance.name]
    found: list[Finding] = []
    for folder in folders:
        token = secrets.token_hex(8)
        if (await box.run(Script(_WRITE, (folder, token), why="is the disk shared?"))).exit != 0:
            found.append(Finding("shared disk", "unknown", safe(f"{folder} is not there, or not writable.")))
            continue
        try:
            found += [await _on(one, folder, token, tools) for one in _asked(others)]
        finally:
            await box.run(Script(_REMOVE, (folder, token), why="take the mark away"))
    return found


def _asked(others: Sequence[Instance]) -> Sequence[Instance]:
    return others[:MOST]


async def _on(other: Instance, folder: str, token: str, tools: Tools) -> Finding:
    try:
        async with connected(other, tools) as box:
            told = await box.run(Script(_READ, (folder, token), why="is it the same disk here?"))
    except Failure as failure:
        why = f"{folder}: {other.name} could not be asked: {failure.what}"
        return Finding("shared disk", "unknown", safe(why))
    if told.stdout.decode("ascii", "replace") == token:
        return Finding("shared disk", "ok", safe(f"{folder} is the same disk on {other.name}"))
    return Finding("shared disk", "mind", _locked(folder, other.name))


def _locked(folder: str, name: str) -> SafeText:
    return safe(f"{folder} is another disk on {name}: it is bound to a region, or not shared at all.")

"""Whether two descriptions are of one machine. Names, addresses and ports are used again by the next box."""

from __future__ import annotations

import hashlib

from tui.model.custody import Victim, canonical


def identified(victim: Victim) -> bool:
    """Whether anything tells this machine from the next one of the same name."""
    return bool(victim.instance_id or victim.host_key)


def surely_same(one: Victim, other: Victim) -> bool:
    """Whether an act on one is an act on the other: what both know agrees, and an id or host key is in it."""
    if (one.name, one.platform) != (other.name, other.platform):
        return False
    ids = [(one.instance_id, other.instance_id), (one.host_key, other.host_key)]
    told = [(a, b) for a, b in ids if a and b]
    accounts = {one.account, other.account} - {None, ""}
    return bool(told) and all(a == b for a, b in told) and len(accounts) < 2


def perhaps_same(one: Victim, other: Victim) -> bool:
    """Whether what protects one must protect the other: a hold follows a machine through a new name."""
    if one.instance_id and other.instance_id and one.platform == other.platform:
        return one.instance_id == other.instance_id
    if one.host_key and one.host_key == other.host_key:
        return True
    return one.name == other.name


def identity(victim: Victim) -> str:
    """A short word for this machine that the next one of its name does not share; fit for a file name."""
    strongest = victim.instance_id or victim.host_key or victim.endpoint
    known = (victim.platform, victim.name, strongest)
    return hashlib.sha256(canonical(known)).hexdigest()[:12]

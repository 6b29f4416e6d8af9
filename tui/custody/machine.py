"""Which machine this is: by everything on record, and by what it says of itself."""

from __future__ import annotations

from tui.box.transport import Script, Transport
from tui.custody.host_keys import trust_store
from tui.fleet.paths import Paths
from tui.model.custody import Victim
from tui.model.failure import Failure
from tui.model.instance import Instance


def known_victim(instance: Instance, where: Paths) -> Victim:
    """The machine by everything on record, without asking it. Raises Failure: the record is damaged."""
    pin = trust_store(where).pinned(instance.name)
    return Victim(
        name=instance.name,
        platform=instance.platform,
        instance_id=instance.instance_id,
        account=instance.account,
        endpoint=_address(instance),
        host_key=pin.fingerprint if pin else instance.host_key,
    )


async def victim_of(instance: Instance, transport: Transport) -> Victim:
    """The machine at the other end, by everything that names it. Raises LinkLost, TimeoutError."""
    text = "cat /proc/sys/kernel/random/boot_id 2>/dev/null; exit 0"
    done = await transport.run(Script(text, why="which boot of the box this is"))
    host_key = getattr(transport, "host_key", None)
    return Victim(
        name=instance.name,
        platform=instance.platform,
        instance_id=instance.instance_id,
        account=instance.account,
        endpoint=_address(instance),
        host_key=host_key or instance.host_key,
        boot_id=done.stdout.decode("ascii", "replace").strip() or None,
    )


def same_machine(before: Victim, now: Victim) -> Victim:
    """The machine as it is now, where it is the one a roster was taken of.

    A restart gives it another address and another boot id, and it stays the same machine.

    Raises:
        Failure: it is another one.
    """
    unlike = [
        word
        for word, was, is_now in (
            ("provider's id", before.instance_id, now.instance_id),
            ("account", before.account, now.account),
            ("host key", before.host_key, now.host_key),
            ("platform", before.platform, now.platform),
            ("name", before.name, now.name),
        )
        if was != is_now
    ]
    if unlike:
        raise Failure(
            f"This is not the machine that the roster was taken of: another {' and '.join(unlike)}.",
            means="What was seen there says nothing about this one.",
            do=f"Take a new roster: rgt roster {now.name}.",
            code="other-machine",
        )
    return now


def _address(instance: Instance) -> str:
    end = instance.endpoint
    if instance.via is not None:
        return str(instance.via)
    if end is None:
        return ""
    user = f"{end.user}@" if end.user else ""
    return f"{user}{end.host}" + (f":{end.port}" if end.port else "")

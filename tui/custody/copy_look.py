"""The one look at the durable copy just before a verb that loses data: is it still what was read back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tui.custody.codes import refusal
from tui.custody.moments import moment, seconds
from tui.custody.standing import untouched
from tui.custody.stores.base import Store, wrong_names
from tui.custody.stores.devices import clock_is_ours
from tui.model.custody import CopyReport, ReadbackReport, Refusal
from tui.model.failure import Failure

LASTS_S = 86_400.0
"""How long a readback counts where the store can only be asked for names and sizes."""

_SHOWN = 5


async def look_at_copy(
    copied: CopyReport, readback: ReadbackReport, store: Callable[[], Store], now: float
) -> tuple[Refusal, ...]:
    """What stands against a copy as it is now.

    On a disk whose changes this computer dates, every byte is proven to be what was sealed. Elsewhere the
    names and sizes must be, and the readback recent: reading all of it again just before the act would cost
    hours, and the same question would be open again afterwards.

    Args:
        store: makes the store that holds the copy.
        now: seconds since the epoch.
    """
    uri = copied.destination.uri
    if clock_is_ours(copied.destination):
        same = await asyncio.to_thread(untouched, copied, None)
        return () if same else (refusal("copy-changed", f"{uri} is not as it was sealed."),)
    try:
        against = await _listed(copied, store())
    except (Failure, TimeoutError) as error:
        why = error.what if isinstance(error, Failure) else "No answer in time."
        return (refusal("copy-unseen", why),)
    if not against and now - seconds(readback.finished_at) > LASTS_S:
        against = (refusal("readback-old", f"It was at {readback.finished_at}, and it is {moment(now)}."),)
    return against


async def _listed(copied: CopyReport, store: Store) -> tuple[Refusal, ...]:
    try:
        found = await store.listed()
    finally:
        await store.close()
    wrong = wrong_names(found.files, found.others, {one.path: one.size for one in copied.bag})
    return tuple(refusal("copy-changed", f"{line}.") for line in wrong[:_SHOWN])

"""A vendor's client in front of the fake provider, with no waiting in it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.platforms.fake_provider import serving
from tests.platforms.world import KEY, Box, World
from tui.model.custody import Victim
from tui.platforms.control import Provider
from tui.platforms.http import Edge, Patience
from tui.platforms.limit import Spacing
from tui.platforms.secret import Secret
from tui.platforms.vendors import WAYS

T = TypeVar("T")
VENDORS = tuple(WAYS)
STOPPING = tuple(name for name in VENDORS if name != "lambda")
IDS = {"runpod": "7h9k2m4n6p", "vastai": "3120077", "lambda": "0920582c7ff04139", "paperspace": "psabc12",
       "autodl": "pro-ab12cd34"}  # fmt: skip
OTHERS = {"runpod": "pod2", "vastai": "3120012", "lambda": "ffff", "paperspace": "ps2", "autodl": "pro-zz"}


@dataclass
class Rig:
    """One vendor's account.

    Attributes:
        slept: what the client waited for, in seconds, without waiting.
    """

    platform: str
    world: World
    base: str
    slept: list[float]

    @property
    def id(self) -> str:
        return IDS[self.platform]

    @property
    def victim(self) -> Victim:
        return Victim(name="done-01", platform=self.platform, instance_id=self.id)

    def plane(self, key: str = KEY, **patience: float) -> Provider:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        way = WAYS[self.platform]
        edge = Edge(
            way.vendor,
            Secret(key),
            base_url=self.base,
            delay=way.delay,
            sleep=sleep,
            patience=Patience(**patience),  # type: ignore[arg-type]
            spacing=Spacing({"*": 0.0}, sleep=sleep),
        )
        return way.open(edge)


@contextmanager
def account(platform: str, **box: Any) -> Iterator[Rig]:
    """An account with our machine and another one."""
    world = World()
    world.add(Box(IDS[platform], **box))
    world.add(Box(OTHERS[platform], name="other", created="2026-10-01T08:00:00Z"))
    with serving(world, platform) as base:
        yield Rig(platform, world, base, [])


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)

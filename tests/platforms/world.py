"""One account at a provider that lags, lies, pages and fails as real ones do. Every request is on record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

KEY = "sk-rgt-test-0123456789abcdefSECRET"
Reply = tuple[int, Any, dict[str, str]]


@dataclass(frozen=True)
class Box:
    """A machine as the provider knows it."""

    id: str
    name: str = "done-01"
    state: str = "running"  # starting running stopping stopped destroying gone
    created: str = "2026-11-01T08:00:00Z"
    volume: str | None = None
    host: str = "203.0.113.9"
    port: int = 12873
    price: float = 1.5
    disk_gb: int = 73


@dataclass
class Exchange:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    status: int
    answer: Any


@dataclass
class World:
    """One account, and how it misbehaves.

    Attributes:
        page: rows on a page at most.
        lag: reads of one machine, and of the list, that still show the old state after a verb.
        lingers: reads during which a destroyed machine is shown as ended before it vanishes.
        ignores: verbs that are acknowledged and not carried out.
        script: answers that the next requests get instead of the right one, by ``METHOD path-part``; the
            verb is carried out all the same where `applies_though`.
        auth: ``ok``; ``401``; ``404`` (how some say it); ``empty`` (a list of nothing, unexplained).
        dead: the whole interface is retired.
        short_page: a list says that there is more, and never gives it.
    """

    boxes: dict[str, Box] = field(default_factory=dict)
    volumes: set[str] = field(default_factory=set)
    key: str = KEY
    account: int = 4711
    page: int = 25
    lag: int = 0
    lingers: int = 0
    ignores: set[str] = field(default_factory=set)
    script: list[tuple[str, Reply]] = field(default_factory=list)
    applies_though: bool = False
    auth: str = "ok"
    dead: bool = False
    balance: float | None = 25.0
    short_page: bool = False
    log: list[Exchange] = field(default_factory=list)
    seen_keys: list[str] = field(default_factory=list)
    on_verb: Callable[[str], None] = lambda verb: None
    made: int = 0
    _old: dict[str, tuple[Box, list[int]]] = field(default_factory=dict)

    @property
    def verbs(self) -> list[str]:
        return [e.method + " " + e.path for e in self.log if e.method in ("PUT", "DELETE", "PATCH", "POST")]

    def count(self, part: str) -> int:
        """Requests whose method and path have this in them."""
        return sum(part in f"{e.method} {e.path}" for e in self.log)

    def add(self, box: Box) -> Box:
        self.boxes[box.id] = box
        if box.volume:
            self.volumes.add(box.volume)
        return box

    def put(self, id_: str, **changes: Any) -> None:
        self.boxes[id_] = replace(self.boxes[id_], **changes)

    def one(self, id_: str) -> Box | None:
        """The machine as get-one shows it now."""
        return self._shown(id_, 0)

    def all(self) -> list[Box]:
        """The machines as the list shows them now."""
        names = [*self.boxes, *(i for i in self._old if i not in self.boxes)]
        return [box for name in names if (box := self._shown(name, 1)) is not None]

    def _shown(self, id_: str, which: int) -> Box | None:
        old = self._old.get(id_)
        if old is not None and old[1][which] > 0:
            old[1][which] -= 1
            return old[0]
        box = self.boxes.get(id_)
        if box is not None and box.state == "gone":
            if self.lingers <= 0:
                return None
            self.lingers -= which  # counted by lists
        return box

    def act(self, verb: str, id_: str) -> bool:
        """Carry out stop, start or destroy; False where there is no such machine."""
        self.on_verb(verb)
        box = self.boxes.get(id_)
        if box is None or box.state == "gone":
            return False
        if verb in self.ignores:
            return True
        self._old[id_] = (box, [self.lag, self.lag])
        if verb == "destroy":
            self.boxes[id_] = replace(box, state="gone")
            if not self.lingers:
                del self.boxes[id_]
        elif verb == "stop":
            self.boxes[id_] = replace(box, state="stopped")
        else:  # a start moves the endpoint
            self.boxes[id_] = replace(box, state="running", port=box.port + 1)
        return True

    def create(self, name: str) -> Box:
        self.made += 1
        return self.add(Box(id=str(9000 + self.made), name=name, state="starting"))

    def run_dry(self) -> None:
        """The balance is used up: machines without a network volume are destroyed, volumes stay."""
        self.balance = 0.0
        self.boxes = {i: replace(b, state="stopped") for i, b in self.boxes.items() if b.volume}

"""What the fleet costs, as far as it is known. An unknown price stays unknown; it is never counted as 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tui.model.instance import Instance
from tui.model.snapshot import BoxView
from tui.model.text import SafeText

SIGNS = {"USD": "$", "CNY": "¥", "EUR": "€", "GBP": "£"}


@dataclass(frozen=True, slots=True)
class Total:
    """A sum in one currency. `unknown` counts the boxes whose share is not in it."""

    currency: str
    amount: float
    unknown: int = 0

    @property
    def word(self) -> SafeText:
        plus = "+?" if self.unknown else ""
        return SafeText(f"{self.amount:,.2f}{plus} {SIGNS.get(self.currency, self.currency)}")


def spent(instance: Instance, now: float) -> float | None:
    """Money since the meter started, by the operator's own figures; None when price or start is not known."""
    if instance.price_per_hour is None or instance.rented_at is None:
        return None
    until = now if instance.ends_at is None else min(now, instance.ends_at)
    return max(0.0, until - instance.rented_at) / 3600 * instance.price_per_hour


def paid(boxes: Iterable[BoxView]) -> Iterator[Instance]:
    """What is paid for each box: nothing by the hour, and nothing more, for one that is destroyed."""
    for box in boxes:
        yield metered(box)


def metered(box: BoxView) -> Instance:
    """The box's entry, with its meter at rest where the box is destroyed."""
    if box.ended is None:
        return box.instance
    until = box.ended.at if box.instance.ends_at is None else min(box.instance.ends_at, box.ended.at)
    return replace(box.instance, ends_at=until)


def burning(boxes: Iterable[BoxView]) -> Iterator[Instance]:
    """The boxes that cost something by the hour now."""
    return (box.instance for box in boxes if box.ended is None)


def burn(instances: Iterable[Instance]) -> tuple[Total, ...]:
    """Price per hour of all boxes that are ours to pay, one total per currency."""
    return _totals((i.currency, i.price_per_hour) for i in instances if not i.here)


def spent_total(instances: Iterable[Instance], now: float) -> tuple[Total, ...]:
    """Money spent on all boxes, one total per currency."""
    return _totals((i.currency, spent(i, now)) for i in instances if not i.here)


def _totals(shares: Iterable[tuple[str, float | None]]) -> tuple[Total, ...]:
    known: dict[str, float] = {}
    unknown = 0
    for currency, amount in shares:
        if amount is None:
            unknown += 1
        else:
            known[currency] = known.get(currency, 0.0) + amount
    if not known:
        return ()
    totals = sorted(known.items(), key=lambda item: -item[1])
    return tuple(Total(c, a, unknown if n == 0 else 0) for n, (c, a) in enumerate(totals))

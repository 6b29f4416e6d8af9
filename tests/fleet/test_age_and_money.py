"""Ages move in coarse steps, and unknown money stays unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui.fleet.age import age_word, is_stale, long, short
from tui.fleet.money import burn, spent, spent_total
from tui.model.instance import Endpoint, Instance

BOX = Instance("a", "ssh", Endpoint("h"), price_per_hour=1.98, currency="CNY", rented_at=0.0)


@pytest.mark.parametrize(
    ("age", "word"),
    [
        *((0, "live"), (3.9, "live"), (5, "10s"), (12, "10s"), (29, "20s")),
        *((61, "1m"), (3500, "45m"), (7300, "2h"), (9e5, "10d")),
    ],
)
def test_age_words(age: float, word: str) -> None:
    assert age_word(1e6 - age, 1e6, 2.0) == word


def test_never_seen_has_no_age() -> None:
    assert age_word(None, 5.0) == "–"
    assert is_stale(None, 5.0)


def test_age_words_change_rarely() -> None:
    words = {age_word(0.0, float(second)) for second in range(3600)}
    assert len(words) <= 15


@pytest.mark.parametrize(
    ("s", "word"), [(0, "0 s"), (45, "45 s"), (7800, "2 h 10 m"), (3600, "1 h"), (273_600, "3 d 4 h")]
)
def test_long(s: float, word: str) -> None:
    assert long(s) == word


def test_short_rounds_down() -> None:
    assert short(119) == "1m"


def test_unknown_price_is_never_zero() -> None:
    free = replace(BOX, name="b", price_per_hour=None)
    assert spent(free, 3600.0) is None
    assert spent(replace(BOX, rented_at=None), 3600.0) is None
    (total,) = burn([BOX, free])
    assert (total.amount, total.unknown) == (1.98, 1)
    assert "?" in total.word
    assert burn([free]) == ()


def test_money_stops_with_the_contract() -> None:
    assert spent(replace(BOX, ends_at=3600.0), 7200.0) == pytest.approx(1.98)


def test_currencies_are_not_added() -> None:
    dollars = replace(BOX, name="b", currency="USD", price_per_hour=2.0)
    assert {t.currency: t.amount for t in spent_total([BOX, dollars], 3600.0)} == {"CNY": 1.98, "USD": 2.0}

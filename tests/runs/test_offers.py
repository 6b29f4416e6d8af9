"""Which offers a job can run on, in which order, and what is asked for."""

from __future__ import annotations

import pytest

from tui.model.failure import Failure
from tui.model.job import Resources
from tui.platforms.control import Offer, Price
from tui.platforms.sent import Terms
from tui.runs.offers import fitting, machine_name, offer_of, wish_for


def needs(gpu: str, disk: str = "") -> Resources:
    return Resources.model_validate({"gpu": gpu} | ({"disk": disk} if disk else {}))


def offer(
    id_: str, gpu: str, price: float | None, memory: float | None = 80.0, count: int = 1, **more: bool
) -> Offer:
    return Offer(id_, gpu, count, Price(price, "USD"), gpu_memory_gb=memory, **more)  # type: ignore[arg-type]


def ids(offers: list[Offer], gpu: str) -> list[str]:
    return [one.id for one in fitting(offers, needs(gpu))]


def test_the_cheapest_that_fits_comes_first_and_an_unknown_price_last() -> None:
    offers = [offer("a", "A100 SXM", 2.0), offer("b", "A100 PCIe", 1.5), offer("c", "NVIDIA A100", None)]
    assert ids(offers, "A100:1, ≥40 GB") == ["b", "a", "c"]


def test_what_is_not_known_to_fit_is_left_out() -> None:
    offers = [
        offer("small", "A100 40GB", 1.0, memory=40.0),
        offer("untold", "A100", 1.0, memory=None),
        offer("other", "H100", 1.0),
        offer("few", "A100", 1.0, count=1),
        offer("sold out", "A100", 1.0, count=2, available=False),
        offer("fits", "a100-sxm4", 3.0, count=4, memory=79.2),
    ]
    assert ids(offers, "A100:2, ≥80 GB") == ["fits"]


def test_a_word_of_its_own_wins_over_a_part_of_one_and_what_stays_over_what_is_taken_away() -> None:
    offers = [offer("l40", "L40S", 0.5), offer("l4", "NVIDIA L4", 0.6), offer("spot", "L4", 0.1, spot=True)]
    assert ids(offers, "L4:1") == ["l4", "spot", "l40"]


def test_cards_that_can_be_multiplied_are_priced_together_up_to_their_limit() -> None:
    one = offer("pods", "A100", 1.5, multiplied=True)
    whole = offer("whole", "A100", 5.0, count=4)
    assert ids([one, whole], "A100:4") == ["whole", "pods"]
    wish = wish_for(needs("A100:4"), one, "n", Terms())
    assert (wish.gpus, wish.price.per_hour) == (4, 6.0)
    limited = Offer("two", "A100", 1, Price(1.0, "USD"), multiplied=True, most=2)
    assert ids([limited], "A100:4") == []


def test_terms_hold_and_the_disk_is_at_least_what_the_job_needs() -> None:
    terms = Terms(image="i", disk_gb=40, ssh_key="k", gpus=2, more={"a": "b"})
    wish = wish_for(needs("A100:1", "100 GB"), offer("a", "A100", 1.0), "n", terms)
    assert (wish.image, wish.ssh_key, wish.gpus, wish.more) == ("i", "k", 2, {"a": "b"})
    assert wish.disk_gb is not None
    assert 100 < wish.disk_gb < 150


def test_an_offer_by_name_is_there_or_says_why_not() -> None:
    offers = [offer("a", "A100", 1.0), offer("b", "A100", 1.0, available=False)]
    assert offer_of(offers, "a").id == "a"
    for name, why in (("b", "is sold out"), ("c", "is not among")):
        with pytest.raises(Failure, match=why):
            offer_of(offers, name)


def test_names_of_machines_are_plain_and_new() -> None:
    assert machine_name("Sweep.x_1", "20261130", ()) == "sweep-x-1-20261130"
    assert machine_name("s", "20261130", ("s-20261130", "s-20261130-2")) == "s-20261130-3"
    assert machine_name("__", "20261130", ()) == "run-20261130"

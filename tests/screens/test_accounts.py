"""What providers list, on the fleet screen: rows that nobody typed in, prices, and the balance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fixtures.fleet_fixture import NOW, fleet, instance, judged
from tests.screens.app_harness import picture, roster, running
from tui.fleet.reducer import reduce
from tui.model.account import AccountView, Rented
from tui.model.event import AccountSeen
from tui.model.instance import Endpoint
from tui.model.snapshot import BoxView, FleetSnapshot
from tui.model.text import safe
from tui.screens.run import RunScreen

SIZES = ((60, 15), (80, 24), (120, 40), (200, 60))
END = Endpoint("203.0.113.9", 22001, "root")


def listed(*machines: Rented, balance: float | None = 9.0) -> FleetSnapshot:
    view = AccountView(
        "work", "runpod", asked_at=NOW, told_at=NOW, complete=True, balance=balance, machines=machines
    )
    return reduce(fleet(), [AccountSeen(view)], NOW)


def machine(**values: object) -> Rented:
    told = {"state": "running", "said": safe("RUNNING"), "per_hour": 1.5, "endpoint": END}
    return Rented("work", "runpod", "x2", safe("orphan"), seen_at=NOW, **(told | values))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", SIZES)
async def test_a_machine_that_nobody_typed_in_has_its_row_and_its_sentence(size: tuple[int, int]) -> None:
    async with running(listed(machine()), size) as (app, pilot):
        text = "\n".join(picture(app))
        assert "runpod:orph" in text
        assert "unlisted" in text
        await pilot.press("slash", *"orphan", "enter")
        told = " ".join(" ".join(picture(app)).split())
        assert "which the fleet file does not have" in told or size[1] < 20


async def test_its_price_counts_and_an_unknown_one_is_a_question_mark() -> None:
    async with running(listed(machine()), (200, 60)) as (app, _):
        row = next(line for line in picture(app) if "runpod:orphan" in line)
        assert "1.50" in row
    async with running(listed(machine(per_hour=None)), (200, 60)) as (app, _):
        row = next(line for line in picture(app) if "runpod:orphan" in line)
        assert " ?" in row
        assert "0.00" not in row
        assert "+?" in picture(app)[0]


async def test_the_header_says_what_is_left_and_how_long_it_lasts() -> None:
    async with running(listed(machine()), (200, 60)) as (app, _):
        assert "left 9.00 $ · 6h" in picture(app)[0]
    async with running(listed(machine(per_hour=None)), (200, 60)) as (app, _):
        assert "left 9.00 $" in picture(app)[0]
        assert "·" not in picture(app)[0].partition("left")[2].partition("spent")[0]
    async with running(listed(machine(), balance=None), (200, 60)) as (app, _):
        assert "left" not in picture(app)[0]


async def test_such_a_row_can_be_opened_and_left() -> None:
    async with running(listed(machine()), (120, 40)) as (app, pilot):
        await pilot.press("slash", *"orphan", "enter")
        assert roster(app).key == ("runpod:orphan", "")
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, RunScreen)
        for row in picture(app):
            assert row.isprintable()
        await pilot.press("escape")


@pytest.mark.parametrize("name", ["\x1b[31mred", "a\nb", "'; rm -rf /", "名" * 80, ""])
async def test_a_providers_words_draw_nothing_but_themselves(name: str) -> None:
    hostile = replace(machine(), name=safe(name, 60), said=safe("RUN\x07NING"))
    async with running(listed(hostile), (80, 24)) as (app, _):
        for row in picture(app):
            assert row.isprintable()


async def test_a_box_that_its_provider_stopped_says_so_in_place_of_unreachable() -> None:
    ours = replace(instance("mine", "runpod", 9.0), instance_id="x2", endpoint=END)
    stopped = machine(state="stopped", said=safe("EXITED"), per_hour=0.02)
    view = AccountView("work", "runpod", asked_at=NOW, told_at=NOW, complete=True, machines=(stopped,))
    snapshot = reduce(judged((BoxView(ours),), ()), [AccountSeen(view)], NOW)
    async with running(snapshot, (120, 40)) as (app, _):
        row = next(line for line in picture(app) if "mine" in line)
        assert "exited" in row
        assert "goes on billing: 0.020 $/h" in "\n".join(picture(app))

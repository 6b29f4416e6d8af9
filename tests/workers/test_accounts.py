"""The worker of accounts: slow, bounded, patient with failures, and silent where there is nothing to ask."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.platforms.fake_provider import serving
from tests.platforms.rig import IDS, VENDORS, account
from tests.platforms.world import KEY, Box, World
from tui.fleet.platform_facts import ClockFact, PlatformFacts
from tui.fleet.store import Store
from tui.model.account import AccountSpec, AccountView
from tui.model.instance import Instance
from tui.model.text import SafeText
from tui.platforms.accounts import look
from tui.platforms.configured import configured
from tui.platforms.vendors import Account
from tui.workers.accounts import AccountsWatch, Plan, look_once

ROOT = Path(__file__).resolve().parents[2]
A, B = AccountSpec("a", "runpod"), AccountSpec("b", "vastai")


@dataclass
class Pretend:
    """Accounts that answer as a test says."""

    specs: tuple[AccountSpec, ...] = (A, B)
    answer: Callable[[AccountSpec], AccountView] = lambda spec: AccountView(
        spec.name, spec.platform, told_at=1.0
    )
    asked: list[str] = field(default_factory=list)
    hangs: set[str] = field(default_factory=set)
    plans: int = 0

    def plan(self) -> Plan:
        self.plans += 1
        return Plan(self.specs, {})

    def open(self, spec: AccountSpec) -> Any:
        return f"{spec.name} has no key." if spec.key_env == "NONE" else spec

    async def look(self, account: Any, facts: Any) -> AccountView:
        self.asked.append(account.name)
        if account.name in self.hangs:
            await asyncio.Event().wait()
        return self.answer(account)


async def watched(sources: Pretend, seconds: float, changed: Callable[[], object] = lambda: 1) -> Store:
    """What the store holds after so many seconds of a clock that only this test moves."""
    store = Store(clock=lambda: 1000.0)
    now = 0.0

    async def sleep(duration: float) -> None:
        nonlocal now
        if now >= seconds:
            await asyncio.Event().wait()
        now += duration
        for _ in range(8):  # threads, too, get their turn
            await asyncio.sleep(0.001)

    watch = AccountsWatch(store, sources, lambda: now, changed, sleep)
    task = asyncio.create_task(watch.run())
    while now < seconds:
        await asyncio.sleep(0.005)
        store.fold()
    await asyncio.sleep(0.02)
    store.fold()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return store


async def test_each_account_is_asked_once_a_minute() -> None:
    sources = Pretend()
    store = await watched(sources, 130)
    assert 2 <= sources.asked.count("a") <= 3
    assert [view.name for view in store.snapshot.accounts] == ["a", "b"]


async def test_an_account_that_fails_is_asked_ever_more_rarely_and_told_once() -> None:
    sources = Pretend((A,), lambda spec: AccountView("a", "runpod", why=SafeText("RunPod answered 401.")))
    store = await watched(sources, 400)
    assert len(sources.asked) == 3  # at first, after 120 s, and after 240 s more
    assert [n.text for n in store.snapshot.notices] == ["a: RunPod answered 401."]


async def test_an_account_that_hangs_holds_no_other_up() -> None:
    sources = Pretend(hangs={"a"})
    store = await watched(sources, 130)
    assert sources.asked.count("a") == 1
    assert sources.asked.count("b") >= 2
    assert [view.name for view in store.snapshot.accounts] == ["b"]


async def test_an_account_whose_answer_breaks_rgt_is_told_and_the_others_go_on() -> None:
    def broken(spec: AccountSpec) -> AccountView:
        if spec.name == "a":
            raise RuntimeError("sk-secret-in-an-exception")
        return AccountView("b", "vastai", told_at=1.0)

    store = await watched(Pretend(answer=broken), 20)
    first, second = store.snapshot.accounts
    assert "RuntimeError" in first.why
    assert "secret" not in first.why
    assert second.why == ""


async def test_accounts_come_and_go_with_the_fleet_file() -> None:
    sources, stamp = Pretend((A,)), [0]

    def changed() -> object:
        if sources.asked and sources.specs == (A,):
            sources.specs, stamp[0] = (B,), 1
        return stamp[0]

    store = await watched(sources, 40, changed)
    assert [view.name for view in store.snapshot.accounts] == ["b"]
    assert sources.plans == 2


async def test_one_look_at_everything_ends_in_time() -> None:
    views = await look_once(Pretend((A, B, AccountSpec("c", "lambda", key_env="NONE")), hangs={"a"}), 0.2)
    assert {view.name: str(view.why) for view in views} == {
        "a": "It did not answer within 0.2 s.",
        "b": "",
        "c": "c has no key.",
    }


async def test_nothing_of_one_look_goes_on_afterwards() -> None:
    """Late ones are ended and awaited, also where one takes its time, or where the look is given up."""
    ended: list[str] = []

    class Slow(Pretend):
        async def look(self, account: Any, facts: Any) -> AccountView:
            if account.name == "b":
                raise LookupError("broken")
            self.asked.append(account.name)
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.02)
                ended.append(account.name)
            raise AssertionError

    views = await look_once(Slow(), 0.1)
    assert ended == ["a"]
    assert {view.name: str(view.why) for view in views} == {
        "a": "It did not answer within 0.1 s.",
        "b": "rgt itself failed to ask it (LookupError).",
    }
    sources = Slow()
    looking = asyncio.create_task(look_once(sources, 60.0))
    while not sources.asked:
        await asyncio.sleep(0.01)
    looking.cancel()
    await asyncio.wait([looking], timeout=20)
    assert looking.cancelled()
    assert ended == ["a", "a"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- who is asked at all ------------------------------------------------------------------------------------


def asked(home: Path, environ: dict[str, str], *written: AccountSpec, **more: Any) -> list[str]:
    return [
        spec.name
        for spec in configured(written, more.pop("instances", ()), environ=environ, home=home, **more)
    ]


def test_without_a_key_nobody_is_asked(tmp_path: Path) -> None:
    assert asked(tmp_path, {}) == []


def test_a_key_that_is_found_is_an_account(tmp_path: Path) -> None:
    assert asked(tmp_path, {"VAST_API_KEY": KEY}) == ["vastai"]


def test_what_the_fleet_file_names_goes_before_what_is_found(tmp_path: Path) -> None:
    spec = AccountSpec("work", "vastai", key_env="W")
    assert asked(tmp_path, {"VAST_API_KEY": KEY}, spec) == ["work"]
    assert asked(tmp_path, {"VAST_API_KEY": KEY}, AccountSpec("x", "vastai", ask=False)) == []


def test_the_operator_can_have_nobody_asked(tmp_path: Path) -> None:
    environ = {"VAST_API_KEY": KEY}
    assert asked(tmp_path, environ, asking=False) == []
    assert asked(tmp_path, environ | {"RGT_NO_ACCOUNTS": "1"}) == []


def test_a_demo_asks_no_real_provider(tmp_path: Path) -> None:
    simulated = Instance("d", "runpod", None, simulated=("GPU",))
    assert asked(tmp_path, {"RUNPOD_API_KEY": KEY}, instances=(simulated,)) == []


# --- a look at a real server --------------------------------------------------------------------------------


def looked(platform: str, change: Callable[[World], None] = lambda world: None, **spec: Any) -> AccountView:
    facts = {
        platform: PlatformFacts(
            platform,
            clocks=(
                ClockFact(SafeText("auto-release"), "stopped", 15 * 86400.0, SafeText("disk")),
                ClockFact(SafeText("pods are terminated"), "balance", None, SafeText("disk")),
            ),
        )
    }
    with account(platform) as rig:
        change(rig.world)
        opened = Account(AccountSpec("work", platform, **spec), rig.plane(tries=2), "a file")
        return asyncio.run(look(opened, facts, lambda: 1_796_000_000.0))


@pytest.mark.parametrize("platform", VENDORS)
def test_a_look_tells_machines_with_price_and_address_and_what_is_left(platform: str) -> None:
    view = looked(platform)
    assert view.why == ""
    assert view.complete
    assert {one.id for one in view.machines} >= {IDS[platform]}
    ours = next(one for one in view.machines if one.id == IDS[platform])
    assert ours.per_hour in (1.5, 1.29)
    assert ours.endpoint is not None
    assert (view.balance is None) == (platform in ("lambda", "paperspace"))
    assert view.balance_why or view.balance is not None
    assert view.balance_kills == "pods are terminated"


@pytest.mark.parametrize("platform", VENDORS)
def test_a_look_that_fails_says_why_and_lists_nothing(platform: str) -> None:
    view = looked(platform, lambda world: setattr(world, "key", "another-key"))
    assert view.told_at is None
    assert view.machines == ()
    assert "key" in view.why
    assert KEY not in repr(view)


def test_a_machine_that_is_ignored_is_not_there() -> None:
    assert looked("runpod", ignore=("pod2",)).machines[0].id == IDS["runpod"]
    assert len(looked("runpod", ignore=("pod2",)).machines) == 1


def test_a_stopped_box_of_autodl_has_the_clock_of_its_release() -> None:
    def stopped(world: World) -> None:
        world.put(IDS["autodl"], state="stopped")

    ours = next(one for one in looked("autodl", stopped).machines if one.id == IDS["autodl"])
    assert ours.clock is not None
    assert ours.clock.text == "auto-release"
    assert ours.per_hour is None  # off, its extra disk bills, and nobody says how much


# --- whole programme ----------------------------------------------------------------------------------------


def python(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "RGT_NO_ACCOUNTS"}
    env |= {"RGT_HOME": str(home), "HOME": str(home), **environ}
    argv = [sys.executable, *words]
    return subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_status_lists_what_nobody_typed_in_and_shows_no_key(tmp_path: Path) -> None:
    world = World(balance=9.0)
    world.add(Box("pod2", name="orphan"))
    with serving(world, "runpod") as base:
        (tmp_path / "config").mkdir()
        (tmp_path / "config/fleet.toml").write_text(
            f'[accounts.work]\nplatform = "runpod"\nurl = "{base}"\nkey_env = "MY_KEY"\n'
        )
        done = python(tmp_path, "-m", "tui.cli", "status", "--json", MY_KEY=KEY)
    told = json.loads(done.stdout)
    (box,) = told["boxes"]
    assert (box["name"], box["in_fleet_file"]) == ("runpod:orphan", False)
    assert box["provider"]["price_per_hour"] == 1.5
    assert told["accounts"][0]["balance"] == 9.0
    assert told["burn"] == [{"currency": "USD", "amount": 1.5, "boxes_unknown": 0}]
    assert done.returncode == 1
    assert KEY not in done.stdout + done.stderr


def test_nothing_heavy_is_loaded_where_there_is_no_account(tmp_path: Path) -> None:
    code = (
        "import sys, asyncio; from tui.verbs.accounting import sources; from tui.fleet.paths import paths;"
        "from tui.workers.accounts import look_once;"
        "print(asyncio.run(look_once(sources(paths()), 1)), 'httpx' in sys.modules, 'keyring' in sys.modules)"
    )
    done = python(tmp_path, "-c", code)
    assert done.stdout.strip() == "() False False", done.stderr


def test_the_first_frame_loads_neither_client_nor_models(tmp_path: Path) -> None:
    code = (
        "import sys; import tui.app, tui.fleet.store, tui.fleet.reducer, tui.screens.fleet;"
        "print([m for m in ('httpx', 'pydantic', 'keyring') if m in sys.modules])"
    )
    done = python(tmp_path, "-c", code)
    assert done.stdout.strip() == "[]", done.stderr

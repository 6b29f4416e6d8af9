"""Each step of the setup: what it asks, what it does, how it fails and is tried again."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tests.platforms.rig import account as served
from tui.box.local import LocalTransport
from tui.box.transport import Completed, Script
from tui.fleet import profiles
from tui.fleet.paths import Paths, shipped
from tui.model.account import AccountSpec
from tui.model.failure import Failure
from tui.model.instance import Endpoint, Instance
from tui.model.setup import StepId
from tui.model.text import SafeText
from tui.platforms.credentials import Missing
from tui.platforms.sent import Sent, find, mark
from tui.platforms.vendors import Account
from tui.setup import box_steps, state
from tui.setup.beginning import Credentials, Key, Platform, Surface, make_key, public_keys
from tui.setup.reaching import Connect, Identity
from tui.setup.renting import HAVE, NOT_THERE, SENT, Rent
from tui.setup.shared_disk import seen_elsewhere
from tui.setup.state import Did, Shown, State, Tools

BOX = Instance("box", "ssh", None)


class Local(LocalTransport):
    """A box that is this computer, with a home of its own."""

    async def close(self) -> None:
        pass


class Heard:
    """What a step said while it worked."""

    def __init__(self) -> None:
        self.lines: list[SafeText] = []

    def __call__(self, line: SafeText) -> None:
        self.lines.append(line)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    async def dial(_instance: Instance) -> Local:
        return Local()

    async def reload() -> None:
        pass

    return Tools(
        where=Paths(tmp_path / "config", tmp_path / "state"),
        profiles=profiles.load(shipped("profiles"), None).by_id,
        dial=dial,
        add_box=lambda pasted, name, platform: name or "box",
        instance=lambda name: replace(BOX, name=name),
        boxes=lambda: (),
        edit_box=lambda name, changes: None,
        forget_key=lambda name: None,
        reload=reload,
        account=lambda platform: Missing(platform, "has no key"),
        keep_key=lambda platform, typed: None,
        keys=tmp_path / "ssh",
        environ={"HF_TOKEN": "hf_x", "BAD": "a\nb"},
        today=lambda: date(2026, 11, 30),
    )


def at(platform: str, box: str | None = None, **done: Mapping[str, str]) -> State:
    """A setup that has come so far."""
    made: dict[StepId, Did] = {"platform": Did(brief=platform, data={"id": platform})}
    for step, data in done.items():
        made[step] = Did(brief=step, data=dict(data))  # type: ignore[index]
    return State(box, made)


async def test_every_platform_has_a_surface_to_read(tools: Tools) -> None:
    shown = await Platform().ask(State(), tools)
    assert shown.asked is not None
    assert {option.id for option in shown.asked.options} == set(tools.profiles)
    for name in tools.profiles:
        read = await Surface().ask(at(name), tools)
        assert len(read.about) > 1
    with pytest.raises(Failure):
        await Platform().take(State(), tools, "nowhere", Heard())


async def test_a_key_is_made_once_and_its_public_line_is_shown(tools: Tools) -> None:
    step = Key()
    shown = await step.ask(at("autodl"), tools)
    assert shown.asked is not None
    assert [option.id for option in shown.asked.options] == ["new"]
    further = await step.take(at("autodl"), tools, "new", Heard())
    assert isinstance(further, Shown)
    assert further.about[0].startswith("ssh-ed25519 ")
    did = await step.take(at("autodl"), tools, "", Heard())
    assert isinstance(did, Did)
    private = Path(did.data["private"])
    assert private.stat().st_mode & 0o077 == 0
    before = private.read_bytes()
    make_key(private)
    assert private.read_bytes() == before
    assert [path.name for path, _ in public_keys(tools.keys)] == [f"{private.name}.pub"]


async def test_a_public_key_alone_opens_nothing_and_is_not_offered(tools: Tools) -> None:
    tools.keys.mkdir()
    (tools.keys / "lone.pub").write_text("ssh-ed25519 AAAA me\n")
    (tools.keys / "odd.pub").write_text("not a key\n")
    (tools.keys / "odd").touch()
    assert public_keys(tools.keys) == []


@pytest.fixture
def rented(tools: Tools) -> Iterator[tuple[Tools, object]]:
    """RunPod's account at the fake provider."""
    with served("runpod") as rig:
        spec = AccountSpec("runpod", "runpod")
        yield replace(tools, account=lambda _p: Account(spec, rig.plane(), "the environment")), rig


async def test_a_key_is_accepted_or_refused_by_the_platform_itself(
    rented: tuple[Tools, object], tools: Tools
) -> None:
    asking, rig = rented
    did = await Credentials().take(at("runpod"), asking, "", Heard())
    assert isinstance(did, Did)
    assert did.data == {"api": "yes"}
    assert did.observed[0].startswith("account key-")
    assert did.observed[0].endswith("the platform names nobody, so this is the key that was used")
    spec = AccountSpec("runpod", "runpod")
    wrong = replace(asking, account=lambda _p: Account(spec, rig.plane("wrong-key-123456"), "a file"))  # type: ignore[attr-defined]
    with pytest.raises(Failure, match="did not accept the key of a file"):
        await Credentials().take(at("runpod"), wrong, "", Heard())
    with pytest.raises(Failure, match="has no key"):
        await Credentials().take(at("runpod"), tools, "", Heard())
    none = await Credentials().take(at("featurize"), tools, "", Heard())
    assert isinstance(none, Did)
    assert none.data == {"api": "no"}


async def test_renting_shows_the_exact_request_and_sends_it_once_after_the_word(
    rented: tuple[Tools, object],
) -> None:
    asking, rig = rented
    here = at("runpod", credentials={"api": "yes"})
    step = Rent(look_s=0.0)
    shown = await step.ask(here, asking)
    assert shown.asked is not None
    offers = [option for option in shown.asked.options if option.id != HAVE]
    assert offers
    named = await step.take(here, asking, offers[0].id, Heard())
    assert isinstance(named, Shown)
    asked = await step.take(here, asking, "sweep a train", Heard())
    while isinstance(asked, Shown) and asked.asked is not None and not asked.asked.word:
        asked = await step.take(here, asking, "image=runpod/pytorch:2.4.0 disk_gb=50", Heard())
    assert isinstance(asked, Shown)
    assert any("sweep-a-train-20261130" in line for line in asked.about)
    sent = [one for one in rig.world.log if one.method == "POST" and "pods" in one.path]  # type: ignore[attr-defined]
    assert sent == []
    with pytest.raises(Failure, match="Nothing was sent"):
        await step.take(here, asking, "yes", Heard())
    assert not [one for one in rig.world.log if one.method == "POST" and "pods" in one.path]  # type: ignore[attr-defined]


async def test_a_box_that_is_there_needs_no_renting(tools: Tools) -> None:
    step = Rent()
    shown = await step.ask(at("featurize"), tools)
    assert shown.asked is not None
    assert [option.id for option in shown.asked.options] == [HAVE]
    assert shown.about
    did = await step.take(at("featurize"), tools, HAVE, Heard())
    assert isinstance(did, Did)


async def test_the_login_carries_what_renting_told(tools: Tools) -> None:
    written: dict[str, object] = {}
    keeping = replace(
        tools,
        edit_box=lambda name, changes: written.update(changes),
        instance=lambda name: replace(BOX, endpoint=Endpoint("h", 22, "root")),
    )
    here = at(
        "runpod",
        rent={"login": "ssh -p 1 root@h", "id": "pod1", "price": "1.5", "currency": "USD", "name": "a-b-1"},
        key={"private": "/k"},
    )
    did = await Connect().take(here, keeping, "", Heard())
    assert isinstance(did, Did)
    assert did.data == {"box": "a-b-1"}
    assert written == {"instance_id": "pod1", "price_per_hour": 1.5, "currency": "USD", "key": "/k"}
    with pytest.raises(Failure, match="Nothing was pasted"):
        await Connect().take(at("ssh"), keeping, " ", Heard())


async def test_another_machine_is_not_trusted(tools: Tools) -> None:
    forgotten: list[str] = []

    class Keyed(Local):
        host_key = "SHA256:abc"

    async def dial(_instance: Instance) -> Keyed:
        return Keyed()

    keyed = replace(
        tools,
        dial=dial,
        instance=lambda name: replace(BOX, endpoint=Endpoint("h")),
        forget_key=forgotten.append,
    )
    step = Identity()
    await step.ask(at("ssh", "box"), keyed)
    shown = await step.take(at("ssh", "box"), keyed, "", Heard())
    assert isinstance(shown, Shown)
    assert shown.asked is not None
    assert "SHA256:abc" in shown.asked.prompt
    with pytest.raises(Failure, match="another machine"):
        await step.take(at("ssh", "box"), keyed, "other", Heard())
    assert forgotten == ["box"]
    await step.take(at("ssh", "box"), keyed, "", Heard())
    did = await step.take(at("ssh", "box"), keyed, "same", Heard())
    assert isinstance(did, Did)
    assert did.brief == "SHA256:abc"


@pytest.mark.parametrize(
    ("answer", "says"),
    [("12 GB, 3, 40 GB", "it fits"), ("900 TB, 3", "too little")],
)
async def test_the_budget_fits_or_not(tools: Tools, answer: str, says: str) -> None:
    here = at("ssh", "box", audit={"rate": "5e8", "free": str(10**12), "inodes": "1000"})
    did = await box_steps.Budget().take(here, tools, answer, Heard())
    assert isinstance(did, Did)
    assert any(says in line for line in did.observed)
    assert any("save every" in line for line in did.observed)
    with pytest.raises(Failure):
        await box_steps.Budget().take(here, tools, "much", Heard())


async def test_mirrors_are_set_for_new_shells_and_once(tools: Tools, tmp_path: Path) -> None:
    step, here = box_steps.Mirrors(), at("autodl", "box")
    shown = await step.ask(here, tools)
    assert any("HF_ENDPOINT=" in line for line in shown.about)
    for _ in range(2):
        did = await step.take(here, tools, "set", Heard())
        assert isinstance(did, Did)
        assert any(line.startswith("HF_ENDPOINT=https://hf-mirror.com") for line in did.observed)
    home = tmp_path / "home"
    assert (home / ".bashrc").read_text().count("mirrors.sh") == 2  # one line, which names it twice
    assert "tuna" in (home / ".config" / "pip" / "pip.conf").read_text()
    (home / ".config" / "pip" / "pip.conf").write_text("mine")
    await step.take(here, tools, "set", Heard())
    assert (home / ".config" / "pip" / "pip.conf").read_text() == "mine"
    left = await step.take(here, tools, "leave", Heard())
    assert isinstance(left, Did)
    assert left.brief == "left as it is"


def test_a_setup_is_kept_and_a_damaged_one_begins_anew(tools: Tools) -> None:
    here = at("autodl", "box", rent={"by": "hand"})
    state.save(tools.where, here)
    assert state.load(tools.where) == here
    (tools.where.state / "setup.json").write_text("{")
    assert state.load(tools.where) == State()
    state.drop(tools.where)
    assert state.load(tools.where) == State()


def test_going_back_forgets_what_came_after() -> None:
    here = at("autodl", "box", surface={}, rent={"by": "hand"}, connect={}, audit={})
    assert set(here.back_to("rent").done) == {"platform", "surface"}
    assert here.back_to("rent").box is None
    assert here.back_to("audit").box == "box"
    assert here.current == "key"


async def test_a_shared_disk_is_tried_on_another_box(tools: Tools, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    facts = tools.profiles["autodl"].facts
    tier = next(one for one in facts.tiers if one.scope == "region")
    other = replace(BOX, name="other", platform="autodl")
    mine = replace(BOX, name="mine", platform="autodl")

    class Elsewhere(Local):
        """Sees another disk under the same path."""

        async def run(self, script: Script, **more: object) -> Completed:
            moved = tuple(str(there) if arg == str(here) else arg for arg in script.args)
            return await super().run(replace(script, args=moved), **more)  # type: ignore[arg-type]

    locked = False

    async def dial(instance: Instance) -> Local:
        return Elsewhere() if instance.name == "other" and locked else Local()

    shared = facts.model_copy(update={"tiers": [tier.model_copy(update={"paths": [str(here)]})]})
    asking = replace(tools, dial=dial, boxes=lambda: (mine, other, replace(BOX, name="ssh")))
    found = await seen_elsewhere(Local(), mine, shared, asking)
    assert [one.verdict for one in found] == ["ok"]
    locked = True
    found = await seen_elsewhere(Local(), mine, shared, asking)
    assert [one.verdict for one in found] == ["mind"]
    assert list(here.iterdir()) == []
    gone = shared.model_copy(update={"tiers": [tier.model_copy(update={"paths": ["/no/such"]})]})
    assert [one.verdict for one in await seen_elsewhere(Local(), mine, gone, asking)] == ["unknown"]


@pytest.mark.parametrize("platform", ["runpod", "vastai", "lambda"])
async def test_what_was_rented_is_waited_for_and_sent_once(tools: Tools, platform: str) -> None:
    with served(platform) as rig:
        spec = AccountSpec(platform, platform)
        asking = replace(tools, account=lambda _p: Account(spec, rig.plane(), "the environment"))
        here = at(platform, credentials={"api": "yes"})
        step = Rent(look_s=0.01, patience_s=3.0)
        shown = await step.ask(here, asking)
        assert shown.asked is not None
        offer = next(option for option in shown.asked.options if option.id != HAVE)
        came = await step.take(here, asking, offer.id, Heard())
        came = await step.take(here, asking, "sweep-train", Heard())
        while isinstance(came, Shown) and came.asked is not None and not came.asked.word:
            more = "ssh_key=mine image=pytorch/pytorch:2.4.0 disk_gb=50 region=us-east-1"
            came = await step.take(here, asking, more, Heard())
        before = len(rig.world.log)

        def starts(_line: SafeText) -> None:
            """The machine comes up after it was seen starting."""
            for box in list(rig.world.boxes.values()):
                if box.state == "starting":
                    rig.world.boxes[box.id] = replace(box, state="running")

        did = await step.take(here, asking, "rent", starts)
        assert isinstance(did, Did)
        assert did.data["by"] == "api"
        assert did.data["login"].startswith("ssh -p ")
        asked_for = [
            one for one in rig.world.log[before:] if one.method in ("POST", "PUT") and one.status < 300
        ]
        assert len(asked_for) == 1
        assert find(tools.where, platform) is None


async def test_a_request_that_was_cut_off_is_looked_for_and_never_sent_again(tools: Tools) -> None:
    """Killed between the request and its answer: the next setup, or another rgt, rents nothing meanwhile."""
    with served("runpod") as rig:
        spec = AccountSpec("runpod", "runpod")
        asking = replace(tools, account=lambda _p: Account(spec, rig.plane(), "the environment"))
        here = at("runpod", credentials={"api": "yes"})
        mine = Sent(
            platform="runpod", name="sweep-20261130", at="2026-11-30 10:00", per_hour=1.5, currency="USD"
        )
        mark(tools.where, mine)
        assert stat.S_IMODE((tools.where.state / "renting-runpod.json").stat().st_mode) == 0o600
        with pytest.raises(Failure, match="Another request"):
            mark(tools.where, mine)
        step = Rent(look_s=0.01, patience_s=0.05)
        shown = await step.ask(here, asking)
        assert shown.asked is not None
        assert [option.id for option in shown.asked.options] == [SENT, NOT_THERE, HAVE]
        before = len(rig.world.log)
        with pytest.raises(Failure, match="is open"):
            await step.take(here, asking, "some-offer", Heard())
        with pytest.raises(Failure, match="did not come up") as failed:
            await step.take(here, asking, SENT, Heard())
        assert failed.value.means == "It may exist and bill."
        assert [one for one in rig.world.log[before:] if one.method == "POST" and "pods" in one.path] == []
        again = await step.take(here, asking, NOT_THERE, Heard())
        assert isinstance(again, Shown)
        assert again.asked is not None
        assert len(again.asked.options) > 1
        assert find(tools.where, "runpod") is None

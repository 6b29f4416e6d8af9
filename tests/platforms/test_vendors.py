"""What is peculiar to one vendor: its states, its addresses, its ways to say no."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.platforms import dialects
from tests.platforms.rig import Rig, account, run
from tests.platforms.world import Box
from tui.model.failure import Failure
from tui.model.instance import Endpoint
from tui.platforms.control import (
    ApiRetired,
    ControlError,
    Machine,
    NoAnswer,
    NoSuchMachine,
    NotAllowed,
    Offer,
    Price,
    VerbRefused,
    Wish,
)

BODIES: dict[str, tuple[Callable[[Box], dict[str, Any]], Callable[[Any], Any]]] = {
    "runpod": (dialects.runpod_pod, lambda body: body),
    "vastai": (dialects.vast_instance, lambda body: {"instances": body}),
    "lambda": (dialects.lambda_instance, lambda body: {"data": body}),
    "paperspace": (dialects.paperspace_machine, lambda body: body),
}


def told(platform: str, **changes: Any) -> Machine:
    """What the client makes of one machine whose body has these changes."""
    body, envelope = BODIES[platform]
    with account(platform) as rig:
        found = body(rig.world.boxes[rig.id]) | changes
        rig.world.script = [("GET", (200, envelope(found), {}))]
        return run(rig.plane().describe(rig.victim))


@pytest.mark.parametrize(
    ("platform", "changes", "state"),
    [
        ("runpod", {"status": "PROVISIONING"}, "starting"),
        ("runpod", {"status": "ERROR"}, "running"),
        ("runpod", {"status": "TERMINATED"}, "gone"),
        ("runpod", {"status": "HIBERNATED"}, "unknown"),
        ("vastai", {"actual_status": None}, "starting"),
        ("vastai", {"actual_status": "loading"}, "starting"),
        ("vastai", {"actual_status": "offline"}, "running"),
        ("vastai", {"actual_status": "exited"}, "running"),  # nobody stopped it: what it bills isn't settled
        ("vastai", {"actual_status": "exited", "intended_status": "stopped"}, "stopped"),
        ("vastai", {"actual_status": "running", "intended_status": "stopped"}, "stopping"),
        ("vastai", {"actual_status": "melted"}, "unknown"),
        ("lambda", {"status": "unhealthy"}, "running"),
        ("lambda", {"status": "preempted"}, "running"),
        ("lambda", {"status": "terminating"}, "destroying"),
        ("lambda", {"status": "terminated"}, "gone"),
        ("lambda", {"status": "frozen"}, "unknown"),
        ("paperspace", {"state": "off"}, "stopped"),
        ("paperspace", {"state": "serviceready"}, "running"),
        ("paperspace", {"state": "off", "dtDeleted": "2026-11-30T00:00:00Z"}, "gone"),
        ("paperspace", {"state": "dreaming"}, "unknown"),
    ],
)
def test_states(platform: str, changes: dict[str, Any], state: str) -> None:
    """A word that nobody knows is unknown, and never an end."""
    assert told(platform, **changes).state == state


SSH = {"proxy": {"host": "ssh.runpod.io", "port": 22, "username": "x-1"}, "direct": None}


@pytest.mark.parametrize(
    ("platform", "changes", "end"),
    [
        ("runpod", {"ssh": SSH}, Endpoint("ssh.runpod.io", 22, "x-1", proxied=True)),
        ("runpod", {"ssh": {"proxy": None, "direct": None}}, None),
        ("runpod", {"ssh": None}, None),
        ("runpod", {"ssh": {"direct": {"host": "-oProxyCommand=x", "port": 22, "username": "root"}}}, None),
        ("runpod", {"ssh": {"direct": {"host": "1.2.3.4", "port": 99999, "username": "root"}}}, None),
        ("vastai", {"ports": None}, Endpoint("ssh4.vast.ai", 10600, "root")),
        ("vastai", {"ports": None, "image_runtype": "jupyter_direct"},
         Endpoint("ssh4.vast.ai", 10601, "root")),
        ("vastai", {"ports": {"22/tcp": [{"HostPort": "0"}]}}, Endpoint("ssh4.vast.ai", 10600, "root")),
        ("vastai", {"ports": ["22/tcp"]}, Endpoint("ssh4.vast.ai", 10600, "root")),
        ("vastai", {"ports": None, "ssh_port": None}, None),
        ("lambda", {"ip": None}, None),
        ("lambda", {"ip": "198.51.100.2; rm"}, None),
        ("paperspace", {"publicIp": None, "publicIpType": "none"}, None),
    ],
)  # fmt: skip
def test_addresses(platform: str, changes: dict[str, Any], end: Endpoint | None) -> None:
    assert told(platform, **changes).endpoint == end


def test_a_gpu_that_is_an_interruptible_and_was_outbid_says_so() -> None:
    stopped = {"is_bid": True, "cur_state": "stopped", "intended_status": "stopped", "next_state": "stopped"}
    machine = told("vastai", actual_status="exited", **stopped)
    assert machine.state == "stopped"
    assert any("bid more" in note for note in machine.notes)


def test_the_deprecated_list_of_vast_is_retired_and_not_empty() -> None:
    """Clients that took its failure inside a 200 for an empty list rented everything again."""
    with account("vastai") as rig:
        reply = {"success": False, "error": "deprecated_endpoint"}
        rig.world.script = [("/v1/instances/", (200, reply, {}))]
        with pytest.raises(ApiRetired):
            run(rig.plane().list_all())


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"success": False, "error": "auth_error", "msg": "Invalid user key"}, NotAllowed),
        (200, {"success": False, "error": "auth_error", "msg": "Invalid user key"}, NotAllowed),
        (404, {"success": False, "error": "no_such_instance"}, NoSuchMachine),
        (200, {"instances": None}, NoSuchMachine),
        (200, {"success": False, "error": "something_new"}, NoAnswer),
        (403, {"success": False, "error": "forbidden"}, NotAllowed),
    ],
)
def test_how_vast_says_no(status: int, body: dict[str, Any], kind: type[ControlError]) -> None:
    with account("vastai") as rig:
        rig.world.script = [("GET", (status, body, {}))] * 4
        with pytest.raises(kind):
            run(rig.plane(tries=1).describe(rig.victim))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("RecordNotFoundError", NoSuchMachine),
        ("AuthorizeFailed", NotAllowed),
        ("PermissionDenied", NotAllowed),
        ("TORealName", NotAllowed),
        ("ServerError", NoAnswer),
        ("SomethingNew", NoAnswer),
        ("", NoAnswer),
    ],
)
def test_how_autodl_says_no(code: str, kind: type[ControlError]) -> None:
    with account("autodl") as rig:
        rig.world.script = [("GET", (200, {"code": code, "msg": "不行", "data": None}, {}))] * 4
        with pytest.raises(kind):
            run(rig.plane(tries=1).describe(rig.victim))


def test_autodl_is_asked_with_a_body_where_the_query_is_refused() -> None:
    """Its docs show a body; live, the query works. Whichever of the two it wants, it gets."""
    with account("autodl") as rig:
        rig.world.script = [("/status", (200, {"code": "RequestParameterIsWrong", "msg": ""}, {}))]
        assert run(rig.plane().describe(rig.victim)).state == "running"
        first, second = [e for e in rig.world.log if e.path.endswith("/status")]
        assert (first.query, second.body) == ({"instance_uuid": rig.id}, {"instance_uuid": rig.id})


def test_a_second_power_off_of_autodl_is_not_sent() -> None:
    with account("autodl", state="stopping") as rig:
        assert "already" in run(rig.plane().stop(rig.victim))
        assert rig.world.count("power_off") == 0


def test_a_locked_pod_of_runpod_says_why_it_is_not_stopped() -> None:
    with account("runpod") as rig:
        rig.world.script = [
            ("action", (409, {"title": "Conflict", "status": 409, "detail": "pod is locked"}, {}))
        ]
        with pytest.raises(VerbRefused, match="pod is locked"):
            run(rig.plane().stop(rig.victim))
    assert any("locked" in note for note in told("runpod", locked=True).notes)


def test_a_terminate_that_lambda_answers_with_unknown_is_no_refusal() -> None:
    """It says so to a second one, while the first is under way."""
    with account("lambda") as rig:
        reply = {"error": {"code": "global/unknown", "message": "?"}}
        rig.world.script = [("terminate", (400, reply, {}))]
        with pytest.raises(NoAnswer) as caught:
            run(rig.plane().destroy(rig.victim))
        assert not isinstance(caught.value, VerbRefused)


def test_balances() -> None:
    def balance(rig: Rig) -> tuple[float | None, str]:
        found = run(rig.plane().balance())
        assert found.amount is not None or found.why
        return found.amount, found.currency

    expected = {"runpod": (25.0, "USD"), "vastai": (25.0, "USD"), "autodl": (25.0, "CNY"),
                "lambda": (None, "USD"), "paperspace": (None, "USD")}  # fmt: skip
    for platform, amount in expected.items():
        with account(platform) as rig:
            assert balance(rig) == amount


def test_a_balance_that_its_old_interface_no_longer_tells_is_unknown_and_not_zero() -> None:
    with account("runpod") as rig:
        rig.world.balance = None  # GraphQL answers 200 with errors
        found = run(rig.plane().balance())
    assert found.amount is None
    assert found.why


@pytest.mark.parametrize("platform", ["runpod", "vastai", "lambda"])
def test_offers_are_priced_and_the_cheapest_comes_first(platform: str) -> None:
    with account(platform) as rig:
        offers = run(rig.plane().offers())
    prices = [offer.price.per_hour for offer in offers]
    assert all(price is not None and price > 0 for price in prices)
    assert prices == sorted(price for price in prices if price is not None)
    assert all(offer.gpu and offer.gpus >= 1 for offer in offers)


@pytest.mark.parametrize("platform", ["paperspace", "autodl"])
def test_where_no_prices_are_listed_that_is_said(platform: str) -> None:
    with account(platform) as rig, pytest.raises(NoAnswer, match="console"):
        run(rig.plane().offers())


@pytest.mark.parametrize("platform", ["runpod", "vastai", "lambda", "paperspace", "autodl"])
def test_a_wish_that_lacks_something_sends_nothing_and_says_what(platform: str) -> None:
    with account(platform) as rig:
        bare = Wish("n", Offer("1", "H100", 1, Price(None, "USD")))
        with pytest.raises(Failure) as caught:
            rig.plane().request(bare)
        assert caught.value.code == "wish-incomplete"
        assert caught.value.do
        assert rig.world.log == []


def test_an_offer_that_somebody_else_took_is_no_retired_api() -> None:
    """vast.ai says 410 for that."""
    with account("vastai") as rig:
        rig.world.script = [("/asks/", (410, {"success": False, "error": "no_such_ask", "msg": "gone"}, {}))]
        request = rig.plane().request(Wish("n", Offer("77", "H100", 1, Price(1.0, "USD")), image="i:1"))
        with pytest.raises(VerbRefused) as caught:
            run(rig.plane().create(request))
        assert not isinstance(caught.value, ApiRetired)
        assert caught.value.code == "offer-gone"


def test_a_volume_of_another_machine_is_not_ours() -> None:
    with account("runpod", volume="v-ours") as rig:
        rig.world.add(Box("p3", volume="v-theirs"))
        listing = run(rig.plane().list_all())
        ours = listing.find(rig.id)
    assert ours is not None
    assert ours.volumes == ("v-ours",)
    assert listing.volumes == ("v-ours", "v-theirs")

"""What every vendor's client does alike: reads, verbs, pages, failures, and what it never says."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.platforms.rig import OTHERS, STOPPING, VENDORS, Rig, account, run
from tests.platforms.world import KEY, Box
from tui.model.failure import Failure
from tui.platforms.control import (
    ApiRetired,
    ControlError,
    NoAnswer,
    NoSuchMachine,
    NotAllowed,
    VerbRefused,
)
from tui.platforms.http import checked_url
from tui.platforms.secret import HIDDEN, Secret, redacted
from tui.platforms.vendors import WAYS

LEAKS = ("hf_leak_leak_leak", "leaky-token-0123456789", "leaky-password-0123", "leaky-token-0123", KEY)


@pytest.fixture(params=VENDORS)
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with account(request.param) as found:
        yield found


@pytest.fixture(params=STOPPING)
def stopping(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with account(request.param) as found:
        yield found


def raised(work: Any) -> ControlError:
    with pytest.raises(ControlError) as caught:
        run(work)
    return caught.value


def test_one_machine_is_told_with_its_state_endpoint_and_price(rig: Rig) -> None:
    machine = run(rig.plane().describe(rig.victim))
    assert (machine.id, machine.state) == (rig.id, "running")
    assert machine.endpoint is not None
    assert machine.endpoint.host == "203.0.113.9"
    assert machine.endpoint.port == (22 if rig.platform in ("lambda", "paperspace") else 12873)
    assert machine.price is not None
    assert machine.price.per_hour == (1.29 if rig.platform == "lambda" else 1.5)
    assert machine.price.currency == ("CNY" if rig.platform == "autodl" else "USD")


def test_the_list_has_every_machine_and_says_whose_it_is(rig: Rig) -> None:
    listing = run(rig.plane().list_all())
    assert {one.id for one in listing.machines} == {rig.id, OTHERS[rig.platform]}
    assert listing.complete
    assert listing.account
    assert run(rig.plane().list_all()).account == listing.account


def test_another_key_is_another_account(rig: Rig) -> None:
    """Absence is believed of the account that had the machine, so a key must never pass for another one."""
    mine = run(rig.plane().list_all()).account
    rig.world.key, rig.world.account = "another-key-of-another-team", 4712
    assert run(rig.plane(rig.world.key).list_all()).account != mine


@pytest.mark.parametrize("platform", ["vastai", "paperspace", "autodl"])
def test_all_pages_are_read(platform: str) -> None:
    with account(platform) as rig:
        rig.world.page = 2
        for number in range(5):
            rig.world.add(Box(f"{'pro-' if platform == 'autodl' else ''}{500 + number}"))
        listing = run(rig.plane().list_all())
        assert len(listing.machines) == 7
        assert listing.complete


@pytest.mark.parametrize("platform", ["runpod", "vastai", "paperspace", "autodl"])
def test_a_list_that_names_a_page_which_is_not_there_is_incomplete(platform: str) -> None:
    with account(platform) as rig:
        rig.world.short_page = True
        assert not run(rig.plane().list_all()).complete


def test_a_row_that_makes_no_sense_makes_the_list_incomplete_and_not_shorter(rig: Rig) -> None:
    """A machine that can't be read must not look like one that is not there."""
    names = {"runpod": "pods", "vastai": "instances", "lambda": "data", "paperspace": "items"}
    if rig.platform == "autodl":
        page = {"page_index": 1, "page_size": 50, "max_page": 1, "result_total": 1, "list": [{"uuid": None}]}
        body: dict[str, Any] = {"code": "Success", "msg": "", "data": page}
    else:
        body = {names[rig.platform]: [{"id": None, "status": 3}], "success": True, "hasMore": False}
        body["next_token"] = None
        if rig.platform == "lambda":
            body = {"data": body["data"]}
        if rig.platform == "runpod":
            body = {"pods": body["pods"]}
    path = {"lambda": "GET /api/v1/instances", "paperspace": "GET /machines", "runpod": "GET /v2/pods"}
    part = path.get(rig.platform, "/instances/" if rig.platform == "vastai" else "/list")
    rig.world.script = [(part, (200, body, {}))]
    listing = run(rig.plane().list_all())
    assert not listing.complete
    assert listing.machines == ()


def test_a_stop_is_sent_once_and_shows(stopping: Rig) -> None:
    said = run(stopping.plane().stop(stopping.victim))
    assert said
    machine = run(stopping.plane().describe(stopping.victim))
    assert machine.state == "stopped"
    assert machine.price is not None
    assert machine.price.per_hour != 1.5  # what it bills stopped is another figure, or unknown
    assert machine.price.per_hour != 0.0  # and never nothing: stopped is not free


def test_a_start_moves_the_endpoint(stopping: Rig) -> None:
    plane = stopping.plane()
    before = run(plane.describe(stopping.victim)).endpoint
    run(plane.stop(stopping.victim))
    run(plane.start(stopping.victim))
    after = run(plane.describe(stopping.victim)).endpoint
    assert after is not None
    if stopping.platform != "paperspace":  # whose address moves, which the fake does not do
        assert before != after


def test_lambda_has_no_stop_and_sends_nothing() -> None:
    with account("lambda") as rig:
        assert raised(rig.plane().stop(rig.victim)).code == "no-stop"
        assert isinstance(raised(rig.plane().start(rig.victim)), VerbRefused)
        assert rig.world.log == []


def test_a_destroyed_machine_is_not_there_for_either_witness(rig: Rig) -> None:
    if rig.platform == "autodl":
        rig.world.put(rig.id, state="stopped")
    run(rig.plane().destroy(rig.victim))
    assert isinstance(raised(rig.plane().describe(rig.victim)), NoSuchMachine)
    listing = run(rig.plane().list_all())
    assert listing.complete
    assert listing.find(rig.id) is None


# --- failures, each told right ------------------------------------------------------------------------------


def test_a_rejected_key_is_told_as_that_and_never_as_absence(rig: Rig) -> None:
    plane = rig.plane("wrong-key-wrong-key")
    for work in (plane.describe(rig.victim), plane.list_all(), plane.destroy(rig.victim)):
        assert isinstance(raised(work), NotAllowed)


@pytest.mark.parametrize("platform", ["runpod", "vastai", "lambda", "paperspace", "autodl"])
def test_a_404_for_a_rejected_key_leaves_the_list_without_an_answer(platform: str) -> None:
    """PROV-AUTH404: get-one may say "no such machine"; the list must never be a good, empty one."""
    with account(platform) as rig:
        code = {"code": "NOT_FOUND"} if platform == "paperspace" else {}
        rig.world.script = [("", (404, code, {}))] * 8
        error = raised(rig.plane(tries=1).list_all())
        assert isinstance(error, NoAnswer | NotAllowed)
        assert not isinstance(error, NoSuchMachine)


def test_a_retired_api_says_nothing_of_the_machine(rig: Rig) -> None:
    rig.world.dead = True
    plane = rig.plane()
    for work in (plane.describe(rig.victim), plane.list_all(), plane.destroy(rig.victim)):
        error = raised(work)
        assert isinstance(error, ApiRetired)
        assert not isinstance(error, NoSuchMachine)
        assert "says nothing of the machine" in error.means


def test_reads_are_repeated_until_they_work(rig: Rig) -> None:
    rig.world.script = [("", (500, {}, {})), ("", (502, b"<html>bad gateway</html>", {}))]
    assert run(rig.plane().describe(rig.victim)).state == "running"
    assert len(rig.slept) >= 2
    assert all(seconds < 3 for seconds in rig.slept)


def test_reads_are_repeated_a_bounded_number_of_times(rig: Rig) -> None:
    rig.world.script = [("", (500, {}, {}))] * 50
    assert isinstance(raised(rig.plane().describe(rig.victim)), NoAnswer)
    assert len(rig.world.log) == 4


def test_a_limit_is_kept_as_long_as_the_vendor_asks(rig: Rig) -> None:
    rig.world.script = [
        ("", (429, {"detail": "API requests too frequent threshold=3.5"}, {"Retry-After": "4"}))
    ]
    assert run(rig.plane().describe(rig.victim)).state == "running"
    assert max(rig.slept) >= 4


def test_vast_tells_the_wait_in_words_alone() -> None:
    with account("vastai") as rig:
        rig.world.script = [("", (429, b"API requests too frequent endpoint threshold=5.5", {}))]
        run(rig.plane().describe(rig.victim))
        assert 5.5 <= max(rig.slept) <= 6


def test_a_stop_is_not_repeated(stopping: Rig) -> None:
    part = {"runpod": "action", "vastai": "PUT", "paperspace": "PATCH", "autodl": "power_off"}
    rig = stopping
    rig.world.script = [(part[rig.platform], (503, {}, {}))] * 3
    assert isinstance(raised(rig.plane().stop(rig.victim)), NoAnswer)
    assert rig.world.count(part[rig.platform]) == 1


def test_a_deletion_is_repeated() -> None:
    for platform in ("runpod", "vastai", "paperspace"):
        with account(platform) as rig:
            rig.world.script = [("DELETE", (500, {}, {})), ("DELETE", (503, {}, {}))]
            run(rig.plane().destroy(rig.victim))
            assert rig.world.count("DELETE") == 3


def test_a_redirect_is_not_followed_with_the_key(rig: Rig) -> None:
    with account(rig.platform) as thief:
        rig.world.script = [("", (307, None, {"Location": f"{thief.base}/steal"}))]
        error = raised(rig.plane(tries=1).describe(rig.victim))
        assert isinstance(error, NoAnswer)
        assert "not followed" in error.what
        assert thief.world.seen_keys == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'"gone"',
        b"{}",
        b"NaN",
        b'{"id":',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"pods": null}',
    ],
    ids=["empty", "list", "null", "text", "object", "nan", "cut", "bytes", "deep", "null-list"],
)
def test_nonsense_is_no_answer(rig: Rig, body: bytes) -> None:
    """An empty list in a shape that nobody promised is not an empty account."""
    rig.world.script = [("", (200, body, {}))] * 6
    for work in (rig.plane().describe(rig.victim), rig.plane().list_all()):
        error = raised(work)
        assert isinstance(error, NoAnswer)
        assert not isinstance(error, NoSuchMachine)


def test_a_server_that_is_not_there_is_told_and_nothing_was_sent() -> None:
    with account("runpod") as rig:
        plane = rig.plane()
    assert isinstance(raised(plane.describe(rig.victim)), NoAnswer)
    error = raised(plane.stop(rig.victim))
    assert isinstance(error, VerbRefused)
    assert error.means == "Nothing was sent."


def test_an_answer_that_never_ends_is_cut_off() -> None:
    with account("lambda") as rig:
        rig.world.script = [("", (200, b" " * (9 << 20), {}))]
        assert "does not end" in raised(rig.plane().list_all()).what


def test_a_vendor_that_is_silent_is_left_after_the_deadline() -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with account("runpod") as rig:
            rig.base = f"http://127.0.0.1:{listener.getsockname()[1]}"
            error = raised(rig.plane(whole_s=0.3).describe(rig.victim))
    assert "within 0.3 s" in error.what


@pytest.mark.parametrize("id_", ["../billing", "a/b", "a?x=1", "a#b", "%2e%2e"])
def test_an_id_names_no_other_path(rig: Rig, id_: str) -> None:
    victim = rig.victim.model_copy(update={"instance_id": id_})
    run(rig.plane().describe(rig.victim))
    raised(rig.plane().describe(victim))
    right, *odd = [exchange.path.rstrip("/") for exchange in rig.world.log]
    for path in odd:
        if path not in (right, right.replace("status", "snapshot")):  # AutoDL's id is no part of the path
            assert path.rpartition("/")[0] == right.rpartition("/")[0]


@pytest.mark.parametrize("id_", [None, "", ".", ".."])
def test_without_an_id_nothing_is_asked(rig: Rig, id_: str | None) -> None:
    victim = rig.victim.model_copy(update={"instance_id": id_})
    for work in (rig.plane().describe(victim), rig.plane().destroy(victim)):
        assert isinstance(raised(work), NoAnswer)
    assert rig.world.log == []


# --- secrets ------------------------------------------------------------------------------------------------


def everything_said(rig: Rig, provoke: Callable[[], None]) -> str:
    said: list[str] = []
    for verb in ("describe", "destroy", "stop"):
        provoke()
        try:
            run(getattr(rig.plane(tries=1), verb)(rig.victim))
        except Failure as failure:
            said += [failure.line, repr(failure), str(failure.__dict__), *traceback.format_exception(failure)]
    return "\n".join(said)


def test_no_key_is_in_anything_that_is_said(rig: Rig) -> None:
    echo = f"key {KEY} and Bearer {KEY}: denied; see https://x/?api_key=abcdefghijklmnop123"

    def provoke() -> None:
        body = {"detail": echo, "msg": echo, "message": echo, "code": "BadRequest", "error": echo}
        rig.world.script = [("", (status, body, {})) for status in (400, 409, 422)]

    said = everything_said(rig, provoke)
    assert said
    assert KEY not in said
    assert "abcdefghijklmnop123" not in said


def test_a_machine_carries_no_secret_of_its_payload(rig: Rig) -> None:
    machine = run(rig.plane().describe(rig.victim))
    listing = run(rig.plane().list_all())
    for leak in LEAKS:
        assert leak not in repr(machine)
        assert leak not in repr(listing)


def test_a_plane_does_not_show_its_key(rig: Rig) -> None:
    plane = rig.plane()
    for shown in (repr(plane), str(plane), f"{plane}"):
        assert KEY not in shown


def test_a_secret_shows_nothing() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r} {secret!s}"
    assert secret.fingerprint not in KEY
    assert secret.fingerprint != Secret(KEY + "x").fingerprint


def test_words_are_redacted_before_they_are_cut() -> None:
    assert KEY[:12] not in redacted("x" * 290 + KEY, [Secret(KEY)])
    assert HIDDEN in redacted(f"no {KEY}", [Secret(KEY)])


@pytest.mark.parametrize(
    "url",
    ["http://api.runpod.io", "ftp://x", "https://u:p@x", "https://x/?q=1", "", "x", "http://10.0.0.1",
     "http://localhost.evil.example"],
)  # fmt: skip
def test_a_key_goes_only_over_tls_or_to_this_computer(url: str) -> None:
    with pytest.raises(Failure):
        checked_url(url, "X")


def test_every_vendor_is_at_an_address_that_a_key_may_go_to() -> None:
    for way in WAYS.values():
        assert checked_url(way.vendor.base_url, way.vendor.title).startswith("https://")

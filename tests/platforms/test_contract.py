"""Every request that a client sends, and every answer that the fake gives, fits the vendor's published spec.

So the clients are held to the real interface, and the fake to what real answers look like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.platforms.rig import Rig, account, run
from tests.platforms.schema import OURS, Spec, load
from tests.platforms.world import Exchange
from tui.platforms.control import ControlError, Offer, Price, Wish

FILES = {
    "runpod": "runpod-rest-v2.openapi.json",
    "vastai": "vastai.openapi.yaml",
    "lambda": "lambda-cloud.openapi.json",
}
NOT_IN_SPEC = {"runpod": ("/graphql",)}
"""RunPod's balance has no place in v2; it is asked of GraphQL, as its own CLI does."""
OTHERWISE_LIVE = {"vastai": ("ports", "extra_env")}
"""Fields that the spec types otherwise than live answers do, or in two ways: vast.ai's ports are a map."""


def wish(rig: Rig) -> Wish:
    offer = run(rig.plane().offers())[0]
    return Wish("proj-train-20261130", offer, image="runpod/pytorch:1", disk_gb=50, ssh_key="k")


def everything(rig: Rig) -> None:
    """Ask all that can be asked, with verbs that work and verbs that do not."""
    plane = rig.plane()
    made = wish(rig) if rig.platform != "lambda" else Wish("p", run(plane.offers())[0], ssh_key="k")
    run(plane.list_all())
    run(plane.describe(rig.victim))
    run(plane.balance())
    run(plane.create(plane.request(made)))
    for verb in (plane.stop, plane.start, plane.destroy, plane.destroy, plane.describe):
        try:
            run(verb(rig.victim))
        except ControlError:
            pass


def faults(spec: Spec, exchange: Exchange, without: tuple[str, ...]) -> list[str]:
    operation = spec.operation(exchange.method, exchange.path)
    found = [*_query(spec, operation, exchange.query)]
    body = spec.resolved(operation.get("requestBody") or {}).get("content", {})
    if body:
        found += spec.problems(body["application/json"]["schema"], exchange.body, "request")
    elif exchange.body not in (None, {}):
        found.append("request: has a body that the spec does not know")
    answer = _answer(spec, operation, exchange.status)
    found += spec.problems(answer, _dropped(exchange.answer, without), "answer") if answer else ()
    return found


def _query(spec: Spec, operation: dict[str, Any], query: Mapping[str, str]) -> list[str]:
    known = {}
    for parameter in operation["parameters"]:
        parameter = spec.resolved(parameter)
        if parameter["in"] == "query":
            known[parameter["name"]] = parameter
    found = [f"query: {name} is not known" for name in query if name not in known]
    found += [f"query: {n} is missing" for n, p in known.items() if p.get("required") and n not in query]
    for name in set(query) & set(known):
        schema = spec.resolved(known[name].get("schema", {}))
        if schema.get("type") == "integer":
            found += spec.problems(schema, int(query[name]), f"query.{name}")
        elif schema.get("type") == "string":
            found += spec.problems(schema, query[name], f"query.{name}")
    return found


def _answer(spec: Spec, operation: dict[str, Any], status: int) -> dict[str, Any] | None:
    responses = operation["responses"]
    assert str(status) in responses or "default" in responses, f"{status} is no answer of the spec"
    response = spec.resolved(responses.get(str(status), responses.get("default")))
    content = response.get("content", {})
    return next((kind["schema"] for kind in content.values() if "schema" in kind), None)


def _dropped(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {k: _dropped(v, names) for k, v in value.items() if k not in names}
    return [_dropped(one, names) for one in value] if isinstance(value, list) else value


def _absent(exchange: Exchange) -> bool:
    return exchange.status == 404 or exchange.answer == {"instances": None}


@pytest.mark.parametrize("platform", FILES)
def test_requests_and_answers_fit_the_spec(platform: str) -> None:
    spec, _ = load(FILES[platform])
    with account(platform) as rig:
        everything(rig)
    seen = set()
    for exchange in rig.world.log:
        if exchange.path in NOT_IN_SPEC.get(platform, ()):
            continue
        seen.add(f"{exchange.method} {spec.operation(exchange.method, exchange.path)['template']}")
        if platform == "vastai" and exchange.method == "GET" and _absent(exchange):
            continue  # the spec tells neither way in which live answers say it
        assert faults(spec, exchange, OTHERWISE_LIVE.get(platform, ())) == [], exchange
    assert len(seen) >= {"runpod": 7, "vastai": 8, "lambda": 6}[platform], seen


@pytest.mark.parametrize("platform", FILES)
def test_the_checker_can_find_faults(platform: str) -> None:
    """The test above would be worth nothing with a checker that passes everything."""
    spec, _ = load(FILES[platform])
    with account(platform) as rig:
        run(rig.plane().list_all())
    exchange = next(e for e in rig.world.log if "pods" in e.path or "instances" in e.path)
    key = {"runpod": "pods", "vastai": "instances", "lambda": "data"}[platform]
    exchange.answer = exchange.answer | {key: "nonsense"}
    exchange.query = {"unheard-of": "1"}
    found = faults(spec, exchange, ())
    assert any("query" in one for one in found)
    assert any(f"answer.{key}" in one for one in found)


@pytest.mark.parametrize("platform", FILES)
def test_our_extract_agrees_with_the_published_file(platform: str) -> None:
    """The extracts stand in where the published files are not; what they say must be in those."""
    published, is_published = load(FILES[platform])
    if not is_published:
        pytest.skip("the published file does not lie beside this checkout")
    import json

    ours = json.loads((OURS / FILES[platform].replace(".yaml", ".json")).read_text())
    for path, item in ours["paths"].items():
        for method in item:
            if method != "parameters":
                operation = published.operation(method, path)
                assert set(item[method]["responses"]) <= set(operation["responses"])


def test_what_is_shown_of_a_request_is_what_is_sent() -> None:
    for platform in FILES:
        with account(platform) as rig:
            plane = rig.plane()
            offer = run(plane.offers())[0]
            request = plane.request(
                Wish("proj-a", offer, image=None if platform == "lambda" else "i:1", ssh_key="k")
            )
            created = run(plane.create(request))
            sent = rig.world.log[-1]
            assert (sent.method, sent.path, sent.body) == (request.method, request.path, dict(request.body))
            assert created.id in rig.world.boxes


@pytest.mark.parametrize("platform", ["runpod", "vastai", "lambda", "paperspace", "autodl"])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_creation_is_sent_once_whatever_comes_back(platform: str, status: int) -> None:
    with account(platform) as rig:
        plane = rig.plane()
        offer = Offer(
            "77" if platform == "vastai" else "x@SECURE", "H100", 1, Price(1.0, "USD"), regions=("r",)
        )
        more = {"cuda_v_from": 118} if platform == "autodl" else {}
        image = None if platform == "lambda" else "i"
        request = plane.request(Wish("n", offer, image=image, ssh_key="k", region="r", more=more))
        rig.world.script = [("", (status, {}, {}))] * 5
        with pytest.raises(ControlError):
            run(plane.create(request))
        assert len(rig.world.log) == 1

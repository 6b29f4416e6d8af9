"""No rule is there for nothing: without it, or with its conditions turned round, a case changes."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from tests.triage import reading
from tests.triage.reading import Case
from tui.model.incident import Diagnosis
from tui.triage.predicates import Ask
from tui.triage.rules import Ready, Rules

CASES = list(reading.cases())
FULL = reading.rules()
BEFORE = [(case, reading.judged(case, FULL)) for case in CASES]


def _told(found: Diagnosis) -> Any:
    return [(one.cls, one.severity, dict(one.facts), set(one.also)) for one in found.incidents]


def _involved(rule: Ready) -> list[tuple[Case, Diagnosis]]:
    """Cases in which the class has a say, the ones it wins first."""
    won = [one for one in BEFORE if reading.first(one[1]) == rule.cls]
    about = [one for one in BEFORE if one[0].cls == rule.cls or _named(rule.cls, one[1])]
    return won + [one for one in about if one not in won]


def _named(cls: str, found: Diagnosis) -> bool:
    return any(cls == one.cls or cls in one.also for one in found.incidents)


def _changes(rules: Rules, about: list[tuple[Case, Diagnosis]]) -> bool:
    return any(_told(reading.judged(case, rules)) != _told(before) for case, before in about)


def _with(old: Ready, new: Ready | None) -> Rules:
    ready = tuple(new if one is old else one for one in FULL.ready if one is not old or new is not None)
    return dataclasses.replace(FULL, ready=tuple(one for one in ready if one is not None))


@pytest.mark.parametrize("rule", FULL.ready, ids=lambda one: f"{one.cls} {one.rule.name}")
def test_without_the_rule_a_case_changes(rule: Ready) -> None:
    assert _changes(_with(rule, None), _involved(rule))


NEGATED = {"==": "!=", "!=": "==", "<=": ">", ">=": "<", "<": ">=", ">": "<="}
GUARDED = [one for one in FULL.ready if one.when or one.unless or one.also or one.without]


@pytest.mark.parametrize("rule", GUARDED, ids=lambda one: f"{one.cls} {one.rule.name}")
def test_with_its_conditions_turned_round_a_case_changes(rule: Ready) -> None:
    asks = tuple(
        Ask(ask.subject, ask.field, NEGATED[ask.op] if at == 0 else ask.op, ask.value)
        for at, ask in enumerate(rule.when)
    )
    never = tuple(dataclasses.replace(one, search=re.compile("(?!)")) for one in rule.also)
    always = tuple(dataclasses.replace(one, search=re.compile(""), words=()) for one in rule.unless)
    blocked = tuple(dataclasses.replace(one, search=re.compile(""), words=()) for one in rule.without)
    turned = dataclasses.replace(rule, when=asks, also=never, unless=always, without=blocked)
    assert _changes(_with(rule, turned), _involved(rule))

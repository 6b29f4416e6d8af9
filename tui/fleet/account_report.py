"""Accounts and what they list, in text and JSON, as `rgt status` prints them. Pure; null means not known."""

from __future__ import annotations

from collections.abc import Iterator

from tui.fleet import reconcile
from tui.fleet.age import long
from tui.fleet.money import SIGNS
from tui.model.account import AccountView
from tui.model.snapshot import BoxView, FleetSnapshot


def account_lines(snapshot: FleetSnapshot, now: float) -> Iterator[str]:
    """One line per account that was asked: what it lists, what is left, how old that is."""
    for view in snapshot.accounts:
        parts = [f"account {view.name}"]
        if view.told_at is not None:
            here = [one for one in view.machines if not reconcile.is_gone(one)]
            parts.append(f"{len(here)} {'machine' if len(here) == 1 else 'machines'} listed")
            parts.append(_balance_words(view))
        if view.why:
            parts.append(str(view.why))
        age = "not asked yet" if view.asked_at is None else f"asked {long(max(0.0, now - view.asked_at))} ago"
        yield "  ".join((*parts, age))


def _balance_words(view: AccountView) -> str:
    if view.balance is None:
        return f"balance ? ({view.balance_why})" if view.balance_why else "balance ?"
    runway = reconcile.runway_s(view)
    lasts = "" if runway is None else f", lasts {long(runway)}"
    return f"balance {view.balance:,.2f} {SIGNS.get(view.currency, view.currency)}{lasts}"


def account_json(view: AccountView, now: float) -> dict[str, object]:
    """One account."""
    told = view.told_at is not None
    return {
        "name": view.name,
        "platform": view.platform,
        "key_from": str(view.source) or None,
        "asked_at": view.asked_at,
        "told_at": view.told_at,
        "age_s": max(0.0, now - view.told_at) if view.told_at is not None else None,
        "problem": str(view.why) or None,
        "complete": view.complete,
        "machines": sum(not reconcile.is_gone(one) for one in view.machines) if told else None,
        "burn_per_hour": reconcile.burn_of(view) if told else None,
        "currency": view.currency,
        "balance": view.balance,
        "runway_s": reconcile.runway_s(view),
    }


def rented_json(box: BoxView, now: float) -> dict[str, object] | None:
    """The machine as its provider lists it; null where none does, or none was asked."""
    one = box.rented
    if one is None:
        return None
    end = one.endpoint
    return {
        "account": one.account,
        "instance_id": one.id,
        "name": str(one.name) or None,
        "state": one.state,
        "said": str(one.said),
        "gone": reconcile.is_gone(one),
        "absent_lists": one.absent,
        "seen_at": one.seen_at,
        "age_s": max(0.0, now - one.seen_at),
        "price_per_hour": one.per_hour,
        "price_source": str(one.price_source),
        "gpu": str(one.gpu) or None,
        "ssh": None
        if end is None
        else {"host": end.host, "port": end.port, "user": end.user, "proxied": end.proxied},
        "notes": [str(note) for note in one.notes],
    }

"""`rgt profiles`: what is known of each platform, how surely, and whether the files are in order."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime

from tui.fleet import profiles
from tui.fleet.paths import Paths, paths, shipped
from tui.fleet.profile_schema import Action, Charge, Evident, Facts
from tui.fleet.profiles import STALE_MONTHS, SURFACE, Profile, Profiles
from tui.model.failure import Exit, Failure
from tui.model.text import safe

Out = Callable[[str], None]
Parsers = argparse._SubParsersAction  # the type argparse gives has no public name
_WIDTH = 100


def register(sub: Parsers[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = sub.add_parser("profiles", help="what is known of each platform: storage, billing, teardown")
    parser.add_argument("name", metavar="NAME", nargs="?", help="one platform in full")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plain", action="store_true", help="the list tab-separated; a profile as its text")
    parser.add_argument("--check", action="store_true", help="check every file against the schema")
    parser.add_argument(
        "--months", type=_months, default=STALE_MONTHS, metavar="N", help="with --check: when a source is old"
    )
    parser.set_defaults(run=run)


def _months(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of months")
    return int(text)


def run(args: argparse.Namespace, out: Out = print) -> int:
    """List the profiles, show one, or check them. Raises Failure."""
    loaded = load(paths())
    if args.check:
        return check(loaded, args.name, args.months, datetime.now(UTC).date(), as_json=args.json, out=out)
    if args.name is None:
        return overview(loaded, as_json=args.json, plain=args.plain, out=out)
    return show(loaded, args.name, as_json=args.json, plain=args.plain, out=out)


def load(where: Paths) -> Profiles:
    """The shipped profiles with the operator's on top."""
    return profiles.load(shipped("profiles"), where.profiles)


def overview(loaded: Profiles, *, as_json: bool, plain: bool, out: Out) -> int:
    """One line per platform."""
    if as_json:
        rows = [_summary(one) for one in loaded.by_id.values()]
        out(json.dumps({"profiles": rows, "problems": _lines(loaded)}, ensure_ascii=False, indent=1))
    elif plain:
        for one in loaded.by_id.values():
            row = _summary(one)
            out("\t".join("" if value is None else str(value) for value in row.values()))
    else:
        for one in loaded.by_id.values():
            _print_overview(one, out)
        for line in _lines(loaded):
            out(f"! {line}")
    return Exit.ATTENTION if loaded.problems else Exit.FINE


def _summary(one: Profile) -> dict[str, object]:
    facts, oldest = one.facts, one.oldest()
    stop = facts.action(facts.meter_stop)
    return {
        "id": facts.id,
        "title": facts.title,
        "kind": facts.kind,
        "meter_stop": stop.verb if stop else None,
        "reversible": stop.reversible if stop else None,
        "destroys": ", ".join(stop.destroys) if stop else None,
        "still_costs": "; ".join(c.what for c in stop.keeps_billing) if stop else None,
        "verified": oldest.verified,
        "weakest_confidence": _weakest(one),
        "own": one.own,
    }


_SURENESS = ("live-tested", "vendor doc", "working code", "community")


def _weakest(one: Profile) -> str:
    return max((source.confidence for source in one.sources()), key=_SURENESS.index)


def _print_overview(one: Profile, out: Out) -> None:
    facts = one.facts
    stop = facts.action(facts.meter_stop)
    out(f"{facts.id} · {facts.title} · {facts.kind}{' · your own file' if one.own else ''}")
    _wrapped(facts.summary, out)
    if stop is None:
        _wrapped("ends the bill: nothing that rgt knows of", out)
    else:
        undo = "can be undone" if stop.reversible else "irreversible"
        lost = f", destroys {_tier_names(facts, stop.destroys)}" if stop.destroys else ", destroys nothing"
        _wrapped(f"ends the bill: {stop.verb} ({undo}{lost})", out)
        for charge in stop.keeps_billing:
            _wrapped(f"still costs: {_charge(charge)}", out)
    _wrapped(f"oldest look at a source: {one.oldest().verified}; weakest: {_weakest(one)}", out)
    out("")


def show(loaded: Profiles, name: str, *, as_json: bool, plain: bool, out: Out) -> int:
    """One profile: its facts with their sources, then its sections. Raises Failure."""
    one = loaded.by_id.get(name)
    if one is None:
        known = ", ".join(loaded.by_id)
        raise Failure(
            f"There is no profile {safe(name, 40)}.",
            do=f"Profiles: {known}.",
            exit=Exit.USAGE,
            code="no-profile",
        )
    if as_json:
        out(json.dumps(profiles.as_json(one), ensure_ascii=False, indent=1))
        return Exit.FINE
    for line in _text(one) if plain else _page(one):
        out(str(safe(line)))
    return Exit.FINE


def _text(one: Profile) -> Iterator[str]:
    for heading, content in one.sections.items():
        yield f"## {heading}"
        yield from content.splitlines()
        yield ""


def _page(one: Profile) -> Iterator[str]:
    facts = one.facts
    yield f"{facts.title} · {facts.kind} · {facts.summary}"
    yield ""
    yield from one.sections[SURFACE].splitlines()
    yield ""
    yield from _title("Storage")
    for tier in facts.tiers:
        yield f"{tier.name}  {' '.join(tier.paths) or '(paths not known)'}  {tier.size}; {tier.speed}"
        yield f"    survives stop: {tier.survives_stop}   survives destroy: {tier.survives_destroy}"
        if tier.optional:
            yield "    not on every box: look whether it is mounted"
        if tier.inode_cap:
            yield f"    at most {tier.inode_cap:,} files"
        yield from (f"    costs: {_charge(charge)}" for charge in tier.charges)
        yield _evidence(one, tier)
    yield from _title("Actions")
    for action in facts.actions:
        yield from _action(one, action)
    yield from _title("What the platform does by itself")
    for clock in facts.clocks:
        lost = f"; destroys {_tier_names(facts, clock.destroys)}" if clock.destroys else ""
        yield f"{clock.text}{lost}"
        yield _evidence(one, clock)
    if not facts.clocks:
        yield "nothing that rgt knows of"
    yield from _title("Getting in, and what a box costs less by")
    yield from _ways_in(one)
    yield from _savings(one)
    for heading, content in one.sections.items():
        if heading != SURFACE:
            yield from _title(heading)
            yield from content.splitlines()


def _ways_in(one: Profile) -> Iterator[str]:
    network, credentials = one.facts.network, one.facts.credentials
    for flavour in network.ssh:
        lacks = [word for word in ("exec", "scp", "sftp", "forward") if not getattr(flavour, word)]
        without = f"  (no {', '.join(lacks)})" if lacks else ""
        yield f"ssh {flavour.id}: {flavour.text}{without}"
        yield _evidence(one, flavour)
    if not network.ssh:
        yield f"no ssh; rgt looks through {one.facts.transport}"
    for told in (network.keys, network.endpoint_moves):
        if told is not None:
            yield told.text
            yield _evidence(one, told)
    if credentials.where:
        yield f"API key: {credentials.where}"
    places = [*credentials.env, *credentials.files]
    if places:
        yield f"    looked for in: {', '.join(places)}"


def _savings(one: Profile) -> Iterator[str]:
    facts = one.facts
    for mode in facts.cheap_modes:
        price = f"; {_charge(mode.price)}" if mode.price else ""
        yield f"{mode.text} Good for {', '.join(mode.good_for)}{price}."
        yield _evidence(one, mode)
    if facts.leash is not None:
        yield f"when nobody watches: {facts.leash.text}"
        if facts.leash.in_box:
            yield f"    in the box: {facts.leash.in_box}"
        if facts.leash.timer:
            yield f"    timer: {facts.leash.timer}"
        yield _evidence(one, facts.leash)
    if facts.stock is not None:
        yield f"when it is sold out: {facts.stock.text}"
        yield from (f"    {told}" for told in (facts.stock.look, facts.stock.notify) if told)
        yield _evidence(one, facts.stock)
    grace = "" if facts.spot.grace_s is None else f" Warning: {facts.spot.grace_s:g} s."
    yield f"taken away: {facts.spot.text}{grace}"
    yield _evidence(one, facts.spot)


def _action(one: Profile, action: Action) -> Iterator[str]:
    facts = one.facts
    undo = "can be undone" if action.reversible else "irreversible"
    yield f"{action.id}: {action.verb}  (level {action.level}, {undo})"
    for way in action.ways:
        only = f"  [{', '.join(way.products)}]" if way.products else ""
        yield f"    {way.kind}: {way.call}{only}"
    if action.destroys:
        yield f"    destroys: {_tier_names(facts, action.destroys)}"
    if action.stops_billing:
        yield f"    no longer costs: {', '.join(action.stops_billing)}"
    yield from (f"    still costs: {_charge(charge)}" for charge in action.keeps_billing)
    yield f"    proof: {action.proof}"
    yield from (f"    beware: {trap}" for trap in action.traps)
    yield _evidence(one, action)


def _title(text: str) -> Iterator[str]:
    yield ""
    yield f"─ {text} ─"


def _evidence(one: Profile, fact: Evident) -> str:
    found = [one.facts.sources[name] for name in fact.evidence]
    return "    told by: " + "; ".join(f"{s.from_} ({s.confidence}, {s.verified})" for s in found)


def _charge(charge: Charge) -> str:
    amount = "?" if charge.amount is None else f"{charge.amount:.2f}"
    note = f" ({charge.note})" if charge.note else ""
    return f"{charge.what}: {amount} {charge.currency} per {charge.per}{note}"


def _tier_names(facts: Facts, ids: Iterable[str]) -> str:
    names = {tier.id: tier.name for tier in facts.tiers}
    return ", ".join(names[id_] for id_ in ids)


def _wrapped(text: str, out: Out) -> None:
    for line in textwrap.wrap(safe(text), _WIDTH, initial_indent="  ", subsequent_indent="    "):
        out(line)


def check(loaded: Profiles, name: str | None, months: int, today: date, *, as_json: bool, out: Out) -> int:
    """Print what is wrong with the files and which sources are old; exit 1 when there is anything.

    Args:
        name: only this profile; None for all.
        months: a source looked at longer ago than this is old.
    """
    chosen = [one for one in loaded.by_id.values() if name in (None, one.facts.id)]
    broken = [p for p in loaded.problems if name is None or f"/{name}.md" in p.what]
    if name is not None and not chosen and not broken:
        return show(loaded, name, as_json=as_json, plain=True, out=out)  # tells which there are
    old = [problem for one in chosen for problem in profiles.stale(one, today, months)]
    if as_json:
        record = {"checked": [one.facts.id for one in chosen], "problems": _told(broken), "old": _told(old)}
        out(json.dumps(record, ensure_ascii=False, indent=1))
    else:
        for line in (*_told(broken), *_told(old)):
            out(line)
        if not broken and not old:
            out(f"{len(chosen)} profiles: in order, no source older than {months} months.")
    return Exit.ATTENTION if broken or old else Exit.FINE


def _told(found: Iterable[Failure]) -> list[str]:
    return [str(problem.line) for problem in found]


def _lines(loaded: Profiles) -> list[str]:
    return _told(loaded.problems)

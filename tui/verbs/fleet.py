"""`rgt add`, `edit`, `rename`, `remove`, `watch`: they write ``fleet.toml`` and touch no box."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tui.box.address import Address, parse_address
from tui.custody.host_keys import trust_store
from tui.fleet import fleet_file, settings
from tui.fleet.fleet_entries import InstanceEntry, RunEntry
from tui.fleet.paths import Paths, paths, shipped
from tui.fleet.toml_edit import Value
from tui.model.failure import Exit, Failure
from tui.model.text import safe
from tui.model.via import is_via
from tui.verbs import add_here, add_via
from tui.verbs.changes import read_change
from tui.verbs.identity import following
from tui.verbs.naming import run_word, unused, unused_name
from tui.verbs.paste import read_paste
from tui.verbs.twins import refuse_known, refuse_unplaced
from tui.verbs.unquoted import as_text

Out = Callable[[str], None]
Parsers = argparse._SubParsersAction  # the type argparse gives has no public name

PASSWORD_DROPPED = "a password was in the paste and was not stored: set password_env or you will be asked"


def register(sub: Parsers[argparse.ArgumentParser]) -> None:
    """Add the verbs of this file to the command line."""
    _register_add(sub)
    edit = sub.add_parser(
        "edit",
        help="change what is known of a box or run",
        description=f"Keys of a box: {', '.join(InstanceEntry.model_fields)}. "
        f"Keys of a run: {', '.join(RunEntry.model_fields)}.",
    )
    edit.add_argument("name", metavar="NAME", help="a box, or a run where no box has the name")
    edit.add_argument("changes", metavar="KEY=VALUE", nargs="+", help="an empty value removes the key")
    _finish(edit, lambda args: edit_entry(_where(args), args.name, args.changes, as_json=args.json))
    rename = sub.add_parser("rename", help="give a box or run another name; the runs of a box follow")
    rename.add_argument("old", metavar="OLD", help="a box or a run")
    rename.add_argument("new", metavar="NEW", help="a name that nothing has yet")
    _finish(rename, lambda args: rename_entry(_where(args), args.old, args.new, as_json=args.json))
    remove = sub.add_parser("remove", help="forget a box with its runs, or a run; nothing happens on the box")
    remove.add_argument("name", metavar="NAME", help="a box, or a run where no box has the name")
    _finish(remove, lambda args: remove_entry(_where(args), args.name, as_json=args.json))
    _register_watch(sub)


def _register_add(sub: Parsers[argparse.ArgumentParser]) -> None:
    add = sub.add_parser(
        "add",
        help="add a box from a pasted ssh command",
        description="Without TEXT the paste is read from standard input and not shown.",
    )
    add.add_argument(
        "text",
        metavar="TEXT",
        nargs="*",
        help="such as: ssh -p 34567 root@host; slurm:JOBID@BOX; pod:NAMESPACE/NAME; job:NAMESPACE/NAME; "
        "or local, which is this computer",
    )
    add.add_argument("--name", metavar="BOX", help="its name here; made from the host when not given")
    add.add_argument(
        "--platform", metavar="NAME", help="a profile's name (see rgt profiles), where the host does not tell"
    )
    add.add_argument(
        "--instance-id",
        metavar="ID",
        help="the provider's own id of it: what is asked about and ended",
    )
    add.add_argument(
        "--password-env", metavar="VARIABLE", help="environment variable that holds the password"
    )
    add.add_argument("--price", type=float, metavar="N", help="price per hour")
    add.add_argument("--currency", metavar="CODE", help="of the price; USD when not given")
    add.add_argument("--dry-run", action="store_true", help="show what was understood, write nothing")
    _finish(add, _add)


def _register_watch(sub: Parsers[argparse.ArgumentParser]) -> None:
    watch = sub.add_parser("watch", help="adopt a run that rgt did not start")
    watch.add_argument("box", metavar="BOX", help="the box it runs on")
    watch.add_argument("--log", metavar="PATH", help="its log on the box")
    watch.add_argument("--checkpoints", metavar="GLOB", help="its checkpoints on the box, quoted")
    one = watch.add_mutually_exclusive_group()
    one.add_argument("--pid", type=int, metavar="N", help="its process")
    one.add_argument("--session", metavar="S", help="its tmux session")
    watch.add_argument(
        "--name", metavar="RUN", help="its name here; made from log, session or pid when not given"
    )
    _finish(watch, _watch)


def _finish(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plain", action="store_true", help="changes nothing: this verb prints plain text")
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class Extras:
    """What a paste does not tell about a box and its owner may."""

    platform: str | None = None
    password_env: str | None = None
    price: float | None = None
    currency: str | None = None
    instance_id: str | None = None
    account: str | None = None


def _add(args: argparse.Namespace) -> int:
    text = as_text(args.text) if args.text else read_paste(sys.stdin.buffer, _aside)
    extras = Extras(args.platform, args.password_env, args.price, args.currency, args.instance_id)
    if args.dry_run:
        return preview(text, args.name, extras, where=paths(), as_json=args.json)
    return add(text, args.name, extras, where=_where(args), as_json=args.json)


def preview(
    text: str, name: str | None, extras: Extras, *, where: Paths, as_json: bool, out: Out = print
) -> int:
    """Show what `rgt add` understood. Writes nothing. Raises Failure."""
    if add_here.is_here(text):
        here = {"name": add_here.understood(where, name), "platform": add_here.PLATFORM}
        out(json.dumps(here) if as_json else "\n".join(f"{k}\t{v}" for k, v in here.items()))
        return Exit.FINE
    if is_via(text):
        entry = add_via.understood(where, text, name, _more(extras))
        told = {"name": entry.name, **entry.values}
        out(json.dumps(told) if as_json else "\n".join(f"{k}\t{safe(str(v))}" for k, v in told.items()))
        return Exit.FINE
    address = _understood(text, extras)
    if as_json:
        out(json.dumps(_told(address, extras), ensure_ascii=False))
    else:
        chosen = name or unused_name(address, _names(where))
        refuse_unplaced(address, extras.instance_id)
        settings.check_instance(chosen, _values(address, extras))
        out(f"name\t{chosen}")
        for key, value in _told(address, extras).items():
            out(f"{key}\t{'–' if value is None else safe(str(value))}")
    _tell_dropped(address)
    return Exit.FINE


def add(
    text: str,
    name: str | None,
    extras: Extras = Extras(),
    *,
    where: Paths,
    as_json: bool = False,
    out: Out = print,
) -> int:
    """Write a box into the fleet file.

    Args:
        text: what was pasted.
        name: None makes one from the host.

    Raises:
        Failure: the text is no login, the name or the box is already known, or the file cannot be written.
    """
    if add_here.is_here(text):
        chosen = add_here.written(where, name)
        here = {"name": chosen, "platform": add_here.PLATFORM}
        out(json.dumps(here) if as_json else _added(chosen, where))
        return Exit.FINE
    if is_via(text):
        entry = add_via.written(where, text, name, _more(extras))
        told = {"name": entry.name, **entry.values}
        way = f" It is reached by {entry.values['transport']}."
        out(json.dumps(told) if as_json else _added(entry.name, where) + way)
        return Exit.FINE
    address, chosen = written(where, text, name, extras)
    if as_json:
        out(json.dumps({"name": chosen, **_told(address, extras)}, ensure_ascii=False))
    else:
        out(_added(chosen, where))
    _tell_dropped(address)
    return Exit.FINE


def _told(address: Address, extras: Extras) -> dict[str, object]:
    """What was understood, and whose instance it is where that was said."""
    told: dict[str, object] = dict(address.as_json())
    return told | ({"instance_id": extras.instance_id} if extras.instance_id else {})


def _added(name: str, where: Paths) -> str:
    return f"Added {name} to {where.fleet_file}. `rgt probe {name}` takes a first look."


def write_instance(where: Paths, text: str, name: str = "") -> str:
    """Write a pasted login as a box and say so in one sentence, for the screen. Raises Failure."""
    if add_here.is_here(text):
        return f"Added {add_here.written(where, name or None)}, this computer."
    if is_via(text):
        entry = add_via.written(where, text, name or None, {})
        return f"Added {entry.name}, by {entry.values['transport']}."
    address, chosen = written(where, text, name or None, Extras())
    return f"Added {chosen}." + (f" Note: {PASSWORD_DROPPED}." if address.password_seen else "")


def written(where: Paths, text: str, name: str | None, extras: Extras) -> tuple[Address, str]:
    """Write a pasted login as a box; the login and the name it got. Raises Failure."""
    address = _understood(text, extras)
    refuse_unplaced(address, extras.instance_id)
    refuse_known(where, address, extras.instance_id)
    chosen = name or unused_name(address, _names(where))
    fleet_file.add_instance(where.fleet_file, chosen, _values(address, extras))
    return address, chosen


def _understood(text: str, extras: Extras) -> Address:
    address = parse_address(text)
    return address if extras.platform is None else replace(address, platform=extras.platform)


def _tell_dropped(address: Address) -> None:
    """On the other stream, so that JSON stays JSON."""
    if address.password_seen:
        _aside(f"rgt: {PASSWORD_DROPPED}.")
    if address.ignored:
        _aside(f"rgt: not taken over: {safe(', '.join(address.ignored))}.")


def _values(address: Address, extras: Extras) -> dict[str, Value]:
    """The keys of the new entry, in the order they are written."""
    listed: dict[str, Value | None] = {
        "platform": address.platform,
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "key": address.key,
        "jump": list(address.jump) or None,
        "proxied": address.proxied or None,
        **_more(extras),
    }
    return {key: value for key, value in listed.items() if value is not None}


def _more(extras: Extras) -> dict[str, Value]:
    told: dict[str, Value | None] = {
        "instance_id": extras.instance_id,
        "password_env": extras.password_env,
        "price_per_hour": extras.price,
        "currency": extras.currency,
        "account": extras.account,
    }
    return {key: value for key, value in told.items() if value is not None}


def edit_entry(
    where: Paths, name: str, changes: Iterable[str], *, as_json: bool = False, out: Out = print
) -> int:
    """Change keys of a box or run, given as ``KEY=VALUE``. Raises Failure."""
    parsed = dict(read_change(change) for change in changes)
    if _kind(where, name) == "box":
        fleet_file.edit_instance(where.fleet_file, name, parsed)
    else:
        fleet_file.edit_run(where.fleet_file, name, parsed)
    words = ", ".join(f"{key} {'removed' if value is None else 'set'}" for key, value in parsed.items())
    _report(f"{name}: {words}.", {"name": name, "changed": sorted(parsed)}, as_json, out)
    return Exit.FINE


def rename_entry(where: Paths, old: str, new: str, *, as_json: bool = False, out: Out = print) -> int:
    """Rename a box, whose runs follow, or a run. Raises Failure."""
    followers: tuple[str, ...] = ()
    if _kind(where, old) == "box":
        taken = new in _names(where)  # then the fleet file refuses, and its record is another box's
        with contextlib.nullcontext() if taken else following(trust_store(where), old, new):
            followers = fleet_file.rename_instance(where.fleet_file, old, new)
    else:
        fleet_file.rename_run(where.fleet_file, old, new)
    along = f" Its runs follow: {', '.join(followers)}." if followers else ""
    _report(f"{old} is now {new}.{along}", {"old": old, "new": new, "runs": list(followers)}, as_json, out)
    return Exit.FINE


def remove_entry(where: Paths, name: str, *, as_json: bool = False, out: Out = print) -> int:
    """Forget a box and its runs, or a run. Nothing happens on the box. Raises Failure."""
    if _kind(where, name) == "run":
        fleet_file.remove_run(where.fleet_file, name)
        sentence = f"Run {name} is no longer watched. It goes on as it was."
        _report(sentence, {"removed": "run", "name": name, "runs": []}, as_json, out)
        return Exit.FINE
    platform = next((i.platform for i in settings.load(where.fleet_file).instances if i.name == name), None)
    runs = fleet_file.remove_instance(where.fleet_file, name)
    trust_store(where).forget(name)  # the next box of this name is another machine
    along = f" and its runs {', '.join(runs)}" if runs else ""
    sentence = f"Forgot {name}{along}. {_what_goes_on(where, platform)}"
    _report(sentence, {"removed": "box", "name": name, "runs": list(runs)}, as_json, out)
    return Exit.FINE


def _what_goes_on(where: Paths, platform: str | None) -> str:
    if platform == "local":
        return "This computer itself was not touched."
    words = "The box was not touched: it goes on running and billing."
    from tui.fleet import profiles

    profile = profiles.load(shipped("profiles"), where.profiles).by_id.get(platform or "")
    action = profile.facts.action(profile.facts.meter_stop) if profile else None
    if profile is None or action is None:
        return f"{words} Stop it where you rented it."
    return f"{words} What ends its bill at {profile.facts.title}: {action.verb} (`rgt profiles {platform}`)."


def _watch(args: argparse.Namespace) -> int:
    given: dict[str, Value | None] = {
        "log": args.log, "checkpoints": args.checkpoints, "pid": args.pid, "session": args.session
    }  # fmt: skip
    values = {key: value for key, value in given.items() if value is not None}
    return watch(_where(args), args.box, values, args.name, as_json=args.json)


def watch(
    where: Paths,
    box: str,
    values: Mapping[str, Value],
    name: str | None = None,
    *,
    as_json: bool = False,
    out: Out = print,
) -> int:
    """Write down a run that already goes on, so that it is watched from now on.

    Args:
        values: ``log``, ``checkpoints``, ``pid``, ``session``; at least one.

    Raises:
        Failure: there is no such box, a value is not valid, or nothing says what to watch.
    """
    if not values:
        raise Failure(
            "Nothing says what to watch.",
            do=f"Give --log, --checkpoints, --pid or --session; `rgt probe {safe(box)}` lists what runs.",
            exit=Exit.USAGE,
            code="nothing-to-watch",
        )
    taken = {run.name for run in settings.load(where.fleet_file).runs}
    chosen = name or unused(f"{box}.{run_word(values)}", taken)
    fleet_file.add_run(where.fleet_file, chosen, {"box": box, **values})
    record = {"name": chosen, "box": box, **values}
    _report(f"Watching {chosen} on {box}. `rgt logs {chosen} -f` follows it.", record, as_json, out)
    return Exit.FINE


def _kind(where: Paths, name: str) -> str:
    """``box`` or ``run``; boxes go first. Also entries that are wrong can be named: they may be removed."""
    found = fleet_file.names(where.fleet_file)
    if name in found.instances:
        return "box"
    if name in found.runs:
        return "run"
    raise Failure(
        f"There is no box or run {safe(name, 80)} in {where.fleet_file}.",
        do="`rgt status` lists the names.",
        exit=Exit.USAGE,
        code="unknown-name",
    )


def _names(where: Paths) -> set[str]:
    return set(fleet_file.names(where.fleet_file).instances)


def _where(args: argparse.Namespace) -> Paths:
    """The operator's files, for a verb that changes them. Raises Failure in read-only mode."""
    where = paths()
    if getattr(args, "read_only", False) or settings.load(where.fleet_file).settings.read_only:
        raise Failure(
            "This is read-only mode.",
            means="Nothing was changed.",
            do=f"Leave --read-only out, or take read_only out of {where.fleet_file}.",
            code="read-only",
        )
    return where


def _report(sentence: str, record: Mapping[str, object], as_json: bool, out: Out) -> None:
    out(json.dumps(record, ensure_ascii=False, default=str) if as_json else str(safe(sentence)))


def _aside(sentence: str) -> None:
    print(sentence, file=sys.stderr)

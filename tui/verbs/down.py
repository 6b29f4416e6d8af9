"""`rgt stop` and `rgt down`: the end of a machine's bill, or of the machine.

A stop that loses nothing needs one look, the verb once, and two witnesses. Whatever loses data needs the
whole chain and a phrase typed on the terminal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.custody.by_hand import Word
    from tui.custody.journal import Journal, Standing
    from tui.custody.order import Newer, Order
    from tui.custody.proof import Chain
    from tui.custody.receipts import Ledger
    from tui.custody.records import Records
    from tui.fleet.paths import Paths
    from tui.model.custody import Approval, Outcome, Proof, Verb
    from tui.platforms.control import NoControlPlane
    from tui.verbs.box_look import BoxLook
    from tui.verbs.ending import Platform

_WORD_S = 900.0
_AFTER_IN_BOX_S = 8.0


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both verbs to the command line."""
    stop = sub.add_parser(
        "stop",
        help="end the bill and keep the disks, where the platform does that",
        description="Looks once whether the box is idle, stops it once, and looks whether it is stopped. "
        "Where a stop may lose data it needs the chain, as down does.",
    )
    stop.add_argument("name", metavar="NAME", help="a box, or a run on it")
    stop.add_argument(
        "--anyway", default="", metavar="REASON", help="stop it although it is busy or can't be reached"
    )
    stop.add_argument("--json", action="store_true", help="print the outcome as JSON, the rest on stderr")
    stop.set_defaults(run=lambda args: asyncio.run(_stop(args)))
    down = sub.add_parser(
        "down",
        help="destroy a box, once everything is proven safe and the phrase is typed",
        description="Prints the plan from the stored records, and goes on only with a valid proof and the "
        "phrase, typed on the terminal. No option, variable, pipe or file can supply the phrase.",
    )
    down.add_argument("name", metavar="NAME", help="a run, or a box with one run")
    down.add_argument("--json", action="store_true", help="print the outcome as JSON, the rest on stderr")
    down.set_defaults(run=lambda args: asyncio.run(_down(args, "destroy")))


async def _stop(args: argparse.Namespace) -> int:
    from tui.custody.order import Order
    from tui.verbs.box_look import BoxLook
    from tui.verbs.ending import changing, instance_named, known_victim, platform_of

    where = changing(args)
    instance = instance_named(args.name, where)
    platform = platform_of(instance, "stop", where)
    if platform.loses:
        _say(args, [f"A stop of {instance.name} may lose data, so it takes the chain, as rgt down does."])
        return await _down(args, "stop")
    _say(args, platform.stop_plan(time.time()))
    order = Order(victim=known_victim(instance, where), verb="stop", loses=False, anyway=args.anyway)
    return await _end(args, where, platform, order, BoxLook(where, instance), lambda proof: ())


async def _down(args: argparse.Namespace, verb: Verb) -> int:
    from tui.custody.order import Order
    from tui.custody.statement import copy_evidence
    from tui.custody.stored import missing, stored_chain, superseded
    from tui.verbs.box_look import BoxLook
    from tui.verbs.ending import changing, known_victim, platform_of
    from tui.verbs.errand import errand

    where = changing(args)
    task = errand(args.name, where)
    platform = platform_of(task.instance, verb, where)
    order = Order(victim=known_victim(task.instance, where), verb=verb)
    newer: Newer = partial(superseded, task.records)
    begun = _begun(where, order)
    if begun is not None:
        order = replace(order, proof=_proof_used(begun, task.records))
        return await _end(args, where, platform, order, BoxLook(where, task.instance), newer)
    chain = stored_chain(task.records)
    if chain is None:
        raise _steps_missing(missing(task.records), task.spec.name)
    proof = _proof(args, where, platform, order, chain)
    approval = _approved(args, where, proof, chain) if proof else None
    if proof is None or approval is None:
        return Exit.ATTENTION
    task.records.save(proof)
    task.records.save(approval)
    evidence = (copy_evidence(chain.digests, chain.copied, chain.readback),)
    order = replace(order, roster=chain.roster, proof=proof, approval=approval, evidence=evidence)
    look = BoxLook(where, task.instance, task, chain.roster)
    return await _end(args, where, platform, order, look, newer)


_STEPS = {
    "roster": "rgt roster {}",
    "digests": "rgt digest {}",
    "copied": "rgt pull {} --to DEST",
    "readback": "rgt readback {}",
    "load": "rgt verify {}",
    "metrics": "rgt verify {}",
}


def _steps_missing(names: tuple[str, ...], run: str) -> Failure:
    words = " · ".join(dict.fromkeys(_STEPS[name].format(run) for name in names))
    return Failure(
        f"{run} is not proven safe: {', '.join(names)} not done yet.",
        means="Nothing was done.",
        do=f"Next: {words}",
        code="step-missing",
    )


def _begun(where: Paths, order: Order) -> Standing | None:
    """Where it stands, if it was begun and is settled or waits to be; then it goes on without a new proof."""
    from tui.custody.journal import journal_path, peek, stand

    path = journal_path(where, order.victim)
    if not path.exists():
        return None
    entries = peek(path)
    standing = stand(entries, order.verb)
    ended = stand(entries, "destroy").settled is not None
    return standing if ended or standing.sent is not None else None


def _proof_used(begun: Standing, records: Records) -> Proof | None:
    """The proof that it was begun with, for the receipt of its end."""
    from tui.model.custody import Proof

    digest = begun.sent.data.get("proof") if begun.sent else None
    return records.find(Proof, digest) if isinstance(digest, str) else None


def _proof(
    args: argparse.Namespace, where: Paths, platform: Platform, order: Order, chain: Chain
) -> Proof | None:
    """The proof from the stored chain; what stands against it is told."""
    from tui.custody import hold
    from tui.custody.proof import make_proof
    from tui.custody.receipts import Ledger
    from tui.model.custody import Proof
    from tui.verbs.ending import money_of, refusal_lines

    now = time.time()
    answer = make_proof(
        chain.roster,
        chain.digests,
        chain.copied,
        chain.readback,
        chain.load,
        chain.metrics,
        order.victim,
        money_of(platform, now),
        now,
        verb=order.verb,
    )
    against = answer if not isinstance(answer, Proof) else ()
    against += hold.against(Ledger(where.receipts).report(), order.victim)
    if against or not isinstance(answer, Proof):
        _say(args, [f"{order.verb} {order.victim.name}: REFUSED; nothing was done", *refusal_lines(against)])
        if args.json:
            print(
                json.dumps({"kind": "refused", "refusals": [one.model_dump() for one in against]}, indent=1)
            )
        return None
    return answer


def _approved(args: argparse.Namespace, where: Paths, proof: Proof, chain: Chain) -> Approval | None:
    """The plan, and the phrase from the keyboard. Raises Failure (exit 4) where there is no terminal."""
    from tui.custody.approval import approve, new_nonce, phrase, summary
    from tui.custody.keyboard import read_line, require_terminal
    from tui.model.custody import Approval
    from tui.verbs.ending import refusal_lines

    _say(args, (safe(f"  {title:<17} {value}") for title, value in summary(proof, chain.copied)))
    _say(args, (safe(f"  gap: {g.code}: {g.detail} {g.reason}".rstrip()) for g in proof.gaps))
    require_terminal()
    nonce = new_nonce()
    typed = read_line(f"Type this, and Enter, to go on:\n  {phrase(proof)}\n> ", 600.0)
    answer = approve(proof, typed, time.time(), nonce=nonce)
    if isinstance(answer, Approval):
        return answer
    _say(args, ["Nothing was done.", *refusal_lines((answer,))])
    return None


async def _end(
    args: argparse.Namespace, where: Paths, platform: Platform, order: Order, look: BoxLook, newer: Newer
) -> int:
    """Carry the order out, or go on with it, and tell what became of it."""
    from tui.custody.journal import Journal, journal_path
    from tui.custody.outcome import Ending
    from tui.custody.receipts import Ledger
    from tui.platforms.control import NoControlPlane
    from tui.verbs.ending import control_of, exit_of, outcome_lines

    control = control_of(platform, where)
    ledger = Ledger(where.receipts)
    with Journal.open(journal_path(where, order.victim), time.time) as journal:
        if isinstance(control, NoControlPlane):
            outcome = await _by_hand(args, journal, ledger, control, order, look, newer)
        else:
            told: Callable[[str], None] = lambda line: _say(args, [line])  # noqa: E731
            ending = Ending(journal, ledger, control, look, newer, clock=time.time, told=told)
            outcome = await ending.carry_out(order)
    if args.json:
        print(json.dumps({"digest": outcome.digest, **outcome.model_dump(mode="python")}, indent=1))
    else:
        _say(args, outcome_lines(outcome))
    return exit_of(outcome)


async def _by_hand(
    args: argparse.Namespace,
    journal: Journal,
    ledger: Ledger,
    plane: NoControlPlane,
    order: Order,
    look: BoxLook,
    newer: Newer,
) -> Outcome:
    """Where nobody but the operator can see the machine: begin, then ask for his word, now or next time."""
    from tui.custody.by_hand import attest, begin
    from tui.verbs.ending import outcome_lines

    command = plane.in_box if order.verb == "stop" else None
    in_box = partial(look.in_box, command) if command else None
    outcome = await begin(journal, ledger, plane, order, look, newer, clock=time.time, in_box=in_box)
    if journal.standing(order.verb).sent is None:
        return outcome
    _say(args, outcome_lines(outcome))
    if command:
        await asyncio.sleep(_AFTER_IN_BOX_S)
    ssh = (await look()).ssh
    _say(args, [safe(f"SSH says: {ssh}. That is a hint, not proof.")])
    word = _ask_word(order.verb)
    if word is None:
        _say(args, [f"Look at the console, then say it here: rgt {args.verb} {args.name}"])
        return outcome
    return attest(journal, ledger, order, word, ssh, clock=time.time)


def _ask_word(verb: Verb) -> Word | None:
    """What the operator says the console shows; None where nobody could be asked."""
    from tui.custody.keyboard import read_line

    done: Word = "gone" if verb == "destroy" else "stopped"
    words: dict[str, Word] = {done: done, "there": "there"}
    try:
        typed = read_line(f"What does the console show? {done}, there, or unsure: ", _WORD_S)
    except Failure as failure:
        if failure.code in ("no-terminal", "no-answer"):
            return None
        raise
    return words.get(typed.strip(), "unsure")


def _say(args: argparse.Namespace, lines: Iterable[str]) -> None:
    """Narration; beside JSON it goes to stderr."""
    for line in lines:
        print(line, file=sys.stderr if args.json else sys.stdout, flush=True)

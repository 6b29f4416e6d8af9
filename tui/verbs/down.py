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
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.custody.by_hand import Word
    from tui.custody.errand import Errand
    from tui.custody.proof import Chain
    from tui.fleet.paths import Paths
    from tui.model.custody import Approval, Outcome, Proof, Verb
    from tui.verbs.wiring import Dialer
    from tui.workers.end import End

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
    from tui.custody.provider import platform_of
    from tui.verbs.ending import changing, instance_named
    from tui.workers.end import stop_end

    where = changing(args)
    instance = instance_named(args.name, where)
    platform = platform_of(instance, "stop", where)
    if platform.loses:
        _say(args, [f"A stop of {instance.name} may lose data, so it takes the chain, as rgt down does."])
        return await _down(args, "stop")
    _say(args, platform.stop_plan(time.time()))
    return await _end(args, stop_end(where, platform, _dialer(where), args.anyway))


async def _down(args: argparse.Namespace, verb: Verb) -> int:
    from tui.custody.errand import errand
    from tui.custody.provider import platform_of
    from tui.verbs.ending import changing
    from tui.workers.end import approved, chain_end, whole_chain

    where = changing(args)
    task = errand(args.name, where)
    end = chain_end(task, platform_of(task.instance, verb, where), _dialer(where))
    if end.standing is not None:
        return await _end(args, end)
    chain = whole_chain(task)
    proof = await _proof(args, end, task, chain)
    approval = _approved(args, proof, chain) if proof else None
    if proof is None or approval is None:
        return Exit.ATTENTION
    return await _end(args, approved(end, task, chain, proof, approval))


def _dialer(where: Paths) -> Dialer:
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer

    return dialer(where, asker=TerminalAsker())


async def _proof(args: argparse.Namespace, end: End, task: Errand, chain: Chain) -> Proof | None:
    """The proof from the stored chain; what stands against it, or against the copy now, is told."""
    from tui.model.custody import Proof
    from tui.verbs.ending import refusal_lines
    from tui.workers.end import copy_against, prove

    answer = prove(end, chain, task.folder)
    if isinstance(answer, Proof):
        answer = await copy_against(end, task, chain) or answer
    if isinstance(answer, Proof):
        return answer
    order = end.order
    _say(args, [f"{order.verb} {order.victim.name}: REFUSED; nothing was done", *refusal_lines(answer)])
    if args.json:
        print(json.dumps({"kind": "refused", "refusals": [one.model_dump() for one in answer]}, indent=1))
    return None


def _approved(args: argparse.Namespace, proof: Proof, chain: Chain) -> Approval | None:
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


async def _end(args: argparse.Namespace, end: End) -> int:
    """Carry the order out, or go on with it, and tell what became of it."""
    from tui.verbs.ending import exit_of, outcome_lines

    outcome = await end.carry_out(lambda line: _say(args, [line]))
    if end.waits_for_word:
        outcome = await _by_hand(args, end, outcome)
    if args.json:
        print(json.dumps({"digest": outcome.digest, **outcome.model_dump(mode="python")}, indent=1))
    else:
        _say(args, outcome_lines(outcome))
    return exit_of(outcome)


async def _by_hand(args: argparse.Namespace, end: End, outcome: Outcome) -> Outcome:
    """Where nobody but the operator can see the machine: ask for his word, now or next time."""
    from tui.verbs.ending import outcome_lines

    _say(args, outcome_lines(outcome))
    if end.by_hand is not None and end.in_box(end.by_hand):
        await asyncio.sleep(_AFTER_IN_BOX_S)
    ssh = (await end.look()).ssh
    _say(args, [safe(f"SSH says: {ssh}. That is a hint, not proof.")])
    word = _ask_word(end.order.verb)
    if word is None:
        _say(args, [f"Look at the console, then say it here: rgt {args.verb} {args.name}"])
        return outcome
    return end.attest(word, ssh)


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

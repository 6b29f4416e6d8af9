"""The end of a machine whose platform cannot be asked: the operator acts, looks and gives his word.

His word is recorded as that and never as proof. Until it is given the machine counts as running and billing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui.box.local import on_this_computer
from tui.box.transport import LinkLost, Script, Transport
from tui.custody.codes import refusal
from tui.custody.journal import Entry, Journal, peek, stand
from tui.custody.moments import moment
from tui.custody.order import Before, Newer, Order, box_gate, gates, identified_gate
from tui.custody.outcome import complete, settle
from tui.custody.receipts import Ledger
from tui.fleet.paths import Paths
from tui.model.custody import Moment, Outcome, Refusal, Verb, Victim, Witness
from tui.model.failure import Failure
from tui.platforms.control import NoControlPlane

Word = Literal["gone", "stopped", "there", "unsure"]
"""What the operator says the console shows."""

# The node's own token lies in the environment of process 1. It becomes a variable, never an argument.
_MATPOOL = r"""
told=$(tr '\0' '\n' </proc/1/environ | sed -n 's/^MATCLOUD_CANCELTOKEN=//p' | head -n 1)
[ -n "$told" ] || { echo 'process 1 has no MATCLOUD_CANCELTOKEN' >&2; exit 78; }
MATCLOUD_CANCELTOKEN=$told
export MATCLOUD_CANCELTOKEN
exec /public/script/matncli node cancel -url https://matpool.com/api/public/node
"""

IN_BOX = {
    "shutdown": Script("exec shutdown", why="stop the box from inside"),
    "poweroff": Script("exec poweroff", why="stop the box from inside"),
    "sudo poweroff": Script("exec sudo -n poweroff", why="stop the box from inside"),
    "featurize instance release": Script(
        "exec featurize instance release", why="give the instance back from inside"
    ),
    'export $(tr "\\0" "\\n" </proc/1/environ | grep MATCLOUD_CANCELTOKEN) && '
    "/public/script/matncli node cancel -url https://matpool.com/api/public/node": Script(
        _MATPOOL, why="give the node back from inside"
    ),
}
"""Commands of profiles, as they stand there, that rgt runs itself. Others are shown, to be typed by hand."""


async def run_in_box(transport: Transport, command: str, timeout: float = 20.0) -> str:
    """Run a command of `IN_BOX` on the box; what came of it, in words. It may cut the link it came by.

    Nothing is sent to a box that runs on this computer: what stops it from inside would stop the operator's
    own machine.
    """
    try:
        if await on_this_computer(transport):
            return f"{command} was not sent: the box runs on this computer"
    except (LinkLost, TimeoutError):
        return f"{command} was not sent: the box did not say which computer it is"
    try:
        done = await transport.run(IN_BOX[command], timeout=timeout)
    except LinkLost:
        return f"the link ended with {command}"
    except TimeoutError:
        return f"{command} did not answer"
    return f"{command} ended with {done.exit}"


async def begin(
    journal: Journal,
    ledger: Ledger,
    plane: NoControlPlane,
    order: Order,
    before: Callable[[], Awaitable[Before]],
    newer: Newer,
    *,
    clock: Callable[[], float],
    in_box: Callable[[], Awaitable[str]] | None = None,
) -> Outcome:
    """Check everything, send the verb in the box where that is possible, and ask for the operator's word.

    Args:
        before: takes the one look at the box.
        newer: says whether a step of a proof's chain was made again since.
        in_box: sends the verb on the box itself; None: the operator does it at the console.

    Raises:
        Failure: journal or ledger could not be written.
    """
    settled = complete(journal, ledger, order)
    if settled is not None:
        return settled
    standing = journal.standing(order.verb)
    if standing.sent is not None:
        return _waiting(plane, order, f"Begun at {standing.sent.at}; your word is missing.", clock())
    against = identified_gate(order) + gates(order, ledger.report(), newer, standing.spent, clock())
    if against:
        return _refused(order, against, clock())
    look = await before()
    against, gaps = box_gate(order, look)
    if in_box is not None and look.own_computer:
        against = (*against, refusal("own-computer", f"{order.victim.name} runs on this computer."))
    journal.add(
        "preflight",
        {"verb": order.verb, "passed": not (against or gaps), "roster": look.roster, "ssh": look.ssh[:400]},
    )
    against = against or gates(order, ledger.report(), newer, standing.spent, clock())
    if against:
        return _refused(order, against, clock())
    journal.add(
        "sending",
        {
            "verb": order.verb,
            "by_hand": True,
            "victim": order.victim.model_dump(mode="python"),
            "proof": order.proof.digest if order.proof else None,
            "nonce": order.approval.nonce if order.approval else None,
        },
    )
    answer = "You do it." if in_box is None else await _words(in_box)
    journal.add("answered", {"verb": order.verb, "refused": False, "answer": answer[:400]})
    waiting = _waiting(plane, order, answer, clock()).model_copy(update={"gaps": gaps})
    return settle(journal, ledger, order, waiting)


async def _words(in_box: Callable[[], Awaitable[str]]) -> str:
    """What came of the verb in the box. That it could not be reached any more is an answer, too."""
    try:
        return await in_box()
    except Failure as failure:
        return failure.what


def attest(
    journal: Journal, ledger: Ledger, order: Order, word: Word, ssh: str, *, clock: Callable[[], float]
) -> Outcome:
    """Record what the operator says the console shows, beside what SSH said last.

    Args:
        word: ``unsure`` and ``there`` end nothing; the reminder comes back.
        ssh: the last answer of the box or of the way to it, in words.

    Raises:
        Failure: journal or ledger could not be written.
    """
    settled = complete(journal, ledger, order)
    if settled is not None:
        return settled
    now = moment(clock())
    wanted = "gone" if order.verb == "destroy" else "stopped"
    done = word == wanted
    begun = journal.standing(order.verb).sent
    journal.add("word", {"verb": order.verb, "said": word})
    operator = Witness(
        who="operator",
        said="unknown" if word == "unsure" else word,
        detail="what the console shows, by the operator's word",
        at=now,
    )
    box = Witness(who="ssh", said="unknown", detail=ssh[:400], at=now)
    story = f"Begun at {begun.at}." if begun else "It was not ended by rgt."
    outcome = Outcome(
        approval=None,
        victim=order.victim,
        verb=order.verb,
        kind="attested" if done else "unproven",
        witnesses=(operator, box),
        detail=f"By your word it is {wanted}. {story}" if done else f"By your word it is not {wanted} yet.",
        check_by_hand="" if done else f"Look at the console again: is it {wanted}, and has billing ended?",
        finished_at=now,
    )
    return settle(journal, ledger, order, outcome)


def _waiting(plane: NoControlPlane, order: Order, detail: str, now: float) -> Outcome:
    wanted = "gone" if order.verb == "destroy" else "stopped"
    return Outcome(
        approval=order.approval.digest if order.approval else None,
        victim=order.victim,
        verb=order.verb,
        kind="unproven",
        witnesses=(),
        detail=f"{detail} {plane.why}, so nobody but you can see whether it is {wanted}.",
        check_by_hand=f"{plane.console} Then look whether it is {wanted}, and say so here.",
        finished_at=moment(now),
    )


def _refused(order: Order, refusals: tuple[Refusal, ...], now: float) -> Outcome:
    return Outcome(
        approval=order.approval.digest if order.approval else None,
        victim=order.victim,
        verb=order.verb,
        kind="refused",
        witnesses=(),
        detail="Nothing was sent.",
        refusals=refusals,
        finished_at=moment(now),
    )


@dataclass(frozen=True, slots=True)
class Reminder:
    """A verb that was begun and whose end nobody has seen or told.

    Attributes:
        by_hand: the operator's word is what is missing; otherwise another look is.
    """

    victim: Victim
    verb: Verb
    since: Moment
    by_hand: bool


def reminders(where: Paths) -> tuple[Reminder, ...]:
    """Everything that was begun and is not settled, oldest first. It only reads, and takes no lock.

    Raises:
        Failure: a journal is damaged; then it can't be told.
    """
    folder = where.state / "teardown"
    found = [one for path in sorted(folder.glob("*.jsonl")) for one in _open_ends(path)]
    return tuple(sorted(found, key=lambda one: one.since))


def settled(where: Paths, verb: Verb) -> tuple[tuple[Victim, Outcome], ...]:
    """Every machine for which `verb` is settled, with its outcome. It only reads, and takes no lock.

    Raises:
        Failure: a journal is damaged; then it can't be told.
    """
    found: list[tuple[Victim, Outcome]] = []
    for path in sorted((where.state / "teardown").glob("*.jsonl")):
        outcome = stand(peek(path), verb).settled
        if outcome is not None:
            found.append((outcome.victim, outcome))
    return tuple(found)


def _open_ends(path: Path) -> list[Reminder]:
    entries = peek(path)
    ends: list[Reminder] = []
    if stand(entries, "destroy").settled is not None:
        return ends
    verbs: tuple[Verb, ...] = ("stop", "destroy")
    for verb in verbs:
        sent = stand(entries, verb).sent
        if sent is not None:
            ends.append(Reminder(_victim(sent), verb, sent.at, sent.data.get("by_hand") is True))
    return ends


def _victim(entry: Entry) -> Victim:
    try:
        return Victim.model_validate(entry.data["victim"])
    except (KeyError, ValueError) as error:
        raise Failure("A journal names no machine.", code="journal-damaged") from error

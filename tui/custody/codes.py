"""Every code that a step of the chain may refuse or warn with: what it means and what clears it.

One table, with the codes of files (`tui.checkpoints.codes`) in it; `rgt receipts --codes` prints it. To add
codes: write a table of the step below (`_ROSTER` shows the form), put it into `CODES`, and make the records
with `refusal` and `gap`, which know the rest from here. A code is stable: it is never renamed and never given
a second meaning, since receipts hold it for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tui.checkpoints.codes import CODES as FILES
from tui.model.custody import Gap, Refusal


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the table.

    Attributes:
        kind: a ``refusal`` stops the chain; a ``gap`` warns and is recorded.
        means: what it says about the files or the box, in one sentence.
        clears: what the operator can do, in one sentence.
    """

    kind: Literal["refusal", "gap"]
    means: str
    clears: str


def _refusal(means: str, clears: str) -> Code:
    return Code("refusal", means, clears)


def _gap(means: str, clears: str) -> Code:
    return Code("gap", means, clears)


_ROSTER = {
    "roster-empty": _refusal(
        "No artifact was found.", "Name them in the job file's [custody] table, or give the right --root."
    ),
    "roster-count": _refusal(
        "The run declares another number of artifacts than there are.",
        "Find the missing ones on the box, or correct the declared number.",
    ),
    "roster-missing": _refusal(
        "A file that the run must have is not there.",
        "Find or make it on the box, then take the roster again.",
    ),
    "root-missing": _refusal("The folder is not on the box.", "Give the right one with --root."),
    "root-unreadable": _refusal(
        "The folder can't be listed whole.", "Let this login read it, then take the roster again."
    ),
    "generation-incomplete": _refusal(
        "A checkpoint generation lacks files, and no complete one is there in its place.",
        "Let the save finish, restore the missing files, or name what shall count in [custody].",
    ),
    "layout-damaged": _refusal(
        "A file that tells what belongs together can't be read.", "Look at the file on the box; save again."
    ),
    "leaves-tree": _refusal(
        "A name or a link leads out of the folder.",
        "Replace the link by the file itself, or name that folder as its own artifact.",
    ),
    "link-dangling": _refusal(
        "A link leads to nothing.", "Restore its target or remove the link on the box."
    ),
    "not-a-file": _refusal(
        "A device, pipe or socket can't be an artifact.", "Take it out of [custody], or remove it on the box."
    ),
    "unclassified": _refusal(
        "Files outside the roster would be destroyed, and nobody has decided about them.",
        "Decide keep or scrap for each group.",
    ),
    "kept-not-on-roster": _refusal(
        "A group that shall be kept is not among the artifacts.",
        "Name it in [custody] or copy it to a place that survives, then take the roster again.",
    ),
    "live-writer": _refusal(
        "Something still writes here.", "Wait for it to end or stop it, then take the roster again."
    ),
    "tier-unlisted": _refusal(
        "A place that would be destroyed could not be listed.",
        "Let this login read it, or decide to scrap what it can't read.",
    ),
    "tier-partly-listed": _gap(
        "Parts of a place that would be destroyed could not be listed; the operator decided to go on.",
        "Log in as a user that may read them.",
    ),
    "survival-unknown": _gap(
        "Nobody can say whether this place survives; it is treated as destroyed.",
        "Ask whoever rents it out.",
    ),
    "generation-skipped": _gap(
        "An incomplete checkpoint generation is left out; a complete one is there.", "Look at what it lacks."
    ),
    "links-not-copied": _gap(
        "Links inside the folder are not copied; what they point at is, where it is on the roster.",
        "Nothing to do, or name the target in [custody].",
    ),
    "not-closed": _gap(
        "The run was not closed out: its files are taken as they lie, not from a sealed export.",
        "Where it is over, rgt close RUN, then take the roster again.",
    ),
    "mount-inside": _gap(
        "Another filesystem is mounted inside the folder; it was not entered.",
        "Take a roster of its own for it with --root.",
    ),
    "writers-not-seen": _gap(
        "This login can't see who has files open; only two looks at the sizes were possible.",
        "Log in as the user that trains, or as root.",
    ),
    "travels-in-tar": _gap(
        "A portable folder can't carry this name; the file travels in a tar inside it.", "Nothing to do."
    ),
    "coarse-times": _gap(
        "The box tells times to the second only.",
        "Nothing to do: what changed in that second is hashed again.",
    ),
    "system-not-listed": _gap(
        "Folders of the operating system were counted and searched for checkpoints, not listed.",
        "Look there by hand if you keep results in them.",
    ),
}

_DIGEST = {
    "changed-while-hashed": _refusal(
        "A file changed while it was hashed, again and again.",
        "Wait for its writer to end, then take the roster and hash again.",
    ),
    "changed-since-roster": _refusal(
        "A file is not what the roster saw.", "Take the roster again, then hash again."
    ),
    "gone-since-roster": _refusal("A file of the roster is gone.", "Restore it or take the roster again."),
    "unreadable": _refusal(
        "A file can't be read.", "Let this login read it; if the disk is bad, copy it off."
    ),
    "no-hash-tool": _refusal(
        "The box has nothing that computes SHA-256 rightly.", "Install openssl, coreutils or python3 on it."
    ),
}

_ENDING = {
    "chain-broken": _refusal(
        "A report was not made from the one before it.", "Repeat the chain from the step that is named."
    ),
    "files-differ": _refusal(
        "A report is not about exactly the artifacts of the roster.", "Repeat that step."
    ),
    "other-machine": _refusal(
        "This is not the machine that the evidence is about.",
        "Look which box was meant; repeat the chain there.",
    ),
    "own-computer": _refusal(
        "What stops this box from inside would stop the operator's own computer.",
        "End the container or login it lives in by its own means.",
    ),
    "machine-unidentified": _refusal(
        "Neither the platform's id nor a host key tells which machine is meant.",
        "Set instance_id with `rgt edit`, or connect once so that its host key is recorded.",
    ),
    "copy-on-victim": _refusal(
        "The durable copy lies where the verb destroys it.",
        "Copy it to another place, then read it back there.",
    ),
    "read-by-producer": _refusal(
        "The copy was read back on the machine that made it.", "Read it back on this computer or another box."
    ),
    "readback-inexact": _refusal(
        "The copy that was read back is not the roster.", "Copy again what differs, then read it back."
    ),
    "checkpoint-refused": _refusal(
        "A checkpoint does not load, or is not what its name says.",
        "See its finding; copy it again, or keep the box and save it anew.",
    ),
    "checkpoint-not-loaded": _refusal(
        "A checkpoint of the roster was not tried.", "Repeat the verification of the copy."
    ),
    "metric-wrong": _refusal(
        "A reported figure is not what the predictions give.",
        "Correct the figure or its definition; recompute.",
    ),
    "clock-went-back": _refusal(
        "Evidence or an approval is dated later than now.", "Set this computer's clock, then repeat the step."
    ),
    "proof-missing": _refusal("There is no proof that nothing is lost.", "Walk the chain: `rgt down NAME`."),
    "proof-expired": _refusal("The proof is too old to act on.", "Make it anew: `rgt down NAME`."),
    "proof-other": _refusal(
        "The proof is for another machine, verb or roster.", "Make one for this act: `rgt down NAME`."
    ),
    "approval-missing": _refusal("The operator has not approved this act.", "Type the phrase that is shown."),
    "approval-other": _refusal("The approval is for another act.", "Type the phrase that is shown now."),
    "approval-expired": _refusal("The approval came too early or too late.", "Type the phrase again."),
    "approval-used": _refusal(
        "The approval was used already.", "Type the phrase again for a further attempt."
    ),
    "phrase-wrong": _refusal(
        "What was typed is not the phrase.", "Type it by hand, exactly as it is shown, and nothing else."
    ),
    "held": _refusal("The operator holds this machine.", "`rgt unhold NAME` lets it go."),
    "holds-unknown": _refusal(
        "The ledger is damaged, so it can't be told whether the operator holds this machine.",
        "`rgt receipts` names the damage; a new `rgt hold` or `rgt unhold` decides.",
    ),
    "truth-unknown": _refusal(
        "The platform does not tell surely what the machine is doing.",
        "Look at its console and at the credential; try again.",
    ),
    "other-account": _refusal(
        "The credential belongs to another account than the machine.", "Use the credential of its account."
    ),
    "box-unknown": _refusal(
        "The box could not be looked at just before the act, so nobody knows that it is idle.",
        "Reach it and try again; where a stop loses nothing, --anyway REASON goes on.",
    ),
    "box-busy": _refusal(
        "Something still runs or writes on the box.",
        "Let it end; where a stop loses nothing, --anyway REASON goes on.",
    ),
    "changed-since-proof": _refusal(
        "The box is not what the proof saw.", "Walk the chain again from the roster: `rgt down NAME`."
    ),
    "verb-refused": _refusal(
        "The platform refused the act.", "See its reason; try again or use its console."
    ),
    "already-ended": _refusal("This machine has ended; that is settled.", "Nothing is left to do."),
    "same-device": _gap(
        "The copy and its reader share one disk.", "Read it back on another computer, if there is one."
    ),
    "cache-not-proven-cold": _gap(
        "It can't be shown that the copy was read from the disk rather than from memory.", "Nothing to do."
    ),
    "metric-not-recomputed": _gap(
        "A reported figure could not be recomputed.", "Declare its definition and predictions in [custody]."
    ),
    "went-on-anyway": _gap(
        "The operator went on without a look at the box, or although it was busy.", "Nothing to do."
    ),
}

_COPY = {
    "digests-refused": _refusal(
        "The SHA-256 step itself does not pass.", "Clear what it refuses, then `rgt digest` again."
    ),
    "source-changed": _refusal(
        "A file is not what was hashed any more.", "Wait for its writer to end, then `rgt digest` again."
    ),
    "source-gone": _refusal("A file that was hashed is gone.", "Restore it, or take the roster again."),
    "source-unreadable": _refusal(
        "A file can't be read any more.", "Let this login read it; if the disk is bad, copy it off."
    ),
    "hash-differs": _refusal(
        "The bytes that came are not the bytes that were hashed.",
        "`rgt digest` again; if it comes back, distrust the disk of the box.",
    ),
    "store-differs": _refusal(
        "A file is not in the store as it was sent.", "Repeat the pull; distrust a store that does it again."
    ),
    "not-exact": _refusal(
        "Other files lie in the copy than were put there.",
        "Remove them there, or give another place with --to.",
    ),
    "sealed-differs": _refusal(
        "A finished copy of this name is there and has other bytes.",
        "Keep it for a look, and give another place with --to.",
    ),
    "direct-route-failed": _gap(
        "The way from box to box did not work; the bytes went through this computer.", "Nothing to do."
    ),
    "rclone-on-box-failed": _gap(
        "rclone of the box did not bring all of it; the rest went through this computer.",
        "See whether the remote of that name is the same on both.",
    ),
    "key-not-removed": _gap(
        "It could not be seen that the single-use key was removed from the target.",
        "Remove the line with its comment from ~/.ssh/authorized_keys there; it ends by itself in two days.",
    ),
}

_READBACK = {
    "copy-refused": _refusal(
        "The copy itself does not pass.", "Clear what it refuses, then `rgt pull` again."
    ),
    "readback-unreadable": _refusal(
        "A file of the copy can't be read.",
        "Look at the store; a copy that can't be read is none. Pull again.",
    ),
    "readback-changed": _refusal(
        "A restored file is not there any more, or has other bytes than when it was read back.",
        "`rgt readback` again, then `rgt verify`.",
    ),
    "readback-no-room": _refusal(
        "Not even the largest file fits where the copy is read back.",
        "Make room there, or read it back on another box with --on.",
    ),
    "copy-changed": _refusal(
        "The durable copy is not what was read back any more.",
        "Read it back again; where that is refused, copy the run again.",
    ),
    "copy-unseen": _refusal(
        "The store of the copy could not be asked whether it is still there.",
        "Make it reachable, or read the copy back again.",
    ),
    "readback-old": _refusal(
        "The copy was read back long ago, and its store can't show that it is unchanged since.",
        "Read it back again.",
    ),
    "restored-in-turns": _gap(
        "There was no room for the whole copy: its files were read back one after another.", "Nothing to do."
    ),
}

_JUDGING = {
    "loaded-on-box": _gap(
        "The checkpoints were loaded on the box that read the copy back, by its python.", "Nothing to do."
    ),
    "no-python-there": _gap(
        "The box that read the copy back has no python3, so no checkpoint was looked into.",
        "Install python3 with NumPy and torch there, or read the copy back on another computer.",
    ),
    "metrics-fetched": _gap(
        "The predictions were fetched from the box that read the copy back, by their SHA-256, and the "
        "figures recomputed on this computer.",
        "Nothing to do.",
    ),
}

_METRICS = {
    "population-incomplete": _refusal(
        "The predictions are not of exactly the declared samples, each of them once.",
        "Evaluate each sample once, without padding or dropping, and save the predictions again.",
    ),
    "predictions-unreadable": _refusal(
        "The predictions could not be read.",
        "Save them again as parquet, csv, jsonl, npz or safetensors, or install what the detail names.",
    ),
    "metric-not-reported": _refusal(
        "A declared metric is in no metrics file.", "Report it, or take it out of [[custody.metrics]]."
    ),
    "direction-contradicts": _refusal(
        "A metric is declared to be better in the direction in which it is worse.",
        "Correct its direction in [[custody.metrics]].",
    ),
    "evaluator-failed": _refusal(
        "The declared evaluator gave no figure.",
        "Run it by hand on a copy of the results and mend it, or take it out of [custody].",
    ),
    "population-not-declared": _gap(
        "Nothing declares the full set of samples.", "Declare ids or count in [[custody.predictions]]."
    ),
    "counts-contradict": _gap(
        "The metrics file gives several numbers of samples; none was used.",
        "Declare ids or count in [[custody.predictions]].",
    ),
    "list-not-compared": _gap(
        "A reported list is not one figure and was not compared.", "Report its last or best value by itself."
    ),
    "second-opinion-missing": _gap(
        "Figures were recomputed by one implementation alone.",
        "Install the second one: pip install 'remote-gpu-trainer[verify]'.",
    ),
}

_FILES = {
    code: Code("gap" if row.effect == "gap" else "refusal", f"{row.meaning}.", row.clears)
    for code, row in FILES.items()
}

CODES: Mapping[str, Code] = {
    **_FILES, **_ROSTER, **_DIGEST, **_COPY, **_READBACK, **_JUDGING, **_METRICS, **_ENDING,
}  # fmt: skip


def refusal(code: str, detail: str, path: str | None = None) -> Refusal:
    """A refusal with what clears it. Raises KeyError for a code that is not in the table."""
    row = CODES[code]
    assert row.kind == "refusal", code
    return Refusal(code=code, detail=detail, path=path, clears=row.clears)


def gap(code: str, detail: str, reason: str = "") -> Gap:
    """A gap to be recorded. Raises KeyError for a code that is not in the table."""
    assert CODES[code].kind == "gap", code
    return Gap(code=code, detail=detail, reason=reason)

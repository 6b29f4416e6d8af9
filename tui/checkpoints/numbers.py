"""What the numbers in a checkpoint do to its verdict."""

from __future__ import annotations

from dataclasses import replace

from tui.checkpoints.jailer import Ask, Jail, Told
from tui.checkpoints.judged import Judged, say
from tui.model.verdict import CheckpointVerdict, Problem, Values, Word

ALL_ZERO_FROM = 1024
"""Elements from which nothing but zeros is odd; a fresh adapter or a rank's empty share holds fewer."""


def with_numbers(judged: Judged, absolute: str, jail: Jail | None, *, sparse: bool = False) -> Judged:
    """Look at the numbers of a file whose structure is whole.

    Args:
        jail: None where nobody can look; the gap is told.
        sparse: parts of the file were never written.
    """
    verdict, contents = judged.verdict, judged.contents
    if contents is None or verdict.verdict in ("ignore", "corrupt", "unsafe"):
        return judged
    if jail is None:
        return _with_gaps(judged, (("values-not-checked", ""),))
    expanded = sum(span.length for span in contents.spans if span.packed)
    told = jail.look(
        Ask(
            absolute,
            (verdict.size or 0) + expanded,
            contents,
            load=judged.loadable,
            legacy=verdict.format == "torch_legacy" or contents.packed,
            scan=judged.unchecked,
        )
    )
    if told.crashed:
        return replace(judged, verdict=_changed(verdict, "suspicious", "load_crashed", told.crashed))
    gaps = told.gaps
    if contents.gap:
        gaps = (*gaps, ("values-not-checked", contents.gap))
    if told.values is not None and told.values.unread:
        gaps = (*gaps, ("file-changed", f"it ended inside {told.values.unread[0][:80]}"))
    found = verdict.model_copy(
        update={"values": told.values, "loaded": told.loaded, "confined": told.confined}
    )
    return _with_gaps(replace(judged, verdict=_judged(found, told, sparse=sparse)), gaps)


def _with_gaps(judged: Judged, gaps: tuple[tuple[str, str], ...]) -> Judged:
    more = tuple(Problem(code=code, path=judged.verdict.path, detail=detail) for code, detail in gaps)
    return replace(judged, problems=judged.problems + more)


def _judged(verdict: CheckpointVerdict, told: Told, *, sparse: bool) -> CheckpointVerdict:
    odd = _odd(told.values, verdict)
    if told.loaded is False and verdict.verdict in ("ok", "suspicious"):
        if "Weights only load failed" in told.refusal:  # a torch that lets in less than the one known here
            return _changed(verdict, "needs_allowlist", None, told.refusal)
        odd_too = f"{verdict.reason}; " if verdict.verdict == "suspicious" else ""
        return _changed(verdict, "corrupt", "does_not_load", odd_too + told.refusal)
    if odd is None:
        return verdict
    what, why = odd
    if verdict.verdict != "ok":
        return verdict.model_copy(update={"notes": (*verdict.notes, what)})
    if what == "zero_tail" and sparse:
        lost = verdict.model_copy(update={"kind": "sparse", "apparent": verdict.size})
        return _changed(lost, "corrupt", "preallocated", why)
    return _changed(verdict, "suspicious", what, why)


def _odd(values: Values | None, verdict: CheckpointVerdict) -> tuple[str, str] | None:
    """The gravest oddity among the numbers."""
    if values is None:
        return None
    where = f" in {', '.join(values.nonfinite_in[:3])}"
    if values.nan:
        return "nan", f"{values.nan}{where}"
    if values.nonfinite:
        return "inf", f"{values.nonfinite}{where}"
    if values.zero_tail:
        return "zero_tail", f"the last {values.zero_tail} bytes"
    if values.zero_pages:
        return "zero_pages", f"{values.zero_pages} bytes"
    if values.tensors and values.all_zero == values.tensors and values.elements >= ALL_ZERO_FROM:
        return "all_zero", f"{values.tensors} tensors"
    return None


def _changed(verdict: CheckpointVerdict, word: Word, what: str | None, why: str) -> CheckpointVerdict:
    """The same file under another word; what was found out about it stays."""
    said = say(verdict.path, verdict.kind, word, what, why)
    kept = {"verdict", "code", "reason", "incident", "subtype", "detail", "notes"}
    return verdict.model_copy(update=said.model_dump(include=kept))

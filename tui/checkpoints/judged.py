"""What is known of one file while it is judged: the verdict, the contents, and what was not checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tui.checkpoints.codes import CODES, code_for
from tui.checkpoints.contents import Contents
from tui.model.verdict import CheckpointVerdict, Problem, Word

_INCIDENTS: Mapping[str, str] = {
    "corrupt": "ckpt_corrupt",
    "needs_allowlist": "ckpt_unsafe",
    "unsafe": "ckpt_unsafe",
    "incomplete": "ckpt_incomplete",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """One judged file.

    Attributes:
        unchecked: nothing in the file can show damage inside a tensor; blocks of zeros are looked for.
        loadable: torch may be asked to load it.
    """

    verdict: CheckpointVerdict
    contents: Contents | None = None
    problems: tuple[Problem, ...] = ()
    unchecked: bool = False
    loadable: bool = False


def say(
    path: str, kind: str, word: Word, what: str | None = None, why: str = "", **more: Any
) -> CheckpointVerdict:
    """A verdict with its code, its incident and a reason.

    Args:
        what: the subtype of ``corrupt``, the detail of ``suspicious``, or what a code adds to another word.
        why: a sentence's second half: where exactly, or how much.
    """
    code = _code(word, what)
    meaning = CODES[code].meaning if code in CODES else ""
    fields: dict[str, Any] = {
        "incident": "loss_nan" if code in ("suspicious-nan", "suspicious-inf") else _INCIDENTS.get(word),
        "reason": f"{meaning}: {why}" if why and meaning else meaning or why,
    }
    if word == "corrupt":
        fields["subtype"] = what
    if word == "suspicious":
        fields["detail"] = what
        fields["notes"] = (what,)
    return CheckpointVerdict(path=path, kind=kind, verdict=word, code=code, **(fields | more))


def _code(word: Word, what: str | None) -> str:
    match word:
        case "ok" | "ignore":
            return word
        case "partial":
            return "partial-transfer"
        case "needs_allowlist":
            return "needs-allowlist"
        case "unsafe":
            return "path-escapes" if what == "path" else "unsafe-pickle"
        case "incomplete" if what == "not_readable":
            return "not-readable"
    return code_for(word, what)

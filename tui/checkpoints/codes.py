"""What can be wrong with a file, and what clears each: part of the one table in `tui.custody.codes`.

Codes are stable: receipts and scripts name them. `effect` says what a code does to the verdict on a folder:
``refuses`` it, leaves it ``incomplete`` (something is not known), or is a ``gap`` that is told and stops
nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Effect = Literal["refuses", "incomplete", "gap"]


@dataclass(frozen=True, slots=True)
class Code:
    """One code: what it does to the verdict, what it means, what clears it."""

    effect: Effect
    meaning: str
    clears: str


_AGAIN = "Fetch it again from where it is whole, or use the checkpoint before it."
_LOGIN = "Fetch it again, logged in."
_OLDER = "Finish the transfer, or use an older step."
_REMOVE = "Remove what does not belong, or save the checkpoint again."
_NEVER = "Never load it. Find out where it came from; get the weights as safetensors from a source you trust."
_RESAVE = "Save it with tensors and plain numbers only; or allow exactly these types, where you know them."
_RESAVE_OLD = "Load it on a machine you can lose, with an old torch, and save it again."
_EARLIER = "Go back to the last checkpoint without them."
_MEND = "Mend the manifest."
_INSTALL = "Install torch: pip install 'remote-gpu-trainer[verify]'"
_MANIFEST = "Give --manifest FILE."

_REFUSES: dict[str, tuple[str, str]] = {
    # damaged, or not what its name says
    "corrupt-empty": ("0 bytes", _AGAIN),
    "corrupt-zeros": ("right size, but nothing except zero bytes: it was never written", _AGAIN),
    "corrupt-truncated": ("the file ends before its content does", _AGAIN),
    "corrupt-preallocated": ("space was reserved and the end never written", _AGAIN),
    "corrupt-bitflip": ("bytes differ from what was saved", _AGAIN),
    "corrupt-zero-block": ("a block of it was lost and reads as zeros", _AGAIN),
    "corrupt-trailing": ("the file is longer than its header says", _AGAIN),
    "corrupt-bad-header": ("its header is damaged or contradicts itself", _AGAIN),
    "corrupt-bad-zip": ("its zip directory contradicts the file", _AGAIN),
    "corrupt-bad-pickle": ("its pickle is damaged or contradicts itself", _AGAIN),
    "corrupt-bad-index": ("the index of its parts cannot be read", "Fetch the index again."),
    "corrupt-bad-config": ("the configuration beside the weights cannot be read", "Fetch it again."),
    "corrupt-does-not-load": ("torch refuses to load it", _AGAIN),
    "corrupt-html": ("a web page under a checkpoint's name", _LOGIN),
    "corrupt-json": ("a server's answer under a checkpoint's name", _LOGIN),
    "corrupt-xml": ("an object store's answer in its place", "Fetch it again, with access rights."),
    "corrupt-text": ("plain text under a checkpoint's name", _AGAIN),
    "corrupt-lfs-pointer": ("a git-lfs pointer, not the file itself", "Run: git lfs pull"),
    "corrupt-annex-pointer": ("a git-annex pointer, not the file itself", "Run: git annex get"),
    "corrupt-wrong-format": ("another format than its name says", "Rename it, or fetch the right one."),
    "corrupt-not-torch": ("not written by torch.save", "Fetch the right file."),
    # loads only with more trust than it deserves
    "needs-allowlist": ("intact, but holds types that safe loading refuses", _RESAVE),
    "unsafe-pickle": ("would run foreign code when loaded", _NEVER),
    "path-escapes": ("an index points outside its folder", _NEVER),
    # loads, but something is odd
    "suspicious-nan": ("weights are not a number", _EARLIER),
    "suspicious-inf": ("weights are infinite", _EARLIER),
    "suspicious-all-zero": ("every number in it is zero", _AGAIN),
    "suspicious-zero-tail": ("its data ends in zeros that begin inside a tensor", _AGAIN),
    "suspicious-zero-pages": ("whole pages of zeros inside dense data", _AGAIN),
    "suspicious-data-before-zip": ("foreign bytes before the archive", _AGAIN),
    "suspicious-data-after-zip": ("foreign bytes after the archive", _AGAIN),
    "suspicious-data-after-end": ("foreign bytes after the last tensor", _AGAIN),
    "suspicious-data-after-pickle": ("foreign bytes after the pickle inside", _REMOVE),
    "suspicious-total-size": ("its index was made for other weights", "Save the index again."),
    "suspicious-torch-tar": (
        "the tar format of torch before 0.1.10, which safe loading refuses",
        _RESAVE_OLD,
    ),
    "suspicious-foreign-shard": ("a shard of another save lies beside it", _REMOVE),
    "suspicious-leaves-tree": ("a link leads out of the folder", "Put a copy in its place."),
    "suspicious-pickle-protocol": ("safe loading knows no such pickle", "Save with pickle_protocol=2."),
    "suspicious-too-many-parts": ("more parts than any trainer writes; not examined further", _REMOVE),
    "suspicious-huge-header": ("a header too large to be real; not examined further", _REMOVE),
    "suspicious-huge-pickle": ("a pickle too long to be examined whole", _REMOVE),
    "suspicious-zip-bomb": ("would expand to far more than the file", _REMOVE),
    "suspicious-load-crashed": ("the process that loaded it died", _AGAIN),
    # the files against the manifest
    "file-missing": ("is in the manifest and not in the folder", "Copy it."),
    "file-extra": ("is in the folder and not in the manifest", "Remove it, or list it."),
    "file-different": ("its SHA-256 is not the one of the manifest", _AGAIN),
    "manifest-line": ("a line of the manifest is not a SHA-256 and a path", _MEND),
    "manifest-escapes": ("the manifest names a path outside the folder", _MEND),
    "manifest-twice": ("the manifest gives a file two digests", _MEND),
    "bag-oxum": ("the bag counts other bytes or files than its payload has", _AGAIN),
    "manifest-empty": ("the manifest lists nothing", "Make it again from the producer's files."),
}

_INCOMPLETE: dict[str, tuple[str, str]] = {
    "incomplete-shard": ("a shard is missing", _OLDER),
    "incomplete-rank": ("a rank's file is missing", "Copy it from the node that wrote it."),
    "incomplete-index": ("the index is missing", "Copy the index from where the run saved it."),
    "incomplete-keys": ("a shard lacks a key that the index names", _AGAIN),
    "incomplete-weights": ("there are no weights in it", _OLDER),
    "incomplete-file": ("a file is missing that is written last", "Use an older step."),
    "incomplete-pointer": ("names a checkpoint that is not there", "Copy it, or use an older step."),
    "incomplete-folder": ("an empty folder, made before the save began", "Use an older step."),
    "incomplete-link": ("a link to nothing", "Copy what it pointed to."),
    "incomplete-series": ("no checkpoint of the series is usable", _AGAIN),
    "not-readable": ("could not be read here: nothing is known of it", "chmod u+r"),
    "partial-transfer": ("a transfer in progress or left over", "Wait for it to end, or finish it."),
    "file-changed": ("changed while it was read", "Wait until nobody writes."),
    "file-unreadable": ("could not be read", "Make it readable."),
    "file-lfs-pointer": ("a pointer of git-lfs or git-annex, not the file itself", "Run: git lfs pull"),
    "load-timed-out": ("loading did not end in time", "Verify again on an idle computer."),
    "metrics-unreadable": ("what the folder declares of its metrics is not valid", "Mend its custody.toml."),
    "nothing-judged": ("nothing here could be judged", "Name the right folder, or a manifest."),
    "too-many-files": ("more files than are looked at at once", "Name a deeper folder, or pack small ones."),
}

_GAPS: dict[str, tuple[str, str]] = {
    "no-manifest": (
        "nothing lists what must be there: only what is there was judged",
        "Give --manifest FILE; for a run, declare the counts in [custody].",
    ),
    "metrics-not-checked": ("no metric was recomputed", "See the reason beside it."),
    "no-checkpoint": ("there is no checkpoint", "Name the right folder."),
    "values-not-checked": ("the numbers were not looked at", _INSTALL),
    "not-loaded": ("torch did not try to load it", _INSTALL),
    "load-out-of-memory": ("loading needs more memory than is free", "Verify it on a larger computer."),
    "crc-not-recorded": ("saved without checksums: damage inside a tensor cannot show", _MANIFEST),
    "no-checksum": ("the format has no checksum: damage inside a tensor cannot show", _MANIFEST),
    "side-file-needs-allowlist": ("a trainer's state that safe loading refuses", "The weights load."),
    "format-not-judged": ("a checkpoint format that rgt cannot judge", "Load it with its own library."),
    "pickle-not-scanned": ("a pickle too long to be examined whole", "Do not unpickle it unseen."),
    "special-file": ("a pipe, socket or device: not opened", "Remove it."),
}

_GROUPS: tuple[tuple[Effect, dict[str, tuple[str, str]]], ...] = (
    ("refuses", _REFUSES),
    ("incomplete", _INCOMPLETE),
    ("gap", _GAPS),
)

CODES: dict[str, Code] = {
    code: Code(effect, *texts) for effect, group in _GROUPS for code, texts in group.items()
}


def code_for(verdict: str, what: str | None) -> str:
    """The code of a verdict and its subtype or detail, such as ``corrupt`` and ``zero_block``."""
    code = f"{verdict}-{what}".replace("_", "-") if what else verdict
    if code not in CODES:
        raise KeyError(code)
    return code

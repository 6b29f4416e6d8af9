"""What is said of a file that claims to be a checkpoint. Frozen; paths are kept byte-exactly.

A path is `os.fsdecode`d: bytes that are no UTF-8 stand in it as lone surrogates. Before one is shown it
passes `tui.model.text.safe`; before it is written as JSON it is escaped to ASCII.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

Word: TypeAlias = Literal[
    "ok", "corrupt", "needs_allowlist", "unsafe", "incomplete", "partial", "suspicious", "ignore"
]
"""``ok`` loads, nothing wrong found · ``corrupt`` damaged or not what its name says · ``needs_allowlist``
intact, but holds types that safe loading refuses · ``unsafe`` would run foreign code when unpickled ·
``incomplete`` a part is missing or could not be read · ``partial`` a transfer in progress or left over ·
``suspicious`` loads, but something is odd · ``ignore`` no checkpoint."""

Danger: TypeAlias = Literal["low", "medium", "high"]
"""What a foreign type can do: plain data, the code of a package, or anything at all."""

Acceptance: TypeAlias = Literal["accepted", "refused", "incomplete"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Values(_Frozen):
    """What the numbers of one checkpoint are like. Counts are of the whole file, names at most the first 20.

    Attributes:
        nonfinite: elements that are NaN or infinite; `nan` counts the NaN among them.
        masks: infinite elements that an attention mask or an initial bound explains; not in `nonfinite`.
        zero_tail: bytes of zeros at the end of the data, where they begin inside a tensor's row.
        zero_pages: bytes in whole pages of zeros inside data that is otherwise dense.
        unread: tensors the file ended in, or that could not be read.
    """

    tensors: int
    elements: int
    nonfinite: int = 0
    nan: int = 0
    masks: int = 0
    nonfinite_in: tuple[str, ...] = ()
    all_zero: int = 0
    all_zero_in: tuple[str, ...] = ()
    constant: int = 0
    constant_in: tuple[str, ...] = ()
    zero_tail: int = 0
    zero_pages: int = 0
    unread: tuple[str, ...] = ()


class CheckpointVerdict(_Frozen):
    """The verdict on one file, link or folder. Empty and None: does not apply, or could not be told.

    Attributes:
        path: relative to the folder that was examined, exact.
        kind: what the case is about: a format, or ``name`` / ``link`` / ``sparse`` where that is the point.
        format: the format of the content, however it is named.
        code: stable, from the table in `tui/checkpoints/codes.py`.
        reason: one sentence.
        detail: what is odd, in one stable word or phrase; `notes` holds all of them.
        crc: how far the checksums inside the file were checked: ``all``, ``none-recorded``, ``not-checked``;
            "" where the format has none.
        keys: entries of the state dict (or tensors of a safetensors file).
        globals: the types that safe loading refuses, in the order they appear.
        values: None where the numbers were not looked at.
        loaded: torch loaded it with ``weights_only=True``; None where that was not tried.
        confined: what the process that read the file was kept from, such as ``network``.
        real_size: bytes of the file that a git-lfs pointer stands for.
        apparent: bytes the file claims where it occupies far fewer.
    """

    path: str
    kind: str
    verdict: Word
    code: str
    reason: str = ""
    format: str = ""
    incident: str | None = None
    subtype: str | None = None
    danger: Danger | None = None
    globals: tuple[str, ...] = ()
    detail: str | None = None
    notes: tuple[str, ...] = ()
    crc: str = ""
    size: int | None = None
    keys: int | None = None
    tensors: int | None = None
    elements: int | None = None
    dtypes: dict[str, int] | None = None
    values: Values | None = None
    loaded: bool | None = None
    confined: tuple[str, ...] = ()
    prefix: str | None = None
    epoch: int | None = None
    step: int | None = None
    flavour: str | None = None
    resumable: bool | None = None
    metadata: dict[str, str] | None = None
    missing: tuple[str, ...] = ()
    missing_keys: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    in_progress: tuple[str, ...] = ()
    shards: int | None = None
    world: int | None = None
    usable: str | None = None
    resume_from: str | None = None
    target: str | None = None
    real_size: int | None = None
    apparent: int | None = None
    last_line: str | None = None

    @property
    def nonfinite(self) -> int | None:
        """NaN and infinite elements; None where the numbers were not looked at."""
        return None if self.values is None else self.values.nonfinite


class FileVerdict(_Frozen):
    """One entry of the tree that is no folder.

    Attributes:
        type: ``file``, ``link`` or ``special`` (a pipe, socket or device: never opened).
        part_of: the folder checkpoint it belongs to, which is judged as one.
        kind: as in `CheckpointVerdict`; ``marker``, ``sparse`` or ``other`` for what is no checkpoint.
        target: what a link says.
        last_line: of a log whose head is a hole.
        listed: against the manifest: ``same``, ``different``, ``extra``; "" without a manifest.
    """

    path: str
    type: str
    size: int | None
    verdict: Word
    code: str
    kind: str = "other"
    target: str | None = None
    last_line: str | None = None
    sha256: str | None = None
    part_of: str | None = None
    listed: str = ""


class Problem(_Frozen):
    """One thing that is wrong or was not checked.

    Attributes:
        code: of the table in `tui/checkpoints/codes.py`, which also says what it does to the verdict.
        effect: what a code of another table does to it.
    """

    code: str
    path: str = ""
    detail: str = ""
    effect: Literal["", "refuses", "incomplete", "gap"] = ""


class Examination(_Frozen):
    """Everything that was found out about one folder."""

    files: tuple[FileVerdict, ...]
    checkpoints: tuple[CheckpointVerdict, ...]
    problems: tuple[Problem, ...]

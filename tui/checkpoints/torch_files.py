"""The verdict on files that torch wrote, or that a pickle stands in."""

from __future__ import annotations

import struct
from typing import Any

from tui.checkpoints.contents import Contents
from tui.checkpoints.exported import EXPORTED_MEMBERS, read_exported
from tui.checkpoints.judged import Judged, say
from tui.checkpoints.names import Claim
from tui.checkpoints.pickle_globals import certain, danger, numpy_only, refused, worst
from tui.checkpoints.pickle_reader import Pickle, PickleDamaged, PickleTooLong, read_pickle
from tui.checkpoints.source import Source
from tui.checkpoints.torch_legacy import BadLegacy, Legacy, read_legacy
from tui.checkpoints.torch_zip import Contradiction, NotTorch, TorchZip, read_torch_zip
from tui.checkpoints.zip_directory import BadZip, Directory, TooManyMembers, locate, read_directory
from tui.checkpoints.zip_members import ZipBomb, check_member, check_sizes, records_checksums
from tui.model.verdict import CheckpointVerdict, Problem

_LOCAL = struct.Struct("<4s5H3L2H")
_PICKLES, _BEHIND = 1000, 8 << 20
"""Pickles behind the first that are looked through, and their bytes."""
_TORCH_MEMBERS = (
    "data.pkl", "/version", "/.format_version", "/byteorder", "constants.pkl", "/data/0", *EXPORTED_MEMBERS,
)  # fmt: skip


def judge_zip(source: Source, path: str, claim: Claim | None, *, crc: bool) -> Judged | None:
    """A zip under any name; None for one that is nobody's checkpoint.

    Args:
        crc: read every member and compare its checksum.
    """
    damage: BadZip | Contradiction | None = None
    directory, found = Directory(), TorchZip(False, Pickle())
    try:
        directory = read_directory(source)
        locate(source, directory)
        check_sizes(directory, source.size)
    except TooManyMembers as many:
        odd = say(path, "torch_zip", "suspicious", "too_many_parts", str(many))
        return Judged(odd) if claim == "torch" or _starts_like_torch(source) else None
    except ZipBomb:
        odd = say(path, "torch_zip", "suspicious", "zip_bomb")
        return Judged(odd) if claim == "torch" or _starts_like_torch(source) else None
    except BadZip as bad:
        damage = bad
    try:
        found = _read(source, directory, look=damage is None)
        damage = damage or _wrong_checksum(source, directory, crc=crc)
    except NotTorch:
        if damage is None:
            return _not_torch(path, directory, claim)
    except PickleTooLong:
        return Judged(say(path, "torch_zip", "suspicious", "huge_pickle", format="torch_zip"))
    except Contradiction as bad_contents:
        damage = _wrong_checksum(source, directory, crc=crc) or bad_contents
    if damage is not None and not found.globals:
        if claim != "torch" and not _is_torchs(source, directory):
            return None
        found.globals = tuple(_first_globals(source))
    return _weighed(source, path, directory, found, damage, crc=crc)


def _read(source: Source, directory: Directory, *, look: bool) -> TorchZip:
    """What `torch.save` or `torch.export.save` wrote. Raises NotTorch, Contradiction, PickleTooLong."""
    try:
        return read_torch_zip(source, directory, look=look)
    except NotTorch:
        exported = read_exported(source, directory) if look else None
        if exported is None:
            raise
        return exported


def _not_torch(path: str, directory: Directory, claim: Claim | None) -> Judged | None:
    """A zip that `torch.save` did not write; ``torch.package`` puts Python source into its own."""
    if directory.named("/.data/extern_modules") is not None:
        why = "a torch.package: the Python source in it"
        verdict = say(path, "other", "unsafe", None, why, danger="high", format="torch_package")
        return Judged(verdict)
    if claim != "torch":
        return None
    return Judged(say(path, "other", "corrupt", "not_torch", "a zip without data.pkl"))


def _wrong_checksum(source: Source, directory: Directory, *, crc: bool) -> BadZip | None:
    if not crc or not records_checksums(directory):
        return None
    for member in directory.members:
        try:
            check_member(source, member)
        except BadZip as bad:
            return bad
    return None


def _weighed(
    source: Source,
    path: str,
    directory: Directory,
    found: TorchZip,
    damage: BadZip | Contradiction | None,
    *,
    crc: bool,
) -> Judged:
    """The gravest of what was found."""
    kind = "torchscript" if found.script else "torch_zip"
    exported = {"flavour": "exported_program"} if found.exported else {}
    names = refused(found.globals, torchscript=found.script)
    recorded = records_checksums(directory)
    common: dict[str, Any] = {
        "format": kind,
        "crc": ("all" if crc else "not-checked") if recorded else "none-recorded",
        **_described(found.contents),
        **({"flavour": "torchscript"} if found.script else exported),
    }
    problems = () if recorded or damage else (Problem(code="crc-not-recorded", path=path),)
    if worst(names if damage is None else certain(names)) == "high":
        return Judged(_unsafe(path, kind, names))
    if damage is not None:
        member = getattr(damage, "member", "")
        where = f"{member}: {damage}" if member else str(damage)
        lost = damage.subtype == "preallocated" and source.sparse
        more: dict[str, Any] = {"apparent": source.size} if lost else {}
        return Judged(
            say(path, "sparse" if lost else kind, "corrupt", damage.subtype, where, format=kind, **more)
        )
    loadable = not found.script and not found.exported and numpy_only(names)
    if names:
        verdict = _needs(path, kind, names, common)
    elif directory.before:
        verdict = say(path, kind, "suspicious", "data_before_zip", f"{directory.before} bytes", **common)
    elif directory.after:
        verdict = say(path, kind, "suspicious", "data_after_zip", f"{directory.after} bytes", **common)
    elif found.after > 0:
        verdict = say(path, kind, "suspicious", "data_after_pickle", f"{found.after} bytes", **common)
    elif found.pickle.newer and not found.script:
        verdict, loadable = _newer(path, kind, found.pickle, common), False
    else:
        verdict = say(path, kind, "ok", **common)
    return Judged(verdict, found.contents, problems, unchecked=not recorded, loadable=loadable)


def _shown(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[:200] for name in names[:50])


def _unsafe(path: str, kind: str, names: tuple[str, ...]) -> CheckpointVerdict:
    worst_ones = ", ".join(name for name in names if danger(name) == "high")[:200]
    return say(path, kind, "unsafe", None, worst_ones, danger="high", globals=_shown(names), format=kind)


def _needs(path: str, kind: str, names: tuple[str, ...], common: dict[str, Any]) -> CheckpointVerdict:
    return say(
        path,
        kind,
        "needs_allowlist",
        None,
        ", ".join(names)[:200],
        danger=worst(names),
        globals=_shown(names),
        **common,
    )


def _newer(path: str, kind: str, pickle: Pickle, common: dict[str, Any]) -> CheckpointVerdict:
    return say(path, kind, "suspicious", "pickle_protocol", f"protocol {pickle.protocol}", **common)


def _described(contents: Contents) -> dict[str, Any]:
    """What a verdict says of the contents."""
    return {
        "keys": contents.keys, "tensors": contents.tensors, "elements": contents.elements,
        "dtypes": contents.dtypes or None, "prefix": contents.prefix, "epoch": contents.epoch,
        "step": contents.step, "flavour": contents.flavour, "resumable": contents.resumable,
    }  # fmt: skip


def _starts_like_torch(source: Source) -> bool:
    name = _first_member(source)[0]
    return name.endswith(_TORCH_MEMBERS)


def _is_torchs(source: Source, directory: Directory) -> bool:
    """Whether a damaged archive was torch's; other people's archives are none of a checkpoint's business."""
    return _starts_like_torch(source) or any(m.name.endswith(_TORCH_MEMBERS) for m in directory.members)


def _first_member(source: Source) -> tuple[str, int]:
    """Name and place of what the first local header describes, for an archive without its directory."""
    raw = source.read(0, _LOCAL.size + 1024)
    if len(raw) < _LOCAL.size or raw[:4] != b"PK\x03\x04":
        return "", 0
    name_length, extra = _LOCAL.unpack_from(raw)[9:]
    name = raw[_LOCAL.size : _LOCAL.size + name_length].decode("utf-8", "surrogateescape")
    return name, _LOCAL.size + name_length + extra


def _first_globals(source: Source) -> list[str]:
    """Dangerous names at the begin of an archive whose end is gone: it may still be told for what it was."""
    name, start = _first_member(source)
    return _dangerous(source, start) if name.endswith(".pkl") else []


def _dangerous(source: Source, start: int) -> list[str]:
    found = Pickle()
    try:
        read_pickle(source.section(start, source.size - start), found=found)
    except (PickleDamaged, PickleTooLong):
        pass
    return found.globals if worst(certain(refused(found.globals))) == "high" else []


def _behind(source: Source, at: int) -> tuple[list[str], bool]:
    """Dangerous names in the pickles behind the first, and whether those were all.

    A reader of many objects calls load until the end of the file.
    """
    stream, names, whole = source.section(at, source.size - at), [], True
    for _ in range(_PICKLES):
        found = Pickle()
        try:
            read_pickle(stream, found=found)
        except PickleDamaged:
            found.globals = list(certain(found.globals))
        except PickleTooLong:
            found.globals, whole = list(certain(found.globals)), False
        names += [name for name in refused(found.globals) if danger(name) == "high"]
        if not found.end or stream.tell() > _BEHIND:
            break
    more = found.end > 0 and stream.read(1) != b""
    return list(dict.fromkeys(names)), whole and not more


def judge_legacy(source: Source, path: str) -> Judged:
    """The format before torch 1.6."""
    found, damage = Legacy(), None
    try:
        read_legacy(source, found)
    except BadLegacy as bad:
        damage = bad
    except PickleTooLong:
        if worst(refused(found.globals)) != "high":
            return Judged(say(path, "torch_legacy", "suspicious", "huge_pickle", format="torch_legacy"))
    kind = "torch_legacy"
    names = refused(found.globals)
    if worst(names if damage is None else certain(names)) == "high":
        return Judged(_unsafe(path, kind, names))
    if damage is not None:
        return Judged(say(path, kind, "corrupt", damage.subtype, str(damage), format=kind))
    common: dict[str, Any] = {"format": kind, **_described(found.contents)}
    loadable = numpy_only(names)
    if names:
        verdict = _needs(path, kind, names, common)
    elif found.after:
        verdict = say(path, kind, "suspicious", "data_after_end", f"{found.after} bytes", **common)
    elif found.pickle.newer:
        verdict, loadable = _newer(path, kind, found.pickle, common), False
    else:
        verdict = say(path, kind, "ok", **common)
    problem = Problem(code="no-checksum", path=path)
    return Judged(verdict, found.contents, (problem,), unchecked=True, loadable=loadable)


def judge_pickle(source: Source, path: str, claim: Claim | None) -> Judged | None:
    """A bare pickle, or what may be one of an old protocol; None where it is neither named nor dangerous."""
    found, damage, long, seen = Pickle(), None, False, True
    try:
        read_pickle(source.section(0, source.size), found=found)
        more, seen = _behind(source, found.end)
        found.globals += more
    except PickleDamaged as bad:
        damage = bad
    except PickleTooLong:
        long = True
    names = refused(found.globals)
    known = source.read(0, 1) == b"\x80"
    whole = damage is None and not long
    if worst(names if whole or long else certain(names)) == "high" and (whole or known or claim):
        return Judged(_unsafe(path, "other", names).model_copy(update={"format": "pickle"}))
    if claim in ("torch", "safetensors"):
        why = "a bare pickle" if whole or known else "its first bytes are of no known format"
        return Judged(
            say(path, "safetensors" if claim == "safetensors" else "other", "corrupt", "not_torch", why)
        )
    if damage is not None and known and claim == "pickle" and not any("joblib" in n for n in found.globals):
        subtype = "truncated" if damage.truncated else "bad_pickle"  # joblib mixes arrays into its pickles
        return Judged(say(path, "other", "corrupt", subtype, str(damage)))
    if (long or not seen) and (known or claim == "pickle"):
        problem = Problem(code="pickle-not-scanned", path=path)
        return Judged(say(path, "other", "ignore", format="pickle"), problems=(problem,))
    return None

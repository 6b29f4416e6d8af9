"""The verdict on one regular file, by its content; its name says only what it claims to be."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from math import prod
from pathlib import PurePosixPath
from typing import Any

from tui.checkpoints.contents import Contents, prefix_of
from tui.checkpoints.first_bytes import (
    HEAD,
    Content,
    content_of,
    is_answer,
    is_begin_of_torch,
    lfs_size,
)
from tui.checkpoints.gguf_file import judge_gguf
from tui.checkpoints.judged import Judged, say
from tui.checkpoints.names import Claim, claim_of, is_marker, is_part, step_and_epoch
from tui.checkpoints.numpy_files import judge_array, judge_arrays
from tui.checkpoints.safetensors_file import BadSafetensors, Header, HugeHeader, read_safetensors
from tui.checkpoints.source import NotAFile, Opener, Source
from tui.checkpoints.torch_files import judge_legacy, judge_pickle, judge_zip
from tui.checkpoints.torch_tar import judge_tar
from tui.model.text import safe
from tui.model.verdict import Problem

_ENTRIES, _KEY, _VALUE = 50, 100, 500

_SUBTYPES: dict[Content, str] = {
    "lfs_pointer": "lfs_pointer", "annex_pointer": "annex_pointer", "html": "html", "json": "json", "xml":
    "xml",
}  # fmt: skip
"""What a failed download leaves in a file's place, wherever bytes were expected."""


def judge_file(
    absolute: str,
    path: str,
    *,
    crc: bool = True,
    stop: Callable[[], bool] | None = None,
    opener: Opener = Source,
) -> Judged:
    """The verdict on one file. Never raises for what a file holds, or for not being allowed to read it.

    Args:
        absolute: where it lies.
        path: what it is called in the verdict.
        crc: compare the checksums inside; costs a pass over the file.
        stop: asked during that pass whether to give up.
        opener: opens it, where it does not lie on this computer.

    Raises:
        Stopped: it said so.
    """
    name = PurePosixPath(path).name
    try:
        with opener(absolute, stop) as source:
            judged = _by_content(source, path, name, claim_of(name), crc=crc)
            return _completed(source, judged, name)
    except NotAFile:
        return Judged(say(path, "other", "ignore"), problems=(Problem(code="special-file", path=path),))
    except OSError as fault:
        return _unreadable(path, name, fault)


def _unreadable(path: str, name: str, fault: OSError) -> Judged:
    why = safe(fault.strerror or type(fault).__name__, 80)
    problem = Problem(code="file-unreadable", path=path, detail=why)
    if claim_of(name) is None or fault.errno == errno.ELOOP:
        return Judged(say(path, "other", "ignore"), problems=(problem,))
    return Judged(say(path, "other", "incomplete", "not_readable", why), problems=(problem,))


def _completed(source: Source, judged: Judged, name: str) -> Judged:
    """The facts that do not depend on the content."""
    verdict = judged.verdict
    step, epoch = step_and_epoch(name)
    found: dict[str, object] = {"size": source.size}
    if judged.contents is not None:
        found |= {"step": verdict.step if verdict.step is not None else step}
        found |= {"epoch": verdict.epoch if verdict.epoch is not None else epoch}
    return Judged(
        verdict.model_copy(update=found),
        judged.contents,
        judged.problems,
        judged.unchecked,
        judged.loadable,
    )


def _by_content(source: Source, path: str, name: str, claim: Claim | None, *, crc: bool) -> Judged:
    head = source.read(0, HEAD)
    content = content_of(head, source.size)
    kind = "safetensors" if claim == "safetensors" else "other"
    if content == "empty":
        if claim is None or is_marker(name):
            return _ignored(path, "marker" if is_marker(name) else "other")
        return Judged(say(path, kind, "corrupt", "empty"))
    if content == "apple_double" and name.startswith("._"):
        return _ignored(path)  # what macOS keeps beside a file on a foreign disk
    if claim == "torch" and is_begin_of_torch(head):
        return Judged(say(path, kind, "corrupt", "truncated", "less than its first bytes"))
    if content in _SUBTYPES:
        return _left_by_download(source, path, claim, content, head)
    if content == "safetensors" or (claim == "safetensors" and content in ("unknown", "zeros", "text")):
        return _safetensors(source, path, claim, content)
    if content == "zip" and is_part(name):
        return _ignored(path)  # many files of torch in a row: its folder tells them apart
    if content == "zip":
        if claim == "safetensors":
            return Judged(say(path, kind, "corrupt", "wrong_format", "a zip, such as torch.save writes"))
        return judge_zip(source, path, claim, crc=crc) or judge_arrays(source, path) or _foreign(path, claim)
    if content == "torch_legacy":
        if claim == "safetensors":
            return Judged(say(path, kind, "corrupt", "wrong_format", "written by an old torch.save"))
        return judge_legacy(source, path)
    if content == "zeros":
        return _zeros(source, path, claim, crc=crc)
    if content == "pickle":
        return judge_pickle(source, path, claim) or _foreign(path, claim)
    return _other(source, path, claim, content, crc=crc)


def _ignored(path: str, kind: str = "other", problem: str | None = None, **more: Any) -> Judged:
    problems = (Problem(code=problem, path=path),) if problem else ()
    return Judged(say(path, kind, "ignore", **more), problems=problems)


def _foreign(path: str, claim: Claim | None) -> Judged:
    """No checkpoint; or one of a kind that is not judged here, which is said."""
    return _ignored(path, problem="format-not-judged" if claim == "other" else None)


def _left_by_download(
    source: Source, path: str, claim: Claim | None, content: Content, head: bytes
) -> Judged:
    pointer = content in ("lfs_pointer", "annex_pointer")
    if claim is None or (claim == "pickle" and not pointer):
        if claim == "pickle":
            return judge_pickle(source, path, claim) or _ignored(path)
        return _ignored(path, problem="file-lfs-pointer" if pointer else None)
    if content in ("json", "xml") and claim == "torch":  # an old pickle is text as well
        judged = judge_pickle(source, path, claim)
        if judged is not None and judged.verdict.verdict == "unsafe":
            return judged
    kind = "safetensors" if claim == "safetensors" else "other"
    return Judged(say(path, kind, "corrupt", _SUBTYPES[content], real_size=lfs_size(head)))


def _safetensors(source: Source, path: str, claim: Claim | None, content: Content) -> Judged:
    if claim in ("torch", "pickle"):
        return Judged(say(path, "other", "corrupt", "wrong_format", "a safetensors file"))
    if claim == "safetensors" and source.size >= 8 and content == "zeros":
        whole = source.is_zero(0, source.size)
        return Judged(
            say(path, "safetensors", "corrupt", "zeros" if whole else "zero_block", "its header is gone")
        )
    try:
        header = read_safetensors(source)
    except BadSafetensors as bad:
        if claim is None or claim == "weights":
            return _ignored(path)  # it only looked like one
        hole = source.sparse and (bad.subtype != "trailing" or source.is_zero(source.size - 4096, 4096))
        if not hole:
            return Judged(say(path, "safetensors", "corrupt", bad.subtype, str(bad)))
        subtype = "preallocated" if bad.subtype == "trailing" else bad.subtype
        return Judged(say(path, "sparse", "corrupt", subtype, str(bad), apparent=source.size))
    except HugeHeader as huge:
        return Judged(say(path, "safetensors", "suspicious", "huge_header", str(huge)))
    return _whole_safetensors(path, header)


def _whole_safetensors(path: str, header: Header) -> Judged:
    contents = Contents(
        names=tuple(header.shapes),
        spans=header.tensors,
        tensors=len(header.tensors),
        elements=sum(prod(shape) for shape in header.shapes.values()),
        dtypes=dict(Counter(span.dtype for span in header.tensors)),
        keys=len(header.tensors),
        size=sum(span.length for span in header.tensors),
        prefix=prefix_of(header.shapes),
        metadata=_short(header.metadata),
    )
    step = header.metadata.get("step", "")
    number = int(step) if step.isascii() and step.isdigit() and len(step) < 16 else None
    verdict = say(
        path, "safetensors", "ok", format="safetensors", keys=contents.keys, tensors=contents.tensors,
        elements=contents.elements, dtypes=contents.dtypes or None, prefix=contents.prefix,
        metadata=_short(header.metadata), step=number,
    )  # fmt: skip
    problem = Problem(code="no-checksum", path=path)
    return Judged(verdict, contents, (problem,), unchecked=True)


def _short(metadata: dict[str, str]) -> dict[str, str]:
    """What a verdict repeats of it: trainers put whole data sets' tags there."""
    return {key[:_KEY]: value[:_VALUE] for key, value in list(metadata.items())[:_ENTRIES]}


def _zeros(source: Source, path: str, claim: Claim | None, *, crc: bool) -> Judged:
    """Nothing but zeros at its begin: all of it, or a lost first page."""
    if claim is None:
        return _ignored(path, "sparse" if source.sparse else "other", **_last_words(source))
    if source.is_zero(0, source.size):
        if claim in ("weights", "other", "pickle") and source.size < 4096:
            return _ignored(path)
        if source.sparse:
            return Judged(say(path, "sparse", "corrupt", "preallocated", apparent=source.size))
        return Judged(say(path, "other", "corrupt", "zeros"))
    judged = judge_zip(source, path, claim, crc=crc) if claim == "torch" else None
    if judged is not None and judged.verdict.subtype != "truncated":
        return judged
    return (
        Judged(say(path, "other", "corrupt", "zero_block", "its begin is gone"))
        if claim == "torch"
        else _ignored(path)
    )


def _last_words(source: Source) -> dict[str, Any]:
    """The last line of a log whose head is a hole: it was truncated under its writer."""
    if not source.sparse:
        return {}
    tail = source.read(max(0, source.size - HEAD), HEAD).strip(b"\0\r\n")
    line = tail.rpartition(b"\n")[2].rpartition(b"\0")[2]
    return {"last_line": str(safe(line, 400)) or None, "apparent": source.size}


def _other(source: Source, path: str, claim: Claim | None, content: Content, *, crc: bool) -> Judged:
    """Archives, foreign formats, text, and what is nothing that is known."""
    if content == "gguf":
        return judge_gguf(source, path)
    if claim == "other":
        return _ignored(path, problem="format-not-judged")
    if content == "numpy":
        hostile = judge_array(source, path)
        if hostile is not None:
            return hostile
    if claim is None:
        return _ignored(path)
    if content in ("archive", "hdf5", "numpy"):
        tar = judge_tar(source, path) if claim in ("torch", "pickle", "weights") else None
        if tar is not None:
            return tar
        if claim == "torch" or claim == "safetensors":
            kind = "safetensors" if claim == "safetensors" else "other"
            what = {
                "archive": "a compressed or tar archive",
                "hdf5": "an HDF5 file",
                "numpy": "a NumPy array",
            }[content]
            return Judged(say(path, kind, "corrupt", "wrong_format", what))
        return _ignored(path)
    if claim == "torch":
        return _unknown_torch(source, path, content, crc=crc)
    if claim == "weights" and content == "text" and is_answer(source.read(0, HEAD)):
        return Judged(say(path, "other", "corrupt", "text", "a server's answer"))
    judged = judge_pickle(source, path, claim) if claim == "pickle" else None
    return judged or _ignored(path)


def _unknown_torch(source: Source, path: str, content: Content, *, crc: bool) -> Judged:
    """No known begin: a zip behind foreign bytes, a pickle of an old protocol, a text, or nothing."""
    pickle = judge_pickle(source, path, "torch")
    if pickle is not None and pickle.verdict.verdict == "unsafe":
        return pickle
    archive = judge_zip(source, path, None, crc=crc)
    if archive is not None:
        return archive
    if content == "text":
        if path.endswith(".pth") and "site-packages" in PurePosixPath(path).parts:
            return _ignored(path)  # Python's own path files
        return Judged(say(path, "other", "corrupt", "text"))
    return pickle or _ignored(path)

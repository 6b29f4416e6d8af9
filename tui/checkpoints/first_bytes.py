"""What a file is by its first bytes, however it is named."""

from __future__ import annotations

import json
import re
from typing import Literal

HEAD = 4096
"""Bytes that are looked at."""

Content = Literal[
    "empty", "zip", "torch_legacy", "pickle", "safetensors", "archive", "lfs_pointer", "annex_pointer",
    "html", "json", "xml", "text", "hdf5", "gguf", "numpy", "apple_double", "zeros", "unknown",
]  # fmt: skip

LEGACY_MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""LONG1 of torch's magic number and STOP: the first pickle of every file ``torch.save`` wrote before 1.6."""

_ARCHIVES = (
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c",
    b"\x04\x22\x4d\x18",
)
_STARTS: tuple[tuple[tuple[bytes, ...], Content], ...] = (
    (_ARCHIVES, "archive"),
    ((b"\x89HDF\r\n\x1a\n",), "hdf5"),
    ((b"GGUF",), "gguf"),
    ((b"\0\5\x16\7",), "apple_double"),
    ((b"\x93NUMPY",), "numpy"),
)
_LFS = re.compile(rb"version https?://(?:git-lfs|hawser)\.github\.com/spec/v\d\r?\n")
_ANNEX = re.compile(rb"/annex/objects/|(?:\.\./)*\.git/annex/objects/")
_LFS_SIZE = re.compile(rb"^size (\d{1,18})\s*$", re.MULTILINE)
_MARKUP = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body|!--)", re.IGNORECASE)
_TEXT_OUT = bytes(set(range(256)) - set(b"\t\n\r\f\x1b") - set(range(32, 127)))


def content_of(head: bytes, size: int) -> Content:
    """Name the content.

    Args:
        head: the first `HEAD` bytes, or all where there are fewer.
        size: of the whole file.
    """
    if size == 0:
        return "empty"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06")):
        return "zip"
    if LEGACY_MAGIC in head[:24] and head[:1] == b"\x80":
        return "torch_legacy"
    if head[:1] == b"\x80" and head[1:2] in (b"\1", b"\2", b"\3", b"\4", b"\5"):
        return "pickle"
    for starts, content in _STARTS:
        if head.startswith(starts):
            return content
    if head[257:262] == b"ustar":
        return "archive"
    if _LFS.match(head):
        return "lfs_pointer"
    if _ANNEX.match(head):
        return "annex_pointer"
    if is_safetensors(head, size):
        return "safetensors"
    return _text(head, size)


def _text(head: bytes, size: int) -> Content:
    if _MARKUP.match(head) or (head.lstrip()[:5] == b"<?xml" and b"<html" in head.lower()):
        return "html"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"<?xml") or re.match(rb"<(?:Error|Code|ListBucketResult)\b", start):
        return "xml"
    if start[:1] in (b"{", b"[") and _is_json(start, size):
        return "json"
    if not head.strip(b"\0"):
        return "zeros"
    return "text" if _readable(head) else "unknown"


def _is_json(start: bytes, size: int) -> bool:
    if size > HEAD:
        return _readable(start)
    try:
        json.loads(start)
    except (ValueError, RecursionError):
        return _readable(start)
    return True


def _readable(head: bytes) -> bool:
    if head.translate(None, _TEXT_OUT) == head:
        return True
    try:
        head[: head.rfind(b"\n") + 1 or len(head)].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not any(c in head for c in b"\0\x01\x02\x03\x04\x05\x06\x07")


def is_begin_of_torch(head: bytes) -> bool:
    """Whether these few bytes are all that came of a file of torch: less than its magic number."""
    whole = (b"PK\x03\x04", *(b"\x80" + bytes([protocol]) + LEGACY_MAGIC for protocol in (2, 3)))
    return any(start.startswith(head) and len(head) < len(start) for start in whole)


_ANSWER = re.compile(
    rb"\s*(?:[45]\d\d\b|(?:http )?error\b|(?:(?:entry|file|page|repository|object|key) (?:was )?)?not found|"
    rb"no such |access (?:to|is|denied)|permission denied|un(?:authori[sz]ed|authenticated)|forbidden|"
    rb"invalid (?:username|credentials|token|request)|too many requests|rate limit|bad (?:gateway|request)|"
    rb"gateway time-?out|(?:temporarily|service) unavailable|internal server error|upstream )",
    re.IGNORECASE,
)


def is_answer(head: bytes) -> bool:
    """Whether a short text is what a server says instead of the file."""
    return len(head) < HEAD and _ANSWER.match(head) is not None


def is_safetensors(head: bytes, size: int) -> bool:
    """A plausible length and a JSON object behind it."""
    length = int.from_bytes(head[:8], "little")
    return len(head) >= 10 and 2 <= length <= min(100_000_000, size) and head[8:9] == b"{"


def lfs_size(head: bytes) -> int | None:
    """Bytes of the file that a git-lfs pointer stands for."""
    match = _LFS_SIZE.search(head)
    return int(match[1]) if match else None

"""The shape of a durable copy: a BagIt 1.0 folder (RFC 8493) that `sha256sum -c` and any BagIt reader check.

Pure. Files whose names other disks or readers would change travel in one tar inside the bag, so what lies in
the bag has names that every program reads alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui.custody.names import leaves_tree, odd_names
from tui.model.custody import DigestReport, HashedFile, Moment, Sha256

DATA = "data"
MANIFEST = "manifest-sha256.txt"
TAG_MANIFEST = "tagmanifest-sha256.txt"
DECLARATION = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
TAR = "unportable-names.tar"
_RECORD = 10240


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each file of a report goes.

    Attributes:
        plain: under ``data/`` by their own names.
        tarred: in the tar, in the order of their names' bytes.
        tar: its path in the bag; None where no file needs it.
    """

    plain: tuple[HashedFile, ...]
    tarred: tuple[HashedFile, ...]
    tar: str | None

    @property
    def tar_size(self) -> int:
        """Bytes of the tar: it follows from names and sizes alone."""
        whole = sum(len(tar_header(raw_name(f.path), f.size)) + f.size + -f.size % 512 for f in self.tarred)
        return 0 if self.tar is None else (whole + 1024) + -(whole + 1024) % _RECORD


def layout(files: Sequence[HashedFile]) -> Layout:
    """Decide how the files travel.

    Raises:
        ValueError: a name leaves the folder, or is there twice. A report that was made rightly has none.
    """
    paths = [one.path for one in files]
    if any(leaves_tree(path) for path in paths):
        raise ValueError("a name leads out of the folder")
    if len(set(paths)) != len(paths):
        raise ValueError("a file is named twice")
    odd = odd_names(paths)
    plain = tuple(one for one in files if one.path not in odd)
    tarred = tuple(sorted((one for one in files if one.path in odd), key=lambda one: raw_name(one.path)))
    return Layout(plain, tarred, _tar_name(plain) if tarred else None)


def _tar_name(plain: Iterable[HashedFile]) -> str:
    taken = {one.path.split("/", 1)[0].casefold() for one in plain}
    name, number = TAR, 2
    while name.casefold() in taken:
        name, number = f"unportable-names-{number}.tar", number + 1
    return f"{DATA}/{name}"


def bag_name(run: str, report: DigestReport) -> str:
    """The folder of this content: the same bytes give the same name, other bytes never overwrite it."""
    return f"{run}-{report.manifest.removeprefix('sha256:')[:12]}"


def hashed(path: str, data: bytes) -> HashedFile:
    """A file of the bag whose bytes are at hand."""
    return HashedFile(path=path, size=len(data), sha256=sha256_of(data), tool="hashlib")


def sha256_of(data: bytes) -> Sha256:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tag_files(payload: Sequence[HashedFile], run: str, at: Moment) -> dict[str, bytes]:
    """The files beside ``data/``, in the order to write them: the declaration, which makes it a bag, is last.

    Args:
        payload: every file under ``data/``, with its path in the bag.
    """
    octets = sum(one.size for one in payload)
    info = (
        f"Bag-Software-Agent: remote-gpu-trainer\nBagging-Date: {at[:10]}\nExternal-Identifier: {run}\n"
        f"Payload-Oxum: {octets}.{len(payload)}\n"
    ).encode()
    tags = {MANIFEST: manifest(payload), "bag-info.txt": info, "bagit.txt": DECLARATION}
    listed = manifest([hashed(path, data) for path, data in tags.items()])
    return {MANIFEST: tags[MANIFEST], "bag-info.txt": info, TAG_MANIFEST: listed, "bagit.txt": DECLARATION}


def manifest(files: Iterable[HashedFile]) -> bytes:
    """Lines as `sha256sum` writes them, sorted by path."""
    lines = sorted((one.path, one.sha256.removeprefix("sha256:")) for one in files)
    return "".join(f"{digest}  {path}\n" for path, digest in lines).encode()


# --- the tar ----------------------------------------------------------------------------------------------


def raw_name(path: str) -> bytes:
    """The bytes of a name, as the box's filesystem has them."""
    return path.encode("utf-8", "surrogateescape")


def tar_header(name: bytes, size: int) -> bytes:
    """What stands before a file in the tar; GNU format, since names are any bytes of any length.

    Nothing but names and sizes is in it, so the same files make the same tar.
    """
    if len(name) <= 100:
        return _block(name, size, b"0")
    body = name + b"\0"
    return (
        _block(b"././@LongLink", len(body), b"L")
        + body
        + bytes(-len(body) % 512)
        + _block(name[:100], size, b"0")
    )


def tar_end(written: int) -> bytes:
    """What stands after the last file, when `written` bytes are before it."""
    return bytes(1024 + -(written + 1024) % _RECORD)


def _block(name: bytes, size: int, kind: bytes) -> bytes:
    number = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    head = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + number + b"%011o\0" % 0
    tail = kind + bytes(100) + b"ustar  \0" + bytes(247)
    checksum = sum(head) + 8 * 32 + sum(tail)
    return head + b"%06o\0 " % checksum + tail

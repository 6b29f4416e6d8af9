"""Tables of tools: file systems without room, quotas, read-only mounts; and ENOSPC told apart with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tui.model.incident import Fact
from tui.triage.finding import Hit
from tui.triage.view import View

WORDS = (
    "no space left", "设备上没有空间", "kein speicherplatz", "aucun espace", "queda espacio", "errno 28",
    "enospc", "% /", "not enough space", "磁盘空间不足", "disk full", "not enough disk space", "空き領域",
    "nessuno spazio", "磁盘已满", "inline_container", "##df", "semlock", "file write failed",
    " requested and ",
)  # fmt: skip
SHM = "/dev/shm"  # noqa: S108 - compared with, never written to
_ROW = re.compile(
    r"^(?P<fs>\S.*?)?\s+(?P<size>[\d.,]+[KMGTPi]*B?)\s+(?P<used>-?[\d.,]+[KMGTPi]*B?)\s+(?P<avail>-?[\d.,"
    r"]+[KMGTPi]*B?)\s+(?P<pct>\d+)%\s+(?P<mount>/.*)$"
)
_HEAD = re.compile(
    r"(?i)^(?:filesystem|file ?system|dateisystem|sys\. de fichiers|s\. ?ficheros|文件系统|檔案系統"
    r"|ファイルシス)"
)
_INODES = re.compile(r"(?i)inode|i節点|i节点|iused|iuti")
_MARK = re.compile(r"^#+ ?DF(?P<inodes>I?)\b|^(?:\$ )?df (?P<options>-\S+)")
_NO_DISK = re.compile(r"^(?:/dev/loop|squashfs|udev|devtmpfs|efivarfs|/dev/sr|fuse\.|portal|snapfuse)|/snap/")
_ENOSPC = re.compile(
    r"(?i)(?<!/)No space left on device(?![/?])|\[Errno 28\]|\bENOSPC\b|设备上没有空间"
    r"|kein Speicherplatz mehr"
    r"|Aucun espace disponible sur"
    r"|No queda espacio en el dispositivo|デバイスに空き領域がありません|磁盘空间不足|磁盘已满"
    r"|Spazio esaurito|\bdisk (?:is )?full\b"
    r"|not enough (?:free )?(?:disk )?space (?:on|in|to|available)|not enough space on (?:the )?disk"
    r"|Disk quota and no space|insufficient disk space"
)
_ERRNO = re.compile(
    r"(?i)No space left|Errno 28|ENOSPC|设备上没有空间|Speicherplatz|Aucun espace|No queda espacio"
)
_HARMLESS = re.compile(
    r"(?i)disk_?full[_ ]?(?:check|warn|thresh|handler|policy)|on_enospc|if (?:the )?disk|when disk"
    r"|0 errors|warn(?:ing)? if"
)
_SHM = re.compile(
    r"(?i)semlock|/torch_\d|/dev/shm|\bshm\b|shared memory|nccl-|/psm_|/sem\.|shm_open|shared_memory"
    r"|multiprocessing/(?:synchronize|heap|shared|popen_forkserver)"
)
_INOTIFY = re.compile(r"(?i)inotify|file watch|watch limit")
_WRITER = re.compile(
    r"(?i)PytorchStreamWriter failed writing file|unexpected pos \d+ vs \d+|iostream error.*write"
    r"|file write failed|\b\d+ requested and \d+ written\b"
)
_PATH = re.compile(r"['\"‘“](?P<path>/[^'\"’”]+)['\"’”]|(?:: |file )(?P<bare>/[\w./@+-]+)")


_KIB = re.compile(r"\b1K\b|\b1024(?:-blocks|的块|\b)|1K-")
_TINY, _SMALL, _CRUMBS = 10**6, 2**30, 2**20


def nothing_left(size_bytes: int | None, avail_bytes: int | None) -> bool:
    """Whether no file can be written: no byte is left, or less than 1 MiB where there are gigabytes.

    Args:
        size_bytes: of the whole; below 1 MB it is no place for files.
    """
    if size_bytes is None or avail_bytes is None or size_bytes <= _TINY:
        return False
    return avail_bytes <= 0 or (size_bytes > _SMALL and avail_bytes < _CRUMBS)


@dataclass(frozen=True, slots=True)
class Full:
    """A file system of which a table says that nothing is left."""

    at: int
    mount: str
    inodes: bool


def full(view: View) -> list[Full]:
    """All full file systems in tables of df, by bytes or by inodes."""
    if "full" not in view.cache:
        view.cache["full"] = list(_full(view))
    found: list[Full] = view.cache["full"]
    return found


def _full(view: View) -> Iterator[Full]:
    by_inodes = bool(re.search(r"\bdf\b[^;|&]*\s-\w*i", view.command.split(";")[0]))
    in_kib = False
    for index, one in enumerate(view.rows):
        mark = _MARK.match(one.head)
        if mark:
            by_inodes = bool(mark["inodes"]) or "i" in (mark["options"] or "")
            continue
        if _HEAD.match(one.head):
            by_inodes, in_kib = bool(_INODES.search(one.head)), bool(_KIB.search(one.head))
            continue
        match = _ROW.match(one.head)
        if match is None or _NO_DISK.search(match["fs"] or "") or _NO_DISK.search(match["mount"]):
            continue
        avail = float(re.sub(r"[^\d.-]", "", match["avail"]) or 1)
        size = float(re.sub(r"[^\d.]", "", match["size"]) or 0)
        crumbs = in_kib and not by_inodes and nothing_left(int(size * 1024), int(avail * 1024))
        if (avail <= 0 or crumbs) and size > 0 and int(match["pct"]) >= 99:
            yield Full(index, match["mount"].strip(), by_inodes)


def _everywhere(view: View, *, inodes: bool) -> bool:
    """Whether a table here, beside, or the newest probe says that a file system is full."""
    if any(one.inodes == inodes for seen in (view, *view.others) for one in full(seen)):
        return True
    systems = (view.telemetry.filesystems.value if view.telemetry else None) or ()
    if inodes:
        return any(fs.inodes and fs.inodes_free == 0 for fs in systems)
    return any(fs.avail_bytes == 0 and fs.size_bytes and not fs.read_only for fs in systems)


_NEARLY_PCT = 90.0


def _short_of_inodes(view: View) -> bool:
    """Whether the newest probe saw inodes run short and no bytes: it is older than the write that failed."""
    systems = (view.telemetry.filesystems.value if view.telemetry else None) or ()
    scarce = any((fs.inode_use_pct or 0) >= _NEARLY_PCT for fs in systems if (fs.inodes or 0) > 1000)
    return scarce and not any((fs.use_pct or 0) >= _NEARLY_PCT for fs in systems if not fs.read_only)


def _no_space(view: View) -> Iterator[tuple[int, str | None]]:
    """Rows in which a write on a disk found no room, with the path where it is told."""
    for index, one in enumerate(view.rows):
        match = _ENOSPC.search(one.text)
        if match is None or view.quoted(index, match.start()) or _HARMLESS.search(one.text):
            continue
        near = " ".join(row.text for row in view.rows[max(0, index - 4) : index + 1])
        if _SHM.search(near) or _INOTIFY.search(near):
            continue
        path = _PATH.search(one.text)
        yield index, (path["path"] or path["bare"]) if path else None


def disk_full(view: View, cls: str) -> Iterator[Hit]:
    """ENOSPC that is not proven to be about inodes, and tables without a byte left."""
    inodes, space = _everywhere(view, inodes=True), _everywhere(view, inodes=False)
    about_inodes = not space and (inodes or _short_of_inodes(view))
    for index, path in () if about_inodes else _no_space(view):
        facts: dict[str, Fact] = {"resource": "bytes" if space else "unknown"}
        rank = None if _ERRNO.search(view.rows[index].text) else 74
        confidence = 0.95 if space else 0.85
        yield Hit(index, facts=facts | ({"path": path} if path else {}), rank=rank, confidence=confidence)
    for one in full(view):
        if not one.inodes and one.mount != SHM and view.kind == "disk":
            yield Hit(one.at, facts={"resource": "bytes", "mount": one.mount}, confidence=0.9)
    for index, one_row in enumerate(view.rows):
        if _WRITER.search(one_row.text) and not view.quoted(index, 0):
            yield Hit(index, facts={"resource": "unknown"}, rank=65, confidence=0.5)


def inodes_full(view: View, cls: str) -> Iterator[Hit]:
    """ENOSPC while a table shows no inode left, and such tables."""
    none_left = _everywhere(view, inodes=True)
    if (none_left or _short_of_inodes(view)) and not _everywhere(view, inodes=False):
        for index, path in _no_space(view):
            facts: dict[str, Fact] = {"resource": "inodes", **({"path": path} if path else {})}
            yield Hit(index, facts=facts, confidence=0.95 if none_left else 0.85)
    for one in full(view):
        if one.inodes and view.kind == "disk":
            yield Hit(one.at, facts={"resource": "inodes", "mount": one.mount}, confidence=0.95)


def shm_full(view: View, cls: str) -> Iterator[Hit]:
    """ENOSPC in the midst of shared memory, and a full /dev/shm."""
    for index, one in enumerate(view.rows):
        match = _ENOSPC.search(one.text)
        if match and not view.quoted(index, match.start()):
            near = " ".join(row.text for row in view.rows[max(0, index - 4) : index + 1])
            if _SHM.search(near) and not _INOTIFY.search(near):
                yield Hit(index, confidence=0.9)
    for row in full(view):
        if not row.inodes and row.mount == SHM and view.kind == "disk":
            yield Hit(row.at, facts={"mount": row.mount}, confidence=0.9)


_STAR = re.compile(r"(?:^|\s)\d[\d.]*[KMGTP]?\*(?:\s|$)")
_BEEGFS = re.compile(
    r"\|\|\s*(?P<used>[\d.]+ [KMGTP]?i?B)\|\s*(?P<hard>[\d.]+ [KMGTP]?i?B)\|\|\s*(?P<files>\d+)\|\s*(?P<m"
    r"ost>\d+)"
)
_GPFS = re.compile(
    r"\s(?:USR|GRP|FILESET)\s+(?P<used>\d+)\s+\d+\s+(?P<hard>\d+)\s+\d+\s+\S+(?: days?)?\s+\|"
    r"\s*(?P<files>\d+)\s+\d+\s+(?P<most>\d+)\s"
)
_UNITS = {"B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}


def quota(view: View, cls: str) -> Iterator[Hit]:
    """A quota that is used up, by the tables of quota, lfs, xfs_quota, GPFS and beegfs-ctl."""
    if "quota" not in view.command and view.kind != "disk":
        return
    asked = "quota" in view.command or any("quota" in one.low for one in view.rows[:6])
    for index, one in enumerate(view.rows):
        beegfs = _BEEGFS.search(one.text)
        if beegfs:
            used, hard = _bytes(beegfs["used"]), _bytes(beegfs["hard"])
            if (hard and used >= hard) or int(beegfs["files"]) >= int(beegfs["most"]) > 0:
                yield Hit(index)
        elif (gpfs := _GPFS.search(one.text)) is not None:
            spent = [(int(gpfs["used"]), int(gpfs["hard"])), (int(gpfs["files"]), int(gpfs["most"]))]
            if any(used >= most > 0 for used, most in spent):
                yield Hit(index)
        elif asked and _STAR.search(one.text):
            yield Hit(index)


def _bytes(figure: str) -> float:
    number, unit = figure.split()
    return float(number) * _UNITS[unit[0]]


_MOUNTED = re.compile(
    r"^(?P<device>\S+) (?:on )?(?P<mount>/\S*) (?:type )?(?P<type>\S+) \(?(?P<options>ro(?:,\S*)?)(?:\)| |$)"
)
_WRITTEN = re.compile(
    r"^/(?:$|home|root$|root/autodl-(?:tmp|fs)|tmp|workspace|data|scratch|mnt/(?:data|workspace)|hy-tmp"
    r"|openbayes|var$|opt$)"
)
_BY_DESIGN = re.compile(r"squashfs|iso9660|cramfs|erofs|proc|sysfs|cgroup|tmpfs|devtmpfs|nsfs|ramfs")


def read_only(view: View, cls: str) -> Iterator[Hit]:
    """A mount one writes to that is read-only."""
    for index, one in enumerate(view.rows):
        match = _MOUNTED.match(one.text)
        if match and not _BY_DESIGN.search(match["type"]) and _WRITTEN.match(match["mount"]):
            yield Hit(index, facts={"mount": match["mount"]})

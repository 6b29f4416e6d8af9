"""Tables of tools: file systems without room, quotas, read-only mounts; and ENOSPC told apart with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tui.model.incident import Fact, Severity
from tui.model.telemetry import Filesystem
from tui.triage.finding import Hit
from tui.triage.view import View

WORDS = (
    "no space left", "设备上没有空间", "kein speicherplatz", "aucun espace", "queda espacio", "errno 28",
    "enospc", "% /", "not enough space", "磁盘空间不足", "disk full", "not enough disk space", "空き領域",
    "nessuno spazio", "磁盘已满", "inline_container", "##df", "semlock", "file write failed",
    " requested and ",
)  # fmt: skip
SHM = "/dev/shm"  # noqa: S108 - compared with, never written to
_NUMBER = r"\d{1,20}(?:[.,]\d{1,20})?"
_CELL = rf"{_NUMBER}[KMGTPi]*B?"
_ROW = re.compile(
    rf"^(?P<fs>\S.*?)?\s+(?P<size>{_CELL})\s+(?P<used>-?{_CELL})\s+(?P<avail>-?{_CELL})"
    r"\s+(?P<pct>\d+)%\s+(?P<mount>/.*)$"
)
_HEAD = re.compile(
    r"(?i)^(?:filesystem|file ?system|dateisystem|sys\. de fichiers|s\. ?ficheros|文件系统|檔案系統"
    r"|ファイルシス)"
)
_INODES = re.compile(r"(?i)inode|i節点|i节点|iused|iuti")
_MARK = re.compile(r"^#+ ?DF(?P<inodes>I?)\b|^(?:\$ )?df (?P<options>-\S+)")
_NO_DISK = re.compile(
    r"^(?:/dev/loop|squashfs|udev|devtmpfs|devfs|efivarfs|/dev/sr|fuse\.|portal|snapfuse|cvmfs2?)|/snap/|^/cvmfs/|^/boot(?:/|$)"
)
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


def listed(view: View) -> frozenset[str]:
    """The mounts of all tables of df."""
    if "listed" not in view.cache:
        rows = (_ROW.match(one.head) for one in view.rows)
        view.cache["listed"] = frozenset(row["mount"].strip() for row in rows if row)
    found: frozenset[str] = view.cache["listed"]
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
        size, avail = _figure(match["size"]), _figure(match["avail"])
        scale = 1024 if in_kib else 1
        in_bytes = in_kib or match["size"][-1:].isalpha()
        crumbs = in_bytes and not by_inodes and nothing_left(int(size * scale), int(avail * scale))
        if (avail <= 0 or crumbs) and size > 0 and int(match["pct"]) >= 99:
            yield Full(index, match["mount"].strip(), by_inodes)


_NEARLY_PCT = 90.0


@dataclass(frozen=True, slots=True)
class _Room:
    """What tables and the newest probe say of one place.

    Attributes:
        inodes, space: a table or the probe shows that there are none left.
        scarce: what the probe, older than the write that failed, saw of inodes that ran short while bytes
            did not; empty where it saw none.
    """

    inodes: bool
    space: bool
    scarce: str

    @property
    def about_inodes(self) -> bool:
        return not self.space and (self.inodes or bool(self.scarce))


def _room(view: View, path: str | None) -> _Room:
    """What is known of the file system that holds `path`; of all of them where nobody knows which it is."""
    seen = (view, *view.others)
    tables = [row for one in seen for row in full(one) if row.mount != SHM]
    systems = [fs for fs in (view.telemetry.filesystems.value if view.telemetry else None) or () if _disk(fs)]
    mounts = {str(fs.mount) for fs in systems}.union(*map(listed, seen))
    mount = holding(path, mounts) if path else None
    if mount is not None:
        tables = [one for one in tables if one.mount == mount]
        systems = [fs for fs in systems if fs.mount == mount]
    short = [fs for fs in systems if (fs.inodes or 0) > 1000 and (fs.inode_use_pct or 0) >= _NEARLY_PCT]
    roomy = not any((fs.use_pct or 0) >= _NEARLY_PCT for fs in systems)
    return _Room(
        any(one.inodes for one in tables) or any(fs.inodes and fs.inodes_free == 0 for fs in systems),
        any(not one.inodes for one in tables) or any(fs.avail_bytes == 0 and fs.size_bytes for fs in systems),
        f"{short[0].mount}: {short[0].inode_use_pct:.0f} % of the inodes used" if short and roomy else "",
    )


def _disk(fs: Filesystem) -> bool:
    """Whether files of a run are written there."""
    named = _NO_DISK.search(str(fs.source)) or _NO_DISK.search(fs.mount)
    return not (fs.read_only or fs.mount == SHM or named)


def holding(path: str, mounts: Iterable[str]) -> str | None:
    """The mount below which a path lies: the longest that is a beginning of it."""
    above = [one for one in mounts if path == one or path.startswith(one.rstrip("/") + "/")]
    return max(above, key=len, default=None)


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
    for index, path in _no_space(view):
        room = _room(view, path)
        if room.about_inodes:
            continue
        facts: dict[str, Fact] = {"resource": "bytes" if room.space else "unknown"}
        rank = None if _ERRNO.search(view.rows[index].text) else 74
        confidence = 0.95 if room.space else 0.85
        yield Hit(index, facts=facts | ({"path": path} if path else {}), rank=rank, confidence=confidence)
    for one in full(view):
        if not one.inodes and one.mount != SHM and view.kind == "disk":
            yield Hit(one.at, facts={"resource": "bytes", "mount": one.mount}, confidence=0.9)
    for index, one_row in enumerate(view.rows):
        if _WRITER.search(one_row.text) and not view.quoted(index, 0):
            yield Hit(index, facts={"resource": "unknown"}, rank=65, confidence=0.5)


def inodes_full(view: View, cls: str) -> Iterator[Hit]:
    """ENOSPC while a table shows no inode left, and such tables."""
    for index, path in _no_space(view):
        room = _room(view, path)
        if room.about_inodes:
            facts: dict[str, Fact] = {"resource": "inodes", **({"path": path} if path else {})}
            seen = "" if room.inodes else room.scarce  # inferred: so say from what
            yield Hit(
                index, seen, facts, confidence=0.85 if seen else 0.95, source="last probe" if seen else ""
            )
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


def _figure(cell: str) -> float:
    """A cell of df as a number: ``30G`` and ``20K`` count what they stand for."""
    number = float(re.sub(r"[^\d.-]", "", cell.replace(",", ".")) or 0)
    return number * _UNITS.get(re.sub(r"[^KMGTP]", "", cell), 1)


_STAR = re.compile(rf"(?:^|\s){_NUMBER}[KMGTP]?\*(?:\s|$)")
_BEEGFS = re.compile(
    rf"\|\|\s*(?P<used>{_NUMBER} [KMGTP]?i?B)\|\s*(?P<hard>{_NUMBER} [KMGTP]?i?B)\|\|"
    r"\s*(?P<files>\d+)\|\s*(?P<most>\d+)"
)
_GPFS = re.compile(
    r"\s(?:USR|GRP|FILESET)\s+(?P<used>\d+)\s+\d+\s+(?P<hard>\d+)\s+\d+\s+\S+(?: days?)?\s+\|"
    r"\s*(?P<files>\d+)\s+\d+\s+(?P<most>\d+)\s"
)
# repquota's lines, and those of xfs_quota
_LIMITS = rf"(?P<used>{_NUMBER}\w?) +(?P<soft>{_NUMBER}\w?) +(?P<hard>{_NUMBER}\w?)"
_REPORTED = re.compile(rf"\S+ +[-+]{{2}} +{_LIMITS}(?: +(?P<grace>[\da-z:]+days))?")
_XFS = re.compile(rf"\S+ +{_LIMITS} +\d+ +\[(?P<grace>[^\]]*)\]")
_GPFS_SOFT = re.compile(r"\s\d+ (?:days?|hours?|minutes?)(?:\s|$)")  # the time that a soft limit leaves
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
            elif _GPFS_SOFT.search(one.text):
                yield Hit(index, severity="warning")
        elif asked and (report := _REPORTED.match(one.text) or _XFS.match(one.text)) is not None:
            used, soft, hard = (_figure(report[name]) for name in ("used", "soft", "hard"))
            if used >= hard > 0:
                yield Hit(index)
            elif used > soft > 0:
                still = _GRACE_LEFT.match((report["grace"] or "").replace(" ", ""))
                yield Hit(index, severity="warning" if still else None)
        elif asked and _STAR.search(one.text):
            yield Hit(index, severity=_still_grace(one.text))


_FIGURE = re.compile(r"\[?(?P<number>\d{1,20}(?:\.\d{1,20})?)(?P<unit>[KMGTP])?[iB]{0,2}\]?(?P<over>\*)?")
_GRACE_LEFT = re.compile(r"(?:\d+(?:w|d|h|m|s|days?|hours?|weeks?|min\w*))+|\d+:\d\d")


def _still_grace(row: str) -> Severity | None:
    """A warning where only soft limits are passed and each has time left: writes still go through."""
    cells = row.split()
    over = [place for place, cell in enumerate(cells) if cell.endswith("*") and _FIGURE.fullmatch(cell)]
    return "warning" if over and all(_has_grace(cells[place : place + 4]) for place in over) else None


def _has_grace(cells: list[str]) -> bool:
    """Whether (used, soft, hard, grace) is below its hard limit with time left."""
    figures = [_FIGURE.fullmatch(cell) for cell in cells[:3]]
    if len(cells) < 4 or None in figures or not _GRACE_LEFT.match(cells[3]):
        return False
    used, _, hard = (float(one["number"]) * _UNITS[one["unit"] or "B"] for one in figures if one)
    return hard == 0 or used < hard


def _bytes(figure: str) -> float:
    number, unit = figure.split()
    return float(number.replace(",", ".")) * _UNITS[unit[0]]


_MOUNTED = re.compile(
    r"^(?P<device>\S+) (?:on )?(?P<mount>/\S*) (?:type )?(?P<type>\S+) \(?(?P<options>ro(?:,\S*)?)(?:\)| |$)"
)
_WRITTEN = re.compile(
    r"^/(?:home(?:/[^/]+)?|root|root/autodl-(?:tmp|fs)|tmp|workspace|data|scratch|mnt/(?:data|workspace)"
    r"|hy-tmp|openbayes(?:/\w+)?|var|opt)?$"
)
_BY_DESIGN = re.compile(r"squashfs|iso9660|cramfs|erofs|proc|sysfs|cgroup|tmpfs|devtmpfs|nsfs|ramfs")


def read_only(view: View, cls: str) -> Iterator[Hit]:
    """A mount one writes to that is read-only."""
    for index, one in enumerate(view.rows):
        match = _MOUNTED.match(one.text)
        if match and not _BY_DESIGN.search(match["type"]) and _WRITTEN.match(match["mount"]):
            yield Hit(index, facts={"mount": match["mount"]})

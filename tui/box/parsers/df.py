"""``df`` of GNU, busybox, BSD and macOS, in bytes, inodes and ``-h`` figures, in any language.

Rows are recognised by their own shape, never by counting words of the header, which are translated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from tui.box.parsers.command import Invocation
from tui.box.parsers.lines import lines
from tui.box.parsers.mount_kinds import (
    is_file_bind,
    is_placeholder,
    names_no_capacity,
)
from tui.box.parsers.refusal import errno_of
from tui.box.parsers.report import FsReport, Mount, MountProblem
from tui.box.parsers.sizes import figure, scaled
from tui.model.telemetry import Filesystem
from tui.model.text import safe

_AMOUNT = r"-?\d{1,24}(?:[.,]\d{1,3})?(?:[KMGTPEZYkB]i?B?|i)?|-"
_COUNT = r"-?\d{1,24}(?:[.,]\d{1,3})?[KMGTPEkm]?|-"
_SHARE = r"-?\d{1,6}\s?%|-"

# Column -> shape. `source` and `target` may hold blanks; the rest never does.
_SHAPES = {
    "source": r"(?P<source>\S(?:.*?\S)?)",
    "fstype": r"(?P<fstype>\S+)",
    "size": rf"(?P<size>{_AMOUNT})",
    "used": rf"(?P<used>{_AMOUNT})",
    "avail": rf"(?P<avail>{_AMOUNT})",
    "pcent": rf"(?P<pcent>{_SHARE})",
    "itotal": rf"(?P<itotal>{_COUNT})",
    "iused": rf"(?P<iused>{_COUNT})",
    "iavail": rf"(?P<iavail>{_COUNT})",
    "ipcent": rf"(?P<ipcent>{_SHARE})",
    "file": r"(?P<file>\S+)",
    "target": r"(?P<target>/.*|\S:\\.*|-)",
}
_BYTES = ("source", "size", "used", "avail", "pcent", "target")
_INODES = ("source", "itotal", "iused", "iavail", "ipcent", "target")
_BSD = ("source", "size", "used", "avail", "pcent", "iused", "iavail", "ipcent", "target")
_ALL = (
    "source", "fstype", "itotal", "iused", "iavail", "ipcent",
    "size", "used", "avail", "pcent", "file", "target",
)  # fmt: skip

_INODE_HEADER = re.compile(
    r"\binodes?\b|IUsed|IUse%|已用\(?I|inœuds|Nodos-i|Iノード|INodes|Инодов|索引节点|Inode", re.IGNORECASE
)
_TYPE_HEADER = re.compile(r"\s(?:Type|类型|Typ|Tipo|Тип|タイプ|유형|類型|Typen?)\s", re.IGNORECASE)
_HUMAN_HEADER = re.compile(r"\s(?:Size|大小|容量|Größe|Taille|Tamaño|Размер|サイズ|Dim\.|Tam\.)\s")
_BLOCK = re.compile(r"(?<![\w.])(\d{1,9})\s*([kKMGTP]?)(i?B?)(?=[\s-]|的|块|區|-?[Bb]l|ブロック|$)")
_HEADER = re.compile(
    r"(?:Filesystem|文件系统|檔案系統|Dateisystem|Sys\. de fichiers|S\.ficheros|Файл\S* система|ファイルシス|"
    r"File ?system|UUID|Filsystem|Sist\. Arq\.|파일 ?시스템|Fil[es]\S*|Plikow\S*|System plików)\s"
)
_ERROR = re.compile(r"(?:\S*/)?df: (?P<what>.+)\Z")
_NO_MOUNT = "-"  # where ``df --total`` prints its sum
_QUOTES = "'\"‘’“”`«» "
_LUSTRE_PART = re.compile(r"\S+\[(?:MDT|OST):\w+\]\s*\Z")
_BLANKS = " \t\r"
_UNITS = {"": 1, "K": 1024, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


@cache
def _row_pattern(columns: tuple[str, ...]) -> re.Pattern[str]:
    """A row of these columns. Only ASCII blanks part columns: a name may hold a wide one."""
    return re.compile(r"\s*+" + r"\s++".join(_SHAPES[column] for column in columns) + r"\s*\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Form:
    """How the rows of one ``df`` answer are to be read.

    Attributes:
        columns: names of `_SHAPES` in order.
        block: bytes per unit of plain figures; None where plain figures are bytes or human.
        si: suffixes are powers of 1000.
    """

    columns: tuple[str, ...]
    block: int
    si: bool = False
    human: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        return _row_pattern(self.columns)


def read_df(text: str, stderr: str, calls: Sequence[Invocation]) -> FsReport:
    """Every mount of one or several ``df`` answers, bytes and inodes of one mount put together.

    Args:
        text: what was printed, error lines perhaps among it.
        stderr: what was printed beside it.
        calls: the ``df`` calls that printed it, for their flags.
    """
    rows: list[Mount] = []
    section = -1
    form = _form(calls[0] if calls else None, "")
    pending = ""
    seen = unread = False
    for line in lines(text):
        if _HEADER.match(line) and not form.pattern.match(line):
            section += 1
            form = _form(_call_of(calls, section, text), line)
            pending, seen, unread = "", True, False
            continue
        match = _match(form, line) or (_match(form, f"{pending} {line.strip(_BLANKS)}") if pending else None)
        pending = ""
        if match is not None:
            rows.append(_mount(match, form))
        elif line.strip() and not _ERROR.match(line):
            unread = True
            if not line[0].isspace():
                pending = line.strip(_BLANKS)  # a long device name stands on a line of its own
    report = _gathered([row for row in rows if row.path != _NO_MOUNT])
    problems = mount_problems(f"{stderr}\n{text}")
    told = bool(rows) or (seen and not unread)
    return replace(report, problems=problems, mounts=report.mounts if told else None)


def _match(form: _Form, line: str) -> re.Match[str] | None:
    """A row of this form, or of the BSD form with its three more columns, which no flag announces."""
    return form.pattern.match(line) or _row_pattern(_BSD).match(line)


def mount_problems(text: str) -> tuple[MountProblem, ...]:
    """The paths ``df`` complains about, from its error lines."""
    found: list[MountProblem] = []
    for line in lines(text):
        match = _ERROR.match(line)
        if match is None or ":" not in match["what"]:
            continue
        path, _, message = match["what"].rpartition(": ")
        path = path.removeprefix("cannot access ").removeprefix("无法访问").strip(_QUOTES)
        if path:
            found.append(MountProblem(path, errno_of(message), safe(message)))
    return tuple(found)


def _call_of(calls: Sequence[Invocation], section: int, text: str) -> Invocation | None:
    """The call that printed a section; None when their numbers differ (one of them may have failed)."""
    headers = sum(1 for line in lines(text) if _HEADER.match(line))
    if len(calls) == headers:
        return calls[section]
    return calls[0] if len(calls) == 1 else None


def _form(call: Invocation | None, header: str) -> _Form:
    """How to read rows, from the flags of the call where known and from the header."""
    si = call is not None and call.flag("-H", "--si")
    human = si or (call is not None and call.flag("-h", "--human-readable"))
    outputs = call.value("--output") if call else None
    columns = _columns(call, header, outputs)
    human = human or (bool(_HUMAN_HEADER.search(header)) and not _BLOCK.search(header))
    return _Form(columns, _block(call, header), si, human)


def _columns(call: Invocation | None, header: str, outputs: str | None) -> tuple[str, ...]:
    if outputs:
        return tuple(name for name in outputs.split(",") if name in _SHAPES) or _BYTES
    if call and "--output" in call.args:
        return _ALL
    columns: tuple[str, ...] = _BYTES
    if "%iused" in header:
        columns = _BSD
    elif call is not None:
        columns = _INODES if call.flag("-i", "--inodes") else _BYTES
    else:
        columns = _INODES if _INODE_HEADER.search(header) else _BYTES
    typed = call.flag("-T", "--print-type") if call else False
    if typed or _TYPE_HEADER.search(header):
        columns = (columns[0], "fstype", *columns[1:])
    return columns


def _block(call: Invocation | None, header: str) -> int:
    match = _BLOCK.search(header)
    if match:
        letter = match[2].upper()
        unit = _UNITS[letter] if match[3] != "B" or not letter else _power_of_1000(letter)
        return max(1, int(match[1]) * unit)
    if call is not None:
        size = re.match(r"(\d{0,9})([KMGTP]?)(B?)\Z", call.value("-B", "--block-size") or "-")
        if size:
            return max(1, int(size[1] or 1)) * (_power_of_1000(size[2]) if size[3] else _UNITS[size[2]])
        for flag, unit in (("-m", 1 << 20), ("-g", 1 << 30), ("-k", 1024), ("-b", 512)):
            if call.flag(flag):
                return unit
    return 1024


def _power_of_1000(letter: str) -> int:
    return int(1000 ** (" KMGTP".index(letter or " ")))


def _mount(match: re.Match[str], form: _Form) -> Mount:
    cells = match.groupdict()
    human = form.human or any(_has_unit(cells.get(name)) for name in ("size", "used", "avail"))
    base = 1000 if form.si else 1024
    size, used, avail = (
        scaled(cells.get(name), 1 if human else form.block, base) for name in ("size", "used", "avail")
    )
    total, taken, free, share = _inodes(cells)
    source, path = (
        (cells.get("source") or "").strip(_BLANKS),
        (cells.get("target") or cells.get("file") or "").rstrip(_BLANKS),
    )
    shown = Filesystem(
        mount=safe(path),
        source=safe(source),
        fstype=safe(cells["fstype"]) if cells.get("fstype") else None,
        size_bytes=size,
        used_bytes=used,
        avail_bytes=avail,
        use_pct=_share(cells.get("pcent")),
        inodes=total,
        inodes_used=taken,
        inodes_free=free,
        inode_use_pct=share,
        rounded=human,
        capacity_meaningless=names_no_capacity(source, cells.get("fstype") or "", size, used, avail),
    )
    figures = [figure(cells.get(name)) for name in ("size", "used", "avail")]
    one, two, three = (safe(text or "") for text in figures)
    return Mount(shown, path, source, (one, two, three) if human and any(figures) else None)


def _has_unit(cell: str | None) -> bool:
    return bool(cell) and bool(re.search(r"[A-Za-z]", cell or ""))


def _share(cell: str | None) -> float | None:
    digits = (cell or "").rstrip("% ")
    return float(digits) if re.match(r"-?\d+\Z", digits) else None


def _inodes(cells: dict[str, str | None]) -> tuple[int | None, int | None, int | None, float | None]:
    """(total, used, free, percent). A file system that counts none prints zeros: nothing is known then."""
    total, used, free = (scaled(cells.get(name), 1, 1000) for name in ("itotal", "iused", "iavail"))
    if total is None and used is not None and free is not None:
        total = used + free  # BSD does not print it
    if not total:
        return None, None, None, None
    return total, used, free, _share(cells.get("ipcent"))


def _gathered(rows: Sequence[Mount]) -> FsReport:
    """Rows of all sections as one list: one entry a mount, without placeholders and file mounts."""
    ignored: list[str] = []
    found: dict[str, Mount] = {}
    overmounted = 0
    for row in rows:
        if _LUSTRE_PART.match(row.path):
            continue  # ``lfs df`` sums its servers up in a row of their mount
        if is_placeholder(row.device, row.shown):
            ignored.append(row.path)
            continue
        before = found.get(row.path)
        if before is not None and before.device == row.device:
            found[row.path] = _merged(before, row)
        else:
            overmounted += before is not None
            found[row.path] = row
    binds = [path for path, row in found.items() if is_file_bind(path, row.shown.fstype or "")]
    for path in binds:
        del found[path]
    return FsReport(
        mounts=tuple(found.values()),
        hidden_binds=len(binds),
        overmounted=overmounted,
        ignored=tuple(ignored),
    )


def _merged(before: Mount, after: Mount) -> Mount:
    """Two rows of one mount: the later value of each field that it has."""
    names = ("fstype", "size_bytes", "used_bytes", "avail_bytes", "use_pct")
    inodes = ("inodes", "inodes_used", "inodes_free", "inode_use_pct")
    older, newer = before.shown, after.shown
    if newer.size_bytes is None and newer.used_bytes is None:  # an inode row after a byte row
        newer = replace(
            newer,
            **{name: getattr(older, name) for name in names},
            rounded=older.rounded,
            capacity_meaningless=older.capacity_meaningless,
        )
    elif newer.inodes is None:
        newer = replace(newer, **{name: getattr(older, name) for name in inodes})
    return Mount(newer, after.path, after.device, after.figures or before.figures)

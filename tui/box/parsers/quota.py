"""Quota reports: quota(1), repquota, ``lfs quota``, xfs_quota, GPFS's mmlsquota and BeeGFS's table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tui.box.parsers.lines import lines
from tui.box.parsers.report import Quota, QuotaReport
from tui.box.parsers.sizes import figure, scaled
from tui.model.text import SafeText, safe

_NUMBER = re.compile(r"\[?-?\d{1,24}(?:[.,]\d{1,3})?[KMGTPEkmgtp]?i?[Bb]?\]?\*?\Z")
_OWNER = re.compile(
    r"Disk quotas for (?:user|usr|group|grp|project|prj) (\S+?)(?: \([^)]*\))?:?\s*(none)?\s*\Z",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"\s*(?:Filesystem|文件系统|Dateisystem)\s+(?P<unit>blocks|kbytes|bytes|used|space|Blocks|块数|空间|KB)\b"
)
_REPORT_ROW = re.compile(r"(?P<name>\S+)\s+(?P<flags>[-+]{2})\s+(?P<rest>\S.*)\Z")
_REPORT_FS = re.compile(r"\*\*\* Report for (?:user|group|project) quotas on device (\S+)")
_XFS_HEAD = re.compile(r"(?:User|Group|Project) quota on (?P<path>/.*?) \((?P<device>\S+)\)")
_XFS_ROW = re.compile(
    r"(?P<name>\S+)\s+(?P<used>\S+)\s+(?P<soft>\S+)\s+(?P<hard>\S+)\s+\d+\s+"
    r"\[(?P<grace>[-\w: ]+)\](?P<rest>.*)\Z"
)
_XFS_FILES = re.compile(r"\s+(?P<used>\S+)\s+(?P<soft>\S+)\s+(?P<hard>\S+)\s+\d+\s+\[(?P<grace>[-\w: ]+)\]")
_GPFS_HEAD = re.compile(
    r"\s*Filesystem\s+(?:Fileset\s+)?type\s+(?P<unit>KB|blocks|MB|GB|TB)\b", re.IGNORECASE
)
_NO_GRACE = frozenset({"-", "none", "", "-none-", "--------", "0"})
_GPFS_UNIT = {"kb": 1024, "blocks": 1024, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}


def read_quota(text: str) -> QuotaReport:
    """Every line of all quota reports in `text`; `quotas` None if it holds none that is known."""
    classic, told = _classic(text)
    found = (*classic, *(quota for reader in (_beegfs, _gpfs, _xfs, _repquota) for quota in reader(text)))
    return QuotaReport(found if found or told else None)


def most_pressing(report: QuotaReport) -> Quota | None:
    """The line to look at first: one that is over, else the first."""
    quotas = report.quotas or ()
    return next((quota for quota in quotas if quota.over), quotas[0] if quotas else None)


def _make(
    name: str,
    space: Sequence[str],
    files: Sequence[str],
    *,
    fs: str | None = None,
    grace: str = "",
    files_grace: str = "",
    block: int = 1024,
    flagged: bool = False,
) -> Quota:
    """A line from its cells: `space` and `files` are (used, soft, hard), each with marks as printed."""
    used, soft, hard = (_amount(cell, block) for cell in space)
    count, files_soft, files_hard = (_amount(cell, 1, 1000) for cell in files)
    soft, hard, files_soft, files_hard = (limit or None for limit in (soft, hard, files_soft, files_hard))
    over = (
        flagged
        or any(_marked(cell) for cell in (*space, *files))
        or _beyond(used, soft, hard)
        or _beyond(count, files_soft, files_hard)
    )
    with_unit = bool(re.search(r"[A-Za-z]", space[0]))
    return Quota(
        name=safe(name),
        used_bytes=used,
        soft_bytes=soft,
        hard_bytes=hard,
        files=count,
        files_soft=files_soft,
        files_hard=files_hard,
        over=over,
        grace=_grace(grace, _marked(space[0])),
        files_grace=_grace(files_grace, _marked(files[0])),
        fs=safe(fs) if fs else None,
        figures=(safe(_plain(space[0]) or ""), _limit_figure(space[1]), _limit_figure(space[2]))
        if with_unit
        else None,
    )


def _amount(cell: str, block: int, base: int = 1024) -> int | None:
    return scaled(cell.strip("[] ").rstrip("*").strip("[] "), block, base)


def _plain(cell: str) -> str | None:
    return figure(cell.strip("[]").rstrip("*").strip("[]"))


def _limit_figure(cell: str) -> SafeText | None:
    plain = _plain(cell)
    return safe(plain) if plain and scaled(plain) else None


def _beyond(used: int | None, soft: int | None, hard: int | None) -> bool:
    return used is not None and ((hard is not None and used >= hard) or (soft is not None and used > soft))


def _marked(cell: str) -> bool:
    return cell.rstrip("]").endswith("*")


def _grace(text: str, over: bool) -> SafeText | None:
    """The time left. Where the limit is passed, ``none`` says that there is none left."""
    word = text.strip()
    return None if word.lower() in _NO_GRACE and not (over and word == "none") else safe(word)


def _spaced(cells: Sequence[str]) -> tuple[list[str], str, list[str], str] | None:
    """(space, grace, files, grace) from the cells after a name. Empty grace columns leave no cell behind."""
    rest = list(cells)
    halves: list[tuple[list[str], str]] = []
    raw_grace = len(rest) == 8 and all(_NUMBER.match(cell) for cell in rest)  # ``-p`` prints seconds
    for _ in range(2):
        figures, rest = rest[:3], rest[3:]
        if len(figures) < 3 or not all(_NUMBER.match(cell) or cell == "-" for cell in figures):
            break
        grace = ""
        if rest and (raw_grace or not _NUMBER.match(rest[0])):
            grace, rest = rest[0], rest[1:]
            if rest and re.match(r"(?:days?|hours?|minutes?|weeks?)\b", rest[0]):
                grace, rest = f"{grace} {rest[0]}", rest[1:]
        halves.append((figures, grace))
    if not halves or rest:
        return None
    if len(halves) == 1:
        halves.append((["-", "-", "-"], ""))
    (space, grace), (files, files_grace) = halves
    return space, grace, files, files_grace


def _classic(text: str) -> tuple[tuple[Quota, ...], bool]:
    """quota(1) and ``lfs quota``: (lines, whether the report says that there are none)."""
    found: list[Quota] = []
    owner, pending, block, told = "", "", 1024, False
    for line in lines(text):
        head, header = _OWNER.match(line.strip()), _HEADER.match(line)
        if head or header:
            owner, told = (head[1], told or bool(head[2])) if head else (owner, told)
            block = 1 if header and header["unit"] == "bytes" else 1024
            pending = ""
            continue
        cells = line.split()
        if pending and cells and _NUMBER.match(cells[0]):
            cells = [pending, *cells]
        pending = cells[0] if len(cells) == 1 and not _NUMBER.match(cells[0]) else ""
        if len(cells) < 4 or (not owner and not cells[0].startswith("/") and ":" not in cells[0]):
            continue
        parts = _spaced(cells[1:])
        if parts is not None:
            space, grace, files, files_grace = parts
            found.append(
                _make(owner, space, files, fs=cells[0], grace=grace, files_grace=files_grace, block=block)
            )
    return tuple(found), told


def _repquota(text: str) -> Iterator[Quota]:
    device: str | None = None
    for line in lines(text):
        head, row = _REPORT_FS.match(line), _REPORT_ROW.match(line)
        if head:
            device = head[1]
        parts = _spaced(row["rest"].split()) if row else None
        if row and parts:
            space, grace, files, files_grace = parts
            flagged = "+" in row["flags"]
            yield _make(
                row["name"], space, files, fs=device, grace=grace, files_grace=files_grace, flagged=flagged
            )


def _xfs(text: str) -> Iterator[Quota]:
    """``xfs_quota -x -c 'report …'``, blocks and perhaps inodes in one line."""
    head = _XFS_HEAD.search(text)
    if head is None:
        return
    for line in lines(text):
        row = _XFS_ROW.match(line)
        if row is None or not _NUMBER.match(row["used"]):
            continue
        files = _XFS_FILES.match(row["rest"])
        counts = [files["used"], files["soft"], files["hard"]] if files else ["-", "-", "-"]
        yield _make(
            row["name"],
            [row["used"], row["soft"], row["hard"]],
            counts,
            fs=head["device"],
            grace=row["grace"].strip("-"),
            files_grace=files["grace"].strip("-") if files else "",
        )


def _gpfs(text: str) -> Iterator[Quota]:
    """mmlsquota: block cells, a bar, file cells; each half ends with *in doubt* and grace."""
    block, fileset = 0, False
    for line in lines(text):
        head = _GPFS_HEAD.match(line)
        if head:
            block, fileset = _GPFS_UNIT[head["unit"].lower()], "fileset" in line.lower()
            continue
        left, bar, right = line.partition("|")
        cells = left.split()
        first = 3 if fileset else 2
        if (
            not block
            or not bar
            or len(cells) < first + 4
            or not re.match(r"(?:USR|GRP|FILESET)\Z", cells[first - 1])
        ):
            continue
        files = right.split()
        if not all(_NUMBER.match(cell) for cell in cells[first : first + 3]):
            continue
        yield _make(
            cells[1] if fileset else cells[0],
            cells[first : first + 3],
            files[:3] if len(files) >= 3 else ["-", "-", "-"],
            fs=cells[0],
            grace=" ".join(cells[first + 4 :]),
            files_grace=" ".join(files[4:6])
            if len(files) > 5 and files[4].isdigit()
            else "".join(files[4:5]),
            block=block,
        )


def _beegfs(text: str) -> Iterator[Quota]:
    """``name | id || used | hard || used | hard``."""
    for line in lines(text):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 8 and not cells[2] and not cells[5] and re.match(r"\d+\Z", cells[1]):
            yield _make(cells[0], (cells[3], "-", cells[4]), (cells[6], "-", cells[7]), block=1)

"""What takes up the space: ``du``, and files that are deleted but still open (``lsof +L1``)."""

from __future__ import annotations

import re

from tui.box.parsers.command import Invocation
from tui.box.parsers.lines import lines
from tui.box.parsers.report import DeletedFile, DeletedReport, DirReport, DirUse
from tui.box.parsers.sizes import figure, scaled
from tui.model.text import safe

_DU_ROW = re.compile(r" *(?P<size>\d{1,24}(?:[.,]\d)?[KMGTPEZY]?)(?:\t|\s{2,})(?P<path>\S.*)\Z")
_DU_ERROR = re.compile(r"(?:\S*/)?du: ")
_TOTALS = frozenset({"total", "总用量", "总计", "insgesamt", "total général", "итого"})
_LSOF_ROW = re.compile(
    r"(?P<command>\S+)\s+(?P<pid>\d{1,10})\s+(?:\d+\s+)?(?:\S+\s+)??(?P<user>\S+)\s+"
    r"(?P<fd>\d+[rwu]?[a-zA-Z]?|txt|mem|DEL|cwd|rtd|err)\s+"
    r"(?P<type>[A-Za-z]\w*)\s+(?P<device>\d+,\d+|0x\w+)\s+"
    r"(?P<size>0t\d+|0x[0-9a-f]+|\d+)\s+(?:(?P<links>\d+)\s+)?(?P<node>\d+)\s+(?P<name>/.*)\Z"
)
_FD_LINK = re.compile(r".*/proc/(?P<pid>\d{1,10})/fd/\d+ -> '?(?P<name>/.*?) \(deleted\)'?\s*\Z")
_DELETED = " (deleted)"


def read_du(text: str, stderr: str, call: Invocation | None, exit_status: int | None) -> DirReport:
    """Sizes of directories, in the order printed.

    Args:
        call: tells the unit: ``-k`` (also the default), ``-m``, ``-b``, ``-h``, ``--inodes``.
        exit_status: 1 when something could not be read.
    """
    inodes = call is not None and call.flag("--inodes")
    block = _block(call)
    with_total = call is not None and call.flag("-c", "--total")
    found: list[DirUse] = []
    for line in lines(text):
        row = _DU_ROW.match(line)
        if row is None or _DU_ERROR.match(line) or (with_total and row["path"] in _TOTALS):
            continue
        if inodes:
            found.append(DirUse(row["path"], inodes=scaled(row["size"], 1, 1000)))
        else:
            shown = figure(row["size"]) if re.search(r"[A-Z]", row["size"]) else None
            found.append(
                DirUse(
                    row["path"], size_bytes=scaled(row["size"], block), figure=safe(shown) if shown else None
                )
            )
    failed = any(_DU_ERROR.match(line) for line in lines(f"{text}\n{stderr}")) or exit_status not in {0, None}
    return DirReport(tuple(found) or None, incomplete=failed)


def _block(call: Invocation | None) -> int:
    if call is None:
        return 1024
    size = call.value("-B", "--block-size")
    if size:
        return scaled(size) or 1024
    if call.flag("-b", "--bytes"):
        return 1
    return 1 << 20 if call.flag("-m") else 1024


def read_deleted(text: str) -> DeletedReport:
    """Deleted files that are still open, each once for every process, however many descriptors it has.

    Reads ``lsof`` (with or without a link count) and ``ls -l /proc/PID/fd``, which tells no size.
    """
    found: dict[tuple[int, str, str], DeletedFile] = {}
    seen = False
    for line in lines(text):
        seen = seen or line.startswith("COMMAND")
        row, link = _LSOF_ROW.match(line), _FD_LINK.match(line)
        if row and (row["links"] == "0" or row["name"].rstrip().endswith(_DELETED)):
            size = int(row["size"]) if row["size"].isdigit() else None
            path = row["name"].rstrip().removesuffix(_DELETED)
            key = (int(row["pid"]), row["node"], path)
            found.setdefault(key, DeletedFile(key[0], size, path, safe(row["command"])))
        elif link:
            key = (int(link["pid"]), "", link["name"])
            found.setdefault(key, DeletedFile(key[0], None, link["name"]))
    return DeletedReport(tuple(found.values()) if found or seen else None)

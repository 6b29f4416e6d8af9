"""Lists of mounts: /proc/mounts, /proc/self/mountinfo, ``mount``, and ``findmnt`` in its text, pair and JSON
forms."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tui.box.parsers.lines import lines
from tui.box.parsers.mount_kinds import PSEUDO, READ_ONLY_BY_NATURE, names_no_capacity
from tui.box.parsers.report import FsReport, Mount
from tui.box.parsers.sizes import figure, scaled
from tui.model.telemetry import Filesystem
from tui.model.text import safe

_OCTAL = re.compile(r"\\([0-7]{3})|\\x([0-9a-fA-F]{2})")
# The kernel escapes blank, tab, LF and backslash; every other byte may stand in a path.
_FSTAB_LINE = re.compile(
    r"(?P<source>[^ ]+) (?P<target>/[^ ]*) (?P<fstype>[^ ]+) (?P<options>[^ ]+) \d+ \d+\s*\Z"
)
_MOUNTINFO = re.compile(
    r"\d+ \d+ \d+:\d+ [^ ]+ (?P<target>/[^ ]*) (?P<options>[^ ]+)(?: [a-z_]+:\d+| unbindable)* - "
    r"(?P<fstype>[^ ]+) (?P<source>[^ ]+) (?P<super>[^ ]+)\s*\Z"
)
_MOUNT_LINE = re.compile(
    r"(?P<source>\S.*?) on (?P<target>/.*?) type (?P<fstype>\S+) \((?P<options>[^()]*)\)(?: \[.*\])?\s*\Z"
)
_MOUNT_BSD = re.compile(r"(?P<source>\S.*?) on (?P<target>/.*?) \((?P<options>[^()]*)\)\s*\Z")
_TREE_MARKS = re.compile(r"\A[├└│─`|\s-]*(?=/)")
_FINDMNT_HEADER = re.compile(r"\s*(?:TARGET|SOURCE)\s")
_FINDMNT_ROW = re.compile(
    r"(?P<target>/.*?)\s{1,}(?P<source>\S+)\s+(?P<fstype>\S+)\s+(?P<options>(?:ro|rw)(?:,\S*)?)\s*\Z"
)
_MAX_DEPTH = 64


def read_mounts(text: str, columns: Sequence[str] = ()) -> FsReport:
    """Every mount of whichever form `text` has; of several on one path the last, which covers the others.

    Args:
        columns: those that findmnt was asked for, in order; they need no headline then.
    """
    found: dict[str, Mount] = {}
    overmounted = 0
    rows = list(_json_rows(text)) or list(_line_rows(text, columns))
    for row in rows:
        mount = _mount(row)
        overmounted += mount.path in found
        found.pop(mount.path, None)
        found[mount.path] = mount
    return FsReport(mounts=tuple(found.values()) or None, overmounted=overmounted)


def read_only_paths(report: FsReport) -> tuple[str, ...]:
    """Paths mounted read-only, without kernel interfaces and images that can be nothing else."""
    never = PSEUDO | READ_ONLY_BY_NATURE
    return tuple(
        mount.path
        for mount in report.mounts or ()
        if mount.shown.read_only and (mount.shown.fstype or "") not in never
    )


def unescape(text: str) -> str:
    r"""A path as the kernel's lists escape it: ``\040`` and its like are single bytes."""
    if "\\" not in text:
        return text
    pieces: list[bytes] = []
    at = 0
    for match in _OCTAL.finditer(text):
        pieces.append(text[at : match.start()].encode("utf-8", "surrogateescape"))
        pieces.append(bytes([int(match[1], 8) & 255 if match[1] else int(match[2], 16)]))
        at = match.end()
    pieces.append(text[at:].encode("utf-8", "surrogateescape"))
    return b"".join(pieces).decode("utf-8", "surrogateescape")


def _mount(row: Mapping[str, str]) -> Mount:
    source, target = unescape(row.get("source", "")), unescape(row["target"])
    options = re.split(r",\s*", row.get("options", ""))
    fstype = row.get("fstype") or (options[0] if options[0] not in {"ro", "rw", ""} else "")
    read_only = "ro" in options or "read-only" in options or "ro" in row.get("super", "").split(",")
    shown = Filesystem(
        mount=safe(target),
        source=safe(source),
        fstype=safe(fstype) if fstype else None,
        read_only=read_only if row.get("options") else None,
    )
    return _with_figures(Mount(shown, target, source), row)


def _with_figures(mount: Mount, row: Mapping[str, str]) -> Mount:
    """``findmnt -D`` and ``--df`` tell sizes too."""
    if "size" not in row:
        return mount
    size, used, avail = (scaled(row.get(name)) for name in ("size", "used", "avail"))
    share = re.match(r"(\d{1,4})%\Z", row.get("use%", ""))
    shown = replace(
        mount.shown,
        size_bytes=size,
        used_bytes=used,
        avail_bytes=avail,
        use_pct=float(share[1]) if share else None,
        rounded=any(re.search(r"[A-Z]", row.get(name, "")) for name in ("size", "used", "avail")),
        capacity_meaningless=names_no_capacity(mount.device, mount.shown.fstype or "", size, used, avail),
    )
    one, two, three = (safe(figure(row.get(name)) or "") for name in ("size", "used", "avail"))
    return replace(mount, shown=shown, figures=(one, two, three))


def _line_rows(text: str, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    table = list(columns)
    for line in lines(text):
        if _FINDMNT_HEADER.match(line) and not line.startswith("/"):
            table = line.split()
            continue
        row = _pairs(line) or _matched(line, *_forms(line))
        if row is None and table:
            row = _table_row(line, table)
        elif row is None:
            row = _matched(_TREE_MARKS.sub("", line, count=1), _FINDMNT_ROW)
        if row is not None:
            yield row


def _forms(line: str) -> tuple[re.Pattern[str], ...]:
    """The forms a line may have, told by its end: options in brackets only where a bracket closes it."""
    return (_MOUNT_LINE, _MOUNT_BSD) if line.rstrip().endswith((")", "]")) else (_FSTAB_LINE, _MOUNTINFO)


def _matched(line: str, *patterns: re.Pattern[str]) -> dict[str, str] | None:
    for pattern in patterns:
        match = pattern.match(line)
        if match:
            return {name: value for name, value in match.groupdict().items() if value is not None}
    return None


def _pairs(line: str) -> dict[str, str] | None:
    """``TARGET="/" SOURCE="/dev/sda1" …`` of ``findmnt -P``."""
    if not re.match(r'[A-Z%-]+="', line):
        return None
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    row = _lowered({key: value for key, _, value in (word.partition("=") for word in words)})
    return row if row.get("target", "").startswith("/") else None


def _table_row(line: str, header: Sequence[str]) -> dict[str, str] | None:
    cells = _TREE_MARKS.sub("", line, count=1).split()
    if len(cells) != len(header):
        return None
    row = _lowered(dict(zip(header, cells, strict=True)))
    return row if row.get("target", "").startswith("/") else None


def _lowered(row: Mapping[str, str]) -> dict[str, str]:
    return {key.lower().replace("-", "_"): value for key, value in row.items()}


def _json_rows(text: str) -> Iterator[dict[str, str]]:
    """``findmnt -J``: mounts nest below each other."""
    start = text.find("{")
    if start < 0 or '"filesystems"' not in text:
        return
    try:
        document, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return
    if isinstance(document, dict):
        yield from _json_below(document.get("filesystems"), 0)


def _json_below(entries: object, depth: int) -> Iterator[dict[str, str]]:
    for entry in entries if isinstance(entries, list) and depth < _MAX_DEPTH else ():
        if not isinstance(entry, dict):
            continue
        row = _lowered({str(key): str(value) for key, value in entry.items() if isinstance(value, str | int)})
        if row.get("target", "").startswith("/"):
            yield row
        yield from _json_below(entry.get("children"), depth + 1)

"""Search beyond the lines in memory: the spool here, then what is older in the file on the box."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from tui.box.tail.spool import Rows, Spool
from tui.box.transport import Script, Transport
from tui.model.command import SearchLog
from tui.model.log import LogPosition, SearchHit, SearchResult
from tui.model.text import LogGate, SafeText, plain, safe

MOST_HITS = 500
_PER_WINDOW = 100
_BLOCK = 64 << 10
WINDOW = 64 << 20
"""Bytes of the file on the box searched by one command; between commands a search can be cancelled."""

# $1 path  $2 inode  $3 first block  $4 end of the searched bytes  $5 pattern  $6 -F or -E  $7 -i or empty
# $8 most lines. The first row is where the first whole line begins; it ends the window before this one, so
# every line is searched in exactly one window.
SEARCH = r"""
LC_ALL=C; export LC_ALL
unset TIME_STYLE BLOCK_SIZE BLOCKSIZE LS_BLOCK_SIZE QUOTING_STYLE POSIXLY_CORRECT
p=$1; inode=$2; block=$3; end=$4; pattern=$5; kind=$6; fold=$7; most=$8
case $p in "~/"*) p=$HOME/${p#"~/"} ;; /*) ;; *) p=./$p ;; esac
is() { set -f; set -- $(ls -Lidn -- "$1" 2>/dev/null); [ "$1" = "$inode" ]; }
if ! is "$p"; then
  dir=${p%/*}
  p=$(find "${dir:-/}" -maxdepth 1 -type f -inum "$inode" 2>/dev/null | head -n 1)
  is "$p" || exit 3
fi
from=$((block * 65536)); skip=0
if [ "$block" -gt 0 ]; then
  skip=$(dd if="$p" bs=65536 skip="$block" count=16 2>/dev/null | head -n 1 | wc -c)
  skip=$((skip + 0))
fi
[ $((from + skip)) -lt "$end" ] || skip=$((end - from))
echo $((from + skip))
count=$(((end - from + 65535) / 65536))
if echo x | grep -ab x >/dev/null 2>&1; then
  find_lines() { grep -ab $kind $fold -e "$pattern"; }
else  # busybox: no offsets, and a line ends at a NUL
  find_lines() { tr '\000' '\001' | grep $kind $fold -e "$pattern"; }
fi
dd if="$p" bs=65536 skip="$block" count="$count" 2>/dev/null |
  tail -c +$((skip + 1)) | head -c $((end - from - skip)) |
  find_lines | cut -b 1-8192 | tail -n "$most"
exit 0
"""


class Found:
    """What a search has found so far, newest first."""

    def __init__(self, run: str, wanted: SearchLog, progress: Callable[[SearchResult], None]) -> None:
        self.wanted = wanted
        self.problem = SafeText("")
        self._run = run
        self._progress = progress
        self._hits: list[SearchHit] = []
        self._covered: list[str] = []
        self._matches = self._matcher()

    @property
    def full(self) -> bool:
        return len(self._hits) >= MOST_HITS or bool(self.problem)

    def look_at(self, rows: Rows) -> int:
        """Search lines, the last first; returns the number of the last line looked at."""
        for index in range(len(rows.lines) - 1, -1, -1):
            if self.full:
                return rows.first + index + 1
            if self._matches(plain(rows.lines[index])):
                self._hits.append(SearchHit(rows.first + index, rows.lines[index]))
        return rows.first

    def add(self, hits: list[SearchHit]) -> None:
        self._hits += hits[: MOST_HITS - len(self._hits)]

    def covers(self, words: str) -> None:
        """Note one range that was, or was not, searched."""
        if words:
            self._covered.append(words)

    def tell(self, so_far: str) -> None:
        """Report what is found while the search goes on."""
        self._progress(self._result([*self._covered, so_far], complete=False))

    def result(self, *, complete: bool) -> SearchResult:
        return self._result(self._covered, complete=complete)

    def _result(self, covered: list[str], *, complete: bool) -> SearchResult:
        words = self.problem or SafeText("; ".join(c for c in covered if c))
        return SearchResult(
            run=self._run,
            pattern=safe(self.wanted.pattern),
            hits=tuple(self._hits),
            covered=words,
            complete=complete and not self.problem,
            capped=len(self._hits) >= MOST_HITS,
        )

    def _matcher(self) -> Callable[[str], object]:
        pattern = self.wanted.pattern if self.wanted.regex else re.escape(self.wanted.pattern)
        try:
            return re.compile(pattern, re.IGNORECASE if self.wanted.ignore_case else 0).search
        except re.error as error:
            self.problem = safe(f"Nothing was searched: this is no regular expression ({error}).")
            return lambda _: None


async def search_spool(found: Found, spool: Spool) -> None:
    """Search what this computer keeps, newest lines first."""
    end = low = spool.next
    segments = spool.newest_first()
    while not found.full:
        rows = await asyncio.to_thread(next, segments, None)
        if rows is None:
            break
        if rows.lines:
            low = found.look_at(rows)
        found.tell(_lines(low, end))
        await asyncio.sleep(0)
    found.covers(_lines(low, end))


async def search_box(found: Found, transport: Transport, path: str, before: LogPosition) -> SearchResult:
    """Search the file on the box before the position at which the spool begins, newest lines first."""
    expression = found.wanted.pattern if not found.wanted.regex else to_ere(found.wanted.pattern)
    if expression is None or "\n" in expression or "\0" in expression:
        found.covers("not searched: the file on the box, whose grep has no such expression")
        return found.result(complete=False)
    kind = "-E" if found.wanted.regex else "-F"
    end = before.offset
    why, complete = "", True
    while end > 0 and not found.full:
        block = max(0, (end - 1 - WINDOW) // _BLOCK + 1)
        args = (path, before.inode, block, end, expression, kind, "-i" if found.wanted.ignore_case else "")
        script = Script(SEARCH, (*map(str, args), str(_PER_WINDOW + 1)), why="search the log")
        try:
            done = await transport.run(script, timeout=60.0, limit=2 << 20)
        except TimeoutError:
            why, complete = "the box took too long for more", False
            break
        head, _, rest = done.stdout.partition(b"\n")
        if done.exit != 0 or not head.strip().isdigit():
            why, complete = "the file on the box is not to be found any more", False
            break
        begin = int(head)
        hits = _hits(rest, begin)
        found.add(hits[:_PER_WINDOW])
        if len(hits) > _PER_WINDOW or done.truncated:
            why, complete = "there are more hits before them", False
            end = hits[_PER_WINDOW - 1].offset or begin if len(hits) > _PER_WINDOW else begin
            break
        if begin >= end and block > 0:  # one line longer than a window
            begin = block * _BLOCK
        end = begin
        found.tell(_bytes(end, before.offset))
    found.covers(_bytes(end, before.offset) + (f" ({why})" if why else ""))
    return found.result(complete=complete and end == 0)


def _hits(rows: bytes, begin: int) -> list[SearchHit]:
    """Lines printed by grep, the last first; with ``-b`` each begins with its offset in the window."""
    gate = LogGate()
    hits = []
    for row in reversed(rows.split(b"\n")[:-1]):
        offset, colon, text = row.partition(b":")
        known = bool(colon) and offset.isdigit()
        shown = text if known else row.replace(b"\x01", b"\0")
        hits.append(SearchHit(None, gate.line(shown), begin + int(offset) if known else None))
    return hits


def _lines(low: int, end: int) -> str:
    return f"lines {low + 1:,}-{end:,} on this computer" if low < end else "no lines on this computer"


def _bytes(low: int, high: int) -> str:
    return f"bytes {low:,}-{high:,} of the file on the box" if high else ""


_CLASSES = {"d": "[0-9]", "D": "[^0-9]", "w": "[[:alnum:]_]", "W": "[^[:alnum:]_]",
            "s": "[[:space:]]", "S": "[^[:space:]]"}  # fmt: skip
_TOKEN = re.compile(
    r"\\(?P<escape>.)|\[(?P<class>\^?\]?(?:[^\]\\\[])*)\]|(?P<quantifier>[*+?]|\{[0-9]+(?:,[0-9]*)?\})(?P<lazy>[?+])?"
    r"|(?P<group>\((?:\?:|(?!\?)))|(?P<plain>[^\\\[(])",
    re.DOTALL,
)


def to_ere(pattern: str) -> str | None:
    """The pattern as a POSIX extended regular expression that matches the same lines, if there is one.

    Lazy quantifiers find other text but the same lines, so they become plain ones.
    """
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None or token["lazy"] == "+":
            return None
        at = token.end()
        escape = token["escape"]
        if escape is None:
            parts.append("(" if token["group"] else token["quantifier"] or token.group())
        elif escape in _CLASSES:
            parts.append(_CLASSES[escape])
        elif escape == "t":
            parts.append("\t")
        elif escape.isalnum():
            return None
        else:
            parts.append(f"\\{escape}" if escape in r"\.[]{}()*+?|^$" else escape)
    return "".join(parts)

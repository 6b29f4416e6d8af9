"""`rgt gotchas`: what is known about a trouble, found by plain words, English or Chinese."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator

from tui.fleet.paths import paths
from tui.model.cells import width
from tui.model.failure import Exit, Failure
from tui.model.text import safe
from tui.verbs.known import Piece, known

Out = Callable[[str], None]
Parsers = argparse._SubParsersAction  # the type argparse gives has no public name

LIMIT, MOST = 5, 50
_WIDEST, _NARROWEST = 100, 40


def register(sub: Parsers[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = sub.add_parser("gotchas", help="what is known about a trouble, found by plain words")
    parser.add_argument("words", metavar="WORDS", nargs="+", help="what you see, in your words; or an id")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--limit", type=int, default=LIMIT, metavar="N", help=f"at most N ({LIMIT})")
    parser.add_argument("--platform", metavar="NAME", help="nothing about any other platform")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Out = print) -> int:
    """Search, or show one entry whole. Raises Failure."""
    if not 1 <= args.limit <= MOST:
        raise Failure(f"--limit takes 1 to {MOST}.", exit=Exit.USAGE, code="usage")
    all_known = known(paths())
    for line in all_known.problems:
        print(f"rgt: {line}", file=sys.stderr)
    if args.platform is not None and args.platform not in all_known.platforms:
        do = f"Profiles: {', '.join(all_known.platforms)}."
        raise Failure(f"There is no profile {safe(args.platform, 40)}.", do=do, exit=Exit.USAGE)
    question = " ".join(args.words)
    named = all_known.pieces.get(question.strip().casefold())
    if named is not None:
        found = [named]
    else:
        hits = all_known.index.search(question, limit=args.limit, platform=args.platform)
        found = [all_known.pieces[hit.document.id.casefold()] for hit in hits]
    if args.json:
        out(json.dumps({"results": [_row(piece) for piece in found]}, ensure_ascii=False, indent=1))
    else:
        for line in _told(found, named is not None, columns()):
            out(line)
    return Exit.FINE if found else Exit.ATTENTION


# -- what is told ------------------------------------------------------------------------------------------


def _row(piece: Piece) -> dict[str, str]:
    document = piece.document
    text = "\n".join(safe(line) for line in piece.page).strip()
    return {"id": document.id, "title": safe(document.title), "source": safe(document.source), "text": text}


def columns() -> int:
    """How wide to write: the terminal's width within what can be read well."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))


def _told(found: Iterable[Piece], whole: bool, wide: int) -> Iterator[str]:
    number = 0
    for number, piece in enumerate(found, 1):
        if number > 1:
            yield ""
        yield from wrapped(safe(piece.document.title), wide)
        if whole:
            yield from wrapped(f"{piece.id} · {safe(piece.document.source)}", wide)
            yield ""
            yield from _page_lines(piece.page, wide)
        else:
            yield from wrapped(safe(piece.answer), wide, "  ")
            yield f"  > {piece.id}"
    if number == 0:
        yield "Nothing that is known fits these words. Try the message's own, or `rgt triage --log FILE`."
    elif not whole:
        yield ""
        yield "`rgt gotchas ID` tells all of one."


def _page_lines(page: Iterable[str], wide: int) -> Iterator[str]:
    """Markdown for a terminal: paragraphs filled, code as it stands."""
    code = False
    paragraph: list[str] = []
    for raw in (*page, ""):
        line = safe(raw.rstrip())
        fence = line.startswith("```")
        if code and not fence:
            yield f"    {line}"
            continue
        if fence or not line or line.startswith(("## ", "- ", "    ", "Source: ")):
            yield from wrapped(" ".join(paragraph), wide, "  ")
            paragraph = []
        code ^= fence
        if line.startswith("## "):
            yield line[3:]
        elif line.startswith("    "):
            yield line
        elif line.startswith(("- ", "Source: ")):
            paragraph = [line]
        elif line and not fence:
            paragraph.append(line)
        elif not line:
            yield ""


def wrapped(text: str, wide: int, indent: str = "") -> Iterator[str]:
    """Lines of at most `wide` cells, broken at blanks; a longer word is cut."""
    line = ""
    for word in text.split():
        left = word
        while left:
            room = wide - len(indent) - (width(line) + 1 if line else 0)
            if width(left) <= room:
                line, left = f"{line} {left}" if line else left, ""
            elif line:
                yield indent + line
                line = ""
            else:
                cut = _fitting(left, room)
                yield indent + left[:cut]
                left = left[cut:]
    if line:
        yield indent + line


def _fitting(word: str, room: int) -> int:
    cut = 1
    while cut < len(word) and width(word[: cut + 1]) <= room:
        cut += 1
    return cut

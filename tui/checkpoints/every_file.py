"""Every file of a folder by itself: its structure, its numbers, its digest, and what is odd about it."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from tui.checkpoints.contents import Contents
from tui.checkpoints.disk import Disk, OwnDisk
from tui.checkpoints.jailer import Jail
from tui.checkpoints.judged import Judged, say
from tui.checkpoints.names import CONTROL_FILES, claim_of, is_marker, is_portable, transfer_of
from tui.checkpoints.numbers import with_numbers
from tui.checkpoints.one_file import judge_file
from tui.checkpoints.source import NotAFile
from tui.checkpoints.tree import Entry, Tree
from tui.model.verdict import Problem

_FUTURE_S = 300.0
_FIRST_YEARS = 10 * 365 * 86400.0


@dataclass(frozen=True, slots=True)
class Options:
    """How closely to look.

    Attributes:
        jail: who looks at the numbers; None leaves them.
        crc: compare the checksums inside archives.
        digests: take the SHA-256 of every file.
        reference: known digests by path; a file that differs is damaged, whatever it looks like.
        threads: files looked at at once.
        now: the time by this computer's clock, in seconds.
        progress: called with the bytes of each file that is done.
        stop: asked several times a second whether to give up.
        disk: where the files lie.
    """

    jail: Jail | None = None
    crc: bool = True
    digests: bool = False
    reference: Mapping[str, str] = field(default_factory=dict)
    threads: int = 2
    now: float = field(default_factory=time.time)
    progress: Callable[[int], None] | None = None
    stop: Callable[[], bool] | None = None
    disk: Disk = field(default_factory=OwnDisk)


@dataclass(slots=True)
class Looked:
    """What was found out of the files.

    Attributes:
        judged: by path.
        sums: digests by path, where they were asked for and the file could be read.
    """

    judged: dict[str, Judged] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def look_at_files(tree: Tree, options: Options) -> Looked:
    """Judge each file; one that has two names is read once. Raises Stopped."""
    return _Files(tree, options).look()


_Result = tuple[Judged, str | None, str | None]
"""The verdict, the digest, and the code of what kept it from being taken."""


class _Files:
    def __init__(self, tree: Tree, options: Options) -> None:
        self._tree = tree
        self._options = options
        self._halted = threading.Event()

    def _stop(self) -> bool:
        return self._halted.is_set() or (self._options.stop is not None and self._options.stop())

    def look(self) -> Looked:
        first: dict[tuple[int, int], str] = {}
        for entry in self._tree.entries.values():
            if entry.type == "file":
                first.setdefault(entry.inode, entry.path)
        results = self._read([self._tree.entries[path] for path in first.values()])
        twins, found = self._tree.links_to_one(), Looked()
        for entry in self._tree.entries.values():
            if entry.type == "file":
                judged, digest, problem = results[first[entry.inode]]
                path = entry.path
                if path != first[entry.inode]:
                    judged = self._renamed(judged, entry)
                found.judged[path] = self._noted(self._by_digest(judged, path, digest), entry, twins)
                if digest:
                    found.sums[path] = digest
                if problem:
                    found.problems.append(Problem(code=problem, path=path))
            elif entry.type == "special":
                found.problems.append(Problem(code="special-file", path=entry.path))
        return found

    def _read(self, chosen: list[Entry]) -> dict[str, _Result]:
        """By path, the longest first, so that no core waits at the end."""
        chosen.sort(key=lambda entry: -entry.size)
        pool = ThreadPoolExecutor(max(1, self._options.threads))
        try:
            return dict(zip((e.path for e in chosen), pool.map(self._one, chosen), strict=True))
        except BaseException:
            self._halted.set()  # an interrupted operator does not wait for the rest of a large file
            if self._options.jail is not None:
                self._options.jail.close()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _one(self, entry: Entry) -> _Result:
        absolute = self._tree.absolute(entry.path)
        judged = _light(self._by_name(entry) or self._by_content(entry, absolute))
        digest, problem = (
            self._options.disk.sha256(absolute, self._stop) if self._options.digests else (None, None)
        )
        if self._options.progress:
            self._options.progress(entry.size)
        return judged, digest, problem

    def _by_name(self, entry: Entry) -> Judged | None:
        """What is being written, by a name that says so; nobody looks into it."""
        if transfer_of(entry.name) is not None:
            return Judged(say(entry.path, "partial", "partial", size=entry.size))
        beside = self._tree.folders.get(entry.parent, {})
        kept = next((end for end in CONTROL_FILES if entry.name + end in beside), None)
        if kept is not None and claim_of(entry.name) is not None:
            absolute, opener = self._tree.absolute(entry.path), self._options.disk.open
            judged = judge_file(absolute, entry.path, crc=False, stop=self._stop, opener=opener)
            damaged = judged.verdict.verdict == "corrupt"
            incident = "ckpt_corrupt" if damaged else None
            why = f"a downloader still keeps {entry.name[-80:]}{kept} beside it"
            return Judged(say(entry.path, "partial", "partial", why=why, incident=incident, size=entry.size))
        return None

    def _by_content(self, entry: Entry, absolute: str) -> Judged:
        options = self._options
        judged = judge_file(absolute, entry.path, crc=options.crc, stop=self._stop, opener=options.disk.open)
        if judged.verdict.verdict == "ignore" and is_marker(entry.name) and entry.size == 0:
            return Judged(judged.verdict.model_copy(update={"kind": "marker"}))
        judged = with_numbers(judged, absolute, options.jail, sparse=_sparse(absolute, options.disk))
        return replace(judged, contents=_kept(judged.contents, entry.name))

    def _renamed(self, judged: Judged, entry: Entry) -> Judged:
        """The second name of a file that was read under its first."""
        if claim_of(entry.name) != claim_of(judged.verdict.path):
            return self._by_name(entry) or self._by_content(entry, self._tree.absolute(entry.path))
        verdict = judged.verdict.model_copy(update={"path": entry.path})
        problems = tuple(problem.model_copy(update={"path": entry.path}) for problem in judged.problems)
        return replace(judged, verdict=verdict, problems=problems)

    def _by_digest(self, judged: Judged, path: str, digest: str | None) -> Judged:
        wanted = self._options.reference.get(path)
        if wanted is None or digest is None:
            return judged
        if digest == wanted:  # what no checksum inside could show, the digest did
            cleared = ("no-checksum", "crc-not-recorded")
            return replace(judged, problems=tuple(p for p in judged.problems if p.code not in cleared))
        if judged.verdict.verdict not in ("ok", "suspicious", "needs_allowlist"):
            return judged
        why = "its SHA-256 is not the recorded one"
        verdict = say(path, judged.verdict.kind, "corrupt", "bitflip", why, format=judged.verdict.format)
        return replace(judged, verdict=verdict.model_copy(update={"size": judged.verdict.size}))

    def _noted(self, judged: Judged, entry: Entry, twins: set[str]) -> Judged:
        """Oddities of the file rather than of its content."""
        verdict = judged.verdict
        if verdict.verdict in ("ignore", "partial"):
            return judged
        notes = list(verdict.notes)
        if entry.path in twins:
            notes.append("hardlink_pair")
        if not entry.mode & (stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH):
            notes.append("mode_000")
        if entry.mtime > self._options.now + _FUTURE_S:
            notes.append("mtime_future")
        elif entry.mtime < _FIRST_YEARS:
            notes.append("mtime_1970")
        change: dict[str, object] = {
            "notes": tuple(notes),
            "detail": verdict.detail or (notes[0] if notes else None),
        }
        if verdict.verdict == "ok" and not is_portable(entry.name):
            change["kind"] = "name"
        return replace(judged, verdict=verdict.model_copy(update=change))


_NOTHING = Judged(say("", "other", "ignore"))


def _light(judged: Judged) -> Judged:
    """One verdict for all the files of which there is nothing to say: there may be very many."""
    verdict = judged.verdict
    plain = verdict.verdict == "ignore" and verdict.kind == "other" and not judged.problems
    return _NOTHING if plain else judged


def _kept(contents: Contents | None, name: str) -> Contents | None:
    """Names are needed where an index may speak of them, facts where ranks do; the rest takes room."""
    if contents is None:
        return None
    never_indexed = claim_of(name) == "torch" and not name.endswith(".bin")
    return replace(contents, spans=[], names=() if never_indexed else contents.names)


def _sparse(absolute: str, disk: Disk) -> bool:
    try:
        with disk.open(absolute, None) as source:
            return source.sparse
    except (OSError, NotAFile):
        return False

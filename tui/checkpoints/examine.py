"""A whole folder: every file judged by its content, then links, folders and rows of checkpoints."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from tui.checkpoints import deepspeed, distcp, series, sharded
from tui.checkpoints.contents import Contents
from tui.checkpoints.disk import Disk, OwnDisk
from tui.checkpoints.jailer import Jail
from tui.checkpoints.judged import Judged, say
from tui.checkpoints.links import judge_link
from tui.checkpoints.names import (
    CONTROL_FILES,
    MEGATRON,
    POINTERS,
    SHARD,
    STEP_FOLDER,
    claim_of,
    is_marker,
    is_portable,
    number_of,
    transfer_of,
)
from tui.checkpoints.numbers import with_numbers
from tui.checkpoints.one_file import judge_file
from tui.checkpoints.source import NotAFile
from tui.checkpoints.tree import Entry, Tree, resolve, walk
from tui.model.text import safe
from tui.model.verdict import CheckpointVerdict, Examination, FileVerdict, Problem

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


def examine(root: str, options: Options, *, only: str | None = None) -> Examination:
    """Judge everything below a folder, or one file of it.

    Raises:
        OSError: the folder itself cannot be listed.
        Stopped: `options.stop` said so.
    """
    return examine_tree(listed(root, only), options)


def listed(root: str, only: str | None = None) -> Tree:
    """The folder as it lies there, for `examine_tree`. Raises OSError."""
    return walk(os.path.abspath(root), only)  # noqa: PTH100 - a Path would follow links


def examine_tree(tree: Tree, options: Options) -> Examination:
    """Judge a folder that was listed before."""
    return _Examiner(tree, options).run()


class _Examiner:
    def __init__(self, tree: Tree, options: Options) -> None:
        self._tree = tree
        self._options = options
        self._judged: dict[str, Judged] = {}
        self._sums: dict[str, str] = {}
        self._part_of: dict[str, str] = {}
        self._wholes: list[CheckpointVerdict] = []
        self._below: dict[str, dict[str, CheckpointVerdict]] = {}
        self._problems: list[Problem] = []
        self._halted = threading.Event()

    def _stop(self) -> bool:
        return self._halted.is_set() or (self._options.stop is not None and self._options.stop())

    def run(self) -> Examination:
        self._files()
        self._pointers()
        for folder in sorted(self._tree.folders, key=lambda path: (-path.count("/"), path)):
            self._folder(folder)
        self._links()
        rows = [row for folder in sorted(self._tree.folders) for row in self._series(folder)]
        return self._report(rows)

    # every file by itself

    def _files(self) -> None:
        """Structure, numbers and digest of each file; one that has two names is read once."""
        first: dict[tuple[int, int], str] = {}
        for entry in self._tree.entries.values():
            if entry.type == "file":
                first.setdefault(entry.inode, entry.path)
        chosen = [self._tree.entries[path] for path in first.values()]
        chosen.sort(key=lambda entry: -entry.size)  # the longest first, so that no core waits at the end
        pool = ThreadPoolExecutor(max(1, self._options.threads))
        try:
            results = dict(zip((e.path for e in chosen), pool.map(self._one, chosen), strict=True))
        except BaseException:
            self._halted.set()  # an interrupted operator does not wait for the rest of a large file
            if self._options.jail is not None:
                self._options.jail.close()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        twins = self._tree.links_to_one()
        for entry in self._tree.entries.values():
            if entry.type == "file":
                judged, digest, problem = results[first[entry.inode]]
                path = entry.path
                if path != first[entry.inode]:
                    judged = self._renamed(judged, entry)
                self._judged[path] = self._noted(self._by_digest(judged, path, digest), entry, twins)
                if digest:
                    self._sums[path] = digest
                if problem:
                    self._problems.append(Problem(code=problem, path=path))
            elif entry.type == "special":
                self._problems.append(Problem(code="special-file", path=entry.path))

    def _one(self, entry: Entry) -> tuple[Judged, str | None, str | None]:
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
            judged = judge_file(absolute, entry.path, crc=False, opener=opener)
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

    # files that speak of others

    def _pointers(self) -> None:
        """Files of one line that name the checkpoint to go on from."""
        for path, judged in list(self._judged.items()):
            entry = self._tree.entries[path]
            text_marker = entry.name.lower() in ("latest.txt", "last.txt")
            if judged.verdict.verdict != "ignore" or not (entry.name in POINTERS or text_marker):
                continue
            verdict = judged.verdict.model_copy(update={"kind": "marker", "path": path})
            siblings = self._tree.folders[entry.parent]
            if entry.name in POINTERS and not (entry.name == "latest" and self._tags(entry.parent)):
                wanted = deepspeed.read_pointer(self._tree.absolute(path), self._options.disk.open)
                name = wanted.rstrip("/").rpartition("/")[2] if wanted else None
                if name and entry.name == MEGATRON and name.isascii() and name.isdigit():
                    name = f"iter_{int(name[:15]):07d}"  # it names the number alone
                if name and _is_checkpoint_word(name) and name not in siblings:
                    verdict = say(path, "marker", "incomplete", "pointer", name, missing=(name,))
            self._judged[path] = replace(judged, verdict=verdict)

    # folders

    def _tags(self, folder: str) -> list[deepspeed.Tag]:
        found = []
        for name, entry in self._tree.folders.get(folder, {}).items():
            if entry.type == "folder":
                tag = deepspeed.read_tag(name, self._files_of(entry.path))
                if tag is not None:
                    found.append(tag)
        return found

    def _real(self, entry: Entry) -> str:
        """Where its bytes lie: a link inside the tree is followed here, for nothing else follows any."""
        place = resolve(self._tree, entry) if entry.type == "link" else None
        return self._tree.absolute(place.path if place and place.state == "inside" else entry.path)

    def _files_of(self, folder: str) -> dict[str, Judged]:
        """Judged files by name; a link stands for the file inside the tree that it leads to."""
        found: dict[str, Judged] = {}
        for name, entry in self._tree.folders.get(folder, {}).items():
            path = entry.path
            if entry.type == "link":
                place = resolve(self._tree, entry)
                path = place.path if place.state == "inside" else ""
            if path in self._judged:
                found[name] = self._judged[path]
        return found

    def _folder(self, path: str) -> None:
        entries = self._tree.folders[path]
        name = path.rpartition("/")[2]
        if path and transfer_of(name) is not None:
            self._take(sharded.Whole(say(path, "partial", "partial"), set(entries)), path)
            return
        if path and not entries:
            if STEP_FOLDER.fullmatch(name) and path not in self._tree.unread:
                self._wholes.append(say(path, "marker", "incomplete", "folder"))
            return
        folder = sharded.Folder(
            path,
            self._files_of(path),
            frozenset(entries),
            lambda n: self._real(entries[n]),
            self._options.disk.open,
            self._options.crc,
            self._stop,
            self._below.get(path, {}),
            lambda judged, n: with_numbers(judged, self._real(entries[n]), self._options.jail),
        )
        judged_before = len(self._wholes)
        for whole in sharded.judge_sharded(folder):
            self._take(whole, path)
        for judge in (sharded.judge_adapter, sharded.judge_trainer, distcp.judge_distributed):
            found = judge(folder)
            if found is not None:
                self._take(found, path)
        self._deepspeed(path, folder)
        whole_here = len(self._wholes) > judged_before
        self._claim(sharded.side_files(folder, whole=whole_here), path)

    def _deepspeed(self, path: str, folder: sharded.Folder) -> None:
        tags = self._tags(path)
        if tags:
            there = "latest" in folder.files
            latest = deepspeed.read_pointer(folder.absolute("latest"), folder.opener) if there else None
            self._take(deepspeed.judge_deepspeed(path, tags, latest, folder.names), path)
        elif not path:
            alone = deepspeed.read_tag(os.path.basename(self._tree.root), folder.files)  # noqa: PTH119
            if alone is not None:  # the operator named one generation itself
                self._take(sharded.Whole(deepspeed.of_tag(path, alone), set(alone.states)), path)

    def _take(self, whole: sharded.Whole, path: str) -> None:
        self._wholes.append(whole.verdict)
        parent, _, name = path.rpartition("/")
        self._below.setdefault(parent, {})[name] = whole.verdict
        self._problems += whole.problems
        self._claim(whole.parts, path)

    def _claim(self, names: Iterable[str], path: str) -> None:
        for name in names:
            part = f"{path}/{name}" if path else name
            if part in self._tree.entries:
                self._part_of.setdefault(part, path or ".")

    def _series(self, folder: str) -> list[CheckpointVerdict]:
        members = []
        wholes = {whole.path: whole for whole in self._wholes}
        for name, entry in self._tree.folders[folder].items():
            found = self._judged.get(entry.path)
            verdict = found.verdict if found else wholes.get(entry.path)
            if verdict is None or verdict.verdict in ("ignore", "partial") or SHARD.fullmatch(name):
                continue
            apart = entry.type in ("file", "folder") and entry.path not in self._part_of
            if apart and number_of(name) and not deepspeed.is_state(name):
                members.append(series.Member(name, entry.mtime, verdict.verdict == "ok"))
        return series.judge_series(folder, members)

    # links

    def _links(self) -> None:
        wholes = {whole.path: whole for whole in self._wholes}

        def known(path: str) -> CheckpointVerdict | None:
            judged = self._judged.get(path)
            return judged.verdict if judged is not None else wholes.get(path)

        for entry in self._tree.entries.values():
            if entry.type == "link":
                self._judged[entry.path] = Judged(judge_link(self._tree, entry, known))

    # the report

    def _report(self, rows: list[CheckpointVerdict]) -> Examination:
        files, single = [], []
        for path, entry in sorted(self._tree.entries.items()):
            if entry.type == "folder":
                continue
            judged = self._judged.get(path)
            verdict = judged.verdict if judged else say(path, "other", "ignore")
            part_of = self._part_of.get(path)
            files.append(
                FileVerdict(
                    path=path, type=entry.type, size=entry.size if entry.type == "file" else None,
                    verdict=verdict.verdict, code=verdict.code, sha256=self._sums.get(path), part_of=part_of,
                    kind=verdict.kind, target=verdict.target, last_line=verdict.last_line,
                )
            )  # fmt: skip
            if verdict.verdict != "ignore" and (part_of is None or _stands_apart(verdict)):
                single.append(verdict)
            self._problems += self._told(judged, part_of)
        named = [whole.model_copy(update={"path": whole.path or "."}) for whole in (*self._wholes, *rows)]
        for folder, why in self._tree.unread.items():
            self._problems.append(Problem(code="file-unreadable", path=folder, detail=safe(why, 80)))
        if self._tree.cut:
            self._problems.append(Problem(code="too-many-files"))
        return Examination(
            files=tuple(files),
            checkpoints=tuple(sorted((*single, *named), key=lambda found: found.path)),
            problems=tuple(self._problems),
        )

    def _told(self, judged: Judged | None, part_of: str | None) -> Iterable[Problem]:
        if judged is None:
            return ()
        name = judged.verdict.path.rpartition("/")[2]
        if part_of and judged.verdict.verdict == "needs_allowlist" and sharded.SIDE_FILES.fullmatch(name):
            detail = ", ".join(judged.verdict.globals[:3])
            return (
                *judged.problems,
                Problem(code="side-file-needs-allowlist", path=judged.verdict.path, detail=detail),
            )
        return judged.problems


_NOTHING = Judged(say("", "other", "ignore"))


def _light(judged: Judged) -> Judged:
    """One verdict for all the files of which there is nothing to say: there may be very many."""
    verdict = judged.verdict
    plain = verdict.verdict == "ignore" and verdict.kind == "other" and not judged.problems
    return _NOTHING if plain else judged


def _stands_apart(verdict: CheckpointVerdict) -> bool:
    """A part its folder's verdict does not speak of: a leftover, or a damaged file of the trainer's own."""
    side = sharded.SIDE_FILES.fullmatch(verdict.path.rpartition("/")[2])
    return verdict.kind == "partial" or bool(side and verdict.verdict not in ("ok", "needs_allowlist"))


def _is_checkpoint_word(name: str) -> bool:
    return claim_of(name) is not None or number_of(name) is not None or name.isdigit()


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

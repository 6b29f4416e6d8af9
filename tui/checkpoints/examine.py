"""A whole folder: every file judged by its content, then links, folders and rows of checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from tui.checkpoints import deepspeed, distcp, series, sharded
from tui.checkpoints.every_file import Looked, Options, look_at_files
from tui.checkpoints.judged import Judged, say
from tui.checkpoints.links import judge_link
from tui.checkpoints.names import (
    MEGATRON,
    POINTERS,
    SHARD,
    STEP_FOLDER,
    claim_of,
    number_of,
    transfer_of,
)
from tui.checkpoints.numbers import with_numbers
from tui.checkpoints.tree import Entry, Tree, resolve, walk
from tui.model.text import safe
from tui.model.verdict import CheckpointVerdict, Examination, FileVerdict, Problem

__all__ = ["Options", "examine", "examine_tree", "listed"]


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
    return _Examiner(tree, options, look_at_files(tree, options)).run()


class _Examiner:
    """Whatever takes more than one file to say."""

    def __init__(self, tree: Tree, options: Options, found: Looked) -> None:
        self._tree = tree
        self._options = options
        self._judged = found.judged
        self._sums = found.sums
        self._problems = found.problems
        self._part_of: dict[str, str] = {}
        self._wholes: list[CheckpointVerdict] = []
        self._below: dict[str, dict[str, CheckpointVerdict]] = {}

    def _stop(self) -> bool:
        return self._options.stop is not None and self._options.stop()

    def run(self) -> Examination:
        self._pointers()
        for folder in sorted(self._tree.folders, key=lambda path: (-path.count("/"), path)):
            self._folder(folder)
        self._links()
        rows = [row for folder in sorted(self._tree.folders) for row in self._series(folder)]
        return self._report(rows)

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


def _stands_apart(verdict: CheckpointVerdict) -> bool:
    """A part its folder's verdict does not speak of: a leftover, or a damaged file of the trainer's own."""
    side = sharded.SIDE_FILES.fullmatch(verdict.path.rpartition("/")[2])
    return verdict.kind == "partial" or bool(side and verdict.verdict not in ("ok", "needs_allowlist"))


def _is_checkpoint_word(name: str) -> bool:
    return claim_of(name) is not None or number_of(name) is not None or name.isdigit()

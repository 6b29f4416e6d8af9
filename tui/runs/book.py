"""The book of launched runs on this computer: which box and folder each has, and what it was made of.

A page is written before a run is started and never changed, unless the run goes on on another box: after any
crash it is known where to look. A run has one page, so that none is started in two places.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tui.durable import sync_folder, write_new, write_whole, written_beside
from tui.fleet.paths import Paths
from tui.model.failure import Exit, Failure
from tui.model.job import Job
from tui.model.text import safe

_CAP = 4 << 20


class Page(BaseModel):
    """One launched run.

    Attributes:
        folder: its own on the box, absolute; `root` is the project's.
        file: the job file on this computer at that time.
        plan, code: digests of what was laid down and of the code.
        commit, dirty: git's id, and the digest of the changes to it.
        config, data: digests of the configuration and of the data's manifest, where the job names them.
        cell: matrix values.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    run: str
    box: str
    platform: str
    instance_id: str | None
    folder: str
    root: str
    session: str
    file: str
    plan: str
    code: str
    commit: str | None
    dirty: str | None
    config: str | None = None
    data: str | None = None
    python: str
    at: str
    cell: dict[str, str] = {}
    job: Job


@dataclass(frozen=True, slots=True)
class Book:
    """All pages; `folder` is made with the first one."""

    folder: Path

    def write(self, page: Page, *, gone: bool = False) -> None:
        """Keep a page; the same run's page is kept as it was.

        Args:
            gone: its folder was looked for just now and is not there: another plan may be laid down in it.

        Raises:
            Failure: it cannot be stored, or the run of this name is another one, or elsewhere.
        """
        try:
            write_new(self._file(page.run), page.model_dump_json(indent=1))
        except FileExistsError:
            self._as_kept(page, gone=gone)
        except OSError as error:
            raise Failure(
                f"The page of {safe(page.run, 100)} could not be stored ({error.strerror}).",
                means="Nothing was started.",
                do=f"Look at {self.folder}.",
                code="book-unwritten",
            ) from None

    def _as_kept(self, page: Page, *, gone: bool) -> None:
        """The page that is kept is of the same run in the same place. Raises Failure: it is not."""
        kept = self.page(page.run)
        was, now = kept.instance_id, page.instance_id
        other = bool(was and now and was != now)
        if (kept.box, kept.folder) != (page.box, page.folder) or other:
            machine = f" ({safe(was or '', 60)})" if other else ""
            raise Failure(
                f"{safe(page.run, 100)} was launched on {kept.box}{machine}, in {safe(kept.folder, 200)}.",
                means="A second one would do it twice; nothing was started.",
                do=f"rgt relaunch {page.run} --on {page.box} goes on there; or give another --id.",
                code="launched-elsewhere",
            )
        if kept.plan == page.plan:
            return
        if not gone:
            raise Failure(
                f"{safe(page.run, 100)} was launched with another plan.",
                means="Nothing was started.",
                do=f"Give the new run another --id, or go on with that one: rgt resume {page.run}.",
                code="run-exists",
            )
        self.move(page)

    def move(self, page: Page) -> None:
        """Keep another page for a run that goes on elsewhere; the one before stays, below ``before``.

        Raises:
            Failure: it could not be stored; the page is as it was.
        """
        target = self._file(page.run)
        before = self.folder / "before"
        try:
            before.mkdir(parents=True, exist_ok=True, mode=0o700)
            number = 1
            while (kept := before / f"{target.stem}--{number}.json").exists():
                number += 1
            with written_beside(target, page.model_dump_json(indent=1)) as temporary:
                os.link(target, kept)
                temporary.replace(target)
            sync_folder(self.folder)
        except OSError as error:
            raise Failure(
                f"The page of {safe(page.run, 100)} could not be stored ({error.strerror}).",
                means="Nothing was started.",
                do=f"Look at {self.folder}.",
                code="book-unwritten",
            ) from None

    def rented(self, run: str) -> str | None:
        """The box that was rented for a run to go on at, begun there or not; None: none was."""
        try:
            return self._rented_file(run).read_text("utf-8")[:200].strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def set_rented(self, run: str, box: str) -> None:
        """Write down for whom a box was rented, so that none is rented twice. Raises Failure."""
        try:
            write_whole(self._rented_file(run), box)
        except OSError as error:
            raise Failure(
                f"That {box} was rented for {safe(run, 100)} could not be stored ({error.strerror}).",
                means="It is in the fleet and bills; nothing was started.",
                do=f"rgt relaunch {run} --on {box} goes on there.",
                code="book-unwritten",
            ) from None

    def _rented_file(self, run: str) -> Path:
        return self.folder / "rented" / self._file(run).stem

    def page(self, run: str) -> Page:
        """The page of a run. Raises Failure: there is none, or it is damaged."""
        try:
            with self._file(run).open("rb") as file:
                read: Any = json.loads(file.read(_CAP))
            return Page.model_validate(read)
        except FileNotFoundError:
            raise Failure(
                f"{safe(run, 100)} was not launched from this computer.",
                do="See the runs of `rgt status`; rgt closes and resumes only what it launched.",
                exit=Exit.USAGE,
                code="unknown-run",
            ) from None
        except (OSError, ValueError, RecursionError):
            raise Failure(
                f"The page of {safe(run, 100)} in {self.folder} is damaged.",
                means="Where the run lies is not known from here.",
                do="Look on the box, in the project's active folder.",
                exit=Exit.UNKNOWN,
                code="book-damaged",
            ) from None

    def names(self) -> tuple[str, ...]:
        """All runs, newest first."""
        pages = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        return tuple(path.stem for path in pages)

    def _file(self, run: str) -> Path:
        """A run's name is made of letters, digits, dots and dashes, and begins with none of the last two."""
        return self.folder / f"{run.replace('/', '_')}.json"


def book(where: Paths) -> Book:
    """The operator's book."""
    return Book(where.state / "runs")

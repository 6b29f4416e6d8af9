"""Which queues were started from this computer: the cells of each, their boxes, and where claims lie."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tui.durable import write_new
from tui.fleet.paths import Paths
from tui.model.failure import Exit, Failure
from tui.model.text import safe

_CAP = 64 << 20


class Share(BaseModel):
    """One box's part.

    Attributes:
        root: the project's folder there.
        claims: folder of claims, which boxes may share.
        folders: each cell's run folder by its name.
    """

    model_config = ConfigDict(frozen=True)

    box: str
    root: str
    claims: str
    folders: dict[str, str]


class QueuePage(BaseModel):
    """One queue. `values` are each cell's, by its name, in the matrix's order."""

    model_config = ConfigDict(frozen=True)

    queue: str
    file: str
    at: str
    values: dict[str, dict[str, str]]
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class QueueBook:
    """All queue pages. A page is never changed."""

    folder: Path

    def write(self, page: QueuePage) -> None:
        """Store a page whole. Raises Failure: it could not be stored, or the queue was begun otherwise."""
        before = self.find(page.queue)
        if before is not None:
            _same(before, page)
            return
        try:
            write_new(self._file(page.queue), page.model_dump_json(indent=1))
        except FileExistsError:  # begun by another rgt at this moment
            _same(self.find(page.queue) or page, page)
        except OSError as error:
            raise Failure(
                f"The queue's page could not be stored ({error.strerror}).", means="Nothing was started."
            ) from None

    def find(self, queue: str) -> QueuePage | None:
        """The page of a queue. Raises Failure: it is damaged."""
        try:
            with self._file(queue).open("rb") as file:
                read: Any = json.loads(file.read(_CAP))
            return QueuePage.model_validate(read)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError):
            raise Failure(
                f"The page of the queue {safe(queue, 100)} in {self.folder} is damaged.",
                means="Where its cells lie is not known from here.",
                exit=Exit.UNKNOWN,
                code="book-damaged",
            ) from None

    def names(self) -> tuple[str, ...]:
        """All queues, newest first."""
        pages = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        return tuple(path.stem for path in pages)

    def _file(self, queue: str) -> Path:
        return self.folder / f"{queue.replace('/', '_')}.json"


def _same(before: QueuePage, page: QueuePage) -> None:
    """Cells, boxes and folders are those that the queue was begun with. Raises Failure: they are not."""
    if before.values != page.values:
        raise Failure(f"The queue {page.queue} has other cells.", means="Nothing was started.")
    if {one.box: one for one in before.shares} != {one.box: one for one in page.shares}:
        shared = before.shares[0].claims.partition("/queue/")[0]
        raise Failure(
            f"The queue {page.queue} was begun with other folders, or another split: {safe(shared, 200)}.",
            means="In others every cell could run a second time; nothing was started.",
            do="Give the same --on, --shared and --dir as then.",
            code="other-split",
        )


def queue_book(where: Paths) -> QueueBook:
    """The operator's queues."""
    return QueueBook(where.state / "queues")

"""Just before the verb the copy is looked at once more: gone, changed or unreachable, it stops the verb."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.custody.chains import Maker
from tui.custody.copy_look import LASTS_S, look_at_copy
from tui.custody.moments import moment
from tui.custody.stores.base import Listed, Store
from tui.custody.stores.path import PathStore
from tui.model.custody import CopyReport, HashedFile, Place, ReadbackReport, Refusal
from tui.model.failure import Failure

NOW = 1_800_000_000.0


@dataclass
class Asked:
    """A store that lists what it is told to, or fails."""

    says: Listed | Exception
    closed: list[bool] = field(default_factory=list)

    async def listed(self) -> Listed:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    async def close(self) -> None:
        self.closed.append(True)


def chain(place: Place, read_s: float = NOW) -> tuple[CopyReport, ReadbackReport]:
    made = Maker().chain()
    one = HashedFile(path="data/a", size=3, sha256="sha256:" + "0" * 64)
    copied = made.copied.model_copy(update={"destination": place, "bag": (one,), "refusals": ()})
    return copied, made.readback.model_copy(update={"finished_at": moment(read_s)})


async def looked(store: object, *, age: float = 0.0) -> tuple[Refusal, ...]:
    copied, readback = chain(Place(kind="rclone", path="s3:bucket/bag"), NOW - age)

    def make() -> Store:
        return store  # type: ignore[return-value]

    return await look_at_copy(copied, readback, make, NOW)


async def test_a_store_that_still_lists_all_of_it_is_believed_for_a_day() -> None:
    store = Asked(Listed({"data/a": 3}))
    assert await looked(store) == ()
    assert store.closed == [True]
    assert await looked(store, age=LASTS_S) == ()
    (old,) = await looked(store, age=LASTS_S + 1)
    assert old.code == "readback-old"


@pytest.mark.parametrize(
    ("there", "detail"),
    [
        (Listed({}), "data/a is missing."),
        (Listed({"data/a": 2}), "data/a has 2 bytes instead of 3."),
        (Listed({"data/a": 3, "b": 1}), "b does not belong there."),
        (Listed({"data/a": 3}, ("pipe",)), "pipe does not belong there."),
    ],
)
async def test_what_is_listed_otherwise_stops_it(there: Listed, detail: str) -> None:
    assert [(one.code, one.detail) for one in await looked(Asked(there))] == [("copy-changed", detail)]


@pytest.mark.parametrize("error", [Failure("no such bucket."), TimeoutError()])
async def test_a_store_that_does_not_answer_is_no_copy(error: Exception) -> None:
    store = Asked(error)
    (one,) = await looked(store)
    assert one.code == "copy-unseen"
    assert store.closed == [True]


async def test_a_folder_that_another_machine_dates_is_listed_as_it_is(tmp_path: Path) -> None:
    copied, readback = chain(Place(kind="path", path=str(tmp_path / "bag"), device="kernel/0:44/nfs"))

    def make() -> Store:
        return PathStore(tmp_path, "bag")

    (gone,) = await look_at_copy(copied, readback, make, NOW)
    assert gone.code == "copy-unseen"
    (tmp_path / "bag" / "data").mkdir(parents=True)
    (tmp_path / "bag" / "data" / "a").write_bytes(b"abc")
    assert await look_at_copy(copied, readback, make, NOW) == ()

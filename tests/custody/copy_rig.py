"""What the tests of copy and readback share: a chain up to the digests, stores of every kind, and readers."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.box.transfer_box import HASTY, tree
from tests.real import need
from tui.box.transfer.line import BulkTransport, Dial
from tui.custody.bag import bag_name
from tui.custody.consumers import HereConsumer
from tui.custody.copy import copy_out
from tui.custody.readback import read_back
from tui.custody.stores.base import Store
from tui.custody.stores.path import PathStore
from tui.custody.ways import Source
from tui.model.custody import (
    Artifact,
    CopyReport,
    DigestReport,
    HashedFile,
    ReadbackReport,
    Roster,
    Tier,
    Victim,
)

NOW = 1_800_000_000.0
AT = "2027-01-15T08:00:00Z"
VICTIM = Victim(name="box", platform="ssh", instance_id="i-1", host_key="SHA256:abc")

FILES: Mapping[str, bytes] = {
    "best.pt": b"weights" * 300_000,
    "last.pt": b"other" * 300_000,
    "train.csv": b"step,loss\n1,2\n",
    "test/t1/metrics.json": b"{}",
    "test/t1/empty": b"",
    "数据/é.txt": b"text",
    "with blank/and 'quote'.txt": b"x",
}
ODD: Mapping[str, bytes] = {
    "odd/per%0Acent": b"p",
    "odd/two\nlines.pt": b"t" * 1_500_000,
    "odd/back\\slash": b"b",
    "odd/Case": b"1",
    "odd/case": b"2",
    "odd/" + "long" * 40 + "\udcff": b"n",
}


def chain(root: Path, files: Mapping[str, bytes], tiers: Sequence[Tier] = ()) -> tuple[Roster, DigestReport]:
    """Write `files` below `root`; their roster and digests."""
    wanted = tree(root, files)
    roster = Roster(
        run="run-1",
        victim=VICTIM,
        verb="destroy",
        root=str(root),
        artifacts=tuple(Artifact(path=one.path, size=one.size, role="other") for one in wanted),
        leftovers=(),
        tiers=tuple(tiers),
        writers=(),
        taken_at=AT,
    )
    lines = "".join(sorted(f"{one.sha256}  {one.path!a}\n" for one in wanted))
    digests = DigestReport(
        roster=roster.digest,
        files=tuple(HashedFile(path=one.path, size=one.size, sha256=one.sha256) for one in wanted),
        manifest="sha256:" + hashlib.sha256(lines.encode()).hexdigest(),
        taken_at=AT,
    )
    return roster, digests


class Rig:
    """A run on this computer, standing in for the box, and a copy of it."""

    def __init__(self, tmp: Path, files: Mapping[str, bytes], dial: Dial, tiers: Sequence[Tier] = ()) -> None:
        self.tmp = tmp
        self.files = dict(files)
        self.roster, self.digests = chain(tmp / "run", files, tiers)
        self.source = Source("box", dial)
        self.name = bag_name("run-1", self.digests)

    def path_store(self, folder: str = "vault") -> PathStore:
        return PathStore(self.tmp / folder, self.name)

    async def copy(self, store: Store, **more: Any) -> CopyReport:
        options: dict[str, Any] = {"patience": HASTY, "clock": lambda: NOW, **more}
        source = options.pop("source", self.source)
        try:
            return await copy_out(
                self.roster,
                self.digests,
                source,
                store,
                self.tmp / "staging",
                **options,
            )
        finally:
            await store.close()

    async def read(self, report: CopyReport, store: Store, **more: Any) -> ReadbackReport:
        consumer = more.pop("consumer", None) or HereConsumer(self.tmp / "readers")
        keep = bool(more.pop("keep", True))
        try:
            return await read_back(
                report,
                VICTIM,
                store,
                consumer,
                clock=lambda: NOW,
                **more,
            )
        finally:
            await consumer.close(keep=keep)
            await store.close()


def restored(report: ReadbackReport) -> dict[str, bytes]:
    """What lies in the consumer's folder."""
    data = Path(report.consumer.path)
    return {str(p.relative_to(data)): p.read_bytes() for p in data.rglob("*") if p.is_file()}


def codes(report: CopyReport | ReadbackReport) -> list[str]:
    return [one.code for one in report.refusals]


def independent_readers(bag: Path) -> None:
    """`sha256sum -c` and PyPI's bagit accept the bag."""
    import bagit

    for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        subprocess.run(
            [need("sha256sum")["sha256sum"], "--strict", "--quiet", "-c", manifest],
            cwd=bag,
            check=True,
            timeout=60,
        )
    bagit.Bag(os.fspath(bag)).validate(processes=1)


@contextmanager
def rclone_remotes(tmp: Path) -> Iterator[dict[str, Path]]:
    """A configuration with a local remote, and an encrypted one over it; the folders behind them."""
    program = need("rclone")["rclone"]
    config = tmp / "rclone.conf"
    plain, hidden = tmp / "remote", tmp / "remote-crypt"
    plain.mkdir()
    hidden.mkdir()
    secret = subprocess.run(
        [program, "obscure", "not a secret"], capture_output=True, check=True, timeout=20
    ).stdout.decode().strip()  # fmt: skip
    config.write_text(
        f"[disk]\ntype = alias\nremote = {plain}\n\n"
        f"[vault]\ntype = crypt\nremote = {hidden}\npassword = {secret}\n"
    )
    before = os.environ.get("RCLONE_CONFIG")
    os.environ["RCLONE_CONFIG"] = str(config)
    text = config.read_bytes()
    try:
        yield {"disk": plain, "vault": hidden}
        assert config.read_bytes() == text, "the operator's configuration was changed"
    finally:
        os.environ.pop("RCLONE_CONFIG")
        if before is not None:
            os.environ["RCLONE_CONFIG"] = before


async def here() -> BulkTransport:
    from tui.box.local import LocalTransport

    return LocalTransport("here")

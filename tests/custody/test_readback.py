"""Readback: by another process or box, cold, exact; a store that lost or changed a byte is no copy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.box.boxes import Desk
from tests.box.transfer_box import content, noise, over_ssh
from tests.custody.copy_rig import FILES, ODD, VICTIM, Rig, codes, here, rclone_remotes, restored
from tests.real import need
from tests.rig import Sshd
from tests.rig.tmpfs import tmpfs
from tui.box.transfer.meter import Progress
from tui.custody.consumers import BoxConsumer, HereConsumer
from tui.custody.readback import Need
from tui.custody.stores.base import Store
from tui.custody.stores.box import BoxStore
from tui.custody.stores.cold import drop, resident
from tui.custody.stores.devices import one_device
from tui.custody.stores.path import PathStore
from tui.custody.stores.rclone import RcloneStore
from tui.model.custody import Place
from tui.model.failure import Failure

ALL = {**FILES, **ODD}


@contextmanager
def on_disk() -> Iterator[Path]:
    """A folder on a disk that has a cache, wherever the tests' own folder is."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


async def test_the_commonest_case(tmp_path: Path) -> None:
    """One laptop: its copy is read by a new process, cold, and said to be on the same disk."""
    with on_disk() as disk:
        rig = Rig(disk, ALL, here)
        copied = await rig.copy(rig.path_store())
        needs: list[Need] = []
        told: list[Progress] = []
        report = await rig.read(copied, rig.path_store(), on_need=needs.append, on_progress=told.append)
        assert report.refusals == ()
        assert report.copy_report == copied.digest
        assert [(o.path, o.size, o.sha256) for o in report.files] == [
            (o.path, o.size, o.sha256) for o in rig.digests.files
        ]
        assert (report.missing, report.extra, report.different) == ((), (), ())
        assert restored(report) == ALL
        assert report.independence == "same-device"
        assert "same-device" in [one.code for one in report.gaps]
        size = sum(one.size for one in copied.bag) + sum(map(len, ODD.values()))
        assert (needs[0].bytes, needs[0].in_turns) == (size, False)
        assert needs[0].inodes > len(ALL)
        assert "free" in needs[0].line
        assert told[-1].done == told[-1].total == sum(one.size for one in copied.bag)


async def test_cold_is_proven_or_said_not_to_be(tmp_path: Path) -> None:
    with on_disk() as disk:
        path = disk / "file"
        path.write_bytes(noise(3 << 20))
        fd = os.open(path, os.O_RDONLY)
        assert resident(fd) == (3 << 20) // os.sysconf("SC_PAGESIZE")
        assert drop(path)
        assert resident(fd) == 0
        os.close(fd)
        rig = Rig(disk, FILES, here)
        copied = await rig.copy(rig.path_store())
        report = await rig.read(copied, rig.path_store())
        assert report.cold
        assert "cache-not-proven-cold" not in [one.code for one in report.gaps]
    with tmpfs(tmp_path / "memory", size=64 << 20) as memory:
        (memory / "file").write_bytes(b"x" * 5000)
        assert not drop(memory / "file")
        rig = Rig(memory, FILES, here)
        copied = await rig.copy(rig.path_store())
        report = await rig.read(copied, rig.path_store())
        assert report.refusals == ()
        assert not report.cold
        assert "cache-not-proven-cold" in [one.code for one in report.gaps]


def _flip(path: Path, at: int = 1000) -> None:
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 4
    stamp = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # as a disk that rots: no time tells of it


def _harms() -> dict[str, Callable[[Path], object]]:
    return {
        "rot": lambda bag: _flip(bag / "data/best.pt"),
        "rot in a small one": lambda bag: _flip(bag / "data/train.csv"),
        "rot in the tar": lambda bag: _flip(bag / "data/unportable-names.tar", 600_000),
        "rot in the manifest": lambda bag: _flip(bag / "manifest-sha256.txt", 3),
        "short": lambda bag: os.truncate(bag / "data/last.pt", 1_000_000),
        "long": lambda bag: (bag / "data/train.csv").write_bytes(FILES["train.csv"] + b"\n"),
        "empty": lambda bag: os.truncate(bag / "data/best.pt", 0),
        "zero tail": lambda bag: (bag / "data/best.pt").write_bytes(FILES["best.pt"][:-4096] + bytes(4096)),
        "missing": lambda bag: (bag / "data/train.csv").unlink(),
        "missing tag": lambda bag: (bag / "tagmanifest-sha256.txt").unlink(),
        "extra": lambda bag: (bag / "data/extra.pt").write_bytes(b"x"),
        "extra link": lambda bag: (bag / "data/extra").symlink_to("train.csv"),
        "a link instead": lambda bag: _linked(bag / "data/train.csv"),
        "everything": lambda bag: subprocess.run(["rm", "-r", str(bag)], check=True),
    }


def _linked(path: Path) -> None:
    kept = path.with_name("elsewhere")
    path.rename(kept.parent.parent.parent / "elsewhere")
    path.symlink_to(kept.parent.parent.parent / "elsewhere")


@pytest.mark.parametrize("harm", list(_harms()))
async def test_store_rot_and_its_kin_refuse(tmp_path: Path, harm: str) -> None:
    """STORE-ROT, STORE-SHORT: whatever is wrong with the copy is found, and said of which file."""
    rig = Rig(tmp_path, ALL, here)
    store = rig.path_store()
    copied = await rig.copy(store)
    _harms()[harm](store.final)
    if harm == "everything":
        with pytest.raises(Failure):
            await rig.read(copied, rig.path_store())
        return
    report = await rig.read(copied, rig.path_store())
    assert set(codes(report)) <= {"readback-inexact", "readback-unreadable"}
    assert codes(report)
    assert all(one.path and one.clears for one in report.refusals)
    told = set(report.missing) | set(report.extra) | set(report.different)
    expected = {
        "rot": {"best.pt"}, "rot in a small one": {"train.csv"}, "short": {"last.pt"}, "long": {"train.csv"},
        "empty": {"best.pt"}, "zero tail": {"best.pt"}, "missing": {"train.csv"}, "extra": {"data/extra.pt"},
        "extra link": {"data/extra"}, "rot in the manifest": set(), "missing tag": set(),
        "rot in the tar": set(ODD), "a link instead": {"train.csv"},
    }[harm]  # fmt: skip
    assert told == expected


async def test_store_listed_not_readable(tmp_path: Path) -> None:
    """STORE-LISTED-NOT-READABLE: a file is gone, or won't open, after the listing named it."""
    rig = Rig(tmp_path, FILES, here)
    store = rig.path_store()
    copied = await rig.copy(store)

    class Vanishing(HereConsumer):
        async def listed(self, store: Store) -> object:  # type: ignore[override]
            found = await super().listed(store)
            assert isinstance(store, PathStore)
            (store.final / "data/best.pt").unlink()
            return found

    report = await rig.read(copied, rig.path_store(), consumer=Vanishing(tmp_path / "readers"))
    assert codes(report) == ["readback-unreadable"]
    assert report.refusals[0].path == "data/best.pt"
    assert report.different == ("best.pt",)


async def test_the_producer_may_not_read(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FILES, here)
    copied = await rig.copy(rig.path_store())
    by_name = await rig.read(copied, rig.path_store(), consumer=BoxConsumer("box", here, tmp_path / "s"))
    assert codes(by_name) == ["read-by-producer"]

    class Renamed(BoxConsumer):
        async def start(self) -> None:
            await super().start()
            self.host_key = VICTIM.host_key

    under_another = await rig.read(
        copied, rig.path_store(), consumer=Renamed("new", here, tmp_path / "s"), keep=False
    )
    assert codes(under_another) == ["read-by-producer"]
    assert under_another.files == ()


async def test_an_unfinished_copy_is_not_read(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FILES, here)
    _flip(tmp_path / "run" / "best.pt")
    copied = await rig.copy(rig.path_store())
    report = await rig.read(copied, rig.path_store())
    assert codes(report) == ["copy-refused"]


async def test_files_in_turns_when_space_is_short(tmp_path: Path) -> None:
    """The space needed is told first; then each file is restored, shown, and removed again."""
    files = {**ODD, **{f"big{n}": noise(3 << 20, n) for n in range(5)}, "small": b"x"}
    rig = Rig(tmp_path, files, here)
    copied = await rig.copy(rig.path_store())
    shown: dict[str, bytes] = {}
    with tmpfs(tmp_path / "tight", size=8 << 20) as tight:
        consumer = HereConsumer(tight)

        async def inspect(paths: Sequence[str]) -> None:
            for path in paths:
                shown[path] = (Path(consumer.place.path) / path).read_bytes()

        needs: list[Need] = []
        report = await rig.read(
            copied, rig.path_store(), consumer=consumer, inspect=inspect, on_need=needs.append
        )
        assert restored(report) == {}
    assert report.refusals == ()
    assert needs[0].in_turns
    assert "one file after another" in needs[0].line
    assert [one.code for one in report.gaps if one.code == "restored-in-turns"] == ["restored-in-turns"]
    assert {path: shown.get(path) for path in files} == files
    assert len(report.files) == len(files)


async def test_not_even_the_largest_fits(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"big": noise(3 << 20)}, here)
    copied = await rig.copy(rig.path_store())
    with tmpfs(tmp_path / "tight", size=1 << 20) as tight:
        report = await rig.read(copied, rig.path_store(), consumer=HereConsumer(tight))
    assert codes(report) == ["readback-no-room"]
    with tmpfs(tmp_path / "few", size=300 << 20, inodes=20) as few:
        rig = Rig(tmp_path / "b", {f"f{n}": b"x" for n in range(100)}, here)
        copied = await rig.copy(rig.path_store())
        needs: list[Need] = []
        with pytest.raises(Failure) as caught:
            await rig.read(copied, rig.path_store(), consumer=HereConsumer(few), on_need=needs.append)
        assert caught.value.code == "inodes-full"
        assert needs[0].free_inodes is not None
        assert needs[0].free_inodes < needs[0].inodes


async def test_disk_eio_at_the_store_is_the_stores_fault(tmp_path: Path) -> None:
    """DISK-EIO: a file of the copy that the disk won't give is refused by name; the others are read."""
    rig = Rig(tmp_path, FILES, here)
    store = rig.path_store()
    copied = await rig.copy(store)
    (store.final / "data/best.pt").unlink()
    (store.final / "data/best.pt").symlink_to("/proc/self/mem")  # O_NOFOLLOW: never opened
    report = await rig.read(copied, rig.path_store())
    assert "best.pt" in {*report.missing, *report.different, *(p.removeprefix("data/") for p in report.extra)}
    assert len(report.files) == len(FILES) - 1


def test_the_reader_is_a_process_of_its_own(tmp_path: Path) -> None:
    """Its protocol by hand: list, take, hash, a hostile tar."""
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "a").write_bytes(b"abc")
    (tmp_path / "copy" / "odd\udcff").write_bytes(b"")
    from tests.box.test_transfer_tar import members

    (tmp_path / "evil.tar").write_bytes(members("../evil", data=b"x"))
    requests = [
        {"do": "list", "from": str(tmp_path / "copy")},
        {"do": "take", "from": str(tmp_path / "copy/a"), "to": str(tmp_path / "new/a")},
        {"do": "take", "from": str(tmp_path / "copy/a"), "to": str(tmp_path / "new/a")},
        {"do": "hash", "from": str(tmp_path / "copy/none")},
        {"do": "tar", "from": str(tmp_path / "evil.tar"), "to": str(tmp_path / "new/t"), "largest": 100},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tui.custody.reader"],
        input="".join(json.dumps(one) + "\n" for one in requests).encode(),
        capture_output=True,
        timeout=30,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0]["files"] == {"a": 3, "odd\udcff": 0}
    sha = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (answers[1]["size"], answers[1]["sha256"]) == (3, sha)
    assert (tmp_path / "new/a").read_bytes() == b"abc"
    assert answers[2]["full"] == "File exists"  # it never writes over anything
    assert answers[3]["failed"] == "No such file or directory"
    assert "leads out" in answers[4]["failed"]
    assert not (tmp_path / "new" / "evil").exists()


async def test_a_reader_that_dies_says_nothing_about_the_copy(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FILES, here)
    copied = await rig.copy(rig.path_store())

    class Killed(HereConsumer):
        async def listed(self, store: Store) -> object:  # type: ignore[override]
            assert self._process is not None
            self._process.kill()
            return await super().listed(store)

    with pytest.raises(Failure) as caught:
        await rig.read(copied, rig.path_store(), consumer=Killed(tmp_path / "readers"))
    assert caught.value.code == "reader-lost"
    assert caught.value.exit == 4


async def test_nothing_is_left_unless_kept(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FILES, here)
    copied = await rig.copy(rig.path_store())
    await rig.read(copied, rig.path_store(), keep=False)
    assert os.listdir(tmp_path / "readers") == []


# --- other places -----------------------------------------------------------------------------------------


@pytest.mark.real
async def test_a_copy_on_a_box_read_here_and_rot_there(sshd: Sshd, tmp_path: Path) -> None:
    with on_disk() as disk:
        dial = over_ssh(Desk(tmp_path), sshd)
        rig = Rig(disk, ALL, here)
        far = disk / "far"

        def store() -> BoxStore:
            return BoxStore("other", dial, str(far), rig.name)

        copied = await rig.copy(store())
        report = await rig.read(copied, store())
        assert report.refusals == ()
        assert restored(report) == ALL
        assert report.independence == "same-device"  # the rig's box is this computer: and it is noticed
        need("fincore")
        assert report.cold
        _flip(far / rig.name / "data/best.pt")
        (far / rig.name / "data/extra").write_bytes(b"")
        (far / rig.name / "data/train.csv").unlink()
        refused = await rig.read(copied, store())
        assert (refused.missing, refused.extra, refused.different) == (
            ("train.csv",),
            ("data/extra",),
            ("best.pt",),
        )
        assert set(codes(refused)) == {"readback-inexact"}


@pytest.mark.real
async def test_read_on_another_box(sshd: Sshd, tmp_path: Path) -> None:
    dial = over_ssh(Desk(tmp_path), sshd)
    rig = Rig(tmp_path, ALL, here)
    copied = await rig.copy(rig.path_store())
    consumer = BoxConsumer("reader", dial, tmp_path / "staging", str(sshd.home))
    report = await rig.read(copied, rig.path_store(), consumer=consumer)
    assert report.refusals == ()
    assert (report.consumer.box, report.consumer.kind) == ("reader", "box")
    assert restored(report) == ALL
    _flip(rig.path_store().final / "data/best.pt")
    consumer = BoxConsumer("reader", dial, tmp_path / "staging", str(sshd.home))
    refused = await rig.read(copied, rig.path_store(), consumer=consumer, keep=False)
    assert refused.different == ("best.pt",)
    assert len(list(sshd.home.glob("rgt-readback.*"))) == 1  # the one that was kept


@pytest.mark.real
@pytest.mark.parametrize("remote", ["disk", "vault"])
async def test_store_nohash_an_rclone_copy_read_here_and_its_rot_there(tmp_path: Path, remote: str) -> None:
    """STORE-ROT, STORE-NOHASH: the remote says nothing is wrong; the bytes do."""
    with rclone_remotes(tmp_path) as folders:
        rig = Rig(tmp_path, ALL, here)
        copied = await rig.copy(RcloneStore(f"{remote}:x", rig.name))
        report = await rig.read(copied, RcloneStore(f"{remote}:x", rig.name))
        assert report.refusals == ()
        assert restored(report) == ALL
        assert not report.cold
        large = max((p for p in folders[remote].rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
        _flip(large, 500_000)
        refused = await rig.read(copied, RcloneStore(f"{remote}:x", rig.name))
        assert refused.different == ("best.pt",)
        assert set(codes(refused)) <= {"readback-inexact", "readback-unreadable"}


@pytest.mark.real
async def test_store_stale_over_webdav(tmp_path: Path) -> None:
    """STORE-STALE: the server gives an earlier content of the same size, and its own etag for it."""
    import socket
    import time

    with rclone_remotes(tmp_path) as folders:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        served = folders["disk"]
        server = subprocess.Popen(
            ["rclone", "serve", "webdav", str(served), "--addr", f"127.0.0.1:{port}"],
            stderr=subprocess.DEVNULL,
        )
        config = Path(os.environ["RCLONE_CONFIG"])
        config.write_text(
            config.read_text() + f"\n[dav]\ntype = webdav\nurl = http://127.0.0.1:{port}\nvendor = other\n"
        )
        try:
            for _ in range(400):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            rig = Rig(tmp_path, FILES, here)
            copied = await rig.copy(RcloneStore("dav:v", rig.name))
            assert copied.refusals == ()
            assert content(served / "v" / rig.name / "data") == FILES
            assert (await rig.read(copied, RcloneStore("dav:v", rig.name))).refusals == ()
            (served / "v" / rig.name / "data/train.csv").write_bytes(b"step,loss\n1,1\n")
            refused = await rig.read(copied, RcloneStore("dav:v", rig.name))
            assert refused.different == ("train.csv",)
        finally:
            server.terminate()
            server.wait(10)
            text = config.read_text()
            config.write_text(text[: text.index("\n[dav]")])


def test_devices() -> None:
    def path(device: str | None) -> Place:
        return Place(kind="path", path="/x", device=device)

    def box(device: str | None) -> Place:
        return Place(kind="box", path="/x", box="b", device=device)

    assert one_device(path("k/8:0/ext2/ext3"), path("k/8:0/xfs"))
    assert not one_device(path("k/8:0/xfs"), path("k/8:16/xfs"))
    assert one_device(path("k/0:40/tmpfs"), path("k/8:0/xfs"))  # names no disk: taken for the same
    assert not one_device(path("k/0:50/nfs"), path("k/8:0/xfs"))
    assert not one_device(box("other/8:0/xfs"), path("k/8:0/xfs"))
    assert one_device(path(None), path(None))
    assert not one_device(box(None), path("k/8:0/xfs"))

"""Copies to a folder, to another box and to rclone remotes: whole, sealed once, taken up after anything."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pickle
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.box.boxes import Desk
from tests.box.transfer_box import brittle, content, noise, over_ssh
from tests.custody.copy_rig import FILES, ODD, Rig, codes, here, independent_readers, rclone_remotes
from tests.rig import Sshd
from tests.rig.proxy import Faults, proxy
from tests.rig.tmpfs import tmpfs
from tui.box.transfer.meter import Progress
from tui.custody.stores.box import BoxStore
from tui.custody.stores.path import PathStore
from tui.custody.stores.rclone import RcloneStore
from tui.model.custody import CopyReport, Refusal, Tier
from tui.model.failure import Failure

ALL = {**FILES, **ODD}


def whole(rig: Rig, report: CopyReport, bag: Path) -> None:
    """The report and what lies there say the same, and both say everything."""
    assert report.refusals == ()
    assert report.digests == rig.digests.digest
    assert [(one.path, one.sha256) for one in report.files] == [(o.path, o.sha256) for o in rig.digests.files]
    assert report.size == sum(map(len, rig.files.values()))
    there = content(bag)
    assert {one.path: one.size for one in report.bag} == {path: len(data) for path, data in there.items()}
    plain = {f"data/{path}": data for path, data in rig.files.items() if path in FILES}
    assert {path: there[path] for path in plain} == plain
    independent_readers(bag)


@pytest.mark.real
async def test_to_a_folder_over_ssh(sshd: Sshd, tmp_path: Path) -> None:
    rig = Rig(tmp_path, ALL, over_ssh(Desk(tmp_path), sshd))
    store = rig.path_store()
    told: list[Progress] = []
    report = await rig.copy(store, on_progress=told.append)
    whole(rig, report, store.final)
    assert (report.route, report.destination.kind) == ("through this computer", "path")
    assert report.destination.device is not None
    assert os.listdir(store.folder) == [rig.name]  # nothing half-done is left
    assert told[-1].done == told[-1].total


async def test_the_same_again_is_proven_and_not_touched(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ALL, here)
    store = rig.path_store()
    first = await rig.copy(store)
    before = {path: path.stat().st_mtime_ns for path in store.final.rglob("*")}
    again = await rig.copy(rig.path_store())
    assert again.refusals == ()
    assert (again.bag, again.files, again.resumed) == (first.bag, first.files, first.size)
    assert {path: path.stat().st_mtime_ns for path in store.final.rglob("*")} == before


@pytest.mark.parametrize("harm", ["flip", "extra", "missing", "manifest", "tar"])
async def test_a_sealed_copy_is_never_written_over(tmp_path: Path, harm: str) -> None:
    rig = Rig(tmp_path, ALL, here)
    store = rig.path_store()
    await rig.copy(store)
    data = store.final / "data"
    if harm == "flip":
        _flip(data / "best.pt")
    elif harm == "extra":
        (data / "extra").write_bytes(b"")
    elif harm == "missing":
        (data / "train.csv").unlink()
    elif harm == "manifest":
        (store.final / "manifest-sha256.txt").write_bytes(b"")
    else:
        _flip(data / "unportable-names.tar", 700)
    before = content(store.final)
    report = await rig.copy(rig.path_store())
    assert codes(report) == ["sealed-differs"]
    assert (report.bag, report.files) == ((), ())
    assert content(store.final) == before


def _flip(path: Path, at: int = 1000) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


async def test_two_at_once_do_not_mix(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ALL, here)
    store = rig.path_store()
    store.building.mkdir(parents=True)
    other = os.open(store.building, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(Failure, match="Another rgt"):
        await rig.copy(store)
    os.close(other)
    whole(rig, await rig.copy(rig.path_store()), store.final)


@pytest.mark.slow
async def test_app_kill9_at_any_moment(tmp_path: Path) -> None:
    """APP-KILL9: the programme is killed again and again; the last attempt makes the whole copy."""
    files = {**ODD, **{f"f{n}": noise(3000, n) for n in range(100)}, "big": noise(9 << 20, 1)}
    rig = Rig(tmp_path, files, here)
    store = rig.path_store()
    script = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom tests.custody.copy_rig import *\n"
        "import pickle\n"
        "rig = pickle.load(open(sys.argv[1], 'rb'))\n"
        "asyncio.run(rig.copy(rig.path_store(), cap=6 << 20))\n"
    )
    (tmp_path / "rig").write_bytes(pickle.dumps(rig))
    dice = random.Random(9)
    for _ in range(6):
        work = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "rig")], cwd=Path.cwd())
        try:
            work.wait(timeout=dice.uniform(0.6, 2.2))
        except subprocess.TimeoutExpired:
            work.kill()
            work.wait()
        if store.final.exists():  # then it is the whole of it
            independent_readers(store.final)
    report = await rig.copy(rig.path_store())
    assert report.refusals == ()
    independent_readers(store.final)
    assert {p: d for p, d in content(store.final / "data").items() if p in files} == {
        p: d for p, d in files.items() if p not in ODD
    }


async def test_a_source_that_changed_refuses_and_leaves_no_seal(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ALL, here)
    _flip(tmp_path / "run" / "best.pt")
    (tmp_path / "run" / "odd" / "Case").unlink()
    store = rig.path_store()
    report = await rig.copy(store)
    assert sorted(codes(report)) == ["hash-differs", "source-gone"]
    assert {one.path for one in report.refusals} == {"best.pt", "odd/Case"}
    assert all(one.clears for one in report.refusals)
    assert not store.final.exists()
    (tmp_path / "run" / "best.pt").write_bytes(FILES["best.pt"])
    (tmp_path / "run" / "odd" / "Case").write_bytes(ODD["odd/Case"])
    mended = await rig.copy(rig.path_store())
    whole(rig, mended, store.final)
    assert mended.resumed > 0


async def test_what_must_not_be_copied(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FILES, here)
    rig.digests = rig.digests.model_copy(update={"roster": "sha256:" + "0" * 64})
    assert codes(await rig.copy(rig.path_store())) == ["chain-broken"]
    rig = Rig(tmp_path / "b", FILES, here)
    rig.digests = rig.digests.model_copy(update={"refusals": (Refusal(code="unreadable", detail="x"),)})
    assert codes(await rig.copy(rig.path_store())) == ["digests-refused"]
    rig = Rig(tmp_path / "c", {}, here)
    assert codes(await rig.copy(rig.path_store())) == ["roster-empty"]
    assert not (tmp_path / "vault").exists()


async def test_a_copy_on_the_box_itself_only_where_it_survives(tmp_path: Path) -> None:
    shared, lost = tmp_path / "shared", tmp_path / "lost"
    tiers = [
        Tier(path=str(tmp_path), survives=False, told_by="matrix"),
        Tier(path=str(shared), survives=True, told_by="matrix"),
        Tier(path=str(tmp_path / "unknown"), survives=None, told_by="nobody"),
    ]
    rig = Rig(tmp_path, ALL, here, tiers)
    for folder in (lost, tmp_path / "unknown", shared / ".." / "lost"):
        report = await rig.copy(BoxStore("box", here, str(folder), rig.name))
        assert codes(report) == ["copy-on-victim"]
        assert not folder.exists()
    whole(rig, await rig.copy(BoxStore("box", here, str(shared), rig.name)), shared / rig.name)


async def test_disk_full_while_copying(tmp_path: Path) -> None:
    """DISK-BYTES, for a whole run: refused with figures, nothing sealed, and it goes on elsewhere."""
    with tmpfs(tmp_path / "small", size=1 << 20) as disk:
        rig = Rig(tmp_path, ALL, here)
        with pytest.raises(Failure, match="are needed"):
            await rig.copy(PathStore(disk, rig.name))
        assert not (disk / rig.name).exists()
        with pytest.raises(Failure, match="are needed"):
            await rig.copy(BoxStore("other", here, str(disk), rig.name))


# --- another box ------------------------------------------------------------------------------------------


@pytest.mark.real
async def test_to_another_box_through_this_computer(sshd: Sshd, tmp_path: Path, sshd_factory: object) -> None:
    other = sshd_factory()  # type: ignore[operator]
    desk = Desk(tmp_path)
    rig = Rig(tmp_path, ALL, over_ssh(desk, sshd))
    (tmp_path / "second").mkdir()
    second = Desk(tmp_path / "second")  # each server has a key of its own, and this test one name for both
    store = BoxStore("other", over_ssh(second, other), str(tmp_path / "far"), rig.name)
    report = await rig.copy(store)
    whole(rig, report, tmp_path / "far" / rig.name)
    assert report.destination.uri == f"other:{tmp_path}/far/{rig.name}"
    assert report.route == "through this computer"
    assert not (tmp_path / "staging").exists()
    assert os.listdir(tmp_path / "far") == [rig.name]
    again = await rig.copy(BoxStore("other", over_ssh(second, other), str(tmp_path / "far"), rig.name))
    assert (again.bag, again.resumed) == (report.bag, report.size)


@pytest.mark.real
async def test_to_another_box_over_a_link_that_breaks(sshd: Sshd, tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"big": noise(5 << 20, 1), **{f"s{n}": noise(4000, n) for n in range(60)}}, here)
    dice = random.Random(2)
    faults = Faults()
    async with proxy(sshd.host, sshd.port, faults) as link:
        store = BoxStore("other", over_ssh(Desk(tmp_path), sshd, link.port), str(tmp_path / "far"), rig.name)

        async def cutting() -> None:
            for _ in range(5):
                await asyncio.sleep(dice.uniform(0.2, 0.5))
                link.cut()

        cuts = asyncio.ensure_future(cutting())
        report = await rig.copy(store, cap=4 << 20)
        cuts.cancel()
    assert report.refusals == ()
    assert content(tmp_path / "far" / rig.name / "data") == rig.files
    assert link.connections > 2


async def test_resumed_at_the_store_after_a_cut(tmp_path: Path) -> None:
    """What the store kept is hashed there again: damage in it costs a second sending, never a wrong copy."""
    rig = Rig(tmp_path, {f"f{n}": noise(1_200_000, n) for n in range(6)}, here)
    far = tmp_path / "far"
    with pytest.raises(Failure):
        await rig.copy(BoxStore("other", here, str(far), rig.name), source=_failing_after(rig, 3))
    kept = list((far / f"{rig.name}.part" / "data").iterdir())
    assert len(kept) >= 2
    _flip(kept[0])
    report = await rig.copy(BoxStore("other", here, str(far), rig.name))
    assert report.refusals == ()
    assert 0 < report.resumed <= (len(kept) - 1) * 1_200_000
    assert content(far / rig.name / "data") == rig.files


def _failing_after(rig: Rig, count: int) -> object:
    calls = 0

    async def dial() -> object:
        nonlocal calls
        calls += 1
        if calls > count:
            raise Failure("gone")
        return await here()

    return replace(rig.source, dial=dial)  # type: ignore[arg-type]


# --- rclone -----------------------------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.parametrize("remote", ["disk", "vault"])
async def test_to_an_rclone_remote(tmp_path: Path, remote: str) -> None:
    """A plain and an encrypted remote of a real rclone; the configuration stays as it is."""
    with rclone_remotes(tmp_path) as folders:
        rig = Rig(tmp_path, ALL, here)
        source = replace(rig.source, own_rclone=False)
        report = await rig.copy(RcloneStore(f"{remote}:some/place", rig.name), source=source)
        assert report.refusals == ()
        assert report.route == "through this computer"
        assert report.destination.uri == f"rclone:{remote}:some/place/{rig.name}"
        there = tmp_path / "fetched"
        subprocess.run(["rclone", "copy", report.destination.path, str(there)], check=True, timeout=60)
        whole(rig, report, there)
        if remote == "vault":
            assert not any(b"weights" in data for data in content(folders["vault"]).values())
        again = await rig.copy(RcloneStore(f"{remote}:some/place", rig.name))
        assert (again.refusals, again.bag) == ((), report.bag)


@pytest.mark.real
async def test_rclone_on_the_box(sshd: Sshd, tmp_path: Path) -> None:
    """The box has rclone and the remote: the bytes go from there; odd names and paperwork from here."""
    with rclone_remotes(tmp_path) as folders:
        own = sshd.home / ".config" / "rclone"
        own.mkdir(parents=True)
        (own / "rclone.conf").write_bytes(Path(os.environ["RCLONE_CONFIG"]).read_bytes())
        rig = Rig(tmp_path, ALL, over_ssh(Desk(tmp_path), sshd))
        report = await rig.copy(RcloneStore("disk:x", rig.name))
        assert (report.route, report.gaps) == ("rclone on the box", ())
        whole(rig, report, folders["disk"] / "x" / rig.name)


@pytest.mark.real
async def test_rclone_on_the_box_that_means_another_place(sshd: Sshd, tmp_path: Path) -> None:
    """A remote of that name is there, and leads elsewhere: then through this computer, and it is said."""
    with rclone_remotes(tmp_path) as folders:
        own = sshd.home / ".config" / "rclone"
        own.mkdir(parents=True)
        (own / "rclone.conf").write_text(f"[disk]\ntype = alias\nremote = {tmp_path}/elsewhere\n")
        rig = Rig(tmp_path, FILES, over_ssh(Desk(tmp_path), sshd))
        report = await rig.copy(RcloneStore("disk:x", rig.name))
        assert report.route == "through this computer"
        assert [one.code for one in report.gaps] == ["rclone-on-box-failed"]
        whole(rig, report, folders["disk"] / "x" / rig.name)


@pytest.mark.real
async def test_an_unfinished_rclone_copy_is_hashed_before_it_counts(tmp_path: Path) -> None:
    """STORE-STALE: objects of the right size with other bytes are there already."""
    with rclone_remotes(tmp_path) as folders:
        rig = Rig(tmp_path, FILES, here)
        data = folders["disk"] / rig.name / "data"
        data.mkdir(parents=True)
        (data / "best.pt").write_bytes(bytes(len(FILES["best.pt"])))
        (data / "train.csv").write_bytes(FILES["train.csv"])
        report = await rig.copy(RcloneStore("disk:", rig.name))
        whole(rig, report, folders["disk"] / rig.name)
        assert report.resumed == len(FILES["train.csv"])


@pytest.mark.real
async def test_a_remote_that_is_not_there(tmp_path: Path) -> None:
    with rclone_remotes(tmp_path):
        rig = Rig(tmp_path, FILES, here)
        with pytest.raises(Failure) as caught:
            await rig.copy(RcloneStore("nowhere:x", rig.name))
        assert caught.value.code == "store-failed"
        assert "nowhere" in caught.value.line
        with pytest.raises(Failure, match="not installed"):
            await rig.copy(RcloneStore("disk:x", rig.name, program="rclone-that-is-not-there"))
    for bad in ("--config=/x:", ":local,copy_links=true:/x", "-a:", "no-colon", "a,b:c"):
        with pytest.raises(Failure, match="no rclone remote"):
            RcloneStore(bad, "x")


async def test_five_thousand_small_files(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {f"d{n % 50}/f{n}": noise(200 + n % 900, n) for n in range(5000)}, here)
    store = rig.path_store()
    began = time.monotonic()
    report = await rig.copy(store)
    took = time.monotonic() - began
    assert report.refusals == ()
    assert content(store.final / "data") == rig.files
    assert took < 30, took


async def test_net_cut_again_and_again(tmp_path: Path) -> None:
    """NET-CUT, for a whole run with odd names: one call goes on over as many links as it takes."""
    files = {**ODD, "big": noise(4 << 20, 1), **{f"s{n}": noise(9000, n) for n in range(40)}}
    rig = Rig(tmp_path, files, here)
    dice = random.Random(1)
    source = replace(rig.source, dial=brittle(lambda: dice.randrange(300_000, 1_500_000)))
    store = rig.path_store()
    report = await rig.copy(store, source=source)
    assert report.refusals == ()
    independent_readers(store.final)
    assert content(store.final / "data") == {
        **{path: data for path, data in files.items() if path not in ODD},
        "unportable-names.tar": (store.final / "data" / "unportable-names.tar").read_bytes(),
    }

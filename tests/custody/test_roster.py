"""The roster of real folders, through dash, bash and BusyBox, and over a real sshd."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.box.boxes import Desk, instance
from tests.custody.boxes import Through, busybox, everyones_folder, gnu, small_root, stranger
from tests.rig import Sshd
from tui.box.transport import LinkLost, Script, Transport
from tui.custody.leftovers import Decision
from tui.custody.listing import FolderMissing
from tui.custody.roster import Wanted, take_roster
from tui.model.custody import Roster, Tier, Victim
from tui.model.custody_table import CustodyTable

NOW = "2026-03-01T12:00:00Z"
VICTIM = Victim(name="box", platform="test", instance_id="i-1")


@pytest.fixture(params=["dash", "bash", "busybox"])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Through:
    return busybox(tmp_path / "bin") if request.param == "busybox" else gnu(request.param)


def aged(*paths: Path, by_s: float = 3600) -> None:
    """Files as they are some time after they were written."""
    for path in paths:
        for one in [path, *path.rglob("*")] if path.is_dir() else [path]:
            if not one.is_symlink():
                os.utime(one, (time.time() - by_s,) * 2)


def write(folder: Path, files: Mapping[str, int]) -> None:
    for name, size in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))


async def roster(
    transport: Transport,
    root: Path,
    *tiers: Path,
    table: CustodyTable | None = None,
    decisions: Mapping[str, Decision] | None = None,
    survives: Sequence[Path] = (),
    settle_s: float = 0.05,
) -> Roster:
    told = [Tier(path=str(path), survives=False, told_by="test") for path in tiers]
    told += [Tier(path=str(path), survives=True, told_by="test") for path in survives]
    wanted = Wanted("run1", str(root), table)
    return await take_roster(
        transport, wanted, VICTIM, "destroy", told, decisions or {}, NOW, settle_s=settle_s
    )


def codes(of: Roster) -> set[str]:
    return {one.code for one in of.refusals}


async def test_artifacts_and_everything_else_on_the_tier(box: Through, tmp_path: Path) -> None:
    tier = tmp_path / "data"
    root = tier / "exp" / "run1"
    write(root, {"best.pt": 100, "step_1.pt": 50, "step_2.pt": 60, "train.log": 10, ".cache/x": 5})
    write(tier, {"other/model.safetensors": 70, "other/notes.txt": 3, "dataset/a/1.bin": 4, "top.txt": 1})
    write(tier, {"code/.git/HEAD": 4, "code/train.py": 9, "half/big.pt.part": 30})
    write(tier, {"kept/away.txt": 1})
    aged(tier)
    found = await roster(box, root, tier, survives=[tier / "kept"])
    assert found.root == str(root)
    assert {(one.path, one.role, one.size) for one in found.artifacts} == {
        ("best.pt", "checkpoint", 100),
        ("step_2.pt", "checkpoint", 60),
        ("train.log", "log", 10),
    }
    groups = {one.group.partition("#")[0]: one for one in found.leftovers}
    assert {group: (one.count, one.size) for group, one in groups.items()} == {
        f"checkpoints:{root}/step_1.pt": (1, 50),
        f"checkpoints:{tier}/other": (1, 70),
        f"unfinished:{tier}/half": (1, 30),
        f"repository:{tier}/code": (2, 13),
        f"files:{tier}/other": (1, 3),
        f"files:{tier}/dataset": (1, 4),
        f"files:{tier}": (1, 1),
        f"cache:{root}/.cache": (1, 5),
    }
    like = [one.checkpoint_like for one in found.leftovers]
    assert like == sorted(like, reverse=True)
    assert codes(found) == {"unclassified"}
    decided = {one.group: Decision("scrap", "old") for one in found.leftovers}
    done = await roster(box, root, tier, survives=[tier / "kept"], decisions=decided)
    assert not done.refusals
    assert {one.reason for one in done.leftovers} == {"old"}
    assert done.artifacts == found.artifacts


async def test_a_decision_does_not_cover_a_checkpoint_that_came_later(tmp_path: Path) -> None:
    tier, root = tmp_path, tmp_path / "run"
    write(root, {"best.pt": 10})
    write(tier, {"other/a.pt": 10, "files/x": 1})
    aged(tier)
    first = await roster(gnu(), root, tier)
    decided = {one.group: Decision("scrap") for one in first.leftovers}
    write(tier, {"other/b.pt": 10, "files/y": 1})
    aged(tier)
    later = await roster(gnu(), root, tier, decisions=decided)
    assert [(one.checkpoint_like, one.decision) for one in later.leftovers] == [
        (True, None),
        (False, "scrap"),
    ]
    assert codes(later) == {"unclassified"}


async def test_a_pattern_scraps_caches_and_never_checkpoints(tmp_path: Path) -> None:
    root = tmp_path / "run"
    write(root, {"best.pt": 10, "step_1.pt": 9, "step_2.pt": 9, ".cache/x": 1, "__pycache__/y": 1})
    aged(root)
    found = await roster(gnu(), root, tmp_path, decisions={"*": Decision("scrap", "all of it")})
    assert {one.decision for one in found.leftovers if one.checkpoint_like} == {None}
    assert {one.decision for one in found.leftovers if not one.checkpoint_like} == {"scrap"}


async def test_what_is_kept_joins_the_roster_and_what_lies_elsewhere_cannot(tmp_path: Path) -> None:
    root = tmp_path / "run"
    write(root, {"step_1.pt": 9, "step_2.pt": 9})
    write(tmp_path, {"elsewhere/notes.txt": 3})
    aged(tmp_path)
    first = await roster(gnu(), root, tmp_path)
    kept = await roster(
        gnu(), root, tmp_path, decisions={one.group: Decision("keep") for one in first.leftovers}
    )
    assert {one.path for one in kept.artifacts} == {"step_1.pt", "step_2.pt"}
    assert codes(kept) == {"kept-not-on-roster"}
    assert kept.refusals[0].path == str(tmp_path / "elsewhere")


async def test_secrets_of_a_job_are_a_group_of_their_own_and_no_copy_takes_them(tmp_path: Path) -> None:
    root = tmp_path / "run"
    write(root, {"best.pt": 9, ".rgt/secrets": 40, ".rgt/plan/env": 5, "notes/secrets": 3})
    write(tmp_path, {".rgt/secrets-r-2": 40})
    aged(tmp_path)
    first = await roster(gnu(), root, tmp_path)
    apart = {one.group: one.count for one in first.leftovers if one.group.startswith("secrets:")}
    assert apart == {f"secrets:{root}/.rgt": 1, f"secrets:{tmp_path}/.rgt": 1}
    kept = await roster(
        gnu(), root, tmp_path, decisions={one.group: Decision("keep") for one in first.leftovers}
    )
    assert {one.path for one in kept.artifacts} == {"best.pt", ".rgt/plan/env", "notes/secrets"}
    assert {one.path for one in kept.refusals} == {f"{root}/.rgt/secrets", f"{tmp_path}/.rgt/secrets-r-2"}


async def test_declared_counts_must_match_and_empty_is_a_refusal(box: Through, tmp_path: Path) -> None:
    write(tmp_path, {"best.pt": 10})
    aged(tmp_path)
    table = CustodyTable.model_validate({"artifacts": {"checkpoint": ["*.pt"]}, "counts": {"checkpoint": 2}})
    found = await roster(box, tmp_path, table=table)
    assert codes(found) == {"roster-count"}
    assert found.declared == (("checkpoint", 2),)
    (tmp_path / "empty").mkdir()
    assert "roster-empty" in codes(await roster(box, tmp_path / "empty"))
    with pytest.raises(FolderMissing):
        await roster(box, tmp_path / "absent")


async def test_a_live_writer_blocks_by_open_file_by_growth_and_by_name(box: Through, tmp_path: Path) -> None:
    write(tmp_path, {"best.pt": 10, "train.log": 5, "last.pt": 5, "half.pt.tmp": 3})
    aged(tmp_path)
    os.utime(tmp_path / "half.pt.tmp")
    with (tmp_path / "train.log").open("ab") as log, (tmp_path / "best.pt").open("rb"):
        looked: list[str] = []

        async def meanwhile(script: Script) -> None:
            looked.append(script.why)
            if looked.count("list the files that matter") == 2 and script.why == "list the files that matter":
                log.write(b"more")
                log.flush()
                (tmp_path / "last.pt").write_bytes(b"other")

        box.before_run = meanwhile
        found = await roster(box, tmp_path)
    evidence = {one.path: one for one in found.writers}
    assert set(evidence) == {"train.log", "last.pt", "half.pt.tmp"}
    assert evidence["train.log"].pid == os.getpid()
    assert "open for writing" in evidence["train.log"].evidence
    assert "written to" in evidence["last.pt"].evidence
    assert "unfinished" in evidence["half.pt.tmp"].evidence
    assert "live-writer" in codes(found)


async def test_growing_between_two_looks_alone_is_enough(tmp_path: Path) -> None:
    write(tmp_path, {"best.pt": 10, "train.log": 5})
    aged(tmp_path)
    box = gnu()

    async def grow(seconds: float) -> None:
        await asyncio.sleep(0.1)
        with (tmp_path / "train.log").open("ab") as log:
            log.write(b"x")

    found = await take_roster(
        box, Wanted("r", str(tmp_path)), VICTIM, "stop", (), {}, NOW, settle_s=0.1, sleep=grow
    )
    assert [(one.path, one.evidence) for one in found.writers] == [
        ("train.log", "went from 5 to 6 bytes while we looked")
    ]


async def test_unfinished_beside_an_artifact_blocks_until_it_is_scrapped(tmp_path: Path) -> None:
    write(tmp_path, {"best.pt": 10, "best.pt.part": 3})
    aged(tmp_path)
    found = await roster(gnu(), tmp_path, tmp_path)
    assert [one.path for one in found.writers] == ["best.pt"]
    decided = {one.group: Decision("scrap") for one in found.leftovers}
    assert not (await roster(gnu(), tmp_path, tmp_path, decisions=decided)).refusals


async def test_a_run_that_was_not_closed_is_told_as_that(tmp_path: Path) -> None:
    for place in ("active", "export"):
        write(tmp_path / place / "run1", {"best.pt": 100, ".rgt/plan/id": 3})
    aged(tmp_path)
    for place, told in (("active", True), ("export", False)):
        found = await roster(gnu("dash"), tmp_path / place / "run1")
        assert ("not-closed" in {one.code for one in found.gaps}) is told


async def test_names_that_no_folder_can_carry_are_told_to_travel_in_a_tar(
    box: Through, tmp_path: Path
) -> None:
    for name in (b"new\nline.pt", b"latin\xe9.txt", b"A.txt", b"a.txt", b"per%0A.txt", b"plain.txt"):
        with open(os.fsencode(tmp_path) + b"/" + name, "wb") as file:
            file.write(b"x")
    aged(tmp_path)
    found = await roster(box, tmp_path)
    assert {one.path for one in found.artifacts} == {
        "new\nline.pt", "latin\udce9.txt", "A.txt", "a.txt", "per%0A.txt", "plain.txt",
    }  # fmt: skip
    (told,) = [gap for gap in found.gaps if gap.code == "travels-in-tar"]
    assert told.detail.startswith("5 files")
    assert "plain" not in told.detail
    assert Roster.parse(found.canonical) == found


async def test_pipes_devices_and_links_out_are_refused_where_they_would_be_artifacts(
    box: Through, tmp_path: Path
) -> None:
    root = tmp_path / "run"
    write(root, {"best.pt": 10})
    os.mkfifo(root / "last.pt")
    (root / "final.pt").symlink_to("/etc/passwd")
    (root / "stale.sock").symlink_to("/nowhere")
    os.mkfifo(root / "queue")
    aged(root / "best.pt")
    found = await roster(box, root)
    assert [one.detail for one in found.gaps if one.code == "special-file"] == ["queue"]
    assert {(one.code, one.path) for one in found.refusals} == {
        ("not-a-file", "last.pt"),
        ("leaves-tree", "final.pt"),
    }


async def test_the_folder_may_be_a_link_and_a_tier_may_be_absent(tmp_path: Path) -> None:
    write(tmp_path / "real", {"best.pt": 10})
    aged(tmp_path / "real")
    (tmp_path / "via").symlink_to("real")
    found = await roster(gnu(), tmp_path / "via", tmp_path / "real", tmp_path / "not-mounted")
    assert found.root == str(tmp_path / "real")
    assert not found.refusals


async def test_a_surviving_tier_leaves_nothing_to_decide(tmp_path: Path) -> None:
    write(tmp_path / "fs" / "run", {"best.pt": 10, "step_1.pt": 5, "step_2.pt": 5})
    aged(tmp_path)
    found = await roster(gnu(), tmp_path / "fs" / "run", survives=[tmp_path / "fs"])
    assert not found.leftovers
    assert not found.refusals


async def test_hard_links_count_their_bytes_once(tmp_path: Path) -> None:
    write(tmp_path, {"run/best.pt": 10, "other/a.bin": 500})
    os.link(tmp_path / "other" / "a.bin", tmp_path / "other" / "b.bin")
    aged(tmp_path)
    found = await roster(gnu(), tmp_path / "run", tmp_path)
    assert [(one.count, one.size) for one in found.leftovers] == [(2, 500)]


async def test_net_cut_in_the_listing_is_a_lost_link_and_no_roster(tmp_path: Path) -> None:
    write(tmp_path, {"best.pt": 10})
    box = gnu()

    async def cut(script: Script) -> None:
        if script.why == "who has files open":
            raise LinkLost("box: the link was lost.")

    box.before_run = cut
    with pytest.raises(LinkLost):
        await roster(box, tmp_path)


@pytest.mark.slow
async def test_twenty_thousand_files_within_seconds(tmp_path: Path) -> None:
    root = tmp_path / "run"
    for number in range(100):
        folder = root / "vis" / f"{number:03d}"
        folder.mkdir(parents=True)
        for inner in range(200):
            (folder / f"{inner}.png").touch()
    write(root, {"best.pt": 10})
    aged(root / "best.pt")
    started = time.monotonic()
    found = await roster(gnu(), root, tmp_path)
    assert len(found.artifacts) == 20_001
    assert time.monotonic() - started < 15
    assert Roster.parse(found.canonical) == found


async def test_over_ssh(sshd: Sshd, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    root = tmp_path / "run é\n"
    write(root, {"best.pt": 10, "odd\n'name": 3})
    aged(root)
    transport = await desk.connector().connect(instance(sshd))
    try:
        found = await roster(transport, root, tmp_path / "run é\n")
    finally:
        await transport.close()
    assert {one.path for one in found.artifacts} == {"best.pt", "odd\n'name"}
    assert codes(found) <= {"live-writer"}
    assert not found.leftovers


async def test_a_whole_system_disk_is_counted_not_listed(tmp_path: Path) -> None:
    """`/` as a tier: the operating system is counted, checkpoints in it are found, the rest is listed."""
    top = tmp_path / "root"
    small = small_root(top)
    write(top, {"root/exp/best.pt": 10, "root/exp/train.log": 5, "root/notes.txt": 3, "srv/x/data.csv": 7})
    write(
        top, {"usr/share/doc/a": 100, "etc/hosts": 9, "usr/local/models/mine.pt": 2 << 20, "mnt/fs/away": 1}
    )
    aged(top / "root", top / "srv", top / "usr", top / "mnt")
    tiers = [
        Tier(path="/", survives=False, told_by="test"),
        Tier(path="/mnt/fs", survives=True, told_by="test"),
    ]
    found = await take_roster(small, Wanted("r", "/root/exp"), VICTIM, "destroy", tiers, {}, NOW, settle_s=0)
    assert {one.path for one in found.artifacts} == {"best.pt", "train.log"}
    groups = {one.group.partition("#")[0]: one for one in found.leftovers}
    assert {
        "checkpoints:/usr/local/models",
        "files:/root",
        "files:/srv/x",
        "system:/usr",
        "system:/etc",
    } <= set(groups)
    assert groups["system:/usr"].count >= 2
    assert groups["system:/usr"].size >= 2 << 20
    assert groups["files:/srv/x"].size == 7
    assert not any("mnt" in group or "/root/exp" in group for group in groups)
    told = {gap.code for gap in found.gaps}
    assert {"system-not-listed", "writers-not-seen"} <= told


async def test_a_tier_that_cannot_be_entered_is_refused_until_it_is_given_up() -> None:
    box = stranger()
    with everyones_folder() as folder:
        root, closed = folder / "run", folder / "closed"
        write(root, {"best.pt": 10})
        closed.mkdir(mode=0o700)
        aged(root)
        found = await roster(box, root, closed)
        given_up = await roster(
            box, root, closed, decisions={f"unlisted:{closed}": Decision("scrap", "not mine")}
        )
    assert ("tier-unlisted", str(closed)) in {(one.code, one.path) for one in found.refusals}
    assert "writers-not-seen" in {gap.code for gap in found.gaps}
    assert "tier-unlisted" not in codes(given_up)
    assert ("tier-partly-listed", "not mine") in {(gap.code, gap.reason) for gap in given_up.gaps}

"""SHA-256 on the box: right for every name and tool, at rest, and taken up again after every kind of cut."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.box.boxes import Desk, instance
from tests.custody.boxes import Through, busybox, everyones_folder, gnu, stranger
from tests.real import need
from tests.rig import Sshd
from tui.box.local import LocalChannel
from tui.box.transport import Channel, Completed, LinkLost, Script, Transport
from tui.custody import hashing
from tui.custody.digest import HashProgress, digest_on_box
from tui.custody.digest_journal import DigestJournal, Facts, Known, binding
from tui.custody.hashing import Hasher, race
from tui.custody.manifest import parse
from tui.model.custody import Artifact, DigestReport, Roster, Victim
from tui.model.failure import Failure

NOW = "2026-03-01T12:00:00Z"
ODD = (
    b"new\nline",
    b"back\\slash",
    b"car\rreturn",
    b"-rf",
    b" lead",
    b"$(touch CANARY)",
    b"\xff\xfe",
    b"L" * 255,
)
TOOLS = ("openssl", "sha256sum", "python3", "busybox")


def roster_of(top: Path) -> Roster:
    """A roster of everything below `top`, as it is now."""
    artifacts = []
    for folder, _, names in os.walk(os.fsencode(top)):
        for name in names:
            path = folder + b"/" + name
            status = os.stat(path)
            artifacts.append(
                Artifact(
                    path=os.fsdecode(os.path.relpath(path, os.fsencode(top))),
                    size=status.st_size,
                    role="other",
                    modified_ns=status.st_mtime_ns,
                )
            )
    return Roster(
        run="r", victim=Victim(name="box", platform="test"), verb="destroy", root=str(top),
        artifacts=tuple(artifacts), leftovers=(), tiers=(), writers=(), taken_at=NOW,
    )  # fmt: skip


def truth(top: Path) -> dict[str, str]:
    found = {}
    for one in roster_of(top).artifacts:
        with open(os.fsencode(top) + b"/" + os.fsencode(one.path), "rb") as file:
            found[one.path] = "sha256:" + hashlib.sha256(file.read()).hexdigest()
    return found


def settle(top: Path) -> None:
    """Wait until no file was written within the clock's last tick."""
    time.sleep(max(0.0, max((p.stat().st_ctime for p in top.rglob("*")), default=0) + 2.1 - time.time()))


async def digest(
    box: Transport,
    of: Roster,
    *,
    journal: DigestJournal | None = None,
    tell: Callable[[HashProgress], None] | None = None,
) -> tuple[DigestReport, bytes]:
    return await digest_on_box(box, of, tell or (lambda at: None), lambda: NOW, journal=journal)


@pytest.fixture(params=["dash", "bash", "busybox"])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Through:
    return busybox(tmp_path / "bin") if request.param == "busybox" else gnu(request.param)


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way of hashing is taken, without gigabytes."""
    monkeypatch.setattr(hashing, "LARGE", 300_000)
    monkeypatch.setattr(hashing, "_SMALL", 5_000)
    monkeypatch.setattr(hashing, "_SMALL_LOT", 7)
    monkeypatch.setattr(hashing, "_MIDDLE_LOT", 3)


def tree(top: Path, sizes: Mapping[str, int] | None = None) -> Path:
    top.mkdir(exist_ok=True)
    for odd in ODD:
        with open(os.fsencode(top) + b"/" + odd, "wb") as file:
            file.write(odd * 10)
    several = {f"small/{n}": n for n in range(40)} | {f"mid/{n}": 6_000 + n for n in range(8)}
    for name, size in (
        sizes if sizes is not None else {**several, "big/a": 700_000, "big/b": 400_000}
    ).items():
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_bytes(os.urandom(size))
    return top


async def test_every_file_whatever_its_name(box: Through, tmp_path: Path) -> None:
    top = tree(tmp_path / "run")
    of = roster_of(top)
    seen: list[HashProgress] = []
    report, manifest = await digest(box, of, tell=seen.append)
    assert not report.refusals
    assert {one.path: one.sha256 for one in report.files} == truth(top)
    assert report.roster == of.digest
    assert report.manifest == "sha256:" + hashlib.sha256(manifest).hexdigest()
    assert {line.path: f"sha256:{line.sha256}" for line in parse(manifest)} == truth(top)
    assert (seen[-1].files, seen[-1].bytes) == (len(of.artifacts), sum(one.size for one in of.artifacts))
    assert all(a.bytes <= b.bytes for a, b in itertools.pairwise(seen))
    assert not list(tmp_path.rglob("CANARY"))
    tool = need("sha256sum")["sha256sum"]
    (tmp_path / "manifest-sha256.txt").write_bytes(manifest)
    checked = subprocess.run(
        [tool, "-c", "--strict", "--quiet", "../manifest-sha256.txt"], cwd=top, capture_output=True
    )
    assert (checked.returncode, checked.stdout) == (0, b"")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("has_awk", [True, False])
async def test_every_tool_gives_the_same(
    tool: str, has_awk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(tool)
    top = tree(tmp_path / "run")
    settle(top)

    async def chosen(transport: Transport) -> Hasher:
        return Hasher(tool, 3, has_awk, True)

    monkeypatch.setattr("tui.custody.digest.race", chosen)
    report, _ = await digest(gnu(), roster_of(top))
    assert {one.path: one.sha256 for one in report.files} == truth(top)
    assert {one.tool for one in report.files} == {tool}


async def test_the_race_is_won_by_a_tool_that_answers_rightly(tmp_path: Path) -> None:
    fast = tmp_path / "bin"
    fast.mkdir()
    for name, text in {
        "openssl": "cat >/dev/null; echo " + "0" * 64 + " *stdin",
        "sha256sum": "exit 1",
        "busybox": "exit 1",
    }.items():
        (fast / name).write_text(f"#!/bin/sh\n{text}\n")
        (fast / name).chmod(0o755)
    box = gnu()
    box.path = f"{fast}:{box.path}"
    assert (await race(box)).tool == "python3"
    (fast / "python3").write_text("#!/bin/sh\nexit 1\n")
    (fast / "python3").chmod(0o755)
    with pytest.raises(Failure) as none:
        await race(box)
    assert none.value.code == "no-hash-tool"


@pytest.mark.parametrize(
    ("took", "winner"),
    [
        ({"openssl": 0.03, "sha256sum": 0.06, "python3": 0.03, "busybox": 0.2}, "openssl"),
        ({"openssl": 0.04, "python3": 0.03}, "openssl"),
        ({"openssl": 0.10, "sha256sum": 0.03, "python3": 0.04}, "sha256sum"),
        ({"openssl": 0.20, "python3": 0.04}, "python3"),
        ({"sha256sum": float("inf"), "python3": 0.04}, "python3"),
        ({"sha256sum": float("inf")}, "sha256sum"),
    ],
)
def test_of_equals_in_the_race_the_one_that_starts_soonest_is_taken(
    took: dict[str, float], winner: str
) -> None:
    assert hashing._winner([(seconds, name) for name, seconds in took.items()]) == winner


def test_the_known_answer() -> None:
    assert hashlib.sha256(bytes(hashing.ZEROS)).hexdigest() == hashing.ZEROS_SHA256


async def test_what_changed_or_went_since_the_roster_is_refused(tmp_path: Path) -> None:
    top = tree(tmp_path / "run", {"a": 10, "b": 10, "c": 10, "d": 10, "e": 10})
    of = roster_of(top)
    (top / "a").write_bytes(b"x" * 11)
    (top / "b").unlink()
    os.utime(top / "c", (1, 1))
    (top / "d").unlink()
    (top / "d").symlink_to("e")
    report, _ = await digest(gnu(), of)
    assert {one.path: one.code for one in report.refusals} == {
        "a": "changed-since-roster",
        "b": "gone-since-roster",
        "c": "changed-since-roster",
        "d": "changed-since-roster",
    }
    assert {one.path for one in report.files} == {one.path for one in of.artifacts} - set("abcd")


async def test_a_file_that_grows_while_it_is_hashed_is_refused(tmp_path: Path) -> None:
    top = tree(tmp_path / "run", {"grows": 400_000, "still": 10})
    settle(top)
    box = gnu()

    async def grow(script: Script) -> None:
        with (top / "grows").open("ab") as file:
            file.write(b"more")

    box.before_open = grow  # after the first look, before the bytes are read
    report, _ = await digest(box, roster_of(top))
    assert [(one.code, one.path) for one in report.refusals] == [("changed-while-hashed", "grows")]
    assert "grows" not in {one.path for one in report.files}
    assert "still" in {one.path for one in report.files}


async def test_a_file_rewritten_with_the_same_size_and_time_is_hashed_again(tmp_path: Path) -> None:
    top = tree(tmp_path / "run", {"x": 400_000})
    settle(top)
    before = (top / "x").stat()
    box = gnu()
    rewritten = False

    async def rewrite(script: Script) -> None:
        nonlocal rewritten
        if script.why == "look at files again" and opened and not rewritten:
            rewritten = True
            (top / "x").write_bytes(b"y" * 400_000)
            os.utime(top / "x", ns=(before.st_atime_ns, before.st_mtime_ns))

    opened: list[Script] = []

    async def note(script: Script) -> None:
        opened.append(script)

    box.before_run, box.before_open = rewrite, note
    of = roster_of(top)
    report, _ = await digest(box, of)
    assert rewritten
    assert not report.refusals
    assert {one.path: one.sha256 for one in report.files} == truth(top)


async def test_a_file_that_never_rests_is_refused(tmp_path: Path) -> None:
    top = tree(tmp_path / "run", {"x": 10})
    box = gnu()

    async def touch(script: Script) -> None:
        status = (top / "x").stat()
        os.utime(top / "x", ns=(status.st_atime_ns, status.st_mtime_ns))

    box.before_open = touch
    report, _ = await digest_on_box(box, roster_of(top), lambda at: None, lambda: NOW, sleep=_short)
    assert ("changed-while-hashed", "x") in {(one.code, one.path) for one in report.refusals}


async def _short(seconds: float) -> None:
    await asyncio.sleep(0.01)


async def test_files_that_this_login_may_not_read_are_named() -> None:
    box = stranger()
    with everyones_folder() as folder:
        top = tree(folder / "run", {"good": 10, "closed": 10, "big-closed": 400_000})
        (top / "closed").chmod(0)
        (top / "big-closed").chmod(0)
        report, _ = await digest(box, roster_of(top))
    refused = {one.path: one for one in report.refusals}
    assert set(refused) == {"closed", "big-closed"}
    assert {one.code for one in refused.values()} == {"unreadable"}
    assert all("may not read" in one.detail for one in refused.values())


async def test_disk_eio_is_an_unreadable_file_and_never_a_digest(tmp_path: Path) -> None:
    """The memory of a process reads as a regular file whose first bytes are an input/output error."""
    child = subprocess.Popen([need("sleep")["sleep"], "60"])
    try:
        top = Path(f"/proc/{child.pid}")
        status = (top / "mem").stat()
        of = roster_of(tree(tmp_path / "run", {}))
        mem = Artifact(path="mem", size=status.st_size, role="other", modified_ns=status.st_mtime_ns)
        of = of.model_copy(update={"root": str(top), "artifacts": (mem,)})
        report, manifest = await digest(gnu(), of)
    finally:
        child.kill()
        child.wait()
    assert [(one.code, one.path) for one in report.refusals] == [("unreadable", "mem")]
    assert "Input/output error" in report.refusals[0].detail
    assert (report.files, manifest) == ((), b"")


class Cut(Through):
    """A link that breaks after so many bytes of each long answer."""

    left = 0

    async def open(self, script: Script, *, timeout: float = 15.0) -> LocalChannel:
        channel = await super().open(script, timeout=timeout)
        inner = channel.read

        async def read(size: int = 65536) -> bytes:
            if self.left <= 0:
                raise LinkLost("box: the link was lost.")
            data = await inner(min(size, 300))
            self.left -= len(data)
            return data

        channel.read = read  # type: ignore[method-assign]
        return channel


async def test_net_cut_in_mid_digest_costs_only_what_was_not_done(tmp_path: Path) -> None:
    top = tree(tmp_path / "run")
    settle(top)
    of = roster_of(top)
    whole = gnu()
    box = Cut(whole.shell, whole.path)
    path = tmp_path / "state" / "journal"
    cuts, last = 0, -1
    while True:
        journal = DigestJournal(path, binding(of))
        journal.open()
        assert len(journal.known) > last or cuts == 0, "every attempt gets further"
        last = len(journal.known)
        box.left = 900
        seen: list[HashProgress] = []
        try:
            report, _ = await digest(box, of, journal=journal, tell=seen.append)
            break
        except LinkLost:
            cuts += 1
        finally:
            journal.close()
    assert cuts >= 3
    assert seen[0].files == last
    assert not report.refusals
    assert {one.path: one.sha256 for one in report.files} == truth(top)


async def test_what_is_in_the_journal_is_not_read_again_unless_the_file_changed(tmp_path: Path) -> None:
    top = tree(tmp_path / "run", {"a": 10, "b": 10})
    settle(top)
    of = roster_of(top)
    path = tmp_path / "journal"
    journal = DigestJournal(path, binding(of))
    journal.open()
    await digest(gnu(), of, journal=journal)
    journal.close()
    raw = path.read_bytes()
    path.write_bytes(raw + b'["torn",1')
    hashed: list[str] = []
    box = gnu()

    async def note(script: Script) -> None:
        hashed.append(script.why)

    box.before_open = note
    again = DigestJournal(path, binding(of))
    again.open()
    report, _ = await digest(box, of, journal=again)
    again.close()
    assert not hashed
    assert {one.path: one.sha256 for one in report.files} == truth(top)
    assert path.read_bytes() == raw
    status = (top / "a").stat()
    (top / "a").write_bytes(b"0123456789")
    os.utime(top / "a", ns=(status.st_atime_ns, status.st_mtime_ns))  # the inode's time can't be set back
    settle(top)
    third = DigestJournal(path, binding(of))
    third.open()
    report, _ = await digest(box, of, journal=third)
    third.close()
    assert hashed
    assert {one.path: one.sha256 for one in report.files} == truth(top)


def test_a_journal_of_another_box_or_of_rubbish_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for raw in (
        b"\xff\xfe rubbish",
        b'{"binding": "other"}\n["a",1,2,3,4,5,"' + b"0" * 64 + b'","x"]\n',
        b"[" * 5000,
    ):
        path.write_bytes(raw)
        journal = DigestJournal(path, "mine")
        journal.open()
        journal.close()
        assert not journal.known
        assert path.read_bytes() == b'{"binding":"mine"}\n'


@pytest.mark.parametrize(
    "line", [b'["a",1,2,3,4,5,"short","x"]', b"[1]", b"{}", b'["a",true,2,3,4,5,"' + b"0" * 64 + b'","x"]']
)
def test_a_journal_is_believed_up_to_its_first_bad_line(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal"
    good = b'["a",1,2,3,4,5,"' + b"0" * 64 + b'","x"]\n'
    path.write_bytes(b'{"binding":"mine"}\n' + good + line + b"\n" + good.replace(b'"a"', b'"b"'))
    journal = DigestJournal(path, "mine")
    journal.open()
    journal.close()
    assert set(journal.known) == {"a"}
    assert path.read_bytes().count(b"\n") == 2


def test_disk_bytes_a_full_disk_here_is_said_and_harms_nothing(tmp_path: Path) -> None:
    journal = DigestJournal(tmp_path / "journal", "mine")
    journal.open()
    with open("/dev/full", "wb", buffering=0) as no_space, pytest.raises(Failure) as full:
        journal._file = no_space
        journal.add([("a", Known(Facts(1, 2, 3, 4, 5), "0" * 64, "x"))])
    assert full.value.code == "not-stored"
    assert "space" in str(full.value).lower()


class Silent:
    """A box that takes the command and never says anything."""

    name = "box"

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        return await gnu().run(script, stdin=stdin, timeout=timeout, limit=limit)

    async def open(self, script: Script, *, timeout: float = 15.0) -> Channel:
        return await gnu().open(Script("sleep 60"), timeout=timeout)


async def test_net_half_a_box_that_says_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "_STALL_S", 0.2)
    top = tree(tmp_path / "run", {})
    settle(top)
    with pytest.raises(Failure) as stalled:
        await digest(Silent(), roster_of(top))
    assert stalled.value.code == "hash-stalled"


async def test_progress_inside_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow tool: the position of its file is told every second."""
    monkeypatch.setattr(hashing, "_TOLD_FROM", 100_000)
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "openssl").write_text(
        "#!/bin/sh\ncase $# in 3) head -c 400000 >/dev/null; sleep 2.5; cat >/dev/null;"
        f" echo {'1' * 64} '*stdin' ;; esac\n"
    )
    (slow / "openssl").chmod(0o755)
    top = tmp_path / "run"
    top.mkdir()
    (top / "big").write_bytes(os.urandom(900_000))
    settle(top)

    async def chosen(transport: Transport) -> Hasher:
        return Hasher("openssl", 2, True, True)

    monkeypatch.setattr("tui.custody.digest.race", chosen)
    box = gnu()
    box.path = f"{slow}:{box.path}"
    seen: list[HashProgress] = []
    await digest(box, roster_of(top), tell=seen.append)
    assert any(0 < at.bytes < 900_000 and at.files == 0 for at in seen)


async def test_over_ssh_with_a_real_cut_and_a_second_connection(sshd: Sshd, tmp_path: Path) -> None:
    top = tree(tmp_path / "run")
    settle(top)
    of = roster_of(top)
    desk = Desk(tmp_path)
    journal = DigestJournal(tmp_path / "journal", binding(of))
    journal.open()
    transport = await desk.connector().connect(instance(sshd))

    def cut(at: HashProgress) -> None:
        if at.files > 0:
            sshd.kill_sessions()

    with pytest.raises(LinkLost):
        await digest(transport, of, journal=journal, tell=cut)
    await transport.close()
    journal.close()
    again = DigestJournal(tmp_path / "journal", binding(of))
    again.open()
    transport = await desk.connector().connect(instance(sshd))
    try:
        report, _ = await digest(transport, of, journal=again)
    finally:
        await transport.close()
        again.close()
    assert {one.path: one.sha256 for one in report.files} == truth(top)
    assert not report.refusals
    deadline = time.monotonic() + 5  # what ends a cut command gives it a second to tidy up
    while (left := sshd.processes()) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    assert not [one.name() for one in left if not one.name().startswith("sshd")]


@pytest.mark.slow
async def test_thousands_of_small_files_keep_the_loop_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    top = tmp_path / "run"
    for number in range(50):
        (top / str(number)).mkdir(parents=True)
        for inner in range(100):
            (top / str(number) / str(inner)).write_bytes(b"%d" % inner)
    settle(top)
    report, _ = await digest(gnu(), roster_of(top))
    assert len(report.files) == 5_000
    assert {one.path: one.sha256 for one in report.files} == truth(top)

"""Stored records: whole, found by kind and digest, never replaced; and the job file's [custody] table."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.real import absent, need
from tui.checkpoints.codes import CODES as FILES
from tui.custody.codes import CODES, gap, refusal
from tui.custody.records import Records, kind_of, records
from tui.custody.table import parse_table, read_table
from tui.fleet.paths import Paths
from tui.model.custody import Artifact, DigestReport, Moment, Record, Roster, Victim
from tui.model.failure import Failure

ROOT = Path(__file__).parents[2]
NOW: Moment = "2026-03-01T12:00:00Z"


def roster(*paths: str, at: Moment = NOW) -> Roster:
    return Roster(
        run="r",
        victim=Victim(name="box", platform="test"),
        verb="destroy",
        root="/data",
        artifacts=tuple(Artifact(path=path, size=1, role="other") for path in paths),
        leftovers=(),
        tiers=(),
        writers=(),
        taken_at=at,
    )


def test_the_newest_is_found_and_every_earlier_one_by_its_digest(tmp_path: Path) -> None:
    store = Records(tmp_path / "custody" / "r")
    assert store.newest(Roster) is None
    one, two = roster("a"), roster("a", "odd\udcff\n")
    path = store.save(one)
    assert path.read_bytes() == one.canonical
    store.save(two)
    assert store.save(two) == path.with_name("roster-000002.json")
    assert store.newest(Roster) == two
    assert store.find(Roster, one.digest) == one
    assert store.find(Roster, "sha256:" + "0" * 64) is None
    assert store.newest(DigestReport) is None
    with pytest.raises(Failure) as missing:
        store.need(DigestReport, "Do it.")
    assert "Do it." in str(missing.value)
    assert sorted(p.name for p in store.folder.iterdir()) == ["roster-000001.json", "roster-000002.json"]
    told = subprocess.run(
        [need("sha256sum")["sha256sum"], str(path)], capture_output=True, text=True, check=True
    )
    assert one.digest == f"sha256:{told.stdout.split()[0]}"


@pytest.mark.parametrize("change", ["flip", "cut", "blank", "empty", "rubbish", "pipe"])
def test_disk_rot_a_damaged_record_is_said_and_no_older_one_stands_in(tmp_path: Path, change: str) -> None:
    store = Records(tmp_path)
    store.save(roster("a"))
    path = store.save(roster("b"))
    raw = path.read_bytes()
    if change == "pipe":
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(Failure, match="no regular file"):
            store.save(roster("c"))
    else:
        told = {
            "flip": raw.replace(b'"size":1', b'"size":2'),
            "cut": raw[:-5],
            "blank": raw.replace(b":", b": ", 1),
            "empty": b"",
            "rubbish": b"\xff" * 10,
        }
        path.write_bytes(told[change])
    if change == "flip":  # another well-formed record: nobody's digest any more
        assert store.find(Roster, roster("b").digest) is None
        return
    with pytest.raises(Failure) as damaged:
        store.newest(Roster)
    assert damaged.value.code == "record-damaged"


def test_disk_inodes_a_full_disk_leaves_what_was_stored(tmp_path: Path) -> None:
    tools = need("mount", "umount")
    mounted = tmp_path / "full"
    mounted.mkdir()
    made = subprocess.run(
        [tools["mount"], "-t", "tmpfs", "-o", "nr_inodes=6,size=1m", "tmpfs", str(mounted)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        absent("no tmpfs can be mounted here")
    try:
        store = Records(mounted / "r")
        for number in range(10):
            try:
                store.save(roster(str(number)))
            except Failure as failure:
                assert failure.code == "not-stored"
                break
        else:
            pytest.fail("the disk never filled")
        newest = store.newest(Roster)
        assert newest is not None
        assert newest.artifacts[0].path == str(number - 1)
        assert not [path for path in store.folder.iterdir() if path.name.startswith(".")]
    finally:
        subprocess.run([tools["umount"], str(mounted)], check=True)


def test_two_at_once_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one stores the same number between our look and our link."""
    store = Records(tmp_path)
    store.save(roster("a"))
    real = os.link

    def link(source: Path, target: Path) -> None:
        if Path(target).name == "roster-000002.json" and not Path(target).exists():
            Path(target).write_bytes(roster("theirs").canonical)
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    assert store.save(roster("ours")).name == "roster-000003.json"
    assert store.find(Roster, roster("theirs").digest) is not None


def test_a_run_is_a_name_and_no_path(tmp_path: Path) -> None:
    where = Paths(config=tmp_path, state=tmp_path)
    assert records(where, "exp-1").folder == tmp_path / "custody" / "exp-1"
    for name in ("..", "a/b", "", "/etc"):
        with pytest.raises(ValueError, match="name"):
            records(where, name)


@given(st.lists(st.text(st.characters(codec=None), min_size=1, max_size=20), max_size=5))
def test_every_record_is_read_as_it_was_written(paths: list[str]) -> None:
    one = roster(*paths)
    assert Roster.parse(one.canonical) == one
    assert Roster.parse(one.canonical).digest == one.digest


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        Roster.parse(raw)


@pytest.mark.parametrize("raw", [b'{"a":1.5}', b"[" * 100_000, b"null", b'{"run":"r"}'])
def test_no_hostile_json_gets_in(raw: bytes) -> None:
    with pytest.raises(ValueError):
        Roster.parse(raw)


def test_digests_and_moments_are_strict() -> None:
    for bad in ("sha256:" + "A" * 64, "sha256:" + "0" * 64 + "\n", "0" * 64, "md5:" + "0" * 32):
        with pytest.raises(ValidationError):
            DigestReport(roster=bad, files=(), manifest="sha256:" + "0" * 64, taken_at=NOW)
    for late in ("2026-03-01T12:00:00", "2026-03-01 12:00:00Z", "٢٠٢٦-03-01T12:00:00Z", NOW + "\n"):
        with pytest.raises(ValidationError):
            roster("a", at=late)


def test_kinds_and_codes() -> None:
    assert kind_of(DigestReport) == "digest-report"
    assert issubclass(DigestReport, Record)
    for code, row in CODES.items():
        made = refusal(code, "x") if row.kind == "refusal" else gap(code, "x")
        assert made.code == code
        assert row.means.endswith(".")
        assert row.clears
    with pytest.raises(KeyError):
        refusal("no-such-code", "x")


def said_codes() -> dict[str, set[str]]:
    """Codes that the programme writes into records and answers, each with the words that make it."""
    found: dict[str, set[str]] = {}
    for room in ("checkpoints", "custody", "workers", "verbs"):
        for source in (ROOT / "tui" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(source.read_text())):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                    continue
                given = [node.args[0]] if node.func.id in ("refusal", "gap") and node.args else []
                if node.func.id in ("Problem", "MetricProblem", "Gap", "Refusal"):
                    given = [k.value for k in node.keywords if k.arg == "code"]
                for one in given:
                    if isinstance(one, ast.Constant):
                        found.setdefault(str(one.value), set()).add(node.func.id)
    return found


def test_every_code_that_is_said_is_in_the_one_table_and_none_is_in_it_twice() -> None:
    said = said_codes()
    assert {"no-manifest", "population-incomplete", "copy-changed"} <= said.keys()
    assert said.keys() - CODES.keys() == set()
    for code, makers in said.items():
        assert CODES[code].kind == "refusal" or not makers & {"refusal", "Refusal"}, code
        assert CODES[code].kind == "gap" or "gap" not in makers, code
    own = [node.keys for node in ast.walk(ast.parse((ROOT / "tui/custody/codes.py").read_text()))
           if isinstance(node, ast.Dict)]  # fmt: skip
    keys = [key.value for several in own for key in several if isinstance(key, ast.Constant)]
    assert len(keys) == len({*keys})
    assert not set(keys) & FILES.keys()


TABLE = """\
[job]
name = "x"

[custody]
root = "/data/exp"
generations = 2

[custody.artifacts]
checkpoint = ["best.pt", "ck/**"]
predictions = ["test/*.parquet"]

[custody.counts]
checkpoint = 2

[[custody.predictions]]
name = "test"
files = ["test/*.parquet"]

[[custody.metrics]]
name = "acc"
predictions = "test"
"""


def test_a_table_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(TABLE)
    table = read_table(tmp_path / "job.toml")
    assert table is not None
    assert table.artifacts["checkpoint"] == ("best.pt", "ck/**")
    assert (table.root, table.generations, table.counts) == ("/data/exp", 2, {"checkpoint": 2})
    assert table.populations[0].name == "test"
    assert table.metrics[0].name == "acc"
    assert parse_table("[job]\n", "job.toml") is None
    with pytest.raises(Failure):
        read_table(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("old", "new", "line", "word"),
    [
        ('root = "/data/exp"', 'root = "data/exp"', 5, "absolute"),
        ("generations = 2", "generation = 2", 6, "not known"),
        ('"best.pt"', '"../best.pt"', 9, ".."),
        ('"best.pt"', '"/etc/passwd"', 9, "leading /"),
        ("predictions = [", "predictons = [", 10, "predictons"),
        ("checkpoint = 2", "checkpoint = -1", 13, "greater"),
        ("checkpoint = 2", 'checkpoint = "two"', 13, "integer"),
        ("generations = 2", 'layout = "keras"', 6, "auto"),
    ],
)
def test_every_problem_of_a_table_names_its_line(old: str, new: str, line: int, word: str) -> None:
    with pytest.raises(Failure) as problem:
        parse_table(TABLE.replace(old, new, 1), "job.toml")
    assert str(problem.value).startswith(f"job.toml:{line}: ")
    assert word in str(problem.value)


def test_a_table_that_is_no_table_is_said() -> None:
    for text in ("custody = 3\n", "[custody]\ncounts = 3\n", "[custody\n"):
        with pytest.raises(Failure) as problem:
            parse_table(text, "job.toml")
        assert str(problem.value).startswith("job.toml:")

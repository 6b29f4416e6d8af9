"""Editing fleet.toml: comments and order stay, a failed edit leaves the file byte-identical."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui.fleet import fleet_file
from tui.fleet.settings import load
from tui.model.failure import Failure

FLEET = """# my fleet
[settings]
theme = "dark"  # nice

[instances.a]  # box a
host = "x"   # the host
port = 22
# user = "nobody"

# the big one
[instances.b]
host = "y"

# runs below
[runs."r.1"]
box = "a"
log = "t"

# out of order
[instances.c]
host = "z"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    return file


def comments(text: str) -> list[str]:
    return ["#" + line.split("#", 1)[1] for line in text.splitlines() if "#" in line]


def test_an_edit_changes_only_its_line(path: Path) -> None:
    fleet_file.edit_instance(path, "a", {"port": 2222, "user": "root"})
    assert path.read_text() == FLEET.replace("port = 22\n", 'port = 2222\nuser = "root"\n')


def test_a_key_is_removed_with_its_line_alone(path: Path) -> None:
    fleet_file.edit_instance(path, "a", {"port": None})
    assert path.read_text() == FLEET.replace("port = 22\n", "")


def test_a_new_box_comes_after_the_last_one_and_a_new_run_after_the_last_run(path: Path) -> None:
    fleet_file.add_instance(path, "d.2", {"host": "h", "mounts": ["/d", "/e f"], "price_per_hour": 1.98})
    fleet_file.add_run(path, "r2", {"box": "d.2", "log": "a'b\"c"})
    text = path.read_text()
    assert text.index("r.1") < text.index("[runs.r2]") < text.index("# out of order")
    assert text.endswith('[instances."d.2"]\nhost = "h"\nmounts = ["/d", "/e f"]\nprice_per_hour = 1.98\n')
    assert comments(text) == comments(FLEET)
    assert load(path).problems == ()


def test_rename_takes_the_runs_along(path: Path) -> None:
    assert fleet_file.rename_instance(path, "a", "box.1") == ("r.1",)
    assert path.read_text() == FLEET.replace("[instances.a]", '[instances."box.1"]').replace(
        'box = "a"', 'box = "box.1"'
    )
    fleet_file.rename_run(path, "r.1", "r1")
    assert [run.name for run in load(path).runs] == ["r1"]


def test_remove_takes_the_runs_along_and_leaves_the_words_about_others(path: Path) -> None:
    assert fleet_file.remove_instance(path, "a") == ("r.1",)
    text = path.read_text()
    assert [i.name for i in load(path).instances] == ["b", "c"]
    assert "# the big one\n[instances.b]" in text and "# runs below" in text and "# my fleet" in text
    assert "nobody" not in text
    fleet_file.remove_instance(path, "b")
    fleet_file.remove_instance(path, "c")
    assert load(path).instances == ()
    fleet_file.add_instance(path, "again", {"host": "h"})
    assert [i.name for i in load(path).instances] == ["again"]


def test_a_first_box_makes_folder_and_file_for_the_operator_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config" / "fleet.toml"
    fleet_file.add_instance(path, "a", {"host": "h"})
    fleet_file.set_host_key(path, "a", "SHA256:" + "a" * 43)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load(path).instances[0].host_key == "SHA256:" + "a" * 43
    assert sorted(p.name for p in path.parent.iterdir()) == [".fleet.toml.lock", "fleet.toml"]


def test_a_link_into_another_folder_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(FLEET)
    link = tmp_path / "fleet.toml"
    link.symlink_to(real)
    fleet_file.edit_instance(link, "b", {"port": 1})
    assert link.is_symlink() and "port = 1" in real.read_text()


def test_windows_line_ends_stay(path: Path) -> None:
    path.write_bytes(FLEET.replace("\n", "\r\n").encode())
    fleet_file.edit_instance(path, "b", {"port": 1})
    fleet_file.add_instance(path, "n", {"host": "h"})
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
    assert load(path).problems == ()


@pytest.mark.parametrize(
    "text",
    [
        'instances = { a = {host="x"}, b = {} }\n',
        '[instances]\na.host = "x"\nb = {}\n',
        '[instances]\na = {host = "x"}\n',
        'instances.a.host = "x"\n',
        '[instances.a]\nhost = "x"',
        "[instances.a]\n",
        '[ instances . "a" ]\nhost = """x"""\n',
    ],
)
def test_other_ways_of_writing_are_edited_rightly_or_refused(path: Path, text: str) -> None:
    """Whatever an edit does must be what was meant, however the table is written."""
    edits: list[tuple[Callable[[], object], Callable[[dict[str, object]], object]]] = [
        (lambda: fleet_file.edit_instance(path, "a", {"host": "y", "port": 5}),
         lambda a: {**a, "a": {"host": "y", "port": 5}}),
        (lambda: fleet_file.rename_instance(path, "a", "q"),
         lambda a: {("q" if k == "a" else k): v for k, v in a.items()}),
        (lambda: fleet_file.remove_instance(path, "a"), lambda a: {k: v for k, v in a.items() if k != "a"}),
        (lambda: fleet_file.add_instance(path, "n", {"host": "h"}), lambda a: {**a, "n": {"host": "h"}}),
    ]  # fmt: skip
    for edit, meant in edits:
        path.write_text(text)
        before = tomllib.loads(text)["instances"]
        try:
            edit()
        except Failure as refused:
            assert refused.code == "not-editable" and refused.line.startswith("fleet.toml:")
            assert path.read_text() == text
        else:
            assert tomllib.loads(path.read_text()).get("instances", {}) == meant(before)


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda p: fleet_file.add_instance(p, "a", {"host": "h"}), "name-taken"),
        (lambda p: fleet_file.add_instance(p, "n", {"host": "h;x"}), "bad-entry"),
        (lambda p: fleet_file.add_instance(p, "n", {"host": "h", "password": "x"}), "bad-entry"),
        (lambda p: fleet_file.edit_instance(p, "a", {"port": 0}), "bad-entry"),
        (lambda p: fleet_file.edit_instance(p, "a", {"host": None}), "bad-entry"),
        (lambda p: fleet_file.edit_instance(p, "nope", {"port": 1}), "unknown-name"),
        (lambda p: fleet_file.rename_instance(p, "a", "b"), "name-taken"),
        (lambda p: fleet_file.rename_instance(p, "a", "-x"), "bad-name"),
        (lambda p: fleet_file.rename_instance(p, "nope", "n"), "unknown-name"),
        (lambda p: fleet_file.remove_instance(p, "nope"), "unknown-name"),
        (lambda p: fleet_file.remove_run(p, "nope"), "unknown-name"),
        (lambda p: fleet_file.add_run(p, "n", {"box": "nope", "log": "l"}), "unknown-name"),
        (lambda p: fleet_file.set_host_key(p, "a", "bogus"), "bad-entry"),
    ],
)
def test_a_refused_edit_leaves_every_byte(path: Path, edit: Callable[[Path], object], code: str) -> None:
    before = path.read_bytes()
    inode = path.stat().st_ino
    with pytest.raises(Failure) as refused:
        edit(path)
    assert refused.value.code == code
    assert path.read_bytes() == before and path.stat().st_ino == inode


def test_a_file_that_does_not_parse_is_never_written_over(path: Path) -> None:
    path.write_text(FLEET + "[oops\n")
    with pytest.raises(Failure, match="Nothing was written"):
        fleet_file.add_instance(path, "n", {"host": "h"})
    assert path.read_text() == FLEET + "[oops\n"


def test_a_full_disk_leaves_the_old_file_and_no_litter(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Failure, match="No space left"):
        fleet_file.edit_instance(path, "a", {"port": 1})
    assert path.read_text() == FLEET
    assert {p.name for p in path.parent.iterdir()} <= {"fleet.toml", ".fleet.toml.lock"}


def test_a_held_lock_is_waited_for_and_then_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_file, "LOCK_WAIT_S", 0.1)
    with (path.parent / ".fleet.toml.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Failure, match="Another rgt"):
            fleet_file.edit_instance(path, "a", {"port": 1})
    fleet_file.edit_instance(path, "a", {"port": 1})


def _add_many(path: Path, prefix: str) -> None:
    for number in range(10):
        fleet_file.add_instance(path, f"{prefix}{number}", {"host": "h"})


def test_two_writers_lose_nothing(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_add_many, args=(path, prefix)) for prefix in ("p", "q")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert len(load(path).instances) == 3 + 20
    assert comments(path.read_text()) == comments(FLEET)


NAMES = st.sampled_from(["a", "b", "c", "n1", "n.2", "x y"])
VALUES = st.dictionaries(
    st.sampled_from(["host", "port", "user", "mounts", "password"]),
    st.sampled_from(["h", "a b", "", 22, 0, None, ["/m"], ["m"], 'q"\\\n']),
    max_size=3,
)
EDITS = st.one_of(
    st.tuples(st.just(fleet_file.add_instance), NAMES, VALUES.map(lambda v: {"host": "h", **v})),
    st.tuples(st.just(fleet_file.edit_instance), NAMES, VALUES),
    st.tuples(st.just(fleet_file.rename_instance), NAMES, NAMES),
    st.tuples(st.just(fleet_file.remove_instance), NAMES),
    st.tuples(st.just(fleet_file.add_run), NAMES, st.just({"box": "b", "log": "l"})),
    st.tuples(st.just(fleet_file.remove_run), st.sampled_from(["r.1", "n1"])),
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[settings]\ntheme = "light"\n'),
        ("# mine\n[instances.a]\nhost = 'x'\n", None),
        ('[settings]\ntheme = "dark" # why\n', '[settings]\ntheme = "light" # why\n'),
        ("[settings]\nmouse = true\n\n[runs]\n", '[settings]\nmouse = true\ntheme = "light"\n\n[runs]\n'),
        ("[settings]\n# nothing yet\n", '[settings]\ntheme = "light"\n# nothing yet\n'),
        ("settings = { mouse = true }\n", 'settings = { mouse = true, theme = "light" }\n'),
    ],
)
def test_a_theme_is_written_and_nothing_else_changes(tmp_path: Path, before: str, after: str | None) -> None:
    path = tmp_path / "fleet.toml"
    if before:
        path.write_text(before)
    fleet_file.set_theme(path, "light")
    assert after is None or path.read_text() == after
    assert path.read_text().startswith(before if after is None else "")
    assert load(path).settings.theme == "light"


def test_a_theme_is_not_written_into_a_file_that_is_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text("[settings\n")
    with pytest.raises(Failure):
        fleet_file.set_theme(path, "light")
    assert path.read_text() == "[settings\n"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(EDITS, max_size=6), ending=st.sampled_from(["", "\n", "# last words"]))
def test_any_edits_keep_the_file_whole(path: Path, edits: list[tuple], ending: str) -> None:  # type: ignore[type-arg]
    path.write_text(FLEET + ending)
    outside = {"# my fleet", "# nice", "# the big one", "# runs below", "# out of order"}
    for edit, *arguments in edits:
        before = path.read_bytes()
        try:
            edit(path, *arguments)
        except Failure:
            assert path.read_bytes() == before
        assert outside <= set(comments(path.read_text()))
        assert load(path).problems == ()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=120))
def test_no_text_makes_an_edit_do_harm(path: Path, text: str) -> None:
    raw = text.encode("utf-8", "replace")
    path.write_bytes(raw)
    try:
        fleet_file.add_instance(path, "n", {"host": "h"})
    except Failure:
        assert path.read_bytes() == raw
    else:
        assert tomllib.loads(path.read_text())["instances"]["n"] == {"host": "h"}

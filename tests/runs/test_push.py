"""Code travels once, arrives whole or not at all, and a live run's copy is never touched again."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.rig.tmpfs import tmpfs
from tui.box.local import LocalTransport
from tui.model.failure import Failure
from tui.runs.code_tree import content, read_tree
from tui.runs.push import make_copy, push


@pytest.fixture
def code(tmp_path: Path) -> Path:
    root = tmp_path / "code"
    (root / "a dir" / "deep").mkdir(parents=True)
    (root / "train.py").write_text("print(1)\n")
    (root / "a dir" / "deep" / "it's $(x).py").write_text("x = 'é'\n")
    (root / "run.sh").write_bytes(b"#!/bin/sh\r\necho hi\r\n")
    (root / "run.sh").chmod(0o755)
    (root / "empty").touch()
    (root / " x y ").write_text("blanks\n")
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "x.pyc").write_bytes(b"x")
    (root / "big.ckpt").write_bytes(b"0" * 100)
    return root


def git(root: Path, *words: str) -> None:
    author = ("-c", "user.name=n", "-c", "user.email=e@example.com")
    subprocess.run(["git", "-C", str(root), *author, *words], check=True, capture_output=True, timeout=30)


def test_a_tree_is_what_git_or_the_patterns_say(code: Path) -> None:
    tree = read_tree(code, ["*.ckpt"])
    assert [one.path for one in tree.files] == [
        " x y ",
        "a dir/deep/it's $(x).py",
        "empty",
        "run.sh",
        "train.py",
    ]
    assert tree.commit is None
    (code / ".gitignore").write_text("*.ckpt\n")
    git(code, "init")
    git(code, "add", ".")
    git(code, "commit", "-m", "x")
    clean = read_tree(code)
    assert clean.commit is not None
    assert clean.dirty is None
    assert "big.ckpt" not in [one.path for one in clean.files]
    (code / "train.py").write_text("print(2)\n")
    changed = read_tree(code)
    assert (changed.commit, changed.dirty is None) == (clean.commit, False)
    assert changed.digest != clean.digest


async def test_it_goes_over_once_and_only_what_changed(code: Path, tmp_path: Path) -> None:
    box, store, run = LocalTransport(), str(tmp_path / "store"), tmp_path / "active" / "r-1"
    run.mkdir(parents=True)
    tree = read_tree(code)
    assert (await push(box, tree, store)).sent == len({one.sha256 for one in tree.files})
    assert (await push(box, tree, store)).sent == 0
    await make_copy(box, tree, store, str(run))
    await make_copy(box, tree, store, str(run))
    assert (run / "src" / "run.sh").read_bytes() == b"#!/bin/sh\necho hi\n"
    assert (run / "src" / "run.sh").stat().st_mode & 0o111
    (code / "train.py").write_text("print(2)\n")
    later = read_tree(code)
    assert (await push(box, later, store)).sent == 1
    assert (run / "src" / "train.py").read_text() == "print(1)\n"


async def test_a_copy_that_is_not_the_tree_is_refused(code: Path, tmp_path: Path) -> None:
    box, store, run = LocalTransport(), str(tmp_path / "store"), tmp_path / "r"
    run.mkdir()
    tree = read_tree(code)
    await push(box, tree, store)
    await make_copy(box, tree, store, str(run))
    (run / "src" / "extra.py").touch()
    with pytest.raises(Failure, match=r"extra\.py"):
        await make_copy(box, tree, store, str(run))


async def test_what_went_bad_in_the_store_is_noticed_and_sent_again(code: Path, tmp_path: Path) -> None:
    box, store = LocalTransport(), tmp_path / "store"
    tree = read_tree(code)
    await push(box, tree, str(store))
    victim = next(one for one in tree.files if one.path == "train.py")
    (store / victim.sha256).write_text("rotten")
    run = tmp_path / "r"
    run.mkdir()
    with pytest.raises(Failure, match=r"train\.py"):
        await make_copy(box, tree, str(store), str(run))
    assert not (run / "src").exists()
    assert (await push(box, tree, str(store))).sent == 1
    await make_copy(box, tree, str(store), str(run))
    assert (run / "src" / "train.py").read_text() == "print(1)\n"


async def test_a_full_disk_is_one_sentence(code: Path, tmp_path: Path) -> None:
    (code / "large.bin").write_bytes(b"x" * (3 << 20))
    with (
        tmpfs(tmp_path / "small", size=1 << 20) as small,
        pytest.raises(Failure, match="could not take the code"),
    ):
        await push(LocalTransport(), read_tree(code), str(small / "store"))


@pytest.mark.parametrize("name", ["line\nbreak", "back\\slash"])
def test_names_that_cannot_travel_are_refused(code: Path, name: str) -> None:
    (code / name).touch()
    with pytest.raises(Failure, match="in its name"):
        read_tree(code)


def test_a_link_out_of_the_tree_is_refused(code: Path) -> None:
    (code / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(Failure, match="leaves the folder"):
        read_tree(code)


def test_a_file_that_changes_while_it_is_sent_is_noticed(code: Path) -> None:
    tree = read_tree(code)
    (code / "train.py").write_text("print(3)\n")
    with pytest.raises(Failure, match="changed while"):
        content(code, next(one for one in tree.files if one.path == "train.py"))


def test_configuration_and_data_have_an_identity_of_their_own(code: Path) -> None:
    (code / "c.yaml").write_text("lr: 0.1\n")
    tree = read_tree(code)
    assert tree.identity("c.yaml", "code.config") == hashlib.sha256(b"lr: 0.1\n").hexdigest()
    assert tree.identity(None, "data") is None
    with pytest.raises(Failure, match="data names data"):
        tree.identity("data.sha256", "data")

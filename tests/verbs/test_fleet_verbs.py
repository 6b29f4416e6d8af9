"""The verbs that write fleet.toml, and `rgt profiles`: what they print, what they write, how they end."""

from __future__ import annotations

import argparse
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from tui.cli import main
from tui.custody.host_keys import trust_store
from tui.fleet.paths import Paths, paths
from tui.fleet.settings import load
from tui.verbs import fleet, profiles
from tui.verbs.naming import run_word, unused

SEETA = "ssh -p 34567 root@connect.westb.seetacloud.com"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "home"))
    return paths()


def rgt(*words: str) -> int:
    return main(list(words))


def test_dry_run_json_prints_exactly_the_record_and_writes_nothing(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rgt("add", "ssh -p 34567 root@connect.west.example.com", "--dry-run", "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "host": "connect.west.example.com",
        "port": 34567,
        "user": "root",
        "key": None,
        "jump": None,
        "platform": "ssh",
        "proxied": False,
    }
    assert shown.err == ""
    assert not home.fleet_file.exists()


def test_local_is_this_computer_and_no_host_of_that_name(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rgt("add", "local", "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"name": "local", "platform": "local"}
    assert rgt("add", "local", "--name", "here") == 0
    assert "Added here" in capsys.readouterr().out
    (box,) = load(home.fleet_file).instances
    assert (box.name, box.platform, box.endpoint) == ("here", "local", None)
    assert rgt("add", "local") == 1
    assert "already in the fleet as here" in capsys.readouterr().err


def test_a_command_needs_no_quotes(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ssh", "-p", "34567", "root@connect.west.example.com"]
    for order in ([*words, "--dry-run", "--json"], ["--dry-run", "--json", *words]):
        assert rgt("add", *order) == 0
        assert json.loads(capsys.readouterr().out)["port"] == 34567
    assert rgt("add", *words, "--dryrun") == 2
    assert "--dryrun" in capsys.readouterr().err
    assert not home.fleet_file.exists()
    assert rgt("add", *words, "--name", "west") == 0
    (box,) = load(home.fleet_file).instances
    assert (box.name, box.endpoint.port if box.endpoint else None) == ("west", 34567)


def test_add_writes_a_box_that_loads(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert rgt("add", SEETA) == 0
    assert "autodl-34567" in capsys.readouterr().out
    (box,) = load(home.fleet_file).instances
    assert (box.name, box.platform) == ("autodl-34567", "autodl")
    assert box.endpoint is not None and (box.endpoint.port, box.endpoint.user) == (34567, "root")


def test_what_the_operator_adds_to_a_paste(home: Paths) -> None:
    more = [
        "--name",
        "big",
        "--platform",
        "lambda",
        "--price",
        "2.5",
        "--currency",
        "EUR",
        "--password-env",
        "PW",
    ]
    assert rgt("add", "root@203.0.113.9", *more) == 0
    (box,) = load(home.fleet_file).instances
    assert (box.name, box.platform, box.price_per_hour, box.currency, box.password_env) == (
        "big", "lambda", 2.5, "EUR", "PW"
    )  # fmt: skip


def test_a_paste_is_tied_to_the_providers_instance(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    runpod = ("ssh -p 1 root@a.example", "--platform", "runpod", "--instance-id", "pod1")
    assert rgt("add", *runpod, "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["instance_id"] == "pod1"
    assert rgt("add", *runpod, "--name", "mine") == 0
    (box,) = load(home.fleet_file).instances
    assert (box.platform, box.instance_id) == ("runpod", "pod1")
    capsys.readouterr()
    assert rgt("add", "ssh -p 2 root@b.example", *runpod[1:]) != 0
    assert "already in the fleet as mine, with another login" in capsys.readouterr().err
    assert rgt("add", "ssh -p 2 root@b.example", "--platform", "vastai", "--instance-id", "pod1") == 0
    assert rgt("add", "ssh -p 3 root@c.example", "--instance-id", "pod1") == 2
    assert "does not tell whose instance" in capsys.readouterr().err
    assert rgt("add", "pod:ml/train-0@prod", "--instance-id", "ml/job/train") == 0
    assert load(home.fleet_file).instances[-1].instance_id == "ml/job/train"


def test_a_proxied_login_is_kept_as_one(home: Paths) -> None:
    assert rgt("add", "ssh 7h9k2m4n6p-64411234@ssh.runpod.io -i ~/.ssh/id_ed25519") == 0
    (box,) = load(home.fleet_file).instances
    assert box.name == "runpod-7h9k2m4n6p"
    assert box.endpoint is not None and box.endpoint.proxied and box.endpoint.key == "~/.ssh/id_ed25519"


def test_a_password_is_neither_echoed_nor_stored(
    home: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paste = tmp_path / "paste"
    paste.write_text(f"{SEETA}\nhunter2secret\n")
    for words in (("add", "--dry-run", "--json"), ("add", "--dry-run"), ("add", "--json")):
        with paste.open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert rgt(*words) == 0
        shown = capsys.readouterr()
        assert "hunter2secret" not in shown.out + shown.err
        assert (
            "a password was in the paste and was not stored: set password_env or you will be asked"
            in shown.err
        )
    assert "hunter2secret" not in home.fleet_file.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "root@h;reboot",
        "ssh -o ProxyCommand=evil root@h",
        "$(id)",
        "ssh -p 99999 root@h",
        "",
        "\x1b[2J",
        "a b c",
    ],
)
def test_dangerous_or_senseless_pastes_are_refused(
    home: Paths, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert rgt("add", text) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("rgt: ") and shown.err.count("\n") == 1
    assert not home.fleet_file.exists()


def test_the_same_login_twice_and_a_taken_name_are_refused(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rgt("add", SEETA, "--name", "a") == 0
    assert rgt("add", SEETA, "--name", "b") == 1
    assert "already in the fleet as a" in capsys.readouterr().err
    assert rgt("add", SEETA.replace("34567", "1"), "--name", "a") == 1
    assert rgt("add", SEETA.replace("34567", "1"), "--name", "a b") == 1
    assert rgt("add", "root@gpu01.example.com") == 0
    assert rgt("add", "me@gpu01.example.com") == 0
    assert [i.name for i in load(home.fleet_file).instances] == ["a", "gpu01", "gpu01-2"]


def test_a_broken_file_is_not_written_over(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    home.config.mkdir(parents=True)
    home.fleet_file.write_text("[oops\n")
    assert rgt("add", SEETA) != 0
    assert "fleet.toml:1: " in capsys.readouterr().err
    assert home.fleet_file.read_text() == "[oops\n"


def test_edit_types_its_values_and_validates(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    rgt("add", SEETA, "--name", "a")
    changes = ["port=22", "price_per_hour=1.98", "currency=CNY", "mounts=/data,/root/x y",
               "jump=me@gate:2222", "rented_at=2026-11-29T10:00:00+08:00", "user="]  # fmt: skip
    assert rgt("edit", "a", *changes) == 0
    (box,) = load(home.fleet_file).instances
    assert box.endpoint is not None
    assert (box.endpoint.port, box.endpoint.user, box.endpoint.jump) == (22, None, ("me@gate:2222",))
    assert (box.price_per_hour, box.mounts, box.rented_at) == (1.98, ("/data", "/root/x y"), 1795917600.0)
    before = home.fleet_file.read_bytes()
    capsys.readouterr()
    for bad in (
        "port=x",
        "port=0",
        "port",
        "=1",
        "prot=1",
        "password=hunter2",
        "host=",
        "ends_at=soon",
        "proxied=2",
    ):
        assert rgt("edit", "a", bad) in (1, 2), bad
        said = capsys.readouterr().err
        assert said.startswith("rgt: ") and "hunter2" not in said and "Traceback" not in said
    assert rgt("edit", "nope", "port=1") == 2
    assert home.fleet_file.read_bytes() == before


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBERERERERERERERERERERERERERERERERERERERERER"


def test_a_renamed_box_keeps_its_identity_and_a_forgotten_one_leaves_none(home: Paths) -> None:
    """Under a new name without its record, a box would count as never met: any key would be taken."""
    trust = trust_store(home)
    assert rgt("add", SEETA, "--name", "a") == 0
    assert rgt("add", "ssh root@other.example", "--name", "other") == 0
    trust.record("a", KEY, "first use", 1.0)
    trust.record("gone", KEY, "first use", 1.0)  # left by a box that was taken out of the file by hand
    assert rgt("rename", "a", "no name") == 2
    assert rgt("rename", "a", "other") == 1
    pin = trust.pinned("a")
    assert pin is not None
    assert rgt("rename", "a", "gone") == 0
    moved = trust.pinned("gone")
    assert moved is not None
    assert moved.fingerprint == pin.fingerprint
    assert trust.pinned("a") is None
    assert rgt("remove", "gone") == 0
    assert trust.pinned("gone") is None


def test_watch_rename_and_remove(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    rgt("add", SEETA, "--name", "a")
    assert rgt("watch", "a", "--log", "/root/sweep-a/train.log", "--checkpoints", "/root/sweep-a/*.pth") == 0
    assert rgt("watch", "a", "--log", "/root/sweep-a/train.log", "--pid", "4121") == 0
    assert rgt("watch", "a", "--session", "main", "--name", "mine") == 0
    assert [r.name for r in load(home.fleet_file).runs] == ["a.sweep-a", "a.sweep-a-2", "mine"]
    assert rgt("watch", "a") == 2
    assert rgt("watch", "nope", "--log", "x") == 2
    assert rgt("rename", "mine", "other") == 0
    assert rgt("rename", "a", "b", "--json") == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said == {"old": "a", "new": "b", "runs": ["a.sweep-a", "a.sweep-a-2", "other"]}
    assert rgt("edit", "other", "session=", "pid=7") == 0
    assert {r.box for r in load(home.fleet_file).runs} == {"b"}
    assert rgt("remove", "other") == 0
    assert "goes on as it was" in capsys.readouterr().out
    assert rgt("remove", "b") == 0
    said_at_last = capsys.readouterr().out
    assert (
        "goes on running and billing" in said_at_last
        and "关机" in said_at_last
        and "a.sweep-a-2" in said_at_last
    )
    assert load(home.fleet_file).instances == () and load(home.fleet_file).runs == ()


def test_a_wrong_entry_can_still_be_removed(home: Paths) -> None:
    home.config.mkdir(parents=True)
    home.fleet_file.write_text('[instances.a]\nhost = "h;x"\n[instances."b c"]\nhost = "h"\n')
    assert rgt("remove", "a") == 0
    assert rgt("remove", "b c") == 0
    assert load(home.fleet_file).problems == ()


def test_read_only_mode_changes_nothing(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert rgt("--read-only", "add", SEETA) == 1
    assert not home.fleet_file.exists()
    home.config.mkdir(parents=True)
    home.fleet_file.write_text('[settings]\nread_only = true\n[instances.a]\nhost = "h"\n')
    before = home.fleet_file.read_bytes()
    for words in (["add", SEETA], ["edit", "a", "port=1"], ["rename", "a", "b"], ["remove", "a"],
                  ["watch", "a", "--log", "l"]):  # fmt: skip
        assert rgt(*words) == 1
        assert "read-only" in capsys.readouterr().err
    assert home.fleet_file.read_bytes() == before


def test_write_instance_says_one_sentence(home: Paths) -> None:
    assert fleet.write_instance(home, SEETA, "a") == "Added a."
    said = fleet.write_instance(home, f"{SEETA.replace('34567', '9')}\nhunter2secret", "")
    assert said.startswith("Added autodl-9.") and "was not stored" in said and "hunter2secret" not in said


def test_names_are_valid_and_unused() -> None:
    assert unused("运行 x!", ["x"]) == "x-2"
    assert unused("---", []) == "box"
    assert unused("a" * 100, ["a" * 56]) == "a" * 56 + "-2"
    assert run_word({"log": "nohup.out"}) == "nohup"
    assert run_word({"log": "~/exp 3/train.log"}) == "exp 3"
    assert run_word({"pid": 7}) == "7"


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


def read_until(descriptor: int, wanted: bytes, deadline: float = 20.0) -> bytes:
    seen, end = b"", time.monotonic() + deadline
    while wanted not in seen and time.monotonic() < end:
        if select.select([descriptor], [], [], 0.2)[0]:
            try:
                seen += os.read(descriptor, 4096)
            except OSError:  # the other side is closed: the program has ended
                break
    return seen


def test_a_paste_on_a_terminal_is_not_shown_and_what_follows_is_dropped(
    terminal: tuple[int, int], home: Paths
) -> None:
    ours, theirs = terminal
    command = [
        sys.executable,
        "-c",
        "from tui.cli import main; import sys; sys.exit(main())",
        "add",
        "--name",
        "t",
    ]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    try:
        shown = read_until(ours, b"ctrl+d")
        os.write(ours, f"\n{SEETA}\nhunter2secret\n\nleft over\n".encode())
        shown += read_until(ours, b"first look")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(5)
    assert select.select([theirs], [], [], 0.3)[0] == []  # nothing is left for the shell to run
    shown += read_until(ours, b"\0", 0.3)
    os.close(theirs)
    assert b"hunter2secret" not in shown and b"seetacloud" not in shown and b"left over" not in shown
    assert b"was not stored" in shown
    assert [i.name for i in load(home.fleet_file).instances] == ["t"]


def test_profiles_list_show_and_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert rgt("profiles") == 0
    listed = capsys.readouterr().out
    assert "关机 (can be undone, destroys nothing)" in listed
    assert "Terminate (irreversible, destroys container disk, volume disk)" in listed
    assert rgt("profiles", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["profiles"]
    assert len(rows) == 15 and [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    assert rgt("profiles", "--plain") == 0
    assert len({line.count("\t") for line in capsys.readouterr().out.splitlines()}) == 1
    assert rgt("profiles", "autodl", "--json") == 0
    assert json.loads(capsys.readouterr().out)["clocks"][0]["after_h"] == 360
    assert rgt("profiles", "autodl") == 0
    page = capsys.readouterr().out
    assert "at most 200,000 files" in page and "0.10 CNY per hour" in page and "in the box: shutdown" in page
    assert rgt("profiles", "runpod") == 0
    assert "ssh proxied" in (page := capsys.readouterr().out) and "(no exec, scp, sftp, forward)" in page
    assert rgt("profiles", "runpod", "--plain") == 0
    assert "### RP1 · " in capsys.readouterr().out
    assert rgt("profiles", "nope") == 2


def test_profiles_check_tells_bad_files_and_old_stamps(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    home.profiles.mkdir(parents=True)
    (home.profiles / "mine.md").write_text("no front matter")
    assert rgt("profiles", "--check", "--months", "1000") == 1
    assert capsys.readouterr().out.startswith("profiles/mine.md:1: ")
    assert rgt("profiles", "ssh", "--check", "--months", "1000") == 0
    assert rgt("profiles", "nope", "--check") == 2
    capsys.readouterr()
    shown: list[str] = []
    loaded = profiles.load(home)
    code = profiles.check(loaded, "ssh", 6, date(2028, 1, 1), as_json=False, out=shown.append)
    assert code == 1 and shown[0].startswith("profiles/ssh.md:") and "months ago" in shown[0]


def test_every_verb_takes_json_and_plain() -> None:
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers()
    fleet.register(sub)
    profiles.register(sub)
    for words in (
        ["add", "x"],
        ["edit", "a", "b=c"],
        ["rename", "a", "b"],
        ["remove", "a"],
        ["watch", "a"],
        ["profiles"],
    ):
        args = parser.parse_args([*words, "--json", "--plain"])
        assert args.json and args.plain and callable(args.run)

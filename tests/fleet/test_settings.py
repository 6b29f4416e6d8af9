"""Reading fleet.toml: what is right works, what is wrong is told with its line, nothing raises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui.fleet import entry_rules
from tui.fleet.first_look import names_only
from tui.fleet.preferences import Settings
from tui.fleet.problems import BAD, WARNING
from tui.fleet.settings import Loaded, check_instance, load, read
from tui.model.failure import Failure
from tui.model.instance import Endpoint


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def loaded(tmp_path: Path, text: str | bytes) -> Loaded:
    return load(written(tmp_path, text))


def lines(result: Loaded) -> list[str]:
    return [str(problem.line) for problem in result.problems]


def test_a_full_entry_arrives_whole(tmp_path: Path) -> None:
    result = loaded(
        tmp_path,
        """
[settings]
theme = "light"
read_only = true
period_s = 5
glyphs = "ascii"
thresholds = { inode_pct = 80, idle_gpu_s = 600 }

[instances.h100]
platform = "runpod"
host = "203.0.113.9"
port = 12873
user = "root"
key = "~/.ssh/id_ed25519"
jump = ["me@gate:2222", "inner"]
instance_id = "7h9k2m4n6p"
account = "work"
password_env = "BOX_PW"
host_key = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
mounts = ["/workspace"]
data_dir = "/mnt/nvme"
price_per_hour = 2
currency = "USD"
rented_at = 2026-11-29T10:00:00+08:00
ends_at = 2026-12-29T10:00:00+08:00

[instances.me]
platform = "local"

[runs."sft.1"]
box = "h100"
log = "train.log"
checkpoints = "out/**/*.pt"
pid = 4121
pid_start = 99
boot_id = "0a1b2c3d-0000-4000-8000-00000000abcd"
session = "main"
progress_regex = 'it (?P<done>\\d+)'
""",
    )
    assert result.problems == ()
    assert result.settings.theme == "light"
    assert result.settings.read_only and result.settings.period_s == 5
    assert result.settings.thresholds.inode_pct == 80
    assert result.settings.thresholds.disk_pct == Settings().thresholds.disk_pct
    box, me = result.instances
    assert box.endpoint == Endpoint(
        "203.0.113.9", 12873, "root", "~/.ssh/id_ed25519", ("me@gate:2222", "inner")
    )
    assert box.price_per_hour == 2.0
    assert (box.data_dir, me.data_dir) == ("/mnt/nvme", None)
    assert box.rented_at == 1795917600.0
    assert me.endpoint is None and me.price_per_hour is None
    assert result.runs[0].box == "h100" and result.runs[0].pid == 4121


@pytest.mark.parametrize(
    ("written_as", "endpoint"),
    [
        ("alias", Endpoint("alias")),
        ("root@h.example.com:2222", Endpoint("h.example.com", 2222, "root")),
        ("root@[2001:db8::1]:22", Endpoint("2001:db8::1", 22, "root")),
        ("2001:db8::1", Endpoint("2001:db8::1")),
    ],
)
def test_ssh_in_one_word(tmp_path: Path, written_as: str, endpoint: Endpoint) -> None:
    result = loaded(tmp_path, f'[instances.a]\nssh = "{written_as}"\n')
    assert result.instances[0].endpoint == endpoint


def test_a_missing_file_is_an_empty_fleet(tmp_path: Path) -> None:
    assert load(tmp_path / "none" / "fleet.toml") == Loaded()


def test_a_bad_entry_is_left_out_with_its_line_and_the_rest_works(tmp_path: Path) -> None:
    result = loaded(
        tmp_path,
        """# fleet
[instances.good]
host = "a.example.com"

[instances.bad]
host = "b.example.com"
port = 99999
jump = [
  "fine",
  "x;reboot",
]

[runs.r1]
box = "good"
log = "l"

[runs.r2]
box = "bad"
log = "l"

[runs.r3]
box = "nowhere"
log = "l"
""",
    )
    assert [i.name for i in result.instances] == ["good"]
    assert [r.name for r in result.runs] == ["r1"]
    starts = [line.split(" ")[0] for line in lines(result)]
    assert starts == ["fleet.toml:7:", "fleet.toml:10:", "fleet.toml:18:", "fleet.toml:22:"]
    assert "left out, see its own problem" in lines(result)[2]
    assert "not in this file" in lines(result)[3]


@pytest.mark.parametrize(
    "line",
    [
        'host = "-oProxyCommand=x"',
        'host = "a b"',
        'host = "a;b"',
        'host = "a\\u001b[2Jb"',
        'host = "$(x)"',
        'host = ""',
        'ssh = "ssh -p 22 root@h"',
        'ssh = "root:hunter2@h"',
        'ssh = "-l root h"',
        'host = "h"\nport = 0',
        'host = "h"\nport = "22"',
        'host = "h"\nport = true',
        'host = "h"\nuser = "-l"',
        'host = "h"\nuser = "a b"',
        'host = "h"\nkey = "-i"',
        'host = "h"\nkey = "a`id`"',
        'host = "h"\nkey = "-----BEGIN OPENSSH PRIVATE KEY-----"',
        'host = "h"\njump = ["a,b"]',
        'host = "h"\njump = "a"',
        'host = "h"\nproxy_command = "nc %h %p; reboot"',
        'host = "h"\npassword_env = "hunter2!"',
        'host = "h"\nhost_key = "AAAAB3Nza"',
        'host = "h"\nmounts = ["data"]',
        'host = "h"\nprice_per_hour = -1',
        'host = "h"\nprice_per_hour = nan',
        'host = "h"\nprice_per_hour = inf',
        'host = "h"\ncurrency = "dollar"',
        'host = "h"\nrented_at = 2026-11-29',
        'host = "h"\nrented_at = 0001-01-01T00:00:00',
        'host = "h"\nrented_at = 2026-11-29T00:00:00Z\nends_at = 2026-11-28T00:00:00Z',
        'platform = "local"\nhost = "h"',
        'platform = "../x"\nhost = "h"',
        'ssh = "h"\nhost = "h"',
        'host = "h"\njump = ["a"]\nproxy_command = "nc %h %p"',
    ],
)
def test_what_an_instance_may_not_hold(tmp_path: Path, line: str) -> None:
    result = loaded(tmp_path, f"[instances.a]\n{line}\n[instances.b]\nhost = 'h'\n")
    assert [i.name for i in result.instances] == ["b"]
    assert [p.code for p in result.problems] == [BAD]
    assert result.problems[0].line.startswith("fleet.toml:")


@pytest.mark.parametrize("name", ["-x", "a b", "ä", "a/b", "..", "x" * 64, ""])
def test_names_that_are_refused(tmp_path: Path, name: str) -> None:
    result = loaded(tmp_path, f'[instances."{name}"]\nhost = "h"\n')
    assert result.instances == ()
    assert result.problems[0].line.startswith("fleet.toml:1: ")


@pytest.mark.parametrize(
    "key", ["password", "Password", "root-password", "passwd", "token", "api_key", "secret"]
)
def test_a_password_in_clear_is_refused_and_not_repeated(tmp_path: Path, key: str) -> None:
    result = loaded(tmp_path, f'[instances.a]\nhost = "h"\n{key} = "hunter2"\n')
    assert result.instances == ()
    (said,) = lines(result)
    assert said.startswith("fleet.toml:3: ") and "password_env" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "text",
    [
        '[instances.a]\nhost = "h"\npassword_env = "hunter2 !"',
        '[instances.a]\nssh = "root:hunter2@h"',
        "hunter2",
    ],
)
def test_no_value_is_repeated_in_a_problem(tmp_path: Path, text: str) -> None:
    assert "hunter2" not in " ".join(lines(loaded(tmp_path, text)))


def test_unknown_keys_warn_and_leave_the_entry_in(tmp_path: Path) -> None:
    result = loaded(tmp_path, 'colour = 1\n[instances.a]\nhost = "h"\nprot = 22\n')
    assert [i.name for i in result.instances] == ["a"]
    assert [p.code for p in result.problems] == [WARNING, WARNING]
    assert [line.split(" ")[0] for line in lines(result)] == ["fleet.toml:1:", "fleet.toml:4:"]


def test_a_bad_preference_falls_back_alone(tmp_path: Path) -> None:
    result = loaded(
        tmp_path, "[settings]\ntheme = 3\nperiod_s = 9\nthresholds = { inode_pct = 200, disk_pct = 70 }\n"
    )
    assert (result.settings.theme, result.settings.period_s) == ("dark", 9)
    assert result.settings.thresholds.disk_pct == 70
    assert result.settings.thresholds.inode_pct == Settings().thresholds.inode_pct
    assert len(result.problems) == 2


def test_read_only_asked_for_in_a_wrong_way_still_holds(tmp_path: Path) -> None:
    path = written(tmp_path, '[settings]\nread_only = "yes"\n')
    assert load(path).settings.read_only
    assert names_only(path).read_only


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        (b"[instances.a\nhost = 1", "fleet.toml:1:"),
        (b"a = 1\nb = \n", "fleet.toml:2:"),
        (b"ok = 1\n\xff\xfe", "fleet.toml:2:"),
        (b"a = " + b"[" * 5000, "fleet.toml:"),
        (b"a = 1" + b"0" * 5000, "fleet.toml"),
        (b"instances = 3", "fleet.toml:1:"),
        (b"[[instances]]\nhost = 'h'", "fleet.toml:1:"),
        (b"runs = []", "fleet.toml:1:"),
        (b"settings = 'x'", "fleet.toml:1:"),
        (b"instances = { a = 3 }", "fleet.toml:1:"),
        (b"#" * (2 << 20), "fleet.toml:"),
    ],
)
def test_what_is_no_fleet_file_is_one_problem_and_an_empty_fleet(
    tmp_path: Path, raw: bytes, where: str
) -> None:
    path = written(tmp_path, raw)
    result = load(path)
    assert result.instances == () and result.runs == ()
    assert lines(result)[0].startswith(where)
    assert path.read_bytes() == raw


def test_a_fifo_or_a_folder_does_not_hang_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fleet.toml")
    assert "not a regular file" in lines(load(tmp_path / "fleet.toml"))[0]
    assert load(tmp_path).problems


FRAGMENTS = st.lists(
    st.sampled_from(
        ["[instances.a]\n", "[instances]\n", "[[instances]]\n", "[runs.r]\n", "[settings]\n", 'host = "h"\n',
         "a.host = 'h'\n", "port = 22\n", "instances = {a = {host='h'}}\n", 'box = "a"\n', "thresholds = 3\n",
         "jump = ['a', 'b']\n", "mounts = '''\n/x'''\n", 'x = """a\n\\""""""\n', "rented_at = 2026-01-01\n",
         "pid = -1\n", "read_only = 1\n", "# c\n", "\r\n", "price_per_hour = nan\n", "password = 1\n"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=FRAGMENTS | st.text(max_size=200))
def test_any_text_loads_without_raising(tmp_path: Path, text: str) -> None:
    raw = text.encode("utf-8", "replace")
    path = written(tmp_path, raw)
    result = load(path)
    names_only(path)
    assert path.read_bytes() == raw
    for problem in result.problems:
        assert problem.line.isprintable() and problem.line.startswith("fleet.toml:")


def test_names_only_tells_rows_without_the_heavy_libraries(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[settings]\ntheme = "mono"\n[instances.a]\nplatform = "autodl"\nhost = "h"\n[instances."b c"]\n'
        '[instances.p]\npassword = "x"\n[runs.r]\nbox = "a"\n',
    )
    look = names_only(path)
    assert (look.theme, look.instances, look.runs) == ("mono", (("a", "autodl"),), (("r", "a"),))
    code = (
        "import sys; import tui.fleet.first_look; "
        "print([m for m in ('pydantic', 'tomlkit', 'yaml', 'asyncssh', 'textual') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"


def test_check_instance_names_the_key() -> None:
    with pytest.raises(Failure, match="port: must be a port"):
        check_instance("a", {"host": "h", "port": 0})
    with pytest.raises(Failure, match="prot is not a key"):
        check_instance("a", {"host": "h", "prot": 1})


@given(st.text(max_size=40))
def test_rules_accept_nothing_that_ssh_or_a_shell_would_read_as_more_than_a_word(text: str) -> None:
    for rule in (entry_rules.host, entry_rules.user, entry_rules.key_file, entry_rules.hop):
        try:
            rule(text)
        except ValueError:
            continue
        assert not text.startswith("-") and text.isprintable()
        assert not set(text) & set(";|&$`<>\"'\\!*?(){}\n")


def test_accounts_name_keys_and_hold_none() -> None:
    text = """
[accounts.work]
platform = "runpod"
key_env = "WORK_KEY"
ignore = ["pod9"]

[accounts.bad]
platform = "runpod"
api_key = "sk-123456"

[instances.a]
platform = "runpod"
host = "h"
account = "work"

[instances.b]
platform = "runpod"
host = "h"
account = "acct-77"
"""
    loaded = read(text)
    (work,) = loaded.accounts
    assert (work.name, work.platform, work.key_env, work.ask, work.ignore) == (
        "work", "runpod", "WORK_KEY", True, ("pod9",)
    )  # fmt: skip
    a, b = loaded.instances
    assert (a.asked_as, a.account) == ("work", None)
    assert (b.asked_as, b.account) == (None, "acct-77")
    (problem,) = loaded.problems
    assert "api_key" in problem.what
    assert "sk-123456" not in problem.line


def test_asking_platforms_can_be_turned_off() -> None:
    assert read("").settings.ask_platforms
    assert not read("[settings]\nask_platforms = false\n").settings.ask_platforms

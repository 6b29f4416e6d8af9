"""Mounts, quotas and what fills them: kept outputs, round trips and judgements about space."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.kinds_ab import map_case
from tests.corpus.runner import Case, asked, misses, read_cases
from tui.box.parsers.mount_kinds import is_file_bind, names_no_capacity, short_of_space
from tui.box.parsers.mounts import unescape
from tui.box.parsers.recognise import parse_output
from tui.box.parsers.report import FsReport, Mount
from tui.box.parsers.sizes import scaled

CASES = [case for case in read_cases(Path(__file__).parents[1] / "cases") if case.kind == "B"]
GIB = 1 << 30


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_kept_output(case: Case) -> None:
    found = misses(case, asked(case, "parse"), map_case(case))
    assert not found, "\n".join(miss.line() for miss in found)


def test_cases_are_kept() -> None:
    assert len(CASES) > 40


def fs(command: str, stdout: bytes | str, stderr: str = "", exit_status: int = 0) -> FsReport:
    raw = stdout.encode() if isinstance(stdout, str) else stdout
    report = parse_output(command, raw, stderr.encode(), exit_status).fs
    assert report is not None
    return report


def only(report: FsReport) -> Mount:
    assert report.mounts is not None and len(report.mounts) == 1
    return report.mounts[0]


@pytest.mark.parametrize(
    ("text", "block", "base", "value"),
    [
        ("24G", 1, 1024, 24 * GIB),
        ("1,1G", 1, 1024, GIB + round(0.1 * GIB)),
        ("1.5k", 1, 1000, 1500),
        ("12", 1024, 1024, 12288),
        ("-3", 1024, 1024, -3072),
        ("-1.5K", 1, 1024, -1536),
        ("104857600*", 1024, 1024, 104857600 * 1024),
        ("100.00 GiB", 1, 1024, 100 * GIB),
        ("0Bi", 1, 1024, None),
        ("0B", 1024, 1024, 0),
        ("-", 1, 1024, None),
        ("", 1, 1024, None),
        (None, 1, 1024, None),
        ("1.2.3", 1, 1024, None),
    ],
)
def test_figures(text: str | None, block: int, base: int, value: int | None) -> None:
    assert scaled(text, block, base) == value


NAME = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)
PATHS = st.lists(NAME, min_size=1, max_size=3).map(lambda words: "/mnt/" + " ".join(words))
ROWS = st.lists(
    st.tuples(
        PATHS,
        st.integers(1, 10**15),
        st.integers(0, 10**15),
        st.integers(-(10**12), 10**15),
        st.integers(0, 100),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda row: row[0],
)
HEADERS = (
    "Filesystem     1024-blocks     Used Available Capacity Mounted on",
    "文件系统       1024的块     已用     可用 容量 挂载点",
    "Dateisystem    1024-Blöcke  Benutzt Verfügbar Verw% Eingehängt auf",
    "Sys. de fichiers blocs de 1024 Utilisé Disponible Capacité Monté sur",
    "S.ficheros     bloques de 1024    Usados Disponibles Capacidad Montado en",
    "Файл.система   1024-блоков Использовано Доступно Емкость Cмонтировано в",
)


@given(ROWS, st.sampled_from(HEADERS), st.booleans())
@settings(max_examples=80, deadline=None)
def test_rows_come_back_in_any_language(
    rows: list[tuple[str, int, int, int, int]], header: str, wrapped: bool
) -> None:
    gap = "\n      " if wrapped else " "
    text = "\n".join(
        [
            header,
            *(f"nas:/export/{at}{gap}{t} {u} {a}  {p}% {path}" for at, (path, t, u, a, p) in enumerate(rows)),
        ]
    )
    report = fs("df -Pk", text)
    told = [
        (
            mount.path,
            mount.shown.size_bytes,
            mount.shown.used_bytes,
            mount.shown.avail_bytes,
            mount.shown.use_pct,
        )
        for mount in report.mounts or ()
    ]
    assert told == [(path, t * 1024, u * 1024, a * 1024, float(p)) for path, t, u, a, p in rows]


@given(st.binary(min_size=1, max_size=20).filter(lambda raw: b"\0" not in raw))
@settings(max_examples=100, deadline=None)
def test_proc_mounts_keep_every_byte_of_a_path(name: bytes) -> None:
    escaped = b"".join(
        b"\\%03o" % byte if byte in b" \t\n\\\r" or byte == 0x1B else bytes([byte]) for byte in name
    )
    mount = only(fs("cat /proc/mounts", b"dev /m" + escaped + b" ext4 rw 0 0\n"))
    assert mount.path.encode("utf-8", "surrogateescape") == b"/m" + name
    assert mount.shown.mount.isprintable()


def test_a_path_that_is_no_text_can_be_named_again_and_be_drawn() -> None:
    mount = only(
        fs(
            "df -Pk",
            b"Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/x 1 1 0 100% /mnt/\xb2\xe2\n",
        )
    )
    assert mount.path.encode("utf-8", "surrogateescape") == b"/mnt/\xb2\xe2"
    assert mount.shown.mount.isprintable()


def test_escapes() -> None:
    assert unescape("/a\\040b\\134") == "/a b\\"
    assert unescape("/plain") == "/plain"


HEAD = "Filesystem 1024-blocks Used Available Capacity Mounted on\n"


@pytest.mark.parametrize(
    ("row", "short"),
    [
        ("/dev/a 100000000 100000000 0 100% /x", True),
        ("/dev/a 21474836480 21400000000 74836480 100% /x", True),  # 71 GiB of 20 TiB
        ("/dev/a 9007199254740 8997193252736 10006002004 100% /x", False),  # 9 TiB left
        ("/dev/a 100000000 50000000 50000000 50% /x", False),
        ("/dev/a 1000 1000 0 100% /snap/y/1", True),
        ("/dev/loop4 1000 1000 0 100% /snap/y/1", False),
        ("/dev/a 0 0 0 - /x", False),
        ("/dev/a - - - - /x", False),
    ],
)
def test_short_of_space_is_judged_by_what_is_left(row: str, short: bool) -> None:
    assert bool(short_of_space(fs("df -Pk", HEAD + row + "\n").mounts or ())) is short


def test_inodes_run_short_too() -> None:
    report = fs(
        "df -iP", "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/a 3276800 3276000 800 100% /x\n"
    )
    assert short_of_space(report.mounts or ()) == ("/x",)


@pytest.mark.parametrize(
    ("path", "bind"),
    [
        ("/etc/hosts", True),
        ("/usr/bin/nvidia-smi", True),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05", True),
        ("/dev/nvidia0", True),
        ("/dev/shm", False),
        ("/etc", False),
        ("/usr", False),
        ("/root/autodl-pub", False),
        ("/data/lib/model.so.bak/x", False),
        ("/home/u/bin", False),
    ],
)
def test_single_files_of_the_host(path: str, bind: bool) -> None:
    assert is_file_bind(path, "") is bind


@pytest.mark.parametrize(
    ("device", "fstype", "size", "used", "avail", "fantasy"),
    [
        ("s3fs", "fuse.s3fs", 282 << 40, 0, 282 << 40, True),
        ("bucket", "fuse.gcsfuse", 1 << 50, 0, 1 << 50, True),
        ("JuiceFS:x", "fuse.juicefs", 1 << 50, 5, 1 << 50, True),
        ("JuiceFS:x", "fuse.juicefs", 1 << 40, 5, 1 << 40, False),
        ("nas:/x", "nfs4", 100 << 40, 5, 90 << 40, False),
        ("/dev/sdb", "ext4", 8 << 40, 0, 8 << 40, False),
        ("x", "", None, None, None, False),
    ],
)
def test_sizes_that_nothing_stands_behind(
    device: str, fstype: str, size: int | None, used: int | None, avail: int | None, fantasy: bool
) -> None:
    assert names_no_capacity(device, fstype, size, used, avail) is fantasy


@pytest.mark.parametrize(
    ("line", "path", "errno"),
    [
        ("df: /projects: Stale file handle", "/projects", "ESTALE"),
        ("df: '/mnt/a b': Transport endpoint is not connected", "/mnt/a b", "ENOTCONN"),
        ("df: ‘/mnt/x’: Input/output error", "/mnt/x", "EIO"),
        ("/bin/df: /mnt/x: 过时的文件句柄", "/mnt/x", "ESTALE"),
        ("df: /a: b: Permission denied", "/a: b", "EACCES"),
        ("df: /x: Something never heard of", "/x", None),
    ],
)
def test_complaints_name_the_mount_and_the_error(line: str, path: str, errno: str | None) -> None:
    (problem,) = fs("df -P", "", line + "\n", 1).problems
    assert (problem.path, problem.errno) == (path, errno)


def test_rows_that_cannot_be_read_are_not_told_as_no_mounts() -> None:
    assert fs("df -Pk", HEAD).mounts == ()
    assert fs("df -Pk", HEAD + "what ever this may be\n").mounts is None
    assert fs("df -Pk", "df: /x: Permission denied\n" + HEAD, "", 1).mounts == ()


def test_the_sum_of_all_mounts_is_no_mount() -> None:
    text = (
        "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/a 100 50 50 50% /\ntotal 100 50 50 50% -\n"
    )
    assert only(fs("df --total", text)).path == "/"


def test_a_figure_of_the_human_form_says_that_it_is_rounded() -> None:
    human = only(fs("df -h", "Filesystem Size Used Avail Use% Mounted on\n/dev/a 50G 33G 15G 70% /\n")).shown
    exact = only(fs("df -Pk", HEAD + "/dev/a 100 50 50 50% /\n")).shown
    assert human.rounded and human.size_bytes == 50 * GIB
    assert not exact.rounded


def test_options_of_proc_mounts_join_the_figures() -> None:
    shown = only(
        fs("df -Pk; cat /proc/mounts", HEAD + "/dev/a 100 50 50 50% /\n/dev/a / ext4 ro,relatime 0 0\n")
    ).shown
    assert (shown.size_bytes, shown.fstype, shown.read_only) == (102400, "ext4", True)

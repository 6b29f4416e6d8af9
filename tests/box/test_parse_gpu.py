"""GPU tools and kernel lines: kept outputs, round trips, and whatever a broken or hostile box may print."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.corpus.kinds_ab import map_case
from tests.corpus.runner import Case, asked, misses, read_cases
from tui.box.parsers.command import read_command
from tui.box.parsers.gpu_card import build_gpu, is_slice
from tui.box.parsers.lines import decode
from tui.box.parsers.recognise import parse_output
from tui.box.parsers.report import Parsed
from tui.box.parsers.xid import first_cause, gpu_events

CASES = [case for case in read_cases(Path(__file__).parents[1] / "cases") if case.kind == "A"]
QUERY = "nvidia-smi --query-gpu={} --format=csv,noheader"
EXACT = frozenset({"path", "device", "ignored", "tools"})  # kept as they are, never drawn
COMMANDS = (
    "nvidia-smi",
    "nvidia-smi -q",
    "nvidia-smi -q -x",
    "nvidia-smi dmon",
    QUERY.format("index,name,memory.used,clocks_event_reasons.active"),
    "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv",
    "rocm-smi",
    "amd-smi metric --json",
    "dmesg",
    "df -P; df -iP",
    "df -hT",
    "cat /proc/mounts",
    "mount; findmnt",
    "quota",
    "repquota -a; lfs quota -u x /l",
    "du -k",
    "lsof +L1",
    "sh probe.sh",
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_kept_output(case: Case) -> None:
    found = misses(case, asked(case, "parse"), map_case(case))
    assert not found, "\n".join(miss.line() for miss in found)


def test_cases_are_kept() -> None:
    assert len(CASES) > 50


@pytest.mark.parametrize(
    ("line", "tools"),
    [
        ("nvidia-smi -L", ["nvidia-smi"]),
        (
            "LC_ALL=C sudo -n -u x timeout -k 2 5 /usr/bin/nvidia-smi -q 2>&1 | tail -n 3",
            ["nvidia-smi", "tail"],
        ),
        ("env -i PATH=/bin nice -n 19 df -P", ["df"]),
        ("sh -c 'nvidia-smi -L; df -P /'", ["nvidia-smi", "df"]),
        ("ssh -p 22 root@box 'nvidia-smi -L'", ["nvidia-smi"]),
        ("docker exec -it c1 nvidia-smi", ["nvidia-smi"]),
        ("cd /x && df -P . || echo no", ["cd", "df", "echo"]),
        ("if true; then dmesg; fi", ["true", "dmesg", "fi"]),
        ("df -h | grep sh (twice)", ["df", "grep", "twice"]),
        ("echo 'unclosed", ["echo"]),
        ("", []),
    ],
)
def test_programs_of_a_command_line(line: str, tools: list[str]) -> None:
    assert [one.tool for one in read_command(line).invocations] == tools


def test_options_in_all_spellings() -> None:
    (call,) = read_command("df -Pk --output=size,used -B1M -t ext4").invocations
    assert call.flag("-k") and call.flag("-P") and not call.flag("-i")
    assert call.value("--output") == "size,used"
    assert call.value("-B") == "1M"
    assert call.value("-t", "--type") == "ext4"
    assert call.value("-x") is None


def gpu_reading(command: str, stdout: str, exit_status: int = 0, stderr: str = "") -> tuple[object, str]:
    report = parse_output(command, stdout.encode(), stderr.encode(), exit_status).gpu
    assert report is not None
    reading = report.reading()
    return reading.value, reading.reason


@pytest.mark.parametrize(
    ("stdout", "exit_status", "stderr", "reason"),
    [
        ("No devices were found\n", 6, "", "No devices were found"),
        ("", 127, "sh: 1: nvidia-smi: not found\n", "sh: 1: nvidia-smi: not found"),
        ("Failed to initialize NVML: Unknown Error\n", 255, "", "Failed to initialize NVML: Unknown Error"),
        ("", 124, "", "nvidia-smi did not answer in time"),
        ("", 0, "", "printed nothing"),
        ("", 255, "ssh: connect to host x port 22: Connection refused\n", "Connection refused"),
        ("Segmentation fault\n", 139, "", "ended by a signal"),
    ],
)
def test_a_refusal_reads_as_unknown_with_the_reason(
    stdout: str, exit_status: int, stderr: str, reason: str
) -> None:
    value, told = gpu_reading("timeout 9 nvidia-smi -L", stdout, exit_status, stderr)
    assert value is None
    assert reason in told


def test_a_table_without_rows_reads_as_no_card() -> None:
    assert gpu_reading("nvidia-smi --query-gpu=index,name --format=csv", "index, name\n") == ((), "")


def test_of_a_watched_card_the_last_sample_counts_and_of_its_partitions_the_first() -> None:
    text = (
        "TIMESTAMP  GPU  XCP  POWER  PWR_CAP   GPU_T\n"
        "1786038263    0    0  123 W    750 W   40 °C\n"
        "1786038263    0    1    N/A      N/A     N/A\n"
        "1786038264    0    0  456 W    750 W   60 °C\n"
        "1786038264    0    1    N/A      N/A     N/A\n"
    )
    report = parse_output("amd-smi monitor -pt -w 1", text.encode(), b"", 0).gpu
    assert report is not None and report.gpus is not None
    (gpu,) = report.gpus
    assert (gpu.index, gpu.power_w, gpu.power_limit_w, gpu.temp_c) == (0, 456, 750, 60)


@pytest.mark.parametrize(
    ("stdout", "known"),
    [
        ("", True),
        ("No running processes found\n", True),
        ("pid, process_name, used_gpu_memory [MiB]\n", True),
        ("what ever this may be\n", False),
    ],
)
def test_processes_that_cannot_be_read_are_not_told_as_none(stdout: str, known: bool) -> None:
    command = "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv"
    report = parse_output(command, stdout.encode(), b"", 0).gpu
    assert report is not None
    assert report.processes == (() if known else None)


def test_what_a_cell_said_instead_of_a_number_is_kept() -> None:
    gpu = build_gpu({"index": "1", "power_w": "[Not Supported]", "util_pct": "0 %"}, 0)
    assert gpu.power_w is None
    assert gpu.util_pct == 0
    assert gpu.missing == (("power_w", "[Not Supported]"),)


def test_slices_are_told_from_whole_cards() -> None:
    whole = {"name": "NVIDIA A100-PCIE-40GB", "mem_total_mib": "40536 MiB"}
    assert not is_slice(build_gpu(whole, 0))
    assert is_slice(build_gpu(whole | {"mem_total_mib": "10000 MiB"}, 0))
    assert not is_slice(build_gpu(whole | {"mem_total_mib": "[N/A]"}, 0))
    assert not is_slice(build_gpu({"name": "Tesla K80", "mem_total_mib": "11441"}, 0))


def test_the_cause_is_not_what_it_left_behind() -> None:
    log = "".join(
        f"[ 1.{n}] NVRM: Xid (PCI:0000:3b:00): {code}, pid={n}, name=x, Ch 1\n"
        for n, code in enumerate((45, 45, 31, 154))
    )
    cause = first_cause(gpu_events(log))
    assert cause is not None
    assert (cause.code, cause.line, cause.pid) == (31, 3, 2)
    alone = first_cause(gpu_events(log.split("\n")[0]))
    assert alone is not None
    assert alone.code == 45


def test_scary_lines_are_no_events() -> None:
    assert not gpu_events(
        "nvidia-peermem ERROR detected invalid context\nnvidia: loading out-of-tree module\n"
    )
    assert not gpu_events("audit: comm=Xid (PCI:0000:3b:00): 79\n")


CELLS = {
    "index": st.integers(0, 99).map(str),
    "utilization.gpu": st.integers(0, 100).map(lambda n: f"{n} %"),
    "memory.used": st.integers(0, 200_000).map(lambda n: f"{n} MiB"),
    "temperature.gpu": st.integers(0, 120).map(str),
    "power.draw": st.decimals(0, 1500, places=2).map(lambda n: f"{n} W"),
    "name": st.sampled_from(["NVIDIA H100 80GB HBM3", "Graphics Device, Rev. 2", "Tesla K80"]),
}
FIELD = {
    "utilization.gpu": "util_pct",
    "memory.used": "mem_used_mib",
    "temperature.gpu": "temp_c",
    "power.draw": "power_w",
}


@given(st.data(), st.permutations(sorted(CELLS)), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_csv_comes_back_whatever_the_columns(
    data: st.DataObject, order: list[str], crlf: bool, motd: bool
) -> None:
    rows = [{name: data.draw(CELLS[name]) for name in order} for _ in range(data.draw(st.integers(1, 4)))]
    for number, row in enumerate(rows):
        row["index"] = str(number)
    text = ("\r\n" if crlf else "\n").join(", ".join(row[name] for name in order) for row in rows)
    banner = "+----+\n| Hi, all, of, you, here, now |\n" if motd else ""
    parsed = parse_output(QUERY.format(",".join(order)), (banner + text).encode(), b"", 0).gpu
    assert parsed is not None and parsed.gpus is not None
    assert [gpu.name for gpu in parsed.gpus] == [row["name"] for row in rows]
    for column, field in FIELD.items():
        told = [getattr(gpu, field) for gpu in parsed.gpus]
        assert told == [float(row[column].split()[0]) for row in rows]


def texts(value: object, name: str = "") -> Iterator[str]:
    """Every string in a result that may be drawn."""
    if name in EXACT:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for inner in value:
            yield from texts(inner)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from texts(getattr(value, field.name), field.name)


def assert_fit_to_draw(parsed: Parsed) -> None:
    for text in texts(parsed):
        assert text.isprintable(), repr(text)


@given(st.sampled_from(COMMANDS), st.binary(max_size=400), st.binary(max_size=80), st.integers(-20, 300))
@settings(max_examples=250, deadline=None)
def test_arbitrary_bytes_never_raise(command: str, stdout: bytes, stderr: bytes, exit_status: int) -> None:
    assert_fit_to_draw(parse_output(command, stdout, stderr, exit_status))


ALL = list(read_cases(Path(__file__).parents[1] / "cases"))
SEEDS = [case for case in ALL if case.kind in {"A", "B"} and case.cmd]


@given(
    st.sampled_from(SEEDS),
    st.lists(
        st.tuples(
            st.floats(0, 1),
            st.integers(0, 6),
            st.binary(max_size=6) | st.sampled_from([b"\x1b[2J", b"\n", b"|"]),
        ),
        max_size=6,
    ),
)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_outputs_never_raise(case: Case, edits: list[tuple[float, int, bytes]]) -> None:
    text = bytearray(case.stdout)
    for place, cut, new in edits:
        at = int(place * len(text))
        text[at : at + cut] = new
    assert case.cmd is not None
    assert_fit_to_draw(parse_output(case.cmd, bytes(text), case.stderr, case.rc))


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_command_line_is_taken_apart(line: str) -> None:
    read_command(line)


HOSTILE = (
    " " * 4096, "1 " * 2048, "a" * 4096, "- " * 2048, "|" + " " * 4000 + "|", "x on /" * 600, "[" * 4096,
    "{" * 4096, ",[" * 2000, "1% " * 1300, "x 1 1 1 1% " * 300, " : " * 1300, "\t" * 4096, "1G " * 1300,
    "NVRM: Xid (PCI:0000:01:00): 13, " + "name=x " * 500,
    "|  0 " + "a " * 2000 + "| 00000000:01:00.0 Off | 0 |",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_lines_take_bounded_time(command: str) -> None:
    started = time.perf_counter()
    for line in HOSTILE:
        parse_output(command, f"{line}\n{line}\n".encode(), b"", 0)
    assert time.perf_counter() - started < 5  # a quadratic pattern takes minutes


def test_deep_documents_do_not_overflow_the_stack() -> None:
    deep = 100_000
    for command, text in (
        ("nvidia-smi -q -x", "<nvidia_smi_log><gpu id='x'>" + "<a>" * 5000 + "</a>" * 5000 + "</gpu>"),
        ("amd-smi metric --json", "[" * deep),
        ("amd-smi metric --json", '{"gpu_data": [{"a": ' + '{"a": ' * 900 + "1" + "}" * 900 + "}]}"),
        ("findmnt -J", '{"filesystems": ' + "[" * deep),
    ):
        parse_output(command, text.encode(), b"", 0)


def test_declared_entities_are_refused() -> None:
    bomb = (
        '<!DOCTYPE a [<!ENTITY b "c">]><nvidia_smi_log><driver_version>&b;</driver_version></nvidia_smi_log>'
    )
    report = parse_output("nvidia-smi -q -x", bomb.encode(), b"", 0).gpu
    assert report is not None
    assert report.driver is None
    assert report.gpus is None


def test_decoding_keeps_names_that_are_no_text() -> None:
    assert decode(b"a\xff").encode("utf-8", "surrogateescape") == b"a\xff"
    assert decode(b"\x1b[01;31mXid\x1b[m\x1b[K 79") == "Xid 79"

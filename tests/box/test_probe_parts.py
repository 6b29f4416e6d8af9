"""The pure parts of the probe: frames, choice of mounts, cards, cgroups, runs to adopt, JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.box.probe_messages import LINUX, said
from tui.box.parsers.mounts import read_mounts
from tui.box.probe import origin, system
from tui.box.probe.as_json import telemetry_json, telemetry_plain
from tui.box.probe.cards import read_cards, read_xid
from tui.box.probe.choose import absolute, choose, mount_of
from tui.box.probe.disks import Asked, read_filesystems
from tui.box.probe.frame import Frames, Garbled, Message, batch, sections
from tui.box.probe.memo import Memo
from tui.box.probe.plan import ProbeRequest, make_plan
from tui.box.probe.script import Entry, configure, source
from tui.box.probe.system import Identity, Moment, clock_offset, linux_identity, read_cpu, read_memory
from tui.box.probe.watched import find_arguments, life_of, matches, read_checkpoints, read_end
from tui.model.run import RunSpec
from tui.model.telemetry import GpuProcess, Telemetry
from tui.model.text import SafeText

# Frames


def framed(nonce: str, number: int, body: bytes) -> bytes:
    return b"@rgt %s %d %d\n%s@end %s %d\n" % (
        nonce.encode(),
        number,
        len(body),
        body,
        nonce.encode(),
        number,
    )


@given(st.binary(max_size=200), st.lists(st.binary(max_size=300), max_size=4), st.data())
def test_answers_come_whole_however_the_bytes_are_cut(
    noise: bytes, texts: list[bytes], data: st.DataObject
) -> None:
    bodies = [b"# one %d\n%s\n" % (len(text), text) for text in texts]
    stream = noise + b"\n" + b"".join(framed("ab", number, body) for number, body in enumerate(bodies))
    frames, found = Frames("ab"), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += frames.feed(stream[:size])
        stream = stream[size:]
    assert [(answer.tick, answer.sections["one"]) for answer in found] == list(enumerate(texts))


def test_another_ones_answer_is_noise() -> None:
    frames = Frames("mine")
    answers = frames.feed(framed("other", 1, b"") + framed("mine", 2, b""))
    assert [answer.tick for answer in answers] == [2]


def test_a_source_keeps_the_lines_and_columns_of_what_was_printed() -> None:
    made = origin.source("df -P", 5.0, b"Filesystem  1024-blocks\r\n\n/dev/sda1            7 \n\x1b[31mred\n")
    assert made.raw == ("Filesystem  1024-blocks", "/dev/sda1            7", "red")
    assert sum(map(len, origin.source("x", 1.0, "line\n" * 5000).raw)) <= origin.RAW_LIMIT
    assert origin.source("x", 1.0).raw == ()


@pytest.mark.parametrize("body", [b"x", b"# a 5\nabc\n", b"# a 3\nabcd\n", b"# a b\n\n"])
def test_a_body_that_does_not_fit_its_lengths(body: bytes) -> None:
    with pytest.raises(Garbled):
        sections(body)


def test_messages_of_children_that_are_late_stuck_or_spoofing() -> None:
    raw = (
        b"kab m1 10 20\na m1.b 0 24\nz m2 forged\nkab m9 1 1\nx\n\nzab m1\n"
        b"kab m2 11 21\nsab m3\ndab m4\nz m2\nkff m5 1 1\nkab r1 12 22\na r1.l 0 100\ncut"
    )
    told = batch(raw, "ab")
    assert told.messages["m1.b"].text == b"z m2 forged\nkab m9 1 1\nx"[:24]
    assert told.late == {"m2", "r1"}
    assert told.stuck == {"m3"}
    assert told.denied == {"m4"}
    assert "r1.l" not in told.messages


def test_any_text_can_be_asked_for() -> None:
    request = configure([Entry("r", "r1", ("a\n\nb\udcff", "", "*.pt"))])
    assert request == b"c\ne r r1\n3\na\n\nb\xff\n0\n1\n*.pt\n"


def test_the_program_is_small_and_evaluates_nothing() -> None:
    text = source()
    assert len(text) < 24_000
    assert "eval" not in text
    assert "<<" not in text  # some shells keep here-documents in files
    assert "#!" not in text


# Mounts

CONTAINER = r"""overlay / overlay rw,lowerdir=/var/lib/docker/overlay2/x 0 0
proc /proc proc rw 0 0
tmpfs /dev tmpfs rw 0 0
shm /dev/shm tmpfs rw,size=65536k 0 0
/dev/sdb1 /etc/hosts ext4 rw 0 0
/dev/sdb1 /usr/bin/nvidia-smi ext4 ro 0 0
cgroup /sys/fs/cgroup cgroup2 ro 0 0
tmpfs /run/lock tmpfs rw 0 0
/dev/md127 /root/autodl-tmp xfs rw,prjquota 0 0
10.0.0.9:/share /root/my\040data nfs4 rw 0 0
JuiceFS:fs /root/autodl-fs fuse.juicefs rw 0 0
/dev/loop3 /snap/core squashfs ro 0 0
auto /net autofs rw 0 0
"""


def test_mounts_that_matter_in_a_container() -> None:
    mounts = read_mounts(CONTAINER).mounts or ()
    chosen = [mount.path for mount in choose(mounts, ["/root/my data/run"], "/root")]
    assert chosen == ["/root/my data", "/", "/dev/shm", "/root/autodl-tmp", "/root/autodl-fs"]


def test_a_wanted_mount_is_read_even_where_none_is_looked_for() -> None:
    mounts = read_mounts("/dev/sda / ext4 rw 0 0\n/dev/sdb /var/lib/docker ext4 rw 0 0\n").mounts or ()
    assert [one.path for one in choose(mounts, [], "/root")] == ["/"]
    assert [one.path for one in choose(mounts, ["/var/lib/docker/x"], "/root")] == ["/var/lib/docker", "/"]


def test_a_mount_that_only_df_knows_is_asked_for_again_and_again() -> None:
    """One that the table lacks must not be taken for the root it lies on by its spelling."""
    memo = Memo(hello={"mounts": b"/dev/sda / ext4 rw 0 0\n"})
    identity = Identity(SafeText("Linux"), home="/root")
    request = ProbeRequest(mounts=("/root/data/x", "/root/elsewhere"))
    for _ in range(3):
        asked = {disk.path for disk in make_plan(request, identity, memo).disks}
        assert "/root/data/x" in asked
        memo.resolved |= {"/root/data/x": "/root/data", "/root/elsewhere": "/"}
    assert "/root/elsewhere" not in asked


def test_no_more_mounts_than_can_be_read() -> None:
    text = "/dev/sda / ext4 rw 0 0\n" + "".join(f"/dev/sd{n} /vol{n} ext4 rw 0 0\n" for n in range(99))
    chosen = choose(read_mounts(text).mounts or (), ["/vol98/x"], "/root")
    assert len(chosen) == 24
    assert chosen[0].path == "/vol98"


def test_paths_start_in_the_login_folder() -> None:
    assert absolute("~/a", "/root") == "/root/a"
    assert absolute("a/../b", "/root") == "/root/b"
    assert absolute("/x", "/root") == "/x"
    mounts = read_mounts(CONTAINER).mounts or ()
    below = mount_of("/root/autodl-tmpfoo", mounts)
    assert below is not None
    assert below.path == "/"


DF = "Filesystem 1024-blocks Used Available Capacity Mounted on\n{} 1000 400 600 40% {}\n"
DFI = "Filesystem Inodes IUsed IFree IUse% Mounted on\n{} 100 100 0 100% {}\n"


def test_each_mount_speaks_for_itself() -> None:
    mounts = {mount.path: mount for mount in read_mounts(CONTAINER).mounts or ()}
    asked = [
        Asked(key, path, mounts[path])
        for key, path in [
            ("m1", "/"),
            ("m2", "/root/autodl-tmp"),
            ("m3", "/root/my data"),
            ("m4", "/dev/shm"),
        ]
    ]
    told = said(
        m1__b=DF.format("overlay", "/"),
        m1__i=DFI.format("overlay", "/"),
        m4__b="1|df: /dev/shm: Stale file handle",
    )
    told = replace(told, late=frozenset({"m2"}), denied=frozenset({"m3"}))
    reading = read_filesystems(asked, told, 5.0)
    root, late, denied, stale = reading.value or ()
    assert (root.size_bytes, root.used_bytes, root.inodes_used, root.inode_use_pct) == (
        1024000,
        409600,
        100,
        100,
    )
    assert (late.error, late.size_bytes, late.fstype) == ("mount does not answer", None, "xfs")
    assert "two other mounts" in denied.error
    assert "Stale file handle" in stale.error
    assert reading.source is not None
    assert reading.source.taken_at == 5.0


def test_statfs_where_df_is_busybox() -> None:
    asked = [Asked("m1", "/data"), Asked("m2", "/btrfs")]
    told = said(m1__s="4096 1000 200 100 500 0", m2__s="4096 10 5 5 0 0")
    one, two = read_filesystems(asked, told, 0.0).value or ()
    assert (one.size_bytes, one.used_bytes, one.avail_bytes) == (4096000, 800 * 4096, 409600)
    assert one.use_pct == 89
    assert (one.inodes, one.inodes_used, one.inode_use_pct) == (500, 500, 100)
    assert (two.inodes, two.inodes_used, two.inode_use_pct) == (None, None, None)


def test_a_disk_bound_to_two_places_is_shown_once() -> None:
    text = (
        "/dev/sda /a ext4 rw 0 0\n/dev/sda /b ext4 rw 0 0\ntmpfs /t1 tmpfs rw 0 0\ntmpfs /t2 tmpfs rw 0 0\n"
    )
    mounts = read_mounts(text).mounts or ()
    asked = [Asked(f"m{at}", mount.path, mount) for at, mount in enumerate(mounts)]
    told = said(**{f"m{at}__b": DF.format(one.device, one.path) for at, one in enumerate(mounts)})
    assert [one.mount for one in read_filesystems(asked, told, 0.0).value or ()] == ["/a", "/t1", "/t2"]


# Cards

FULL = (
    "index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,uuid,pci.bus_id,power.limit,"
    "clocks.sm,mig.mode.current,ecc.errors.uncorrected.volatile.total,clocks_event_reasons.active\n"
)


def test_cards_and_their_processes() -> None:
    row = (
        "0, NVIDIA H100, 97, 70000, 81559, 61, 650.12, GPU-aa, 00000000:1B:00.0, 700.00, 1980, Disabled, 0, "
        "0x0000000000000020\n"
    )
    cards = read_cards(said(gpu__cards=FULL + row, gpu__apps="77, python, 69000, GPU-aa\n"), 1.0)
    assert cards.gpus.value is not None
    assert cards.gpus.value[0].throttle == ("sw_thermal_slowdown",)
    assert cards.processes.value == (GpuProcess(77, SafeText("GPU-aa"), 69000.0, SafeText("python")),)


def test_a_stand_in_that_prints_the_usual_columns_whatever_is_asked() -> None:
    cards = read_cards(said(gpu__cards=FULL + "0, Fake GPU, 12, 100, 1000, 40, 50.0\n"), 1.0)
    assert cards.gpus.value is not None
    gpu = cards.gpus.value[0]
    assert (gpu.util_pct, gpu.mem_total_mib, gpu.power_w, gpu.uuid) == (12, 1000, 50, None)


@pytest.mark.parametrize(
    ("texts", "value", "why"),
    [
        ({"gpu__none": "127|"}, (), ""),
        ({"gpu__none": "127|/dev/nvidia0"}, None, "/dev/nvidia0"),
        ({"gpu__cards": f"6|{FULL}No devices were found\n"}, (), ""),
        ({"gpu__cards": f"18|{FULL}Driver/library version mismatch\n"}, None, "mismatch"),
        ({"gpu__cards": f"137|{FULL}"}, None, "did not answer"),
        ({"gpu__cards": f"0|{FULL}"}, None, ""),
        ({}, None, "does not answer"),
        ({"gpu__none": "127|", "gpu__kfd": "127|/dev/kfd"}, None, "/dev/kfd"),
        ({"gpu__none": "127|", "gpu__rocm": "1|Driver not initialized (amdgpu not found)"}, None, "Driver"),
    ],
)
def test_none_is_said_only_where_none_is(texts: dict[str, str], value: object, why: str) -> None:
    cards = read_cards(said(**texts), 1.0)
    assert cards.gpus.value == value
    assert why in cards.gpus.reason
    assert cards.processes.known == (value == ())


def test_cards_of_amd_beside_none_of_nvidia() -> None:
    text = '{"card0": {"GPU use (%)": "97", "VRAM Total Memory (B)": "68702699520", "Card Series": "MI250"}}'
    cards = read_cards(said(gpu__none="127|", gpu__rocm=text), 1.0)
    assert cards.gpus.value is not None
    assert (cards.gpus.value[0].vendor, cards.gpus.value[0].util_pct) == ("amd", 97)
    assert cards.processes.value is None


def test_kernel_lines_about_cards_only() -> None:
    xid = "[9.1] NVRM: Xid (PCI:0000:52:00): 79, pid=1, GPU has fallen off the bus."
    reading = read_xid(said(xid=f"dmesg\n[1.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n{xid}"), 1.0)
    assert reading.value == (xid,)
    denied = read_xid(said(xid="1|dmesg\ndmesg: read kernel buffer failed: Operation not permitted"), 1.0)
    assert denied.value is None
    assert "not permitted" in denied.reason


# Memory, CPU, clock


def moment(**texts: str) -> Moment:
    return Moment(100.0, 100.4, 0.2, {name: text.encode() for name, text in texts.items()})


MEMINFO = "MemTotal: 1000000 kB\nMemAvailable: 600000 kB\n"


def test_memory_of_both_cgroup_versions() -> None:
    two = (
        "version 2\nat /sys/fs/cgroup\nmemory.max 500000000\nmemory.current 300000000\n"
        "inactive_file 100000000\noom_kill 3\n"
    )
    memory = read_memory(LINUX, moment(memory=two, meminfo=MEMINFO), None).value
    assert memory is not None
    assert (memory.limit_bytes, memory.used_bytes, memory.oom_kills) == (500000000, 200000000, 3)
    one = (
        "version 1\nat /sys/fs/cgroup/memory\nmemory.limit_in_bytes 9223372036854771712\n"
        "memory.usage_in_bytes 300000000\nhierarchical_memory_limit 400000000\ntotal_inactive_file 50000000\n"
        "oom_kill 1\n"
    )
    memory = read_memory(LINUX, moment(memory=one, meminfo=MEMINFO), None).value
    assert memory is not None
    assert (memory.limit_bytes, memory.used_bytes, memory.oom_kills) == (400000000, 250000000, 1)
    memory = read_memory(LINUX, moment(memory="version 0\n", meminfo=MEMINFO), None).value
    assert memory is not None
    assert (memory.limit_bytes, memory.used_bytes, memory.oom_kills) == (None, None, None)
    assert memory.host_total_bytes == 1000000 * 1024


@given(
    st.sampled_from(["memory.current", "memory.usage_in_bytes", "memory.max"]),
    st.sampled_from(["inactive_file", "total_inactive_file", "nr_throttled"]),
    st.lists(
        st.sampled_from(["memory.max 90", "oom_kill 3", "hierarchical_memory_limit 70", "x", "", "version 2"])
    ),
    st.tuples(*[st.integers(0, 10**12)] * 4),
    st.booleans(),
)
def test_memory_is_the_same_whether_its_steady_part_is_remembered_or_not(
    use: str, cache: str, others: list[str], figures: tuple[int, int, int, int], twice: bool
) -> None:
    used, inactive, total, available = figures
    lines = ["version 1", *others[:2], f"{use} {used}", *others[2:], f"{cache} {inactive}", ""]
    group = "\n".join([*lines, f"{cache} 7\n"] if twice else lines).encode()
    host = b"MemTotal: %d kB\nMemAvailable: %d kB\n" % (total, available)
    assert system._memory(group, host, 5, 4) == system._whole_memory(group, host, 5, 4)


def test_cpu_quota_of_both_versions() -> None:
    two = "version 2\nat /sys/fs/cgroup\ncpu.max 1050000 100000\nnr_throttled 7\n"
    cpu = read_cpu(replace(LINUX, cores=64), moment(cpu=two, load="9.50 1.00 1.00 1/2 3")).value
    assert cpu is not None
    assert (cpu.quota_cores, cpu.cores_visible, cpu.throttled_periods, cpu.load1) == (10.5, 64, 7, 9.5)
    one = "version 1\nat /x\ncpu.cfs_quota_us -1\ncpu.cfs_period_us 100000\n"
    cpu = read_cpu(LINUX, moment(cpu=one)).value
    assert cpu is not None
    assert (cpu.quota_cores, cpu.throttled_periods, cpu.load1) == (None, None, None)


def test_the_clock_is_compared_at_half_a_round_trip() -> None:
    sent, taken = 1_700_000_000.0, 1_700_000_001.0
    asked = Moment(sent, taken, 0.6, {"date": b"1700000100.200000000\n"})
    assert clock_offset(asked) == pytest.approx(100.0, abs=0.01)
    whole = Moment(sent, sent, 0.0, {"date": b"1700000000.%N\n"})
    assert clock_offset(whole) == pytest.approx(0.5)
    assert clock_offset(Moment(sent, taken, 0.0, {"date": b"date: bad"})) is None


def test_a_container_is_younger_than_its_host() -> None:
    stat = "1 (sh) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0"
    raw = f"stat {stat.format(1_000_000)}\nbtime 1700000000\ntick 100\npage 4096\ncpus 0-3,8\n"
    identity = linux_identity({"os": b"Linux\n", "who": b"1000 me\n/home/me", "identity": raw.encode()})
    assert identity.first_process_at == 1_700_010_000
    assert (identity.user, identity.root, identity.home, identity.cores) == ("me", False, "/home/me", 5)


def test_a_box_that_hides_processes_proves_no_death() -> None:
    spec = RunSpec("r", "b", pid=5)
    assert life_of(spec, {5: "-"}, LINUX, {}, None).alive is False
    hiding = replace(LINUX, hides=True)
    assert life_of(spec, {5: "-"}, hiding, {}, None).alive is None
    assert "hides" in life_of(spec, {5: "-"}, hiding, {}, None).why
    mounts = b"proc /proc proc rw,hidepid=2 0 0\n"
    assert linux_identity({"who": b"1000 me\n/", "mounts": mounts}).hides
    assert not linux_identity({"who": b"0 root\n/", "mounts": mounts}).hides


# Globs


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("/a/**/*.pt", "/a/x.pt", True),
        ("/a/**/*.pt", "/a/b/c/x.pt", True),
        ("/a/**/ck/*.pt", "/a/b/ck/x.pt", True),
        ("/a/**/ck/*.pt", "/a/bck/x.pt", False),
        ("/a/*/**/x[0-9].pt", "/a/b/x5.pt", True),
        ("/a/*/**/x[!0-9].pt", "/a/b/x5.pt", False),
        ("**/last.ckpt", "./logs/v0/last.ckpt", True),
        ("/a/**/x[z-a].pt", "/a/anything", True),
    ],
)
def test_two_stars_cross_folders(pattern: str, path: str, is_match: bool) -> None:
    assert matches(pattern, path) is is_match


def test_what_find_is_asked() -> None:
    assert find_arguments("/a/b/**/*.pt") == ("/a/b", "/a/b/*.pt")
    assert find_arguments("**/x.pt") == (".", "./*x.pt")
    assert find_arguments("-runs/**/x.pt") == ("./-runs", "./-runs/*x.pt")
    assert find_arguments("/**/x.pt") == ("/", "/*x.pt")


# JSON


def test_json_says_null_for_what_is_not_known() -> None:
    record = telemetry_json(Telemetry(12.5))
    assert json.loads(json.dumps(record)) == record
    assert record["taken_at"] == 12.5
    assert record["gpus"] is None
    assert record["gpu_error"] == "not probed yet"
    assert record["filesystems"] is None
    assert record["memory"] is None
    assert "n/a" in telemetry_plain(Telemetry(12.5))


def test_json_of_a_box() -> None:
    cards = read_cards(said(gpu__cards=FULL + "0, Fake, 12, 100, 1000, 40, [N/A]\n", gpu__apps=""), 1.0)
    disks = read_filesystems([Asked("m1", "/")], said(m1__b=DF.format("/dev/sda", "/")), 1.0)
    telemetry = Telemetry(1.0, gpus=cards.gpus, gpu_processes=cards.processes, filesystems=disks)
    record = telemetry_json(telemetry)
    gpus, filesystems = record["gpus"], record["filesystems"]
    assert isinstance(gpus, list)
    assert isinstance(filesystems, list)
    assert record["gpu_error"] is None
    assert {
        "index": 0,
        "name": "Fake",
        "util_pct": 12.0,
        "mem_used_mib": 100.0,
        "power_w": None,
    }.items() <= gpus[0].items()
    wanted = {
        "mount": "/",
        "source": "/dev/sda",
        "fstype": None,
        "size_bytes": 1024000,
        "inodes": None,
        "use_pct": 40.0,
    }
    assert wanted.items() <= filesystems[0].items()
    assert json.dumps(record)
    assert "gpu 0 Fake util 12% mem 100/1000 MiB temp 40 °C power n/a" in telemetry_plain(telemetry)
    assert "disk / 400.0 KiB/1000.0 KiB 40% inodes n/a" in telemetry_plain(telemetry)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("reason finished\nstatus 0\nsignal \n", "finished"),
        ("reason failed\nstatus 1\nsignal \n", "failed, status 1"),
        ("reason stopped\nstatus 143\nsignal TERM\n", "stopped, status 143, SIGTERM"),
        ("reason \x1b]0;title\x07odd\n", "odd"),
        ("status 0\n", None),
        ("", None),
    ],
)
def test_the_recorded_end_in_words(text: str, words: str | None) -> None:
    assert read_end(Message("r.e", "0", text.encode())) == words


def test_checkpoints_of_one_second_come_in_the_order_of_their_numbers() -> None:
    names = ["ckpt-9.pt", "ckpt-25.pt", "ckpt-0023.pt", "old-99.pt"]
    times = [50, 50, 50, 49]
    rows = [
        f"{at} 10 {n} regular file//r/{name}" for n, (at, name) in enumerate(zip(times, names, strict=True))
    ]
    text = "\n".join([*rows, "4"]).encode()
    shown, count = read_checkpoints("/r/*", Message("r.c", "0", text), 100.0)
    assert [one.path for one in shown.value or ()] == [
        "/r/ckpt-25.pt",
        "/r/ckpt-0023.pt",
        "/r/ckpt-9.pt",
        "/r/old-99.pt",
    ]
    assert count == 4

"""The facts that cost money or data, platform by platform, each with the reason why it has to stand.

A row that fails is a question to the vendor's page, not to this table: change both or neither.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tui.box import address
from tui.fleet import profiles
from tui.fleet.paths import shipped
from tui.fleet.platform_facts import next_clock
from tui.fleet.profile_schema import Action, Charge, Clock, Facts, Tier
from tui.model.instance import Instance
from tui.platforms import credentials

LOADED = profiles.load(shipped("profiles"))
EVERY = (
    "autodl", "colab", "featurize", "gpushare", "kaggle", "kubernetes", "lambda", "lanrui", "local",
    "matpool", "paperspace", "runpod", "slurm", "ssh", "vastai",
)  # fmt: skip


def facts(platform: str) -> Facts:
    return LOADED.by_id[platform].facts


def action(platform: str, verb: str) -> Action:
    found = facts(platform).action(verb)
    assert found is not None, f"{platform} has no action {verb}"
    return found


def tier(platform: str, name: str) -> Tier:
    return next(one for one in facts(platform).tiers if one.id == name)


def clock(platform: str, name: str) -> Clock:
    return next(one for one in facts(platform).clocks if one.id == name)


def test_all_fifteen_are_there_and_in_order() -> None:
    assert [problem.line for problem in LOADED.problems] == []
    assert tuple(sorted(LOADED.by_id)) == EVERY


METER = [
    # platform     verb          may be undone  because
    ("autodl",     "stop",       True,  "关机 keeps every disk: the exception among rentals"),
    ("colab",      "destroy",    False, "a runtime is assigned or gone; units count while it is assigned"),
    ("featurize",  "destroy",    False, "归还 is all there is"),
    ("gpushare",   "stop",       True,  "关机 ends the GPU's bill, and resets the system disk"),
    ("kaggle",     "stop",       False, "a cancelled version does not go on"),
    ("kubernetes", "scale-down", True,  "nodes bill, pods do not"),
    ("lambda",     "destroy",    False, "there is no stop; an in-guest shutdown bills on"),
    ("lanrui",     "stop",       True,  "the workspace; its 数据盘 goes on billing"),
    ("local",      None,         None,  "nobody rents it out"),
    ("matpool",    "destroy",    False, "停止并释放 is one step; nothing can be kept stopped"),
    ("paperspace", "stop",       True,  "compute ends; disk, address and snapshots go on"),
    ("runpod",     "destroy",    False, "a stopped pod's volume disk costs twice as much"),
    ("slurm",      "destroy",    False, "scancel ends the allocation"),
    ("ssh",        None,         None,  "only the provider knows; powering off proves nothing"),
    ("vastai",     "destroy",    False, "a stopped instance bills its disk for ever"),
]  # fmt: skip


@pytest.mark.parametrize(("platform", "verb", "undo", "because"), METER, ids=lambda v: str(v)[:12])
def test_what_ends_the_machines_bill(
    platform: str, verb: str | None, undo: bool | None, because: str
) -> None:
    assert facts(platform).meter_stop == verb, because
    if verb is not None:
        assert action(platform, verb).reversible is undo, because


def test_the_meter_table_names_every_platform() -> None:
    assert tuple(row[0] for row in METER) == EVERY


TAKES = [
    # platform     action              level  destroys                      keeps
    ("autodl",     "stop",               2, [],                             ["system", "data", "shared"]),
    ("autodl",     "destroy",            3, ["system", "data"],             ["shared"]),
    ("autodl",     "start-without-gpu",  2, [],                             ["system", "data", "shared"]),
    ("runpod",     "stop",               3, ["container"],                  ["volume", "network"]),
    ("runpod",     "destroy",            3, ["container", "volume"],        ["network"]),
    ("vastai",     "stop",               2, [],                             ["container", "volume"]),
    ("vastai",     "destroy",            3, ["container"],                  ["volume"]),
    ("vastai",     "delete-volume",      3, ["volume"],                     []),
    ("lambda",     "destroy",            3, ["local"],                      ["filesystem"]),
    ("lambda",     "restart",            2, [],                             ["local", "filesystem"]),
    ("lambda",     "delete-filesystem",  3, ["filesystem"],                 []),
    ("paperspace", "stop",               2, [],                             ["disk", "storage", "notebooks"]),
    ("paperspace", "destroy",            3, ["disk", "notebooks"],          ["storage"]),
    ("gpushare",   "stop",               3, ["system", "tmp"],              ["netdisk", "nas"]),
    ("gpushare",   "destroy",            3, ["system", "tmp"],              ["netdisk", "nas"]),
    ("matpool",    "destroy",            3, ["system"],                     ["netdisk"]),
    ("matpool",    "save-and-release",   3, ["system"],                     ["netdisk"]),
    ("featurize",  "destroy",            3, ["system", "data"],             ["work"]),
    ("lanrui",     "stop",               3, ["system"],                     ["datadisk", "netdisk"]),
    ("lanrui",     "destroy",            3, ["system"],                     ["netdisk"]),
    ("lanrui",     "delete-datadisk",    3, ["datadisk"],                   []),
    ("slurm",      "destroy",            3, ["tmp"],                        ["home", "scratch"]),
    ("slurm",      "requeue",            3, ["tmp"],                        ["home", "scratch"]),
    ("kubernetes", "stop",               3, ["pod"],                        []),
    ("kubernetes", "destroy",            3, ["pod"],                        []),
    ("kubernetes", "delete-pvc",         3, ["pvc"],                        []),
    ("kubernetes", "scale-down",         3, ["pod"],                        []),
    ("colab",      "destroy",            3, ["vm"],                         []),
    ("kaggle",     "stop",               3, ["temp"],                       []),
    ("kaggle",     "destroy",            3, ["working", "temp"],            []),
    ("ssh",        "stop",               3, [],                             []),
]  # fmt: skip


@pytest.mark.parametrize(("platform", "verb", "level", "destroys", "keeps"), TAKES)
def test_what_a_verb_takes_along(
    platform: str, verb: str, level: int, destroys: list[str], keeps: list[str]
) -> None:
    found = action(platform, verb)
    assert (found.level, found.destroys, found.keeps) == (level, destroys, keeps)


def test_every_verb_that_ends_something_is_in_that_table() -> None:
    listed = {(row[0], row[1]) for row in TAKES}
    ending = {
        (name, one.id)
        for name in EVERY
        for one in facts(name).actions
        if one.destroys or one.id in ("stop", "destroy")
    }
    assert ending <= listed


STILL_COSTS = [
    # platform     action      what goes on costing: amount, unit; None is "?" and never 0
    ("autodl",     "stop",     [("data disk beyond the free size", None, "GB and day"),
                                ("file storage beyond 20 GB", None, "GB and day")]),
    ("autodl",     "destroy",  [("file storage beyond 20 GB", None, "GB and day")]),
    ("runpod",     "stop",     [("volume disk while stopped", 0.20, "GB and month"),
                                ("network volume under 1 TB", 0.07, "GB and month")]),
    ("runpod",     "destroy",  [("network volume under 1 TB", 0.07, "GB and month")]),
    ("vastai",     "stop",     [("container disk while stopped", None, "GB and month"),
                                ("local volume", None, "GB and month"), ("traffic in and out", None, "GB")]),
    ("vastai",     "destroy",  [("local volume", None, "GB and month")]),
    ("lambda",     "destroy",  [("file system", 0.20, "GB and month")]),
    ("paperspace", "stop",     [("block storage", None, "hour"), ("static address", 0.0045, "hour"),
                                ("snapshots", 0.29, "GB and month"), ("shared drives", None, "month")]),
    ("paperspace", "destroy",  [("static address", 0.0045, "hour"), ("snapshots", 0.29, "GB and month"),
                                ("shared drives", None, "month")]),
    ("gpushare",   "stop",     [("network disk", None, "GB and hour"),
                                ("shared storage", 0.0007, "GB and hour")]),
    ("gpushare",   "destroy",  [("network disk", None, "GB and hour"),
                                ("shared storage", 0.0007, "GB and hour")]),
    ("matpool",    "destroy",  [("network disk beyond 5 GB", None, "GB and day")]),
    ("featurize",  "destroy",  [("cloud storage beyond 30 GB", None, "GB and day")]),
    ("lanrui",     "stop",     [("data disk", None, "hour"),
                                ("network disk beyond 10 GB", 0.15, "GB and month")]),
    ("lanrui",     "destroy",  [("data disk", None, "hour"),
                                ("network disk beyond 10 GB", 0.15, "GB and month")]),
    ("kubernetes", "stop",     [("nodes", None, "hour"), ("volumes", None, "GB and month")]),
    ("kubernetes", "destroy",  [("nodes", None, "hour"), ("volumes", None, "GB and month")]),
    ("kubernetes", "scale-down", [("volumes", None, "GB and month"), ("control plane", None, "hour")]),
    ("slurm",      "destroy",  []),
    ("colab",      "destroy",  []),
    ("kaggle",     "stop",     []),
]  # fmt: skip


@pytest.mark.parametrize(("platform", "verb", "charges"), STILL_COSTS)
def test_what_goes_on_billing(platform: str, verb: str, charges: list[tuple[str, float | None, str]]) -> None:
    assert [(one.what, one.amount, one.per) for one in action(platform, verb).keeps_billing] == charges


def test_no_price_is_zero() -> None:
    for name in EVERY:
        told = [charge for one in facts(name).tiers for charge in one.charges]
        told += [charge for one in facts(name).actions for charge in one.keeps_billing]
        told += [mode.price for mode in facts(name).cheap_modes if mode.price]
        assert all(charge.amount is None or charge.amount > 0 for charge in told)


SURVIVES = [
    # platform     tier          path                       stop       destroy    files
    ("autodl",     "system",     "/",                       "yes",     "no",      None),
    ("autodl",     "data",       "/root/autodl-tmp",        "yes",     "no",      None),
    ("autodl",     "shared",     "/root/autodl-fs",         "yes",     "yes",     200_000),
    ("runpod",     "container",  "/",                       "no",      "no",      None),
    ("runpod",     "volume",     "/workspace",              "yes",     "no",      None),
    ("runpod",     "network",    "/workspace",              "yes",     "yes",     None),
    ("vastai",     "container",  "/workspace",              "yes",     "no",      None),
    ("vastai",     "volume",     "/data",                   "yes",     "yes",     None),
    ("lambda",     "local",      "/",                       "n/a",     "no",      None),
    ("lambda",     "filesystem", "/lambda/nfs",             "n/a",     "yes",     None),
    ("paperspace", "disk",       "/",                       "yes",     "no",      None),
    ("paperspace", "storage",    "/storage",                "yes",     "yes",     None),
    ("paperspace", "notebooks",  "/notebooks",              "yes",     "no",      None),
    ("gpushare",   "system",     "/",                       "no",      "no",      None),
    ("gpushare",   "tmp",        "/hy-tmp",                 "no",      "no",      None),
    ("gpushare",   "netdisk",    "/hy-netdisk",             "yes",     "yes",     None),
    ("gpushare",   "nas",        "/hy-nas",                 "yes",     "yes",     None),
    ("matpool",    "system",     "/",                       "n/a",     "no",      None),
    ("matpool",    "netdisk",    "/mnt",                    "n/a",     "yes",     None),
    ("featurize",  "data",       "/home/featurize/data",    "n/a",     "no",      None),
    ("featurize",  "work",       "/home/featurize/work",    "n/a",     "yes",     None),
    ("featurize",  "cloud",      "/cloud",                  "n/a",     "depends", None),
    ("lanrui",     "system",     "/",                       "no",      "no",      None),
    ("lanrui",     "datadisk",   "/home/user/datadisk",     "yes",     "depends", None),
    ("lanrui",     "netdisk",    "/home/user/netdisk",      "yes",     "yes",     None),
    ("slurm",      "home",       "~",                       "n/a",     "yes",     None),
    ("slurm",      "scratch",    "/scratch",                "n/a",     "depends", None),
    ("slurm",      "tmp",        "/tmp",                    "n/a",     "no",      None),
    ("kubernetes", "pod",        "/",                       "no",      "no",      None),
    ("colab",      "vm",         "/content",                "n/a",     "no",      None),
    ("colab",      "drive",      "/content/drive",          "n/a",     "depends", None),
    ("kaggle",     "working",    "/kaggle/working",         "depends", "no",      None),
    ("kaggle",     "temp",       "/kaggle/temp",            "no",      "no",      None),
]  # fmt: skip


@pytest.mark.parametrize(("platform", "name", "path", "stop", "destroy", "files"), SURVIVES)
def test_what_outlives_a_stop_and_the_end(
    platform: str, name: str, path: str, stop: str, destroy: str, files: int | None
) -> None:
    found = tier(platform, name)
    assert path in found.paths
    assert (found.survives_stop, found.survives_destroy, found.inode_cap) == (stop, destroy, files)


OPTIONAL = [
    # platform     tier          where it is missing, its path is
    ("autodl",     "shared",     "a folder of the system disk: file storage is initialised per region"),
    ("gpushare",   "netdisk",    "a folder of the system disk: only marked machines have it"),
    ("gpushare",   "nas",        "a folder of the system disk: only some instances have it"),
    ("lambda",     "filesystem", "a folder of the local disk: it is attached at launch or never"),
    ("lanrui",     "datadisk",   "a folder of the system disk: it is bought apart"),
    ("lanrui",     "netdisk",    "a folder of the system disk"),
    ("matpool",    "netdisk",    "the empty /mnt of any Linux"),
    ("paperspace", "notebooks",  "a folder of the machine: notebooks have it"),
    ("paperspace", "storage",    "a folder of the machine: notebooks have it"),
    ("runpod",     "network",    "the container disk, or the volume disk"),
    ("runpod",     "volume",     "the container disk, or the network volume"),
    ("vastai",     "volume",     "a folder of the container: it is rented apart"),
]  # fmt: skip


def test_tiers_that_a_box_may_lack() -> None:
    """Such a path outlives the machine only where something is mounted there."""
    lacking = sorted((name, one.id) for name in EVERY for one in facts(name).tiers if one.optional)
    assert lacking == sorted(row[:2] for row in OPTIONAL)


CLOCKS = [
    # platform     clock                  trigger        hours destroys                 not knowing it costs
    ("autodl",     "auto-release",        "stopped",     360,  ["system", "data"],      "a parked box"),
    ("autodl",     "auto-release-tidal",  "stopped",     168,  ["system", "data"],      "潮汐算力"),
    ("autodl",     "low-balance",         "balance",     None, [],                      "欠费: stuck"),
    ("runpod",     "zero-balance",        "balance",     None, ["container", "volume"], "a weekend's work"),
    ("runpod",     "zero-balance-volume", "balance",     None, ["network"],             "the durable copy"),
    ("runpod",     "stale",               "stopped",     720,  ["container", "volume"], "a parked pod"),
    ("vastai",     "contract-end",        "ends_at",     0,    [],                      "a run past it"),
    ("vastai",     "contract-purge",      "ends_at",     48,   ["container"],           "copying it later"),
    ("vastai",     "zero-credit",         "balance",     None, ["container", "volume"], "volumes, too"),
    ("paperspace", "auto-shutdown",       "started",     None, [],                      "a long run"),
    ("paperspace", "notebook-limit",      "started",     6,    [],                      "a free notebook"),
    ("gpushare",   "tmp-wipe",            "stopped",     24,   ["tmp"],                 "the fast disk"),
    ("gpushare",   "auto-release",        "stopped",     240,  ["system", "tmp"],       "the box"),
    ("gpushare",   "arrears",             "balance",     None, ["nas"],                 "欠费: /hy-nas"),
    ("matpool",    "quick-save",          "stopped",     24,   ["system"],              "a snapshot"),
    ("featurize",  "zero-balance",        "balance",     None, ["system", "data"],      "欠费: the instance"),
    ("lanrui",     "auto-stop",           "started",     None, ["system"],              "定时停止"),
    ("slurm",      "time-limit",          "started",     None, ["tmp"],                 "local checkpoints"),
    ("slurm",      "forgotten",           "stopped",     0.083,[],                      "why a job ended"),
    ("slurm",      "scratch-purge",       "idle",        None, ["scratch"],             "untouched files"),
    ("kubernetes", "deadline",            "started",     None, ["pod"],                 "a long Job"),
    ("kubernetes", "ttl",                 "stopped",     None, ["pod"],                 "its logs"),
    ("colab",      "lifetime",            "created",     12,   ["vm"],                  "any run"),
    ("colab",      "idle",                "idle",        1.5,  ["vm"],                  "a pause"),
    ("colab",      "tab-closed",          "disconnected",None, ["vm"],                  "a closed laptop"),
    ("colab",      "units",               "balance",     None, ["vm"],                  "a paid runtime"),
    ("kaggle",     "session-limit",       "started",     9,    ["temp"],                "a long version"),
    ("kaggle",     "idle",                "idle",        1,    ["working", "temp"],     "an open session"),
    ("kaggle",     "quota",               "balance",     None, [],                      "the week"),
]  # fmt: skip


@pytest.mark.parametrize(("platform", "name", "trigger", "hours", "destroys", "costs"), CLOCKS)
def test_what_platforms_do_by_themselves(
    platform: str, name: str, trigger: str, hours: float | None, destroys: list[str], costs: str
) -> None:
    found = clock(platform, name)
    assert (found.trigger, found.after_h, found.destroys) == (trigger, hours, destroys), costs


def test_the_clock_table_is_complete() -> None:
    told = {(name, one.id) for name in EVERY for one in facts(name).clocks}
    assert told == {(row[0], row[1]) for row in CLOCKS}


@pytest.mark.parametrize(
    ("platform", "after_h", "destroys"),
    [
        ("autodl", 360.0, "system disk, data disk"),
        ("gpushare", 24.0, "local data disk"),  # the wipe comes before the release
        ("runpod", 720.0, "container disk, volume disk"),
        ("lambda", None, ""),
        ("lanrui", None, ""),
    ],
)
def test_the_next_clock_of_a_stopped_box(platform: str, after_h: float | None, destroys: str) -> None:
    box = Instance("b", platform, None, instance_id="pro-1a" if platform == "autodl" else None)
    found = next_clock(LOADED.plain()[platform], box, stopped_at=1000.0)
    if after_h is None:
        assert found is None
    else:
        assert found is not None and (found.at, found.destroys) == (1000.0 + after_h * 3600, destroys)


SPOT = [
    # platform     taken away?  seconds  because
    ("runpod",     True,   5,    "SIGTERM, then SIGKILL: too short for a checkpoint"),
    ("vastai",     True,   0,    "outbid is a pause without a signal"),
    ("slurm",      True,   30,   "KillWait"),
    ("kubernetes", True,   30,   "terminationGracePeriodSeconds"),
    ("colab",      True,   0,    "taken back without a word"),
    ("autodl",     False,  None, "on demand only"),
    ("gpushare",   False,  None, "on demand only"),
    ("matpool",    False,  None, "on demand only"),
    ("featurize",  False,  None, "on demand only"),
    ("lanrui",     False,  None, "on demand only"),
    ("lambda",     False,  None, "no spot tier; the state preempted exists all the same"),
    ("paperspace", False,  None, "the clock of auto-shutdown is the danger"),
    ("kaggle",     False,  None, "its time limit is the danger"),
]  # fmt: skip


@pytest.mark.parametrize(("platform", "available", "grace", "because"), SPOT)
def test_how_much_warning_there_is(platform: str, available: bool, grace: float | None, because: str) -> None:
    spot = facts(platform).spot
    assert (spot.available, spot.grace_s) == (available, grace), because


LEASH = [
    # platform     from inside?  because
    ("autodl",     True,  "shutdown is 关机"),
    ("runpod",     True,  "the pod's own key"),
    ("vastai",     True,  "CONTAINER_API_KEY opens this instance alone"),
    ("matpool",    True,  "a token of this node"),
    ("featurize",  True,  "a token of this box"),
    ("slurm",      True,  "scancel of the own job"),
    ("lambda",     False, "an in-guest shutdown bills on"),
    ("paperspace", False, "not told"),
    ("gpushare",   False, "not known"),
    ("lanrui",     False, "not known"),
    ("kubernetes", False, "nodes are not the pod's"),
    ("colab",      False, "the client stops it"),
    ("kaggle",     False, "the limit of the push"),
    ("ssh",        False, "only the provider knows"),
]  # fmt: skip


@pytest.mark.parametrize(("platform", "inside", "because"), LEASH)
def test_whether_a_box_can_end_its_own_bill(platform: str, inside: bool, because: str) -> None:
    leash = facts(platform).leash
    assert leash is not None and (leash.in_box is not None) == inside, because


def test_nothing_offers_to_power_off_what_bills_on_when_it_is_off() -> None:
    for name in ("lambda", "matpool", "featurize", "gpushare", "paperspace", "runpod", "vastai", "lanrui"):
        calls = [way.call for one in facts(name).actions for way in one.ways if way.kind == "in-box"]
        assert not [call for call in calls if call.split()[0] in ("shutdown", "poweroff", "sudo", "halt")]


@pytest.mark.parametrize("platform", ["autodl", "runpod", "vastai", "lambda", "paperspace"])
def test_the_end_is_proven_by_two_witnesses(platform: str) -> None:
    """An acknowledged call is not the end, and an empty list is not either: one asks for the id, and looks
    for it in the whole list."""
    proof = action(platform, "destroy").proof
    assert "404" in proof or "RecordNotFoundError" in proof
    assert "missing from" in proof


@pytest.mark.parametrize("platform", EVERY)
def test_what_a_newcomer_and_the_setup_need(platform: str) -> None:
    found, profile = facts(platform), LOADED.by_id[platform]
    if platform != "local":
        assert found.leash is not None and found.stock is not None
        assert found.naming.pattern == "<project>-<purpose>-<date>"
        assert found.credentials.where or found.kind in ("ssh", "local")
    if found.transport == "ssh" and platform != "local":
        assert found.network.keys is not None
    if found.network.behind_gfw:
        wanted = {key for mirror in found.network.mirrors for key in mirror.set}
        assert {"HF_ENDPOINT", "HF_HUB_DISABLE_XET", "PIP_INDEX_URL"} <= wanted
        assert all("PORT" not in value for mirror in found.network.mirrors for value in mirror.set.values())
    assert "What runs against you" in profile.sections[profiles.SURFACE] or platform in ("ssh", "local")
    assert profile.sections["TEARDOWN + BILLING"] and len(profile.gotchas) >= 2


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ("autodl", ["关机", "释放", "欠费", "无卡模式", "数据盘", "空闲GPU不足", "No space left", "inode"]),
        ("gpushare", ["关机", "释放", "欠费", "/hy-tmp", "空闲关机", "学术加速"]),
        ("matpool", ["保存环境", "快速保存", "停止并释放", "shutdown"]),
        ("featurize", ["归还", "欠费", "shutdown", "No space left"]),
        ("lanrui", ["数据盘", "停止", "定时停止"]),
        ("runpod", ["without GPUs", "No space left", "524", "410", "scp"]),
        ("vastai", ["Scheduling", "outbid", "Contract ended", "publickey"]),
        ("lambda", ["Alert", "insufficient-capacity"]),
        ("slurm", ["OUT_OF_MEMORY", "TIMEOUT", "Invalid job id", "quota"]),
        ("kubernetes", ["ImagePullBackOff", "Evicted", "Multi-Attach", "Terminating"]),
    ],
)
def test_gotchas_are_found_by_the_words_that_operators_see(platform: str, words: list[str]) -> None:
    text = "\n".join(f"{one.title}\n{one.text}" for one in LOADED.by_id[platform].gotchas)
    assert [word for word in words if word.lower() not in text.lower()] == []


HOSTS = [
    ("connect.westb.seetacloud.com", "autodl"), ("region-1.autodl.com", "autodl"),
    ("ssh.runpod.io", "runpod"), ("ssh4.vast.ai", "vastai"), ("i-1.gpushare.com", "gpushare"),
    ("hz-t2.matpool.com", "matpool"),
    ("hz.matgo.cn", "matpool"), ("workspace.featurize.cn", "featurize"),
    ("ssh.cn-zhongwei-1.lanrui-ai.com", "lanrui"), ("x.lanrui.co", "lanrui"), ("x.lambdalabs.com", "lambda"),
    ("a.paperspacegradient.com", "paperspace"),
]  # fmt: skip


@pytest.mark.parametrize(("host", "platform"), HOSTS)
def test_a_pasted_host_is_recognised_by_the_profile_and_by_the_paste(host: str, platform: str) -> None:
    claimed = [name for name in EVERY if any(fnmatchcase(host, pattern) for pattern in facts(name).hosts)]
    assert claimed == [platform] and address.platform_of(host) == platform


def test_every_platform_that_a_paste_can_name_has_a_profile_and_every_host_pattern_is_known_to_it() -> None:
    for name in EVERY:
        for pattern in facts(name).hosts:
            assert address.platform_of(pattern.replace("*", "x")) == name
    for user in ("paperspace", "featurize"):
        assert address.platform_of("203.0.113.5", user) in LOADED.by_id


def test_keys_are_looked_for_where_the_profiles_say() -> None:
    """The places of section credentials and those that the control planes read are one list."""
    for name, places in credentials.PLACES.items():
        told = facts(name).credentials
        assert set(places.variables) <= set(told.env)
        assert {one.replace("$XDG", "~/.config") for one, _ in places.files} <= set(told.files)


def test_gateways_that_cannot_copy_are_the_same_in_both_places() -> None:
    shell_only = {
        host
        for name in EVERY
        for flavour in facts(name).network.ssh
        if not flavour.scp
        for host in flavour.hosts
    }
    assert shell_only == {"ssh.runpod.io"}
    assert all(address.parse_address(f"ssh x@{host}").proxied for host in shell_only)


@pytest.mark.parametrize(
    ("charge", "gb", "hourly"),
    [
        (Charge(what="x", amount=73.0, currency="USD", per="month"), None, 0.1),
        (Charge(what="x", amount=0.2, currency="USD", per="GB and month"), 365.0, 0.1),
        (Charge(what="x", amount=0.0007, currency="CNY", per="GB and hour"), 100.0, 0.07),
        (Charge(what="x", amount=2.4, currency="CNY", per="day"), None, 0.1),
        (Charge(what="x", amount=0.2, currency="USD", per="GB and month"), None, None),
        (Charge(what="x", amount=None, currency="USD", per="hour"), None, None),
        (Charge(what="x", amount=0.1, currency="USD", per="GB"), 10.0, None),
    ],
)
def test_a_charge_by_the_hour_is_unknown_where_anything_is(
    charge: Charge, gb: float | None, hourly: float | None
) -> None:
    assert charge.hourly(gb) == (None if hourly is None else pytest.approx(hourly))

"""Profiles: the shipped facts that cost money or data, what holds files to the schema, the clocks."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.fleet import profiles
from tui.fleet.paths import shipped
from tui.fleet.platform_facts import next_clock
from tui.fleet.profile_schema import product_of
from tui.fleet.profiles import Profile
from tui.model.failure import Failure
from tui.model.instance import Instance

LOADED = profiles.load(shipped("profiles"))
TODAY = date(2026, 12, 1)
HOUR = 3600.0


def profile(name: str) -> Profile:
    return LOADED.by_id[name]


def test_the_shipped_profiles_are_whole() -> None:
    assert LOADED.problems == ()
    assert len(LOADED.by_id) == 15
    for one in LOADED.by_id.values():
        assert list(one.sections) == [profiles.SURFACE, *profiles.SECTIONS]
        assert one.gotchas and all(g.text for g in one.gotchas)
        assert list(profiles.stale(one, TODAY)) == []


def test_proxied_ssh_can_copy_nothing() -> None:
    proxied = next(f for f in profile("runpod").facts.network.ssh if f.id == "proxied")
    assert proxied.hosts == ["ssh.runpod.io"]
    assert not (proxied.exec or proxied.scp or proxied.sftp or proxied.forward)


def test_product_lines_by_instance_id() -> None:
    facts = profile("autodl").facts
    names = [
        getattr(product_of(facts, i), "id", None) for i in ("pro-ab12cd34", "a1b2c3d4e5-0f1e2d3c", "?", None)
    ]
    assert names == ["pro", "ordinary", None, None]


def test_every_money_or_data_fact_shows_its_source_in_json() -> None:
    for one in LOADED.by_id.values():
        data = json.loads(json.dumps(profiles.as_json(one)))
        network = data["network"]
        facts = [data["spot"], data["billing"], network["endpoint_moves"], *network["ssh"]]
        facts += [fact for kind in ("tiers", "actions", "clocks", "conveniences") for fact in data[kind]]
        for fact in facts:
            assert fact["evidence"]
            for source in fact["evidence"]:
                assert source["from"] and source["confidence"] and source["verified"].startswith("20")


def box(platform: str, **more: object) -> Instance:
    return Instance(name="b", platform=platform, endpoint=None, **more)  # type: ignore[arg-type]


def test_mounts_and_caps_that_are_always_watched() -> None:
    facts = LOADED.plain()
    assert facts["autodl"].watch_mounts == ("/", "/root/autodl-tmp", "/root/autodl-fs")
    assert facts["autodl"].inode_caps == (("/root/autodl-fs", 200_000),)
    assert facts["runpod"].watch_mounts == ("/", "/workspace")


def test_the_next_clock_is_reckoned_from_known_dates_only() -> None:
    facts = LOADED.plain()["autodl"]
    assert next_clock(facts, box("autodl")) is None
    stopped = next_clock(facts, box("autodl", instance_id="pro-1a"), stopped_at=1000.0)
    assert stopped is not None and stopped.at == 1000.0 + 15 * 24 * HOUR
    assert stopped.destroys == "system disk, data disk"
    ends = next_clock(facts, box("autodl", ends_at=5000.0), stopped_at=1000.0)
    assert ends is not None and (ends.text, ends.at) == ("contract ends", 5000.0)
    assert next_clock(None, box("x", ends_at=5.0)) is not None
    assert next_clock(LOADED.plain()["lambda"], box("lambda", rented_at=1.0), stopped_at=2.0) is None


GOOD = (shipped("profiles") / "ssh.md").read_text()


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("id: ssh\n", "id: other\n", "id: other", "file's name says otherwise"),
        ("kind: ssh\n", "kind: shh\n", "kind: shh", "kind"),
        ('verified: "2026-11"', "verified: 2026", "verified: 2026", "verified"),
        (
            "evidence: [practice]\n\nsources",
            "evidence: [rumour]\n\nsources",
            None,
            "rumour, which is not defined",
        ),
        ("meter_stop: null", "meter_stop: nope", None, "meter_stop names nope"),
        ("summary: A machine", "summry: A machine", "summry", "summry"),
        ("clocks: []", "clocks: []\nclocks: []", None, "written twice"),
        ("clocks: []", "clocks: &a []\nproducts: *a", "products", "aliases"),
        ("    level: 3\n", "    level: 2\n", None, "its level is 3"),
        ("spot:\n", "spot: [\n", None, "is not YAML"),
        ("## 2. STORAGE", "## 2. STORES", "## 2. STORES", "expected ## 2. STORAGE"),
        ("## 8. SCRIPT OVERRIDES", "### 8", None, "lacks the section ## 8."),
        ("### SSH2 ·", "### SSH1 ·", "### SSH1 · `free`", "already taken"),
        ("### SSH2 ·", "### XY2 ·", "### XY2", "a gotcha is headed ### SSH1"),
        ("### SSH2 ·", "### SSH2", "### SSH2", "a gotcha is headed"),
        ("gotcha_prefix: SSH\n", "gotcha_prefix: SSH\nretired_gotchas: [SSH3]\n", "### SSH3", "retired"),
        ("---\nid", "id", None, "begins with a line ---"),
        ("survives_stop: depends", "survives_stop: no", None, "does not list it in destroys"),
        ("Nobody reminds you.", "Nobody reminds you (SSH99).", "Nobody reminds", "names SSH99"),
        (
            "clocks: []",
            "cheap_modes: [{action: nap, text: x, good_for: [x], price: null, "
            "evidence: [practice]}]\nclocks: []",
            None,
            "cheap_modes names nap",
        ),
        ("  ssh:\n    - id: direct", "  ssh: []\nconveniences: []\nx:\n    - id: direct", None, "x: extra"),
        ("kind: ssh\n", "kind: ssh\ntransport: pigeon\n", "transport: pigeon", "transport"),
    ],
)
def test_what_the_check_finds(old: str, new: str, at: str | None, says: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    with pytest.raises(Failure) as found:
        profiles.read(text, "profiles/ssh.md")
    assert says in found.value.line
    if at is not None:
        assert found.value.line.startswith(f"profiles/ssh.md:{line_of(text, at)}: ")


def test_a_tier_that_is_wiped_a_day_after_a_stop_survives_none() -> None:
    text = (shipped("profiles") / "gpushare.md").read_text()
    at = text.index("- id: tmp")
    kept = text[:at] + text[at:].replace("survives_stop: no", "survives_stop: yes", 1)
    kept = kept.replace(
        "destroys: [system, tmp]\n    keeps: [netdisk, nas]",
        "destroys: [system]\n    keeps: [tmp, netdisk, nas]",
        1,
    )
    with pytest.raises(Failure) as found:
        profiles.read(kept, "profiles/gpushare.md")
    assert "tmp-wipe destroys tmp 24 h after a stop, so it survives none" in found.value.line


def test_old_stamps_are_told_with_their_line() -> None:
    one = profiles.read(GOOD, "profiles/ssh.md")
    found = list(profiles.stale(one, date(2027, 6, 1), months=6))
    assert len(found) == len(one.facts.sources)
    assert found[0].line.startswith(f"profiles/ssh.md:{line_of(GOOD, 'practice: {from')}: ")
    assert list(profiles.stale(one, date(2027, 5, 31), months=6)) == []
    assert list(profiles.stale(one, date(2026, 10, 1)))  # a stamp from the future is no stamp


def test_the_operators_file_replaces_and_a_bad_one_does_not(tmp_path: Path) -> None:
    own = tmp_path / "profiles"
    own.mkdir()
    (own / "ssh.md").write_text(GOOD.replace("title: Any box over SSH", "title: My cluster"))
    (own / "runpod.md").write_text("nonsense")
    (own / "_notes.md").write_text("not a profile")
    loaded = profiles.load(shipped("profiles"), own)
    assert loaded.by_id["ssh"].facts.title == "My cluster" and loaded.by_id["ssh"].own
    assert loaded.by_id["runpod"].facts.title == "RunPod"
    (found,) = loaded.problems
    assert found.line.startswith("profiles/runpod.md:1: ")


@given(st.text(max_size=200), st.integers(0, len(GOOD)), st.integers(0, 40))
def test_no_text_raises_anything_but_a_failure(text: str, at: int, cut: int) -> None:
    for candidate in (text, f"---\n{text}\n---\n", GOOD[:at] + text + GOOD[at + cut :]):
        try:
            profiles.read(candidate, "profiles/ssh.md")
        except Failure as failure:
            assert failure.line.startswith("profiles/ssh.md") and failure.line.isprintable()

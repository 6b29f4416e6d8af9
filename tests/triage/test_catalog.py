"""The catalog: shipped entries are whole, an operator's are checked, and a bad one costs only itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.model.failure import Failure
from tui.model.look import LOOK
from tui.triage.catalog import load, read
from tui.triage.readers import READERS
from tui.triage.xid import TABLE

ENTRY = """---
id: x_mine
title: Something of ours
group: process
plane: control
words: [mine]
rules:
  - name: text
    match: ['something of ours broke']
remedy:
  - {text: Look, level: 0, look: dmesg}
sources:
  - {from: us, verified: 2026-11}
---
## Symptom
a

## Root cause
b

## Fix
c

## Confirm
d
"""


def test_the_shipped_catalog_has_no_problems() -> None:
    catalog = load()
    assert catalog.problems == ()
    assert len(catalog.entries) >= 60


def test_every_look_of_a_remedy_is_one_that_rgt_has() -> None:
    for entry in load().entries.values():
        for step in entry.front.remedy:
            assert step.look is None or step.look in LOOK, (entry.id, step.look)


def test_every_reader_is_one_that_there_is_and_each_is_used() -> None:
    used = {rule.reader for entry in load().entries.values() for rule in entry.front.rules if rule.reader}
    assert used == set(READERS)


def test_classes_of_the_xid_table_are_in_the_catalog() -> None:
    entries = load().entries
    assert all(one.cls in entries for one in TABLE.values() if one.cls is not None)
    assert {code: TABLE[code].cls for code in (13, 31, 48, 63, 74, 79, 94, 119)} == {
        13: "gpu_app_fault", 31: "gpu_app_fault", 48: "gpu_ecc", 63: "gpu_ecc",
        74: "gpu_nvlink", 79: "gpu_lost", 94: "gpu_ecc", 119: "gpu_hung",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("level: 0", "level: 9", ":11: remedy.0.level"),
        ("match: ['something of ours broke']", "match: ['(']", ":9: rules.0.match.0"),
        ("match: ['something of ours broke']", r"match: ['\d+']", ":9: rules.0.match.0"),
        ("    match: ['something of ours broke']", "    reader: no-such", ":9: rules.0.reader"),
        ("group: process", "group: weather", ":4: group"),
        ("id: x_mine", "id: x_other", ":2: id is x_other"),
        ("## Fix", "## Fxi", "expected ## Fix here"),
        ("## Confirm\nd\n", "", "lacks the section ## Confirm"),
        ("title:", "titel:", "titel"),
        ("level: 0, look: dmesg", "level: 2, look: dmesg", "a look is at level 0"),
    ],
)
def test_a_bad_entry_names_file_and_line(old: str, new: str, says: str) -> None:
    with pytest.raises(Failure) as failure:
        read(ENTRY.replace(old, new), "catalog/x_mine.md")
    assert "catalog/x_mine.md" in failure.value.line
    assert says in failure.value.line


def test_an_operators_entry_counts_and_a_bad_one_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x_mine.md").write_text(ENTRY)
    (tmp_path / "x_bad.md").write_text("no front matter")
    (tmp_path / "mine.md").write_text(ENTRY.replace("x_mine", "mine"))
    (tmp_path / "_notes.md").write_text("not read")
    catalog = load(tmp_path)
    assert catalog.entries["x_mine"].own
    assert "mine" not in catalog.entries
    assert len(catalog.problems) == 2
    assert any("begins with x_" in problem.line for problem in catalog.problems)

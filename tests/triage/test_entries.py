"""The shipped entries without rules: each whole, dated, short, and with commands and code that parse."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from datetime import UTC, datetime

import pytest

from tui.cli import VERBS
from tui.triage.catalog import SECTIONS, SHIPPED, Entry, load

MOST_LINES = 25
CATALOG = load()
KNOWLEDGE = [entry for entry in CATALOG.entries.values() if not entry.diagnoses]
_FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def ids(entry: Entry) -> str:
    return entry.id


def test_every_file_is_read_and_no_id_comes_twice() -> None:
    assert CATALOG.problems == ()
    files = [path for path in SHIPPED.glob("*.md") if not path.name.startswith("_")]
    assert len(files) == len(CATALOG.entries)
    titles = Counter(entry.front.title.casefold() for entry in CATALOG.entries.values())
    assert [title for title, count in titles.items() if count > 1] == []


def test_there_is_knowledge_for_what_no_log_shows() -> None:
    assert len(KNOWLEDGE) >= 110
    groups = Counter[str](entry.front.group for entry in KNOWLEDGE)
    least = {"training": 40, "checkpoint": 18, "data": 18, "throughput": 14, "evaluation": 25, "memory": 7}
    assert {group: groups[group] for group, count in least.items() if groups[group] < count} == {}


@pytest.mark.parametrize("entry", KNOWLEDGE, ids=ids)
def test_an_entry_is_whole_and_short(entry: Entry) -> None:
    front = entry.front
    assert entry.id.startswith("x_")
    assert tuple(entry.sections) == SECTIONS
    text = (SHIPPED / f"{entry.id}.md").read_text(encoding="utf-8")
    body = text.split("\n---\n", 1)[1].strip().splitlines()
    assert len(body) <= MOST_LINES
    assert max(map(len, body)) <= 120
    today = datetime.now(UTC).strftime("%Y-%m")
    assert all(source.verified <= today for source in front.sources)
    chinese = [word for word in front.words if re.search(r"[\u4e00-\u9fff]", word)]
    assert len(chinese) >= 2
    assert len(front.words) - len(chinese) >= 2
    assert any(step.level == 0 for step in front.remedy), "a check that tells it apart"


@pytest.mark.parametrize("entry", KNOWLEDGE, ids=ids)
def test_what_an_entry_names_is_there(entry: Entry) -> None:
    steps = [f"{step.text} {step.command or ''}" for step in entry.front.remedy]
    text = "\n".join([*entry.sections.values(), *steps])
    assert set(re.findall(r"`rgt ([a-z]+)", text)) - set(VERBS) == set()
    assert set(re.findall(r"\bx_[a-z0-9_]+\b", text)) - set(CATALOG.entries) == set()
    for code in _FENCE.findall("\n".join(entry.sections.values())):
        ast.parse(code)


def test_commands_are_shell() -> None:
    commands = [
        (entry.id, step.command) for entry in KNOWLEDGE for step in entry.front.remedy if step.command
    ]
    assert len(commands) >= 30
    for one, command in commands:
        said = subprocess.run(
            ["bash", "-n", "-c", command], capture_output=True, text=True, timeout=10, check=False
        )
        assert said.returncode == 0, (one, said.stderr)

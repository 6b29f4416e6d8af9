"""The declared evaluator on the box that read the copy back: on a copy, bounded, its failures told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.custody.boxes import gnu
from tui.custody import evaluator_there
from tui.custody.evaluator import Answer
from tui.custody.evaluator_there import evaluate_there
from tui.model.metrics import Evaluator


async def answer(place: Path, program: str, shell: str = "dash", **more: Any) -> Answer:
    (place / "results").mkdir(exist_ok=True)
    (place / "results" / "predictions.csv").write_text("id\n1\n")
    said = Evaluator.model_validate({"command": [sys.executable, "-c", program], **more})
    return await evaluate_there(gnu(shell), said, str(place / "results"))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the box keeps what is temporary."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    return place


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
async def test_figures_are_those_that_it_prints_last(tmp_path: Path, shell: str, temporary: Path) -> None:
    told = await answer(tmp_path, "import json; print('loading'); print(json.dumps({'own': 12.4961}))", shell)
    assert told == Answer("box", {"own": "12.4961"})
    assert list(temporary.iterdir()) == []


async def test_it_sees_a_copy_and_no_secret_and_may_answer_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "s3cret")
    program = (
        "import json, os; open('predictions.csv', 'w').close(); open('new', 'w').close();"
        "found = sum('s3cret' in value for value in os.environ.values());"
        "json.dump({'own': found}, open('answer.json', 'w'))"
    )
    told = await answer(tmp_path, program, output="answer.json")
    assert told.figures == {"own": "0"}
    assert (tmp_path / "results" / "predictions.csv").read_text() == "id\n1\n"
    assert not (tmp_path / "results" / "new").exists()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "more", "says"),
    [
        ("import sys; sys.exit('no such model')", {}, "ended with 1: no such model"),
        ("print('fine')", {}, "is not valid|no valid JSON"),
        ("import time; time.sleep(60)", {"timeout": 1.0}, "did not end within 1 s"),
        ("x = bytearray(1 << 30)", {"memory": 512 << 20}, "MemoryError"),
        ("while True: print('x' * 65536)", {}, "printing without end"),
        ("print({})", {"output": "answer.json"}, "wrote no answer.json"),
        ("import os; os.symlink('/etc/passwd', 'a.json')", {"output": "a.json"}, "wrote no a.json"),
    ],
)
async def test_one_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path, program: str, more: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch,
    temporary: Path,
) -> None:  # fmt: skip
    import re

    monkeypatch.setattr(evaluator_there, "ANSWER_BYTES", 1 << 20)
    told = await answer(tmp_path, program, **more)
    assert told.figures is None
    assert re.search(says, told.failed), told.failed
    assert list(temporary.iterdir()) == []


async def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    said = Evaluator.model_validate({"command": ["true"]})
    told = await evaluate_there(gnu(), said, str(tmp_path / "nowhere"))
    assert told.figures is None
    assert "could not be copied there" in told.failed

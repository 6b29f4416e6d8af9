"""The phrase comes from the keyboard alone: real pseudo-terminals, pipes, /dev/null, no terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.person import ROOT, Person

CHILD = """
import sys
from tui.custody.keyboard import read_line
from tui.model.failure import Failure
try:
    print("GOT " + repr(read_line("PHRASE? ", 20.0)), flush=True)
except Failure as failure:
    print(f"FAILED {failure.code}", flush=True)
    sys.exit(int(failure.exit))
"""


def at_keyboard(code: str = CHILD, *, stdin: int | None = None) -> Person:
    return Person([sys.executable, "-c", code], stdin=stdin)


@pytest.fixture
def people() -> Iterator[list[Person]]:
    made: list[Person] = []
    yield made
    for person in made:
        person.close()


def test_what_is_typed_after_the_question_arrives_exactly(people: list[Person]) -> None:
    people.append(person := at_keyboard())
    person.sees(b"PHRASE? ")
    person.types(b" destroy done-01 9f3c21ab \r")
    assert person.ends() == (0, "GOT ' destroy done-01 9f3c21ab '")


def test_typed_ahead_text_is_thrown_away(people: list[Person]) -> None:
    people.append(person := at_keyboard())
    person.types(b"destroy done-01 9f3c21ab\r" * 3 + b"and half a l")
    person.sees(b"PHRASE? ")
    person.types(b"x\r")
    assert person.ends() == (0, "GOT 'x'")


def test_a_paste_with_newlines_is_no_phrase(people: list[Person]) -> None:
    people.append(person := at_keyboard())
    person.sees(b"PHRASE? ")
    person.types(b"destroy done-01 9f3c21ab\rrm -rf /\r")
    code, out = person.ends()
    assert code == 0
    assert out != "GOT 'destroy done-01 9f3c21ab'"
    assert "\\n" in out


def test_a_paste_is_marked_by_the_terminal_and_so_is_no_phrase(people: list[Person]) -> None:
    people.append(person := at_keyboard())
    person.sees(b"\x1b[?2004h")  # asks the terminal to mark pastes
    person.sees(b"PHRASE? ")
    person.types(b"\x1b[200~destroy done-01 9f3c21ab\x1b[201~\r")
    assert "200~" in person.ends()[1]
    person.sees(b"\x1b[?2004l")


@pytest.mark.parametrize("kind", ["pipe", "/dev/null", "file"])
def test_standard_input_can_not_supply_it(people: list[Person], kind: str, tmp_path: Path) -> None:
    phrase = b"destroy done-01 9f3c21ab\n"
    if kind == "pipe":
        fd, write = os.pipe()
        os.write(write, phrase)
        os.close(write)
    else:
        path = tmp_path / "phrase"
        path.write_bytes(phrase)
        fd = os.open("/dev/null" if kind == "/dev/null" else path, os.O_RDONLY)
    people.append(person := at_keyboard(stdin=fd))
    os.close(fd)
    person.sees(b"PHRASE? ")
    assert person.child.poll() is None  # it waits for the keyboard
    person.types(b"no\r")
    assert person.ends() == (0, "GOT 'no'")


@pytest.mark.parametrize("stdin", ["pipe", "/dev/null", "closed"])
def test_without_a_terminal_it_ends_with_4(stdin: str) -> None:
    given: dict[str, object] = {"input": b"destroy done-01 9f3c21ab\n"}
    if stdin == "/dev/null":
        given = {"stdin": subprocess.DEVNULL}
    elif stdin == "closed":
        given = {"preexec_fn": lambda: os.close(0)}
    done = subprocess.run(  # type: ignore[call-overload]
        [sys.executable, "-c", CHILD],
        capture_output=True,
        start_new_session=True,
        cwd=ROOT,
        timeout=30,
        **given,
    )
    assert done.returncode == 4
    assert done.stdout.strip() == b"FAILED no-terminal"


def test_end_of_file_and_hangup_are_no_phrase(people: list[Person]) -> None:
    people.append(person := at_keyboard())
    person.sees(b"PHRASE? ")
    person.types(b"\x04")
    assert person.ends() == (0, "GOT ''")


def test_nobody_answers(people: list[Person]) -> None:
    people.append(person := at_keyboard(CHILD.replace("20.0", "0.3")))
    assert person.ends() == (1, "FAILED no-answer")


def test_the_terminal_is_left_as_it_was(people: list[Person]) -> None:
    people.append(person := at_keyboard())
    before = termios.tcgetattr(person.master)
    person.sees(b"PHRASE? ")
    person.types(b"x\r")
    person.ends()
    assert termios.tcgetattr(person.master)[:4] == before[:4]

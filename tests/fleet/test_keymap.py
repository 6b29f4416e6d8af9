"""The operator's keys: ids, names and clashes are checked; a wrong line falls back to the defaults."""

from __future__ import annotations

from pathlib import Path
from string import ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.keys import _character_to_key

from tui.actions import ACTIONS, BY_ID
from tui.fleet import keymap
from tui.model.failure import Failure


def read(text: str, reserved: tuple[str, ...] = ()) -> keymap.Keymap:
    return keymap.read(text, ACTIONS, reserved)


def starts(result: keymap.Keymap) -> list[str]:
    return [problem.line.split(" ")[0] for problem in result.problems]


def test_good_lines_override() -> None:
    taken = {key for action in ACTIONS for key in action.keys}
    free = next(letter for letter in ascii_uppercase if letter not in taken)
    result = read(f'log = "{free}"\nprobe = ["f5", "?", "ctrl+r"]\nwrap = []\nhelp = "f1"\n')
    assert result.problems == ()
    assert result.overrides == {
        "log": (free,), "probe": ("f5", "question_mark", "ctrl+r"), "wrap": (), "help": ("f1",)
    }  # fmt: skip


def test_two_actions_may_swap_keys() -> None:
    result = read(f'log = "{BY_ID["probe"].keys[0]}"\nprobe = "{BY_ID["log"].keys[0]}"\n')
    assert result.problems == () and len(result.overrides) == 2


def test_wrong_lines_are_told_with_their_line_and_the_others_hold() -> None:
    result = read(
        'lgo = "L"\nlog = "nosuchkey"\nprobe = 3\nsort = ["x", 1]\n'
        'mark = "ctrl+b"\nquit = []\nfilter = "f7"\n'
    )
    assert starts(result) == [f"keymap.toml:{n}:" for n in range(1, 7)]
    assert result.overrides == {"filter": ("f7",)}
    assert "tmux" in result.problems[4].line


def test_a_clash_with_a_default_in_the_same_view_drops_the_override() -> None:
    wrap = BY_ID["wrap"].keys[0]
    result = read(f'follow = "f9"\nzoom = "{wrap}"\n')
    assert result.overrides == {"follow": ("f9",)}
    assert starts(result) == ["keymap.toml:2:"] and "wrap" in result.problems[0].line


def test_no_clash_between_views_that_never_meet() -> None:
    wrap = BY_ID["wrap"]
    assert "fleet" not in wrap.views
    result = read(f'sort = "{wrap.keys[0]}"\n')
    assert result.problems == ()


def test_of_two_overrides_the_later_yields_and_a_chain_settles() -> None:
    log, probe = BY_ID["log"].keys[0], BY_ID["probe"].keys[0]
    result = read(f'log = "f9"\nprobe = "f9"\nsort = "{probe}"\n')
    assert result.overrides == {"log": ("f9",)}, log
    assert starts(result) == ["keymap.toml:2:", "keymap.toml:3:"]


def test_keys_that_move_cannot_be_given_away() -> None:
    result = read('log = "j"\n', reserved=("j", "k"))
    assert result.overrides == {} and "moves the cursor" in result.problems[0].line


@pytest.mark.parametrize(
    ("written", "textual"),
    [("/", "slash"), ("?", "question_mark"), ("+", "plus"), ("-", "minus"), (":", "colon"),
     ("[", "left_square_bracket"), ("question_mark", "question_mark"), ("full_stop", "full_stop"),
     ("Shift+A", "A"), ("ctrl+X", "ctrl+x"), ("PgUp", "pageup"), ("esc", "escape"), ("F5", "f5"),
     ("shift+tab", "shift+tab"), ("alt+x", "alt+x"), ("ctrl+left", "ctrl+left"),
     ("exclamation_mark", "exclamation_mark"), ("!", "exclamation_mark"), ("space", "space"), ("é", "é")],
)  # fmt: skip
def test_spellings(written: str, textual: str) -> None:
    assert keymap.canonical(written) == textual


@pytest.mark.parametrize(
    "key",
    ["", "+x", "ctrl+", "hyper+x", "f25", "ctrl+enter", "ctrl+shift+x", "ctrl+1", "ctrl+a", "Ctrl+B",
     "ctrl+i", "ctrl+m", "ctrl+c", "ab", "\x1b", "shift+enter", "shift+1"],
)  # fmt: skip
def test_keys_that_no_terminal_sends(key: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        keymap.canonical(key)


def test_all_default_keys_are_keys_and_signs_are_spelt_as_textual_does() -> None:
    for action in ACTIONS:
        for key in action.keys:
            assert keymap.canonical(key) == key, action.id
    for code in range(33, 127):
        sign = chr(code)
        assert keymap.canonical(sign) == _character_to_key(sign)


def test_the_defaults_themselves_do_not_clash() -> None:
    for action in ACTIONS:
        keys = ", ".join(f'"{key}"' for key in action.keys)
        assert read(f"{action.id} = [{keys}]\n").problems == ()


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "keymap.toml"
    assert keymap.load(path, ACTIONS) == keymap.Keymap({})
    path.write_bytes(b"log = \n")
    assert keymap.load(path, ACTIONS).problems[0].line.startswith("keymap.toml:1: ")
    path.write_bytes(b"\xff")
    assert keymap.load(path, ACTIONS).problems


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[keys]\nsort = "v"\n', "a keymap has no tables"),
        ('srot = "v"\n', "Did you mean sort?"),
        ('xyzzy = "v"\n', "`:` in rgt completes their names."),
    ],
)
def test_a_name_that_no_action_has_comes_with_the_way_on(text: str, told: str) -> None:
    assert told in read(text).problems[0].line


LINES = st.lists(
    st.tuples(
        st.sampled_from([*BY_ID, "nope", "a.b"]),
        st.sampled_from(
            ['"x"', '"l"', '["r", "q"]', "[]", "3", '"ctrl+b"', '"\\u001b"', "{a=1}", '""', '"+"']
        ),
    ),
    max_size=8,
    unique_by=lambda pair: pair[0],
).map(lambda pairs: "".join(f"{a} = {b}\n" for a, b in pairs))


@given(LINES | st.text(max_size=60))
def test_no_keymap_raises_or_leaves_a_clash(text: str) -> None:
    try:
        result = read(text)
    except Failure as failure:
        assert failure.line.startswith("keymap.toml")
        return
    assert all(problem.line.isprintable() for problem in result.problems)
    assert keymap._clash(dict(BY_ID), dict(result.overrides)) is None
    assert all(name in BY_ID for name in result.overrides)

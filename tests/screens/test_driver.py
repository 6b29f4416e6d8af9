"""What comes from the terminal: no byte ends the app, and no paste presses keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.drivers import linux_driver

from tui.driver import Typed

BEGIN, END = b"\x1b[200~", b"\x1b[201~"


def typed(*pieces: bytes) -> str:
    decoder = Typed()
    return "".join(decoder.decode(piece) for piece in pieces)


def test_textual_reads_through_it() -> None:
    """Its own decoder is strict: the first byte of another encoding ends the app."""
    made = linux_driver.getincrementaldecoder("utf-8")()  # type: ignore[attr-defined]
    assert made.decode(b"\xd6\xd0j") == "��j"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"j\x1b[B\x1b", "j\x1b[B\x1b"),  # keys stay keys
        (
            BEGIN + b"a\x1b[31mred\x1b]0;t\x07\x9b\x00\tb\r\nc" + END,
            "\x1b[200~a[31mred]0;t�\tb\r\nc\x1b[201~",
        ),
        (BEGIN + b"a\x1b[200~D" + END + b"\x1b", "\x1b[200~a[200~D\x1b[201~\x1b"),
        ("\x1b[200~\x85训练\x1b[201~".encode(), "\x1b[200~训练\x1b[201~"),
    ],
)
def test_a_paste_has_no_control_characters(raw: bytes, text: str) -> None:
    assert typed(raw) == text


@given(
    st.lists(st.sampled_from([BEGIN, END, b"\x1b", b"[20", b"D", b"\xe8\xae", b"\xad", b"\xff"])), st.data()
)
def test_however_the_bytes_are_cut(parts: list[bytes], data: st.DataObject) -> None:
    raw = b"".join(parts) + END
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert typed(*pieces) == typed(raw)


def test_a_held_piece_comes_at_the_end() -> None:
    decoder = Typed()
    assert decoder.decode(BEGIN + b"a\x1b[20") == "\x1b[200~a"
    assert decoder.decode(b"", True) == "[20"

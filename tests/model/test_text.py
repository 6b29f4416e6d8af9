"""The text gate: what may reach the terminal, and what it looks like then."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.model.cells import fold, width
from tui.model.text import (
    LINE_LIMIT,
    NO_INK,
    Ink,
    LogGate,
    LogText,
    amount,
    log_lines,
    log_text,
    plain,
    safe,
    spans,
)

SGR = re.compile(r"\x1b\[[0-9]{0,3}(?:[;:][0-9]{0,3}){0,15}m")

PIECES = [
    b"\x1b", b"[", b"]52;c;QUJD", b"\x07", b"\x1b\\", b"31m", b"\x1b[1;31m", b"\xc2\x9b", b"m", b"\r", b"\n",
    b"\t", b"\b", b"\0\0", b"\x7f", b"P", b"8;;http://x", b"0", b";" * 20, b"\xe4\xb8", b"\xad",
    "训练".encode("gb18030"), "é".encode(), b"e\xcc\x81", "👩\u200d🔬".encode(), "\u202e".encode(),
]  # fmt: skip

hostile = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=200).map(lambda s: s.encode("utf-8", "surrogatepass")),
    st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join),
)


def controls(text: str) -> list[str]:
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@settings(max_examples=300, deadline=None)
@given(hostile)
def test_no_bytes_get_through_safe(raw: bytes) -> None:
    out = safe(raw)
    assert controls(out) == []
    assert all(cell_len(c) in (1, 2) for c in out)
    assert cell_len(out) == sum(map(cell_len, out)) == width(out)
    assert safe(out) == out
    out.encode()


@settings(max_examples=300, deadline=None)
@given(hostile)
def test_no_bytes_but_colours_get_through_the_log_gate(raw: bytes) -> None:
    lines = log_lines(raw)
    assert len(lines) == (raw.removesuffix(b"\n").count(b"\n") + 1 if raw else 0)
    for line in lines:
        bare = SGR.sub("", line)
        assert controls(bare) == []
        assert plain(line) == bare
        assert "".join(text for text, _ in spans(line)) == bare
        assert cell_len(bare) == sum(map(cell_len, bare))
        assert log_lines(line) in ([line], [])


@settings(max_examples=300, deadline=None)
@given(hostile, st.integers(0, 300))
def test_an_unfinished_line_is_as_clean_as_a_finished_one(raw: bytes, at: int) -> None:
    line = LogGate().line(raw.replace(b"\n", b" ")[:at])
    assert controls(SGR.sub("", line)) == []


@given(st.text(max_size=100))
def test_folding_is_final(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"loss 0.1", "loss 0.1"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]52;c;QUJD\x07copied", "copied"),
        (b"\x1b]0;title\x1b\\text", "text"),
        (b"\x1b]8;;http://evil\x07link\x1b]8;;\x07", "link"),
        (b"\x1bPq#0;2;0\x1b\\after", "after"),
        (b"\x1b]0;no end, so nothing is hidden", "0;no end, so nothing is hidden"),
        ("\x9b31mC1".encode(), "C1"),
        ("\x9d0;t\x9cC1".encode(), "C1"),
        (b"\x1bcreset", "reset"),
        (b"two\nlines\tand tabs\r", "two lines and tabs "),
        (b"a\x07b\x7f", "a␇b␡"),
        ("abc\u202edcb".encode(), "abcdcb"),
        ("zero\u200bwidth\ufeff".encode(), "zerowidth"),
        ("⚠️ ❤️ 1️⃣".encode(), "⚠ ❤ 1"),
        ("👍🏽 👩‍🔬".encode(), "👍 👩🔬"),
        ("🇨🇳🇺🇸".encode(), "CNUS"),
        ("🎉 恭喜,准确率 0.97 ✅".encode(), "🎉 恭喜,准确率 0.97 ✅"),
        ("▏█▉ ━╸ ⣿⠿ ■●▲".encode(), "▏█▉ ━╸ ⣿⠿ ■●▲"),
        ("e\u0301 が が".encode(), "é が が"),
        ("Z̸̡͉͇̩a̷̛l̵̢g̶o".encode(), "Zalgo"),
        ("\ue0b0 \U0010fffd \U000e0041".encode(), "□ □ "),
        ("🫠 new".encode(), "□ new"),
        ("a\u3000b\xa0c".encode(), "a  b c"),
        ("训练完成".encode("gb18030"), "训练完成"),
        (b"caf\xe9 bar", "caf� bar"),
        ("训练".encode()[:-1], "训�"),
    ],
)
def test_safe(raw: bytes, shown: str) -> None:
    assert safe(raw) == shown


def test_safe_takes_what_the_file_system_gives() -> None:
    assert safe(b"caf\xe9".decode("utf-8", "surrogateescape")) == "caf�"
    assert safe("x" * 10_000, limit=10) == "x" * 10
    assert safe("\x1b[31m" * 5_000 + "end", limit=3) == "end"


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\r\n", ["a", "b"]),
        (b" 10%|#   |\r 20%|##  |\r 30%|### |\ndone\n", [" 30%|### |", "done"]),
        (b"bar 1\rbar 2\r", ["bar 2"]),
        (b"\r\x1b[K 50%\x1b[A\n", [" 50%"]),
        (b"12%\b\b\b99%\n", ["99%"]),
        (b"\b\b5\x1b[3\b\b\bx", ["5x"]),
        (b"\x1b[1;31mred\x1b[0m \x1b[38;5;208mo\x1b[48:2::1:2:3mb", None),
        (b"\x1b[2Jgone \x1b[?25l\x1b[10;3H", ["gone "]),
        (b"\x1b[" + b"1;" * 40 + b"mlong", ["1;" * 24 + "1;" * 16 + "mlong"]),
        (b"\x1b[9999mx", ["x"]),
        (b"\0\0\0\0step\0", ["␀step␀"]),
        (b"a\tb\n12345678\tc\n", ["a       b", "12345678        c"]),
        ("中\tb".encode(), ["中      b"]),
        (b"\x1b[31ma\x1b[0m\tb", ["\x1b[31ma\x1b[0m       b"]),
    ],
)
def test_log_lines(raw: bytes, lines: list[str] | None) -> None:
    assert log_lines(raw) == (raw.decode().split("\n") if lines is None else lines)


def test_long_lines_are_cut_where_it_can_be_seen() -> None:
    (line,) = log_lines(b"x" * 1_500_000)
    assert line == "x" * LINE_LIMIT + " … 1.5 MB more"
    (coloured,) = log_lines(b"\x1b[31m" + b"y" * (LINE_LIMIT - 8) + b"\x1b[32mz" + b"y" * 100)
    assert coloured.endswith("y\x1b[0m … 103 B more")
    assert LogGate().line(b"x" * 8192, beyond=3_000_000).endswith("x … 3.0 MB more")


def test_a_stream_keeps_its_character_set() -> None:
    gate = LogGate()
    text = "第 3 轮 损失 0.25 训练完成\n普通 line\n"
    assert gate.lines(text.encode("gb18030")) == text.splitlines()
    assert gate.lines("后来 UTF-8 也行\n".encode()) == ["后来 UTF-8 也行"]
    assert gate.line("训练".encode("gb18030")[:-1]) == "训"


def test_a_cut_character_of_utf8_is_not_taken_for_chinese() -> None:
    assert log_lines("训练损失".encode()[:-2] + b" 0.5\n") == ["训练损� 0.5"]
    assert LogGate().line("训练".encode()[:-1]) == "训"


def test_one_line_of_many() -> None:
    assert log_text("a\nb") == "a b"
    assert log_text("") == ""


def test_spans_know_all_colour_depths() -> None:
    line = LogText(
        "p\x1b[1;31mr\x1b[92mg\x1b[38;5;208mo\x1b[48;2;1;2;3mt\x1b[38:2::9:8:7mu\x1b[22;39;49mn\x1b[mz\x1b[8mc"
    )
    assert spans(line) == [
        ("p", NO_INK),
        ("r", Ink(fg=1, bold=True)),
        ("g", Ink(fg=10, bold=True)),
        ("o", Ink(fg=208, bold=True)),
        ("t", Ink(fg=208, bg=(1, 2, 3), bold=True)),
        ("u", Ink(fg=(9, 8, 7), bg=(1, 2, 3), bold=True)),
        ("n", NO_INK),
        ("z", NO_INK),
        ("c", NO_INK),
    ]


@pytest.mark.parametrize(
    "params", ["38", "38;5", "38;2;1", "38;5;999", "48;2;300;1;1", "38:5", "", ";;", "38;9;4"]
)
def test_odd_colours_change_nothing_or_little(params: str) -> None:
    (text, ink) = spans(LogText(f"\x1b[{params}mx"))[0]
    assert text == "x"
    assert ink.fg is None and ink.bg is None


def test_underline_styles() -> None:
    assert spans(LogText("\x1b[4:3ma\x1b[4:0mb")) == [("a", Ink(underline=True)), ("b", NO_INK)]


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (999, "999 B"), (1200, "1.2 kB"), (999_999, "1.0 MB"), (9_800_000_000, "9.8 GB")],
)
def test_amounts(count: int, words: str) -> None:
    assert amount(count) == words

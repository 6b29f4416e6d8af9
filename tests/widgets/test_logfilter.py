"""Filters against the plainest way to compute the same, in any order of appends, trims and older lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.widgets.log_harness import HandBuffer
from tui.model.log import LogGap
from tui.model.text import LogText, SafeText, plain
from tui.widgets.logfilter import BadPattern, FilterIndex, Filters, Rule, pattern
from tui.widgets.logreader import ERROR_LIKE

WORDS = st.sampled_from(["a", "b", "ab", "c", "\x1b[31ma\x1b[0m", ""])


def plainly(buffer: HandBuffer, filters: Filters) -> list[int]:
    """What the index has to say, computed from scratch."""
    texts = [plain(line) for line in buffer.lines]
    gap = [buffer.base + i in buffer.gaps for i in range(len(texts))]
    hidden = [filters.hides(t) and not g for t, g in zip(texts, gap, strict=True)]
    matched = [filters.wants(t) and not h for t, h in zip(texts, hidden, strict=True)]
    around = filters.context if any(rule.keep for rule in filters.active) else 0
    kept = []
    for i in range(len(texts)):
        window = range(max(0, i - around), min(len(texts), i + around + 1))
        near = any(matched[j] and not gap[j] for j in window)
        if gap[i] or matched[i] or (near and not hidden[i]):
            kept.append(buffer.base + i)
    return kept


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "older", "gap", "work"]), st.lists(WORDS, max_size=6)), max_size=12
    ),
    st.integers(0, 3),
    st.booleans(),
    st.integers(5, 30),
)
def test_the_index_says_what_a_full_pass_says(
    steps: list[tuple[str, list[str]]], context: int, hide: bool, cap: int
) -> None:
    rules = (Rule(pattern("a"), keep=True), *((Rule(pattern("b"), keep=False),) if hide else ()))
    filters = Filters(rules, context)
    buffer = HandBuffer(cap=1000, base=100)
    index = FilterIndex(filters)
    for what, lines in steps:
        if what == "add":
            buffer.add(*lines)
        elif what == "older" and buffer.base >= len(lines):
            buffer.add_older(*lines)
        elif what == "gap":
            buffer.add_gap("a gap b")
        else:
            index.advance(buffer, 3)
    while not index.advance(buffer, 2):
        pass
    assert index.kept == plainly(buffer, filters)
    assert index.hidden == len(buffer.lines) - len(index.kept)
    buffer.cap = cap
    buffer.add("c")
    while not index.advance(buffer, 2):
        pass
    expected = set(plainly(buffer, filters))
    # context of a match that has left memory stays: it was shown, and nothing says it should vanish
    assert expected <= set(index.kept) <= set(range(buffer.base, buffer.end))


def test_case_is_ignored_until_a_capital_is_typed() -> None:
    assert pattern("nan").matches("NaN loss")
    assert not pattern("NaN").matches("nan loss")
    assert pattern("/loss\\S+nan/").matches("LOSS=NAN")  # \S is no capital


def test_a_slash_at_the_front_alone_is_text() -> None:
    assert not pattern("/root/a").is_regex
    assert pattern("/root/a").matches("cd /root/a")
    assert pattern("/ro+t/").is_regex


@pytest.mark.parametrize("typed", ["", "/[/", "/(x+)+/", "/(a|b*)*c/", "/(a+){2,}/"])
def test_what_cannot_be_searched_for_is_refused(typed: str) -> None:
    with pytest.raises(BadPattern):
        pattern(typed)


def test_the_same_filter_again_turns_it_off_and_on() -> None:
    filters = Filters().with_rule(Rule(pattern("x"), keep=True)).with_rule(Rule(pattern("y"), keep=False))
    off = filters.with_rule(Rule(pattern("x"), keep=True))
    assert [rule.on for rule in off.rules] == [False, True]
    assert off.with_rule(Rule(pattern("x"), keep=True)) == filters
    assert filters.toggled(7) == filters


def test_a_gap_is_kept_whatever_the_filters_say() -> None:
    buffer = HandBuffer([LogText("x")])
    buffer.gaps[1] = LogGap(SafeText("lost"))
    buffer.add("lost x")
    index = FilterIndex(Filters((Rule(pattern("x"), keep=False),)))
    assert index.advance(buffer, 10)
    assert index.kept == [1]


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: NCCL error in: /opt/pytorch/ProcessGroupNCCL.cpp",
        "OSError: [Errno 122] Disk quota exceeded",
        "/root/run.sh: line 3:  4121 Killed   python train.py",
        "2024-05-01 ERROR worker 3 lost",
        "error: failed to open shard 7",
        "epoch 3 loss: nan",
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus",
        "Segmentation fault (core dumped)",
    ],
)
def test_error_like_lines_are_known(line: str) -> None:
    assert ERROR_LIKE.matches(line)


@pytest.mark.parametrize(
    "line",
    [
        "epoch 3 loss 0.123 error 0.02",
        "0 errors, 0 warnings",
        "mean abs error=0.3",
        "saved ckpt to /root/terror/x.pth",
    ],
)
def test_ordinary_lines_are_not_error_like(line: str) -> None:
    assert not ERROR_LIKE.matches(line)

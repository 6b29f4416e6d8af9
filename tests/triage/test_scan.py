"""Whole logs in one pass: nothing that matters is lost, line numbers hold, memory stays flat."""

from __future__ import annotations

import random
import re
import sys
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.triage import reading
from tui.triage import needles, rules
from tui.triage.engine import diagnose
from tui.triage.inputs import Known, Said
from tui.triage.lines import LIMIT
from tui.triage.scan import BLOCK, Digest, scan

FINDER = reading.rules().finder


def _steps(first: int, count: int) -> bytes:
    rng = random.Random(first)
    return b"".join(
        b"2025-03-01 10:00:00 INFO step=%d loss=%.4f lr=3e-4 tokens/s=%d\n"
        % (step, 2 + rng.random(), rng.randrange(9000, 20000))
        for step in range(first, first + count)
    )


def _incident(digest: Digest) -> tuple[str | None, int | None]:
    found = diagnose(reading.rules(), digest)
    if not found.incidents:
        return None, None
    return found.incidents[0].cls, found.incidents[0].evidence[0].line


def test_a_fault_in_the_last_of_many_lines_is_found_with_its_line() -> None:
    log = _steps(0, 60_000) + b"RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    digest = scan([log[at : at + 70_001] for at in range(0, len(log), 70_001)], FINDER)
    assert _incident(digest) == ("gpu_ecc", 60_001)
    assert digest.lines == 60_001
    assert digest.size == len(log)
    assert not digest.whole


def test_training_that_went_on_long_after_an_error_is_seen_although_little_is_kept() -> None:
    error = b"RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    digest = scan([_steps(0, 40_000) + error + _steps(40_000, 60_000)], FINDER)
    assert _incident(digest) == (None, None)
    assert len(digest.rows) < 5_000


@given(cuts=st.lists(st.integers(1, 400), max_size=40), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_where_the_bytes_are_cut_makes_no_difference(cuts: list[int], seed: int) -> None:
    parts = [
        b"step %d loss 2.0\r" % seed,
        "损失 磁盘空间不足\n".encode(),
        b"\x1b[31mKilled\x1b[0m\r\n",
        b"\xff\xfe\n",
    ]
    log = b"".join(random.Random(seed).choices(parts, k=30))
    blocks, at = [], 0
    for cut in cuts:
        blocks.append(log[at : at + cut])
        at += cut
    blocks.append(log[at:])
    assert scan(blocks, FINDER).rows == scan([log], FINDER).rows


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_are_counted_at_line_feeds_only(end: bytes) -> None:
    log = (b"step 1 loss 2.0" + end) * 50 + b"Killed\n"
    rows = scan([log], FINDER).rows
    killed = [row.number for row in rows if row.text == "Killed"]
    assert killed == [51 if end != b"\r" else 1]


def test_a_bar_without_a_line_feed_does_not_fill_memory() -> None:
    bar = b"".join(b"\r 10%%|#  | %d/1000000 [00:10<01:30, 10.0it/s, loss=2.31]" % i for i in range(60_000))
    digest = scan([bar, bar, b"\nMemoryError\n"], FINDER)
    assert _incident(digest) == ("host_alloc_failed", 2)
    assert len(digest.rows) < 5_000


def test_one_endless_line_is_cut() -> None:
    digest = scan([b"x" * (3 * BLOCK), b"\nKilled\n"], FINDER)
    assert _incident(digest) == ("sigkill_unexplained", 2)
    assert max(len(row.text) for row in digest.rows) <= LIMIT


def _noisy(count: int) -> Iterator[bytes]:
    rng = random.Random(7)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randrange(3, 9))) for _ in range(4000)]
    for _ in range(count):
        lines = [b" ".join(rng.choices(words, k=12)) for _ in range(500)]
        lines[rng.randrange(500)] += b" error: failed to nan"
        yield b"\n".join(lines) + b"\n"


def test_memory_does_not_grow_with_the_log() -> None:
    scan(_noisy(4), FINDER)
    peaks = []
    for count in (20, 80):
        tracemalloc.start()
        scan(_noisy(count), FINDER)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.6 * peaks[0] + (8 << 20), peaks


def test_the_words_of_a_pattern_are_in_everything_it_matches() -> None:
    held = 0
    for case in reading.cases():
        for line in case.text.split("\n"):
            low = line.lower()
            folded = line.encode().translate(needles.FOLDED, needles.DROPPED)
            for rule in reading.rules().ready:
                for pattern in rule.match:
                    if pattern.words and pattern.search.search(line):
                        held += 1
                        assert any(word in low for word in pattern.words), (pattern.search.pattern, line)
                        if "log" in rule.rule.reads:
                            assert FINDER.search(folded), (pattern.search.pattern, line)
    assert held > 300


def test_rules_of_whole_logs_have_words() -> None:
    for rule in reading.rules().ready:
        if "log" in rule.rule.reads:
            assert all(pattern.words for pattern in rule.match), (rule.cls, rule.rule.name)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("CUDA out of memory", {"cuda out of memory"}),
        ("(?:foo|barr)x? quux", {"foo quux", "foox quux", "barr quux", "barrx quux"}),
        (r"(?:foo|barr)\d quux", {" quux"}),
        (r"abc\d+defgh", {"defgh"}),
        (r"(?:alpha|beta)\s+\d", {"alpha", "beta"}),
        (r"\d+ \w+", None),
        ("a?b?", None),
        ("[Kk]illed", {"killed"}),
        ("设备", {"设备"}),
    ],
)
def test_required_words(pattern: str, words: set[str] | None) -> None:
    found = needles.required(pattern)
    assert found == (None if words is None else frozenset(words))


def test_the_words_are_found_alike_with_re2_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("re2")
    text = b"\n".join(
        case.text.encode("utf-8", "surrogatepass").translate(needles.FOLDED, needles.DROPPED)
        for case in reading.cases()
        if case.lines
    )
    with_re2 = list(FINDER.hits(text))
    monkeypatch.setitem(sys.modules, "re2", None)
    without = rules.compiled(reading.rules().catalog).finder
    assert list(without.hits(text)) == with_re2
    assert len(with_re2) > 200


@given(text=st.text(max_size=300))
@settings(max_examples=80, deadline=None)
def test_any_text_is_survived_and_found_as_it_would_be_by_each_word(text: str) -> None:
    pattern = re.compile(re.escape(text[:12]) if text[:12].strip() else "x{3}")
    words = needles.required(pattern.pattern) or frozenset({"never there"})
    found = needles.finder(words)
    if len(words) and text[:12].strip() and needles.required(pattern.pattern):
        assert found.search(
            text[:12].lower().encode("utf-8", "replace").translate(needles.FOLDED, needles.DROPPED)
        )


_HOSTILE = st.one_of(
    st.binary(max_size=600),
    st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(
        st.sampled_from([c.text.encode() for c in reading.cases() if c.lines] + [b"\x1b]0;x", b"\0" * 9]),
        min_size=1, max_size=4,
    ).map(b"\r".join),
)  # fmt: skip


@given(raw=_HOSTILE, rc=st.one_of(st.none(), st.integers(-20, 300)))
@settings(max_examples=150, deadline=None)
def test_hostile_text_is_diagnosed_without_an_exception_and_without_control_signs(
    raw: bytes, rc: int | None
) -> None:
    said = [
        Said(kind, raw.decode("latin-1")[:40] or "x", raw.decode("utf-8", "surrogateescape"), rc=rc)  # type: ignore[arg-type]
        for kind in ("kernel", "gpu", "disk", "memory", "process", "session", "scheduler", "ssh", "shell")
    ]
    found = diagnose(reading.rules(), scan([raw], FINDER), said, None, Known(alive=True, log_age_s=9e9))
    for incident in found.incidents:
        shown: list[str] = [found.verdict, incident.title, *(one.text for one in incident.evidence)]
        shown += [step.text for step in incident.remedy] + [step.command or "" for step in incident.remedy]
        assert all(text.isprintable() for text in shown), shown

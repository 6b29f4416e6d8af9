"""The ring of log lines in memory."""

from __future__ import annotations

import sys
import tracemalloc
from random import Random

from tui.fleet.logbuffer import LogBuffer
from tui.model.log import LogBatch, LogGap
from tui.model.text import LogText, SafeText

GAP = LogGap(SafeText("rotated away"), 10)


def batch(first: int, count: int, partial: str = "", behind: int = 0, gap: int | None = None) -> LogBatch:
    lines = tuple(LogText(f"line {n}") for n in range(first, first + count))
    gaps = () if gap is None else ((gap, GAP),)
    return LogBatch("r", first, lines, 0.0, gaps, LogText(partial), behind_bytes=behind, file_bytes=1000)


def true_numbers(buffer: LogBuffer) -> bool:
    return all(
        line == f"line {buffer.base + i}"
        for i, line in enumerate(buffer.lines)
        if buffer.base + i not in buffer.gaps
    )


def test_lines_keep_their_numbers() -> None:
    buffer = LogBuffer(cap=100)
    buffer.append(batch(0, 30, "half"))
    assert (buffer.base, buffer.end, buffer.partial, buffer.file_bytes) == (0, 30, "half", 1000)
    version = buffer.version
    for n in range(30, 1000, 10):
        buffer.append(batch(n, 10, gap=3))
        assert buffer.end == n + 10
        assert len(buffer.lines) <= 110
        assert true_numbers(buffer)
        assert all(buffer.base <= number < buffer.end for number in buffer.gaps)
    assert buffer.version > version
    assert len(buffer.lines) >= 100


def test_a_batch_seen_twice_changes_nothing() -> None:
    buffer = LogBuffer()
    buffer.append(batch(0, 10))
    buffer.append(batch(0, 10, "old partial"))
    assert (buffer.end, len(buffer.lines)) == (10, 10)
    buffer.append(batch(5, 10))
    assert buffer.end == 15 and true_numbers(buffer)
    buffer.append(batch(2, 3, "long ago", behind=99))
    assert (buffer.end, buffer.partial, buffer.behind_bytes) == (15, "", 0)


def test_a_missing_batch_is_declared() -> None:
    buffer = LogBuffer()
    buffer.append(batch(0, 10))
    buffer.append(batch(11, 5))
    assert set(buffer.gaps) == {10} and true_numbers(buffer) and buffer.end == 16
    buffer.append(batch(50, 5))
    assert set(buffer.gaps) == {49} and true_numbers(buffer) and buffer.end == 55
    assert "34" in buffer.lines[0]


def test_a_buffer_may_begin_anywhere() -> None:
    buffer = LogBuffer()
    buffer.append(batch(150_000, 3))
    assert (buffer.base, buffer.end, buffer.gaps) == (150_000, 150_003, {})


def test_older_lines_join_or_are_left_out() -> None:
    buffer = LogBuffer(cap=100)
    buffer.append(batch(500, 100))
    buffer.prepend(batch(450, 50, gap=1))
    assert (buffer.base, buffer.end) == (450, 600) and 451 in buffer.gaps
    buffer.prepend(batch(300, 100))  # does not join
    assert buffer.base == 450
    buffer.prepend(batch(430, 40))  # overlaps
    assert buffer.base == 430 and true_numbers(buffer)
    buffer.prepend(batch(0, 0))
    assert buffer.base == 430
    for n in range(600, 1000, 20):
        buffer.append(batch(n, 20))
        assert true_numbers(buffer) and len(buffer.lines) <= 220
    buffer.forget_older()
    assert 100 <= len(buffer.lines) <= 110 and true_numbers(buffer)


def test_older_lines_of_an_empty_buffer() -> None:
    buffer = LogBuffer()
    buffer.prepend(batch(10, 5))
    assert (buffer.base, buffer.end) == (10, 15) and true_numbers(buffer)


def test_any_order_keeps_numbers_true() -> None:
    chance = Random(3)
    buffer = LogBuffer(cap=50)
    at = 0
    for _ in range(3000):
        first = max(0, at + chance.choice((0, 0, 0, -3, 2, -30)))
        (buffer.prepend if chance.random() < 0.2 else buffer.append)(batch(first, chance.randrange(8)))
        at = buffer.end
        assert true_numbers(buffer)
        assert len(buffer.lines) <= 105


def test_memory_is_flat() -> None:
    lines = [LogText(f"{n:08d} " + "x" * 91) for n in range(40_000)]
    buffer = LogBuffer()
    tracemalloc.start()
    for first in range(0, 40_000, 1000):
        own = tuple(LogText(line[:50] + line[50:]) for line in lines[first : first + 1000])
        buffer.append(LogBatch("r", first, own, 0.0))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(buffer.lines) <= 22_000
    assert size / len(buffer.lines) <= 250, size
    assert sys.getsizeof(lines[0]) < 250

"""Whether a wrong CRC-32 is what one flipped bit makes of the right one, and which bit.

CRC-32 is linear: what a flipped bit changes depends on its distance from the end alone, and is that power of
x modulo the polynomial. Finding the distance is a discrete logarithm, done by baby steps and giant steps.
"""

from __future__ import annotations

from functools import cache

MAX_BYTES = 4 << 20
"""Beyond, other damage looks like one flipped bit too often: 8 bits per byte of 2**32 sums, 0.8 % here."""

_POLYNOMIAL = 0xEDB88320
_STEPS = 1 << 14


def flipped_bit(recorded: int, computed: int, length: int) -> tuple[int, int] | None:
    """The byte and the bit that explain two checksums of `length` bytes; None where no single one does."""
    if length > MAX_BYTES or recorded == computed:
        return None
    near, back = _tables()
    difference, bits = recorded ^ computed, 8 * length
    for giant in range(bits // _STEPS + 1):
        if difference in near:
            distance = giant * _STEPS + near[difference]
            place = bits - 1 - distance
            return (place // 8, place % 8) if place >= 0 else None
        difference = _applied(back, difference)
    return None


@cache
def _tables() -> tuple[dict[int, int], tuple[int, ...]]:
    """What a bit changes at each small distance, and the way back over `_STEPS` bits as a matrix."""
    near, state = {}, _POLYNOMIAL
    for distance in range(_STEPS):
        near[state] = distance
        state = state >> 1 ^ (_POLYNOMIAL if state & 1 else 0)
    back = tuple(_before(1 << column) for column in range(32))
    steps = 1
    while steps < _STEPS:
        back = tuple(_applied(back, column) for column in back)
        steps *= 2
    return near, back


def _before(state: int) -> int:
    """The state one bit earlier."""
    return (state ^ _POLYNOMIAL) << 1 | 1 if state >> 31 else state << 1


def _applied(matrix: tuple[int, ...], vector: int) -> int:
    result = 0
    while vector:
        low = vector & -vector
        result ^= matrix[low.bit_length() - 1]
        vector ^= low
    return result
